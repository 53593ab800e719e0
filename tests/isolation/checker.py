#!/usr/bin/env python3
"""Checks histories of list appends and registers for what the isolation level of each transaction
forbids.

The order of versions. A list tells it: every append is unique, and the list at the end is their
order (Kingsbury and Alvaro, "Elle", VLDB 2020). Registers have unique values; their order follows
from the writers' locks: the answer to a write lies inside the time for which its transaction held
the row, and these times must not overlap.

The graph. Nodes are *events*: the end of a transaction (C), the moment of a snapshot (S), a locking
read of a row (L), a write (W). Edges say "earlier", and each follows from what was seen:
    ww  C(writer of version i) before C(writer of version i + 1), and before that one's W
    wr  C(writer of the version read) before S, or L
    rw  S, or L, before C(writer of the next version); as locks are held to the end, also C(reader)
        before that
    po  events of a transaction before its C
    rt  what was answered before something was sent (real time)
A cycle is what no engine can have done that keeps the promises of the levels, which are
    READ COMMITTED    every statement reads from one snapshot of its own, taken while it runs (PL-2
                      of Adya, and more)
    REPEATABLE READ   all consistent reads are from one snapshot, taken at the first (or at START
                      TRANSACTION WITH CONSISTENT
                      SNAPSHOT); writes and locking reads go to the newest version, so lost updates,
                      write skew and read skew between a read and a write are *allowed*, as in
                      InnoDB ("snapshot reads": Adya's PL-2+ for reads). With snapshot isolation, ww
                      and wr edges of writes and locking reads also lead to S: first committer wins,
                      PL-SI with real time. Locking reads of a secondary index alone are left out:
                      InnoDB does not look at the row and so does not notice that it has changed
    SERIALIZABLE      reads lock, absent rows too: PL-3 with real time (strict)
    READ UNCOMMITTED  checked as READ COMMITTED, unless the engine reads dirty; then its writes only
Cycles get the name of the anomaly that they are: G0 (ww), G1c (ww and wr), G-single (one rw; "lost
update" when it is two transactions and one key), G2-item (more); "-realtime" when only the clock
closes them.

Searches in a full-text index. A row's words are those of its version: a row that is found is read
like any other, and one that is not has been read without the value that was looked for. Who locks
what he finds does not lock what he does not find, except at SERIALIZABLE.

Without the graph: a row that is found by a word that it does not have ("words"); aborted read
(G1a), intermediate read (G1b), dirty write, lost and duplicate appends, order of a list that is
none, values from nowhere, and internal consistency: a transaction sees its own writes, and after
ROLLBACK TO SAVEPOINT does not. Only a key that the transaction has written may show more than its
snapshot did.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from graph import Graph  # noqa: E402
from history import ABORTED, COMMITTED, History, LOCKING, READ, SNAPSHOT, WRITE  # noqa: E402
from versions import ListVersions, own_writes_at, RegisterVersions  # noqa: E402

REPEATABLE, SERIALIZABLE, COMMITTED_READS, UNCOMMITTED = (
    "REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED", "READ UNCOMMITTED")
PROBLEMS_MAX = 20


class Problem:
    """An anomaly: its name, and a sentence."""

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text

    def __str__(self):
        return f"{self.name}: {self.text}"


def check(history: History) -> list:
    """All problems, the direct ones first."""
    versions = (ListVersions if history.model == "list" else RegisterVersions)(history)
    events = Events(history, versions)
    return [Problem(*found) for found in versions.problems] + events.cycles()


class Events:
    """The graph of one history."""

    def __init__(self, history: History, versions):
        self.history, self.versions = history, versions
        self.graph, self.times = Graph(), []
        self.ends = {txn.number: self.event(("C", txn), *txn.end) for txn in history.txns}
        self.snapshots, self.taken = {}, {}
        for txn in history.txns:
            self.add_reads(txn)
        for txn in history.txns:
            self.add_writes(txn)
        self.add_version_order()

    def event(self, label, sent: int, answered: int) -> int:
        """A node that happened between two times."""
        node = self.graph.node(label)
        self.times.append((node, sent, answered))
        return node

    def add_reads(self, txn) -> None:
        """Snapshots and locking reads of a transaction, with their wr and rw edges."""
        end = self.ends[txn.number]
        snapshot = None
        for place, op in enumerate(txn.ops):
            if op.kind == SNAPSHOT:
                snapshot = self.snapshot(txn, op)
            elif op.kind in (READ, LOCKING):
                locks = op.kind == LOCKING or (txn.level == SERIALIZABLE and not txn.autocommit)
                if not locks and txn.level == UNCOMMITTED and self.history.dirty_reads:
                    continue
                if not locks and (snapshot is None or txn.level not in (REPEATABLE, SERIALIZABLE)):
                    snapshot = self.snapshot(txn, op)
                for key in op.seen:
                    if not own_writes_at(txn, place, key):
                        self.add_read(txn, op, key, snapshot, locks, end)
                for key, value in op.words or ():
                    if key not in op.seen and not own_writes_at(txn, place, key):
                        self.add_missing(txn, op, key, value, snapshot, locks)

    def snapshot(self, txn, op) -> int:
        """A new snapshot event."""
        node = self.event(("S", txn), op.sent, op.answered)
        self.graph.edge(node, self.ends[txn.number], "po")
        self.taken[node] = (op.sent, op.answered)
        self.snapshots.setdefault(txn.number, []).append(node)
        return node

    def add_read(self, txn, op, key, snapshot, locks: bool, end: int) -> None:
        """One key of one read."""
        during = (op.sent, op.answered) if locks else self.taken[snapshot]
        position = self.versions.position(txn, op, key, during)
        if position is None:
            return
        node = snapshot
        if locks:
            node = self.event(("L", txn), op.sent, op.answered)
            self.graph.edge(node, end, "po")
        before, after = self.versions.writers_around(key, position, txn)
        if before is not None and before is not txn:
            self.graph.edge(self.ends[before.number], node, "wr", key)
            self.first_committer_wins(txn, before, key, "wr", locks and not op.covered)
        if after is not None and after is not txn:
            self.graph.edge(node, self.ends[after.number], "rw", key)
            ranges = txn.level == SERIALIZABLE or (txn.level == REPEATABLE and op.words is None)
            if locks and (ranges or self.versions.exists(key, position)):
                self.graph.edge(end, self.ends[after.number], "rw", key)

    def add_missing(self, txn, op, key, value, snapshot, locks: bool) -> None:
        """A value that a search has not found: who wrote it came later."""
        during = (op.sent, op.answered) if locks else self.taken[snapshot]
        after = self.versions.writer_of_missing(txn, key, value, during)
        if after is None or after is txn:
            return
        node = snapshot
        if locks:
            node = self.event(("L", txn), op.sent, op.answered)
            self.graph.edge(node, self.ends[txn.number], "po")
            if txn.level == SERIALIZABLE:
                self.graph.edge(self.ends[txn.number], self.ends[after.number], "rw", key)
        self.graph.edge(node, self.ends[after.number], "rw", key)

    def first_committer_wins(self, txn, before, key, kind: str, locks: bool = True) -> None:
        """Under snapshot isolation, what is written or locked must be in the snapshot."""
        if (locks and self.history.snapshot_isolation and txn.level == REPEATABLE
                and not txn.autocommit):
            for snapshot in self.snapshots.get(txn.number, [])[:1]:
                self.graph.edge(self.ends[before.number], snapshot, kind, key)

    def add_writes(self, txn) -> None:
        """W events: the first write of each key comes after the end of the writer before."""
        done = set()
        for place, op in enumerate(txn.ops):
            if op.kind != WRITE or op.undone or op.key in done or txn.status != COMMITTED:
                continue
            done.add(op.key)
            before = self.versions.writer_before(txn, op.key)
            node = self.event(("W", txn), op.sent, op.answered)
            self.graph.edge(node, self.ends[txn.number], "po")
            if before is not None:
                self.graph.edge(self.ends[before.number], node, "ww", op.key)
                self.first_committer_wins(txn, before, op.key, "ww")

    def add_version_order(self) -> None:
        """ww edges."""
        for key, writers in self.versions.writer_orders():
            for before, after in zip(writers, writers[1:]):
                self.graph.edge(self.ends[before.number], self.ends[after.number], "ww", key)

    def add_real_time(self) -> None:
        """A chain of instants: what was answered before one precedes what was sent after it."""
        moments = sorted({moment for _, sent, answered in self.times
                          for moment in (sent, answered)})
        instants = {moment: self.graph.node(("time", moment)) for moment in moments}
        for earlier, later in zip(moments, moments[1:]):
            self.graph.edge(instants[earlier], instants[later], "rt")
        for node, sent, answered in self.times:
            self.graph.edge(instants[sent], node, "rt")
            # An event lasts until its answer: only instants after it are later.
            self.graph.edge(node, instants[answered], "rt")

    def cycles(self) -> list:
        """Cycles without the clock, then those that only the clock closes."""
        found = self._cycles("")
        if not found:
            self.add_real_time()
            found = self._cycles("-realtime")
        return found

    def _cycles(self, suffix: str) -> list:
        problems = []
        for component in self.graph.components():
            starts = sorted(node for node in component if self.graph.labels[node][0] != "time")[:50]
            cycle = self.graph.shortest_cycle(component, starts)
            problems.append(Problem(self.name_of(cycle) + suffix, self.explain(cycle)))
            if len(problems) >= PROBLEMS_MAX:
                break
        return problems

    def edges_of(self, cycle: list) -> list:
        """(source, target, kind, why) along a cycle."""
        return [(source, target, *self.graph.out[source][target])
                for source, target in zip(cycle, cycle[1:] + cycle[:1])]

    def name_of(self, cycle: list) -> str:
        """Adya's name."""
        edges = [edge for edge in self.edges_of(cycle) if edge[2] in ("ww", "wr", "rw")]
        kinds = [edge[2] for edge in edges]
        if kinds.count("rw") == 0:
            return "G1c" if "wr" in kinds else "G0"
        if kinds.count("rw") > 1:
            return "G2-item"
        keys = {edge[3] for edge in edges}
        return ("lost update"
                if "ww" in kinds and "wr" not in kinds and len(keys) == 1 and len(edges) == 2
                else "G-single")

    def explain(self, cycle: list) -> str:
        """The cycle in words; instants in a row are left out."""
        parts = []
        for source, target, kind, why in self.edges_of(cycle):
            if (kind == "rt" and self.graph.labels[source][0] == "time"
                    and self.graph.labels[target][0] == "time"):
                continue
            parts.append(f"{self.shown(source)} -{kind}"
                         f"{'' if why is None else ' key ' + str(why)}-> {self.shown(target)}")
        return "; ".join(parts)

    def shown(self, node: int) -> str:
        """An event's name."""
        what, of = self.graph.labels[node]
        if what == "time":
            return f"time {of}"
        return f"{what}({of.name()}{'' if of.status != ABORTED else ', rolled back'}, {of.level})"


def main(arguments: list) -> int:
    """Check files of kept histories."""
    wrong = 0
    for name in arguments:
        history = History.load(Path(name))
        problems = check(history)
        wrong += bool(problems)
        print(f"{name}: {len(history.txns)} transactions on {history.engine}, "
              f"{len(problems)} problems")
        for problem in problems[:PROBLEMS_MAX]:
            print(f"  {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
