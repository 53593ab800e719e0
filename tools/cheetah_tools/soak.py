"""`make soak HOURS=n SEED=s`: rounds of tests that exist, drawn at random with their seeds, one
after the other until the time is up.

The seed decides which rounds follow each other, and the seeds of their tests. A round that has
begun is finished. The first failure ends the soak and prints the command that repeats its round;
servers' folders stay. The ledger has a line for each round.

A soak that was stopped goes on with the same SEED: the rounds that the ledgers have of that seed
and engine count with their time. One that was stopped in the middle is run again; so is one that
failed, once something but the engine has been mended. Of another engine nothing counts.
"""

import argparse
import itertools
import os
import random
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from . import stuck, testall
from .build import commit_of_project, engine_of_project
from .paths import PROJECT, TARGET, VAR, show
from .say import Failure

LEDGER, LOGS = VAR / "soak.tsv", VAR / "soak"
LANDED = PROJECT / "docs/soak.tsv"   # what ledgers of other machines had; lines are added by hand
HEAD = ["date", "commit", "engine", "seed", "round", "passed", "skipped", "seconds", "result", "command"]
SECONDS_MAX = 1800   # of a round: several times what the longest one takes
SEED_MAX = 2**31


class Scenario:
    """One kind of round: `words` after its tool, and how often it is drawn."""

    def __init__(self, name: str, weight: int, tool: list, *words: str):
        self.name, self.weight, self.words = name, weight, [*tool, *words]

    def command(self, seed: int) -> list:
        """What runs it with a seed."""
        return [*self.words, "--seed", str(seed)]


PYTEST, BESIDE_INNODB = ["tools/cheetah.py", "pytest"], ["tests/differential/run.py"]
SERVER = "tests/server/test_{}.py"
SCENARIOS = [
    Scenario("kills", 4, PYTEST, SERVER.format("crash"), "--rounds", "8"),
    Scenario("kills beyond the cache", 2, PYTEST, SERVER.format("transfers"), "--rounds", "16"),
    Scenario("kills in DDL", 3, PYTEST, SERVER.format("ddl_kills"), "--rounds", "8"),
    Scenario("kills under TPC-C", 3, PYTEST, SERVER.format("tpcc"), "--rounds", "4"),
    Scenario("kills in two-phase commits", 3, PYTEST, SERVER.format("two_phase"), "--rounds", "20"),
    Scenario("kills and replicas of families", 2, PYTEST, SERVER.format("graphs"), "--rounds", "4"),
    Scenario("kills of parents and children", 1, PYTEST, SERVER.format("foreign_keys"), "--rounds",
             "8"),
    Scenario("indexes beside writers", 1, PYTEST, SERVER.format("online_alter"), "--rounds", "8"),
    Scenario("replicas", 1, PYTEST, SERVER.format("replication")),
    Scenario("backups", 3, PYTEST, SERVER.format("backup_rounds"), "--rounds", "3"),
    Scenario("damage and salvage", 1, PYTEST, SERVER.format("damage"), SERVER.format("salvage")),
    Scenario("full disk", 1, PYTEST, SERVER.format("full_disk")),
    Scenario("statements", 5, BESIDE_INNODB, "--statements", "20000"),
    Scenario("families", 3, BESIDE_INNODB, "--graphs", "--statements", "15000"),
    Scenario("full text", 2, BESIDE_INNODB, "--fulltext", "--statements", "2000"),
]


def main(arguments: list) -> int:
    """The command; exit status 1 when a round failed."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hours", type=float, required=True, help="begin no round after them")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the whole")
    choice = parser.parse_args(arguments)
    if choice.hours <= 0:
        raise Failure("HOURS is a number above 0, such as 8 or 0.5")
    return soak(choice.hours, choice.seed, run)


def drawn(seed: int):
    """The rounds of a seed, without an end: scenarios, each with a seed of its own."""
    rng = random.Random(seed)
    weights = [scenario.weight for scenario in SCENARIOS]
    while True:
        yield rng.choices(SCENARIOS, weights)[0], rng.randrange(1, SEED_MAX)


def soak(hours: float, seed: int, run_round) -> int:
    """Run rounds until the time is up or one has failed; the exit status."""
    commit, engine = commit_of_project(), engine_of_project()
    kinds, passed, skipped, spent, failure = Counter(), 0, 0, 0, ""
    finished = rounds_of(commit, engine, seed)
    if finished:
        print(f"goes on after {len(finished)} rounds of engine {engine}", flush=True)
    begun = time.monotonic()
    for number, (scenario, round_seed) in enumerate(drawn(seed), 1):
        if number <= len(finished):
            good, left_out, seconds = finished[number - 1]
            kinds[scenario.name] += bool(good)
            passed, skipped, spent = passed + good, skipped + left_out, spent + seconds
            continue
        if spent + time.monotonic() - begun >= hours * 3600 or failure:
            break
        command, began = scenario.command(round_seed), time.monotonic()
        ok, good, left_out = run_round(number, command)
        seconds = round(time.monotonic() - began)
        result = "failed" if not ok else "good" if good else "skipped"
        note(commit, engine, seed, number, good, left_out, seconds, result, shlex.join(command))
        print(f"{number:>4} {scenario.name:<32} {result} in {seconds} s  {good} passed"
              + (f", {left_out} skipped" if left_out else ""), flush=True)
        kinds[scenario.name] += bool(ok and good)
        passed, skipped = passed + good, skipped + left_out
        if not ok:
            failure = f"again with: python3 {shlex.join(command)}   (log: {show(log_of(number))})"
    print(", ".join(f"{name} {count}" for name, count in kinds.most_common()))
    print(failure, end="\n" if failure else "")
    print(f"soak: {kinds.total()} rounds of engine {engine} at {commit} from seed {seed} in "
          f"{(spent + time.monotonic() - begun) / 3600:.2f} hours: {passed} tests passed, "
          f"{int(bool(failure))} rounds failed, {skipped} tests skipped")
    return 1 if failure or not passed else 0


def run(number: int, command: list) -> tuple:
    """Run a round; whether it was good, and how many tests passed and were skipped. One that takes
    too long is ended, and its log says what its processes were at."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = log_of(number)
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)
    settings = {"CARGO_TARGET_DIR": str(TARGET),
                "PYTEST_ADDOPTS": "--junitxml=" + shlex.quote(str(report))}
    with open(log, "wb") as out:
        process = subprocess.Popen([sys.executable, "-B", *command], cwd=PROJECT,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, **settings})
        try:
            process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            out.write(f"\nended after {SECONDS_MAX} s; its processes then:\n".encode()
                      + stuck.describe(process.pid).encode())
            stuck.stop(process)
        except BaseException:   # Ctrl-C, too
            stuck.stop(process)
            raise
    ok = process.returncode == 0
    passed, _, skipped = testall.counts(log.read_text(errors="replace"), report, ok)
    return ok, passed, skipped


def log_of(number: int):
    """Where a round's output goes; that of an earlier soak is overwritten."""
    return LOGS / f"{number:04}.log"


def rounds_of(commit: str, engine: str, seed: int) -> list:
    """The first rounds that the ledgers have of a soak, in their order: tests that passed, tests
    that were skipped, seconds. The last line of a round counts."""
    rounds = {}
    for ledger in filter(Path.exists, (LANDED, LEDGER)):
        for line in ledger.read_text(encoding="utf-8").splitlines():
            row = line.split("\t")
            if len(row) == len(HEAD) and row[2:4] == [engine, str(seed)]:
                rounds[int(row[4])] = row
    found = []
    for number in itertools.takewhile(rounds.__contains__, itertools.count(1)):
        row = rounds[number]
        if row[8] == "failed":
            if row[1] == commit:
                raise Failure(f"{show(LEDGER)}: round {number} of SEED={seed} failed at {commit}; "
                              "mend it, or take another SEED")
            break
        found.append(tuple(map(int, row[5:8])))
    return found


def note(*cells) -> None:
    """Append to the ledger."""
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    is_new = not LEDGER.exists()
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        if is_new:
            ledger.write("\t".join(HEAD) + "\n")
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        ledger.write("\t".join(map(str, (date, *cells))) + "\n")
