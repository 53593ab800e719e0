"""Why Cheetah may let a session wait that InnoDB lets go on, or the other way round, where foreign
keys tie tables together. The statements are those of families.py.

A statement has to do with the rows that it finds, puts or changes; with the parents that its rows
name; and with the children of a parent that it deletes or gives another key, and theirs. Reasons,
besides those of `reasons` that do not depend on what is waited for (order, victim, upgrade):

- precise-ranges: InnoDB waits for a record with which one of the two has nothing to do, as it lies
    beside the keys of a search; or to insert where nobody has looked.
- deleted: a row whose deletion, or whose entry's, has been committed before.
- kept: InnoDB at READ COMMITTED keeps a row that it has waited for, even if it does not match.
- covering: whoever deletes a parent looks for children by their index only. Cheetah locks the
    first child's row, InnoDB its entry.
- duplicate-row: a parent gets a key that is taken. Cheetah looks at that before it looks for
    children, and locks the row that has the key; InnoDB looks for children first, and locks them.
- followers: children that follow a parent. Cheetah locks their entries exclusively before it asks
    for the first row; InnoDB locks an entry shared, and then its row exclusively.
- place: a child without a parent, or a new key of a parent whose children keep the old one. Cheetah
    asks for the places of all entries before it looks for the parent, or the children; InnoDB looks
    for those before it asks for that entry's place.
"""

import re

from reasons import (COVERING, DELETED, Difference, DUPLICATE_ROW, KEPT, PLACE, PRECISE_RANGES,
                     UPGRADE)

PARENT = {"c": "p", "d": "p", "e": "p", "g": "d"}
CHILDREN = {"p": "cde", "d": "g"}
KEEPS_PARENT = {"DELETE": "c", "UPDATE": "e"}   # whose rows restrict it
FOLLOWERS = "followers"
TABLE = re.compile(r"(?:INTO|FROM|UPDATE) (\w)\b")
WHERE, VALUES, SETS = (re.compile(r"WHERE (\w+) = (\w+)"), re.compile(r"VALUES \((\d+), (\w+)"),
                       re.compile(r"SET (\w+) = (\w+)"))


def number(text: str):
    """A number, or None for NULL and what is computed."""
    return int(text) if text.isdigit() else None


class FamilyStatement:
    """Its table, what it looks for, what it puts."""

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
        """Whether it looks for this version of a row of its table."""
        return self.where is not None and row[("id", "pid").index(self.where[0])] == self.where[1]

    def parents(self) -> set:
        """Parents that it names."""
        named = (self.row[1] if self.row
                 else self.sets[1] if self.sets and self.sets[0] == "pid" else None)
        return ({(PARENT[self.table], named)} if named is not None and self.table in PARENT
                else set())

    def rows(self, states: list) -> set:
        """(table, id) of all that it has to do with."""
        put = ({(self.table, self.row[0])} if self.row
               else {(self.table, self.sets[1])} if self.removes and self.sets else set())
        return self.found(states) | put | self.parents()

    def found(self, states: list) -> set:
        """(table, id) of what it looks for, and of those that follow."""
        own = {(self.table, row[0]) for state in states for row in state.get(self.table, ())
               if self.finds(row)}
        return own | (self.followers(own, states) if self.removes else set())

    def followers(self, parents: set, states: list) -> set:
        """Children of these rows, and theirs."""
        found = {(child, row[0]) for table, key in parents for child in CHILDREN.get(table, "")
                 for state in states for row in state[child] if row[1] == key}
        return found | self.followers(found, states) if found else found

    def taken_key(self, states: list):
        """The key that it gives to a parent, if another one has it; None otherwise."""
        key = self.sets[1] if self.sets and self.sets[0] == "id" else None
        return key if any(row[0] == key for state in states for row in state[self.table]) else None

    def is_kept(self, state: dict) -> bool:
        """Whether it gives a key to a parent whose children keep the old one."""
        return (self.sets is not None and self.sets[0] == "id"
                and any(row[1] == self.where[1] for row in state[KEEPS_PARENT["UPDATE"]]))

    def looks(self, states: list) -> set:
        """(table, index, value) where it has looked, found or not."""
        looked = {(table, "PRIMARY", key) for table, key in self.parents()}
        if self.where:
            looked.add((self.table, "PRIMARY" if self.where[0] == "id" else "pid", self.where[1]))
        if self.removes:
            gone = [(table, key) for table, key in self.found(states) if table in CHILDREN]
            looked |= {(child, "pid", key) for table, key in gone for child in CHILDREN[table]}
        return looked

    def puts(self) -> set:
        """(table, index, value) of entries that may come."""
        if self.row:
            return {(self.table, "PRIMARY", self.row[0]), (self.table, "pid", self.row[1])}
        if self.sets and self.sets[0] in ("id", "pid"):
            changed = {(self.table, "PRIMARY" if self.sets[0] == "id" else "pid", self.sets[1])}
            followed = ({(child, "pid", self.sets[1]) for child in CHILDREN.get(self.table, "")}
                        if self.sets[0] == "id" else set())
            return changed | followed
        return set()


class FamilyDifference(Difference):
    """A step that went otherwise on the two engines."""

    def has_come_meanwhile(self, _entries: list) -> bool:
        """Scans have one key."""
        return False

    def compare(self, theirs, ours) -> None:
        """Nothing is kept."""

    def judge_plans(self, _wait, _look) -> str:
        """There is one way to go about a statement."""
        return ""

    def judge_behind(self, *_) -> str:
        """Not asked."""
        return ""

    def judge_cycle(self, wait, look) -> str:
        """A wait in a deadlock of InnoDB."""
        return self.judge_theirs(wait, look)

    def locking(self, entry, _inside: bool) -> list:
        """All do."""
        return [FamilyStatement(entry.text, entry.number)]

    def judge_theirs(self, wait, look) -> str:
        """Why InnoDB waits and Cheetah does not."""
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
        """Why Cheetah waits and InnoDB does not."""
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
        """Whether the one who is waited for is looking for children of this table, and waits."""
        return (statement.removes and statement.table != wait.table
                and any(entry.number == statement.step for entry in look.under_way.values()))

    @staticmethod
    def only_looks(statement: FamilyStatement, table: str) -> bool:
        """Whether a statement has to do with children of this table only as it looks for them."""
        return (statement.removes and statement.table != table
                and table in KEEPS_PARENT[statement.text.split()[0]])
