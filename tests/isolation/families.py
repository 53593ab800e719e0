#!/usr/bin/env python3
"""Interleavings on parents and children: like `interleavings.py`, on tables tied by foreign keys.

Deleting a parent or changing its key is refused, cascades to its children, or sets their reference
to NULL. One of the child tables has children of its own. A difference must have a reason from
`kinship`. Cheetah's whole run must match its transactions executed in commit order, and CHECK TABLE
must find no child without its parent. `--plant` omits a row from one table.

    python3 tests/isolation/families.py [--scripts 150] [--seed 1] [--show]"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True

from cheetah_tools import say  # noqa: E402
import interleavings  # noqa: E402
from kinship import FamilyDifference  # noqa: E402
from scripts import LEVELS, READS, Scene, Script  # noqa: E402
from sessions import Session  # noqa: E402

DUPLICATE, HAS_CHILDREN = 1062, 1451

# Each child table: its parent table, and the action when a parent is deleted or its key changes.
TIES = {"c": ("p", "ON DELETE RESTRICT ON UPDATE CASCADE"),
        "d": ("p", "ON DELETE CASCADE ON UPDATE CASCADE"),
        "e": ("p", "ON DELETE SET NULL ON UPDATE RESTRICT"),
        "g": ("d", "ON DELETE CASCADE ON UPDATE RESTRICT")}
TABLES = {"p": "CREATE TABLE p (id INT PRIMARY KEY, v INT NOT NULL)"}
TABLES |= {name: (f"CREATE TABLE {name} (id INT PRIMARY KEY, pid INT, v INT NOT NULL, "
                  f"KEY pid (pid), CONSTRAINT of_{name} FOREIGN KEY (pid) "
                  f"REFERENCES {parent} (id) {actions})")
           for name, (parent, actions) in TIES.items()}
ROWS = ["INSERT INTO p VALUES (10, 0), (20, 0), (30, 0), (40, 0), (50, 0), (60, 0)",
        "INSERT INTO c VALUES (1, 10, 0), (2, 10, 0), (4, 20, 0), (6, NULL, 0)",
        "INSERT INTO d VALUES (1, 20, 0), (2, 30, 0), (4, 30, 0), (6, 40, 0)",
        "INSERT INTO e VALUES (1, 40, 0), (2, 50, 0), (4, 50, 0), (6, 30, 0)",
        "INSERT INTO g VALUES (1, 1, 0), (2, 2, 0), (4, 2, 0), (6, NULL, 0)"]
LOOKS = ([(name, "PRIMARY", "") for name in TABLES]
         + [(name, "pid", "WHERE pid > -1000 OR pid IS NULL") for name in TIES])
SCENE = Scene(TABLES, ROWS, LOOKS, "DELETE FROM d WHERE id = 6")


class Generator:
    def __init__(self, seed: int):
        self.rng, self.seed = random.Random(f"family/{seed}"), seed

    def script(self) -> Script:
        rng = self.rng
        names = "abc"[:rng.choice([2, 2, 2, 3])]
        inside, steps = dict.fromkeys(names, False), []
        for _ in range(rng.randint(6, 16)):
            name = rng.choice(names)
            steps.append((name, self.statement(name, inside)))
        steps += [(name, rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
                  for name in names if inside[name]]
        return Script(self.seed, rng.choice(LEVELS), steps, scene=SCENE)

    def statement(self, name: str, inside: dict) -> str:
        rng = self.rng
        if not inside[name]:
            inside[name] = rng.random() < 0.8
            if inside[name]:
                return ("START TRANSACTION WITH CONSISTENT SNAPSHOT" if rng.random() < 0.15
                        else "BEGIN")
        elif rng.random() < 0.2:
            inside[name] = False
            return rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        return rng.choices([self.parent, self.child], [40, 60])[0]()

    def key(self) -> int:
        """Returns the key of a parent, or a key between two parents."""
        return self.rng.choice([self.rng.randint(1, 6) * 10, self.rng.randint(1, 6) * 10,
                                self.rng.randint(1, 13) * 5])

    def parent(self) -> str:
        rng, key, where = self.rng, self.key(), f"FORCE INDEX (PRIMARY) WHERE id = {self.key()}"
        return rng.choice([f"INSERT INTO p VALUES ({key}, 1)", *[f"DELETE p FROM p {where}"] * 3,
                           f"UPDATE p FORCE INDEX (PRIMARY) SET id = {key} WHERE id = {self.key()}",
                           f"UPDATE p FORCE INDEX (PRIMARY) SET v = v + 10 WHERE id = {key}",
                           f"SELECT * FROM p {where}{rng.choice(READS)}"])

    def child(self) -> str:
        rng, table = self.rng, self.rng.choice("cdeg")
        key, parent = rng.randint(1, 8), self.parent_of(table)
        where = rng.choice([f"FORCE INDEX (PRIMARY) WHERE id = {key}",
                            f"FORCE INDEX (pid) WHERE pid = {parent}"])
        before, condition = where.split(" WHERE ")
        change = rng.choice([
            f"pid = {rng.choice([self.parent_of(table), self.parent_of(table), 'NULL'])}",
            "v = v + 10"])
        return rng.choice([f"INSERT INTO {table} VALUES "
                           f"({key}, {rng.choice([parent, parent, parent, 'NULL'])}, 1)"] * 3
                          + [f"UPDATE {table} {before} SET {change} WHERE {condition}"] * 2
                          + [f"DELETE {table} FROM {table} {where}"]
                          + [f"SELECT * FROM {table} {where}{rng.choice(READS)}"] * 2)

    def parent_of(self, table: str) -> int:
        """Returns a key that a child may refer to."""
        return self.rng.randint(1, 7) if table == "g" else self.key()


class FamilySession(Session):
    """Treats two errors as equal. A parent's new key may be taken while children still need the old
    key, and the engine chooses which of the two errors to report."""

    def send(self, text: str) -> None:
        self.gives_key = text.startswith("UPDATE p ") and " SET id = " in text
        super().send(text)

    def take(self):
        outcome = super().take()
        if self.gives_key and outcome.error == DUPLICATE:
            outcome.error = HAS_CHILDREN
        return outcome


class FamilyStage(interleavings.Stage):
    program, scene, generator, connect, difference = (
        "families", SCENE, Generator, FamilySession, FamilyDifference)

    def dirty_rows(self, engine: str) -> dict:
        """Returns all tables with uncommitted changes, if the engine shows them."""
        return {name: self.root.must(f"SELECT * FROM {self.databases[engine]}.{name}").rows
                for name in self.scene.tables}

    def plan(self, _text: str) -> tuple:
        """Returns no plan: statements name an index and a key, so there is only one plan."""
        return ()


def main(arguments: list) -> int:
    return interleavings.main(arguments, FamilyStage)


if __name__ == "__main__":
    say.run_main(main)
