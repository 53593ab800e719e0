"""Tests the package's contents besides the engine: its documents and the form of its scripts."""

import re
from pathlib import Path

import pytest
from cheetah_tools import package
from test_docs import LINE_MAX, links


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("package")
    package.place_documents(made)
    return made


def test_links_of_the_packages_documents_lead_somewhere_in_the_package(folder):
    found = [link for path in folder.rglob("*.md") for link in links(path, folder, Path.is_file)]
    assert not [wrong for _, wrong in found if wrong]
    assert len(found) > 100, "links were looked at"


def test_the_package_has_what_its_readers_are_sent_to(folder):
    for name in ("README.md", "docs/README.md", "docs/users/usage.md", "docs/users/upgrades.md",
                 "docs/users/backup.md", "docs/developers/architecture.svg",
                 "tools/monitoring/cheetah-alerts.yml", "packaging/Containerfile",
                 "LICENSES/MIT.txt"):
        assert (folder / name).is_file(), name
    named = set()
    for script in package.PACKAGING.iterdir():
        folder_of_docs = r"/usr/share/doc/(?:\$package|mariadb-plugin-cheetah)/"
        named.update(re.findall(folder_of_docs + r"([\w/.-]*\w)", script.read_text()))
    assert named and all((folder / name).is_file() for name in named), named


def test_an_installed_plugin_comes_with_settings(tmp_path):
    assert "cheetah = FORCE" in package.place_settings(tmp_path)
    target = tmp_path / package.CONFIGURATION
    target.parent.mkdir(parents=True)
    assert "restart" in package.place_settings(tmp_path)
    assert "\ncheetah = FORCE\n" in target.read_text()
    target.write_text("mine")
    assert "stays" in package.place_settings(tmp_path) and target.read_text() == "mine"


def test_only_links_out_of_the_package_become_words():
    text = ("[a](b.md#c) ![p](p.svg) [d](#e) [f](https://g) [`h` i](../crates/j) [k/l](../k/l) "
            "`[m]`(n)")
    names = [Path("pages/b.md"), Path("pages/p.svg")]
    assert (package.without_links_out(text, Path("pages/a.md"), names)
            == text.replace("[`h` i](../crates/j)", "`h` i (crates/j in the source)")
            .replace("[k/l](../k/l)", "k/l"))


def test_lines_of_the_packages_files_are_short():
    wrong = [f"{file.name}: {number}" for file in package.PACKAGING.iterdir()
             for number, line in enumerate(file.read_text().splitlines(), 1)
             if len(line) > LINE_MAX]
    assert not wrong


def test_scripts_can_be_run_and_say_their_licence():
    scripts = [file for file in package.PACKAGING.iterdir() if file.read_text().startswith("#!")]
    assert len(scripts) >= 7
    for file in scripts:
        assert file.stat().st_mode & 0o111, file.name
        assert (file.read_text().splitlines()[1]
                == "# SPDX-License-Identifier: GPL-2.0-only"), file.name
