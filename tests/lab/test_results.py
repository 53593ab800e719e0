"""Tests that values of several engines are paired by repeat, even if an engine lacks a repeat."""

from cheetah_lab.engines import ALL
from cheetah_lab.results import Found


def found(values: dict) -> Found:
    return Found([{"engine": engine, "repeat": repeat, "values": [["bytes", value, None]]}
                  for engine, by_repeat in values.items()
                  for repeat, value in by_repeat.items()], ALL)


def test_ratios_are_those_of_one_repeat():
    results = found({"cheetah": {0: 10, 2: 30}, "innodb-8k": {0: 20, 1: 1, 2: 10}})
    assert results.ratios("cheetah", "bytes", "innodb-8k") == [0.5, 3.0]


def test_the_smallest_is_that_of_the_same_repeat():
    results = found({"cheetah": {0: 10, 1: 10, 2: 30}, "innodb-8k": {0: 20, 2: 10},
                     "innodb-4k": {0: 5, 1: 1, 2: 60}})
    assert results.by_smallest("cheetah", "bytes", ["innodb-8k", "innodb-4k"]) == [2.0, 3.0]
    assert results.by_smallest("cheetah", "bytes", ["myrocks"]) == []


def test_values_together_are_of_repeats_that_have_all_of_them():
    results = found({"cheetah": {0: 10, 1: 20, 2: 30}, "innodb-8k": {1: 1, 2: 2}})
    assert results.together(("cheetah", "bytes", None), ("innodb-8k", "bytes", None)) == [
        (20, 1), (30, 2)]
    assert results.together(("cheetah", "bytes", None), ("myrocks", "bytes", None)) == []


def test_the_median_ratio_of_a_curve_is_that_of_one_repeat():
    curves = {"cheetah": {0: [1, 2, 9], 1: [5, 5, 5]}, "innodb-8k": {0: [1, 1, 1], 1: [10, 0, 1]}}
    results = Found([{"engine": engine, "repeat": repeat,
                      "values": [["reads", value, at] for at, value in enumerate(curve)]}
                     for engine, by_repeat in curves.items()
                     for repeat, curve in by_repeat.items()], ALL)
    assert (results.median_ratios("cheetah", "reads", "innodb-8k", [0, 1, 2])
            == [2.0, 2.75]), "what cannot be divided by zero is left out"
    assert (results.median_ratios("cheetah", "reads", "innodb-8k", [])
            == results.median_ratios("cheetah", "reads", "myrocks", [0]) == [])
