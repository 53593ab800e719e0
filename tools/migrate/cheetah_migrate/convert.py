"""Converts one group of tables to an engine, without its constraints meanwhile.

Each step checks the current state and does what is missing, so it can be repeated after a kill:

1. Write each existing constraint to the journal.
2. If a table must be converted, drop the existing constraints.
3. Convert tables that have another engine, the smallest first.
4. Add missing constraints from the journal. The server checks all rows.
5. Compare the definitions with the original ones.

Unless the operator decides otherwise, the tables of a group with constraints are under LOCK TABLES,
which the server keeps across ALTER TABLE, so no row can lose its parent."""

import re

from cheetah_client.connection import Connection, ServerError, name
from cheetah_client.say import Failure, Progress, line, several, size

from . import orphans, tables
from .journal import Entry, Journal, Member

LOCK_WAIT_TIMEOUT, CANNOT_SWITCH, CANNOT_RENAME = 1205, 1217, 1025
ORPHAN = {1216, 1452}
# The message of error 1025, in any language, if InnoDB finds an existing file with that name.
IN_THE_WAY = re.compile(r"'\./([^']+)' \([^:()]+: 184 ")
WAITS_MAX = 30
POLL_SECONDS = 0.3


class Conversion:
    """Converts tables on the connection `work`. `look` reads the current state and writes the
    journal. `lock`: lock groups with constraints. `checked`: check rows for new constraints."""

    def __init__(self, work: Connection, look: Connection, lock: bool, checked: bool):
        self.work, self.look, self.journal = work, look, Journal(look)
        self.lock, self.checked = lock, checked

    def begin(self, group, engine: str) -> Entry:
        """Locks a group (`groups.Group`), checks it against the plan, and writes it down."""
        self.hold(group.places, group.constraints)
        found = [self.table(place) for place in group.places]
        constraints = self.constraints(group.places)
        if set(constraints) != set(group.constraints):
            raise Failure("constraints have changed since the plan was made. Nothing was done "
                          "with this group: run it again")
        members = [Member(number, table.place, table.engine,
                          engine if not same(table.engine, engine) else table.engine,
                          tables.definition(self.look, table.place))
                   for number, table in enumerate(found, 1)]
        sizes = {table.place: table.bytes_now for table in found}
        return Entry(self.journal.open(members, sizes, constraints), "after", members, constraints)

    def finish(self, entry: Entry, is_held: bool = False) -> None:
        """Completes a group and closes it. If a step fails, raises Failure; it stays open."""
        if not is_held:
            self.hold([member.place for member in entry.members], entry.constraints)
        self.write_down_all(entry)
        todo = [(table.bytes_now, member) for member in entry.members
                if not same((table := self.table(member.place)).engine, entry.engine(member))]
        if todo:
            self.drop_constraints(entry)
        for _, member in sorted(todo, key=lambda pair: (pair[0], pair[1].number)):
            self.convert(entry, member)
        self.add_constraints(entry)
        self.mend_names(entry)
        self.compare(entry)
        self.journal.close(entry)
        self.work.run("UNLOCK TABLES")

    def hold(self, places: list, constraints: list) -> None:
        """Locks the tables of a group with constraints, if locking is enabled."""
        if self.lock and constraints:
            self.patiently("LOCK TABLES " + ", ".join(f"{place.sql()} WRITE" for place in places))

    def table(self, place):
        found = tables.read_tables(self.look, place=place)
        if not found:
            raise Failure(f"{place} is gone. If it was dropped on purpose: "
                          f"cheetah-migrate forget '{place}'")
        return found[0]

    def constraints(self, places: list) -> list:
        return [constraint for place in places
                for constraint in tables.read_constraints(self.look, place)]

    def write_down_all(self, entry: Entry) -> None:
        """Adds constraints to the journal that were added to the group since it was written."""
        places = [member.place for member in entry.members]
        known = {str(constraint): constraint for constraint in entry.constraints}
        fresh = []
        for constraint in self.constraints(places):
            written = known.get(str(constraint))
            if written and written != constraint:
                raise Failure(f"{constraint} is there with another definition than in the journal. "
                              "Drop the one that is wrong: the constraint, or its row in "
                              f"cheetah_migrate.constraints where group_id = {entry.id}")
            if constraint.parent not in places:
                raise Failure(f"{constraint} has come since, and refers to {constraint.parent}, "
                              "which is not in this group: drop it, and add it again afterwards")
            if not written:
                fresh.append(constraint)
        if fresh:
            self.journal.add_constraints(entry, fresh)

    def drop_constraints(self, entry: Entry) -> None:
        """Drops all existing constraints, with one statement per table."""
        there = self.constraints([member.place for member in entry.members])
        for child, own in by_child(there):
            self.patiently(f"ALTER TABLE {child.sql()} " + ", ".join(
                f"DROP FOREIGN KEY {name(constraint.name)}" for constraint in own))
        if there:
            line(f"  {several(len(there), 'constraint')} dropped; they are in the journal")

    def convert(self, entry: Entry, member: Member) -> None:
        engine, before = entry.engine(member), self.table(member.place)
        progress = Progress(str(member.place), before.bytes_now)
        own = [one for one in entry.constraints if one.child == member.place]
        anew = tables.made_anew(tables.definition(self.look, member.place), own)
        try:
            warnings = self.patiently(
                f"ALTER TABLE {member.place.sql()} " + ", ".join([f"ENGINE={engine}", *anew]),
                progress, "SHOW WARNINGS")
        except ServerError as refusal:
            raise Failure(f"{member.place} could not get the engine {engine}: {refusal}"
                          f"{advice(refusal)}") from refusal
        after = self.table(member.place)
        if not same(after.engine, engine):
            raise Failure(f"{member.place} has got the engine {after.engine}, not {engine}")
        self.work.run(f"ANALYZE NO_WRITE_TO_BINLOG TABLE {member.place.sql()}")
        after = self.table(member.place)
        seconds = progress.end(f"{size(before.bytes_now)} are {size(after.bytes_now)} in {engine}")
        for warning in warnings:
            line(f"    {warning[0].lower()}: {warning[2]}")
        self.journal.converted(entry, member, after.bytes_now, seconds)

    def add_constraints(self, entry: Entry) -> None:
        """Adds missing constraints from the journal. The server checks all rows."""
        there = set(self.constraints([member.place for member in entry.members]))
        missing = [one for one in entry.constraints if one not in there]
        refused = []
        self.work.run(f"SET SESSION foreign_key_checks = {int(self.checked)}")
        for child, own in by_child(missing):
            progress = Progress(f"{child}: constraints", self.table(child).bytes_now)
            refused += self.add(own, progress)
            progress.end(f"{several(len(own), 'constraint')} "
                         + ("checked" if self.checked else "added unchecked"))
        # No `finally`: after Ctrl-C an answer is outstanding, so no statement may be sent.
        self.work.run("SET SESSION foreign_key_checks = 1")
        if refused:
            self.work.run("UNLOCK TABLES")
            raise Failure(self.explained(refused))

    def add(self, own: list, progress: Progress) -> list:
        """Adds one table's constraints, together or singly; returns refused ones with reasons."""
        try:
            self.patiently(f"ALTER TABLE {own[0].child.sql()} " + ", ".join(
                f"ADD {one.clause()}" for one in own), progress)
        except ServerError as refusal:
            if len(own) == 1:
                return [(own[0], refusal)]
            return [found for one in own for found in self.add([one], progress)]
        return []

    def mend_names(self, entry: Entry) -> None:
        """Restores the names of indexes that new constraints replaced in unconverted tables."""
        for member in entry.members:
            before = tables.indexes(member.definition)
            now = tables.indexes(tables.definition(self.look, member.place))
            for label in before.keys() - now.keys():
                others = [other for other in now.keys() - before.keys()
                          if now[other] == before[label]]
                if others:
                    self.patiently(f"ALTER TABLE {member.place.sql()} RENAME INDEX "
                                   f"{name(others[0])} TO {name(label)}")
                    del now[others[0]]

    def explained(self, refused: list) -> str:
        """Explains why constraints could not be added, with queries that find the rows."""
        lines = ["these constraints could not be added; all others are there:"]
        for constraint, refusal in refused:
            lines.append(f"  {constraint}: {refusal}")
        if violated := [constraint for constraint, refusal in refused if refusal.number in ORPHAN]:
            lines += [orphans.told(orphans.found(self.look, violated)),
                      "Mend the rows. Or have the constraints added all the same: --unchecked"]
        return "\n".join(lines)

    def compare(self, entry: Entry) -> None:
        """Reports definitions that changed in more than the engine."""
        for member in entry.members:
            now = tables.definition(self.look, member.place)
            before, after = (tables.without_engine(text).splitlines()
                             for text in (member.definition, now))
            if before != after:
                line(f"  {member.place}: its definition has changed:")
                for sign, some, others in (("-", before, after), ("+", after, before)):
                    for words in some:
                        if words not in others:
                            line(f"    {sign} {words.strip()}")
                if sorted(before) == sorted(after):
                    line("    the order of its indexes")

    def patiently(self, statement: str, progress: Progress = None, afterwards: str = "") -> list:
        """Runs a statement on the working connection, and again if it timed out waiting for a lock.
        Shows its progress. Returns the rows of `afterwards`, if given."""
        for attempt in range(1, WAITS_MAX + 1):
            try:
                self.work.start(statement + (f";\n{afterwards}" if afterwards else ""))
                while not self.work.has_ended(POLL_SECONDS):
                    if progress:
                        progress.show(*self.part_done())
                return self.work.result()
            except ServerError as refusal:
                if refusal.number != LOCK_WAIT_TIMEOUT or attempt == WAITS_MAX:
                    raise
            line(f"  others use the tables; waiting, {attempt} of {WAITS_MAX}: "
                 f"{statement[:100]}")
        raise AssertionError("the loop ends by return or raise")

    def part_done(self) -> tuple:
        """Returns the completed part of the running statement, from 0 to 1, and its state."""
        rows = self.look.run("SELECT PROGRESS, IFNULL(STATE, '') FROM "
                             f"information_schema.PROCESSLIST WHERE ID = {self.work.id}")
        return (float(rows[0][0]) / 100, rows[0][1]) if rows else (0.0, "")


def advice(refusal: ServerError) -> str:
    """Returns advice for a table that could not be converted, if the cause is known."""
    if refusal.number == CANNOT_SWITCH:
        return ". A table outside this group refers to it by a new constraint: drop that"
    found = refusal.number == CANNOT_RENAME and IN_THE_WAY.search(str(refusal))
    if found:
        return (f". A file of InnoDB is in the way: {found[1]}.ibd in the data folder. A crash of "
                "the server can leave one. It belongs to no table if this query finds nothing: "
                "SELECT * FROM information_schema.INNODB_SYS_TABLES "
                f"WHERE NAME = '{found[1]}'. If so, remove the file, then: cheetah-migrate resume")
    return ""


def same(engine: str, other: str) -> bool:
    return engine.lower() == other.lower()


def by_child(constraints: list) -> list:
    found = {}
    for constraint in constraints:
        found.setdefault(constraint.child, []).append(constraint)
    return sorted(found.items())
