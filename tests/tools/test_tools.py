"""Tests of single functions of the tools."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from cheetah_tools import apt, demo, dump, ledger, mtr, say, setup
from cheetah_tools.paths import PROJECT
from cheetah_tools.say import Failure

TABLE = b"""CREATE TABLE `t` (
  `a` int(11) NOT NULL,
  `b` text DEFAULT NULL COMMENT 'ENGINE=x',
  PRIMARY KEY (`a`),
  FULLTEXT KEY `f` (`b`),
  CONSTRAINT `c` FOREIGN KEY (`a`) REFERENCES `p` (`a`),
  SPATIAL KEY `s` (`g`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4
 PARTITION BY HASH (`a`) (PARTITION `p0` ENGINE = InnoDB);
""".splitlines(keepends=True)


def test_every_tool_is_read_by_this_python():
    sources = [path for folder in ("tools", "tests") for path in (PROJECT / folder).rglob("*.py")]
    assert len(sources) > 50
    for path in sources:
        compile(path.read_text(), str(path), "exec")


def test_the_index_of_decisions_has_each_of_them():
    folder = PROJECT / "docs/developers/decisions"
    linked = re.findall(r"\]\(([^)]+)\)", (folder / "README.md").read_text())
    assert linked == sorted(path.name for path in folder.glob("0*.md")) and len(linked) > 20


class Archive:
    """A fake archive that has only empty packages, and refuses to download `refused`."""

    release, folder = "bookworm", Path("/nowhere")

    def __init__(self, refused: str):
        self.refused = refused

    def download(self, packages: list, _folder: Path) -> list:
        if any(self.refused in package for package in packages):
            raise Failure(f"cannot download {packages}")
        return []


def test_a_peer_that_cannot_be_had_is_named_with_the_reason(tmp_path, capsys):
    for _, _, program in setup.OPTIONAL.values():
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/bin/true", tmp_path / program)
    absent = setup.add_optional(Archive("rocksdb"), "1:10.11.1", tmp_path)
    assert list(absent) == ["MyRocks"] and "mariadb-plugin-rocksdb=1:10.11.1" in absent["MyRocks"]
    assert "going on without MyRocks" in capsys.readouterr().out
    assert not (tmp_path / setup.OPTIONAL["MyRocks"][2]).exists()
    assert (tmp_path / setup.OPTIONAL["7-Zip"][2]).exists()


def test_a_package_without_its_program_counts_as_absent(tmp_path):
    assert sorted(setup.add_optional(Archive("nothing"), "1", tmp_path)) == sorted(setup.OPTIONAL)


def test_what_newer_packages_have_elsewhere_is_found(tmp_path):
    (tmp_path / "usr/lib/7zip").mkdir(parents=True)
    (tmp_path / "usr/lib/7zip/7zr").touch()
    for folder in ("mariadb", "mysql"):   # both exist, so both stay
        (tmp_path / "usr/share" / folder).mkdir(parents=True)
    for _ in range(2):
        setup.unpack_debs([], tmp_path)
    assert (tmp_path / setup.OPTIONAL["7-Zip"][2]).exists()
    assert not (tmp_path / "usr/share/mysql").is_symlink()


def test_a_dump_of_several_databases_is_refused():
    lines = [b"USE `one`;\n", b"INSERT INTO t VALUES (1);\n", b"USE `one`;\n"]
    assert list(dump.lines_for(lines, "ENGINE=CHEETAH")) == [lines[1]]
    with pytest.raises(Failure, match="one, two"):
        list(dump.lines_for(lines + [b"USE `two`;\n"], "ENGINE=CHEETAH"))


def test_a_table_gets_the_engine_and_loses_what_cheetah_refuses():
    fitted = dump.fit_table(TABLE[:7] + [TABLE[7].rstrip() + b";\n"], "ENGINE=CHEETAH").decode()
    assert ") ENGINE=CHEETAH AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4;" in fitted
    assert "COMMENT 'ENGINE=x'" in fitted
    assert "FULLTEXT KEY `f` (`b`),\n" in fitted and "REFERENCES `p` (`a`)\n)" in fitted
    assert "SPATIAL" not in fitted


def test_a_table_stays_in_the_server_that_it_is_loaded_into():
    text = (b" DATA DIRECTORY = '/etc/it''s' INDEX DIRECTORY='x' `ENCRYPTION_KEY_ID`=2 "
            b"COMMENT='c';\n")
    fitted = dump.fit_table(TABLE[:7] + [TABLE[7].rstrip() + text], "ENGINE=CHEETAH").decode()
    assert "DIRECTORY" not in fitted and "ENCRYPTION" not in fitted
    assert fitted.rstrip().endswith("COMMENT='c';")


def test_partitions_get_the_bare_engine():
    text = b"".join(dump.lines_for(iter(TABLE), "ENGINE=InnoDB KEY_BLOCK_SIZE=8")).decode()
    assert ") ENGINE=InnoDB KEY_BLOCK_SIZE=8 AUTO_INCREMENT=5" in text
    assert "(PARTITION `p0` ENGINE=InnoDB)" in text


def test_statements_that_choose_a_database_are_left_out():
    lines = [b"CREATE DATABASE `x`;\n", b"USE `x`;\n", b"INSERT INTO `t` VALUES (1,'USE it');\n"]
    assert list(dump.lines_for(iter(lines), "ENGINE=A")) == lines[2:]


def test_a_table_without_a_list_of_columns_is_left_as_it_is():
    statement = b"CREATE TABLE `FOREIGN KEY` LIKE `SPATIAL KEY`;\n"
    assert dump.definition_lines(statement) == [statement]


def test_stanzas_get_their_source_packages_and_keep_their_key():
    text = "Types: deb\nURIs: u\nSuites: s\nSigned-By: /k\n\nTypes: deb\nURIs: off\nEnabled: no\n"
    assert apt.deb822_sources(text) == "Types: deb deb-src\nURIs: u\nSuites: s\nSigned-By: /k\n"


def test_lines_get_their_twin_and_media_are_left_out():
    text = "# c\ndeb [signed-by=/k] u s main # note\ndeb cdrom:[x]/ s main\n"
    twins = "deb [signed-by=/k] u s main\ndeb-src [signed-by=/k] u s main\n"
    assert apt.one_line_sources(text) == twins


def test_another_release_comes_from_the_same_archives():
    stanzas = "Types: deb\nSuites: bookworm bookworm-updates\n\nTypes: deb\nSuites: sdk-bookworm\n"
    assert apt.of_release(stanzas, "bookworm", "trixie").strip() == (
        "Types: deb\nSuites: trixie trixie-updates")
    lines = "deb u bookworm-security main\ndeb v nodistro main\n"
    assert apt.of_release(lines, "bookworm", "trixie").strip() == "deb u trixie-security main"


def test_files_of_a_lock_are_fetched_from_beside_those_of_the_lists(tmp_path, monkeypatch):
    (tmp_path / "a.lock").write_text("# why\nversion 1:2-3\nabc  lib_2-3_all.deb\n")
    calls = []

    def run(_archive, *words, **_):
        calls.append(words)
        if "--print-uris" in words:
            return SimpleNamespace(stdout="'scheme:/pool/lib_9.deb' lib_9.deb 1 x\n")
        Path(words[3]).touch()
        return SimpleNamespace(stdout="")
    monkeypatch.setattr(apt.Archive, "_run", run)
    archive = apt.Archive()
    assert archive.pin(tmp_path / "a.lock") == "1:2-3"
    archive.download(["lib=1:2-3"], tmp_path)
    assert calls[-1][2:] == ("scheme:/pool/lib_2-3_all.deb", str(tmp_path / "lib_2-3_all.deb"),
                             "SHA256:abc")


def test_programs_with_a_loader_of_their_own_get_no_libraries_from_the_environment(tmp_path):
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    assert str(folder) in setup.library_environment(tmp_path)["LD_LIBRARY_PATH"]
    (folder / "ld-linux-x86-64.so.2").touch()
    assert str(folder) not in setup.library_environment(tmp_path)["LD_LIBRARY_PATH"]


def test_an_unanswered_commit_is_kept_whole_or_not_at_all():
    before, change = {"a": 1, "b": 2}, {"a": 3, "b": None}

    def verify(kept: dict) -> None:
        writer = SimpleNamespace(number=1, committed=dict(before), open=change)
        ledger.verify([writer], {1: dict(kept)})
    for kept in (before, {"a": 3}):
        verify(kept)
    for kept in ({"a": 3, "b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 1}, {}):
        with pytest.raises(Failure):
            verify(kept)


def test_results_of_the_driver_are_read():
    text = ("storage_engine/trx.insert 'x' w1 [ pass ]  27\nmain.a w2 [ fail ]\n"
            "handler.innodb  [ skipped ]  no\nengines/funcs.b 'y' w1 [ pass ] 5\n"
            "engines/funcs.b 'z' w1 [ fail ]\n")
    assert mtr.parse(text) == {"storage_engine/trx.insert": "pass", "main.a": "fail",
                               "handler.innodb": "skipped", "engines/funcs.b": "fail"}


def test_a_reader_that_goes_does_not_stop_the_work():
    reader, writer = os.pipe()
    out = say.PatientOutput(os.fdopen(writer, "w"))
    print("read", file=out, flush=True)
    os.close(reader)
    for text in ("unread", "unread too"):
        print(text, file=out, flush=True)
    out.close()


def test_the_demo_counts_what_is_there():
    assert demo.what_is_there(2692, 1) == (
        "all 2692 expected rows are there, and no others (one commit without an answer was kept "
        "whole)")
    assert demo.what_is_there(2, 3).endswith(
        "no others (3 commits without an answer were kept whole)")
    assert demo.what_is_there(1, 0) == "the one expected row is there, and no others"
