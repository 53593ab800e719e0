"""A client of a random history: turns plans into statements and answers into operations."""

from cheetah_tools.say import Failure
from history import ABORTED, COMMITTED, LOCKING, Op, READ, SNAPSHOT, Txn, WRITE
from plans import (BACK, COUNT_STEP, KEYS_PER_GROUP, READ_STEP, SAVEPOINT, SNAPSHOT_STEP, WORDS,
                   WRITE_STEP)

# The indexed column changes with every append because it holds the list's length. A unique index
# makes every register value unique.
LISTS = ("CREATE TABLE h (id INT PRIMARY KEY, grp INT NOT NULL, len INT NOT NULL, "
         "val TEXT NOT NULL, pad MEDIUMTEXT NOT NULL, KEY g (grp, len))")
REGISTERS = ("CREATE TABLE h (id INT PRIMARY KEY, grp INT NOT NULL, v INT NOT NULL, "
             "pad MEDIUMTEXT NOT NULL, KEY g (grp, v), UNIQUE KEY u (v))")
# Indexed words: "row" in every row, the row's group, the register's value or the list's elements.
INDEXES = {"list": "FULLTEXT KEY w (val, tag)", "register": "FULLTEXT KEY w (tag)"}
LOCKS = {"": "", "share": " LOCK IN SHARE MODE", "update": " FOR UPDATE"}
ROLLED_BACK = {1213, 1020}
# After these errors the transaction continues: duplicate unique value, lock wait timeout.
REFUSED = {1062, 1205}


def tables(model: str, more: str) -> list:
    text = LISTS if model == "list" else REGISTERS
    return [text.replace("KEY g", f"tag VARCHAR(40) NOT NULL, {INDEXES[model]}, KEY g")
            if more == WORDS else text]


class Unexpected(Failure):
    """An answer that no engine may give to this statement."""


class Client:
    """One connection. `script` is a generator that yields statements and receives their answers."""

    by_index = ("group", "covered")   # read paths that may miss a row that moves

    def __init__(self, number: int, session, run):
        self.number, self.session, self.run = number, session, run
        self.script, self.text, self.sent, self.level = (
            self.transactions(), "", 0, "REPEATABLE READ")
        self.lists, self.has_words = run.model == "list", run.planner.more == WORDS
        self.txn, self.saved, self.joined = None, None, False

    def fileno(self) -> int:
        """Lets `select` wait for the session."""
        return self.session.fileno()

    def start(self) -> bool:
        return self._send(next(self.script, None))

    def go_on(self) -> bool:
        """Takes the answer and sends the next statement; returns False at the end."""
        outcome = self.session.take()
        try:
            return self._send(self.script.send((outcome, self.sent, self.run.clock())))
        except StopIteration:
            return False

    def _send(self, text) -> bool:
        if text is None:
            return False
        self.text, self.sent = text, self.run.clock()
        self.session.send(text)
        return True

    def transactions(self):
        while self.run.take_one():
            plan = self.run.planner.plan()
            self.begin(plan)
            if plan.level != self.level:
                yield f"SET SESSION TRANSACTION ISOLATION LEVEL {plan.level}"
                self.level = plan.level
            yield from self.transaction(plan)

    def begin(self, plan) -> None:
        """Registers the transaction that the engine begins here."""
        self.txn = Txn(len(self.run.txns), self.number, plan.level, status=ABORTED,
                       autocommit=plan.autocommit)
        self.run.txns.append(self.txn)

    def transaction(self, plan):
        self.saved, self.joined = None, False
        if not plan.autocommit and plan.steps[0].kind != SNAPSHOT_STEP:
            yield "BEGIN"
        for step in plan.steps:
            outcome, sent, answered = yield from self.step(step, plan)
            if outcome.error in ROLLED_BACK:
                self.txn.end = (sent, answered)   # the rollback released its locks
                return
            if outcome.error and outcome.error not in REFUSED:
                raise Unexpected(f"{self.text}: error {outcome.error} {outcome.message}")
        if not plan.autocommit:
            outcome, sent, answered = yield "COMMIT" if plan.commits else "ROLLBACK"
            if outcome.error:
                raise Unexpected(f"{self.text}: error {outcome.error} {outcome.message}")
        self.txn.status, self.txn.end = COMMITTED if plan.commits else ABORTED, (sent, answered)

    def step(self, step, plan):
        """Runs one step; returns the answer to its last statement."""
        if step.kind == SAVEPOINT:
            self.saved = len(self.txn.ops) if self.joined else None
            return (yield "SAVEPOINT s")
        if step.kind == BACK:
            return (yield from self.back(plan))
        self.joined = True
        if step.kind == READ_STEP:
            answer = yield self.read_text(step)
            self.note_read(step, *answer)
        elif step.kind == COUNT_STEP:
            answer = yield self.count_text()
            self.note_count(*answer)
        elif step.kind == WRITE_STEP:
            answer = yield from self.write(step)
        else:
            answer = yield "START TRANSACTION WITH CONSISTENT SNAPSHOT"
            self.joined = self.run.snapshot_at_start
            if self.joined:
                self.txn.ops.append(Op(SNAPSHOT, *answer[1:]))
        return answer

    def back(self, plan):
        """Runs ROLLBACK TO SAVEPOINT. If the engine was not used before the savepoint, the server
        rolls back its whole transaction, and the next statement begins a new one."""
        answer = yield "ROLLBACK TO SAVEPOINT s"
        if self.saved is not None:
            for op in self.txn.ops[self.saved:]:
                op.undone = op.undone or len(self.txn.ops)
        elif self.joined:
            self.txn.end = answer[1:]
            self.begin(plan)
        return answer

    def count_text(self) -> str:
        """Returns a statement that counts all rows in two ways, or three with a full-text index."""
        column = "len" if self.lists else "v"
        more = f", (SELECT COUNT(*) FROM h WHERE {self.match('row')})" if self.has_words else ""
        return ("SELECT (SELECT COUNT(*) FROM h), "
                f"(SELECT COUNT({column}) FROM h FORCE INDEX (g) WHERE grp >= 0){more}")

    def match(self, words: str) -> str:
        """Returns a condition that selects the rows with one of these words."""
        return f"MATCH ({'val, tag' if self.lists else 'tag'}) AGAINST ('{words}')"

    def tag(self, key: int, value) -> str:
        """Returns the text of the `tag` column: the row's words except its list elements."""
        return f"'row grp{key // KEYS_PER_GROUP}{'' if self.lists else f' {value}'}'"

    def read_text(self, step) -> str:
        column = ("val" if self.lists else "v") + ", SUBSTRING_INDEX(pad, ',', 1), LENGTH(pad)"
        keys, group = step.keys, step.keys[0] // KEYS_PER_GROUP
        text = {
            "id": f"SELECT id, {column} FROM h WHERE id = {keys[0]}",
            "ids": f"SELECT id, {column} FROM h FORCE INDEX (PRIMARY) "
                   f"WHERE id IN ({', '.join(map(str, keys))})",
            "range": f"SELECT id, {column} FROM h FORCE INDEX (PRIMARY) "
                     f"WHERE id BETWEEN {keys[0]} AND {keys[-1]}",
            "group": f"SELECT id, {column} FROM h FORCE INDEX (g) WHERE grp = {group}",
            "covered": f"SELECT id, {'len' if self.lists else 'v'} FROM h FORCE INDEX (g) "
                       f"WHERE grp = {group}",
            "words": f"SELECT id, {column} FROM h WHERE {self.match(f'grp{group}')}",
            "found": f"SELECT id, {column} FROM h "
                     f"WHERE {self.match(' '.join(str(value) for _, value in step.value or ()))}",
        }[step.via]
        return text + LOCKS[step.lock]

    def note_read(self, step, outcome, sent, answered) -> None:
        """Records what a read saw; a row that appears twice is an error."""
        if outcome.error:
            return
        rows = {row[0]: row[1] for row in outcome.rows}
        if len(rows) != len(outcome.rows) or not set(rows) <= set(step.keys):
            raise Unexpected(f"{self.text}: rows {outcome.rows}")
        covered = step.via == "covered"
        if not covered:
            for row in outcome.rows:
                self.expect_whole(row)
        lengths = self.lists and covered
        # A locking scan without gap locks may miss a row whose value, and so its index position,
        # moved down while the scan waited.
        may_miss = (not self.lists and step.lock and step.via in self.by_index
                    and self.level in ("READ COMMITTED", "READ UNCOMMITTED"))
        may_miss = may_miss or step.via == "found"
        seen = {key: self.value(rows.get(key), lengths) for key in step.keys
                if key in rows or not may_miss}
        words = {"words": [], "found": step.value}.get(step.via)
        self.txn.ops.append(Op(LOCKING if step.lock else READ, sent, answered, seen=seen,
                               lengths=lengths, covered=covered, words=words))

    def note_count(self, outcome, sent, answered) -> None:
        """All counts must agree because one statement uses one snapshot. The count also takes the
        transaction's snapshot, like any other read."""
        if outcome.error:
            return
        self.txn.ops.append(Op(READ, sent, answered, seen={}))
        dirty = self.level == "READ UNCOMMITTED" and self.run.dirty_reads
        if not dirty and len(set(outcome.rows[0])) > 1:
            raise Unexpected(f"COUNT(*) and an index disagree at {self.level}: {outcome.rows}: "
                             f"{self.text}")

    def pad(self, value) -> str:
        """Returns `pad` as SQL: the row's last value, repeated to up to tens of kilobytes."""
        return f"REPEAT('{value},', {self.run.copies})"

    def expect_whole(self, row) -> None:
        """Checks that the large value belongs to the same version as the row."""
        last = str(row[1]).rsplit(",", 1)[-1]
        if row[2] != last or row[3] != (len(last) + 1) * self.run.copies:
            raise Unexpected(f"torn row: {self.text}: {row}")

    def value(self, cell, lengths: bool):
        if not self.lists:
            return cell
        if lengths:
            return cell or 0
        return [int(word) for word in cell.split(",")] if cell else []

    def write(self, step):
        key, value = step.keys[0], step.value
        if step.via == "replace" and self.lists:
            return (yield from self.append_by_replacing(step))
        outcome, sent, answered = answer = yield self.write_text(step.via, key, value)
        if not outcome.error:
            if outcome.affected:
                self.txn.ops.append(Op(WRITE, sent, answered, key=key, value=value))
            else:   # there was no row to change
                words = [] if step.via == "matched" else None
                self.txn.ops.append(Op(LOCKING, sent, answered,
                                       seen={key: [] if self.lists else None}, words=words))
        return answer

    def write_text(self, how: str, key: int, value) -> str:
        group, more = key // KEYS_PER_GROUP, f", {self.tag(key, value)}" if self.has_words else ""
        if self.lists:
            append = f"val = CONCAT(val, ',{value}'), len = len + 1, pad = {self.pad(value)}"
            return {"upsert": f"INSERT INTO h VALUES ({key}, {group}, 1, '{value}', "
                              f"{self.pad(value)}{more}) ON DUPLICATE KEY UPDATE {append}",
                    "update": f"UPDATE h SET {append} WHERE id = {key}",
                    "matched": f"UPDATE h SET {append} WHERE id = {key} "
                               f"AND {self.match(f'grp{group}')}"}[how]
        row, change = (f"({key}, {group}, {value}, {self.pad(value)}{more})",
                       f"v = {value}, pad = {self.pad(value)}"
                       f"{more and f', tag = {self.tag(key, value)}'}")
        return {"upsert": f"INSERT INTO h VALUES {row} ON DUPLICATE KEY UPDATE {change}",
                "update": f"UPDATE h SET {change} WHERE id = {key}",
                "matched": f"UPDATE h SET {change} WHERE id = {key} "
                           f"AND {self.match(f'grp{group}')}",
                "replace": f"REPLACE INTO h VALUES {row}",
                "delete": f"DELETE FROM h WHERE id = {key}"}[how]

    def append_by_replacing(self, step):
        """Locks, deletes and inserts the row, so that its key exists both delete-marked and new."""
        key, value = step.keys[0], step.value
        outcome, sent, answered = answer = yield f"SELECT val FROM h WHERE id = {key} FOR UPDATE"
        if outcome.error:
            return answer
        old = outcome.rows[0][0] if outcome.rows else ""
        self.txn.ops.append(Op(LOCKING, sent, answered, seen={key: self.value(old, False)}))
        if old:
            answer = yield f"DELETE FROM h WHERE id = {key}"
            if answer[0].error:
                return answer
        fresh = f"{old},{value}" if old else str(value)
        more = f", {self.tag(key, value)}" if self.has_words else ""
        outcome, sent, answered = answer = yield (
            f"INSERT INTO h VALUES ({key}, {key // KEYS_PER_GROUP}, {fresh.count(',') + 1}, "
            f"'{fresh}', {self.pad(value)}{more})")
        if not outcome.error:
            self.txn.ops.append(Op(WRITE, sent, answered, key=key, value=value))
        elif old and outcome.error in REFUSED:
            raise Unexpected(f"{self.text}: error {outcome.error} after the own DELETE")
        return answer
