"""Describes the ranges, locks and new index entries of a statement of scripts.py.

Only the statements that `Generator` makes are understood. Answers that depend on rows consider
every state of the table seen during the play, so they may include too much, but not too little."""

import re

COLUMNS = {"id": 0, "k": 1, "u": 2, "v": 3, "c": 4}
KEYS = {"PRIMARY": 0, "k": 1, "u": 2, "c": 4}
NULL, END = -1, float("inf")   # below and above all numeric keys
LAST = "~"                     # above all strings
INDEX, WHERE = (re.compile(r"FORCE INDEX \((\w+)\)"),
                re.compile(r" WHERE (.*?)(?: FOR UPDATE.*| LOCK IN.*| ORDER BY.*)?$"))
VALUES = re.compile(r"VALUES \((\d+), (\d+), (\w+), (\d+), '(\w+)'\)")
SETS = re.compile(r" SET (\w+) = (.*?) WHERE")
NO_WAIT = re.compile(r" (NOWAIT|SKIP LOCKED)$")


def number_or_text(text: str):
    """Returns a value as written in a statement or in a list of locks."""
    if text == "NULL":
        return NULL
    return text.strip("'").lower() if text.startswith("'") else int(text)


class Statement:
    def __init__(self, text: str, number: int = 0):
        self.text, self.number, self.is_vain = text, number, False
        index, where, values = INDEX.search(text), WHERE.search(text), VALUES.search(text)
        self.index = index[1] if index else ""
        self.value = int(where[1][4:]) if where and where[1].startswith("v = ") else None
        self.ranges = ranges_of(where[1]) if where else [(NULL, True, END, True)]
        if self.index == "c" and not where:
            self.ranges = [("", True, LAST, True)]
        # MAX(id) reads the last row; these are the keys that may be the last ones in these scripts.
        if "MAX(id)" in text:
            self.ranges = [(60, True, END, True)]
        self.row = values and (*map(number_or_text, values.groups()[:4]), values[5].lower())
        sets = SETS.search(text)
        self.sets = (sets[1], sets[2]) if sets else None

    def alone(self, row: tuple) -> str:
        """Returns the text that reads one row of a SKIP LOCKED read alone, and waits for it."""
        condition = f"id = {row[0]}"
        if self.index != "PRIMARY":
            value = row[1] if len(row) == 2 else row[KEYS[self.index]]
            shown = ("IS NULL" if value is None
                     else f"= '{value}'" if isinstance(value, str) else f"= {value}")
            condition = f"{self.index} {shown} AND {condition}"
        before, after = re.match(
            r"(.* WHERE ).*?( FOR UPDATE| LOCK IN SHARE MODE) SKIP LOCKED$", self.text).groups()
        return f"{before}{condition}{after}"

    def locks(self, level: str, inside: bool) -> bool:
        """Returns whether the statement locks what it reads or writes."""
        if not self.text.startswith("SELECT"):
            return bool(self.index or self.row)
        return (" FOR UPDATE" in self.text or " IN SHARE MODE" in self.text
                or (level == "SERIALIZABLE" and inside))

    def may_remove(self, index: str) -> bool:
        """Returns whether the statement may remove a record from an index."""
        changes_key = index != "PRIMARY" or self.sets and self.sets[0] == "id"
        return self.text.startswith(("DELETE", "REPLACE")) or bool(self.sets and changes_key)

    def is_shared_read(self) -> bool:
        """Returns whether the statement's locks, if any, are shared."""
        return self.text.startswith("SELECT") and " FOR UPDATE" not in self.text

    def is_covered(self) -> bool:
        """Returns whether it is a shared-lock read that needs only its secondary index."""
        return (self.is_shared_read() and self.index not in ("", "PRIMARY")
                and not self.text.startswith("SELECT *"))

    def changes(self, index: str) -> bool:
        """Returns whether the statement inserts records into an index, or removes records from it
        that its search did not find there."""
        if not self.sets:
            return bool(self.row)
        return self.sets[0] == "id" or COLUMNS[self.sets[0]] == KEYS[index]

    def reads(self, index: str, value) -> bool:
        """Returns whether the statement's search of this index includes the value."""
        return self.index == index and any(within(value, part) for part in self.ranges)

    def finds(self, row: tuple) -> bool:
        """Returns whether the statement's search finds this version of a row."""
        return bool(self.index) and self.reads(self.index, comparable(row[KEYS[self.index]]))

    def matches(self, row: tuple) -> bool:
        """Returns whether the statement reads or writes this version of a row, not only looks."""
        return ((self.finds(row) and self.value in (None, row[COLUMNS["v"]])) or self.checks(row)
                or bool(self.row and self.row[0] == row[0]))

    def puts(self, index: str, states: list) -> set:
        """Returns the values that the statement may add to the index."""
        at = KEYS[index]
        if self.row:
            # ON DUPLICATE KEY UPDATE changes only v.
            return {self.row[at]}
        if not self.sets:
            return set()
        column, change = self.sets
        found = [row for state in states for row in state if self.finds(row)]
        if column == "id" and index != "PRIMARY":
            return {comparable(row[at]) for row in found}
        if COLUMNS[column] != at:
            return set()
        if change.startswith("k +"):
            return {row[at] + 4 for row in found}
        return {comparable(row[at]) for row in found} if column == "c" else {int(change)}

    def checks(self, row: tuple) -> bool:
        """Returns whether a new value may equal a unique key of this version of a row."""
        for column in ("id", "u"):
            at = COLUMNS[column]
            value = comparable(row[at])
            if value != NULL and (self.sets == (column, str(value))
                                  or (self.row and self.row[at] == value)):
                return True
        return False


def comparable(value):
    """Converts a column's value to the form used in ranges."""
    return NULL if value is None else value.lower() if isinstance(value, str) else value


def ranges_of(condition: str) -> list:
    """Returns (low, includes low, high, includes high) for each range of the condition."""
    column, kind, rest = re.match(r"(\w+) (=|>=|>|<|BETWEEN|IN|IS) (.*)",
                                  condition.partition(" AND id = ")[0]).groups()
    low, high = ("", LAST) if column == "c" else (NULL, END)
    values = [number_or_text(part) for part in re.findall(r"'\w+'|\d+|NULL", rest)]
    if column == "v":   # no index
        return [(low, True, high, True)]
    if kind in ("=", "IN", "IS"):
        return [(value, True, value, True) for value in values]
    if kind == "BETWEEN":
        return [(values[0], True, values[1], True)]
    return ([(low, False, values[0], False)] if kind == "<"
            else [(values[0], kind == ">=", high, True)])


def within(value, part: tuple) -> bool:
    low, with_low, high, with_high = part
    return ((low < value or (with_low and low == value))
            and (value < high or (with_high and value == high)))
