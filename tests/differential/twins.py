"""Runs each statement on two databases of a server, one for each engine, and compares outcomes."""

import contextlib
import re
import time
from collections import namedtuple

from cheetah_tools.paths import FIRST_SERIES, SERIES
from cheetah_tools.server import connect

DUPLICATE = 1062
# Errors with which the server refuses a row before an engine sees it: NULL in a NOT NULL column, no
# default, a number out of range, a value that is truncated, invalid or wrongly encoded, or a failed
# CHECK.
REFUSED_ROW = {1048, 1364, 1264, 1690, 1265, 1292, 1366, 1411, 1406, 4025}
# Errors for the same refusal: engines may enforce these limits at different points.
LIMITS = {1070, 1071, 1118, 1030, 139}
LOST_CONNECTION = {2006, 2013}
# A row may violate several constraints. The engine decides which violation it reports.
REFUSALS = {1022, 1062, 1451, 1452, 1761}
# A key that a constraint needs cannot be dropped. For an ALTER TABLE that copies rows, InnoDB
# reports the error only when the copy replaces the table.
KEPT_KEYS = {1025, 1553}
SETTINGS = ["SET time_zone = '+00:00'", "SET timestamp = 1700000000", "SET innodb_strict_mode = 1",
            "SET group_concat_max_len = 100000",
            # Otherwise ALTER TABLE reports copied rows on one engine only. Ignored since 11.5.
            "SET alter_algorithm = 'COPY'"]
COPIES = ("ALTER TABLE", "CREATE INDEX", "CREATE UNIQUE INDEX", "CREATE FULLTEXT INDEX",
          "DROP INDEX")
# Kills the connection, whatever its state, and reconnects.
RECONNECT = "RECONNECT"


class Outcome(namedtuple("Outcome", "error message rows affected last_id warnings",
                         defaults=[0, "", None, 0, 0, 0])):
    """The outcome of a statement. `last_id` is the last insert ID, `warnings` their number."""

    def text(self) -> str:
        if self.error:
            return f"error {self.error}: {self.message}"
        shown = "" if self.rows is None else f"{len(self.rows)} rows {str(self.rows[:4])[:700]}, "
        return f"{shown}affected {self.affected}, last id {self.last_id}, warnings {self.warnings}"


class Twin:
    """One side: a database, and a connection whose default engine is `engine`."""

    def __init__(self, socket, database: str, engine: str, mode: str):
        self.database, self.engine = database, engine
        self.socket, self.mode = socket, mode
        root = self.root = connect(socket)
        with root.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {database}")
            cursor.execute(f"CREATE DATABASE {database}")
            # This user may not write while read_only is set.
            cursor.execute(f"CREATE OR REPLACE USER {database}@localhost")
            cursor.execute(f"GRANT ALL ON {database}.* TO {database}@localhost")
            cursor.execute(f"GRANT RELOAD, FILE, PROCESS ON *.* TO {database}@localhost")
        self.connect()

    def connect(self) -> None:
        self.connection = connect(self.socket, self.database, user=self.database, conv={},
                                  use_unicode=False)
        for text in [*SETTINGS, f"SET default_storage_engine = {self.engine}",
                     f"SET sql_mode = '{self.mode}'"]:
            self.run(text)

    def disconnect(self) -> None:
        """Kills the connection and waits until the server has removed it."""
        number = self.connection.thread_id()
        there = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {number}"
        with self.root.cursor() as cursor:
            cursor.execute(f"KILL {number}")
            while cursor.execute(there) and cursor.fetchone()[0]:
                time.sleep(0.005)
        self.connection.close()

    def close(self) -> None:
        """Closes the connections and rolls back the prepared transaction, if the server is up."""
        import pymysql
        with contextlib.suppress(pymysql.MySQLError):
            self.disconnect()
            with self.root.cursor() as cursor:
                cursor.execute("SET GLOBAL read_only = 0")
                cursor.execute(f"XA ROLLBACK '{self.database}'")
        self.root.close()

    def run(self, text: str) -> Outcome:
        """Runs one statement. Global variables are set through root's connection."""
        import pymysql
        if text == RECONNECT:
            self.disconnect()
            self.connect()
            return Outcome()
        cursor = (self.root if text.startswith("SET GLOBAL") else self.connection).cursor()
        try:
            affected = cursor.execute(text.replace("{twin}", self.database))
            rows = list(cursor.fetchall()) if cursor.description else None
            return Outcome(rows=rows, affected=affected, last_id=cursor.lastrowid,
                           warnings=(cursor.warning_count if hasattr(cursor, "warning_count")
                                     else (cursor._result.warning_count or 0)))
        except pymysql.MySQLError as failure:
            number = failure.args[0] if failure.args and isinstance(failure.args[0], int) else -1
            return Outcome(error=number,
                           message=str(failure.args[-1])[:300] if failure.args else "")
        finally:
            cursor.close()

    def warnings(self) -> list:
        return [row[1] for row in self.run("SHOW WARNINGS").rows or []]


def difference(statement, left: Outcome, right: Outcome) -> str:
    """Returns the difference between two outcomes, or an empty string if they agree."""
    if left.error != right.error:
        both_limits = left.error in LIMITS and right.error in LIMITS
        both_refuse = any({left.error, right.error} <= errors for errors in (REFUSALS, KEPT_KEYS))
        both_refuse |= found_at_the_end(statement, left, right)
        return "" if both_limits or both_refuse else "error numbers differ"
    if left.error:
        return ""
    if statement.compare:
        return statement.compare(left.rows or [], right.rows or [])
    if statement.text.startswith(("CHECK TABLE", "ANALYZE")):
        # The last column is the verdict, such as `OK`. The first one names the database.
        verdicts = [[row[-1] for row in side.rows] for side in (left, right)]
        return "" if verdicts[0] == verdicts[1] else "the verdicts differ"
    if (left.rows is None) != (right.rows is None):
        return "one returned rows, the other did not"
    if left.rows is not None:
        if len(left.rows) != len(right.rows):
            return "numbers of rows differ"
        if statement.ordered and left.rows != right.rows:
            return "rows or their order differ"
        if not statement.ordered and sorted(left.rows, key=repr) != sorted(right.rows, key=repr):
            return "rows differ"
    if left.affected != right.affected and not (SERIES != FIRST_SERIES
                                                and statement.text.startswith(COPIES)):
        return "affected rows differ"
    if left.last_id != right.last_id:
        return "last insert ids differ"
    if statement.counts_warnings and left.warnings != right.warnings:
        return "numbers of warnings differ"
    return ""


def found_at_the_end(statement, left: Outcome, right: Outcome) -> bool:
    """Returns whether one engine found a duplicate among another table's rows while the other met a
    row that the server refuses: an empty table finds duplicates at the end."""
    return ({left.error, right.error} - REFUSED_ROW == {DUPLICATE}
            and re.match(r"INSERT INTO \w+ \([^)]*\) SELECT ", statement.text) is not None)
