"""CHECK TABLE beside writers: it finds nothing wrong, waits for nobody, and nobody waits for it."""

import random
import threading
import time

import pymysql

TABLE = ("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(40), w TEXT, "
         "KEY (a), UNIQUE (b), FULLTEXT (w)) ENGINE=CHEETAH")
SECONDS = 8
HOWS = ("", "QUICK", "FAST", "CHANGED", "FOR UPGRADE", "EXTENDED")


def check(server, how: str = "") -> None:
    rows = server.sql(f"CHECK TABLE t {how}", "d")
    assert [row[2:] for row in rows] == [("status", "OK")], (how, rows)


def fill(server) -> None:
    server.sql(TABLE, "d")
    server.sql("INSERT INTO t SELECT seq, seq MOD 100, CONCAT('b', seq), "
               "CONCAT('some words ', seq) FROM seq_1_to_2000", "d")


def test_check_waits_for_no_transaction_and_keeps_none_waiting(server):
    """Each form answers beside open changes of others and of its own, and beside their locks."""
    fill(server)
    writer = server.connect("d")
    with writer.cursor() as cursor:
        cursor.execute("UPDATE t SET a = 9, b = CONCAT('c', id) WHERE id < 500")
        cursor.execute("DELETE FROM t WHERE id > 1500")
        for how in HOWS:
            check(server, how)
        # Its own changes, too.
        cursor.execute("CHECK TABLE t")
        assert cursor.fetchall()[-1][2:] == ("status", "OK")
        cursor.execute("ROLLBACK")
    server.sql("SET GLOBAL cheetah_lock_wait_timeout = 1")
    locker = server.connect("d")
    with locker.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM t WHERE id > 0 FOR UPDATE")
        for how in HOWS:
            check(server, how)


def write(server, seed: int, is_over: threading.Event, failures: list) -> None:
    rng = random.Random(seed)
    connection = server.connect("d")
    statements = (
        "INSERT INTO t VALUES ({new}, {a}, 'n{new}', 'new words {new}')",
        "UPDATE t SET a = {a}, w = 'other words {a}' WHERE id BETWEEN {id} AND {id} + 5",
        "UPDATE t SET id = {new} WHERE id = {id}",
        "UPDATE t SET b = CONCAT('u', {new}) WHERE id = {id}",
        "DELETE FROM t WHERE id BETWEEN {id} AND {id} + 3",
        "REPLACE INTO t VALUES ({id}, {a}, 'r{id}', 'words that come again')",
    )
    with connection.cursor() as cursor:
        while not is_over.is_set():
            try:
                for _ in range(rng.randrange(1, 6)):
                    cursor.execute(rng.choice(statements).format(
                        new=rng.randrange(1, 10_000_000), id=rng.randrange(4000),
                        a=rng.randrange(100)))
                cursor.execute(rng.choice(("COMMIT", "COMMIT", "ROLLBACK")))
            except pymysql.MySQLError as failure:
                # Duplicates, deadlocks, locks, and a definition that has changed since.
                if failure.args[0] not in (1062, 1213, 1205, 1412):
                    failures.append(failure)
                    return


def test_check_in_a_loop_beside_writers_and_indexes_that_come_finds_nothing(server):
    """Inserts, keys that change, deletes, rollbacks, ADD and DROP INDEX."""
    fill(server)
    is_over, failures = threading.Event(), []
    threads = [threading.Thread(target=write, args=(server, seed, is_over, failures), daemon=True)
               for seed in range(3)]
    for thread in threads:
        thread.start()
    until, rounds = time.monotonic() + SECONDS, 0
    try:
        while time.monotonic() < until:
            check(server, HOWS[rounds % len(HOWS)])
            if rounds % 10 == 4:
                server.sql("ALTER TABLE t ADD INDEX more (a, b)", "d")
            if rounds % 10 == 9:
                server.sql("ALTER TABLE t DROP INDEX more", "d")
            rounds += 1
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)
    assert not failures and rounds > 10, (failures, rounds)
    check(server)
