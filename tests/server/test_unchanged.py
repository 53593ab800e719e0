"""Statements that change nothing wait for no sync of the log, and those that do, do; InnoDB beside
them."""

import contextlib

import pymysql
import pytest
from cheetah_tools.say import note

TIMES = 3   # the background may sync meanwhile: the least counts
SYNCS = {"CHEETAH": "Cheetah_log_syncs", "InnoDB": "Innodb_data_fsyncs"}
TABLES = ["CREATE TABLE {0}.t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, c VARCHAR(10)) "
          "ENGINE={0}",
          "CREATE TABLE {0}.child (id INT PRIMARY KEY, t INT, "
          "FOREIGN KEY (t) REFERENCES t (id)) ENGINE={0}",
          "CREATE TABLE {0}.empty (id INT PRIMARY KEY) ENGINE={0}",
          "INSERT INTO {0}.t VALUES (1,1,'a'),(2,2,'b')",
          "INSERT INTO {0}.child VALUES (1,1)"]
UNCHANGING = [
    ["INSERT IGNORE INTO t VALUES (1,1,'x')"],
    ["INSERT IGNORE INTO t VALUES (9,1,'x')"],
    ["INSERT IGNORE INTO t (u, c) VALUES (1,'x')"],
    ["INSERT IGNORE INTO t SELECT * FROM t"],
    ["INSERT INTO t VALUES (1,1,'x')"],
    ["INSERT INTO t VALUES (1,1,'x') ON DUPLICATE KEY UPDATE c = c"],
    ["INSERT INTO t VALUES (1,1,'x') ON DUPLICATE KEY UPDATE c = 'a'"],
    ["INSERT INTO t (u, c) VALUES (1,'x') ON DUPLICATE KEY UPDATE c = c"],
    ["UPDATE IGNORE t SET u = 2 WHERE id = 1"],
    ["UPDATE t SET u = 2 WHERE id = 1"],
    ["UPDATE t SET c = c"],
    ["UPDATE t SET c = 'x' WHERE id = 77"],
    ["DELETE FROM t WHERE id = 77"],
    ["DELETE IGNORE FROM t WHERE id = 1"],
    ["DELETE FROM t WHERE id = 1"],
    ["INSERT IGNORE INTO child VALUES (2,77)"],
    ["INSERT INTO child VALUES (2,77)"],
    ["UPDATE IGNORE child SET t = 77"],
    ["SELECT * FROM t FOR UPDATE"],
    ["BEGIN", "SELECT * FROM t FOR UPDATE", "INSERT IGNORE INTO t VALUES (1,1,'x')", "COMMIT"],
    ["BEGIN", "SAVEPOINT s", "ROLLBACK TO s", "COMMIT"],
    ["BEGIN", "SAVEPOINT s", "INSERT INTO child VALUES (3,1)", "ROLLBACK TO s", "ROLLBACK"],
    ["BEGIN", "INSERT INTO child VALUES (3,77)", "COMMIT"],
    ["XA START 'x'", "INSERT IGNORE INTO t VALUES (1,1,'x')", "XA END 'x'", "XA PREPARE 'x'",
     "XA COMMIT 'x'"],
    ["XA START 'x'", "SELECT * FROM t FOR UPDATE", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"],
    ["CREATE TABLE IF NOT EXISTS t (a INT)"],
    ["DROP TABLE IF EXISTS absent"],
    ["LOCK TABLES t WRITE", "INSERT IGNORE INTO t VALUES (1,1,'x')", "UNLOCK TABLES"],
]
# InnoDB syncs the undo log of what has been taken back.
TAKEN_BACK = [
    ["BEGIN", "SAVEPOINT s", "INSERT INTO child VALUES (3,1)", "ROLLBACK TO s", "COMMIT"],
    ["BEGIN", "SAVEPOINT s", "UPDATE t SET c = 'y'", "ROLLBACK TO s",
     "INSERT IGNORE INTO t VALUES (1,1,'x')", "COMMIT"],
]
CHANGING = [
    ["REPLACE INTO t VALUES (2,2,LEFT(UUID(), 8))"],
    ["INSERT INTO child VALUES (4,1)", "DELETE FROM child WHERE id = 4"],
    ["BEGIN", "UPDATE t SET c = 'z'", "SAVEPOINT s", "UPDATE t SET c = 'y'", "ROLLBACK TO s",
     "INSERT IGNORE INTO t VALUES (1,1,'x')", "COMMIT", "UPDATE t SET c = 'a'"],
]


def syncs_of(server, cursor, engine: str, statements: list) -> int:
    """How often the log is synced for them, at least."""
    def run() -> int:
        before = int(server.sql(f"SHOW GLOBAL STATUS LIKE '{SYNCS[engine]}'")[0][1])
        for statement in statements:
            with contextlib.suppress(pymysql.MySQLError):
                cursor.execute(statement)
        return int(server.sql(f"SHOW GLOBAL STATUS LIKE '{SYNCS[engine]}'")[0][1]) - before
    return min(run() for _ in range(TIMES))


@pytest.mark.parametrize("binlog", [{}, {"log_bin": "bin", "binlog_format": "ROW"}],
                         ids=["without", "with_binlog"])
def test_only_what_changes_something_syncs_the_log(new_server, binlog):
    """Each statement by itself and in transactions, with one engine and with two phases."""
    server = new_server(binlog)
    server.start()
    cursors = {}
    for engine in SYNCS:
        server.sql(f"CREATE DATABASE {engine}")
        for statement in TABLES:
            server.sql(statement.format(engine))
        cursors[engine] = server.connect(engine, autocommit=True).cursor()
    wrong = []
    for statements in UNCHANGING + TAKEN_BACK + CHANGING:
        counts = [syncs_of(server, cursors[engine], engine, statements) for engine in SYNCS]
        note(f"{counts[0]} syncs of Cheetah, {counts[1]} of InnoDB: {'; '.join(statements)}")
        promises = binlog and statements in TAKEN_BACK
        if not promises and (counts[0] > 0) != (statements in CHANGING):
            wrong.append((statements, counts))
    assert not wrong
    for engine in SYNCS:
        assert server.sql(f"SELECT COUNT(*), SUM(id < 3) FROM {engine}.t") == [(2, 2)], engine
