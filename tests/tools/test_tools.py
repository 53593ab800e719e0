"""Tests of the tools' own rules: `python3 -m unittest discover tests/tools`."""

import os
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from cheetah_tools import apt, dump, ledger, licences, mtr, say, testall  # noqa: E402
from cheetah_tools.say import Failure  # noqa: E402

TABLE = b"""CREATE TABLE `t` (
  `a` int(11) NOT NULL,
  `b` text DEFAULT NULL COMMENT 'ENGINE=x',
  PRIMARY KEY (`a`),
  FULLTEXT KEY `f` (`b`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4
 PARTITION BY HASH (`a`) (PARTITION `p0` ENGINE = InnoDB);
""".splitlines(keepends=True)


class Dumps(unittest.TestCase):
    def test_a_table_gets_the_engine_and_loses_what_cheetah_refuses(self):
        fitted = dump.fit_table(TABLE[:5] + [TABLE[5].rstrip() + b";\n"], "ENGINE=CHEETAH").decode()
        self.assertIn(") ENGINE=CHEETAH AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4;", fitted)
        self.assertIn("COMMENT 'ENGINE=x'", fitted)
        self.assertIn("PRIMARY KEY (`a`)\n)", fitted)
        self.assertNotIn("FULLTEXT", fitted)

    def test_partitions_get_the_bare_engine(self):
        text = b"".join(dump.lines_for(iter(TABLE), "ENGINE=InnoDB KEY_BLOCK_SIZE=8")).decode()
        self.assertIn(") ENGINE=InnoDB KEY_BLOCK_SIZE=8 AUTO_INCREMENT=5", text)
        self.assertIn("(PARTITION `p0` ENGINE=InnoDB)", text)

    def test_statements_that_choose_a_database_are_left_out(self):
        lines = [b"CREATE DATABASE `x`;\n", b"USE `x`;\n", b"INSERT INTO `t` VALUES (1,'USE it');\n"]
        self.assertEqual(list(dump.lines_for(iter(lines), "ENGINE=A")), lines[2:])


class Sources(unittest.TestCase):
    def test_stanzas_get_their_source_packages_and_keep_their_key(self):
        text = "Types: deb\nURIs: u\nSuites: s\nSigned-By: /k\n\nTypes: deb\nURIs: off\nEnabled: no\n"
        self.assertEqual(apt.deb822_sources(text), "Types: deb deb-src\nURIs: u\nSuites: s\nSigned-By: /k\n")

    def test_lines_get_their_twin_and_media_are_left_out(self):
        text = "# c\ndeb [signed-by=/k] u s main # note\ndeb cdrom:[x]/ s main\n"
        self.assertEqual(apt.one_line_sources(text), "deb [signed-by=/k] u s main\ndeb-src [signed-by=/k] u s main\n")


class Licences(unittest.TestCase):
    def test_apache_alone_is_refused_and_a_choice_with_mit_is_not(self):
        for good in ("MIT OR Apache-2.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception"):
            self.assertTrue(licences.allowed(good), good)
        for bad in ("Apache-2.0", "MIT AND Apache-2.0", "GPL-3.0-only", ""):
            self.assertFalse(licences.allowed(bad), bad)


class Ledger(unittest.TestCase):
    def writer(self, committed, unanswered):
        return SimpleNamespace(number=1, committed=committed, open=unanswered)

    def test_an_unanswered_commit_is_kept_whole_or_not_at_all(self):
        before, change = {"a": 1, "b": 2}, {"a": 3, "b": None}
        for kept in (before, {"a": 3}):
            ledger.verify([self.writer(dict(before), change)], {1: dict(kept)})
        for kept in ({"a": 3, "b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 1}, {}):
            with self.assertRaises(Failure):
                ledger.verify([self.writer(dict(before), change)], {1: dict(kept)})


class Outputs(unittest.TestCase):
    def test_results_of_the_driver_are_read(self):
        text = ("storage_engine/trx.insert 'x' w1 [ pass ]  27\nmain.a w2 [ fail ]\n"
                "handler.innodb  [ skipped ]  no\nengines/funcs.b 'y' w1 [ pass ] 5\nengines/funcs.b 'z' w1 [ fail ]\n")
        self.assertEqual(mtr.parse(text), {"storage_engine/trx.insert": "pass", "main.a": "fail", "handler.innodb": "skipped",
                                           "engines/funcs.b": "fail"})

    def test_counts_are_summed_and_a_failure_without_a_count_counts(self):
        step = testall.Step("t", [], result=testall.CARGO_RESULT)
        text = "test result: ok. 3 passed; 0 failed; 1 ignored\ntest result: ok. 4 passed; 0 failed; 0 ignored\n"
        self.assertEqual(testall.counts(step, text, True), (7, 0, 1))
        self.assertEqual(testall.counts(step, text, False), (7, 1, 1))
        self.assertEqual(testall.counts(testall.Step("s", []), "skipped: no data", True), (0, 0, 1))
        self.assertEqual(testall.failures("ok a\nFAIL b (1 s)\n  because\n\n  twice\nok c\ntest d ... FAILED\n"),
                         ["FAIL b (1 s)", "  because", "  twice", "test d ... FAILED"])
        step = testall.Step("l", [], result=testall.LICENCES_RESULT)
        self.assertEqual(testall.counts(step, "cargo-deny: skipped\nlicences: 1 passed, 0 failed, 1 skipped\n", True), (1, 0, 1))

    def test_a_reader_that_goes_does_not_stop_the_work(self):
        reader, writer = os.pipe()
        out = say.PatientOutput(os.fdopen(writer, "w"))
        print("read", file=out, flush=True)
        os.close(reader)
        for text in ("unread", "unread too"):
            print(text, file=out, flush=True)
        out.close()


if __name__ == "__main__":
    unittest.main()
