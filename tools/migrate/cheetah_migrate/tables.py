"""Reads tables, and the constraints between them, from the server."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from cheetah_client.connection import Connection, name, text


SYSTEM = ("mysql", "sys", "information_schema", "performance_schema", "cheetah_migrate")
PLAIN = re.compile(r"[\w$-]+")
KINDS = ("BASE TABLE", "SYSTEM VERSIONED", "SEQUENCE")


class Place(NamedTuple):
    """A table's database and name."""

    schema: str
    table: str

    def __str__(self):
        """Returns the name for messages, in a form that the command line accepts."""
        return ".".join(part if PLAIN.fullmatch(part) else name(part) for part in self)

    def sql(self) -> str:
        return name(self.schema, self.table)


@dataclass
class Table:
    """A table in information_schema.TABLES. `rows`, `bytes_told` (all) and `bytes_of_indexes` are
    estimates and give the size of a row. `bytes_in_files`: of its own files, or 0."""

    place: Place
    engine: str
    kind: str
    rows: int
    bytes_told: int
    bytes_of_indexes: int
    options: str
    bytes_in_files: int = 0

    @property
    def bytes_now(self) -> int:
        """Returns the current size of the table, as far as known."""
        return self.bytes_in_files or self.bytes_told

    @property
    def is_partitioned(self) -> bool:
        return "partitioned" in self.options.lower().split()

    @property
    def key_block_size(self) -> int:
        """Returns the KEY_BLOCK_SIZE of the definition, or 8, which is the engine's default."""
        found = re.search(r"key_block_size=(\d+)", self.options, re.I)
        return min(int(found[1]) or 8, 8) if found else 8


class Constraint(NamedTuple):
    """A foreign key with all parts of its definition."""

    child: Place
    name: str
    columns: tuple
    parent: Place
    parent_columns: tuple
    on_delete: str
    on_update: str

    def __str__(self):
        return f"{self.child}.{self.name}"

    def clause(self) -> str:
        """Returns the clause of ALTER TABLE that adds the constraint."""
        actions = "".join(f" ON {event} {rule}" for event, rule in
                          (("DELETE", self.on_delete), ("UPDATE", self.on_update))
                          if rule != "RESTRICT")
        return (f"CONSTRAINT {name(self.name)} FOREIGN KEY ({', '.join(map(name, self.columns))}) "
                f"REFERENCES {self.parent.sql()} ({', '.join(map(name, self.parent_columns))})"
                f"{actions}")

    def statement(self) -> str:
        return f"ALTER TABLE {self.child.sql()} ADD {self.clause()}"

    def flat(self) -> list:
        """Returns the constraint in a form for JSON, which `from_flat` reads."""
        return [list(part) if isinstance(part, tuple) else part for part in self]


def from_flat(parts: list) -> Constraint:
    """Returns the constraint that `Constraint.flat` stored."""
    child, label, columns, parent, parent_columns, *rules = parts
    return Constraint(Place(*child), label, tuple(columns), Place(*parent), tuple(parent_columns),
                      *rules)


def read_tables(server: Connection, schemas: list = None, place: Place = None) -> list:
    """Returns one table, or all in these databases (None: in all but system databases)."""
    where = [f"TABLE_TYPE IN ({', '.join(map(text, KINDS))})"]
    if place:
        where += [f"TABLE_SCHEMA = {text(place.schema)}", f"TABLE_NAME = {text(place.table)}"]
    elif schemas is not None:
        where.append(f"TABLE_SCHEMA IN ({', '.join(map(text, schemas))})")
    rows = server.run(
        "SELECT TABLE_SCHEMA, TABLE_NAME, IFNULL(ENGINE, ''), TABLE_TYPE, IFNULL(TABLE_ROWS, 0), "
        "IFNULL(DATA_LENGTH, 0) + IFNULL(INDEX_LENGTH, 0), IFNULL(INDEX_LENGTH, 0), "
        "IFNULL(CREATE_OPTIONS, '') FROM information_schema.TABLES WHERE " + " AND ".join(where))
    found = [Table(Place(row[0], row[1]), row[2], row[3], *map(int, row[4:7]), row[7])
             for row in rows if row[0].lower() not in SYSTEM]
    # These views compare names case-insensitively.
    found = [table for table in found if not place or table.place == place]
    files = innodb_files(server)
    for table in found:
        if table.engine.lower() == "innodb":
            table.bytes_in_files = files.get("/".join(map(file_name, table.place)), 0)
    return found


def innodb_files(server: Connection) -> dict:
    """Returns the sizes of InnoDB tables with own files, by file name; partitions add up."""
    found = {}
    for label, count in server.run(
            "SELECT NAME, ALLOCATED_SIZE FROM information_schema.INNODB_SYS_TABLESPACES"):
        table = re.split("#P#", label, flags=re.I)[0]
        found[table] = found.get(table, 0) + int(count)
    return found


def file_name(part: str) -> str:
    """Returns a name as the server encodes it in file names. (Some accented letters have other
    codes. A table with such letters is treated as having no files.)"""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"@{ord(found[0]):04x}", part)


def read_constraints(server: Connection, child: Place = None) -> list:
    """Returns all constraints of the server, or those of one table."""
    columns, rules = "", ""
    if child:
        columns = f"AND TABLE_SCHEMA = {text(child.schema)} AND TABLE_NAME = {text(child.table)}"
        rules = (f"WHERE CONSTRAINT_SCHEMA = {text(child.schema)} "
                 f"AND TABLE_NAME = {text(child.table)}")
    actions = {(row[0], row[1], row[2]): row[3:] for row in server.run(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE "
        f"FROM information_schema.REFERENTIAL_CONSTRAINTS {rules}")}
    parts = {}
    for row in server.run(
            "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION, COLUMN_NAME, "
            "REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME "
            "FROM information_schema.KEY_COLUMN_USAGE "
            f"WHERE REFERENCED_TABLE_NAME IS NOT NULL {columns}"):
        if not child or Place(row[0], row[1]) == child:
            parts.setdefault(tuple(row[:3]), []).append((int(row[3]), *row[4:]))
    found = []
    for key, lines in sorted(parts.items()):
        lines.sort()
        found.append(Constraint(Place(key[0], key[1]), key[2], tuple(line[1] for line in lines),
                                Place(lines[0][2], lines[0][3]),
                                tuple(line[4] for line in lines), *actions[key]))
    return found


def definition(server: Connection, place: Place) -> str:
    return server.run(f"SHOW CREATE TABLE {place.sql()}")[0][1]


def without_engine(text_of_table: str) -> str:
    """Returns a definition without the engine, constraints sorted by name: equal for tables that
    differ only in the engine. (InnoDB does not double backquotes in constraint names.)"""
    lines = [re.sub(r"(\bENGINE ?= ?)\w+", r"\1-", line) if not line.startswith("  ") else line
             for line in text_of_table.splitlines()]
    at = [number for number, line in enumerate(lines) if line.startswith("  CONSTRAINT `")
          and " FOREIGN KEY " in line]
    for number, line in zip(at, sorted(lines[number].rstrip(",").replace("``", "`")
                                       for number in at)):
        lines[number] = line
    return "\n".join(line.rstrip(",") for line in lines)


def indexes(text_of_table: str) -> dict:
    """Returns the non-unique indexes of a definition: name -> rest of the line."""
    return {found[1][1:-1].replace("``", "`"): found[2] for found in
            re.finditer(r"^  KEY (`(?:[^`]|``)+`) (.*?),?$", text_of_table, re.M)}


def made_anew(text_of_table: str, constraints: list) -> list:
    """Returns clauses of ALTER TABLE that recreate the indexes of these constraints and the indexes
    after them. Otherwise a constraint that is added again would replace an index that the server
    made for it with one that has another name and is last. During a copy this costs nothing."""
    serving = tuple("(" + ",".join(map(name, constraint.columns)) + ")"
                    for constraint in constraints)
    found = list(indexes(text_of_table).items())
    first = next((at for at, (_, rest) in enumerate(found) if rest.startswith(serving)), len(found))
    return [f"DROP INDEX {name(label)}, ADD KEY {name(label)} {rest}"
            for label, rest in found[first:]]
