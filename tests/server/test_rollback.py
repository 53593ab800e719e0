"""Rollbacks of large transactions go on in the background: after KILL, when a client vanishes, and
after a crash the server answers at once, and nobody sees what is still to be rolled back.

`make servertests ARGS="rollback --large"` takes 2,000,000 rows instead of 100,000.
"""

import time

import pytest
from cheetah_tools.say import note
from servers import check_table, crash, Sent, wait_until

ROWS_MAX = 1_600_000
OPTIONS = {"loose_cheetah_buffer_pool_size": "64M", "loose_cheetah_log_file_size": "32M",
           "loose_cheetah_log_size_max": "512M"}


@pytest.fixture
def filled(server, large) -> tuple:
    """A server with a table of many rows; how many, and what a consistent read finds."""
    count = 2000000 if large else 100000
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, b INT, c CHAR(60), KEY (b)) ENGINE=CHEETAH")
    server.sql(f"INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_1_to_{count}", "d")
    server.sql("CREATE TABLE d.other (a INT PRIMARY KEY) ENGINE=CHEETAH")
    return server, count, contents(server)


def contents(server) -> tuple:
    """What identifies the rows."""
    return server.sql("SELECT COUNT(*), SUM(b), SUM(CRC32(c)) FROM d.t")[0]


def begin_update(server, autocommit: bool = False) -> Sent:
    """A connection that changes all rows."""
    return Sent(server.connect("d", autocommit=autocommit), "UPDATE t SET b = -b, c = REVERSE(c)")


def changed(server) -> int:
    """Undo records of the largest transaction."""
    return int(server.value("SELECT COALESCE(MAX(trx_rows_modified), 0) "
                            "FROM information_schema.cheetah_trx"))


def took(function) -> tuple:
    """What it returns, and the seconds that it took."""
    began = time.monotonic()
    result = function()
    return result, time.monotonic() - began


def finish(server, before: tuple) -> float:
    """Wait for the rollback, looking at the table all the while; seconds."""
    def is_done():
        assert contents(server) == before, "a consistent read sees what is rolled back"
        return server.status("Cheetah_rollbacks_unfinished") == 0
    _, seconds = took(lambda: wait_until(is_done, "the rollback is not done", 600))
    check_table(server, "d.t")
    server.sql("UPDATE d.t SET b = b WHERE a = 1")
    return seconds


# What is killed when, in a transaction or not, and whether nobody has to wait for the rollback
# then.
KILLS = [("QUERY", "in the middle", False, True), ("QUERY", "in the middle", True, False),
         ("CONNECTION", "in the middle", True, True),
         ("CONNECTION", "at the end", True, True)]


def test_what_is_killed_in_a_large_transaction_returns_at_once(filled):
    """The next statements are answered while the rows are rolled back."""
    server, count, before = filled
    for kill in KILLS:
        while not kill_update(server, count, before, *kill):
            # A busy machine has taken all of it back before it could be asked; or whoever is killed
            # has waited for that, however many rows there are.
            assert count < ROWS_MAX, "whoever is killed waits for the rollback"
            count, before = twice_as_many(server, count)


def kill_update(server, count: int, before: tuple, what: str, when: str, in_transaction: bool,
                at_once: bool) -> bool:
    """One of KILLS; whether there was still something to roll back when the killed one was gone,
    where nobody has to wait for that."""
    keeper = server.connect("d", autocommit=False)
    if when == "in the middle":
        # Keeps the update from its last row, so that it has no end before it is killed.
        with keeper.cursor() as cursor:
            cursor.execute(f"SELECT a FROM t WHERE a = {count} FOR UPDATE")
    update = begin_update(server, autocommit=not in_transaction)
    connection = update.connection
    if when == "at the end":
        assert update.ends(600) == 0, update.failure
    else:
        wait_until(lambda: changed(server) > count * 0.7, "the update does not come on", 300)
    reached = changed(server)
    server.sql(f"KILL {what} {connection.thread_id()}")
    _, seconds = took(lambda: update.ends(600))
    if what == "CONNECTION":
        listed = f"SELECT 1 FROM information_schema.processlist WHERE id = {connection.thread_id()}"
        _, more = took(lambda: wait_until(lambda: not server.sql(listed), "it stays", 600))
        seconds += more
    else:
        assert update.error == 1317, f"the killed update met error {update.failure}"
    went_on = server.status("Cheetah_rollbacks_unfinished") == 1
    keeper.close()
    if what == "QUERY":
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
    (rows, asked), (_, wrote) = took(lambda: contents(server)), took(
        lambda: server.sql("REPLACE INTO d.other VALUES (1)"))
    assert rows == before, "a consistent read sees what is rolled back"
    done = finish(server, before)
    note(f"KILL {what} {when}, {'in' if in_transaction else 'without'} a transaction, after "
         f"{reached} rows: {seconds:.2f} s until it was gone, {asked:.2f} s for a read of all "
         f"rows, {wrote:.2f} s for a write, {done:.1f} s for the rollback")
    connection.close()
    return went_on or not at_once


def twice_as_many(server, count: int) -> tuple:
    """More rows: how many there are then, and what a consistent read finds."""
    server.sql(f"INSERT INTO t SELECT seq, seq, MD5(seq) FROM seq_{count + 1}_to_{2 * count}", "d")
    return 2 * count, contents(server)


def killed_in_update(server) -> tuple:
    """Crash in an update of all rows; transactions to roll back, and the seconds of the start."""
    update = begin_update(server)
    assert update.ends(600) == 0, update.failure
    server.sql("FLUSH LOGS")
    server.kill()
    update.connection.close()
    _, opened = took(server.start)
    return server.status("Cheetah_rollbacks_unfinished"), opened


def test_a_server_answers_before_open_transactions_of_a_crash_are_taken_back(filled):
    """The rows are right from the first query on; writers wait for rows not yet rolled back."""
    server, count, before = filled
    server.sql("INSERT INTO d.other VALUES (2)")
    while True:
        unfinished, opened = killed_in_update(server)
        told = server.sql("SELECT trx_state, trx_mysql_thread_id, trx_rows_modified > 0, "
                          "lock_table FROM information_schema.cheetah_trx JOIN "
                          "information_schema.cheetah_locks ON lock_trx_id = trx_id")
        rows, asked = took(lambda: contents(server))
        assert rows == before, "a consistent read sees what is rolled back"
        in_the_middle = server.status("Cheetah_rollbacks_unfinished") == 1
        # Once more in the middle of it.
        crash(server)
        assert contents(server) == before, "a consistent read sees what is rolled back"
        done = finish(server, before)
        counted = server.status("Cheetah_recovery_transactions_rolled_back")
        if (in_the_middle and counted == 1) or count >= ROWS_MAX:
            break
        # A busy machine has taken all of it back before it could be asked, or killed.
        count, before = twice_as_many(server, count)
    assert unfinished == 1 and in_the_middle, \
        "nothing was left to roll back: the test proves nothing"
    assert ("ROLLING BACK", 0, 1, "`d`.`t`") in told, f"the views tell {told}"
    assert server.value("SELECT COUNT(*) FROM d.other") == 1, "a committed row is missing"
    assert counted == 1, "the rollback is not counted"
    note(f"{count} rows to roll back: {opened:.2f} s until the server answered, {asked:.2f} s for "
         f"a read of all rows, then {done:.1f} s for the rollback")


def test_closing_does_not_wait_for_a_long_rollback(filled):
    """What is not rolled back when the server ends is rolled back after the next start."""
    server, _, before = filled
    update = begin_update(server)
    update.ends(600)
    _, seconds = took(server.stop)
    update.connection.close()
    server.start()
    assert contents(server) == before, "a consistent read sees what is rolled back"
    done = finish(server, before)
    note(f"{seconds:.2f} s to stop, {done:.1f} s for the rest of the rollback")
