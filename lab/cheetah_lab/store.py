"""A run on disk: the folder `var/lab/runs/NAME`.

run.json      what the run is: name, begun, ended (or null), asked (what --full, --scale .. said,
              with all experiments and engines that it
              means), named (those that the user has named), experiments (in order, with the engines
              of each and why one is skipped), engines, plugin and code (hashes), machine, versions,
              memory_group
trials.jsonl  one line for each trial as it ended: experiment, engine, repeat, chosen, values,
              seconds, commands, remarks, limited (by a memory
              cgroup; null: no server started), held (what was measured so: phase, and bytes:
              on_disk, cache, page_cache, page_cache_most, own); with `refused` or `failed` (the
              reason) in place of values that are not there
errors.log    tracebacks of trials that failed by an error nobody foresaw

Invariants
  S1  A line is whole and synced before the next trial begins; what a kill tore off the last line is
      cut off.
  S2  run.json is there whole or not at all.
  S3  Of lines with the same experiment, engine and repeat the last one counts: what failed is tried
      again when a run goes on.
"""

import contextlib
import fcntl
import json
import os
from pathlib import Path

from cheetah_tools.paths import VAR, show
from cheetah_tools.say import Failure

RUNS = VAR / "lab/runs"
# runs that agree in these are the same, so one can go on
IDENTITY = ("asked", "plugin", "code", "memory_group")


class Run:
    """One run's folder."""

    def __init__(self, folder: Path, about: dict):
        self.folder, self.about = folder, about

    @property
    def name(self) -> str:
        """That of the folder."""
        return self.folder.name

    def save(self) -> None:
        """Write run.json (S2)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self.folder / "run.json", json.dumps(self.about, indent=1) + "\n")

    def append(self, trial: dict) -> None:
        """Keep a trial (S1). Failure when it cannot be written, ValueError for values that JSON
        lacks."""
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
        """Every trial that ended, by the names of experiments, repeats, and the keys of engines."""
        place = self.folder / "trials.jsonl"
        if not place.exists():
            return []
        lines = place.read_bytes()[:whole_lines(place)].splitlines()
        newest = {}
        for trial in map(json.loads, lines):
            newest[trial["experiment"], trial["engine"], trial["repeat"]] = trial   # S3
        return [newest[key] for key in sorted(newest, key=lambda key: (key[0], key[2], key[1]))]

    def done(self) -> set:
        """(experiment, engine, repeat) of the trials that need not run again."""
        return {(trial["experiment"], trial["engine"], trial["repeat"])
                for trial in self.trials() if not trial.get("failed")}

    def same(self, about: dict) -> bool:
        """Whether a run of this description would be this one."""
        return all(self.about.get(key) == about.get(key) for key in IDENTITY)


def replace(place: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all (S2), after a power cut, too. Failure
    when it cannot be written."""
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
        fresh.unlink(missing_ok=True)   # after Ctrl-C, too


def whole_lines(place: Path) -> int:
    """Bytes of a file up to the end of its last whole line."""
    return place.read_bytes().rfind(b"\n") + 1 if place.exists() else 0


def opened(folder: Path) -> Run:
    """The run in a folder that has a run.json."""
    try:
        return Run(folder, json.loads((folder / "run.json").read_text()))
    except json.JSONDecodeError as failure:
        raise Failure(f"{show(folder / 'run.json')} is damaged: {failure}") from failure


def every(runs: Path) -> list:
    """All runs, the newest first."""
    found = [opened(place.parent) for place in runs.glob("*/run.json")]
    return sorted(found, key=lambda run: run.about["begun"], reverse=True)


def named(runs: Path, name: str) -> Run:
    """A run by its name, or by the path of its folder; Failure when there is none."""
    for folder in (runs / name, Path(name)):
        if name and (folder / "run.json").exists():
            return opened(folder)
    there = ", ".join(run.name for run in every(runs)) or "none"
    raise Failure(f"no run {name}: {show(runs)} has {there}")


@contextlib.contextmanager
def alone(runs: Path):
    """Hold the lab: two runs at once would disturb each other. Failure when another has it."""
    runs.mkdir(parents=True, exist_ok=True)
    with open(runs / ".lock", "a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as failure:
            raise Failure(f"another run of the lab is going on in {show(runs)}: wait for it, "
                          "or stop it") from failure
        yield
