"""Tests of the throughput bench: how sysbench's report is read, and what follows from it."""

import pytest
from cheetah_tools import bench, oltp, ratios, sysbench
from cheetah_tools.say import Failure

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


def test_figures_are_read_and_processor_time_is_divided():
    cell = oltp.cell_of(sysbench.parse(REPORT.format(count=1139, rate="540.07")), 2.2613)
    assert ((cell.tps, cell.p99_ms, round(cell.cpu_us, 3), cell.errors)
            == (540.07, 350.33, 100, 10.5))


def test_a_time_without_transactions_has_figures_too():
    cell = oltp.cell_of(sysbench.parse(REPORT.format(count=0, rate="0.00")), 2.0)
    assert (cell.tps, cell.p99_ms) == (0.4, 2500.0)


def test_another_text_is_refused():
    with pytest.raises(Failure):
        sysbench.parse("FATAL: no such table")


def test_the_interval_is_that_of_student():
    middle, low, high = ratios.interval([0.5, 2.0])
    assert (middle, low * high) == pytest.approx((1.0, 1.0))
    # One degree of freedom; the error of the mean is log 2.
    assert high == pytest.approx(2.0 ** 6.31375, abs=0.01)
    assert ratios.interval([1.5, 1.5, 1.5])[1:] == ratios.interval([1.5, 1.5])[1:]
    assert ratios.interval([3.0])[1:] == (None, None)


@pytest.mark.parametrize("measure, cells, verdict", [
    (TPS, [(1.2, 1.1, 1.3), (0.9, 0.80, 0.96)], ["met", "0 of 2"]),
    (TPS, [(1.2, 1.1, 1.3), (0.8, 0.70, 0.94)], ["MISSED", "1 of 2"]),
    (P99, [(1.2, 1.1, 1.3), (1.05, 1.0, 1.1)], ["met", "0 of 2"]),
    (P99, [(1.3, 1.2, 1.4), (1.05, 1.0, 1.1)], ["MISSED", "1 of 2"]),
    (TPS, [(1.2, None, None)], ["met", "one repeat: unknown"])])
def test_a_cell_misses_when_its_whole_interval_does(measure, cells, verdict):
    assert oltp.verdict(measure, cells)[3:5] == verdict


def test_the_median_is_that_of_the_last_histogram():
    histogram = """Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.100 |**                                       {few}
       0.200 |**************************************** 60
       1.500 |                                         30

"""
    text = histogram.format(few=900) + histogram.format(few=10) + REPORT.format(count=1, rate="1.0")
    assert sysbench.parse(text).p50_ms == 0.2
    assert sysbench.parse(REPORT.format(count=1, rate="1.0")).p50_ms == 0


def test_cells_are_the_usual_ones_unless_told():
    choice = bench.choose([])
    assert oltp.chosen_cells(choice, ["a"], [1, 2]) == (["a"], [1, 2])
    choice = bench.choose(["--workloads", "b,c", "--connections", "7"])
    assert oltp.chosen_cells(choice, ["b", "c"], [1]) == (["b", "c"], [7])
    with pytest.raises(Failure, match="no such workload: c"):
        oltp.chosen_cells(choice, ["b"], [1])
