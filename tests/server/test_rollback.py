"""Large transactions are rolled back in the background. After KILL, a lost client or a crash, the
server answers at once, and no reader sees rows that are still to be rolled back.

`make servertests ARGS="rollback --large"` uses 2,000,000 rows instead of 100,000."""

import pytest
from servers import check_table, crash, run, Sent, Session, wait_until

ROWS_MAX = 1_600_000
OPTIONS = {"loose_cheetah_buffer_pool_size": "64M", "loose_cheetah_log_file_size": "32M",
           "loose_cheetah_log_size_max": "512M"}


@pytest.fixture
def filled(server, large) -> tuple:
    """A server with a large table, the number of rows, and the result of a consistent read."""
    count = 2000000 if large else 100000
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b INT, c CHAR(60), KEY (b)) ENGINE=CHEETAH",
        f"INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_1_to_{count}",
        "CREATE TABLE other (a INT PRIMARY KEY) ENGINE=CHEETAH")
    return server, count, contents(server)


def contents(server) -> tuple:
    return server.sql("SELECT COUNT(*), SUM(b), SUM(CRC32(c)) FROM d.t")[0]


def begin_update(session) -> Sent:
    return session.send("UPDATE t SET b = -b, c = REVERSE(c)")


def changed(server) -> int:
    """Returns the number of undo records of the largest transaction."""
    return int(server.value("SELECT COALESCE(MAX(trx_rows_modified), 0) "
                            "FROM information_schema.cheetah_trx"))


def see_rows(server, before: tuple) -> None:
    assert contents(server) == before, "a consistent read sees what is rolled back"


def finish(server, before: tuple) -> None:
    """Waits for the end of the rollback, and reads the table repeatedly meanwhile."""
    def is_done():
        see_rows(server, before)
        return server.status("Cheetah_rollbacks_unfinished") == 0
    wait_until(is_done, "the rollback is not done", 600)
    check_table(server, "t")
    server.sql("UPDATE d.t SET b = b WHERE a = 1")


# The killed object, the moment, whether in a transaction, whether no session waits for rollback.
KILLS = [("QUERY", "in the middle", False, True), ("QUERY", "in the middle", True, False),
         ("CONNECTION", "in the middle", True, True), ("CONNECTION", "at the end", True, True)]


def test_what_is_killed_in_a_large_transaction_returns_at_once(filled):
    server, count, before = filled
    for kill in KILLS:
        while not kill_update(server, count, before, *kill):
            # On a busy machine the rollback finished before the check, or the killed session waited
            # for the rollback regardless of the number of rows.
            assert count < ROWS_MAX, "whoever is killed waits for the rollback"
            count, before = twice_as_many(server, count)


def kill_update(server, count: int, before: tuple, what: str, when: str, in_transaction: bool,
                at_once: bool) -> bool:
    """Runs one of KILLS. If no session has to wait for the rollback, returns whether the rollback
    was unfinished when the killed session had ended."""
    keeper = Session(server, autocommit=False)
    session = Session(server, autocommit=not in_transaction)
    if when == "in the middle":
        # Locks the last row, so that the update cannot finish before it is killed.
        keeper.run(f"SELECT a FROM t WHERE a = {count} FOR UPDATE")
    update = begin_update(session)
    if when == "at the end":
        assert update.ends(600) == 0, update.failure
    else:
        wait_until(lambda: changed(server) > count * 0.7, "the update does not come on", 300)
    server.sql(f"KILL {what} {session.id}")
    update.ends(600)
    if what == "CONNECTION":
        listed = f"SELECT 1 FROM information_schema.processlist WHERE id = {session.id}"
        wait_until(lambda: not server.sql(listed), "it stays", 600)
    else:
        assert update.error == 1317, f"the killed update met error {update.failure}"
    went_on = server.status("Cheetah_rollbacks_unfinished") == 1
    keeper.connection.close()
    if what == "QUERY":
        session.run("ROLLBACK")
    see_rows(server, before)
    server.sql("REPLACE INTO d.other VALUES (1)")
    finish(server, before)
    return went_on or not at_once


def twice_as_many(server, count: int) -> tuple:
    server.sql(f"INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_{count + 1}_to_{2 * count}", "d")
    return 2 * count, contents(server)


def killed_in_update(server) -> int:
    """Crashes the server during an update of all rows. Returns the transactions to roll back."""
    update = begin_update(Session(server, autocommit=False))
    assert update.ends(600) == 0, update.failure
    server.sql("FLUSH LOGS")
    crash(server)
    return server.status("Cheetah_rollbacks_unfinished")


def test_a_server_answers_before_open_transactions_of_a_crash_are_taken_back(filled):
    server, count, before = filled
    server.sql("INSERT INTO d.other VALUES (2)")
    while True:
        unfinished = killed_in_update(server)
        told = server.sql("SELECT trx_state, trx_mysql_thread_id, trx_rows_modified > 0, "
                          "lock_table FROM information_schema.cheetah_trx JOIN "
                          "information_schema.cheetah_locks ON lock_trx_id = trx_id")
        see_rows(server, before)
        in_the_middle = server.status("Cheetah_rollbacks_unfinished") == 1
        crash(server)
        finish(server, before)
        counted = server.status("Cheetah_recovery_transactions_rolled_back")
        if (in_the_middle and counted == 1) or count >= ROWS_MAX:
            break
        # On a busy machine the rollback finished before the check or the kill.
        count, before = twice_as_many(server, count)
    assert unfinished == 1 and in_the_middle, \
        "nothing was left to roll back: the test proves nothing"
    assert ("ROLLING BACK", 0, 1, "`d`.`t`") in told, f"the views tell {told}"
    assert server.value("SELECT COUNT(*) FROM d.other") == 1, "a committed row is missing"
    assert counted == 1, "the rollback is not counted"


def test_closing_does_not_wait_for_a_long_rollback(filled):
    server, _, before = filled
    update = begin_update(Session(server, autocommit=False))
    assert update.ends(600) == 0, update.failure
    server.restart()
    finish(server, before)
