"""information_schema.CHEETAH_TRX, _LOCKS and _LOCK_WAITS, and the status's latest deadlock."""

import re
import time

import pytest
from servers import Client, crash, expect_nothing_without_process, Sent, wait_until, working

# What sys.innodb_lock_waits asks of InnoDB's tables, of ours.
WAITS = """
SELECT r.trx_mysql_thread_id, r.trx_query, r.trx_state, rl.lock_table, rl.lock_type,
       rl.lock_mode, b.trx_mysql_thread_id, bl.lock_mode,
       TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) BETWEEN 0 AND 60,
       r.trx_requested_lock_id = rl.lock_id
FROM information_schema.cheetah_lock_waits w
JOIN information_schema.cheetah_trx b ON b.trx_id = w.blocking_trx_id
JOIN information_schema.cheetah_trx r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.cheetah_locks bl ON bl.lock_id = w.blocking_lock_id
JOIN information_schema.cheetah_locks rl ON rl.lock_id = w.requested_lock_id"""


class Session:
    """A connection whose statements may wait."""

    def __init__(self, server):
        self.connection = server.connect("d", autocommit=False)
        self.cursor = self.connection.cursor()
        self.id = self.connection.thread_id()
        self.sent = None

    def run(self, *texts: str) -> None:
        """Execute, one after the other."""
        for text in texts:
            self.cursor.execute(text)

    def send(self, text: str) -> None:
        """Execute while the test goes on."""
        self.sent = Sent(self.connection, text)

    def end(self) -> int:
        """Wait for what was sent; the number of its error."""
        return self.sent.ends()


@pytest.fixture
def started(server) -> tuple:
    """A server with a table, and three sessions."""
    server.sql("CREATE TABLE d.`t``x` (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.`t``x` VALUES (1, 1), (2, 2), (3, 3)")
    return server, [Session(server) for _ in range(3)]


def wait_for(server, statement: str) -> list:
    """The rows of the statement, once there are some."""
    return wait_until(lambda: server.sql(statement), f"no rows: {statement}")


def test_a_blocked_session_is_shown_with_whom_it_waits_for(started):
    """Who waits, with its statement, for which lock, and who has that."""
    server, (first, second, _) = started
    first.run("UPDATE `t``x` SET b = 10 WHERE a = 1")
    second.send("UPDATE `t``x` SET b = 20 WHERE a = 1")
    waits = wait_for(server, WAITS)
    assert len(waits) == 1, f"waits: {waits}"
    thread, query, state, table, kind, mode, other, held, is_recent, is_requested = waits[0]
    assert (thread, other) == (second.id, first.id), f"{other} keeps {thread} waiting"
    assert (state, table, mode, held) == ("LOCK WAIT", "`d`.`t``x`", "X", "X")
    assert query == "UPDATE `t``x` SET b = 20 WHERE a = 1" and kind in ("TABLE", "RECORD")
    assert is_recent == 1 and is_requested == 1
    assert server.status("Cheetah_lock_waits_current") == 1, "the status does not tell of the wait"
    rows = server.sql("SELECT trx_rows_modified, trx_weight > 1, trx_isolation_level, trx_started "
                      "<= NOW() "
                      f"FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = {first.id}")
    assert rows == [(1, 1, "REPEATABLE READ", 1)], f"the transaction that is waited for: {rows}"
    first.run("COMMIT")
    assert second.end() == 0, second.sent.failure
    second.run("COMMIT")
    for view in ("trx", "locks", "lock_waits"):
        left = server.sql(f"SELECT * FROM information_schema.cheetah_{view}")
        assert not left, f"{view} after the end: {left}"
    assert server.status("Cheetah_lock_waits") == 1 and server.status(
        "Cheetah_lock_wait_ms_max") > 0


def test_what_a_connection_has_set_is_shown(started):
    """Settings, reading only, and the tables of the current statement."""
    server, (first, second, third) = started
    shown = """SELECT trx_is_read_only, trx_autocommit_non_locking, trx_unique_checks,
               trx_foreign_key_checks, trx_tables_in_use, trx_concurrency_tickets
               FROM information_schema.cheetah_trx WHERE trx_mysql_thread_id = {}"""
    first.run("SET unique_checks = 0, foreign_key_checks = 0",
              "UPDATE `t``x` SET b = 5 WHERE a = 1")
    second.run("START TRANSACTION READ ONLY", "SELECT * FROM `t``x`")
    for session, expected in ((first, (0, 0, 0, 0, 0, 0)), (second, (1, 0, 1, 1, 0, 0))):
        rows = server.sql(shown.format(session.id))
        assert rows == [expected], f"{rows}, expected {expected}"
    third.run("SET autocommit = 1")
    third.send("SELECT SLEEP(60), x.a FROM `t``x` x JOIN `t``x` y WHERE x.a = y.b LIMIT 1")
    rows = wait_for(server, shown.format(third.id) + " AND trx_autocommit_non_locking = 1")
    assert rows == [(1, 1, 1, 1, 2, 0)], f"a read of one statement: {rows}"
    server.sql(f"KILL QUERY {third.id}")
    third.end()
    third.send("UPDATE `t``x` SET b = 6 WHERE a = 1")
    rows = wait_for(server, shown.format(third.id) + " AND trx_state = 'LOCK WAIT'")
    assert rows == [(0, 0, 1, 1, 1, 0)], f"a change in autocommit mode: {rows}"
    first.run("ROLLBACK")
    third.end()
    assert not server.sql(shown.format(third.id))


def end_in_deadlock(server, first, second) -> None:
    """Both change two rows, each in another order than the other one."""
    server.sql("CREATE TABLE d.u (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.u VALUES (1, 1)")
    first.run("UPDATE `t``x` SET b = 10 WHERE a = 1")
    second.run("UPDATE u SET b = 20 WHERE a = 1")
    first.send("UPDATE u SET b = 11 WHERE a = 1")
    assert wait_for(server, WAITS), "nobody waits"
    second.send("UPDATE `t``x` SET b = 21 WHERE a = 1")
    assert sorted([first.end(), second.end()]) == [0, 1213]


def test_the_latest_deadlock_is_in_the_status(started):
    """With both connections and their statements; one of them was rolled back."""
    server, (first, second, _) = started
    end_in_deadlock(server, first, second)
    text = server.sql("SHOW ENGINE CHEETAH STATUS")[0][2]
    heading = "LATEST DETECTED DEADLOCK\\n-{24}\\n\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\n"
    assert re.search(heading, text), text
    assert "record (1) of index" in text and DUMPED not in server.log.read_text()
    for part in ("LATEST DETECTED DEADLOCK", "UPDATE u SET b = 11", "UPDATE `t``x` SET b = 21",
                 f"thread id {first.id}", f"thread id {second.id}",
                 "WE ROLL BACK TRANSACTION", "d/u"):
        assert part in text, f"'{part}' is missing in\n{text}"
    assert server.status("Cheetah_deadlocks") == 1, "the deadlock is not counted"


DUMPED = "CHEETAH: Transactions deadlock detected"
KEYS = [("a INT", "-5", "(-5)"), ("a BIGINT UNSIGNED", "18446744073709551615",
                                   "(18446744073709551615)"),
        ("a VARCHAR(20) COLLATE utf8mb4_general_ci", "'anna b'", "('ANNA B')"),
        ("a VARCHAR(20) CHARACTER SET latin1", "'Anna'", "('ANNA')"),
        ("a CHAR(20) COLLATE utf8mb4_bin", "'\u00c4nna'", "('\u00c4nna')"),
        ("a VARCHAR(20) COLLATE utf8mb4_nopad_bin", "'anna '", "('anna ')"),
        ("a VARCHAR(20) COLLATE utf8mb4_unicode_ci", "'anna'", "(0x"),
        ("a VARBINARY(20)", "'anna'", "(0x"),
        ("a DATE", "'2026-11-28'", "('2026-11-28')"),
        ("a DATETIME(3)", "'2026-11-28 20:00:01.5'", "('2026-11-28 20:00:01.500')"),
        ("a DATETIME(6)", "'2026-11-28 20:00:01.000005'", "('2026-11-28 20:00:01.000005')"),
        ("a TIME", "'-10:00:01'", "('-10:00:01')"),
        ("a TIME(2)", "'-0:00:01.25'", "('-00:00:01.25')"),
        ("a TIMESTAMP", "FROM_UNIXTIME(1795000001)", "('2026-11-18 11:06:41' UTC)"),
        ("a TIMESTAMP(3)", "FROM_UNIXTIME(1795000001.5)", "('2026-11-18 11:06:41.500' UTC)"),
        ("a TIMESTAMP(6)", "FROM_UNIXTIME(1795000001.000005)",
         "('2026-11-18 11:06:41.000005' UTC)"),
        ("a TIMESTAMP", "'0000-00-00 00:00:00'", "('0000-00-00 00:00:00' UTC)"),
        ("a YEAR", "2026", "(2026)"), ("a DECIMAL(10,3)", "-1.25", "(-1.250)"),
        ("a DOUBLE", "-1.5", "(-1.5)"), ("a DOUBLE", "0", "(0)"),
        ("a DOUBLE", "1e100", "(1e+100)"), ("a FLOAT", "2.5", "(2.5)")]


def test_keys_are_told_as_values(started):
    """In CHEETAH_LOCKS, as in reports of deadlocks."""
    server, (first, *_) = started
    for number, (column, value, told) in enumerate(KEYS):
        server.sql(f"CREATE TABLE d.k{number} ({column}, b INT, PRIMARY KEY (a)) ENGINE=CHEETAH")
        server.sql(f"INSERT INTO d.k{number} VALUES ({value}, 1)")
        first.run(f"SELECT * FROM k{number} WHERE a = {value} FOR UPDATE")
        found = [row[0] for row in server.sql(
            "SELECT lock_data FROM information_schema.CHEETAH_LOCKS "
            f"WHERE lock_table LIKE '%k{number}`' AND lock_data IS NOT NULL")]
        first.run("ROLLBACK")
        assert found and all(told in data for data in found), (column, found)


def test_a_secondary_key_is_told_with_the_primary_one_behind(started):
    server, (first, *_) = started
    server.sql("CREATE TABLE d.k (a INT, b INT, c INT, PRIMARY KEY (a), KEY (b DESC, c)) "
               "ENGINE=CHEETAH")
    server.sql("INSERT INTO d.k VALUES (1, 20, NULL), (2, 30, 4)")
    first.run("SELECT b, c FROM k FORCE INDEX (b) WHERE b = 20 AND c IS NULL FOR UPDATE")
    found = " ".join(row[0] for row in server.sql(
        "SELECT lock_data FROM information_schema.CHEETAH_LOCKS WHERE lock_index = 'b'"))
    first.run("ROLLBACK")
    assert "(20, NULL, 1)" in found or "(20, NULL)" in found, found


@pytest.mark.parametrize("variable", ["cheetah_print_all_deadlocks", "innodb_print_all_deadlocks"])
def test_all_deadlocks_are_in_the_error_log_when_somebody_asks(started, variable):
    server, (first, second, _) = started
    server.sql(f"SET GLOBAL {variable} = ON")
    end_in_deadlock(server, first, second)
    said = server.log.read_text().partition(DUMPED)[2]
    for part in ("[Note] CHEETAH: *** (1) TRANSACTION", "UPDATE u SET b = 11",
                 "record (1) of index", "WE ROLL BACK TRANSACTION"):
        assert part in said, said


def test_what_a_long_transaction_keeps_is_shown(started):
    """An old snapshot keeps what others leave behind from purge."""
    server, (first, second, third) = started
    first.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    for number in range(5):
        second.run(f"UPDATE `t``x` SET b = {number + 100} WHERE a = 2", "COMMIT")
    third.run("INSERT INTO `t``x` VALUES (7, 7)")
    rows = dict((row[0], row[1:]) for row in server.sql(
        "SELECT trx_mysql_thread_id, trx_kept_from_purge, trx_undo_bytes > 0, trx_rows_modified "
        "FROM information_schema.cheetah_trx"))
    assert rows == {first.id: (5, 0, 0), third.id: (0, 1, 1)}
    assert server.status("Cheetah_snapshot_oldest_lag") == 5
    text = server.sql("SHOW ENGINE CHEETAH STATUS")[0][2]
    assert "keeps 5 transactions from purge" in text, text


def test_a_forgotten_prepared_transaction_is_shown_with_its_locks(started):
    """Also after a restart, and not any more once it was ended."""
    server, (first, *_) = started
    first.run("XA START 'forgotten'", "UPDATE `t``x` SET b = 5 WHERE a = 1", "XA END 'forgotten'",
              "XA PREPARE 'forgotten'")
    shown = """SELECT trx_state, trx_xid, trx_mysql_thread_id, lock_table
               FROM information_schema.cheetah_trx JOIN information_schema.cheetah_locks
               ON lock_trx_id = trx_id WHERE lock_type = 'TABLE'"""
    expected = [("PREPARED", "'forgotten','',1", first.id, "`d`.`t``x`")]
    assert server.sql(shown) == expected
    crash(server)
    unknown = server.sql("SELECT trx_query, trx_tables_in_use, trx_unique_checks, trx_is_read_only "
                         "FROM information_schema.cheetah_trx")
    assert unknown == [(None, None, None, None)], f"without a connection: {unknown}"
    expected = [("PREPARED", "'forgotten','',1", 0, "`d`.`t``x`")]
    assert server.sql(shown) == expected, f"after the restart: {server.sql(shown)}"
    server.sql("XA COMMIT 'forgotten'")
    assert not server.sql(shown), f"after its end: {server.sql(shown)}"


class Visitor(Client):
    """Comes and goes."""

    def work(self, _cursor) -> None:
        session = Session(self.server)
        session.run("INSERT INTO `t``x` VALUES (RAND() * 1000000000, 1)",
                    "SELECT COUNT(*) FROM `t``x`")
        session.connection.close()


def test_views_are_read_while_connections_come_and_go(started):
    """Nothing stops, nothing breaks, and who may not see others sees nothing."""
    server, _ = started
    until = time.monotonic() + 3
    with working([Visitor(server, number) for number in range(4)]):
        while time.monotonic() < until:
            for view in ("trx", "locks", "lock_waits"):
                server.sql(f"SELECT * FROM information_schema.cheetah_{view}")
            server.sql("SHOW ENGINE CHEETAH STATUS")
    watcher = Session(server)
    watcher.run("UPDATE `t``x` SET b = 3 WHERE a = 3")
    expect_nothing_without_process(server, "trx")
