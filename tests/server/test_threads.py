"""A pool of threads: who waits for a lock keeps no thread from those that hold it."""

import threading
import time

from servers import wait_until

WAITERS = 12
# After which the pool would start another thread by itself, and a waiting statement give up: after
# the test has given up.
STALL_MS, LOCK_SECONDS = 240_000, 180
END_SECONDS_MAX = 120   # tenths of a second is what it takes
OPTIONS = {"thread_handling": "pool-of-threads", "thread_pool_size": 1,
           "thread_pool_stall_limit": STALL_MS,
           "thread_pool_oversubscribe": 1, "loose_cheetah_lock_wait_timeout": LOCK_SECONDS}


def test_waits_for_locks_leave_the_pool_its_threads(server):
    """One thread may run; many wait for a row, and its owner commits at once all the same."""
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.t VALUES (1, 0)")
    owner = server.connect("d", autocommit=False)
    with owner.cursor() as cursor:
        cursor.execute("UPDATE t SET b = b + 1 WHERE a = 1")
    others = [server.connect("d") for _ in range(WAITERS)]
    threads = [threading.Thread(target=add_one, args=(other,), daemon=True) for other in others]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.status("Cheetah_lock_waits_current") == WAITERS,
               "not all wait for the row")
    committing = threading.Thread(target=owner.commit, daemon=True)
    committing.start()
    deadline = time.monotonic() + END_SECONDS_MAX
    for thread in [committing, *threads]:
        thread.join(max(0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in [committing, *threads]), \
        f"they have not ended within {END_SECONDS_MAX} s"
    assert server.value("SELECT b FROM d.t") == WAITERS + 1, "an update is missing"


def add_one(connection) -> None:
    """Waits for the row."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE t SET b = b + 1 WHERE a = 1")
