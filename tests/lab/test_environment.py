"""Tests of the lab's environment: when it is made, that half of one never stays, and what is said where something is missing."""

import os
from pathlib import Path

import pytest
from cheetah_tools import lab
from cheetah_tools.say import Failure


@pytest.fixture
def made(tmp_path, monkeypatch) -> list:
    """Locks and an environment in a temporary folder; the commands that would have been run."""
    commands = []

    def call(words, _complaint, _environment=None):
        commands.append(words[1:4])
        if words[2] == "venv":
            (Path(words[3]) / "bin").mkdir(parents=True)
            (Path(words[3]) / "bin/python").write_text("")
        elif (tmp_path / "offline").exists():
            raise Failure("no network")
    for name, text in (("LOCK", "click==8.0 \\\n    --hash=sha256:00\n"), ("TEST_LOCK", "pytest==9.0 \\\n    --hash=sha256:00\n")):
        (tmp_path / name).write_text("# comment\n" + text)
        monkeypatch.setattr(lab, name, tmp_path / name)
    monkeypatch.setattr(lab, "PLACE", tmp_path / "lab/venv")
    monkeypatch.setattr(lab, "call", call)
    monkeypatch.setattr(lab, "can_make", lambda: True)
    return commands


def test_it_is_made_once_and_again_when_the_lock_changes(made):
    assert lab.ensure() == lab.PLACE / "bin/python" and lab.ensure().exists()
    assert [words[1] for words in made] == ["venv", "pip"]
    lab.LOCK.write_text("click==8.1\n")
    lab.ensure()
    assert [words[1] for words in made] == ["venv", "pip"] * 2


def test_what_the_tests_need_is_added(made):
    lab.ensure()
    lab.ensure(tests=True)
    lab.ensure(tests=True)
    assert [words[1] for words in made] == ["venv", "pip", "pip"]


def test_half_an_environment_does_not_stay(made):
    (lab.PLACE.parents[1] / "offline").write_text("")
    with pytest.raises(Failure, match="no network"):
        lab.ensure()
    assert not list(lab.PLACE.parent.iterdir())
    (lab.PLACE.parents[1] / "offline").unlink()
    assert lab.ensure().exists() and not lab.PLACE.with_name("venv.new").exists()


def test_who_is_not_root_is_told_the_command(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Failure, match="python3-venv; as root: apt-get install -y --no-install-recommends python3-venv"):
        lab.install_packages(["python3-venv"])


def test_the_locks_pin_everything_with_hashes():
    for lock in (lab.LOCK, lab.TEST_LOCK):
        names = lab.pinned(lock)
        assert names and all("==" in name for name in names)
        assert lock.read_text().count("--hash=sha256:") >= len(names)
    shared = dict(name.split("==") for name in lab.pinned(lab.LOCK))
    for name, version in (pinned.split("==") for pinned in lab.pinned(lab.TEST_LOCK)):
        assert shared.get(name, version) == version, f"{name} has two versions"
