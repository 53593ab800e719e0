"""Tests whether the server accepts an engine for tables and constraints between them, with empty
copies in the journal's database. So the program needs no list of the engine's features."""

import time

from cheetah_client.connection import Connection, ServerError, name, text
from cheetah_client.say import Failure

from .journal import DATABASE
from .tables import Constraint, Place, Table

PREFIX = "trial_"
# Two runs that plan at the same time take turns, because each removes leftover copies.
LOCK_NAME, LOCK_SECONDS = "cheetah_migrate_trial", 600
SAMPLE_BYTES = 32 << 20


class Trial:
    """Empty copies of tables, not in the binary log, which go at the end of the block."""

    def __init__(self, server: Connection, engine: str):
        self.server, self.engine = server, engine
        self.copies, self.names = {}, 0

    def __enter__(self):
        if self.server.value(f"SELECT GET_LOCK({text(LOCK_NAME)}, {LOCK_SECONDS})") != "1":
            raise Failure("another run has been making its plan for long; try again")
        self._remove()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self._remove()
            self.server.run(f"DO RELEASE_LOCK({text(LOCK_NAME)})")

    def refusals(self, tables: list, constraints: list) -> dict:
        """Returns the reasons why tables of a group cannot have the engine, by place. Constraints
        are tried only if the engine is accepted for each table."""
        found = {}
        for table in tables:
            if said := self._table(table):
                found[table.place] = said
        if not found:
            for constraint in constraints:
                if said := self._constraint(constraint):
                    found.setdefault(constraint.child, f"the constraint {constraint.name}: {said}")
        self._remove()
        return found

    def bytes_a_second(self, table: Table) -> float:
        """Returns the rate of copying the table into the engine in bytes per second, measured with
        a sample of rows, or 0 if it cannot be measured."""
        if (table.kind == "SEQUENCE" or not table.rows or not table.bytes_told
                or self._table(table)):
            return 0
        rows = max(1, min(table.rows, SAMPLE_BYTES * table.rows // table.bytes_told))
        target = name(DATABASE, self.copies[table.place])
        started = time.monotonic()
        try:
            self.server.run(f"INSERT INTO {target} SELECT * FROM {table.place.sql()} LIMIT {rows}")
            copied = int(self.server.value(f"SELECT COUNT(*) FROM {target}"))
        except ServerError:   # invisible columns, or columns that cannot be assigned
            copied = 0
        # No `finally`: after Ctrl-C an answer is outstanding, so no statement may be sent.
        seconds = time.monotonic() - started
        self._remove()
        return copied * table.bytes_told / table.rows / seconds

    def _table(self, table: Table) -> str:
        """Returns the server's objection to the engine for a table, or an empty string."""
        if table.kind == "SEQUENCE":
            return ""
        self.names += 1
        copy = self.copies[table.place] = PREFIX + str(self.names)
        try:
            self.server.run(f"CREATE TABLE {name(DATABASE, copy)} LIKE {table.place.sql()}")
            self.server.run(f"ALTER TABLE {name(DATABASE, copy)} ENGINE={self.engine}")
        except ServerError as refusal:
            return str(refusal).replace(f"`{DATABASE}`.`{copy}`", str(table.place))
        return ""

    def _constraint(self, constraint: Constraint) -> str:
        """Returns the server's objection to a constraint between copies, or an empty string."""
        self.names += 1
        child, parent = self.copies[constraint.child], self.copies[constraint.parent]
        copy = constraint._replace(child=Place(DATABASE, child), parent=Place(DATABASE, parent),
                                   name=PREFIX + str(self.names))
        try:
            self.server.run(f"ALTER TABLE {name(DATABASE, child)} ADD {copy.clause()}")
        except ServerError as refusal:
            return str(refusal)
        return ""

    def _remove(self) -> None:
        """Drops all copies, including those left by a killed run."""
        left = [line[0] for line in self.server.run(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
            f"{text(DATABASE)} AND TABLE_NAME LIKE {text(PREFIX.replace('_', chr(92) + '_') + '%')}"
        )]
        if left:
            self.server.run("SET SESSION foreign_key_checks = 0")
            self.server.run("DROP TABLE " + ", ".join(name(DATABASE, copy) for copy in left))
            self.server.run("SET SESSION foreign_key_checks = 1")
        self.copies = {}
