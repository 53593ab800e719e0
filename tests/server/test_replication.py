"""A replica that applies in parallel into Cheetah: same rows, no standstill, no lost position."""

import contextlib
import os
import socket
import threading
import time

import pymysql
import pytest
from cheetah_tools.say import note
from servers import Client, working

PRIMARY, REPLICA = 1, 2
WRITERS = 6
CATCH_UP_SECONDS = 600   # some seconds is what it takes
SLAVE_SQL_RUNNING = 11   # column of SHOW SLAVE STATUS
# Each process begins somewhere else.
PORTS = iter(range(10_000 + os.getpid() % 500 * 30, 32_000))
# A replica that has applied so many more transactions is in the middle of those of a load.
IN_THE_MIDDLE = 20
# Of a table that CREATE TABLE .. SELECT fills, and how many of them.
FILLED_ROWS, FILLED_MAX = 50_000, 20


def options(number: int, **more) -> dict:
    """Of a server with GTIDs; row format."""
    return {"server_id": number, "log_bin": "bin", "binlog_format": "ROW", "gtid_strict_mode": "ON",
            "log_slave_updates": "ON",
            "gtid_domain_id": 0, "loose_cheetah_lock_wait_timeout": 30,
            "innodb_lock_wait_timeout": 30, "sync_binlog": 1,
            "slave_net_timeout": 10, **more}


def replicated(new_server, mode: str, of_replica: dict = None, **more) -> tuple:
    """A primary, and a replica with eight threads, which makes tables of Cheetah where the primary
    was told so by a session. It reads by TCP, as it cannot use a socket. `of_replica`: options that
    it has beside its own; `more`: of the primary."""
    port = free_port()
    primary = new_server(options(PRIMARY, binlog_commit_wait_count=4, binlog_commit_wait_usec=5000,
                                 skip_networking="OFF",
                                 bind_address="127.0.0.1", port=port, **more))
    primary.start()
    primary.sql("CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'replica'")
    primary.sql("GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'")
    primary.sql("CREATE DATABASE d")
    primary.sql("CREATE TABLE d.hot (a INT PRIMARY KEY, b INT NOT NULL, c INT NOT NULL, KEY (c)) "
                "ENGINE=CHEETAH")
    primary.sql("CREATE TABLE d.rows (a INT AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL, t "
                "VARCHAR(200), UNIQUE (u)) ENGINE=CHEETAH")
    primary.sql("INSERT INTO d.hot SELECT seq, 0, seq % 3 FROM seq_1_to_20", "d")
    # With the server's own number of retries: only the later one of two workers in a deadlock is
    # rolled back, and waits for its turn then.
    replica = new_server(options(REPLICA, slave_parallel_threads=8, slave_parallel_mode=mode,
                                 skip_slave_start=None, default_storage_engine="CHEETAH",
                                 **{"gtid_pos_auto_engines": "CHEETAH", **(of_replica or {})}))
    replica.start()
    replica.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, "
                "MASTER_USER='replica', MASTER_PASSWORD='replica', "
                "MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos")
    replica.sql("START SLAVE")
    return primary, replica


def free_port() -> int:
    """A port of this machine that nobody has, another one at each call. Outgoing connections, which
    could take it while its server is down, have higher ones."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Writer(Client):
    """Transactions that meet each other's rows."""

    autocommit, refusals = False, (1213, 1062)

    def work(self, cursor) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.one(cursor, self.rng)
        self.connection.commit()

    @staticmethod
    def one(cursor, rng) -> None:
        """A statement."""
        kind = rng.randint(0, 5)
        if kind < 3:
            cursor.execute(f"UPDATE hot SET b = b + 1, c = {rng.randint(0, 9)} "
                           f"WHERE a = {rng.randint(1, 20)}")
        elif kind == 3:
            cursor.execute("INSERT INTO `rows` (u, t) "
                           f"VALUES ({rng.randint(1, 100000)}, REPEAT('x', {rng.randint(1, 200)}))")
        elif kind == 4:
            cursor.execute(f"DELETE FROM `rows` WHERE u < {rng.randint(1, 100000)} ORDER BY u "
                           "DESC LIMIT 2")
        else:
            cursor.execute(f"REPLACE INTO `rows` (u, t) VALUES ({rng.randint(1, 300)}, 'r')")


def load(rng, primary, seconds: float) -> int:
    """Write from several connections; the number of transactions."""
    with working([Writer(primary, number, rng.getrandbits(32))
                  for number in range(WRITERS)]) as writers:
        time.sleep(seconds)
    return sum(writer.done for writer in writers)


def catch_up(primary, replica) -> float:
    """Wait until the replica has all that the primary has; the seconds."""
    position, started = primary.value("SELECT @@gtid_binlog_pos"), time.monotonic()
    while replica.value(f"SELECT MASTER_GTID_WAIT('{position}', 2)") != 0:
        seconds, state = time.monotonic() - started, replica.sql("SHOW SLAVE STATUS")[0]
        told = [text for text in state if isinstance(text, str) and len(text) > 20]
        assert state[SLAVE_SQL_RUNNING] == "Yes" and seconds < CATCH_UP_SECONDS, \
            f"the replica has not come to {position} in {seconds:.0f} s: {told}"
    return time.monotonic() - started


def applied(replica) -> int:
    """The number of the last transaction that the replica has applied, by its GTID."""
    position = replica.value("SELECT @@gtid_slave_pos")
    return int(position.rsplit("-", 1)[1]) if position else 0


def apply_some(replica, writing: threading.Thread) -> None:
    """Wait until the replica has applied some transactions of those that are being written."""
    until, target = time.monotonic() + CATCH_UP_SECONDS, applied(replica) + IN_THE_MIDDLE
    while applied(replica) < target and writing.is_alive():
        assert time.monotonic() < until
        time.sleep(0.01)


def same_rows(primary, replica) -> None:
    """Both have the same rows, in sound tables."""
    for table in ("hot", "rows"):
        sums = [server.sql(f"CHECKSUM TABLE d.`{table}`")[0][1] for server in (primary, replica)]
        assert sums[0] == sums[1], f"{table}: checksums {sums}"
        assert replica.sql(f"CHECK TABLE d.`{table}`")[-1][3] == "OK", f"{table} is damaged"


def apply_in_parallel(new_server, rng, mode: str, **more) -> None:
    """Load, catch up, compare."""
    primary, replica = replicated(new_server, mode, **more)
    count = load(rng, primary, 4)
    seconds = catch_up(primary, replica)
    same_rows(primary, replica)
    retried = replica.status("Slave_retried_transactions")
    note(f"{count} transactions, {seconds:.1f} s to catch up, {retried} tried again")
    for server in (replica, primary):
        server.stop()


def test_a_replica_applies_optimistically(new_server, rng):
    """Transactions of different groups run at the same time; those that meet are tried again."""
    apply_in_parallel(new_server, rng, "optimistic")


def test_a_replica_applies_conservatively(new_server, rng):
    """Only what was committed in one group runs at the same time."""
    apply_in_parallel(new_server, rng, "conservative")


def test_a_replica_shows_no_table_that_is_being_filled(new_server):
    """CREATE TABLE .. SELECT is an event that creates the table, and others with its rows: who has
    a snapshot from in between is refused the table."""
    primary, replica = replicated(new_server, "conservative")
    catch_up(primary, replica)
    for number in range(FILLED_MAX):
        primary.sql(f"CREATE TABLE d.filled{number} ENGINE=CHEETAH "
                    f"SELECT seq, REPEAT('x', 200) pad FROM seq_1_to_{FILLED_ROWS}", "d")
        with contextlib.closing(replica.connect("d", autocommit=True)) as connection:
            cursor = connection.cursor()
            while not cursor.execute(f"SHOW TABLES LIKE 'filled{number}'"):
                pass
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            catch_up(primary, replica)
            try:
                cursor.execute(f"SELECT COUNT(*) FROM filled{number}")
                # The snapshot came late.
                assert cursor.fetchone()[0] == FILLED_ROWS
            except pymysql.MySQLError as failure:
                assert failure.args[0] == 1412, failure
                return
    pytest.fail(f"no snapshot in {FILLED_MAX} came while the table was filled")


def test_a_replica_repeats_statements(new_server, rng):
    """Statements give the same rows, as locks keep the ranges that they have read."""
    apply_in_parallel(new_server, rng, "optimistic", binlog_format="STATEMENT")


@pytest.mark.options(options(PRIMARY))
def test_statements_are_logged_as_those_on_innodb(server):
    """As rows or as statements, or refused: by format, isolation level, and statement."""
    for engine in ("InnoDB", "CHEETAH"):
        server.sql(f"CREATE TABLE d.{engine} (a INT AUTO_INCREMENT PRIMARY KEY, b INT, c "
                   f"VARCHAR(99)) ENGINE={engine}")
        server.sql(f"INSERT INTO {engine} (b, c) SELECT seq, 'x' FROM seq_1_to_50", "d")
    for form in ("STATEMENT", "MIXED", "ROW"):
        for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            for text in LOGGED:
                found = [logged(server, form, level, text, engine)
                         for engine in ("InnoDB", "CHEETAH")]
                assert found[0] == found[1], \
                    f"{form}, {level}: {text}: {found[0]} on InnoDB, {found[1]} on Cheetah"


LOGGED = ["INSERT INTO {t} (b, c) VALUES (1, 'y')", "UPDATE {t} SET b = b + 1 WHERE a < 5",
          "DELETE FROM {t} WHERE a = 7",
          "UPDATE {t} SET c = UUID() WHERE a = 8",
          "INSERT INTO {t} (b, c) SELECT b, c FROM {t} WHERE a < 4", "DELETE FROM {t} LIMIT 1",
          "REPLACE INTO {t} VALUES (9, 9, 'z')",
          "INSERT INTO {t} VALUES (9, 1, 'q') ON DUPLICATE KEY UPDATE b = b + 1",
          "UPDATE {t} SET b = 3 WHERE a = -1", "TRUNCATE TABLE {t}"]


def logged(server, form: str, level: str, text: str, engine: str) -> tuple:
    """The error of a statement, and the kinds of events that the binary log has of it."""
    connection = server.connect("d")
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION binlog_format={form}")
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("SHOW MASTER STATUS")
            file, position = cursor.fetchone()[:2]
            try:
                cursor.execute(text.format(t=engine))
                error = 0
            except pymysql.MySQLError as failure:
                error = failure.args[0]
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
            return error, [row[2] for row in cursor.fetchall()]
    finally:
        connection.close()


def test_a_replica_knows_its_position_after_kills(new_server, rng):
    """The position is in a table of the engine, and goes with what was applied."""
    primary, replica = replicated(new_server, "optimistic")
    for _ in range(3):
        writing = threading.Thread(target=load, args=(rng, primary, 2), daemon=True)
        writing.start()
        apply_some(replica, writing)
        replica.kill()
        writing.join()
        replica.start()
        replica.sql("START SLAVE")
        catch_up(primary, replica)
        same_rows(primary, replica)
    engines = replica.sql("SELECT engine FROM information_schema.tables "
                          "WHERE table_schema = 'mysql' AND table_name LIKE 'gtid_slave_pos%'")
    assert ("CHEETAH",) in engines, f"positions are kept in {engines}"
    for server in (replica, primary):
        server.stop()
