"""The checker finds each anomaly planted into the engine, and none without a planted bug.

The crate's test target `histories` plays random transactions on the library, mostly in one thread,
in an order that the seed determines. Like all tests of the crate it is compiled with the points at
which a bug can be planted (crates/cheetah/src/base/planted.rs); no server is involved. A bug counts
as found when the checker names an anomaly, not when the engine returns an error. `--rounds` is the
number of seeds after which a bug counts as not found."""

import functools
import json
import os
import subprocess

import pytest
from checker import check
from cheetah_tools.paths import PROJECT, TARGET
from history import History

ROUNDS = 8
TXNS = 300
RC, RR, SER = "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"
ALL = ",".join((RC, RR, SER))
SECONDS_MAX = 60   # a history takes some tenths of a second
# Bug -> (model, levels, snapshot isolation).
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
    "full text: look for rows of a snapshot among the newest": ("list", RR, False),
    "full text: keep the words of a row that goes": ("register", RC, False),
}
# These bugs need threads that wait. They run without secondary indexes, because with one every wait
# would end in an error: the statement would change an index entry that does not exist.
IN_THREADS = ("locks: do not look again after a wait",)
GOOD = [(model, levels, False) for model in ("list", "register") for levels in (RC, RR, SER, ALL)]
GOOD += [("list", RR, True), ("register", RR, True)]
WITH_WORDS = [("list", RR, False), ("list", ALL, False), ("register", ALL, False)]


class Played:
    def __init__(self, model: str, levels: str, snapshot_isolation: bool, seed: int, bug: str = "",
                 threads: bool = False, full_text: bool = False):
        words = [player(), "--model", model, "--levels", levels, "--seed", str(seed),
                 "--txns", str(TXNS)]
        words += ["--snapshot-isolation"] * snapshot_isolation + ["--threads"] * threads
        words += ["--bug", bug] if bug else []
        words += ["--words"] * (full_text or bug.startswith("full text:"))
        words += ["--threads", "--no-indexes"] if bug in IN_THREADS else []
        self.reached, self.problems, self.history = 0, [], None
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False,
                                  timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.failure = f"no end within {SECONDS_MAX} s"
            return
        self.failure = done.stderr.strip()
        if done.returncode == 0:
            read = json.loads(done.stdout)
            self.reached, self.failure = read["reached"], read["failure"]
            # After a failure the history has no final state, so the order of versions is unknown.
            self.history = History.of(read)
            self.problems = check(self.history) if read["final"] else []

    def text(self) -> str:
        names = ", ".join(sorted({problem.name for problem in self.problems}))
        return (names or "nothing") + (f" (error: {self.failure[:100]})" if self.failure else "")


@functools.cache
def player() -> str:
    """Builds the test program and returns its path."""
    words = ["cargo", "test", "--quiet", "-p", "cheetah", "--test", "histories", "--no-run",
             "--message-format=json"]
    done = subprocess.run(words, check=True, cwd=PROJECT, stdout=subprocess.PIPE,
                          env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    built = [json.loads(line) for line in done.stdout.splitlines()]
    return next(message["executable"] for message in built if message.get("executable"))


@pytest.mark.parametrize("kind, full_text",
                         [*((kind, False) for kind in GOOD),
                          *((kind, True) for kind in WITH_WORDS)],
                         ids=lambda part: (str(part) if isinstance(part, bool)
                                           else ", ".join(map(str, part))))
def test_nothing_is_found_where_none_is_planted(kind, full_text, rounds):
    for seed in range(rounds):
        played = Played(*kind, seed, threads=seed == 0, full_text=full_text)
        why = "\n    ".join([f"seed {seed}: {played.text()}", *map(str, played.problems[:5])])
        assert not played.problems and not played.failure, why


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug, rounds):
    seen = []
    for seed in range(1, rounds + 1):
        played = Played(*BUGS[bug], seed, bug)
        if played.problems and played.reached:
            return
        seen.append(f"seed {seed}: {played.text()}, met {played.reached} times")
    pytest.fail("; ".join(seen))
