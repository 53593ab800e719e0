"""Cargo.toml has the only version: everything else takes it from there or is compared here."""

import re
import shlex
import subprocess
import tomllib

from cheetah_tools import build, package
from cheetah_tools.paths import PROJECT

VERSION = build.workspace_version()
OURS = {"cheetah", "cheetah-cli", "cheetah-ffi", "cheetah-io"}


def parsed(name: str) -> dict:
    return tomllib.loads((PROJECT / name).read_text())


def test_the_crates_have_the_version_of_the_workspace():
    workspace = parsed("Cargo.toml")["workspace"]
    wanted = {name: dependency["version"] for name, dependency in workspace["dependencies"].items()
              if "path" in dependency}
    assert wanted == {"cheetah": VERSION, "cheetah-io": VERSION}
    locked = {package["name"]: package["version"] for package in parsed("Cargo.lock")["package"]}
    assert {name: locked[name] for name in OURS} == dict.fromkeys(OURS, VERSION)
    for name in OURS:
        assert parsed(f"crates/{name}/Cargo.toml")["package"]["version"] == {"workspace": True}


def test_the_plugin_has_the_version_of_the_workspace(tmp_path):
    major, minor, _ = VERSION.split(".")
    package.place_sources(tmp_path)
    source = tmp_path / "version_test.cc"
    source.write_text('#include "layout/version.h"\n#include <string_view>\n'
                      f'static_assert(std::string_view(cheetah::version_text) == "{VERSION}");\n'
                      f"static_assert(cheetah::version_number == {major} * 256 + {minor});\n")
    for flags in ("$(cat flags.txt)", shlex.join(build.FLAGS)):
        subprocess.run(f"g++ {flags} -I . -fsyntax-only {source.name}", shell=True, cwd=tmp_path,
                       check=True)


def test_no_source_of_the_plugin_has_a_version_of_its_own():
    for source in (PROJECT / "plugin").rglob("*.*"):
        assert not re.search(r'"\d+\.\d+(\.\d+)?"', source.read_text()), source


def test_the_changes_are_those_of_releases_the_newest_first():
    """The section of each release has at most 120 lines (two pages)."""
    releases = re.split(r"^## ", (PROJECT / "CHANGELOG.md").read_text(), flags=re.M)[1:]
    versions = [re.match(r"(\d+\.\d+\.\d+) \(20\d\d-\d\d-\d\d\)\n", text) for text in releases]
    assert all(versions), [text.splitlines()[0] for text in releases]
    numbers = [tuple(map(int, found.group(1).split("."))) for found in versions]
    assert versions[0].group(1) == VERSION and numbers == sorted(set(numbers), reverse=True)
    assert max(len(text.splitlines()) for text in releases) <= 120
