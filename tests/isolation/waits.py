"""Reads from the engines which sessions wait for which, and for what."""

import re
import time

from cheetah_tools.say import Failure
from statements import comparable, KEYS, number_or_text

CACHED_SECONDS = 0.11   # InnoDB caches these tables for 0.1 s
SUPREMUM = "supremum"
MEMBER = re.compile(r"TRANSACTION: (\d+), .*?thread id (\d+),"
                    r".*?WAITING FOR: (\D*?) (S|X) on (.*?): (\w+) of table (\S+)"
                    r".*?BLOCKED BY: transaction (\d+)", re.S)
VIEWS = ("SELECT rt.trx_mysql_thread_id, bt.trx_mysql_thread_id, r.lock_mode, b.lock_mode, "
         "r.lock_table, r.lock_index, r.lock_data FROM information_schema.{0}_LOCK_WAITS w "
         "JOIN information_schema.{0}_LOCKS r ON r.lock_id = requested_lock_id "
         "JOIN information_schema.{0}_LOCKS b ON b.lock_id = blocking_lock_id "
         "JOIN information_schema.{0}_TRX rt ON rt.trx_id = requesting_trx_id "
         "AND rt.trx_requested_lock_id = requested_lock_id "
         "JOIN information_schema.{0}_TRX bt ON bt.trx_id = blocking_trx_id "
         "AND bt.trx_mysql_thread_id <> rt.trx_mysql_thread_id")
HOLDS_LOCKS = " WHERE bt.trx_rows_locked > 0"   # InnoDB gives all its readers the same ID


class Wait:
    """A session waits for another: for the record with `value` in `index`, which belongs to the row
    `row` (None if the engine does not report it), or, if `inserts`, to insert before that record.
    `shared`: it requests a shared lock; `held_shared`: the other session is known to hold one."""

    def __init__(self, waiter: str, blocker: str, index: str, mode: str, inserts: bool, value,
                 row, held: str = "", table: str = "t"):
        self.table = table
        self.waiter, self.blocker, self.index, self.shared, self.inserts = (
            waiter, blocker, index, mode.startswith("S"), inserts)
        self.value, self.row, self.held_shared = value, row, held.startswith("S")

    def place(self) -> tuple:
        return self.table, self.index, self.value, self.row

    def is_as(self, other) -> bool:
        """Returns whether both describe the same wait, possibly reported by different engines."""
        same_row = None in (self.row, other.row) or self.row == other.row
        return same_row and ((self.waiter, self.blocker, self.table, self.index, self.value)
                             == (other.waiter, other.blocker, other.table, other.index,
                                 other.value))

    def is_on(self, row: tuple) -> bool:
        """Returns whether this version of a row has the record."""
        return self.row in (None, row[0]) and comparable(row[KEYS[self.index]]) == self.value

    def text(self) -> str:
        what = (f"to insert before {self.value}" if self.inserts
                else f"for {'S' if self.shared else 'X'} of {self.value}")
        return (f"{self.waiter} waits for {self.blocker}, {what} (row {self.row}) "
                f"of {self.table}.{self.index}")


def innodb_waits(root, sessions: dict) -> list:
    time.sleep(CACHED_SECONDS)
    names, waits = names_of(sessions), []
    for waiter, blocker, mode, _, table, index, data in root.must(
            VIEWS.format("INNODB") + HOLDS_LOCKS).rows:
        if data is None:
            raise Failure(f"InnoDB does not tell for what it waits in {index}")
        parts = data.split(", ")
        at_end = data.startswith(SUPREMUM)
        value = SUPREMUM if at_end else number_or_text(parts[0])
        row = int(parts[-1]) if not at_end and index != "u" else None
        waits.append(Wait(names.get(waiter), names.get(blocker), index, mode,
                          "GAP" in mode or at_end, value, row, table=name_of(table)))
    return waits


def cheetah_waits(root, sessions: dict) -> list:
    names = names_of(sessions)
    return [cheetah_wait(names.get(waiter), names.get(blocker), name_of(table), index, mode, data,
                         held)
            for waiter, blocker, mode, held, table, index, data
            in root.must(VIEWS.format("CHEETAH")).rows]


def cheetah_deadlock(root, sessions: dict) -> list:
    text = (root.must("SHOW ENGINE CHEETAH STATUS").rows[0][2]
            .partition("LATEST DETECTED DEADLOCK")[2].partition("WE ROLL BACK")[0])
    found = [MEMBER.search(member).groups() for member in text.split("*** (")[1:]]
    names, numbers = names_of(sessions), {number: int(thread) for number, thread, *_ in found}
    return [cheetah_wait(names.get(int(thread)), names.get(numbers[other]), name_of(table), index,
                         mode, f"{kind} {data}")
            for _, thread, kind, mode, data, index, table, other in found]


def name_of(table: str) -> str:
    return re.findall(r"\w+", table)[-1]


def cheetah_wait(waiter, blocker, table: str, index: str, mode: str, data: str,
                 held: str = "") -> Wait:
    """Parses the last key in the data: the indexed value first, the row's primary key last."""
    values = re.findall(r"\(([^()]*)\)", data or "")[-1].split(", ")
    row, first = int(values[-1]), values[0]
    if first.startswith("'"):
        value = first.strip("'").lower()
    else:
        value = -1 if first == "NULL" else int(first)
    return Wait(waiter, blocker, index, mode, "insert" in data.lower(), value, row, held, table)


def names_of(sessions: dict) -> dict:
    return {session.connection.thread_id(): name for name, session in sessions.items()}
