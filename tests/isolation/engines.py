"""Determines by scripts how a server's engines behave and which reasons for differences apply.

`Features` plays tiny scripts: Does a reader wait for an open writer? Do writers of two different
rows wait for each other? Does START TRANSACTION WITH CONSISTENT SNAPSHOT take a snapshot? Only
differences that follow from the answers are expected."""

from sessions import Play

INNODB, CHEETAH = "InnoDB", "CHEETAH"
# A reason used in differences.tsv and for interleavings; those for lock differences: reasons.py.
READ_UNCOMMITTED = "read-uncommitted"


class Features:
    """The observed behavior of one server."""

    def __init__(self, server):
        self.server = server
        self.variables = {row[0] for row in server.sql("SHOW VARIABLES LIKE '%snapshot_isolation'")}
        rows = self._probe([("a", "UPDATE probe SET v = 1 WHERE id = 1"),
                            ("b", "SELECT v FROM probe WHERE id = 1"),
                            ("c", "UPDATE probe SET v = 1 WHERE id = 2")])
        self.readers_wait, self.writers_wait = rows[1].waited, rows[2].waited
        self.snapshot_at_start = {engine: self._snapshot_at_start(engine)
                                  for engine in (INNODB, CHEETAH)}

    def snapshot_isolation(self, engine: str) -> list:
        """Returns the values of snapshot isolation that the engine supports."""
        return ([False, True] if f"{engine.lower()}_snapshot_isolation" in self.variables
                else [False])

    def explain(self, level: str, mine) -> str:
        """Returns why Cheetah's step `mine` may differ for reasons other than locks, or ""."""
        if level == "READ UNCOMMITTED" and not self.readers_wait and reads(mine.text):
            return READ_UNCOMMITTED
        return ""

    def text(self) -> str:
        """Returns the text for the last line of a run."""
        return (f"readers {'wait' if self.readers_wait else 'do not wait'} for writers, "
                f"writers {'lock tables' if self.writers_wait else 'lock rows'}"
                + ("" if self.snapshot_at_start[CHEETAH]
                   else ", no snapshot at the start of a transaction"))

    def _snapshot_at_start(self, engine: str) -> bool:
        """Returns whether START TRANSACTION WITH CONSISTENT SNAPSHOT hides later commits."""
        entries = self._probe([("a", "START TRANSACTION WITH CONSISTENT SNAPSHOT"),
                               ("b", "UPDATE probe SET v = 1 WHERE id = 1"), ("b", "COMMIT"),
                               ("a", "SELECT v FROM probe WHERE id = 1")], engine)
        return entries[3].outcome.rows == ((0,),)

    def _probe(self, steps: list, engine: str = CHEETAH) -> list:
        database = fresh_database(self.server, "probe")
        self.server.sql(f"CREATE TABLE probe (id INT PRIMARY KEY, v INT) ENGINE={engine}", database)
        self.server.sql("INSERT INTO probe VALUES (1, 0), (2, 0)", database)
        return Play.of(self.server, database, ["a", "b", "c"], steps)


def ends(text: str) -> bool:
    """Returns whether a statement ends a transaction."""
    return text.split()[0] in ("COMMIT", "ROLLBACK") and " TO " not in text


def reads(text: str) -> bool:
    return text.startswith("SELECT") and "FOR UPDATE" not in text and "IN SHARE MODE" not in text


def transaction_settings(features: Features, level: str, snapshot_isolation: bool) -> list:
    """Returns the SET statements for a test session."""
    lines = [f"SET SESSION TRANSACTION ISOLATION LEVEL {level}",
             "SET innodb_lock_wait_timeout = 50", "SET cheetah_lock_wait_timeout = 50"]
    return lines + [f"SET {name} = {int(snapshot_isolation)}"
                    for name in sorted(features.variables)]


def fresh_database(server, name: str) -> str:
    server.sql(f"DROP DATABASE IF EXISTS {name}")
    server.sql(f"CREATE DATABASE {name}")
    return name
