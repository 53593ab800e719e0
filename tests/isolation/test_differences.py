"""Tests that the list of differences is exact in both directions."""

import pytest
from differences import Differences

LINES = "reason\tknown\tbecause\nsuite\tP4\tknown\nsuite\tG0\tforgotten\nother\tG1a\tknown\n"


class TestLists:
    @pytest.fixture(autouse=True)
    def lists(self, tmp_path):
        self.place = tmp_path / "list.tsv"
        self.place.write_text(LINES)
        self.listed = Differences("suite", self.place)

    def test_what_differs_as_listed_is_in_order(self):
        assert self.listed.judge({"P4": "known"}, {"P4"}) == {}

    def test_what_is_not_listed_is_wrong(self):
        assert "G2" in self.listed.judge({"P4": "known", "G2": "known"}, {"P4", "G2"})

    def test_what_differs_no_more_is_wrong(self):
        assert "P4" in self.listed.judge({}, {"P4"})

    def test_a_reason_that_is_explained_nowhere_is_wrong(self):
        assert "G0" in self.listed.judge({"G0": ""}, {"G0"})

    def test_writing_keeps_other_suites_and_refuses_what_nothing_explains(self):
        self.listed.replace({"P4": "", "G2": "known", "OTV": ""})
        again = Differences("suite", self.place)
        assert again.listed == {"P4": "known", "G2": "known"}
        assert Differences("other", self.place).listed == {"G1a": "known"}
