"""An InnoDB primary and a replica with Cheetah's tables, the first step for users who try the
engine. During TPC-C, in each format of the binary log, both have the same rows."""

import contextlib

import pytest
import tpcc
from cheetah_tools import dump
from cheetah_tools.say import note
from cluster import slave_status
from servers import run, Session, started, wait_until, working
from test_replication import (ACCOUNT, CATCH_UP_SECONDS, PRIMARY, REPLICA, catch_up, follow,
                              listening, options)
from test_tpcc import check_conditions

CLIENTS, TRANSACTIONS_BETWEEN = 4, 40
ROUNDS = 2   # the number of comparisons in each format


class Terminal(tpcc.Client):
    """A TPC-C terminal. Changes at READ COMMITTED cannot be logged as statements."""

    form = "ROW"

    def begin(self, cursor) -> None:
        super().begin(cursor)
        if self.form == "STATEMENT":
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


@pytest.fixture
def adopted(new_server):
    """A primary without the engine, and a replica that converted its tables."""
    primary = new_server(options(PRIMARY, **listening()), plugin=None)
    replica = new_server(options(REPLICA, slave_parallel_threads=4, read_only="ON",
                                 slave_parallel_mode="optimistic", skip_slave_start=None,
                                 gtid_pos_auto_engines="CHEETAH", default_storage_engine="CHEETAH"))
    tpcc.create(started(primary, *ACCOUNT), "InnoDB")
    follow(started(replica), primary)
    catch_up(primary, replica)
    replica.sql("STOP SLAVE")
    with Session(replica, tpcc.DATABASE) as session:
        session.run("SET SESSION sql_log_bin = OFF",
                    *(f"ALTER TABLE {table} ENGINE=CHEETAH" for table in tpcc.TABLES))
    replica.sql("START SLAVE")
    return primary, replica


def test_a_replica_of_innodb_has_the_same_rows_while_both_work(adopted, rounds):
    primary, replica = adopted
    primary.sql("CREATE TABLE later (a INT PRIMARY KEY)", tpcc.DATABASE)
    for form in ("STATEMENT", "MIXED", "ROW"):
        primary.sql(f"SET GLOBAL binlog_format = {form}")
        with terminals(primary, form) as working:
            for _ in range(rounds):
                done = sum(client.done for client in working)
                wait_until(lambda before=done: sum(client.done for client in working)
                           >= before + TRANSACTIONS_BETWEEN, "transactions")
                compare(primary, replica, form)
    catch_up(primary, replica)
    engines = dict(replica.sql("SELECT table_name, engine FROM information_schema.tables WHERE "
                               f"table_schema = '{tpcc.DATABASE}'"))
    assert set(engines.values()) == {"CHEETAH"} and "later" in engines, engines
    assert dump.checksums(primary, tpcc.DATABASE) == dump.checksums(replica, tpcc.DATABASE)
    check_conditions(replica)


@contextlib.contextmanager
def terminals(server, form: str):
    clients = [Terminal(server, number, f"{form}/{number}") for number in range(CLIENTS)]
    for client in clients:
        client.form = form
    with working(clients):
        yield clients
    note(f"{form}: {sum(client.done for client in clients)} transactions")


def compare(primary, replica, form: str) -> None:
    replica.sql("STOP SLAVE")
    position, wanted = snapshot_sums(primary)
    replica.sql(f"START SLAVE UNTIL master_gtid_pos = '{position}'")
    wait_until(lambda: slave_status(replica)["Slave_SQL_Running"] == "No",
               f"{form}: the replica at {position}", CATCH_UP_SECONDS)
    assert replica.value("SELECT @@gtid_slave_pos") == position, replica.log_tail()
    found = dump.checksums(replica, tpcc.DATABASE)
    assert found == wanted, f"{form}, at {position}: {found} and {wanted}"
    run(replica, "STOP SLAVE", "START SLAVE", database="")


def snapshot_sums(server) -> tuple:
    """Returns a binary log position as a GTID, and the checksums of all tables at that position."""
    with Session(server, tpcc.DATABASE) as session:
        at = dict(session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT",
                              "SHOW STATUS LIKE 'Binlog\\_snapshot\\_%'"))
        position = session.run(f"SELECT BINLOG_GTID_POS('{at['Binlog_snapshot_file']}', "
                               f"{at['Binlog_snapshot_position']})")[0][0]
        sums = session.run("CHECKSUM TABLE " + ", ".join(dump.base_tables(server, tpcc.DATABASE)))
    return position, {name.removeprefix(tpcc.DATABASE + "."): sum_ for name, sum_ in sums}
