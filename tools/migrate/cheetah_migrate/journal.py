"""The journal of unfinished conversions. It is stored in the server, so no crash loses it.

A group is written to the journal, with each constraint as the statement that adds it, and is on
disk before its first constraint is dropped. The existing tables and constraints show the progress.
A group is closed when all its tables and constraints are complete and on disk.

The journal is InnoDB tables in the database `cheetah_migrate`, not in the binary log. The column
`definition` of `constraints` is a statement that can be run by hand."""

import json
from dataclasses import dataclass

from cheetah_client.connection import Connection, name, value

from .tables import Place, from_flat

DATABASE = "cheetah_migrate"
TABLES = {
    "groups": "id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, state VARCHAR(10) NOT NULL "
              "COMMENT 'open, done or undone', goal VARCHAR(6) NOT NULL COMMENT 'after or before: "
              "the engine that its tables are to get', started DATETIME NOT NULL, ended DATETIME",
    "tables": "group_id INT UNSIGNED NOT NULL, number INT UNSIGNED NOT NULL, table_schema "
              "VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL, engine_before VARCHAR(64) "
              "NOT NULL, engine_after VARCHAR(64) NOT NULL, definition LONGTEXT NOT NULL COMMENT "
              "'before', bytes_before BIGINT UNSIGNED NOT NULL, bytes_after BIGINT UNSIGNED, "
              "seconds DOUBLE, PRIMARY KEY (group_id, number)",
    "constraints": "group_id INT UNSIGNED NOT NULL, number INT UNSIGNED NOT NULL, table_schema "
                   "VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL, constraint_name "
                   "VARCHAR(64) NOT NULL, definition LONGTEXT NOT NULL, parts LONGTEXT NOT NULL "
                   "COMMENT 'JSON', PRIMARY KEY (group_id, number)",
}


@dataclass
class Member:
    number: int
    place: Place
    before: str
    after: str
    definition: str


@dataclass
class Entry:
    """A group in the journal. `goal`: `after` (convert its tables), or `before` (convert back)."""

    id: int
    goal: str
    members: list
    constraints: list

    def engine(self, member: Member) -> str:
        """Returns the engine that a table should get."""
        return member.after if self.goal == "after" else member.before


class Journal:
    """The journal, on a connection that does not write to the binary log."""

    def __init__(self, server: Connection):
        self.server = server

    def make(self) -> None:
        self.server.run(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4 "
                        "COLLATE utf8mb4_bin")
        for label, columns in TABLES.items():
            self.server.run(f"CREATE TABLE IF NOT EXISTS {name(DATABASE, label)} ({columns}) "
                            "ENGINE=InnoDB")

    def exists(self) -> bool:
        found = self.server.value(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
            f"{value(DATABASE)} AND TABLE_NAME IN ({', '.join(map(value, TABLES))})")
        return int(found) == len(TABLES)

    def open(self, members: list, bytes_now: dict, constraints: list) -> int:
        """Writes a group to the journal and returns its ID. The group is on disk on return."""
        self.server.run("START TRANSACTION")
        self._insert("groups", "state, goal, started", ["'open', 'after', NOW()"])
        number = int(self.server.value("SELECT LAST_INSERT_ID()"))
        self._insert("tables", "group_id, number, table_schema, table_name, engine_before, "
                     "engine_after, definition, bytes_before",
                     [row(number, member.number, *member.place, member.before, member.after,
                          member.definition, bytes_now[member.place]) for member in members])
        self._add(number, 0, constraints)
        self._commit()
        return number

    def add_constraints(self, entry: Entry, constraints: list) -> None:
        """Adds constraints that appeared in an open group. They are on disk on return."""
        self.server.run("START TRANSACTION")
        self._add(entry.id, len(entry.constraints), constraints)
        self._commit()
        entry.constraints += constraints

    def set_goal(self, entry: Entry, goal: str) -> None:
        """Changes the goal of an open group. The change is on disk on return."""
        self._update(f"goal = {value(goal)} WHERE id = {entry.id}")
        entry.goal = goal

    def converted(self, entry: Entry, member: Member, bytes_after: int, seconds: float) -> None:
        """Records the size and duration of a conversion, for `status` and later estimates."""
        self.server.run(
            f"UPDATE {name(DATABASE, 'tables')} SET bytes_after = {bytes_after}, seconds = "
            f"{seconds:.3f} WHERE group_id = {entry.id} AND number = {member.number}")

    def forget(self, entry: Entry, member: Member) -> None:
        """Removes a dropped table and its constraints from an open group, on disk on return."""
        self.server.run("START TRANSACTION")
        self.server.run(f"DELETE FROM {name(DATABASE, 'tables')} WHERE group_id = {entry.id} "
                        f"AND number = {member.number}")
        keep = [one for one in entry.constraints if member.place not in (one.child, one.parent)]
        self.server.run(f"DELETE FROM {name(DATABASE, 'constraints')} WHERE group_id = {entry.id}")
        self._add(entry.id, 0, keep)
        self._commit()
        entry.members.remove(member)
        entry.constraints[:] = keep

    def close(self, entry: Entry) -> None:
        """Marks a group as complete. Its tables are on disk before the journal says so."""
        self.server.run("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")
        state = "done" if entry.goal == "after" else "undone"
        self._update(f"state = '{state}', ended = NOW() WHERE id = {entry.id}")

    def under_way(self) -> list:
        found = []
        for number, goal in self.server.run(f"SELECT id, goal FROM {name(DATABASE, 'groups')} "
                                            "WHERE state = 'open' ORDER BY id"):
            members = [Member(int(line[0]), Place(line[1], line[2]), *line[3:])
                       for line in self.server.run(
                           "SELECT number, table_schema, table_name, engine_before, engine_after, "
                           f"definition FROM {name(DATABASE, 'tables')} WHERE group_id = {number} "
                           "ORDER BY number")]
            constraints = [from_flat(json.loads(line[0])) for line in self.server.run(
                f"SELECT parts FROM {name(DATABASE, 'constraints')} WHERE group_id = {number} "
                "ORDER BY number")]
            found.append(Entry(int(number), goal, members, constraints))
        return found

    def closed(self) -> list:
        """Returns closed groups: ID, state, end, tables, bytes before and after, seconds."""
        return self.server.run(
            "SELECT g.id, g.state, g.ended, COUNT(*), SUM(t.bytes_before), "
            "IFNULL(SUM(t.bytes_after), 0), IFNULL(SUM(t.seconds), 0) FROM "
            f"{name(DATABASE, 'groups')} g JOIN {name(DATABASE, 'tables')} t ON t.group_id = g.id "
            "WHERE g.state <> 'open' GROUP BY g.id ORDER BY g.id")

    def _add(self, number: int, first: int, constraints: list) -> None:
        self._insert("constraints", "group_id, number, table_schema, table_name, constraint_name, "
                     "definition, parts",
                     [row(number, first + at, *one.child, one.name, one.statement(),
                          json.dumps(one.flat())) for at, one in enumerate(constraints)])

    def _insert(self, table: str, columns: str, rows: list) -> None:
        for line in rows:
            self.server.run(f"INSERT INTO {name(DATABASE, table)} ({columns}) VALUES ({line})")

    def _update(self, what: str) -> None:
        self.server.run("START TRANSACTION")
        self.server.run(f"UPDATE {name(DATABASE, 'groups')} SET {what}")
        self._commit()

    def _commit(self) -> None:
        """Commits durably, regardless of innodb_flush_log_at_trx_commit, because later steps may be
        durable at once in another engine. InnoDB syncs its log at the end of each CREATE TABLE."""
        self.server.run("COMMIT")
        if self.server.value("SELECT @@innodb_flush_log_at_trx_commit") != "1":
            synced = name(DATABASE, "synced")
            self.server.run(f"CREATE OR REPLACE TABLE {synced} (a INT) ENGINE=InnoDB")
            self.server.run(f"DROP TABLE {synced}")


def row(*values) -> str:
    return ", ".join(map(value, values))
