"""`make soak HOURS=n SEED=s JOBS=j`: runs rounds of existing tests, drawn at random with their
seeds, j at a time, until their times add up to n hours.

The seed determines the order of the rounds and the seeds of their tests. A round that has begun is
finished. The first failure ends the soak and prints the command that repeats its round; servers'
folders stay. The ledger has a line for each round.

A soak that was stopped continues with the same SEED: the ledgers' rounds of that seed and engine
count with their time. A round that was interrupted runs again. A failed round runs again at another
commit. Rounds of another engine, or of an engine that is not a commit's, do not count."""

import argparse
import random
import shlex
import sys
import threading
import time
from collections import Counter
from concurrent import futures
from pathlib import Path

from . import server, stuck, testall
from .build import commit_of_project, engine_of_project
from .paths import PROJECT, VAR, show
from .say import Failure

LEDGER, LOGS = VAR / "soak.tsv", VAR / "soak"
# Lines of other machines' ledgers, added by hand.
LANDED = PROJECT / "docs/developers/soak.tsv"
HEAD = ["date", "commit", "engine", "seed", "round", "passed", "skipped", "seconds", "result",
        "command"]
SECONDS_MAX = 1800   # per round; several times the longest duration
SEED_MAX = 2**31

running = set()   # processes of rounds


class Scenario:
    """One kind of round: the arguments of its tool, and its weight in the draw."""

    def __init__(self, name: str, weight: int, tool: list, *words: str):
        self.name, self.weight, self.words = name, weight, [*tool, *words]

    def command(self, seed: int) -> list:
        return [*self.words, "--seed", str(seed)]


PYTEST, BESIDE_INNODB = ["tools/cheetah.py", "pytest"], ["tests/differential/run.py"]
TEST = "tests/server/test_{}.py".format
SCENARIOS = [
    Scenario("kills", 4, PYTEST, TEST("crash"), "--rounds", "8"),
    Scenario("kills beyond the cache", 2, PYTEST, TEST("transfers"), "--rounds", "16"),
    Scenario("kills in DDL", 3, PYTEST, TEST("ddl_kills"), "--rounds", "8"),
    Scenario("kills under TPC-C", 3, PYTEST, TEST("tpcc"), "--rounds", "4"),
    Scenario("kills in two-phase commits", 3, PYTEST, TEST("two_phase"), "--rounds", "20"),
    Scenario("kills and replicas of families", 2, PYTEST, TEST("graphs"), "--rounds", "4"),
    Scenario("kills of parents and children", 1, PYTEST, TEST("foreign_keys"), "--rounds", "8"),
    Scenario("indexes beside writers", 1, PYTEST, TEST("online_alter"), "--rounds", "8"),
    Scenario("replicas", 1, PYTEST, TEST("replication")),
    Scenario("backups", 3, PYTEST, TEST("backup_rounds"), "--rounds", "3"),
    Scenario("damage and salvage", 1, PYTEST, TEST("damage"), TEST("salvage")),
    Scenario("full disk", 1, PYTEST, TEST("full_disk")),
    Scenario("statements", 5, BESIDE_INNODB, "--statements", "20000"),
    Scenario("families", 3, BESIDE_INNODB, "--graphs", "--statements", "15000"),
    Scenario("full text", 2, BESIDE_INNODB, "--fulltext", "--statements", "2000"),
]


def main(arguments: list) -> int:
    """Runs the command; returns 1 if a round failed."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hours", type=float, required=True, help="of all rounds, added up")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the whole")
    parser.add_argument("--jobs", type=int, default=1, help="rounds at a time")
    choice = parser.parse_args(arguments)
    if choice.hours <= 0:
        raise Failure("HOURS is a number above 0, such as 8 or 0.5")
    if choice.jobs <= 0:
        raise Failure("JOBS is a number above 0")
    return soak(choice.hours, choice.seed, run, choice.jobs)


def drawn(seed: int):
    """Yields the rounds of a seed endlessly: scenarios, each with its own seed."""
    rng = random.Random(seed)
    weights = [scenario.weight for scenario in SCENARIOS]
    while True:
        yield rng.choices(SCENARIOS, weights)[0], rng.randrange(1, SEED_MAX)


class Soak:
    """The rounds of a seed and their results so far. Several threads use it."""

    def __init__(self, hours: float, seed: int):
        self.seconds_max, self.seed = hours * 3600, seed
        self.commit, self.engine = commit_of_project(), engine_of_project()
        self.finished = rounds_of(self.commit, self.engine, seed)
        self.kinds, self.passed, self.skipped, self.seconds = Counter(), 0, 0, 0.0
        self.failures, self.is_stopped = [], False
        self._todo, self._began = enumerate(drawn(seed), 1), {}
        self._lock = threading.Lock()
        last = max(self.finished, default=0)
        for number, (scenario, _) in zip(range(1, last + 1), drawn(seed)):
            if number in self.finished:
                self._add(scenario.name, *self.finished[number])

    def work(self, run_round) -> None:
        while (todo := self._begin()):
            self._end(*todo, *run_round(todo[0], todo[2]))

    def _begin(self):
        """Returns the next round that the ledgers lack (number, name, command), or None."""
        with self._lock:
            for number, (scenario, seed) in self._todo:
                if number in self.finished:
                    continue
                now = time.monotonic()
                spent = self.seconds + sum(now - began for began in self._began.values())
                if spent >= self.seconds_max or self.failures or self.is_stopped:
                    return None
                self._began[number] = now
                return number, scenario.name, scenario.command(seed)
        raise AssertionError("a seed has rounds without an end")

    def _end(self, number: int, name: str, command: list, ok: bool, good: int, left_out: int):
        """Records a round that ended by itself."""
        with self._lock:
            if self.is_stopped:
                return
            seconds = time.monotonic() - self._began.pop(number)
            result = "failed" if not ok else "good" if good else "skipped"
            note(self.commit, self.engine, self.seed, number, good, left_out, round(seconds),
                 result, shlex.join(command))
            print(f"{number:>4} {name:<32} {result} in {seconds:.0f} s  {good} passed"
                  + (f", {left_out} skipped" if left_out else ""), flush=True)
            self._add(name, good if ok else 0, left_out, seconds)
            if not ok:
                self.passed += good
                self.failures.append(f"again with: python3 {shlex.join(command)}   "
                                     f"(log: {show(log_of(number))})")

    def _add(self, name: str, good: int, left_out: int, seconds: float) -> None:
        self.kinds[name] += bool(good)
        self.passed, self.skipped = self.passed + good, self.skipped + left_out
        self.seconds += seconds


def soak(hours: float, seed: int, run_round, jobs: int = 1) -> int:
    """Runs rounds, `jobs` at a time, until the time is up or one fails; returns the exit status."""
    whole = Soak(hours, seed)
    if whole.finished:
        print(f"goes on: {len(whole.finished)} rounds of engine {whole.engine} are done",
              flush=True)
    with futures.ThreadPoolExecutor(jobs) as pool:
        workers = [pool.submit(whole.work, run_round) for _ in range(jobs)]
        try:
            for worker in futures.wait(workers, return_when=futures.FIRST_EXCEPTION).done:
                worker.result()
        except BaseException:   # also on Ctrl-C
            whole.is_stopped = True
            while not all(worker.done() for worker in workers):
                for process in list(running):
                    stuck.stop(process)
                time.sleep(0.1)
            raise
    print(", ".join(f"{name} {count}" for name, count in whole.kinds.most_common()))
    for failure in whole.failures:
        print(failure)
    print(f"soak: {whole.kinds.total()} rounds of engine {whole.engine} at {whole.commit} "
          f"from seed {seed} in {whole.seconds / 3600:.2f} hours: {whole.passed} tests passed, "
          f"{len(whole.failures)} rounds failed, {whole.skipped} tests skipped")
    return 1 if whole.failures or not whole.passed else 0


def run(number: int, command: list) -> tuple:
    """Runs a round; returns whether it passed, and how many tests passed and were skipped. A round
    that takes too long is ended, and its log describes its processes."""
    LOGS.mkdir(parents=True, exist_ok=True)
    step = testall.Step(f"round {number}", [sys.executable, "-B", *command])
    one = testall.Running(step, SECONDS_MAX, log_of(number), {server.KEEP: "1"})
    running.add(one.process)
    try:
        while not one.is_over():
            time.sleep(testall.POLL_SECONDS)
    finally:
        running.remove(one.process)
    ok = one.process.returncode == 0
    passed, _, skipped = testall.counts(one.log.read_text(errors="replace"), one.report, ok)
    return ok, passed, skipped


def log_of(number: int):
    """Returns the path of a round's log; the log of an earlier soak is overwritten."""
    return LOGS / f"{number:04}.log"


def rounds_of(commit: str, engine: str, seed: int) -> dict:
    """Returns the ledgers' rounds of a soak by number: tests passed and skipped, seconds. The last
    line counts, except a failure elsewhere; one at this commit raises Failure."""
    rounds = {}
    for ledger in filter(Path.exists, (LANDED, LEDGER)):
        for line in ledger.read_text(encoding="utf-8").splitlines():
            row = line.split("\t")
            if len(row) != len(HEAD):
                raise Failure(f"{show(ledger)}: a line has {len(row)} cells, not {len(HEAD)}: "
                              f"{line[:80]}. Mend it, or remove the file")
            if row[2:4] == [engine, str(seed)] and not engine.endswith("+"):
                rounds[int(row[4])] = row
    for number, row in rounds.items():
        if row[8] == "failed" and row[1] == commit:
            raise Failure(f"{show(LEDGER)}: round {number} of SEED={seed} failed at {commit}; "
                          "mend it, or take another SEED")
    return {number: tuple(map(int, row[5:8])) for number, row in rounds.items()
            if row[8] != "failed"}


def note(*cells) -> None:
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        for row in ([HEAD] if ledger.tell() == 0 else []) + [[date, *cells]]:
            ledger.write("\t".join(map(str, row)) + "\n")
