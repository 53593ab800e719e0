"""A small engine that behaves as the levels promise, except for one planted bug: what the checker
is tested with.

Versions with stamps, row locks, snapshots; clients are advanced one phase at a time (send, act,
answer) by a seed, so that statements overlap. A bug strikes with a probability each time it could.
"""

import random
from collections import defaultdict
from pathlib import Path

from history import ABORTED, COMMITTED, History, LOCKING, Op, READ, SNAPSHOT, Txn, WRITE
from plans import BACK, Planner, READ_STEP, SAVEPOINT, SNAPSHOT_STEP, WORDS, WRITE_STEP

PATIENCE = 12
# What can be planted: name -> (model, level, with snapshot isolation).
BUGS = {name: (model, level, isolation == "on") for name, model, level, isolation, _ in
        (line.split("\t") for line in
         Path(__file__).with_name("planted.tsv").read_text().splitlines()[1:])}


class Conflict(Exception):
    """The transaction is rolled back."""


class Wait(Exception):
    """The lock is not free yet."""


class Client:
    """One client's place in its plan."""

    def __init__(self, number: int):
        self.number, self.plan, self.txn = number, None, None
        self.place, self.phase, self.tried = 0, "send", 0
        self.sent, self.effect, self.saved = 0, None, 0


class Store:
    """Committed versions, locks, and what transactions have written."""

    def __init__(self, rng, bug: str, chance: float, snapshot_isolation: bool):
        self.rng, self.bug, self.chance, self.snapshot_isolation = (
            rng, bug, chance, snapshot_isolation)
        self.versions, self.stamp = {}, 0       # key -> [(stamp, value)]
        self.owners, self.readers = {}, {}      # key -> transaction, key -> set of transactions
        self.own, self.saved, self.snapshots, self.late = {}, {}, {}, []

    def strikes(self, *bugs: str) -> bool:
        """Whether the planted bug is one of these and strikes now."""
        seldom = self.bug.startswith(("savepoint", "words of own"))   # the occasion is rare enough
        return self.bug in bugs and (seldom or self.rng.random() < self.chance)

    def newest(self, key):
        """The newest committed version."""
        return self.versions.get(key, [(0, None)])[-1][1]

    def at(self, key, stamp: int):
        """The newest version that a snapshot sees."""
        return next((value for of, value in reversed(self.versions.get(key, []))
                     if of <= stamp), None)

    def lock(self, txn: int, key, exclusive: bool) -> None:
        """Wait unless the lock is free."""
        if self.owners.get(key, txn) != txn or (exclusive and self.readers.get(key, set()) - {txn}):
            raise Wait
        if exclusive:
            self.owners[key] = txn
        else:
            self.readers.setdefault(key, set()).add(txn)

    def unlock(self, txn: int, key) -> None:
        """Let go of one key."""
        if self.owners.get(key) == txn:
            del self.owners[key]
        self.readers.get(key, set()).discard(txn)

    def unlock_all(self, txn: int) -> None:
        """Let go."""
        for key in {*self.owners, *self.readers}:
            self.unlock(txn, key)

    def snapshot_of(self, txn: int, level: str) -> int:
        """The stamp for a consistent read."""
        if level == "READ COMMITTED" and self.bug != "statements share a snapshot":
            return max(self.stamp - 2, 0) if self.strikes("stale statement") else self.stamp
        if txn not in self.snapshots:
            self.snapshots[txn] = (max(self.stamp - 3, 0) if self.strikes("stale snapshot")
                                   else self.stamp)
        return self.snapshots[txn]

    def consistent(self, txn: int, level: str, key, stamp: int, via: str):
        """One key of a consistent read."""
        own = self.own.get(txn, {})
        if key in own and not self.strikes("own writes are not seen"):
            return own[key]
        if self.strikes("dirty read", "dirty read of a register"):
            for other, written in self.own.items():
                if other != txn and key in written:
                    return written[key]
        if self.strikes("no snapshot", "no snapshot of a register"):
            return self.newest(key)
        if self.at(key, stamp) is None and self.strikes("snapshot ignores inserts"):
            return self.newest(key)
        if via in ("group", "covered") and self.strikes("index lags"):
            return self.at(key, self.versions.get(key, [(0, None)])[-1][0] - 1)
        if via == "range" and self.strikes("row is missing"):
            return None
        return self.at(key, stamp)

    def read(self, txn: int, level: str, step, locks: bool) -> dict:
        """A statement that reads."""
        if not locks:
            stamp, seen = self.snapshot_of(txn, level), {}
            half = len(step.keys) // 2
            torn = self.strikes("torn statement") and stamp > 3
            for place, key in enumerate(step.keys):
                seen[key] = self.consistent(txn, level, key,
                                            stamp - 3 if torn and place < half else stamp, step.via)
            return seen
        exclusive = step.lock == "update"
        for key in step.keys:
            absent = self.newest(key) is None and key not in self.own.get(txn, {})
            if absent and self.bug.startswith("no gap locks"):
                continue
            self.lock(txn, key, exclusive)
            if ((self.bug == "share lock does not block" and not exclusive)
                    or (level == "READ COMMITTED" and absent)):
                self.unlock(txn, key) if key not in self.own.get(txn, {}) else None
        self.first_committer_wins(txn, step.keys)
        old = self.strikes("locking read is old") and txn in self.snapshots
        return {key: self.own.get(txn, {}).get(key, (self.at(key, self.snapshots[txn]) if old
                                                     else self.newest(key)))
                for key in step.keys}

    def search(self, txn: int, level: str, step, locks: bool) -> dict:
        """Rows that have one of the values that are looked for."""
        wanted, seen = defaultdict(set), {}
        for key, value in step.value:
            wanted[key].add(value)
        stamp = 0 if locks else self.snapshot_of(txn, level)
        for key, values in wanted.items():
            newest = self.own.get(txn, {}).get(key, self.newest(key))
            version = newest if locks else self.consistent(txn, level, key, stamp, step.via)
            is_found = bool(values & self.words_of(txn, key, version))
            if locks and (is_found or (level == "SERIALIZABLE"
                                       and self.bug != "words are not locked")):
                self.lock(txn, key, step.lock == "update")
            if is_found:
                seen[key] = version
        if locks:
            self.first_committer_wins(txn, seen)
        return seen

    def words_of(self, txn: int, key, version) -> set:
        """By which values a version of a row is found."""
        own = self.own.get(txn, {})
        if key in own:
            return set() if self.strikes("words of own rows are missing") else words(version)
        if self.strikes("words of the newest rows"):
            return words(self.newest(key))
        if self.strikes("words of the newest rows alone") and version != self.newest(key):
            return set()
        if self.strikes("words lag"):
            return words(self.at(key, self.versions.get(key, [(0, None)])[-1][0] - 1))
        if self.strikes("words of open transactions"):
            return set().union(words(version), *(words(other[key]) for other in self.own.values()
                                                 if key in other))
        return words(version)

    def write(self, txn: int, level: str, key, value, is_list: bool) -> None:
        """A write of one key."""
        if not self.strikes("no write lock", "no write lock on a register"):
            self.lock(txn, key, True)
        self.first_committer_wins(txn, [key])
        own = self.own.setdefault(txn, {})
        if self.bug == "snapshot moves after a write" and txn in self.snapshots:
            self.snapshots[txn] = self.stamp
        if not is_list:
            own[key] = value
        elif not self.strikes("dropped append"):
            base = own.get(key, self.newest(key))
            if key not in own and txn in self.snapshots and self.strikes("append to the snapshot"):
                base = self.at(key, self.snapshots[txn])
            own[key] = (base or ()) + (value,) * (2 if self.strikes("double append") else 1)
        if self.strikes("early release"):
            self.unlock(txn, key)

    def first_committer_wins(self, txn: int, keys) -> None:
        """Under snapshot isolation, a row changed since cannot be written or locked."""
        if (self.snapshot_isolation and txn in self.snapshots
                and not self.bug.startswith("first committer does not win")):
            if any(self.versions.get(key, [(0, None)])[-1][0] > self.snapshots[txn]
                   for key in keys):
                raise Conflict

    def savepoint(self, txn: int) -> None:
        """Remember."""
        self.saved[txn] = dict(self.own.get(txn, {}))

    def back(self, txn: int) -> None:
        """ROLLBACK TO."""
        if self.strikes("savepoint is forgotten"):
            return
        self.own[txn] = {} if self.strikes("savepoint takes all") else dict(self.saved[txn])

    def commit(self, txn: int) -> None:
        """Make visible, let go."""
        own = self.own.pop(txn, {})
        if own and not self.strikes("lost commit"):
            self.stamp += 1
            late = self.strikes("torn commit") and len(own) > 1
            for place, (key, value) in enumerate(own.items()):
                if (late and place) or self.strikes("late visibility"):
                    self.late.append([6, key, value, self.stamp])
                else:
                    self.versions.setdefault(key, []).append((self.stamp, value))
        self.forget(txn)

    def rollback(self, txn: int) -> None:
        """Forget, let go."""
        for key, value in self.own.pop(txn, {}).items():
            if self.strikes("rollback leaves a write"):
                self.stamp += 1
                self.versions.setdefault(key, []).append((self.stamp, value))
            elif self.strikes("rollback takes too much") and len(self.versions.get(key, [])) > 1:
                self.stamp += 1
                self.versions[key].append((self.stamp, self.versions[key][-2][1]))
        self.forget(txn)

    def forget(self, txn: int) -> None:
        """Locks, snapshot, savepoint."""
        self.unlock_all(txn)
        self.snapshots.pop(txn, None)
        self.saved.pop(txn, None)

    def tick(self, everything: bool = False) -> None:
        """What a late commit makes visible; `everything`: at the end."""
        for waiting in list(self.late):
            waiting[0] -= 1
            if waiting[0] <= 0 or everything:
                _, key, value, _ = waiting
                self.stamp += 1
                self.versions.setdefault(key, []).append((self.stamp, value))
                self.late.remove(waiting)


def words(version) -> set:
    """The elements of a list, or the value."""
    return set(version) if isinstance(version, tuple) else set() if version is None else {version}


class Simulation:
    """Clients on a store."""

    def __init__(self, seed, model: str, levels, bug: str = "", snapshot_isolation: bool = False,
                 txns: int = 500, clients: int = 6, chance: float = 0.4, more: str = ""):
        self.rng = random.Random(f"{seed}/{model}/{levels}")
        self.model, self.bug, self.left, self.snapshot_isolation = (
            model, bug, txns, snapshot_isolation)
        self.planner = Planner(f"{seed}/plans", model, levels,
                               more=WORDS if bug.startswith("words") else more)
        self.store = Store(self.rng, bug, chance, snapshot_isolation)
        self.clients, self.txns, self.now = [Client(n) for n in range(clients)], [], 0

    def run(self) -> History:
        """All transactions; their history."""
        active = list(self.clients)
        while active:
            client = self.rng.choice(active)
            self.store.tick()
            if client.plan is None:
                if self.left == 0:
                    active.remove(client)
                    continue
                self.begin(client)
            self.advance(client)
        self.store.tick(everything=True)
        while self.store.late:
            self.store.tick(everything=True)
        final = {key: self.store.newest(key) for key in self.planner.keys_used()}
        return History(self.model, self.txns, final, self.snapshot_isolation, "the simulator")

    def begin(self, client: Client) -> None:
        """A new transaction."""
        self.left -= 1
        client.plan, client.place = self.planner.plan(), 0
        client.txn = Txn(len(self.txns), client.number, client.plan.level,
                         autocommit=client.plan.autocommit)
        self.txns.append(client.txn)

    def clock(self) -> int:
        """The next moment."""
        self.now += 1
        return self.now

    def advance(self, client: Client) -> None:
        """One phase of one statement."""
        if client.phase == "send":
            client.sent, client.phase, client.tried = self.clock(), "act", 0
        elif client.phase == "act":
            self.act(client)
        else:
            client.phase = "send"
            client.effect(self.clock())

    def act(self, client: Client) -> None:
        """Let the statement happen; an autocommit statement ends its transaction with it."""
        steps, txn = client.plan.steps, client.txn
        try:
            if client.place < len(steps):
                client.effect = self.do(client, steps[client.place])
                if client.plan.autocommit:
                    self.store.forget(txn.number)
            else:
                (self.store.commit if client.plan.commits else self.store.rollback)(txn.number)
                client.effect = lambda at: self.end(
                    client, COMMITTED if client.plan.commits else ABORTED, at)
            client.phase = "answer"
        except Wait:
            client.tried += 1
            if client.tried > PATIENCE:
                self.give_up(client)
        except Conflict:
            self.give_up(client)

    def give_up(self, client: Client) -> None:
        """As after a deadlock."""
        self.store.rollback(client.txn.number)
        client.effect, client.phase = (lambda at: self.end(client, ABORTED, at)), "answer"

    def end(self, client: Client, status: str, at: int) -> None:
        """The transaction is over."""
        client.txn.status, client.txn.end, client.plan = status, (client.sent, at), None

    def do(self, client: Client, step):
        """One step on the store; what to note when it is answered."""
        txn, level, store = client.txn, client.plan.level, self.store
        number, note = txn.number, None
        if step.kind == READ_STEP:
            locks = bool(step.lock) or (level == "SERIALIZABLE" and not client.plan.autocommit)
            if locks and not step.lock and self.bug.startswith("reads do not lock"):
                seen = {key: store.own.get(number, {}).get(key, store.newest(key))
                        for key in step.keys}
            else:
                seen = (store.search if step.via == "found" else store.read)(
                    number, level, step, locks)
            if locks and not step.lock and store.strikes("read locks end early"):
                for key in set(step.keys) - set(store.own.get(number, {})):
                    store.unlock(number, key)
            seen = {key: self.shown(value, step.via) for key, value in seen.items()}
            found = {"words": [], "found": step.value}.get(step.via)
            note = Op(LOCKING if step.lock else READ, client.sent, 0, seen=seen,
                      lengths=step.via == "covered" and self.model == "list", words=found)
        elif step.kind == WRITE_STEP:
            store.write(number, level, step.keys[0], step.value, self.model == "list")
            note = Op(WRITE, client.sent, 0, key=step.keys[0], value=step.value)
        elif step.kind == SAVEPOINT:
            store.savepoint(number)
        elif step.kind == BACK:
            store.back(number)
        elif step.kind == SNAPSHOT_STEP:
            store.snapshot_of(number, level)
            note = Op(SNAPSHOT, client.sent, 0)
        return lambda at: self.answered(client, step, note, at)

    def shown(self, value, via: str):
        """A value as a client sees it."""
        if self.model == "register":
            return value
        return len(value or ()) if via == "covered" else list(value or ())

    def answered(self, client: Client, step, note, at: int) -> None:
        """The client has its answer."""
        txn = client.txn
        if note is not None:
            note.answered = at
            txn.ops.append(note)
        if step.kind == SAVEPOINT:
            client.saved = len(txn.ops)
        elif step.kind == BACK:
            for op in txn.ops[client.saved:]:
                op.undone = op.undone or len(txn.ops)
        client.place += 1
        if client.plan.autocommit and client.place == len(client.plan.steps):
            txn.status, txn.end, client.plan = COMMITTED, (client.sent, at), None
