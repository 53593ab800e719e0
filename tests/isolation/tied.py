"""Registers whose values are maintained by foreign keys: a client for `histories.py`.

A register is a child row whose value refers to a parent: `h.v` refers to `p.v`. Clients write
values through the parents. With ON UPDATE CASCADE and ON DELETE CASCADE, or SET NULL, the children
follow, so a finding of the checker about registers is a finding about these actions; NULL means
that the register does not exist. With RESTRICT, a client inserts the new parent, changes the child,
and then deletes the old parent; deleting a parent that has a child, or inserting a child without a
parent, must be refused.

In one snapshot every child has its own parent."""

from clients import Client, LOCKS, Unexpected
from history import LOCKING, Op, WRITE
from plans import KEYS_PER_GROUP

CASCADE, SET_NULL, RESTRICT = "CASCADE", "SET NULL", "RESTRICT"
ACTIONS = (CASCADE, SET_NULL, RESTRICT)
KEPT = "CREATE TABLE p (id INT PRIMARY KEY, v INT NOT NULL, UNIQUE KEY v (v))"
# Each value is a row of its own. At REPEATABLE READ a transaction that replaces a value that its
# snapshot does not have would see two values, the snapshot's and its own. So histories with
# RESTRICT do not use that level.
REPLACED = "CREATE TABLE p (id INT NOT NULL, v INT PRIMARY KEY, KEY i (id))"
CHILDREN = ("CREATE TABLE h (id INT PRIMARY KEY, grp INT NOT NULL, v INT, "
            "n VARCHAR(9) NOT NULL DEFAULT '', KEY g (grp, v), UNIQUE KEY u (v), "
            "CONSTRAINT tie FOREIGN KEY (v) REFERENCES p (v) ON DELETE {0} ON UPDATE {1})")
HAS_CHILD, HAS_NO_PARENT, DUPLICATE, TIMEOUT, DEADLOCK = 1451, 1452, 1062, 1205, 1213
REFUSED = "refused"   # the outcome of a step that was rightly refused


def tables(action: str) -> list:
    return [REPLACED if action == RESTRICT else KEPT,
            CHILDREN.format(action, RESTRICT if action == RESTRICT else CASCADE)]


class TiedClient(Client):
    by_index = ("group", "covered", "joined", "parents")

    def __init__(self, number: int, session, run):
        super().__init__(number, session, run)
        self.action = run.action

    def count_text(self) -> str:
        """Returns a statement that counts children, parents, and children with their own parent."""
        return ("SELECT (SELECT COUNT(v) FROM h FORCE INDEX (g) WHERE grp >= 0), "
                "(SELECT COUNT(*) FROM p), "
                "(SELECT COUNT(*) FROM h JOIN p ON p.v = h.v AND p.id = h.id)")

    def read_text(self, step) -> str:
        keys, group = step.keys, step.keys[0] // KEYS_PER_GROUP
        listed = ", ".join(map(str, keys))
        text = {"id": f"SELECT id, v FROM h WHERE id = {keys[0]}",
                "ids": f"SELECT id, v FROM h FORCE INDEX (PRIMARY) WHERE id IN ({listed})",
                "range": ("SELECT id, v FROM h FORCE INDEX (PRIMARY) "
                          f"WHERE id BETWEEN {keys[0]} AND {keys[-1]}"),
                "group": f"SELECT id, v, n FROM h FORCE INDEX (g) WHERE grp = {group}",
                "covered": f"SELECT id, v FROM h FORCE INDEX (g) WHERE grp = {group}",
                "parents": ("SELECT id, v FROM p "
                            f"FORCE INDEX ({'i' if self.action == RESTRICT else 'PRIMARY'}) "
                            f"WHERE id IN ({listed})"),
                "joined": ("SELECT h.id, h.v, p.id FROM h FORCE INDEX (g) "
                           f"LEFT JOIN p ON p.v = h.v WHERE h.grp = {group}")}[step.via]
        return text + LOCKS[step.lock]

    def expect_whole(self, row) -> None:
        """Checks that a child with a value has its parent."""
        if len(row) == 3 and row[2] != "" and row[2] != (row[0] if row[1] is not None else None):
            raise Unexpected(f"a child without its parent: {self.text}: {row}")

    def write(self, step):
        """Writes or deletes a register. After a lock wait timeout the whole transaction is rolled
        back, because otherwise parents and children would not match."""
        key, value = step.keys[0], step.value
        how = {"orphan": self.put_orphan, "take": self.take_parent,
               "delete": self.delete}.get(step.via)
        changes = self.change_by_hand if self.action == RESTRICT else self.change_parent
        answer, done = yield from (how(key, value) if how else changes(step.via, key, value))
        outcome, sent, answered = answer
        if outcome.error == TIMEOUT:
            outcome, sent, answered = yield "ROLLBACK"
            outcome.error = DEADLOCK
        elif done == WRITE:
            self.txn.ops.append(Op(WRITE, sent, answered, key=key,
                                   value=None if step.via == "delete" else value))
        elif done == LOCKING:   # the register did not exist
            self.txn.ops.append(Op(LOCKING, sent, answered, seen={key: None}))
        elif done == REFUSED:
            outcome.error = 0
        return outcome, sent, answered

    def several(self, *texts: str):
        """Runs statements one after the other, up to an error. Returns the last answer, with the
        time of the first statement, and the number of rows that each statement changed."""
        first, affected = None, []
        for text in texts:
            outcome, sent, answered = yield text
            first = sent if first is None else first
            if outcome.error:
                break
            affected.append(outcome.affected)
        return (outcome, first, answered), affected

    def found(self, is_there: bool) -> str:
        """Returns the effect of a statement on the parent with an ID. At READ COMMITTED an index
        scan may miss a parent that another transaction replaces."""
        if is_there:
            return WRITE
        return "" if self.action == RESTRICT and self.level == "READ COMMITTED" else LOCKING

    def change_parent(self, how: str, key: int, value):
        child = self.child(key, value) + f" ON DUPLICATE KEY UPDATE v = {value}"
        if how == "update":
            answer, affected = yield from self.several(f"UPDATE p SET v = {value} WHERE id = {key}")
            return answer, self.found(affected[0]) if affected else ""
        answer, affected = yield from self.several(
            f"REPLACE INTO p (id, v) VALUES ({key}, {value})" if how == "replace" else
            f"INSERT INTO p (id, v) VALUES ({key}, {value}) ON DUPLICATE KEY UPDATE v = {value}")
        if affected and (affected[0] == 1 or how == "replace"):   # a new parent has no child
            sent = answer[1]
            answer, affected = yield from self.several(child)
            answer = (answer[0], sent, answer[2])
        return answer, WRITE if affected else ""

    def change_by_hand(self, how: str, key: int, value):
        outcome, sent, answered = answer = yield f"SELECT v FROM h WHERE id = {key} FOR UPDATE"
        if outcome.error or (how == "update" and not outcome.rows):
            return answer, "" if outcome.error else LOCKING
        old = outcome.rows[0][0] if outcome.rows else None
        self.txn.ops.append(Op(LOCKING, sent, answered, seen={key: old}))
        parent, gone = (f"INSERT INTO p (id, v) VALUES ({key}, {value})",
                        f"DELETE FROM p WHERE v = {value if old is None else old}")
        if old is None:
            answer, affected = yield from self.several(parent, self.child(key, value))
            if answer[0].error == DUPLICATE:   # at READ COMMITTED another client was faster
                return (yield from self.several(gone))[0], ""
            return answer, WRITE if len(affected) == 2 else ""
        child = {"replace": self.child(key, value).replace("INSERT", "REPLACE"),
                 "upsert": self.child(key, value) + f" ON DUPLICATE KEY UPDATE v = {value}",
                 "update": f"UPDATE h SET v = {value} WHERE id = {key}"}[how]
        answer, affected = yield from self.several(parent, child, gone)
        return answer, WRITE if len(affected) == 3 else ""

    def child(self, key: int, value) -> str:
        return f"INSERT INTO h (id, grp, v) VALUES ({key}, {key // KEYS_PER_GROUP}, {value})"

    def delete(self, key: int, _value):
        if self.action == RESTRICT:
            return (yield from self.delete_both(key))
        answer, affected = yield from self.several(f"DELETE FROM p WHERE id = {key}")
        return answer, self.found(affected[0]) if affected else ""

    def delete_both(self, key: int):
        outcome, sent, answered = answer = yield f"SELECT v FROM h WHERE id = {key} FOR UPDATE"
        if outcome.error or not outcome.rows:
            return answer, "" if outcome.error else LOCKING
        self.txn.ops.append(Op(LOCKING, sent, answered, seen={key: outcome.rows[0][0]}))
        texts = [f"DELETE FROM h WHERE id = {key}", f"DELETE FROM p WHERE v = {outcome.rows[0][0]}"]
        answer, affected = yield from self.several(*texts)
        return answer, WRITE if affected == [1, 1] else ""

    def put_orphan(self, key: int, value):
        answer = yield self.child(key, value)
        if answer[0].error not in (HAS_NO_PARENT, DUPLICATE, TIMEOUT, DEADLOCK):
            raise Unexpected(f"a child without a parent was taken: {self.text}: {answer[0].text()}")
        return answer, REFUSED if answer[0].error in (HAS_NO_PARENT, DUPLICATE) else ""

    def take_parent(self, key: int, value):
        """With RESTRICT, tries to delete a parent with a child; otherwise changes the register."""
        if self.action != RESTRICT:
            return (yield from self.change_parent("update", key, value))
        answer = yield f"DELETE p FROM p FORCE INDEX (i) WHERE id = {key}"
        if answer[0].error == HAS_CHILD:
            return answer, REFUSED
        if answer[0].affected:
            raise Unexpected(f"a parent was taken from its child: {self.text}: {answer[0].text()}")
        return answer, "" if answer[0].error else self.found(False)
