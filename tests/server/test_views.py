"""Deadlocks in the status and the error log, data that long transactions keep, and views of
transactions read under load. (`tests/sql/transaction_views.sql` tests the views' rows.)"""

import re
import time

import pytest
from servers import Client, expect_nothing_without_process, run, Session, wait_until, working


@pytest.fixture
def started(server) -> tuple:
    """A server with a table, and three sessions without autocommit."""
    run(server, "CREATE TABLE `t``x` (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH",
        "INSERT INTO `t``x` VALUES (1, 1), (2, 2), (3, 3)")
    return server, [Session(server, autocommit=False) for _ in range(3)]


def end_in_deadlock(server, first, second) -> None:
    """Makes both sessions update two rows in opposite orders."""
    run(server, "CREATE TABLE u (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH",
        "INSERT INTO u VALUES (1, 1)")
    first.run("UPDATE `t``x` SET b = 10 WHERE a = 1")
    second.run("UPDATE u SET b = 20 WHERE a = 1")
    waiting = first.send("UPDATE u SET b = 11 WHERE a = 1")
    wait_until(lambda: server.sql("SELECT * FROM information_schema.cheetah_lock_waits"), "a wait")
    ending = second.send("UPDATE `t``x` SET b = 21 WHERE a = 1")
    assert sorted([waiting.ends(), ending.ends()]) == [0, 1213]


def test_the_latest_deadlock_is_in_the_status(started):
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


class Visitor(Client):
    def work(self, _cursor) -> None:
        with Session(self.server, autocommit=False) as session:
            session.run("INSERT INTO `t``x` VALUES (RAND() * 1000000000, 1)",
                        "SELECT COUNT(*) FROM `t``x`")


def test_views_are_read_while_connections_come_and_go(started):
    server, (watcher, *_) = started
    until = time.monotonic() + 3
    with working([Visitor(server, number) for number in range(4)]):
        while time.monotonic() < until:
            for view in ("trx", "locks", "lock_waits"):
                server.sql(f"SELECT * FROM information_schema.cheetah_{view}")
            server.sql("SHOW ENGINE CHEETAH STATUS")
    watcher.run("UPDATE `t``x` SET b = 3 WHERE a = 3")
    expect_nothing_without_process(server, "trx")
