#!/usr/bin/env python3
"""Anomalies planted into the engine itself, one at a time: the checker finds each, and nothing where none is planted.

The example `histories` of the crate plays random transactions on the library, mostly in one thread, in an order that a seed repeats. It is
built with the places where a bug can be planted (crates/cheetah/src/base/planted.rs), as the crate's tests are; no server takes part. A
bug counts as found when the checker names an anomaly, not when the engine ends in an error. `--all` says for every seed what was found.

    python3 tests/isolation/planted.py [--only NAME] [--seeds 8] [--txns 300] [--all]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
from cheetah_tools.paths import PROJECT, TARGET  # noqa: E402
from checker import check  # noqa: E402
from history import History  # noqa: E402

RC, RR, SER = "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"
ALL = ",".join((RC, RR, SER))
SECONDS_MAX = 60   # some tenths of a second is what it takes
PLAYER = TARGET / "debug" / "examples" / "histories"
# name -> (model, levels, with snapshot isolation).
BUGS = {
    "visible: forget the own transaction": ("list", RR, False),
    "visible: see open transactions": ("list", RC, False),
    "visible: see later commits": ("list", RR, False),
    "visible: do not ask the row of an entry": ("list", RR, False),
    "visible: ask the newest operation on an index": ("list", RR, False),
    "visible: go back one version only": ("list", RR, False),
    "visible: take a deleted version for a row": ("register", RR, False),
    "visible: do not look at delete marks": ("register", RC, False),
    "snapshot: keep it for the next statement": ("list", RC, False),
    "snapshot: keep it for the next transaction": ("list", RR, False),
    "snapshot: take one for each statement": ("list", RR, False),
    "snapshot: take one for each row": ("list", RC, False),
    "snapshot: take what has begun for decided": ("list", RC, False),
    "snapshot: keep the answers of the one before": ("list", RC, False),
    "snapshot: see one commit too many": ("list", RR, False),
    "snapshot: see one commit too few": ("list", RC, False),
    "snapshot isolation: do not look for changes": ("list", RR, True),
    "versions: publish a stamp with the next one": ("list", RC, False),
    "cursor: do not look back within a leaf": ("list", RR, False),
    "cursor: take the newest row of an entry": ("list", RR, False),
    "index: leave the entry that goes": ("list", RC, False),
    "serializable: read without locks": ("list", SER, False),
    "locks: share what is asked for exclusively": ("list", RR, False),
    "locks: let go of shared ones at once": ("list", RR, False),
    "locks: free them with the statement": ("list", RR, False),
    "locks: give back all requests for a row": ("list", RC, False),
    "locks: lock no ranges": ("register", SER, False),
    "scan: leave the gap before a record": ("register", SER, False),
    "scan: leave the gap behind the last record": ("register", SER, False),
    "scan: pass rows whose deletion is open": ("register", RC, False),
    "scan: take an open change for committed": ("list", RC, False),
    "rows: do not ask for ranges": ("register", SER, False),
    "rollback: leave the first change": ("list", RC, False),
    "savepoint: leave the first change": ("list", RC, False),
    "savepoint: roll back one change more": ("list", RC, False),
    "savepoint: let go of what is rolled back": ("list", RC, False),
    "commit: lose the last change": ("list", RC, False),
    "purge: do not look at snapshots": ("list", RR, False),
    "purge: overlook snapshots in the middle": ("register", RR, False),
    "purge: look under the mark at one version only": ("register", RR, False),
    "purge: take a later mark for its own": ("register", RR, False),
    "locks: do not look again after a wait": ("list", RC, False),
}
# These need clients that wait. With a secondary index each wait would end in an error: an entry that is not there is to be changed.
IN_THREADS = ("locks: do not look again after a wait",)
GOOD = [(model, levels, False) for model in ("list", "register") for levels in (RC, RR, SER, ALL)] + [("list", RR, True), ("register", RR, True)]


class Played:
    """A history, and what the checker says of it."""

    def __init__(self, model: str, levels: str, snapshot_isolation: bool, seed: int, txns: int, bug: str = "", threads: bool = False):
        words = [str(PLAYER), "--model", model, "--levels", levels, "--seed", str(seed), "--txns", str(txns)]
        words += ["--snapshot-isolation"] * snapshot_isolation + ["--threads"] * threads + (["--bug", bug] if bug else [])
        words += ["--threads", "--no-indexes"] if bug in IN_THREADS else []
        self.reached, self.problems = 0, []
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.failure = f"no end within {SECONDS_MAX} s"
            return
        self.failure = done.stderr.strip()
        if done.returncode == 0:
            read = json.loads(done.stdout)
            self.reached, self.failure = read["reached"], read["failure"]
            # Without the state at the end, of which an engine that has stopped tells nothing, there is no order of versions.
            self.problems = check(History.of(read)) if read["final"] else []

    def text(self) -> str:
        """In a few words."""
        names = ", ".join(sorted({problem.name for problem in self.problems}))
        return (names or "nothing") + (f" (error: {self.failure[:100]})" if self.failure else "")


def main(arguments: list) -> int:
    """The command; 1 when something planted was not found, or something was found that was not planted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="bugs whose name has this")
    parser.add_argument("--seeds", type=int, default=8, help="seeds after which a bug counts as not found")
    parser.add_argument("--txns", type=int, default=300)
    parser.add_argument("--all", action="store_true", help="play all seeds of each bug, and show what was found")
    choice = parser.parse_args(arguments)
    subprocess.run(["cargo", "build", "--quiet", "-p", "cheetah", "--example", "histories"], cwd=PROJECT, check=True,
                   env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    started, passed, failed = time.monotonic(), 0, 0
    for name, outcome in judge(choice):
        passed, failed = passed + (not outcome), failed + bool(outcome)
        if outcome:
            print(f"FAILED  {name}: {outcome}", flush=True)
    print(f"planted: {len(BUGS)} anomalies in {time.monotonic() - started:.0f} s")
    print(f"isolation: {passed} passed, {failed} failed")
    return 1 if failed else 0


def judge(choice):
    """(name, what is wrong with it or nothing)."""
    for kind in GOOD if not choice.only else []:
        for seed in range(choice.seeds):
            played = Played(*kind, seed, choice.txns, threads=seed == 0)
            wrong = played.problems or played.failure
            yield f"{', '.join(map(str, kind))}, seed {seed}", f"{played.text()}\n    " + "\n    ".join(map(str, played.problems[:5])) if wrong else ""
    for bug, kind in BUGS.items():
        if choice.only in bug:
            yield bug, look_for(bug, kind, choice)


def look_for(bug: str, kind: tuple, choice) -> str:
    """Play until the bug is found; what is wrong otherwise."""
    found, seen = "", []
    for seed in range(1, choice.seeds + 1):
        played = Played(*kind, seed, choice.txns, bug)
        seen.append(f"seed {seed}: {played.text()}, met {played.reached} times")
        if played.problems and played.reached:
            found = found or seen[-1]
            if not choice.all:
                break
    print(f"{bug}: " + ("; ".join(seen) if choice.all else found or "not found"), flush=True)
    return "" if found else f"not found: {'; '.join(seen)}"


if __name__ == "__main__":
    say.run_main(main)
