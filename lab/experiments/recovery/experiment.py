"""Measures how long a crash or the end of a large transaction keeps other sessions waiting."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cheetah_lab import judge, show
from cheetah_lab.engines import CHEETAH
from cheetah_lab.model import LESS, Cell, Experiment, Measure, Table, Value
from cheetah_lab.trial import Refused
from cheetah_tools.engines import forget_pages
from cheetah_tools.say import Failure, megabytes

INNODB = "InnoDB"
MEMORY_BYTES = 2 << 30
TABLES = 4
FIRST_ROWS = 100_000
LOAD_SECONDS_MAX = 900
ANSWER_SECONDS_MAX = 1800
UNTOUCHED_ROWS = 1000
LOADED_AT_ONCE = 100_000
OPTIONS = {"innodb_log_file_size": 2 << 30, "innodb_adaptive_flushing": "OFF",
           "innodb_max_dirty_pages_pct": 99, "loose_cheetah_log_size_max": 8 << 30,
           "innodb_lock_wait_timeout": ANSWER_SECONDS_MAX,
           "loose_cheetah_lock_wait_timeout": ANSWER_SECONDS_MAX,
           "lock_wait_timeout": ANSWER_SECONDS_MAX}
RESTART_SECONDS, ANSWER_SECONDS = 20.0, 1.0   # limits for Cheetah
# Statements of others after the kill; {last} is the last row, which the UPDATE does not change.
STATEMENTS = {
    "SELECT of a changed row": "SELECT k FROM big WHERE id = 1",
    "UPDATE of another row": "UPDATE big SET k = 0 WHERE id = {last}",
    "INSERT": "INSERT INTO big VALUES ({last} + 1, 0, '')",
    "UPDATE of a changed row": "UPDATE big SET k = 0 WHERE id = 1",
}
# this statement waits for the rollback of its row, and an engine may roll back in any order
UNBOUND = {"UPDATE of a changed row"}
AFTER = {"KILL": [*STATEMENTS, "the rollback is complete"],
         "kill -9": ["the server answers", *STATEMENTS, "the rollback is complete"]}


class Recovery(Experiment):
    by_name = True
    options = {"log_gigabytes": 1.0, "update_rows": 5_000_000}
    measures = [Measure("restart", "first answer after kill -9", "s", LESS),
                Measure("log rows", "changed rows in that log", "rows"),
                Measure("log bytes", "log to replay", "bytes"),
                *(Measure(f"{ended}: {what}", f"after {ended}: {what}", "s", LESS)
                  for ended, told in AFTER.items() for what in told)]

    def engines(self, chosen, scale):
        return [key for key in chosen if key != "myrocks"]

    def run(self, trial):
        if trial.family == "MyRocks":
            raise Refused("MyRocks does not tell how much of its log is to be replayed")
        for measure in (self.restart, self.rollback):
            with trial.server(MEMORY_BYTES, **OPTIONS) as server:
                server.sql("CREATE DATABASE d")
                yield from measure(trial, server)

    def restart(self, trial, server):
        log_bytes = int(self.option["log_gigabytes"] * 2**30)
        for number in range(TABLES):
            server.sql(f"CREATE TABLE t{number} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, "
                       f"c CHAR(120), pad CHAR(60), KEY (k)) {trial.engine.clause()}", "d")
            server.sql(f"INSERT INTO t{number} SELECT seq, seq * 7919 % 1000003, "
                       f"REPEAT(MD5(seq), 3), MD5(seq) FROM seq_1_to_{FIRST_ROWS}", "d")
        trial.engine.flush(server)
        trial.step(f"changing rows until there are {megabytes(log_bytes)} of log")
        yield Value("log rows", fill_log(server, trial.engine, log_bytes))
        yield Value("log bytes", log_to_replay(server, trial.engine))
        crash(server)
        began = time.monotonic()
        server.start()
        server.sql("SELECT c FROM t0 WHERE id = 1", "d")
        yield Value("restart", time.monotonic() - began)

    def rollback(self, trial, server):
        engine, rows = trial.engine, self.option["update_rows"]
        server.sql("CREATE TABLE big (id INT PRIMARY KEY, k INT, c CHAR(40), KEY (k)) "
                   f"{engine.clause()}", "d")
        for first in range(0, rows + UNTOUCHED_ROWS, LOADED_AT_ONCE):
            server.sql(f"INSERT INTO big SELECT {first} + seq, "
                       f"({first} + seq) * 7919 % 1000003, MD5(seq) FROM seq_1_to_"
                       f"{min(LOADED_AT_ONCE, rows + UNTOUCHED_ROWS - first)}", "d")
        engine.flush(server)
        last = rows + UNTOUCHED_ROWS
        trial.step(f"updating {rows:,} rows, then KILL")
        victim = changed_all(server, engine, rows)
        began = time.monotonic()
        server.sql(f"KILL {victim}")
        for what, seconds in answers(server, engine, began, last).items():
            yield Value(f"KILL: {what}", seconds)
        trial.step(f"updating {rows:,} rows, then kill -9")
        changed_all(server, engine, rows)
        crash(server)
        began = time.monotonic()
        server.start()
        yield Value("kill -9: the server answers", time.monotonic() - began)
        for what, seconds in answers(server, engine, began, last + 2).items():
            yield Value(f"kill -9: {what}", seconds)
        for number in (2, rows // 2, rows - 1):
            k = server.value(f"SELECT k FROM big WHERE id = {number}", "d")
            if k != number * 7919 % 1000003:
                raise Failure(f"row {number} has not been rolled back")

    def tables(self, results):
        return [Table("Recovery and rollback", ["", *map(results.label, results.engines)],
                      [[Cell(measure.label),
                        *(show.cell(results.values(engine, measure.key), measure.unit)
                          for engine in results.engines)] for measure in self.measures])]

    def verdicts(self, results):
        claims = self.about["claims"]
        return [judge.at_most(claims["restart"], "seconds", results.values(CHEETAH, "restart"),
                              RESTART_SECONDS),
                *(judge.at_most(claims[what], "seconds", results.values(CHEETAH, f"KILL: {what}"),
                                ANSWER_SECONDS) for what in STATEMENTS if what not in UNBOUND)]


def crash(server) -> None:
    server.kill()
    forget_pages(file for file in server.data.rglob("*") if file.is_file())


def fill_log(server, engine, log_bytes: int) -> int:
    """Changes rows until this much log follows the last checkpoint; returns the number of rows."""
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
    if engine.name == INNODB:
        return server.status("Innodb_checkpoint_age")
    return server.status("Cheetah_log_position") - server.status("Cheetah_log_oldest_position")


class Writer(threading.Thread):
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
            with self.server.cursor("d") as cursor:
                while not self.stopping.is_set():
                    for seed, (statement, more) in enumerate(statements, self.changes):
                        self.changes += cursor.execute(statement.format(seed=seed, top=top))
                        top += more
        except pymysql.MySQLError as failure:
            self.failure = str(failure)


def changed_all(server, engine, rows: int) -> int:
    """Starts an UPDATE that sleeps at the last row, and waits for that. Returns its connection."""
    import pymysql
    connection = server.connect("d")
    victim = connection.thread_id()

    def update():
        try:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE big FORCE INDEX (PRIMARY) SET k = k + 1, c = REVERSE(c) "
                               f"WHERE id <= {rows} AND IF(id < {rows}, 1, SLEEP(100000) = 0)")
        except (pymysql.MySQLError, OSError):
            pass

    began = time.monotonic()
    threading.Thread(target=update, daemon=True).start()
    while server.value("SELECT STATE FROM information_schema.PROCESSLIST "
                       f"WHERE ID = {victim}") != "User sleep":
        if time.monotonic() - began > ANSWER_SECONDS_MAX:
            raise Failure(f"{engine.label}: the UPDATE of {rows:,} rows has not ended after "
                          f"{ANSWER_SECONDS_MAX} s")
        time.sleep(0.2)
    return victim


def answers(server, engine, began: float, last: int) -> dict:
    """Runs all statements at once; returns statement -> seconds since `began`."""
    def ask(statement: str) -> float:
        server.sql(statement.format(last=last), "d")
        return time.monotonic() - began

    with ThreadPoolExecutor(len(STATEMENTS)) as pool:
        asked = {what: pool.submit(ask, statement) for what, statement in STATEMENTS.items()}
        while not rolled_back(server, engine):
            time.sleep(0.1)
        finished = time.monotonic() - began
    if failures := [str(one.exception()) for one in asked.values() if one.exception()]:
        raise Failure(f"{engine.label}: {failures}")
    return {**{what: one.result() for what, one in asked.items()},
            "the rollback is complete": finished}


def rolled_back(server, engine) -> bool:
    if engine.name == INNODB:
        return server.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX "
                            "WHERE trx_rows_modified > 1") == 0
    busy = server.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                        "WHERE INFO LIKE 'UPDATE big FORCE%'")
    return busy == 0 and server.status("Cheetah_rollbacks_unfinished") == 0
