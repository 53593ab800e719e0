"""Kills the server in every kind of DDL. Then .frm files and catalog agree; tables are intact.

There is one exception, caused by the server (docs/users/limits.md): DDL on a partitioned table is
not atomic, and a kill may leave partitions without their table. CHECK TABLE names these partitions,
and DROP TABLE IF EXISTS removes them."""

import re
import threading
import time
from pathlib import Path

import listed
import pymysql
import pytest
from cheetah_tools.say import note
from servers import Client, check_table, kill_under, left_by_innodb, run, Session, wait_until

CYCLES = listed.statements(Path(__file__).with_name("ddl_kills.sql"))
SETUP = CYCLES.pop("setup")
# Errors because an earlier kill interrupted a cycle.
LEFT_BY_KILLS = {1020, 1050, 1051, 1054, 1060, 1061, 1091, 1146, 1008, 1007, 1049, 1205, 1213, 1412}


def test_kills_at_random_moments(server, rng, rounds):
    run(server, *SETUP)
    for _ in range(rounds):
        workers = [Cycle(server, statements) for statements in CYCLES.values()]
        kill_under(server, workers, rng.uniform(0.05, 1.2))
        server.start()
        check_everything(server)


def test_kills_in_alter_of_partitions_lose_no_row(server, rng, rounds):
    """The server's recovery renames the new table as if it had no partitions."""
    run(server, "CREATE TABLE p (a INT PRIMARY KEY) ENGINE=CHEETAH PARTITION BY HASH (a) "
        "PARTITIONS 3", "INSERT INTO p SELECT seq FROM seq_1_to_300",
        "CREATE TABLE q (a INT PRIMARY KEY, b INT, KEY b (b)) ENGINE=CHEETAH PARTITION BY HASH (a) "
        "PARTITIONS 3", "INSERT INTO q SELECT seq, seq FROM seq_1_to_300")
    in_place = ["ALTER TABLE q ADD COLUMN IF NOT EXISTS x INT DEFAULT 7 FIRST",
                "ALTER TABLE q DROP COLUMN IF EXISTS x",
                "ALTER TABLE q RENAME COLUMN b TO c, RENAME INDEX b TO c, ALGORITHM=INSTANT",
                "ALTER TABLE q RENAME COLUMN c TO b, RENAME INDEX c TO b, ALGORITHM=INSTANT"]
    for _ in range(rounds):
        by_copy = ["ALTER TABLE p ADD COLUMN IF NOT EXISTS b INT, ALGORITHM=COPY",
                   "ALTER TABLE p DROP COLUMN IF EXISTS b, ALGORITHM=COPY"]
        workers = [Cycle(server, statements) for statements in (in_place, by_copy)]
        kill_under(server, workers, rng.uniform(0.05, 0.6))
        server.start()
        for name in "qp":
            assert server.value(f"SELECT COUNT(*) FROM d.{name}") == 300
            check_table(server, name)


@pytest.mark.options({"loose_cheetah_buffer_pool_size": "8M", "log_bin": "binlog",
                      "binlog_format": "ROW"})
def test_a_statement_that_is_killed_while_it_loads_leaves_nothing(server, rng, rounds):
    """KILL QUERY interrupts ALTER and CREATE TABLE .. SELECT. A tiny pool makes sorts spill."""
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=CHEETAH",
        "INSERT INTO t SELECT seq, CONCAT(seq * 7919 % 60013, REPEAT('z', 40)) FROM seq_1_to_60000")
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
        with Session(server) as session:
            killer = threading.Timer(rng.uniform(0, seconds[statement]), server.sql,
                                     [f"KILL QUERY {session.id}"])
            killer.start()
            try:
                session.run(statement, statements[statement])
            except pymysql.MySQLError as failure:
                assert failure.args[0] in (1317, 1927, 1028)
                killed += 1
            killer.join()
        run(server, "ALTER TABLE t DROP INDEX IF EXISTS b", "DROP TABLE IF EXISTS u")
        assert server.status("Cheetah_memory_sort_bytes") == 0, "a load keeps memory"
    assert killed > 0, "no statement was killed in time"
    wait_until(lambda: server.status("Cheetah_dropped_trees") == 0, "trees of loads are left")
    assert server.value("SELECT COUNT(*) FROM d.t") == 60000, "rows are missing"
    check_table(server, "t")


class Cycle(Client):
    refusals = LEFT_BY_KILLS

    def __init__(self, server, statements: list):
        super().__init__(server)
        self.statements = statements

    def work(self, cursor) -> None:
        for statement in self.statements:
            self.attempt(cursor, statement)


def check_everything(server):
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
    run(server, *(f"DROP TABLE `{name}`" for name in listed))
    for file in left_by_innodb(server, "d"):
        note(f"InnoDB has left {file.name}")
        file.unlink(missing_ok=True)
    for name in [f"c{number}" for number in range(1, 11)]:
        run(server, f"CREATE TABLE {name} (a INT PRIMARY KEY) ENGINE=CHEETAH", f"DROP TABLE {name}")
    server.sql("DROP DATABASE IF EXISTS dd")
