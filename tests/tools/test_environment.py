"""The virtual environment: when it is created, no partial one remains, which messages appear."""

import fcntl
import os
from pathlib import Path

import pytest
from cheetah_tools import environment
from cheetah_tools.say import Failure


@pytest.fixture
def made(tmp_path, monkeypatch) -> list:
    commands = []

    def call(words, _complaint, _environment=None):
        commands.append(words[1:4])
        if words[2] == "venv":
            (Path(words[3]) / "bin").mkdir(parents=True)
            (Path(words[3]) / "bin/python").write_text("")
        elif (tmp_path / "offline").exists():
            raise Failure("no network")
    for name, text in (("LOCK", "click==8.0 \\\n    --hash=sha256:00\n"),
                       ("TEST_LOCK", "pytest==9.0 \\\n    --hash=sha256:00\n")):
        (tmp_path / name).write_text("# comment\n" + text)
        monkeypatch.setattr(environment, name, tmp_path / name)
    monkeypatch.setattr(environment, "PLACE", tmp_path / "venvs/venv")
    monkeypatch.setattr(environment, "call", call)
    monkeypatch.setattr(environment, "can_make", lambda: True)
    return commands


def test_it_is_made_once_and_again_when_the_lock_changes(made):
    assert (environment.ensure() == environment.PLACE / "bin/python"
            and environment.ensure().exists())
    assert [words[1] for words in made] == ["venv", "pip"]
    environment.LOCK.write_text("click==8.1\n")
    environment.ensure()
    assert [words[1] for words in made] == ["venv", "pip"] * 2


def test_what_the_tests_need_is_added(made):
    environment.ensure()
    environment.ensure(tests=True)
    environment.ensure(tests=True)
    assert [words[1] for words in made] == ["venv", "pip", "pip"]


def test_half_an_environment_does_not_stay(made):
    (environment.PLACE.parents[1] / "offline").write_text("")
    with pytest.raises(Failure, match="no network"):
        environment.ensure()
    assert [file.name for file in environment.PLACE.parent.iterdir()] == ["venv.lock"]
    (environment.PLACE.parents[1] / "offline").unlink()
    assert environment.ensure().exists() and not environment.PLACE.with_name("venv.new").exists()


def test_who_is_not_root_is_told_the_command(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Failure,
                       match="python3-venv; as root: apt-get install -y --no-install-recommends "
                       "python3-venv"):
        environment.install_packages(["python3-venv"])


def test_the_locks_pin_everything_with_hashes():
    for lock in (environment.LOCK, environment.TEST_LOCK):
        names = environment.pinned(lock)
        assert names and all("==" in name for name in names)
        assert lock.read_text().count("--hash=sha256:") >= len(names)
    shared = dict(name.split("==") for name in environment.pinned(environment.LOCK))
    for name, version in (pinned.split("==")
                          for pinned in environment.pinned(environment.TEST_LOCK)):
        assert shared.get(name, version) == version, f"{name} has two versions"


def test_one_program_makes_it_at_a_time(made, monkeypatch):
    call, refused = environment.call, []

    def watched(*words):
        lock = environment.PLACE.parent / "venv.lock"
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        refused.append(words)
        call(*words)
    monkeypatch.setattr(environment, "call", watched)
    environment.ensure(tests=True)
    assert len(refused) == len(made) == 3
