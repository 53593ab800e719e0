"""A replica with parallel workers has the same rows, never hangs, and keeps its position."""

import time

import pytest
from cheetah_tools.say import note
from servers import Client, free_port, Session, started, wait_until, working

PRIMARY, REPLICA = 1, 2
WRITERS, LOAD_SECONDS = 6, 2
CATCH_UP_SECONDS = 600   # usually some seconds
SLAVE_SQL_RUNNING = 11   # column of SHOW SLAVE STATUS
ACCOUNT = ["CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'replica'",
           "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'"]
# After this number of further transactions, a replica is in the middle of a load.
IN_THE_MIDDLE = 20
# The rows of a table filled by CREATE TABLE .. SELECT, and the maximum number of such tables.
FILLED_ROWS, FILLED_MAX = 50_000, 20


def options(number: int, **more) -> dict:
    return {"server_id": number, "log_bin": "bin", "binlog_format": "ROW", "gtid_strict_mode": "ON",
            "log_slave_updates": "ON", "gtid_domain_id": 0, "loose_cheetah_lock_wait_timeout": 30,
            "innodb_lock_wait_timeout": 30, "sync_binlog": 1, "slave_net_timeout": 10, **more}


def listening(address: str = "127.0.0.1") -> dict:
    """Returns options of a server that listens on TCP, because a replica cannot use a socket."""
    return {"skip_networking": "OFF", "bind_address": address, "port": free_port()}


def follow(replica, primary) -> None:
    replica.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_CONNECT_RETRY=1, "
                f"MASTER_PORT={primary.options['port']}, MASTER_USER='replica', "
                "MASTER_PASSWORD='replica', MASTER_USE_GTID=slave_pos")
    replica.sql("START SLAVE")


def replicated(new_server, mode: str, of_replica: dict = None, **more) -> tuple:
    """Returns a primary and a replica with eight threads, which creates Cheetah tables where a
    session set the engine. `of_replica` and `more`: additional options of replica and primary."""
    primary = new_server(options(PRIMARY, binlog_commit_wait_count=4, binlog_commit_wait_usec=5000,
                                 **listening(), **more))
    started(primary, *ACCOUNT, "CREATE DATABASE d",
            "CREATE TABLE d.hot (a INT PRIMARY KEY, b INT NOT NULL, c INT NOT NULL, KEY (c)) "
            "ENGINE=CHEETAH",
            "CREATE TABLE d.rows (a INT AUTO_INCREMENT PRIMARY KEY, u INT NOT NULL, "
            "t VARCHAR(200), UNIQUE (u)) ENGINE=CHEETAH",
            "INSERT INTO d.hot SELECT seq, 0, seq % 3 FROM mysql.seq_1_to_20")
    # In a deadlock only the later worker is rolled back and waits: the default retries suffice.
    replica = new_server(options(REPLICA, slave_parallel_threads=8, slave_parallel_mode=mode,
                                 skip_slave_start=None, default_storage_engine="CHEETAH",
                                 **{"gtid_pos_auto_engines": "CHEETAH", **(of_replica or {})}))
    follow(started(replica), primary)
    return primary, replica


class Writer(Client):
    autocommit, refusals = False, (1213, 1062)

    def work(self, cursor) -> None:
        number = self.rng.randint
        for _ in range(number(1, 4)):
            update = f"UPDATE hot SET b = b + 1, c = {number(0, 9)} WHERE a = {number(1, 20)}"
            cursor.execute(self.rng.choice([
                update, update, update, f"INSERT INTO `rows` (u, t) VALUES ({number(1, 100000)}, "
                f"REPEAT('x', {number(1, 200)}))",
                f"DELETE FROM `rows` WHERE u < {number(1, 100000)} ORDER BY u DESC LIMIT 2",
                f"REPLACE INTO `rows` (u, t) VALUES ({number(1, 300)}, 'r')"]))
        self.connection.commit()


def load(rng, primary):
    return working([Writer(primary, number, rng.getrandbits(32)) for number in range(WRITERS)])


def catch_up(primary, replica) -> float:
    """Waits until the replica has applied all transactions of the primary. Returns the seconds."""
    position, started = primary.value("SELECT @@gtid_binlog_pos"), time.monotonic()
    while replica.value(f"SELECT MASTER_GTID_WAIT('{position}', 2)") != 0:
        seconds, state = time.monotonic() - started, replica.sql("SHOW SLAVE STATUS")[0]
        told = [text for text in state if isinstance(text, str) and len(text) > 20]
        assert state[SLAVE_SQL_RUNNING] == "Yes" and seconds < CATCH_UP_SECONDS, \
            f"the replica has not come to {position} in {seconds:.0f} s: {told}"
    return time.monotonic() - started


def applied(replica) -> int:
    """Returns the sequence number in the GTID of the last applied transaction."""
    position = replica.value("SELECT @@gtid_slave_pos")
    return int(position.rsplit("-", 1)[1]) if position else 0


def apply_some(replica) -> None:
    """Waits until the replica has applied some of the transactions that are being written."""
    target = applied(replica) + IN_THE_MIDDLE
    wait_until(lambda: applied(replica) >= target, "transactions", CATCH_UP_SECONDS)


def same_rows(primary, replica) -> None:
    for table in ("hot", "rows"):
        sums = [server.sql(f"CHECKSUM TABLE d.`{table}`")[0][1] for server in (primary, replica)]
        assert sums[0] == sums[1], f"{table}: checksums {sums}"
        assert replica.sql(f"CHECK TABLE d.`{table}`")[-1][3] == "OK", f"{table} is damaged"


@pytest.mark.parametrize("mode, form", [("optimistic", "ROW"), ("conservative", "ROW"),
                                        ("optimistic", "STATEMENT")])
def test_a_replica_applies_in_parallel(new_server, rng, mode, form):
    """In optimistic mode, transactions of different commit groups run concurrently and are retried
    after conflicts. In conservative mode, only transactions of one group run concurrently.
    Statements give the same rows, because locks protect the ranges they read."""
    primary, replica = replicated(new_server, mode, binlog_format=form)
    with load(rng, primary) as writers:
        time.sleep(LOAD_SECONDS)
    seconds = catch_up(primary, replica)
    same_rows(primary, replica)
    retried = replica.status("Slave_retried_transactions")
    note(f"{sum(writer.done for writer in writers)} transactions, {seconds:.1f} s to catch up, "
         f"{retried} tried again")


def test_a_replica_shows_no_table_that_is_being_filled(new_server):
    """CREATE TABLE .. SELECT is logged as an event that creates the table and further events with
    its rows. A transaction whose snapshot was taken in between is refused access to the table."""
    primary, replica = replicated(new_server, "conservative")
    catch_up(primary, replica)
    for number in range(FILLED_MAX):
        primary.sql(f"CREATE TABLE d.filled{number} ENGINE=CHEETAH "
                    f"SELECT seq, REPEAT('x', 200) pad FROM seq_1_to_{FILLED_ROWS}", "d")
        with Session(replica) as session:
            while not session.run(f"SHOW TABLES LIKE 'filled{number}'"):
                pass
            session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            catch_up(primary, replica)
            if error := session.error(f"SELECT COUNT(*) FROM filled{number}"):
                assert error == 1412
                return
            assert session.cursor.fetchone()[0] == FILLED_ROWS   # the snapshot was taken too late
    pytest.fail(f"no snapshot in {FILLED_MAX} came while the table was filled")


@pytest.mark.options(options(PRIMARY))
def test_statements_are_logged_as_those_on_innodb(server):
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
          "DELETE FROM {t} WHERE a = 7", "UPDATE {t} SET c = UUID() WHERE a = 8",
          "INSERT INTO {t} (b, c) SELECT b, c FROM {t} WHERE a < 4", "DELETE FROM {t} LIMIT 1",
          "REPLACE INTO {t} VALUES (9, 9, 'z')",
          "INSERT INTO {t} VALUES (9, 1, 'q') ON DUPLICATE KEY UPDATE b = b + 1",
          "UPDATE {t} SET b = 3 WHERE a = -1", "TRUNCATE TABLE {t}"]


def logged(server, form: str, level: str, text: str, engine: str) -> tuple:
    with Session(server) as session:
        file, position = session.run(f"SET SESSION binlog_format={form}",
                                     f"SET SESSION TRANSACTION ISOLATION LEVEL {level}",
                                     "SHOW MASTER STATUS")[0][:2]
        error = session.error(text.format(t=engine))
        events = session.run(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
        return error, [row[2] for row in events]


def test_a_replica_knows_its_position_after_kills(new_server, rng):
    """The position is in a table of the engine, so it is committed with each transaction."""
    primary, replica = replicated(new_server, "optimistic")
    for _ in range(3):
        with load(rng, primary):
            apply_some(replica)
            replica.kill()
        started(replica, "START SLAVE")
        catch_up(primary, replica)
        same_rows(primary, replica)
    engines = replica.sql("SELECT engine FROM information_schema.tables "
                          "WHERE table_schema = 'mysql' AND table_name LIKE 'gtid_slave_pos%'")
    assert ("CHEETAH",) in engines, f"positions are kept in {engines}"
