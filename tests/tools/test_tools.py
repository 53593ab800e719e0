"""Tests of the tools' own rules: `python3 -m unittest discover tests/tools`."""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from cheetah_tools import apt, dump, ledger, licences, mtr, say, setup, stuck, testall  # noqa: E402
from cheetah_tools.say import Failure  # noqa: E402

TABLE = b"""CREATE TABLE `t` (
  `a` int(11) NOT NULL,
  `b` text DEFAULT NULL COMMENT 'ENGINE=x',
  PRIMARY KEY (`a`),
  FULLTEXT KEY `f` (`b`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4
 PARTITION BY HASH (`a`) (PARTITION `p0` ENGINE = InnoDB);
""".splitlines(keepends=True)


class Repository(unittest.TestCase):
    def test_every_tool_is_read_by_this_python(self):
        root = Path(__file__).resolve().parents[2]
        sources = [path for folder in ("tools", "tests") for path in (root / folder).rglob("*.py")]
        self.assertGreater(len(sources), 50)
        for path in sources:
            compile(path.read_text(), str(path), "exec")


    def test_the_index_of_decisions_has_each_of_them(self):
        folder = Path(__file__).resolve().parents[2] / "docs" / "decisions"
        linked = re.findall(r"\]\(([^)]+)\)", (folder / "README.md").read_text())
        self.assertEqual(linked, sorted(path.name for path in folder.glob("0*.md")))
        self.assertGreater(len(linked), 20)


class Packages(unittest.TestCase):
    """Set-up goes on without what is only compared with."""

    class Archive:
        """Has nothing but empty packages; of `refused` not even these."""

        def __init__(self, refused: str):
            self.refused = refused

        def download(self, packages: list, _folder: Path) -> list:
            if any(self.refused in package for package in packages):
                raise Failure(f"cannot download {packages}")
            return []

    def test_a_peer_that_cannot_be_had_is_named_with_the_reason(self):
        with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()) as said:
            for _, _, program in setup.OPTIONAL.values():
                (Path(root) / program).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy("/bin/true", Path(root) / program)
            absent = setup.add_optional(self.Archive("rocksdb"), "1:10.11.1", Path(root))
            self.assertEqual(list(absent), ["MyRocks"])
            self.assertIn("mariadb-plugin-rocksdb=1:10.11.1", absent["MyRocks"])
            self.assertIn("going on without MyRocks", said.getvalue())
            self.assertFalse((Path(root) / setup.OPTIONAL["MyRocks"][2]).exists())
            self.assertTrue((Path(root) / setup.OPTIONAL["7-Zip"][2]).exists())

    def test_a_package_without_its_program_counts_as_absent(self):
        with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(sorted(setup.add_optional(self.Archive("nothing"), "1", Path(root))), sorted(setup.OPTIONAL))


class Dumps(unittest.TestCase):
    def test_a_dump_of_several_databases_is_refused(self):
        lines = [b"USE `one`;\n", b"INSERT INTO t VALUES (1);\n", b"USE `one`;\n"]
        self.assertEqual(list(dump.lines_for(lines, "ENGINE=CHEETAH")), [lines[1]])
        with self.assertRaisesRegex(Failure, "one, two"):
            list(dump.lines_for(lines + [b"USE `two`;\n"], "ENGINE=CHEETAH"))

    def test_a_table_gets_the_engine_and_loses_what_cheetah_refuses(self):
        fitted = dump.fit_table(TABLE[:5] + [TABLE[5].rstrip() + b";\n"], "ENGINE=CHEETAH").decode()
        self.assertIn(") ENGINE=CHEETAH AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4;", fitted)
        self.assertIn("COMMENT 'ENGINE=x'", fitted)
        self.assertIn("PRIMARY KEY (`a`)\n)", fitted)
        self.assertNotIn("FULLTEXT", fitted)

    def test_a_table_stays_in_the_server_that_it_is_loaded_into(self):
        text = TABLE[5].rstrip() + b" DATA DIRECTORY = '/etc/it''s' INDEX DIRECTORY='x' `ENCRYPTION_KEY_ID`=2 COMMENT='c';\n"
        fitted = dump.fit_table(TABLE[:5] + [text], "ENGINE=CHEETAH").decode()
        self.assertNotIn("DIRECTORY", fitted)
        self.assertNotIn("ENCRYPTION", fitted)
        self.assertTrue(fitted.rstrip().endswith("COMMENT='c';"))

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


class Definitions(unittest.TestCase):
    def test_a_table_without_a_list_of_columns_is_left_as_it_is(self):
        statement = b"CREATE TABLE `FOREIGN KEY` LIKE `SPATIAL KEY`;\n"
        self.assertEqual(dump.definition_lines(statement), [statement])


def waited_once_begun(file: Path, program: str):
    """`testall.waited`, whose second begins when the process whose number comes into the file sleeps in that program."""
    wait = testall.waited

    def waited(process, out):
        deadline = time.monotonic() + 60
        while not is_asleep(file, program) and time.monotonic() < deadline:
            time.sleep(0.01)
        return wait(process, out)
    return waited


def is_asleep(file: Path, program: str) -> bool:
    """Whether the process whose number is in the file is this program, and waits."""
    number = stuck.read(file).strip()
    words = stuck.read(Path(f"/proc/{number}/stat")) if number else ""
    return f"({program})" in words and words.rpartition(")")[2].split()[:1] == ["S"]


class Outputs(unittest.TestCase):
    def test_results_of_the_driver_are_read(self):
        text = ("storage_engine/trx.insert 'x' w1 [ pass ]  27\nmain.a w2 [ fail ]\n"
                "handler.innodb  [ skipped ]  no\nengines/funcs.b 'y' w1 [ pass ] 5\nengines/funcs.b 'z' w1 [ fail ]\n")
        self.assertEqual(mtr.parse(text), {"storage_engine/trx.insert": "pass", "main.a": "fail", "handler.innodb": "skipped",
                                           "engines/funcs.b": "fail"})

    def test_counts_are_summed_and_a_failure_without_a_count_counts(self):
        step = testall.Step("t", [], result=testall.CARGO_RESULT)
        text = "test result: ok. 3 passed; 0 failed; 1 ignored\ntest result: ok. 4 passed; 0 failed; 0 ignored\n"
        self.assertEqual(testall.counts(step, text, Path("none"), True), (7, 0, 1))
        self.assertEqual(testall.counts(step, text, Path("none"), False), (7, 1, 1))
        self.assertEqual(testall.counts(testall.Step("s", []), "skipped: no data", Path("none"), True), (0, 0, 1))
        self.assertEqual(testall.failures("ok a\nFAIL b (1 s)\n  because\n\n  twice\nok c\ntest d ... FAILED\n"),
                         ["FAIL b (1 s)", "  because", "  twice", "test d ... FAILED"])
        step = testall.Step("l", [], result=testall.LICENCES_RESULT)
        self.assertEqual(testall.counts(step, "cargo-deny: skipped\nlicences: 1 passed, 0 failed, 1 skipped\n", Path("none"), True), (1, 0, 1))

    def test_a_step_that_hangs_is_ended_with_all_it_started_and_says_what_it_was_at(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"sleep 600 & echo begun; echo $! > {folder}/pid; wait"
            shown = io.StringIO()
            with mock.patch.multiple(testall, LOGS=Path(folder), STEP_SECONDS_MAX=1, waited=waited_once_begun(Path(folder, "pid"), "sleep")), \
                    contextlib.redirect_stdout(shown):
                outcome = testall.run(testall.Step("hangs", ["sh", "-c", script], inverted=True))
            self.assertEqual(outcome, (0, 1, 0))
            self.assertRegex(shown.getvalue(), r"FAILED in \d+ s(.|\n)*begun(.|\n)*was ended after 1 s(.|\n)*: sleep 600\n +sleep +S ")
            self.assertFalse(stuck.is_alive(int(Path(folder, "pid").read_text())))

    def test_ctrl_c_while_a_step_is_ended_ends_it_as_well(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"trap '' TERM; echo $$ > {folder}/pid; sleep 600 & wait"
            begun = waited_once_begun(Path(folder, "pid"), "sh")
            with mock.patch.multiple(testall, LOGS=Path(folder), STEP_SECONDS_MAX=1, waited=begun), contextlib.redirect_stdout(io.StringIO()), \
                    mock.patch.object(stuck, "describe", side_effect=KeyboardInterrupt), mock.patch.object(stuck, "STOP_SECONDS_MAX", 1), \
                    self.assertRaises(KeyboardInterrupt):
                testall.run(testall.Step("hangs", ["sh", "-c", script]))
            self.assertFalse(stuck.is_alive(int(Path(folder, "pid").read_text())))

    def test_gdb_has_a_limit_for_all_processes_together(self):
        with mock.patch.object(stuck.subprocess, "run", side_effect=AssertionError("gdb was begun")):
            self.assertIn("no time is left for gdb", stuck.backtraces(os.getpid(), 0))

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
