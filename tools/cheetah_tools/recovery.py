"""`make bench ARGS="--sets recovery"`: how long a crash, or the end of a large transaction, keeps
others waiting; beside InnoDB.

1. Restart: kill -9 when so much log would have to be replayed, the page cache dropped, and the time
from starting the
   server to the first answer about a table.
2. Rollback: an UPDATE that has changed all rows but one stands still in a function and is killed,
with KILL and with
   kill -9; the time until statements of others on the same table are answered, each on a connection
   of its own.

Both engines get the same memory, and settings that put checkpoints off.
"""

import json
import threading
import time
from dataclasses import dataclass

from .engines import CHEETAH, INNODB, available, equal_memory, forget_pages
from .paths import VAR, show
from .say import Failure, megabytes, note, step, table
from .server import PrivateServer, scratch

POOL_BYTES = 2 << 30
TABLES = 4
FIRST_ROWS = 100_000
LOAD_SECONDS_MAX = 900
ANSWER_SECONDS_MAX = 1800
UNTOUCHED_ROWS = 1000
LOADED_AT_ONCE = 100_000
RESTART_SECONDS, ANSWER_SECONDS = 20.0, 1.0   # what is wanted
# Statements of others after the kill; {last} is the last row that the UPDATE has not changed.
STATEMENTS = {
    "SELECT of a changed row": "SELECT k FROM big WHERE id = 1",
    "UPDATE of another row": "UPDATE big SET k = 0 WHERE id = {last}",
    "INSERT": "INSERT INTO big VALUES ({last} + 1, 0, '')",
    "UPDATE of a changed row": "UPDATE big SET k = 0 WHERE id = 1",
}
# waits for the rollback of that row, which the engines do in the order that they like
UNBOUND = {"UPDATE of a changed row"}


@dataclass
class Line:
    """A line of the report: what was measured, seconds by engine, and what is wanted of Cheetah
    (None: nothing)."""

    what: str
    seconds: dict
    wanted: float = None


def run(choice) -> int:
    """The part of the bench."""
    log_bytes, rows = int(choice.log_gigabytes * 2**30), choice.update_rows
    step(f"recovery: {megabytes(log_bytes)} of log to replay, and {rows:,} updated rows "
         "rolled back twice, on each engine: "
         f"about {(log_bytes / 2**30 * 180 + rows / 5e6 * 900) / 60:.0f} minutes")
    restarts, changes, rollbacks, crashes = {}, {}, {}, {}
    for engine in (INNODB, CHEETAH):
        restarts[engine.label], changes[engine.label] = restart(engine, log_bytes)
        rollbacks[engine.label], crashes[engine.label] = rollback(engine, rows)
    lines = [Line(f"first answer after kill -9, {megabytes(log_bytes)} of log", restarts,
                  RESTART_SECONDS)]
    for title, found in (("KILL", rollbacks), ("kill -9", crashes)):
        for what in found[CHEETAH.label]:
            bound = title == "KILL" and what in STATEMENTS and what not in UNBOUND
            lines.append(Line(f"after {title}: {what}",
                              {label: times[what] for label, times in found.items()},
                              ANSWER_SECONDS if bound else None))
    report(lines)
    print("  That log holds " + " and ".join(f"{count:,} changed rows ({label})"
                                             for label, count in changes.items()))
    place = VAR / "bench-recovery.json"
    place.write_text(json.dumps({line.what: line.seconds for line in lines}, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    return 0


def started(engine) -> PrivateServer:
    """A server whose checkpoints are put off as far as its settings allow."""
    server = PrivateServer(scratch(f"recovery-{engine.name}"), {
        **equal_memory(POOL_BYTES), "innodb_log_file_size": 2 << 30,
        "innodb_adaptive_flushing": "OFF", "innodb_max_dirty_pages_pct": 99,
        "loose_cheetah_log_size_max": 8 << 30, "innodb_lock_wait_timeout": ANSWER_SECONDS_MAX,
        "loose_cheetah_lock_wait_timeout": ANSWER_SECONDS_MAX,
        "lock_wait_timeout": ANSWER_SECONDS_MAX}, plugin=engine is CHEETAH)
    server.start()
    if not available(server, [engine]):
        raise Failure(f"engine {engine.name} is not in this server; make build")
    server.sql("CREATE DATABASE d")
    return server


def restart(engine, log_bytes: int) -> tuple:
    """Seconds to the first answer after a crash with that much log to replay, and how many changed
    rows the log holds."""
    server = started(engine)
    try:
        for number in range(TABLES):
            server.sql(f"CREATE TABLE t{number} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, "
                       f"c CHAR(120), pad CHAR(60), KEY (k)) {engine.clause()}", "d")
            server.sql(f"INSERT INTO t{number} SELECT seq, seq * 7919 % 1000003, "
                       f"REPEAT(MD5(seq), 3), MD5(seq) FROM seq_1_to_{FIRST_ROWS}", "d")
        engine.flush(server)
        changes = fill_log(server, engine, log_bytes)
        left = log_to_replay(server, engine)
        server.kill()
        forget_pages(file for file in server.data.rglob("*") if file.is_file())
        began = time.monotonic()
        server.start()
        server.sql("SELECT c FROM t0 WHERE id = 1", "d")
        seconds = time.monotonic() - began
        note(f"{engine.label}: {megabytes(left)} of log of {changes:,} changed rows, "
             f"first answer after {seconds:.1f} s")
        return seconds, changes
    finally:
        server.kill()
        server.remove()


def fill_log(server, engine, log_bytes: int) -> int:
    """Change rows until that much log is behind the last checkpoint; how many rows."""
    writers = [Writer(server, number) for number in range(TABLES)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    try:
        while log_to_replay(server, engine) < log_bytes:
            failures = [writer.failure for writer in writers if writer.failure]
            if failures or time.monotonic() > deadline:
                raise Failure(f"{engine.label}: the log did not grow to {megabytes(log_bytes)}: "
                              f"{failures or 'checkpoints came too soon'}")
            time.sleep(0.05)
    finally:
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()
    return sum(writer.changes for writer in writers)


def log_to_replay(server, engine) -> int:
    """Bytes of log that a crash now would leave to be replayed."""
    if engine is INNODB:
        return server.status("Innodb_checkpoint_age")
    return server.status("Cheetah_log_position") - server.status("Cheetah_log_oldest_position")


class Writer(threading.Thread):
    """Updates, inserts and deletes rows of one table, some hundred with each statement."""

    def __init__(self, server, number: int):
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.changes, self.failure, self.stopping = 0, "", threading.Event()

    def run(self) -> None:
        import pymysql
        name, top = f"t{self.number}", FIRST_ROWS
        statements = [
            (f"UPDATE {name} SET k = k + 1, c = REPEAT(MD5(RAND()), 3) "
             f"WHERE id > FLOOR(RAND({{seed}}) * {{top}}) LIMIT 500", 0),
            (f"INSERT INTO {name} (k, c, pad) "
             "SELECT FLOOR(RAND() * 1000003), REPEAT(MD5(RAND()), 3), MD5(seq) "
             "FROM seq_1_to_500", 500),
            (f"DELETE FROM {name} WHERE id > FLOOR(RAND({{seed}}) * {{top}}) LIMIT 100", 0)]
        try:
            connection = self.server.connect("d")
            with connection.cursor() as cursor:
                while not self.stopping.is_set():
                    for seed, (statement, more) in enumerate(statements, self.changes):
                        self.changes += cursor.execute(statement.format(seed=seed, top=top))
                        top += more
            connection.close()
        except pymysql.MySQLError as failure:
            self.failure = str(failure)


def rollback(engine, rows: int) -> tuple:
    """What others wait for after KILL, and after kill -9: what -> seconds, twice."""
    server = started(engine)
    try:
        server.sql("CREATE TABLE big (id INT PRIMARY KEY, k INT, c CHAR(40), KEY (k)) "
                   f"{engine.clause()}", "d")
        for first in range(0, rows + UNTOUCHED_ROWS, LOADED_AT_ONCE):
            server.sql(f"INSERT INTO big SELECT {first} + seq, "
                       f"({first} + seq) * 7919 % 1000003, MD5(seq) FROM seq_1_to_"
                       f"{min(LOADED_AT_ONCE, rows + UNTOUCHED_ROWS - first)}", "d")
        engine.flush(server)
        last = rows + UNTOUCHED_ROWS
        victim = changed_all(server, engine, rows)
        began = time.monotonic()
        server.sql(f"KILL {victim}")
        by_kill = answers(server, engine, began, last)
        changed_all(server, engine, rows)
        server.kill()
        forget_pages(file for file in server.data.rglob("*") if file.is_file())
        began = time.monotonic()
        server.start()
        ready = time.monotonic() - began
        by_crash = {"the server answers": ready, **answers(server, engine, began, last + 2)}
        check_rolled_back(server, rows)
        return by_kill, by_crash
    finally:
        server.kill()
        server.remove()


def changed_all(server, engine, rows: int) -> int:
    """Begin an UPDATE on a connection of its own and wait until it has changed all rows but the
    last, where it stands still; the connection's number."""
    import pymysql
    connection = server.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        victim = cursor.fetchone()[0]

    def update():
        try:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE big FORCE INDEX (PRIMARY) SET k = k + 1, c = REVERSE(c) "
                               f"WHERE id <= {rows} AND IF(id < {rows}, 1, SLEEP(100000) = 0)")
        except (pymysql.MySQLError, OSError):
            pass

    began = time.monotonic()
    threading.Thread(target=update, daemon=True).start()
    query = f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {victim}"
    while server.value(query) != "User sleep":
        if time.monotonic() - began > ANSWER_SECONDS_MAX:
            raise Failure(f"{engine.label}: the UPDATE of {rows:,} rows has not ended after "
                          f"{ANSWER_SECONDS_MAX} s")
        time.sleep(0.2)
    note(f"{engine.label}: {rows:,} rows updated in {time.monotonic() - began:.0f} s")
    return victim


def answers(server, engine, began: float, last: int) -> dict:
    """All statements at once: what -> seconds since `began`; and when all was rolled back."""
    found, failures = {}, []

    def ask(what: str, statement: str):
        try:
            server.sql(statement.format(last=last), "d")
            found[what] = time.monotonic() - began
        except Failure as failure:
            failures.append(str(failure))

    threads = [threading.Thread(target=ask, args=pair) for pair in STATEMENTS.items()]
    for thread in threads:
        thread.start()
    while not rolled_back(server, engine):
        time.sleep(0.1)
    finished = time.monotonic() - began
    for thread in threads:
        thread.join()
    if failures:
        raise Failure(f"{engine.label}: {failures}")
    result = {**{what: found[what] for what in STATEMENTS}, "the rollback is complete": finished}
    note(f"{engine.label}: " + ", ".join(f"{what} {seconds:.2f} s"
                                         for what, seconds in result.items()))
    return result


def rolled_back(server, engine) -> bool:
    """Whether no transaction is open any more that has changed more than a row."""
    if engine is INNODB:
        return server.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX "
                            "WHERE trx_rows_modified > 1") == 0
    busy = server.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                        "WHERE INFO LIKE 'UPDATE big FORCE%'")
    return busy == 0 and server.status("Cheetah_rollbacks_unfinished") == 0


def check_rolled_back(server, rows: int) -> None:
    """The first and the last of the changed rows are as before, but for what others wrote."""
    for number in (2, rows // 2, rows - 1):
        if server.value(f"SELECT k FROM big WHERE id = {number}", "d") != number * 7919 % 1000003:
            raise Failure(f"row {number} has not been rolled back")


def report(lines: list) -> None:
    """A table, with verdicts on what is wanted."""
    rows = []
    for line in lines:
        ours, theirs = line.seconds[CHEETAH.label], line.seconds[INNODB.label]
        wanted = ([f"<= {line.wanted:g} s", "met" if ours <= line.wanted else "MISSED"]
                  if line.wanted else ["", ""])
        rows.append([line.what, f"{ours:.2f} s", f"{theirs:.2f} s", *wanted])
    print()
    table(["recovery and rollback", "Cheetah", "InnoDB", "wanted", ""], rows)
