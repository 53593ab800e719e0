"""Tests the parts shared by cheetah-migrate and cheetah-backup, without a server."""

import argparse
import re
import subprocess

import pytest
from cheetah_client.connection import name, text, unescaped, value
from cheetah_client.options import add_connection, add_files, byte_count, connecting
from cheetah_client.say import size, span
from cheetah_tools import package


def test_values_go_to_the_server_and_back_whole():
    assert name("a`b", "c") == "`a``b`.`c`"
    assert text("a'\\\n") == "_utf8mb4 X'61275c0a'"
    assert [value(what) for what in (None, 3, "x")] == ["NULL", "3", "_utf8mb4 X'78'"]
    assert unescaped("a\\tb\\nc\\\\n\\0") == "a\tb\nc\\n\0"


def test_sizes_and_times():
    assert [size(count) for count in (0, 999, 1500, 123_456_789, 5e12)] == [
        "0 B", "999 B", "1.5 kB", "123 MB", "5.0 TB"]
    assert [span(seconds) for seconds in (3.4, 600, 3700)] == ["3 s", "10 min", "1 h 02 min"]
    assert [byte_count(word) for word in ("5", "2K", "3g")] == [5, 2048, 3 << 30]
    for word in ("", "0", "-1", "2P", "1.5G"):
        with pytest.raises(argparse.ArgumentTypeError):
            byte_count(word)


def test_how_to_connect_is_handed_on_as_it_was_given():
    parser = argparse.ArgumentParser()
    add_files(parser)
    add_connection(parser)
    words = ["--defaults-extra-file=x.cnf", "--port=0", "--user="]
    assert connecting(parser.parse_args([*words, "--password"])) == words
    assert not connecting(argparse.Namespace())


def test_neither_program_imports_from_the_other():
    programs = {program.name.replace("-", "_"): program.parent for program in package.PROGRAMS}
    for own, folder in {**programs, "cheetah_client": package.SHARED}.items():
        others = {"cheetah_tools", *programs} - {own}
        for file in folder.rglob("*.py"):
            named = set(re.findall(r"(?m)^ *(?:from|import) (\w+)", file.read_text()))
            assert not named & others, file


def test_the_installed_programs_find_their_parts(tmp_path):
    package.place_programs(tmp_path)
    for name, said in (("cheetah-migrate", "plan shop"),
                       ("cheetah-backup", "full /backups/monday")):
        done = subprocess.run([tmp_path / "bin" / name, "--help"], text=True, capture_output=True,
                              check=False)
        assert done.returncode == 0 and f"{name} {said}" in done.stdout, done.stderr
