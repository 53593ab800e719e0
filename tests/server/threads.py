"""A pool of threads: connections that wait for locks keep no thread from those that they wait for."""

import threading
import time

from cheetah_tools.servertests import expect

WAITERS = 12
STALL_MS = 60_000   # after which the pool would start another thread by itself


def test_waits_for_locks_leave_the_pool_its_threads(context):
    """One thread at a time may run; many wait for a row, and its owner commits at once all the same."""
    server = context.server({"thread_handling": "pool-of-threads", "thread_pool_size": 1, "thread_pool_stall_limit": STALL_MS,
                             "thread_pool_oversubscribe": 1, "loose_cheetah_lock_wait_timeout": 50})
    server.start()
    server.sql("CREATE DATABASE d")
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.t VALUES (1, 0)")
    owner = server.connect("d", autocommit=False)
    with owner.cursor() as cursor:
        cursor.execute("UPDATE t SET b = b + 1 WHERE a = 1")
    others = [server.connect("d") for _ in range(WAITERS)]
    threads = [threading.Thread(target=add_one, args=(other,), daemon=True) for other in others]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 20
    while server.status("Cheetah_lock_waits_current") == 0 and time.monotonic() < until:
        time.sleep(0.05)
    started = time.monotonic()
    owner.commit()
    for thread in threads:
        thread.join(40)
    seconds = time.monotonic() - started
    expect(not any(thread.is_alive() for thread in threads) and seconds < 20, f"they took {seconds:.1f} s to end", server)
    expect(server.value("SELECT b FROM d.t") == WAITERS + 1, "an update is missing", server)
    server.stop()


def add_one(connection) -> None:
    """Waits for the row."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE t SET b = b + 1 WHERE a = 1")
