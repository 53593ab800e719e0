"""Tables whose names are reassigned while readers run, and a journal of their rows.

The journal is an ordinary table, so a snapshot that reads the journal also shows which rows every
name must have in this snapshot. `Changes.change` writes to the journal before a statement the rows
that a name may have from then on, and afterwards the rows that the name has. A row is a pair of a
number and a generation."""

import random
import zlib

ROWS = 120
STEP = ROWS // 4          # the number of rows in a partition
JOURNAL = "journal"
ABSENT = "absent"
COLUMNS = "id INT, gen INT NOT NULL, pad VARCHAR(400) NOT NULL"
RANGES = ", ".join(f"PARTITION p{no} VALUES LESS THAN ({(no + 1) * STEP + 1})" for no in range(4))
KEYS = "PRIMARY KEY (id), KEY g (gen)"
# The keys and partitions of each table. Initially each table has the rows 1 to ROWS, except
# `other`, which has the rows of the partition p1.
TABLES = {
    "swapped": (KEYS, ""),
    "changed": (KEYS, ""),
    "words": (f"{KEYS}, FULLTEXT KEY (pad)", ""),
    "heap": ("KEY g (gen)", ""),
    "ranged": (KEYS, f"PARTITION BY RANGE (id) ({RANGES})"),
    "parted": (KEYS, f"PARTITION BY RANGE (id) ({RANGES})"),
    "hashed": (KEYS, "PARTITION BY HASH (id) PARTITIONS 3"),
    "powers": (KEYS, "PARTITION BY LINEAR HASH (id) PARTITIONS 3"),
    "nested": (KEYS, "PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 "
                     f"({RANGES})"),
    "other": (KEYS, ""),
}
# The tables without partitions that have all rows.
WHOLE = ["swapped", "changed", "words", "heap"]


def digest(rows) -> str:
    """Returns a digest of rows, given as pairs in any order."""
    text = ";".join(f"{number},{generation}" for number, generation in sorted(rows))
    return f"{len(rows)}:{zlib.crc32(text.encode()):08x}"


def part(no: int) -> range:
    return range(no * STEP + 1, (no + 1) * STEP + 1)


class Changes:
    """Creates the tables and changes them at random, on one connection."""

    def __init__(self, server, seed, engine: str = "CHEETAH"):
        self.server, self.engine, self.rng = server, engine, random.Random(seed)
        self.rows, self.generation, self.cursor = {}, 0, None
        self.made = {}   # the number of changes made, by kind
        self.kinds = [getattr(self, name) for name in dir(self) if name.startswith("do_")]

    def make(self) -> None:
        self.connect()
        for database in ("d", "w"):
            self.run(f"CREATE DATABASE IF NOT EXISTS {database}")
        self.run("USE d")
        self.run(f"CREATE TABLE {JOURNAL} (name VARCHAR(60) PRIMARY KEY, allowed VARCHAR(200) "
                 f"NOT NULL) ENGINE={self.engine}")
        for name in TABLES:
            self.create(name, f"d.{name}")
            self.rows[name] = self.new_rows(part(1) if name == "other" else range(1, ROWS + 1))
            self.fill(f"d.{name}", self.rows[name])
            self.write_journal({name: [self.rows[name]]})

    def connect(self) -> None:
        self.cursor = self.server.connect("", autocommit=True).cursor()
        self.run("SET lock_wait_timeout = 100")

    def one(self) -> None:
        kind = self.rng.choice(self.kinds)
        kind()
        self.made[kind.__name__] = self.made.get(kind.__name__, 0) + 1

    def run(self, statement: str) -> None:
        try:
            self.cursor.execute(statement)
            self.cursor.fetchall()
        except Exception as failure:
            failure.add_note(statement[:200])
            raise

    def new_rows(self, numbers) -> dict:
        self.generation += 1
        return dict.fromkeys(numbers, self.generation)

    def definition(self, name: str) -> str:
        keys, partitions = TABLES[name]
        return f"({COLUMNS}, {keys}) ENGINE={self.engine} {partitions}"

    def create(self, name: str, place: str) -> None:
        self.run(f"CREATE TABLE {place} {self.definition(name)}")

    @staticmethod
    def values(rows: dict) -> str:
        return ", ".join(f"({number}, {generation}, REPEAT('word {generation} ', 20))"
                         for number, generation in rows.items())

    def fill(self, place: str, rows: dict) -> None:
        if rows:
            self.run(f"INSERT INTO {place} (id, gen, pad) VALUES {self.values(rows)}")

    def query(self, rows: dict) -> str:
        """Returns a SELECT that produces these rows, which must all have the same generation."""
        generation = next(iter(rows.values()))
        numbers = ", ".join(map(str, rows))
        return (f"SELECT seq id, {generation} gen, REPEAT('word {generation} ', 20) pad "
                f"FROM mysql.seq_1_to_{ROWS} WHERE seq IN ({numbers})")

    def change(self, after: dict, *steps, between=()) -> None:
        """Runs `steps` (statements or functions), after which the names have the rows `after`.
        During the steps they may have the old rows, the new rows, or rows from `between`."""
        allowed = {name: [self.rows.get(name), rows, *between] for name, rows in after.items()}
        self.write_journal(allowed)
        for step in steps:
            if callable(step):
                step()
            else:
                self.run(step)
        self.rows |= after
        self.write_journal({name: [rows] for name, rows in after.items()})

    def write_journal(self, allowed: dict) -> None:
        self.run("BEGIN")
        for name, choices in allowed.items():
            words = {ABSENT if rows is None else digest(rows.items()) for rows in choices}
            self.run(f"REPLACE INTO d.{JOURNAL} VALUES ('{name}', '{' '.join(sorted(words))}')")
        self.run("COMMIT")

    def anew(self, names=WHOLE) -> tuple:
        """Returns a random name from `names`, and its rows with a new generation."""
        name = self.rng.choice(list(names))
        return name, self.new_rows(self.rows[name])

    def do_update(self) -> None:
        name, rows = self.anew(TABLES)
        self.run("BEGIN")
        self.run(f"UPDATE d.{name} SET gen = {self.generation}")
        self.rows[name] = rows
        self.run(f"UPDATE d.{JOURNAL} SET allowed = '{digest(rows.items())}' WHERE name = '{name}'")
        self.run("COMMIT")

    def do_swap_by_copy(self) -> None:
        name = self.rng.choice([name for name in TABLES if name != "other"])
        is_shown, is_same = self.rng.random() < 0.3, self.rng.random() < 0.5
        copy = "d.copying" if is_shown else "w.n"
        rows = self.rows[name] if is_same else self.new_rows(self.rows[name])
        if is_shown:
            self.write_journal({"copying": [None, {}, rows]})
        self.run(f"CREATE TABLE {copy} LIKE d.{name}")
        if is_same:
            self.run(f"INSERT INTO {copy} SELECT * FROM d.{name}")
        else:
            self.fill(copy, rows)
        self.change({name: rows}, f"RENAME TABLE d.{name} TO w.o, "
                    f"{copy} TO d.{name}", "DROP TABLE w.o")
        if is_shown:
            self.write_journal({"copying": [None]})

    def do_swap_names(self) -> None:
        first, second = self.rng.sample(WHOLE, 2)
        for _ in range(self.rng.randint(1, 2)):
            self.change({first: self.rows[second], second: self.rows[first]},
                        f"RENAME TABLE d.{first} TO w.x, d.{second} TO d.{first}, "
                        f"w.x TO d.{second}")

    def do_create_or_replace_select(self) -> None:
        name, rows = self.anew()
        how = self.rng.choice(["", "IGNORE ", "REPLACE "]) if name != "heap" else ""
        # Not atomic: the old table is dropped first.
        self.change({name: rows}, f"CREATE OR REPLACE TABLE d.{name} {self.definition(name)} "
                    f"{how}{self.query(rows)}")

    def do_create_select_and_rename(self) -> None:
        name, rows = self.anew()
        self.change({name: rows}, f"CREATE TABLE w.n {self.definition(name)} {self.query(rows)}",
                    f"RENAME TABLE d.{name} TO w.o, w.n TO d.{name}", "DROP TABLE w.o")

    def do_create_or_replace_and_insert(self) -> None:
        name, rows = self.anew()
        self.change({name: rows}, f"CREATE OR REPLACE TABLE d.{name} {self.definition(name)}",
                    lambda: self.fill(f"d.{name}", rows), between=({},))

    def do_drop_and_create(self) -> None:
        name, rows = self.anew()
        self.change({name: rows}, f"DROP TABLE d.{name}", lambda: self.create(name, f"d.{name}"),
                    lambda: self.fill(f"d.{name}", rows), between=({}, None))

    def do_truncate(self) -> None:
        name, rows = self.anew(TABLES)
        self.change({name: rows}, f"TRUNCATE TABLE d.{name}",
                    lambda: self.fill(f"d.{name}", rows), between=({},))

    def do_load_into_an_empty_table(self) -> None:
        name, rows = self.anew()
        self.change({name: rows}, f"TRUNCATE TABLE d.{name}",
                    f"INSERT INTO d.{name} (id, gen, pad) {self.query(rows)}", between=({},))

    def alter(self, name: str, *alterations: str) -> None:
        for alteration in alterations:
            self.run(f"ALTER TABLE d.{name} {alteration}")

    def do_alter_by_copy(self) -> None:
        name = self.rng.choice(list(TABLES))
        self.alter(name, self.rng.choice(["FORCE", f"ENGINE={self.engine}, ALGORITHM=COPY",
                                          "MODIFY gen BIGINT NOT NULL", "MODIFY gen INT NOT NULL"]))

    def do_optimize(self) -> None:
        self.run(f"OPTIMIZE TABLE d.{self.rng.choice(list(TABLES))}")

    def do_alter_in_place(self) -> None:
        name = self.rng.choice(list(TABLES))
        self.alter(name, *self.rng.choice([
            ["ADD KEY k (gen, id)", "DROP KEY k"],
            ["ADD COLUMN more INT DEFAULT 5", "DROP COLUMN more"],
            ["ADD COLUMN more INT AS (gen) VIRTUAL, ADD KEY k (more)",
             "DROP KEY k, DROP COLUMN more"],
            ["ALTER COLUMN gen SET DEFAULT 3"], ["COMMENT = 'said'"]]))

    def do_partition_and_back(self) -> None:
        self.alter(self.rng.choice(["swapped", "changed"]), "PARTITION BY HASH (id) PARTITIONS 3",
                   "REMOVE PARTITIONING")

    def do_reorganize(self) -> None:
        name = self.rng.choice(["ranged", "parted"])
        middle = 2 * STEP + STEP // 2
        self.alter(name, "REORGANIZE PARTITION p2 INTO (PARTITION p2 VALUES LESS THAN "
                   f"({middle}), PARTITION pm VALUES LESS THAN ({3 * STEP + 1}))",
                   "REORGANIZE PARTITION p2, pm INTO (PARTITION p2 VALUES LESS THAN "
                   f"({3 * STEP + 1}))")

    def do_rebuild(self) -> None:
        name = self.rng.choice(["ranged", "parted", "nested"])
        self.alter(name, self.rng.choice(["REBUILD PARTITION p1", "REBUILD PARTITION ALL",
                                          "OPTIMIZE PARTITION p2"]))

    def do_add_and_coalesce(self) -> None:
        self.alter(self.rng.choice(["hashed", "powers"]), "ADD PARTITION PARTITIONS 1",
                   "COALESCE PARTITION 1")

    def do_add_empty(self) -> None:
        name = self.rng.choice(["ranged", "parted", "nested"])
        self.alter(name, f"ADD PARTITION (PARTITION p4 VALUES LESS THAN ({9 * ROWS}))")
        self.alter(name, "DROP PARTITION p4")

    def without(self, name: str, no: int) -> dict:
        return {number: generation for number, generation in self.rows[name].items()
                if number not in part(no)}

    def do_truncate_partition(self) -> None:
        name, no = self.rng.choice(["ranged", "parted", "nested"]), self.rng.randrange(4)
        left, new = self.without(name, no), self.new_rows(part(no))
        self.change({name: left}, f"ALTER TABLE d.{name} TRUNCATE PARTITION p{no}")
        self.change({name: left | new}, lambda: self.fill(f"d.{name}", new))

    def do_drop_partition(self) -> None:
        name = self.rng.choice(["ranged", "parted", "nested"])
        left, new = self.without(name, 3), self.new_rows(part(3))
        self.change({name: left}, f"ALTER TABLE d.{name} DROP PARTITION p3")
        self.alter(name, f"ADD PARTITION (PARTITION p3 VALUES LESS THAN ({ROWS + 1}))")
        self.change({name: left | new}, lambda: self.fill(f"d.{name}", new))

    def do_exchange(self) -> None:
        name = self.rng.choice(["ranged", "parted"])
        # The definitions must be equal, regardless of previous changes.
        self.alter(name, "MODIFY gen INT NOT NULL")
        self.alter("other", "MODIFY gen INT NOT NULL")
        mine = {number: self.rows[name][number] for number in part(1)}
        self.change({name: self.without(name, 1) | self.rows["other"], "other": mine},
                    f"ALTER TABLE d.{name} EXCHANGE PARTITION p1 WITH TABLE d.other")

    def do_convert(self) -> None:
        name = self.rng.choice(["ranged", "parted"])
        mine = {number: self.rows[name][number] for number in part(3)}
        whole, left = self.rows[name], self.without(name, 3)
        self.change({name: left, "taken": mine},
                    f"ALTER TABLE d.{name} CONVERT PARTITION p3 TO TABLE d.taken")
        self.change({name: whole, "taken": None},
                    f"ALTER TABLE d.{name} CONVERT TABLE d.taken TO PARTITION p3 "
                    f"VALUES LESS THAN ({ROWS + 1})")
