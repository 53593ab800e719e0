"""How the bench divides memory where data outgrow it."""

from types import SimpleNamespace

from cheetah_tools import memory

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
