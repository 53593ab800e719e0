"""Tests that the list of differences is exact in both directions."""

import pytest
from differences import Differences

LINES = "reason\tknown\tbecause\nsuite\tP4\tknown\nsuite\tG0\tforgotten\nother\tG1a\tknown\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "list.tsv").write_text(LINES)
    return tmp_path / "list.tsv"


@pytest.mark.parametrize("found, whole, wrong", [
    pytest.param({"P4": "known"}, {"P4"}, set(), id="what differs as listed is in order"),
    pytest.param({"P4": "known", "G2": "known"}, {"P4", "G2"}, {"G2"}, id="what is not listed"),
    pytest.param({}, {"P4"}, {"P4"}, id="what differs no more"),
    pytest.param({"G0": ""}, {"G0"}, {"G0"}, id="a reason that is explained nowhere")])
def test_unlisted_and_outdated_cases_are_wrong(place, found, whole, wrong):
    assert set(Differences("suite", place).judge(found, whole)) == wrong


def test_writing_keeps_other_suites_and_refuses_what_nothing_explains(place):
    Differences("suite", place).replace({"P4": "", "G2": "known", "OTV": ""})
    assert Differences("suite", place).listed == {"P4": "known", "G2": "known"}
    assert Differences("other", place).listed == {"G1a": "known"}
