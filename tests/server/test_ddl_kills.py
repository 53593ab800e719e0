"""kill -9 in the middle of every kind of DDL: afterwards .frm files and catalog agree and every
table is whole.

One exception, which is the server's (docs/limits.md): DDL on a partitioned table is not atomic, and
a kill may leave partitions without their table. CHECK TABLE names them and DROP TABLE IF EXISTS
removes them.
"""

import re
import threading
import time

import pymysql
import pytest
from cheetah_tools.say import note
from servers import Client, check_table, kill_under, left_by_innodb, wait_until

SETUP = ["CREATE TABLE keep (a INT PRIMARY KEY, b VARCHAR(100), KEY (b)) ENGINE=CHEETAH",
         "INSERT INTO keep SELECT seq, CONCAT('b', seq) FROM seq_1_to_2000"]
CYCLES = {
    "create and drop": ["CREATE TABLE IF NOT EXISTS c1 (a INT PRIMARY KEY, b BLOB, KEY (b(10))) "
                        "ENGINE=CHEETAH",
                        "INSERT IGNORE INTO c1 SELECT seq, REPEAT('x', 200) FROM seq_1_to_300",
                        "DROP TABLE IF EXISTS c1"],
    "create or replace": ["CREATE OR REPLACE TABLE c2 ENGINE=CHEETAH AS SELECT seq a, "
                          "REPEAT('y', 100) b FROM seq_1_to_500"],
    "rename": ["CREATE TABLE IF NOT EXISTS c3 (a INT) ENGINE=CHEETAH",
               "RENAME TABLE c3 TO c4, c4 TO c5", "RENAME TABLE c5 TO c3"],
    "truncate": ["CREATE TABLE IF NOT EXISTS c6 (a INT AUTO_INCREMENT PRIMARY KEY) ENGINE=CHEETAH",
                 "INSERT INTO c6 SELECT NULL FROM seq_1_to_200",
                 "TRUNCATE TABLE c6"],
    "alter by copy": ["CREATE TABLE IF NOT EXISTS c7 (a INT PRIMARY KEY, b VARCHAR(50)) "
                      "ENGINE=CHEETAH",
                      "INSERT IGNORE INTO c7 SELECT seq, seq FROM seq_1_to_3000",
                      "ALTER TABLE c7 ADD INDEX k (b), ADD x INT DEFAULT 5, ALGORITHM=COPY",
                      "ALTER TABLE c7 DROP INDEX k, DROP COLUMN x, ALGORITHM=COPY"],
    "columns": ["CREATE TABLE IF NOT "
                "EXISTS c14 (a INT PRIMARY KEY, b VARCHAR(50), c TEXT, KEY b (b)) ENGINE=CHEETAH",
                "INSERT IGNORE INTO c14 (a, b, c) SELECT seq, seq, "
                "IF(seq % 50, seq, REPEAT(seq, 3000)) FROM seq_1_to_1000",
                "ALTER TABLE c14 ADD x INT DEFAULT 5 FIRST, ADD y VARCHAR(10) NOT NULL "
                "DEFAULT 'y', "
                "ALGORITHM=INSTANT", "UPDATE c14 SET x = a, b = CONCAT(b, y) WHERE a % 3 = 0",
                "ALTER TABLE c14 DROP c, ALGORITHM=INSTANT",
                "DELETE FROM c14 WHERE a % 7 = 0",
                "ALTER TABLE c14 DROP x, DROP y, ADD c TEXT AFTER a, ALGORITHM=INSTANT",
                "INSERT IGNORE INTO c14 (a, b, c) SELECT seq, seq, REPEAT(seq, 100) "
                "FROM seq_1_to_1000", "DROP TABLE c14"],
    "alter in place": ["CREATE TABLE IF NOT EXISTS c11 (a INT PRIMARY KEY, b VARCHAR(50), c INT, "
                       "KEY b (b), KEY c (c)) ENGINE=CHEETAH",
                       "INSERT IGNORE INTO c11 SELECT seq, seq, seq % 10 FROM seq_1_to_1000",
                       "ALTER TABLE c11 DROP INDEX b, MODIFY b VARCHAR(60), ALGORITHM=INSTANT",
                       "UPDATE c11 SET b = CONCAT(b, 'x'), c = c + 1 WHERE a % 3 = 0",
                       "ALTER TABLE c11 RENAME INDEX c TO cc, RENAME COLUMN c TO d, "
                       "ALGORITHM=INSTANT",
                       "DELETE FROM c11 WHERE a % 7 = 0",
                       "ALTER TABLE c11 COMMENT 'in place', DROP INDEX cc, RENAME TO c12, "
                       "ALGORITHM=INSTANT", "DROP TABLE IF EXISTS c11, c12"],
    "add index": ["CREATE TABLE IF NOT EXISTS c13 (a INT PRIMARY KEY, b VARCHAR(50), c INT) "
                  "ENGINE=CHEETAH",
                  "INSERT IGNORE INTO c13 SELECT seq, seq, seq FROM seq_1_to_4000",
                  "ALTER TABLE c13 ADD INDEX b (b), ADD UNIQUE ca (c, a), ADD INDEX c (c), "
                  "ALGORITHM=NOCOPY, LOCK=NONE",
                  "ALTER TABLE c13 DROP INDEX b, DROP INDEX ca, DROP INDEX c"],
    "writes under add index": ["UPDATE c13 SET b = CONCAT(a, RAND()) WHERE a % 97 = "
                               "FLOOR(RAND() * 97)",
                               "DELETE FROM c13 WHERE a % 89 = FLOOR(RAND() * 89)",
                               "INSERT IGNORE INTO c13 SELECT seq, RAND(), seq FROM seq_1_to_4000 "
                               "WHERE seq % 53 = FLOOR(RAND() * 53)",
                               "UPDATE c13 SET c = c + 1 WHERE a % 101 = FLOOR(RAND() * 101)"],
    "engines": ["CREATE TABLE IF NOT EXISTS c8 (a INT PRIMARY KEY, b INT) ENGINE=InnoDB",
                "INSERT IGNORE INTO c8 SELECT seq, 1 FROM seq_1_to_1000",
                "ALTER TABLE c8 ENGINE=CHEETAH", "ALTER TABLE c8 ENGINE=InnoDB"],
    "partitions": ["CREATE TABLE IF NOT EXISTS c9 (a INT PRIMARY KEY) ENGINE=CHEETAH PARTITION BY "
                   "HASH (a) PARTITIONS 3",
                   "INSERT IGNORE INTO c9 SELECT seq FROM seq_1_to_500",
                   "ALTER TABLE c9 ADD PARTITION PARTITIONS 2", "DROP TABLE c9"],
    "loads": ["CREATE OR REPLACE TABLE c10 (KEY (b)) ENGINE=CHEETAH AS SELECT seq a, "
              "CONCAT(seq * 7919 % 10007, REPEAT('z', 200)) b FROM seq_1_to_8000",
              "ALTER TABLE c10 ADD PRIMARY KEY (b, a)"],
    "database": ["CREATE DATABASE IF NOT EXISTS dd",
                 "CREATE TABLE IF NOT EXISTS dd.t (a INT) ENGINE=CHEETAH",
                 "CREATE TABLE IF NOT EXISTS dd.u (a INT) ENGINE=CHEETAH", "DROP DATABASE dd"],
}
# Errors that follow from what an earlier kill left in the middle of a cycle.
LEFT_BY_KILLS = {1020, 1050, 1051, 1054, 1060, 1061, 1091, 1146, 1008, 1007, 1049, 1205, 1213, 1412}


def test_kills_at_random_moments(server, rng, rounds):
    """All cycles run at once, each on its own connection."""
    for statement in SETUP:
        server.sql(statement, "d")
    for _ in range(rounds):
        workers = [Cycle(server, statements) for statements in CYCLES.values()]
        kill_under(server, workers, rng.uniform(0.05, 1.2))
        server.start()
        check_everything(server)


def test_kills_in_alter_of_partitions_lose_no_row(server, rng, rounds):
    """The server's recovery renames the new table as if it had no partitions; the engine copes."""
    server.sql("CREATE TABLE p (a INT PRIMARY KEY) ENGINE=CHEETAH PARTITION BY HASH (a) "
               "PARTITIONS 3", "d")
    server.sql("INSERT INTO p SELECT seq FROM seq_1_to_300", "d")
    in_place = ["ALTER TABLE q ADD COLUMN IF NOT EXISTS x INT DEFAULT 7 FIRST",
                "ALTER TABLE q DROP COLUMN IF EXISTS x",
                "ALTER TABLE q RENAME COLUMN b TO c, RENAME INDEX b TO c, ALGORITHM=INSTANT",
                "ALTER TABLE q RENAME COLUMN c TO b, RENAME INDEX c TO b, ALGORITHM=INSTANT"]
    server.sql("CREATE TABLE q (a INT PRIMARY KEY, b INT, KEY b (b)) ENGINE=CHEETAH PARTITION BY "
               "HASH (a) PARTITIONS 3", "d")
    server.sql("INSERT INTO q SELECT seq, seq FROM seq_1_to_300", "d")
    for _ in range(rounds):
        by_copy = ["ALTER TABLE p ADD COLUMN IF NOT EXISTS b INT, ALGORITHM=COPY",
                   "ALTER TABLE p DROP COLUMN IF EXISTS b, ALGORITHM=COPY"]
        workers = [Cycle(server, statements) for statements in (in_place, by_copy)]
        kill_under(server, workers, rng.uniform(0.05, 0.6))
        server.start()
        assert server.value("SELECT COUNT(*) FROM d.q") == 300
        check_table(server, "d.q")
        assert server.value("SELECT COUNT(*) FROM d.p") == 300
        check_table(server, "d.p")


@pytest.mark.options({"loose_cheetah_buffer_pool_size": "8M", "log_bin": "binlog",
                      "binlog_format": "ROW"})
def test_a_statement_that_is_killed_while_it_loads_leaves_nothing(server, rng, rounds):
    """KILL QUERY in ALTER TABLE and CREATE TABLE .. SELECT; a tiny pool makes sorts spill."""
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=CHEETAH", "d")
    server.sql("INSERT INTO t SELECT seq, CONCAT(seq * 7919 % 60013, REPEAT('z', 40)) "
               "FROM seq_1_to_60000", "d")
    killed, statements = 0, {
        "ALTER TABLE t ADD UNIQUE b (b)": "ALTER TABLE t DROP INDEX b",
        "CREATE TABLE u (KEY (b)) ENGINE=CHEETAH SELECT b, a FROM t ORDER BY b": "DROP TABLE u"}
    seconds = {}
    for statement, undo in statements.items():
        began = time.monotonic()
        server.sql(statement, "d")
        seconds[statement] = time.monotonic() - began
        server.sql(undo, "d")
    for statement in [*statements] * rounds:
        connection = server.connect("d")
        killer = threading.Timer(rng.uniform(0, seconds[statement]), server.sql,
                                 [f"KILL QUERY {connection.thread_id()}"])
        killer.start()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                cursor.execute(statements[statement])
        except pymysql.MySQLError as failure:
            assert failure.args[0] in (1317, 1927, 1028)
            killed += 1
        killer.join()
        connection.close()
        server.sql("ALTER TABLE d.t DROP INDEX IF EXISTS b")
        server.sql("DROP TABLE IF EXISTS d.u")
        assert server.status("Cheetah_memory_sort_bytes") == 0, "a load keeps memory"
    assert killed > 0, "no statement was killed in time"
    wait_until(lambda: server.status("Cheetah_dropped_trees") == 0, "trees of loads are left")
    assert server.value("SELECT COUNT(*) FROM d.t") == 60000, "rows are missing"
    check_table(server, "d.t")


class Cycle(Client):
    """Runs its statements again and again."""

    def __init__(self, server, statements: list):
        super().__init__(server)
        self.statements = statements

    def work(self, cursor) -> None:
        """One cycle."""
        for statement in self.statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as failure:
                if failure.args[0] not in LEFT_BY_KILLS:
                    raise pymysql.MySQLError(*failure.args, statement) from failure


def check_everything(server):
    """Every listed table opens and is whole; nothing is an orphan; every name can be used."""
    assert server.value("SELECT COUNT(*) FROM d.keep FORCE INDEX (b) WHERE b > ''") == 2000
    for name in sorted(set(re.findall(r"'d/(c\d)#P#", str(server.sql("CHECK TABLE d.keep"))))):
        server.sql(f"DROP TABLE IF EXISTS d.{name}")
    tables = server.sql("SELECT table_schema, table_name, engine FROM information_schema.tables "
                        "WHERE table_schema IN ('d', 'dd')")
    for schema, name, engine in tables:
        assert engine is not None, f"{schema}.{name} cannot be opened"
        server.sql(f"SELECT COUNT(*) FROM `{schema}`.`{name}`")
        if name == "c10":
            assert server.value("SELECT COUNT(*) FROM d.c10") == 8000, "a load is there in part"
        check_table(server, f"`{schema}`.`{name}`")
    listed = {name for schema, name, _ in tables if schema == "d"} - {"keep"}
    for name in listed:
        server.sql(f"DROP TABLE d.`{name}`")
    for file in left_by_innodb(server, "d"):
        note(f"InnoDB has left {file.name}")
        file.unlink(missing_ok=True)
    for name in [f"c{number}" for number in range(1, 11)]:
        server.sql(f"CREATE TABLE d.{name} (a INT PRIMARY KEY) ENGINE=CHEETAH")
        server.sql(f"DROP TABLE d.{name}")
    server.sql("DROP DATABASE IF EXISTS dd")
