"""Statements on tables of all kinds. Most statements do not suit the table they run on.

A few names are used for tables, temporary tables, sequences, views, partitioned and
system-versioned tables, and copies of each other. A name refers to the object that was created last
under that name. Statements are drawn regardless of the object's kind. Both engines must give the
same answer or the same error, and the server must survive. Rows are compared through SELECT, so no
statement here reads table sizes. FULLTEXT keys are excluded because InnoDB does not support them in
temporary tables, and foreign keys because Cheetah does not support them in system-versioned tables.
Both have tests of their own. A transaction is begun only where none is open, because in InnoDB
reading a sequence opens a transaction."""

import re
from pathlib import Path

import listed
from statements import no_matter, Statement, Stream
from twins import RECONNECT

# Short timeouts for waits for prepared XA transactions without a connection.
OPTIONS = {"innodb_lock_wait_timeout": 1, "cheetah_lock_wait_timeout": 1, "lock_wait_timeout": 1}
COMPARE_EVERY = 100
NAMES = [f"t{number}" for number in range(1, 7)]
ROWS_MAX = 40

# The answers of checks are specific to each engine, but their errors must be the same.
(DEFINITIONS, PERMANENT, ROUTINES, CHANGES, READS, SHOWN, CHECKS, DEFINED_ANEW,
 AROUND) = listed.statements(Path(__file__).with_name("kinds.sql")).values()


class Kinds(Stream):
    """Statements on names that refer to objects of any kind."""

    steps = 0

    def next(self) -> list:
        self.steps += 1
        if self.steps % COMPARE_EVERY == 0:
            return [Statement(f"SELECT * FROM {name}") for name in NAMES]
        roll = self.rng.random()
        if roll < 0.005:
            return [Statement(RECONNECT)]
        if roll < 0.2:
            return [Statement(self.create(), compare=no_matter)]
        if roll < 0.23:
            return [Statement(self.filled(self.rng.choice(ROUTINES)), compare=no_matter)]
        templates, compare, _weight = self.rng.choices(GROUPS, [group[-1] for group in GROUPS])[0]
        text = self.filled(self.rng.choice(templates))
        before = [Statement("COMMIT")] if text.startswith(("XA START", "SET TRANSACTION")) else []
        return [*before, Statement(text, compare=compare)]

    def create(self) -> str:
        temporary = self.rng.random() < 0.45
        words = "TEMPORARY " if temporary else ""
        body = self.rng.choice(DEFINITIONS if temporary else DEFINITIONS + PERMANENT)
        replace = "OR REPLACE " if self.rng.random() < 0.4 and "NOT EXISTS" not in body else ""
        return f"CREATE {replace}{words}" + self.filled(body)

    def filled(self, template: str) -> str:
        rng = self.rng
        return template.format(t=rng.choice(NAMES), u=rng.choice(NAMES), n=rng.randint(1, ROWS_MAX),
                               m=rng.randint(1, 9), bit=rng.randint(0, 1))


def shown_alike(left: list, right: list) -> str:
    """Compares definitions, ignoring the name of the engine."""
    return "" if plain(left) == plain(right) else "definitions differ"


def plain(rows: list) -> str:
    return re.sub(r"ENGINE ?= ?\w+", "ENGINE", repr(rows).replace("right_twin", "left_twin"))


# Templates of statements on names, how their answers are compared, and their weights.
GROUPS = [(CHANGES, None, 30), (READS, None, 18), (SHOWN, shown_alike, 4), (CHECKS, no_matter, 8),
          (DEFINED_ANEW, no_matter, 14), (AROUND, None, 16)]
