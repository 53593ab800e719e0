"""A run on disk: the folder `var/lab/runs/NAME`.

File          Contents
run.json      describes the run: name, begun, ended (or null), asked (the settings, with all
              experiments and engines), named (what the user named), experiments (in order, with the
              engines of each and why one is skipped), engines, plugin and code (hashes), machine,
              versions, memory_group
trials.jsonl  one line for each trial as it ended: experiment, engine, repeat, chosen, values,
              seconds, commands, remarks, limited (by a memory cgroup; null: no server started),
              held (the phases measured with limited memory: phase, and bytes: on_disk, cache,
              page_cache, page_cache_most, own). A line without values has `refused` or `failed`
              with the reason
errors.log    tracebacks of trials that failed with an unexpected error

Invariants
  S1  A line is complete and synced before the next trial begins; an incomplete last line, left by a
      kill, is cut off.
  S2  run.json is complete or does not exist.
  S3  If several lines have the same experiment, engine and repeat, the last one counts: a failed
      trial runs again when a run continues."""

import contextlib
import fcntl
import json
import os
from pathlib import Path

from cheetah_tools.paths import VAR, show
from cheetah_tools.say import Failure

RUNS = VAR / "lab/runs"
# runs with equal values here are the same, so one can continue
IDENTITY = ("asked", "plugin", "code", "memory_group")


class Run:
    def __init__(self, folder: Path, about: dict):
        self.folder, self.about = folder, about

    @property
    def name(self) -> str:
        return self.folder.name

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self.folder / "run.json", json.dumps(self.about, indent=1) + "\n")

    def append(self, trial: dict) -> None:
        """Saves a trial (S1). Raises Failure, or ValueError for values that JSON does not have."""
        line, place = (json.dumps(trial, allow_nan=False).encode() + b"\n",
                       self.folder / "trials.jsonl")
        try:
            with open(place, "ab") as file:
                file.truncate(whole_lines(place))
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as failure:
            raise Failure(f"cannot write {show(place)}: {failure.strerror}; when that is mended, "
                          "the same command goes on with this run") from failure

    def trials(self) -> list:
        """Returns every trial that ended, sorted by experiment, repeat and engine."""
        place = self.folder / "trials.jsonl"
        if not place.exists():
            return []
        lines = place.read_bytes()[:whole_lines(place)].splitlines()
        newest = {}
        for trial in map(json.loads, lines):
            newest[trial["experiment"], trial["engine"], trial["repeat"]] = trial   # S3
        return [newest[key] for key in sorted(newest, key=lambda key: (key[0], key[2], key[1]))]

    def done(self) -> set:
        """Returns (experiment, engine, repeat) of the trials that need not run again."""
        return {(trial["experiment"], trial["engine"], trial["repeat"])
                for trial in self.trials() if not trial.get("failed")}

    def same(self, about: dict) -> bool:
        return all(self.about.get(key) == about.get(key) for key in IDENTITY)


def replace(place: Path, text: str) -> None:
    """Writes a file atomically and durably (S2). Raises Failure if it cannot be written."""
    fresh = place.with_name(place.name + ".new")
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(place)
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as failure:
        raise Failure(f"cannot write {show(place)}: {failure.strerror}") from failure
    finally:
        fresh.unlink(missing_ok=True)   # also after Ctrl-C


def whole_lines(place: Path) -> int:
    return place.read_bytes().rfind(b"\n") + 1 if place.exists() else 0


def opened(folder: Path) -> Run:
    try:
        return Run(folder, json.loads((folder / "run.json").read_text()))
    except json.JSONDecodeError as failure:
        raise Failure(f"{show(folder / 'run.json')} is damaged: {failure}") from failure


def every(runs: Path) -> list:
    found = [opened(place.parent) for place in runs.glob("*/run.json")]
    return sorted(found, key=lambda run: run.about["begun"], reverse=True)


def named(runs: Path, name: str) -> Run:
    """Returns a run by its name or its folder's path; raises Failure if it does not exist."""
    for folder in (runs / name, Path(name)):
        if name and (folder / "run.json").exists():
            return opened(folder)
    there = ", ".join(run.name for run in every(runs)) or "none"
    raise Failure(f"no run {name}: {show(runs)} has {there}")


@contextlib.contextmanager
def alone(runs: Path):
    """Locks the lab: two runs would disturb each other. Raises Failure if another has the lock."""
    runs.mkdir(parents=True, exist_ok=True)
    with open(runs / ".lock", "a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as failure:
            raise Failure(f"another run of the lab is going on in {show(runs)}: wait for it, "
                          "or stop it") from failure
        yield
