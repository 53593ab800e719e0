"""Tests of the throughput bench: how sysbench's report is read, and what follows from it."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from cheetah_tools import oltp, ratios, sysbench  # noqa: E402
from cheetah_tools.say import Failure  # noqa: E402

REPORT = """SQL statistics:
    queries performed:
        read:                            15812
        total:                           22613
    transactions:                        {count}   ({rate} per sec.)
    queries:                             22613  (10722.31 per sec.)
    ignored errors:                      21     (10.50 per sec.)
General statistics:
    total time:                          2.5000s
Latency (ms):
         max:                                  982.10
         99th percentile:                      350.33
"""
TPS, P99, _CPU = oltp.MEASURES


class Reports(unittest.TestCase):
    def test_figures_are_read_and_processor_time_is_divided(self):
        cell = oltp.cell_of(sysbench.parse(REPORT.format(count=1139, rate="540.07")), 2.2613)
        self.assertEqual((cell.tps, cell.p99_ms, round(cell.cpu_us, 3), cell.errors),
                         (540.07, 350.33, 100.0, 10.5))

    def test_a_time_without_transactions_has_figures_too(self):
        cell = oltp.cell_of(sysbench.parse(REPORT.format(count=0, rate="0.00")), 2.0)
        self.assertEqual((cell.tps, cell.p99_ms), (0.4, 2500.0))

    def test_another_text_is_refused(self):
        with self.assertRaises(Failure):
            sysbench.parse("FATAL: no such table")


class Verdicts(unittest.TestCase):
    def test_the_interval_is_that_of_student(self):
        middle, low, high = ratios.interval([0.5, 2.0])
        self.assertAlmostEqual(middle, 1.0)
        self.assertAlmostEqual(low * high, 1.0)
        self.assertAlmostEqual(high, 2.0 ** 6.31375,
                               delta=0.01)   # one degree of freedom; the error of the mean is log 2
        self.assertEqual(ratios.interval([1.5, 1.5, 1.5])[1:], ratios.interval([1.5, 1.5])[1:])
        self.assertEqual(ratios.interval([3.0])[1:], (None, None))

    def test_a_cell_misses_when_its_whole_interval_does(self):
        self.assertEqual(oltp.verdict(TPS, [(1.2, 1.1, 1.3), (0.9, 0.80, 0.96)])[3:5],
                         ["met", "0 of 2"])
        self.assertEqual(oltp.verdict(TPS, [(1.2, 1.1, 1.3), (0.8, 0.70, 0.94)])[3:5],
                         ["MISSED", "1 of 2"])
        self.assertEqual(oltp.verdict(P99, [(1.2, 1.1, 1.3), (1.05, 1.0, 1.1)])[3:5],
                         ["met", "0 of 2"])
        self.assertEqual(oltp.verdict(P99, [(1.3, 1.2, 1.4), (1.05, 1.0, 1.1)])[3:5],
                         ["MISSED", "1 of 2"])
        self.assertEqual(oltp.verdict(TPS, [(1.2, None, None)])[3:5],
                         ["met", "one repeat: unknown"])


if __name__ == "__main__":
    unittest.main()
