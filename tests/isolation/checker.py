#!/usr/bin/env python3
"""Checks recorded histories against the promises of each transaction's isolation level.

A history operates on lists (every write appends a value) or on registers (every write replaces the
value).

The order of versions. Every appended value is unique, so the final list gives the order of its
appends (Kingsbury and Alvaro, "Elle", VLDB 2020). Register values are unique too; their order
follows from the writers' locks: a write is answered while its transaction holds the row lock, and
two transactions must not hold the lock of one row at the same time.

The graph. Nodes are *events*: the end of a transaction (C), the taking of a snapshot (S), a locking
read of a row (L), a write (W). An edge means "earlier" and follows from an observation:
    ww  C(writer of version i) before C(writer of version i + 1) and before its W
    wr  C(writer of the version read) before S or L
    rw  S or L before C(writer of the next version); because locks are held to the end, also
        C(reader) before C(writer of the next version)
    po  the events of a transaction before its C
    rt  an event that was answered before another one was sent (real time)
No engine that keeps the promises of the levels can produce a cycle. The promises are:
    READ COMMITTED    Every statement reads from its own snapshot, taken while the statement runs
                      (stronger than Adya's PL-2).
    REPEATABLE READ   All consistent reads use one snapshot, taken at the first read or at START
                      TRANSACTION WITH CONSISTENT SNAPSHOT. Writes and locking reads use the
                      newest version, so lost updates, write skew, and read skew between a read
                      and a write are *allowed*, as in InnoDB ("snapshot reads": Adya's PL-2+ for
                      reads). With snapshot isolation, the ww and wr edges of writes and locking
                      reads also lead to S: first committer wins, PL-SI with real time. Locking
                      reads of a secondary index alone are exempt: InnoDB does not read the row
                      and so does not notice that the row has changed.
    SERIALIZABLE      Reads lock rows, including absent rows: PL-3 with real time (strict).
    READ UNCOMMITTED  Checked like READ COMMITTED. If the engine reads dirty data, only writes
                      and locking reads are checked.
A cycle is reported under the name of its anomaly: G0 (ww), G1c (ww and wr), G-single (one rw; "lost
update" if it has two transactions and one key), G2-item (several rw). The suffix "-realtime" means
that the cycle needs real-time edges.

Searches in a full-text index. A row's words belong to its version. A row that a search finds counts
as read. A row that it does not find counts as read without the value that was searched for. A
locking search does not lock the rows that it does not find, except at SERIALIZABLE.

Checked without the graph: a row found by a word that it does not contain ("words"), aborted read
(G1a), intermediate read (G1b), dirty write, lost and duplicate appends, lists whose order
contradicts the final list, values that no transaction wrote, and internal consistency: a
transaction sees its own writes, and no longer sees them after ROLLBACK TO SAVEPOINT. Only a key
that the transaction wrote may show a newer version than its snapshot."""

import sys
from collections import namedtuple
from pathlib import Path

sys.dont_write_bytecode = True

from graph import Graph  # noqa: E402
from history import ABORTED, COMMITTED, History, LOCKING, READ, SNAPSHOT, WRITE  # noqa: E402
from versions import ListVersions, own_writes_at, RegisterVersions  # noqa: E402

REPEATABLE, SERIALIZABLE, UNCOMMITTED = "REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"
PROBLEMS_MAX = 20


class Problem(namedtuple("Problem", "name text")):
    """An anomaly: its name and a sentence that describes it."""

    def __str__(self):
        return f"{self.name}: {self.text}"


def check(history: History) -> list:
    """Returns all problems; those found without the graph come first."""
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
        for key, writers in self.versions.writer_orders():   # the writers of successive versions
            for before, after in zip(writers, writers[1:]):
                self.graph.edge(self.ends[before.number], self.ends[after.number], "ww", key)

    def event(self, label, sent: int, answered: int) -> int:
        """Adds an event that happened between `sent` and `answered`; returns its node."""
        node = self.graph.node(label)
        self.times.append((node, sent, answered))
        return node

    def add_reads(self, txn) -> None:
        """Adds a transaction's snapshots and locking reads with their wr and rw edges."""
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
        node = self.event(("S", txn), op.sent, op.answered)
        self.graph.edge(node, self.ends[txn.number], "po")
        self.taken[node] = (op.sent, op.answered)
        self.snapshots.setdefault(txn.number, []).append(node)
        return node

    def lock(self, txn, op) -> int:
        node = self.event(("L", txn), op.sent, op.answered)
        self.graph.edge(node, self.ends[txn.number], "po")
        return node

    def add_read(self, txn, op, key, snapshot, locks: bool, end: int) -> None:
        """Adds the edges of one key of one read."""
        during = (op.sent, op.answered) if locks else self.taken[snapshot]
        position = self.versions.position(txn, op, key, during)
        if position is None:
            return
        node = self.lock(txn, op) if locks else snapshot
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
        """Adds the edges of a value that a search missed: its writer committed after the search."""
        during = (op.sent, op.answered) if locks else self.taken[snapshot]
        after = self.versions.writer_of_missing(txn, key, value, during)
        if after is None or after is txn:
            return
        node = self.lock(txn, op) if locks else snapshot
        if locks and txn.level == SERIALIZABLE:
            self.graph.edge(self.ends[txn.number], self.ends[after.number], "rw", key)
        self.graph.edge(node, self.ends[after.number], "rw", key)

    def first_committer_wins(self, txn, before, key, kind: str, locks: bool = True) -> None:
        """Under snapshot isolation, the snapshot has each version written over or locked."""
        if (locks and self.history.snapshot_isolation and txn.level == REPEATABLE
                and not txn.autocommit):
            for snapshot in self.snapshots.get(txn.number, [])[:1]:
                self.graph.edge(self.ends[before.number], snapshot, kind, key)

    def add_writes(self, txn) -> None:
        """Adds W events: the first write of each key follows the end of the previous writer."""
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

    def add_real_time(self) -> None:
        """Adds real-time edges through a chain of instants, from answers to later requests."""
        moments = sorted({moment for _, sent, answered in self.times
                          for moment in (sent, answered)})
        instants = {moment: self.graph.node(("time", moment)) for moment in moments}
        for earlier, later in zip(moments, moments[1:]):
            self.graph.edge(instants[earlier], instants[later], "rt")
        for node, sent, answered in self.times:
            self.graph.edge(instants[sent], node, "rt")
            # An event may happen as late as its answer, so only later instants are after the event.
            self.graph.edge(node, instants[answered], "rt")

    def cycles(self) -> list:
        """Returns the cycles without real-time edges; if there are none, the cycles with them."""
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
        """Returns (source, target, kind, why) for each edge of a cycle."""
        return [(source, target, *self.graph.out[source][target])
                for source, target in zip(cycle, cycle[1:] + cycle[:1])]

    def name_of(self, cycle: list) -> str:
        """Returns Adya's name for the cycle."""
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
        """Describes the cycle in words, without edges between two instants."""
        parts = []
        for source, target, kind, why in self.edges_of(cycle):
            if (kind == "rt" and self.graph.labels[source][0] == "time"
                    and self.graph.labels[target][0] == "time"):
                continue
            parts.append(f"{self.shown(source)} -{kind}"
                         f"{'' if why is None else ' key ' + str(why)}-> {self.shown(target)}")
        return "; ".join(parts)

    def shown(self, node: int) -> str:
        what, of = self.graph.labels[node]
        if what == "time":
            return f"time {of}"
        return f"{what}({of.name()}{'' if of.status != ABORTED else ', rolled back'}, {of.level})"


def main(arguments: list) -> int:
    """Checks files of saved histories; returns 1 if any of them has a problem."""
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
