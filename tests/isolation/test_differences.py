"""The list of differences is exact in both directions: `python3 -m unittest discover -s tests/isolation`."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from differences import Differences  # noqa: E402

LINES = "reason\tknown\tbecause\nsuite\tP4\tknown\nsuite\tG0\tforgotten\nother\tG1a\tknown\n"


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = Path(folder.name) / "list.tsv"
        self.place.write_text(LINES)
        self.listed = Differences("suite", self.place)

    def test_what_differs_as_listed_is_in_order(self):
        self.assertEqual(self.listed.judge({"P4": "known"}, {"P4"}), {})

    def test_what_is_not_listed_is_wrong(self):
        self.assertIn("G2", self.listed.judge({"P4": "known", "G2": "known"}, {"P4", "G2"}))

    def test_what_differs_no_more_is_wrong(self):
        self.assertIn("P4", self.listed.judge({}, {"P4"}))

    def test_a_reason_that_is_explained_nowhere_is_wrong(self):
        self.assertIn("G0", self.listed.judge({"G0": ""}, {"G0"}))

    def test_writing_keeps_other_suites_and_refuses_what_nothing_explains(self):
        self.listed.replace({"P4": "", "G2": "known", "OTV": ""})
        again = Differences("suite", self.place)
        self.assertEqual(again.listed, {"P4": "known", "G2": "known"})
        self.assertEqual(Differences("other", self.place).listed, {"G1a": "known"})


if __name__ == "__main__":
    unittest.main()
