"""Tests of the insert benchmark's figures."""

import random

from cheetah_tools import inserts


def test_the_last_fifth_counts_only_what_ended_in_it():
    moments = [(second + 0.5, 0.010 if second < 9 else 0.050) for second in range(10)]
    rows = inserts.BATCH_ROWS * len(moments)
    found = inserts.summary(moments, 10, rows, [1.0, 2.0 * rows, 3.0 * rows], 40 * rows)
    assert (found.rows_per_second, found.last_part) == (rows / 10, 2 * inserts.BATCH_ROWS / 2)
    assert (found.p99_ms, found.longest_ms) == (50, 50)
    assert (found.read_bytes, found.written_bytes, found.disk_bytes) == (2, 3, 40)
    assert round(found.cpu_us) == round(1e6 / rows)


def test_rows_are_the_same_for_the_same_seed_and_have_six_values():
    first, again = (inserts.row(random.Random(7)) for _ in range(2))
    assert first == again
    assert first.startswith("(NOW(), ") and first.count(",") == 5
