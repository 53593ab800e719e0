"""With a thread pool, a session that waits for a lock does not block the thread that the lock's
owner needs. The engine's own threads sleep while the server is idle."""

import re
import time
from pathlib import Path

from servers import run, Sent, Session, wait_until

WAITERS = 12
# The times after which the pool would start another thread by itself and a waiting statement would
# time out. Both exceed the test's own timeout.
STALL_MS, LOCK_SECONDS = 240_000, 180
END_SECONDS_MAX = 120   # usually tenths of a second
# An idle engine wakes one thread a second. A checkpoint may become due meanwhile and wake more.
IDLE_SECONDS, WAKES_A_SECOND_MAX = 4, 5
REST_SECONDS_MAX = 60
OPTIONS = {"thread_handling": "pool-of-threads", "thread_pool_size": 1,
           "thread_pool_stall_limit": STALL_MS, "thread_pool_oversubscribe": 1,
           "loose_cheetah_lock_wait_timeout": LOCK_SECONDS}


def test_waits_for_locks_leave_the_pool_its_threads(server):
    run(server, "CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=CHEETAH",
        "INSERT INTO t VALUES (1, 0)")
    owner, update = Session(server, autocommit=False), "UPDATE t SET b = b + 1 WHERE a = 1"
    owner.run(update)
    others = [Sent(server.connect("d"), update) for _ in range(WAITERS)]
    wait_until(lambda: server.status("Cheetah_lock_waits_current") == WAITERS,
               "not all wait for the row")
    deadline = time.monotonic() + END_SECONDS_MAX
    for sent in [owner.send("COMMIT"), *others]:
        sent.ends(max(0, deadline - time.monotonic()))
    assert server.value("SELECT b FROM d.t") == WAITERS + 1, "an update is missing"


def test_an_idle_engine_wakes_one_thread_a_second(server):
    run(server, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=CHEETAH",
        "INSERT INTO t VALUES (1), (2)")
    deadline = time.monotonic() + REST_SECONDS_MAX
    while wakes_in(server.process.pid, IDLE_SECONDS) > WAKES_A_SECOND_MAX * IDLE_SECONDS:
        assert time.monotonic() < deadline, "the threads of the engine do not rest"
    server.sql("DELETE FROM d.t WHERE a = 1")
    wait_until(lambda: server.status("Cheetah_transactions_to_purge") == 0, "purge has not gone on")


def wakes_in(pid: int, seconds: float) -> int:
    before = sleeps_of(pid)
    time.sleep(seconds)
    return sum(count - before.get(task, 0) for task, count in sleeps_of(pid).items())


def sleeps_of(pid: int) -> dict:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    ours = [task for task in tasks if (task / "comm").read_text().startswith("cheetah-")]
    return {task.name: int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)",
                                     (task / "status").read_text(), re.M)[1]) for task in ours}
