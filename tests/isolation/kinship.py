"""Explains differences in waiting between Cheetah and InnoDB on tables tied by foreign keys. The
statements are those of families.py.

A statement concerns the rows that it finds, inserts or changes; the parents that its rows refer to;
and, if it deletes a parent or changes its key, the parent's children and their children. In
addition to the reasons of `reasons` that do not depend on the record waited for (order, victim,
upgrade), the reasons are:

- precise-ranges: InnoDB waits for a record that does not concern one of the two statements because
  the record is next to the keys of a search; or InnoDB waits to insert at a key that no statement
  searched for.
- deleted: InnoDB waits for a row or an entry whose deletion was already committed.
- kept: InnoDB at READ COMMITTED keeps the lock of a row that it waited for, even if the row does
  not match.
- covering: a statement that deletes a parent searches for children in their index only. Cheetah
  locks the first child's row, InnoDB its index entry.
- duplicate-row: a parent's new key is taken. Cheetah checks the key before it searches for
  children, and locks the row that has the key; InnoDB searches for children first, and locks them.
- followers: children follow their parent. Cheetah locks their entries exclusively before it
  requests the first row; InnoDB locks an entry shared, and then its row exclusively.
- place: a child has no parent, or a parent gets a new key while its children keep the old one.
  Cheetah requests the positions of all entries before it searches for the parent or the children;
  InnoDB searches before it requests the position of the entry."""

import re

from reasons import (COVERING, DELETED, Difference, DUPLICATE_ROW, KEPT, PLACE, PRECISE_RANGES,
                     UPGRADE)

PARENT = {"c": "p", "d": "p", "e": "p", "g": "d"}
CHILDREN = {"p": "cde", "d": "g"}
# the tables whose rows prevent a DELETE of a parent, or an UPDATE of its key
KEEPS_PARENT = {"DELETE": "c", "UPDATE": "e"}
FOLLOWERS = "followers"
TABLE = re.compile(r"(?:INTO|FROM|UPDATE) (\w)\b")
WHERE, VALUES, SETS = (re.compile(r"WHERE (\w+) = (\w+)"), re.compile(r"VALUES \((\d+), (\w+)"),
                       re.compile(r"SET (\w+) = (\w+)"))


def number(text: str):
    """Returns a number, or None for NULL and computed values."""
    return int(text) if text.isdigit() else None


class FamilyStatement:
    """A parsed statement: its table, its search, and its new values."""

    def __init__(self, text: str, step: int = 0):
        table, where, values, sets = (TABLE.search(text), WHERE.search(text), VALUES.search(text),
                                      SETS.search(text))
        self.text, self.step, self.table = text, step, table[1] if table else ""
        self.where = (where[1], number(where[2])) if where else None
        self.row = (number(values[1]), number(values[2])) if values else None
        self.sets = (sets[1], number(sets[2])) if sets else None
        self.reads = text.startswith("SELECT")
        self.removes = text.startswith("DELETE") or (self.sets is not None and self.sets[0] == "id")

    def finds(self, row: tuple) -> bool:
        """Returns whether the statement's search matches this version of a row of its table."""
        return self.where is not None and row[("id", "pid").index(self.where[0])] == self.where[1]

    def parents(self) -> set:
        named = (self.row[1] if self.row
                 else self.sets[1] if self.sets and self.sets[0] == "pid" else None)
        return ({(PARENT[self.table], named)} if named is not None and self.table in PARENT
                else set())

    def rows(self, states: list) -> set:
        """Returns (table, id) of all rows that the statement concerns."""
        put = ({(self.table, self.row[0])} if self.row
               else {(self.table, self.sets[1])} if self.removes and self.sets else set())
        return self.found(states) | put | self.parents()

    def found(self, states: list) -> set:
        """Returns (table, id) of the rows that the statement finds and of those that follow."""
        own = {(self.table, row[0]) for state in states for row in state.get(self.table, ())
               if self.finds(row)}
        return own | (self.followers(own, states) if self.removes else set())

    def followers(self, parents: set, states: list) -> set:
        """Returns the descendants of these rows."""
        found = {(child, row[0]) for table, key in parents for child in CHILDREN.get(table, "")
                 for state in states for row in state[child] if row[1] == key}
        return found | self.followers(found, states) if found else found

    def taken_key(self, states: list):
        """Returns the new key of a parent if another parent already has it; otherwise None."""
        key = self.sets[1] if self.sets and self.sets[0] == "id" else None
        return key if any(row[0] == key for state in states for row in state[self.table]) else None

    def is_kept(self, state: dict) -> bool:
        """Returns whether it changes the key of a parent whose children keep the old key."""
        return (self.sets is not None and self.sets[0] == "id"
                and any(row[1] == self.where[1] for row in state[KEEPS_PARENT["UPDATE"]]))

    def looks(self, states: list) -> set:
        """Returns (table, index, value) of all searches, successful or not."""
        looked = {(table, "PRIMARY", key) for table, key in self.parents()}
        if self.where:
            looked.add((self.table, "PRIMARY" if self.where[0] == "id" else "pid", self.where[1]))
        if self.removes:
            gone = [(table, key) for table, key in self.found(states) if table in CHILDREN]
            looked |= {(child, "pid", key) for table, key in gone for child in CHILDREN[table]}
        return looked

    def puts(self) -> set:
        """Returns (table, index, value) of entries that the statement may insert."""
        if self.row:
            return {(self.table, "PRIMARY", self.row[0]), (self.table, "pid", self.row[1])}
        if self.sets and self.sets[0] in ("id", "pid"):
            changed = {(self.table, "PRIMARY" if self.sets[0] == "id" else "pid", self.sets[1])}
            followed = ({(child, "pid", self.sets[1]) for child in CHILDREN.get(self.table, "")}
                        if self.sets[0] == "id" else set())
            return changed | followed
        return set()


class FamilyDifference(Difference):
    def has_come_meanwhile(self, _entries: list) -> bool:
        """Never true here: each scan has one key."""
        return False

    def compare(self, theirs, ours) -> None:
        """Does nothing: this comparison needs no saved state."""

    def judge_plans(self, _wait, _look) -> str:
        """Finds no reason: each statement has one plan."""
        return ""

    def judge_behind(self, *_) -> str:
        """Finds no reason: this class does not use the check."""
        return ""

    def judge_cycle(self, wait, look) -> str:
        """Explains a wait in a deadlock of InnoDB."""
        return self.judge_theirs(wait, look)

    def locking(self, entry, _inside: bool) -> list:
        """Returns the entry's statement; all statements lock."""
        return [FamilyStatement(entry.text, entry.number)]

    def judge_theirs(self, wait, look) -> str:
        """Explains why InnoDB waits and Cheetah does not."""
        asking, held = (FamilyStatement(look.under_way[wait.waiter].text),
                        self.statements_of(wait.blocker, look))
        if look.is_upgrade(wait):
            return UPGRADE
        if wait.inserts:
            put = {place for place in asking.puts() if place[:2] == (wait.table, wait.index)}
            return ("" if any(put & statement.looks(look.states) for statement in held)
                    else PRECISE_RANGES)
        if wait.table != asking.table and asking.taken_key(look.states) is not None:
            return DUPLICATE_ROW
        row = (wait.table, wait.row)
        touching = [statement for statement in held if row in statement.rows(look.states)]
        if not touching or row not in asking.rows(look.states):
            return PRECISE_RANGES
        if all(statement.table != wait.table and statement.taken_key(look.states) is not None
               for statement in touching):
            return DUPLICATE_ROW
        if not any(row[1] == version[0] for version in look.states[-1].get(wait.table, ())):
            return DELETED
        if (self.level == "READ COMMITTED"
                and not any(row in statement.rows(look.states[statement.step:])
                            for statement in touching)):
            return KEPT
        return ""

    def judge_ours(self, wait, look) -> str:
        """Explains why Cheetah waits and InnoDB does not."""
        asking, held = (FamilyStatement(look.under_way[wait.waiter].text),
                        self.statements_of(wait.blocker, look))
        if wait.inserts:
            there = {(table, row[0]) for table, rows in look.states[-1].items() for row in rows}
            return ("" if asking.parents() <= there and not asking.is_kept(look.states[-1])
                    else PLACE)
        row = (wait.table, wait.row)
        touching = [statement for statement in held if row in statement.rows(look.states)]
        if (wait.shared and wait.index == "pid"
                and any(self.is_at_followers(statement, wait, look) for statement in touching)):
            return FOLLOWERS
        looks_only = [self.only_looks(statement, wait.table) for statement in touching]
        if touching and (all(looks_only) or self.only_looks(asking, wait.table)):
            return COVERING
        if any(row == (statement.table, statement.taken_key(look.states))
               for statement in (asking, *touching)):
            return DUPLICATE_ROW
        return ""

    @staticmethod
    def is_at_followers(statement: FamilyStatement, wait, look) -> bool:
        """Returns whether the blocker waits while it searches this table for children."""
        return (statement.removes and statement.table != wait.table
                and any(entry.number == statement.step for entry in look.under_way.values()))

    @staticmethod
    def only_looks(statement: FamilyStatement, table: str) -> bool:
        """Returns whether a statement only searches this table for children."""
        return (statement.removes and statement.table != table
                and table in KEEPS_PARENT[statement.text.split()[0]])
