"""Statements on tables of all kinds, most of which do not suit the table that they meet.

A handful of names stand for whatever was made last under them: tables, temporary ones, sequences,
views, partitioned and system-versioned tables, copies of one another. Statements are drawn without
a look at what a name is. Both engines must give the same answer or the same error, and the server
must survive. SELECT alone tells the rows of a table, so nothing here asks for sizes. Left out
are FULLTEXT keys, which InnoDB does not have in temporary tables, and foreign keys, which Cheetah
does not have in system-versioned ones: each has a test of its own. A transaction is begun only
where none is open: to InnoDB a sequence that was read is one.
"""

import re
from pathlib import Path

import listed
from statements import Statement, Stream
from twins import RECONNECT

# Waits for prepared XA transactions that nobody is connected to end soon.
OPTIONS = {"innodb_lock_wait_timeout": 1, "cheetah_lock_wait_timeout": 1, "lock_wait_timeout": 1}
COMPARE_EVERY = 100
NAMES = [f"t{number}" for number in range(1, 7)]
ROWS_MAX = 40

# Of checks the answers are each engine's own; errors must be the same.
(DEFINITIONS, PERMANENT, ROUTINES, CHANGES, READS, SHOWN, CHECKS, DEFINED_ANEW,
 AROUND) = listed.statements(Path(__file__).with_name("kinds.sql")).values()


class Kinds(Stream):
    """Of names that stand for anything."""

    steps = 0

    def next(self) -> list:
        """One statement, or now and then all that is there."""
        self.steps += 1
        if self.steps % COMPARE_EVERY == 0:
            return [Statement(f"SELECT * FROM {name}") for name in NAMES]
        roll = self.rng.random()
        if roll < 0.005:
            return [Statement(RECONNECT)]
        if roll < 0.2:
            return [Statement(self.create(), compare=nothing)]
        if roll < 0.23:
            return [Statement(self.filled(self.rng.choice(ROUTINES)), compare=nothing)]
        templates, compare, _weight = self.rng.choices(GROUPS, [group[-1] for group in GROUPS])[0]
        text = self.filled(self.rng.choice(templates))
        before = [Statement("COMMIT")] if text.startswith(("XA START", "SET TRANSACTION")) else []
        return [*before, Statement(text, compare=compare)]

    def create(self) -> str:
        """CREATE of anything, plain, temporary, or in the place of another."""
        temporary = self.rng.random() < 0.45
        words = "TEMPORARY " if temporary else ""
        body = self.rng.choice(DEFINITIONS if temporary else DEFINITIONS + PERMANENT)
        replace = "OR REPLACE " if self.rng.random() < 0.4 and "NOT EXISTS" not in body else ""
        return f"CREATE {replace}{words}" + self.filled(body)

    def filled(self, template: str) -> str:
        """A template with names and numbers."""
        rng = self.rng
        return template.format(t=rng.choice(NAMES), u=rng.choice(NAMES), n=rng.randint(1, ROWS_MAX),
                               m=rng.randint(1, 9), bit=rng.randint(0, 1))


def nothing(_left: list, _right: list) -> str:
    """Only errors are compared."""
    return ""


def shown_alike(left: list, right: list) -> str:
    """Definitions but for the name of the engine."""
    return "" if plain(left) == plain(right) else "definitions differ"


def plain(rows: list) -> str:
    text = repr(rows).replace("right_twin", "left_twin")
    return re.sub(r"ENGINE ?= ?\w+", "ENGINE", text)


# Templates of statements on names, how their answers are compared, and how often they are drawn.
GROUPS = [(CHANGES, None, 30), (READS, None, 18), (SHOWN, shown_alike, 4), (CHECKS, nothing, 8),
          (DEFINED_ANEW, nothing, 14), (AROUND, None, 16)]
