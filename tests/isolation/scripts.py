"""Generates random scripts of two to four sessions on one table from a seed.

The table has rows with gaps between their keys, an index with duplicate values, a unique index, an
index on strings that differ only in case, and a column without an index. Every read and update
names its index, so that both engines lock along the same index."""

import random
from collections import namedtuple

TABLE = ("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, u INT, v INT NOT NULL, "
         "c VARCHAR(9) COLLATE utf8mb4_general_ci NOT NULL DEFAULT 'g1', "
         "KEY k (k), UNIQUE KEY u (u), KEY c (c))")
ROWS = "INSERT INTO t VALUES " + ", ".join(
    f"({n * 10}, {n // 2 * 4}, {n * 10}, {n % 3}, '{'gG'[n % 2]}{n // 3}')" for n in range(1, 9))
WHOLE = ("SELECT COUNT(*) FROM t FORCE INDEX (PRIMARY)",
         "SELECT COUNT(u) FROM t FORCE INDEX (u)",
         "SELECT MAX(id) FROM t FORCE INDEX (PRIMARY)",
         "SELECT k, id FROM t FORCE INDEX (k) ORDER BY k DESC, id DESC LIMIT 3",
         "SELECT u FROM t FORCE INDEX (u) WHERE u < 45 ORDER BY u DESC LIMIT 2")
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
READS = (*("", "", "", " FOR UPDATE", " FOR UPDATE", " LOCK IN SHARE MODE") * 3,
         " FOR UPDATE NOWAIT", " FOR UPDATE SKIP LOCKED", " LOCK IN SHARE MODE SKIP LOCKED")


class Scene(namedtuple("Scene", "tables rows looks plant")):
    """Tables for scripts. `tables`: name -> definition without an engine; `looks`: every way to
    read a table (table, index, condition); `plant`: deletes the row planted as a difference."""

    def create(self, engine: str) -> list:
        return [*(f"{text} ENGINE={engine}" for text in self.tables.values()), *self.rows]

    def drop(self) -> list:
        """Returns the statement that drops the tables, referring tables first."""
        return [f"DROP TABLE IF EXISTS {', '.join(reversed(self.tables))}"]


SCENE = Scene({"t": TABLE}, [ROWS],
              [("t", "PRIMARY", ""), ("t", "k", "WHERE k > -1000"),
               ("t", "u", "WHERE u > -1000 OR u IS NULL"), ("t", "c", "WHERE c >= ''")],
              "DELETE FROM t WHERE id = 50")


class Script:
    """The steps to play. Waits of sessions in `impatient` end with error 1205 after a second."""

    def __init__(self, seed: int, level: str, steps: list, impatient=(), scene: Scene = SCENE):
        self.seed, self.level, self.steps, self.impatient, self.scene = (
            seed, level, steps, tuple(impatient), scene)

    def sessions(self) -> list:
        return sorted({name for name, _ in self.steps})

    def with_steps(self, steps: list):
        return Script(self.seed, self.level, steps, self.impatient, self.scene)

    def text(self) -> str:
        head = [f"-- seed {self.seed}, {self.level}"
                + (f", timeout of 1 s: {', '.join(self.impatient)}" if self.impatient else "")]
        head += [f"{text};" for text in (*self.scene.tables.values(), *self.scene.rows)]
        return "\n".join(head + [f"/* {name} */ {text};" for name, text in self.steps])


class Generator:
    def __init__(self, seed: int):
        self.rng, self.seed = random.Random(f"interleaving/{seed}"), seed
        self.inside, self.savepoints = {}, {}

    def script(self) -> Script:
        rng = self.rng
        names = "abcd"[:rng.choice([2, 2, 3, 3, 4])]
        self.inside, self.savepoints = dict.fromkeys(names, False), dict.fromkeys(names, False)
        impatient = [rng.choice(names)] if rng.random() < 0.06 else []
        steps = []
        for _ in range(rng.randint(8, 26)):
            name = rng.choice(names)
            steps.append((name, self.statement(name)))
        for name in names:
            if self.inside[name]:
                steps.append((name, rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])))
        return Script(self.seed, rng.choice(LEVELS), steps, impatient)

    def statement(self, name: str) -> str:
        rng = self.rng
        if not self.inside[name]:
            if rng.random() < 0.75:
                self.inside[name], self.savepoints[name] = True, False
                return ("START TRANSACTION WITH CONSISTENT SNAPSHOT" if rng.random() < 0.15
                        else "BEGIN")
            return self.work()
        roll = rng.random()
        if roll < 0.17:
            self.inside[name] = False
            return rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        if roll < 0.22:
            self.savepoints[name] = True
            return "SAVEPOINT s"
        if roll < 0.27 and self.savepoints[name]:
            return "ROLLBACK TO SAVEPOINT s"
        return self.work()

    def work(self) -> str:
        return self.rng.choices([self.select, self.insert, self.update, self.delete],
                                [38, 24, 24, 14])[0]()

    def key(self) -> int:
        """Returns a row's key, a key in a gap, or a key near either end."""
        return self.rng.choice([self.rng.randint(1, 8) * 10, self.rng.randint(1, 8) * 10,
                                self.rng.randint(1, 90)])

    def condition(self) -> tuple:
        """Returns (index, condition)."""
        rng, low = self.rng, self.key()
        high = low + rng.choice([0, 5, 10, 20, 30])
        group = rng.randint(0, 4) * 4 + rng.choice([0, 0, 0, 1])
        return rng.choice([("PRIMARY", f"id = {self.key()}"), ("PRIMARY", f"id = {self.key()}"),
                           ("PRIMARY", f"id BETWEEN {low} AND {high}"),
                           ("PRIMARY", f"id > {low}"), ("PRIMARY", f"id < {low}"),
                           ("PRIMARY", f"id IN ({self.key()}, {self.key()})"),
                           ("k", f"k = {group}"), ("k", f"k = {group}"),
                           ("k", f"k BETWEEN {group} AND {group + 4}"), ("k", f"k >= {group}"),
                           ("c", f"c = 'g{rng.randint(0, 2)}'"),
                           ("c", f"c >= 'g{rng.randint(0, 2)}'"),
                           ("u", f"u = {self.key()}"), ("u", f"u = {self.key()}"),
                           ("u", f"u BETWEEN {low} AND {high}"), ("u", "u IS NULL"),
                           ("PRIMARY", f"v = {rng.randint(0, 2)}")])

    def select(self) -> str:
        if self.rng.random() < 0.08:
            return self.rng.choice(WHOLE)
        index, condition = self.condition()
        columns = (self.rng.choice(["*", "*", "id", "id, v"]) if index == "PRIMARY"
                   else self.rng.choice(["*", f"id, {index}"]))
        return (f"SELECT {columns} FROM t FORCE INDEX ({index}) "
                f"WHERE {condition}{self.rng.choice(READS)}")

    def insert(self) -> str:
        """Returns an insert of a row, which may hit an existing key or unique value."""
        rng = self.rng
        row = (f"({self.key()}, {rng.randint(0, 4) * 4 + rng.choice([0, 0, 2])}, "
               f"{rng.choice([self.key(), self.key(), 'NULL'])}, {rng.randint(0, 2)}, "
               f"'{rng.choice('gG')}{rng.randint(0, 2)}')")
        return rng.choice([f"INSERT INTO t VALUES {row}"] * 5
                          + [f"INSERT IGNORE INTO t VALUES {row}", f"REPLACE INTO t VALUES {row}",
                             f"INSERT INTO t VALUES {row} ON DUPLICATE KEY UPDATE v = v + 10"])

    def update(self) -> str:
        rng = self.rng
        index, condition = self.condition()
        change = rng.choice(["v = v + 10", "v = v + 10", f"v = {rng.randint(0, 2)}",
                             f"k = {rng.randint(0, 4) * 4}", "k = k + 4", "c = UPPER(c)",
                             "c = LOWER(c)", f"u = {self.key()}",
                             (f"id = {self.key()}" if "=" in condition and index == "PRIMARY"
                              else "v = v + 1")])
        return f"UPDATE t FORCE INDEX ({index}) SET {change} WHERE {condition}"

    def delete(self) -> str:
        """Returns a deletion, in the form of DELETE that accepts FORCE INDEX."""
        index, condition = self.condition()
        return f"DELETE t FROM t FORCE INDEX ({index}) WHERE {condition}"
