"""A table that is made anew, again and again, under the clients of `histories.py`.

Its rows stay as they are, so the checker's word holds for them. A snapshot that is older than the
table is to be refused (error 1412), or to find them: never a part of them.
"""

from clients import Client, Unexpected
from plans import SNAPSHOT_STEP

DEADLOCK, TIMEOUT, CHANGED = 1213, 1205, 1412
PLAIN, HASHED, RANGED = "plain", "hashed", "ranged"
RANGES = ("PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (4), "
          "PARTITION z VALUES LESS THAN MAXVALUE)")
# Of a table of that shape: what becomes of it, and its shape then.
CHANGES = {
    PLAIN: [("ALTER TABLE h FORCE, ALGORITHM=COPY", PLAIN), ("OPTIMIZE TABLE h", PLAIN),
            ("RENAME TABLE h TO away, away TO h", PLAIN),
            ("ALTER TABLE h PARTITION BY HASH (id) PARTITIONS 2", HASHED),
            (f"ALTER TABLE h {RANGES}", RANGED)],
    HASHED: [("ALTER TABLE h ADD PARTITION PARTITIONS 1", HASHED),
             ("ALTER TABLE h COALESCE PARTITION 1", HASHED),
             ("ALTER TABLE h REBUILD PARTITION ALL", HASHED),
             ("ALTER TABLE h REMOVE PARTITIONING", PLAIN)],
    RANGED: [("ALTER TABLE h REORGANIZE PARTITION z INTO (PARTITION m VALUES LESS THAN (7), "
              "PARTITION z VALUES LESS THAN MAXVALUE)", RANGED),
             ("ALTER TABLE h REBUILD PARTITION a", RANGED),
             ("RENAME TABLE h TO away, away TO h", RANGED),
             ("ALTER TABLE h REMOVE PARTITIONING", PLAIN)],
}
ENOUGH_PARTITIONS = {1482, 1493, 1508, 1517}   # already there, or the last one
PAUSE, KEPT = "DO SLEEP(0.01)", "DO SLEEP(0.02)"


class ReshapedClient(Client):
    """Keeps its snapshot for a while before it reads."""

    def refused(self, error: int) -> bool:
        """So is a snapshot that is too old."""
        return error == CHANGED or super().refused(error)

    def transaction(self, plan):
        """Who waits for the definition, and is in a deadlock, has not been rolled back yet."""
        yield from super().transaction(plan)
        yield "ROLLBACK"

    def step(self, step, plan):
        """The snapshot gets older."""
        answer = yield from super().step(step, plan)
        if step.kind == SNAPSHOT_STEP:
            yield KEPT
        return answer


class Reshaper(Client):
    """Changes the table until there are no more transactions."""

    def transactions(self):
        """One change after the other."""
        shape = PLAIN
        while self.run.left >= 0:
            text, after = self.run.rng.choice(CHANGES[shape])
            outcome, _sent, _answered = yield text
            if not outcome.error:
                shape, self.run.reshaped = after, self.run.reshaped + 1
            elif outcome.error not in ENOUGH_PARTITIONS | {DEADLOCK, TIMEOUT}:
                raise Unexpected(f"{text}: error {outcome.error} {outcome.message}")
            yield PAUSE
