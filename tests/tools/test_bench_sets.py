"""Figures of single sets of the bench: how memory is divided where data outgrow it, and inserts."""

import random
from types import SimpleNamespace

from cheetah_tools import inserts, memory

MIB = 1 << 20


def test_each_split_of_a_share_is_the_same_memory_in_all():
    one = memory.splits(0.2, 270 * MIB, several=False)
    assert [(split.cache_bytes, split.page_cache_bytes) for split in one] == [
        (54 * MIB, memory.PAGE_CACHE_BYTES)]
    several = memory.splits(0.2, 270 * MIB, several=True)
    assert len(several) == len({split.known_as for split in several}) == 3
    for split in several:
        whole = split.cache_bytes + split.page_cache_bytes
        assert 0 <= 54 * MIB + memory.PAGE_CACHE_BYTES - whole < MIB + 1
        assert split.cache_bytes >= 8 * MIB


def test_an_engine_is_reported_with_the_split_in_which_it_did_most():
    one, other = memory.splits(0.2, 270 * MIB, several=True)[:2]
    cell = ("oltp_point_select", 16)

    def cells(*rates):
        return [SimpleNamespace(tps=rate) for rate in rates]
    found = {one: {cell: {"A": cells(10, 30, 20), "B": cells(7), "C": []}},
             other: {cell: {"A": cells(19, 90, 1), "B": cells(8), "C": []}}}
    assert memory.best(found, cell, "A")[0] is one
    assert memory.best(found, cell, "B")[0] is other
    assert memory.best(found, cell, "C")[1] == []


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
