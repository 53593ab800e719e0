"""Tests the verdicts on claims from made-up values."""

import pytest
from cheetah_lab import judge
from cheetah_lab.model import FAILS, HOLDS, OPEN


@pytest.mark.parametrize("ratios, low, high, outcome", [
    ([0.5, 0.51, 0.49], 0, 1, HOLDS), ([1.5, 1.51, 1.49], 0, 1, FAILS),
    ([0.9, 1.1, 1.0], 0, 1, OPEN), ([1.0, 1.0, 1.0], 1, 1, HOLDS),
    ([0.5], 0, 1, OPEN), ([], 0, 1, OPEN),
    ([0.0, 0.0, 0.0], 0, 1, HOLDS), ([0.0, 0.5, 3.0], 0, 1, OPEN), ([0.0, 0.1], 0.5, 1, FAILS),
])
def test_a_claim_holds_when_the_whole_interval_does(ratios, low, high, outcome):
    verdict = judge.within("it does", "this by that", ratios, low, high)
    assert ((verdict.claim, verdict.outcome) == ("it does", outcome)
            and verdict.why.startswith("this by that: "))


@pytest.mark.parametrize("values, outcome", [
    ([1.0, 1.0], HOLDS), ([1.0] * 23 + [1.02], FAILS), ([1.02], FAILS), ([1.0], OPEN), ([], OPEN)])
def test_one_value_that_is_wrong_decides(values, outcome):
    assert judge.all_are("exact", "counts", values, 1).outcome == outcome


@pytest.mark.parametrize("values, outcome", [
    ([0, 0, 0], HOLDS), ([3, 4], FAILS), ([0, 3], OPEN), ([0], OPEN), ([], OPEN)])
def test_a_limit_is_decided_by_repeats_that_agree(values, outcome):
    assert judge.at_most("few", "errors", values, 2).outcome == outcome
