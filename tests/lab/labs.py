"""Helpers for tests of runs: experiments written by the test, and the lab as a separate process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cheetah_tools.paths import PLUGIN, SERVER

PROJECT = Path(__file__).resolve().parents[2]
WAIT_SECONDS_MAX = 300
TOML = """title = "Made for a test"
question = "?"
method = "."
document = ""
quotes = []
[claims]
[room]
bytes = {bytes}
[time]
seconds = 1
"""
CODE = """import time
from cheetah_lab import show
from cheetah_lab.model import Experiment, Measure, Plot, Table, Value
from cheetah_lab.trial import Refused
from cheetah_tools.say import Failure

class Made(Experiment):
    measures = [Measure("seconds", "time of the load", "s", "less"),
                Measure("bytes", "bytes on disk", "bytes", "less"),
                Measure("rows", "rows", "rows"), Measure("count", "count", "")]
    def run(self, trial):
"""
# A load of two thousand rows of text on a real server, which takes about a second.
LOAD = """
with trial.server(16 << 20) as server:
    server.sql("CREATE DATABASE made")
    server.sql("CREATE TABLE made.t (id INT PRIMARY KEY, text VARCHAR(1000)) "
               + trial.engine.clause())
    rows = ", ".join(f"({n}, REPEAT('the row {n} ', 60))" for n in range(2000))
    started = time.monotonic()
    server.sql("INSERT INTO made.t VALUES " + rows)
    trial.engine.flush(server)
    yield Value("seconds", time.monotonic() - started)
    yield Value("bytes", trial.engine.bytes_on_disk(server, "made"))
    yield Value("rows", server.value("SELECT COUNT(*) FROM made.t"))
    trial.did("INSERT INTO made.t VALUES ..")
"""
# The plots and tables that a page shows for this load.
SHOWN = """
    def plots(self, found):
        return [Plot("times", "Time to load", "bars", "", "s",
                     show.bars(found, {"two thousand rows": ("seconds", None)}))]
    def tables(self, found):
        return [Table("Every engine", ["engine", "time", "size"],
                      [show.cells(found, engine, [("seconds", None, "s"),
                                                  ("bytes", None, "bytes")])
                       for engine in found.engines])]
"""


class Lab:
    def __init__(self, folder: Path):
        self.experiments, self.runs = folder / "experiments", folder / "runs"
        self.environment = {**os.environ, "CHEETAH_EXPERIMENTS": str(self.experiments),
                            "PYTHONPATH": f"{PROJECT / 'lab'}:{PROJECT / 'tools'}"}

    def write(self, name: str, body: str, room_bytes: float = 1e6, more: str = "") -> None:
        """Writes an experiment: `body` holds the lines of its `run`, `more` further methods."""
        folder = self.experiments / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "experiment.toml").write_text(TOML.format(bytes=int(room_bytes)))
        (folder / "experiment.py").write_text(
            CODE + "".join(f"        {line}\n" for line in body.strip().splitlines()) + more)

    def begin(self, *words) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-B", "-m", "cheetah_lab", "--runs",
                                 str(self.runs), *map(str, words)], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def call(self, *words) -> tuple:
        """Runs the lab to its end; returns its exit status and output."""
        process = self.begin(*words)
        output = process.communicate(timeout=WAIT_SECONDS_MAX)[0]
        return process.returncode, output

    def run(self, *words, engines=("cheetah", "innodb-dynamic"), repeats: int = 2) -> tuple:
        return self.call(*run_words(*words, engines=engines, repeats=repeats))

    def lines(self, name: str) -> list:
        """Returns the lines of trials.jsonl unparsed."""
        place = self.runs / name / "trials.jsonl"
        return place.read_bytes().splitlines(keepends=True) if place.exists() else []

    def trials(self, name: str) -> list:
        return [json.loads(line) for line in self.lines(name)]

    def about(self, name: str) -> dict:
        return json.loads((self.runs / name / "run.json").read_text())


def run_words(*words, engines=("cheetah", "innodb-dynamic"), repeats: int = 2) -> list:
    """Returns the command line of a tiny run."""
    return ["run", "--scale", 0.02, "--repeats", repeats,
            *(word for key in engines for word in ("--engine", key)), *words]


def until(true, what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not true():
        assert time.monotonic() < deadline, f"waited {WAIT_SECONDS_MAX} s for {what}"
        time.sleep(0.01)


def children(pid: int) -> list:
    """Returns the process IDs of a process's children; its threads may end meanwhile."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, file.read_text().split())
    return found


def stop(process: subprocess.Popen, number: int = signal.SIGKILL) -> None:
    process.send_signal(number)
    process.communicate(timeout=WAIT_SECONDS_MAX)


needs_server = pytest.mark.skipif(not SERVER.is_dir() or not PLUGIN.exists(),
                                  reason="no server or no plugin is built here: make build")
