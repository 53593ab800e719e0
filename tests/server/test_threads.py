"""A pool of threads: who waits for a lock keeps no thread from those that hold it. The engine's own
threads: they rest when nothing happens."""

import time
from pathlib import Path

from servers import Sent, wait_until

WAITERS = 12
# After which the pool would start another thread by itself, and a waiting statement give up: after
# the test has given up.
STALL_MS, LOCK_SECONDS = 240_000, 180
END_SECONDS_MAX = 120   # tenths of a second is what it takes
# An idle engine wakes one thread a second. Something may make it due for a checkpoint meanwhile.
IDLE_SECONDS, WAKES_A_SECOND_MAX = 4, 5
REST_SECONDS_MAX = 60
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
    others = [Sent(server.connect("d"), "UPDATE t SET b = b + 1 WHERE a = 1")
              for _ in range(WAITERS)]
    wait_until(lambda: server.status("Cheetah_lock_waits_current") == WAITERS,
               "not all wait for the row")
    committing = Sent(owner, "COMMIT")
    deadline = time.monotonic() + END_SECONDS_MAX
    for sent in [committing, *others]:
        sent.ends(max(0, deadline - time.monotonic()))
    assert server.value("SELECT b FROM d.t") == WAITERS + 1, "an update is missing"


def test_an_idle_engine_wakes_one_thread_a_second(server):
    """All threads of the engine together, while the server is up and nobody asks anything; and a
    change ends the rest."""
    server.sql("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=CHEETAH")
    server.sql("INSERT INTO d.t VALUES (1), (2)")
    deadline = time.monotonic() + REST_SECONDS_MAX
    while wakes_in(server.process.pid, IDLE_SECONDS) > WAKES_A_SECOND_MAX * IDLE_SECONDS:
        assert time.monotonic() < deadline, "the threads of the engine do not rest"
    server.sql("DELETE FROM d.t WHERE a = 1")
    wait_until(lambda: server.status("Cheetah_transactions_to_purge") == 0, "purge has not gone on")


def wakes_in(pid: int, seconds: float) -> int:
    """How often threads of the engine were woken meanwhile."""
    before = sleeps_of(pid)
    time.sleep(seconds)
    return sum(count - before.get(task, 0) for task, count in sleeps_of(pid).items())


def sleeps_of(pid: int) -> dict:
    """How often each thread of the engine has gone to sleep."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    ours = [task for task in tasks if (task / "comm").read_text().startswith("cheetah-")]
    return {task.name: sleeps(task / "status") for task in ours}


def sleeps(status: Path) -> int:
    """The voluntary context switches of a thread."""
    name = "voluntary_ctxt_switches:"
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
