"""Three ways to count the rows of a table after a tenth was deleted; W12, W13."""

import statistics
import time
from contextlib import closing

from cheetah_lab import counters, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import LESS, Experiment, Measure, Plot, Value
from cheetah_tools import sysbench
from cheetah_tools.say import Failure

POOL_BYTES = 128 << 20
QUICK_ROWS = 100_000
TIMES = 10
# microseconds of COUNT(1) per 1000 rows: 2.03 s for 9,441,296 rows
DOCUMENT_US = 2.03e6 / 9441.296
PURGE_SECONDS_MAX = 120
BY_STATISTICS = ("SELECT {} FROM information_schema.TABLES "
                 "WHERE TABLE_SCHEMA = 'sbtest' AND TABLE_NAME = 'sbtest1'")
BY_COUNTING = "SELECT COUNT(1) FROM sbtest1"
WORDS = {"length": "DATA_LENGTH / AVG_ROW_LENGTH", "rows": "TABLE_ROWS", "count": "COUNT(1)"}
DELETE_TENTH = "DELETE FROM sbtest1 WHERE id % 10 = 3"
DELETE_MORE = "DELETE FROM sbtest1 WHERE id % 50 = 7"


class RowCounts(Experiment):
    measures = [
        *(Measure(f"told {method}", f"{word}, by the rows that there are", "ratio")
          for method, word in WORDS.items()),
        *(Measure(f"ms {method}", f"{word}: time, median", "ms", LESS)
          for method, word in WORDS.items()),
        Measure("rows", "rows that there are", "rows"),
        Measure("us per 1000", "COUNT(1), time for each 1000 rows", "us", LESS),
        Measure("pages count", "COUNT(1), pages read by each", "pages", LESS),
        Measure("told open", "COUNT(1) beside an open transaction, by the rows that there are",
                "ratio"),
        Measure("ms open", "COUNT(1) beside an open transaction, time, median", "ms", LESS),
        Measure("ms cold", "COUNT(1) with an empty cache, time", "ms", LESS),
        Measure("pages cold", "COUNT(1) with an empty cache, pages read", "pages", LESS),
    ]

    def run(self, trial):
        tables = sysbench.Tables(trial.scale.of(QUICK_ROWS, 1000))
        with trial.server(POOL_BYTES) as server:
            trial.step(f"loading {tables.rows:,} rows")
            sysbench.load(server, trial.engine, tables, key_last=True)
            trial.did(sysbench.create_table(1, trial.engine.clause()))
            server.sql("ANALYZE TABLE sbtest1", "sbtest")
            trial.step("counting")
            with (closing(server.connect("sbtest")) as ours,
                  closing(server.connect("sbtest")) as other):
                rows = tables.rows - run(trial, ours, DELETE_TENTH)
                yield Value("rows", rows)
                for method in ("length", "rows"):
                    told, times = ask(trial, ours, BY_STATISTICS.format(WORDS[method]))
                    yield Value(f"told {method}", told / rows)
                    yield Value(f"ms {method}", statistics.median(times))
                purge(trial, server)
                before = counters.pages_read(server, trial.family)
                told, times = ask(trial, ours, BY_COUNTING)
                pages = counters.pages_read(server, trial.family) - before
                yield Value("pages count", pages / TIMES)
                yield Value("told count", told / rows)
                yield Value("ms count", statistics.median(times))
                yield Value("us per 1000", statistics.median(times) * 1e6 / rows)
                run(trial, other, "BEGIN")
                run(trial, other, DELETE_MORE)
                told, times = ask(trial, ours, BY_COUNTING)
                yield Value("told open", told / rows)
                yield Value("ms open", statistics.median(times))
                other.rollback()
            yield from cold(trial, server)

    def plots(self, results) -> list:
        said = {word: (f"told {method}", None) for method, word in WORDS.items()}
        cost = {**{word: (f"ms {method}", None) for method, word in WORDS.items()},
                "beside an open\ntransaction": ("ms open", None),
                "with an empty\ncache": ("ms cold", None)}
        return [Plot("told", "Rows that the methods tell, by those that there are", "bars", "",
                     "ratio", show.bars(results, said),
                     caption="A tenth of the rows has been deleted since ANALYZE TABLE."),
                Plot("time", "Time of each method", "bars", "", "ms", show.bars(results, cost),
                     log_y=True)]

    def tables(self, results) -> list:
        return [show.table(results, "Row counts", show.columns(self.measures))]

    def figures(self, results) -> list:
        kinds = [("W12 length", "rows by DATA_LENGTH / AVG_ROW_LENGTH, by those there are", 1.112,
                  "ratio", "told length"),
                 ("W12 rows", "TABLE_ROWS, by those there are", 1.038, "ratio", "told rows"),
                 ("W12 us", "time of COUNT(1) for each 1000 rows", DOCUMENT_US, "us",
                  "us per 1000"),
                 ("W13 ms", "time of COUNT(1) of a table, median of ten", None, "ms", "ms count"),
                 ("W13 pages", "pages read by each of them", None, "pages", "pages count"),
                 ("W13 cold", "pages read by the first after a start", None, "pages", "pages cold")]
        return [show.figure(results, key, what, document, unit,
                            lambda engine, measure=measure: results.values(engine, measure))
                for key, what, document, unit, measure in kinds]

    def verdicts(self, results) -> list:
        exact = [value for engine in results.engines for measure in ("told count", "told open")
                 for value in results.values(engine, measure)]
        claims, values = self.about["claims"], results.values
        there = "by the rows that there are"
        return [judge.all_are(claims["exact"], f"COUNT(1) of all engines, {there}", exact, 1),
                *judge.each(claims, [
                    ("length", f"told, {there}", values(INNODB, "told length"), 1.05),
                    ("rows", f"told, {there}", values(INNODB, "told rows"), 0.96, 1.04),
                    ("time", "milliseconds of COUNT(1)", values(CHEETAH, "ms count"), 0, 1)]),
                judge.at_most(claims["pages"], "pages read", values(CHEETAH, "pages cold"), 10)]


def run(trial, connection, statement: str) -> int:
    """Executes a statement and shows it on the page; returns the number of changed rows."""
    trial.did(statement)
    with connection.cursor() as cursor:
        return cursor.execute(statement)


def ask(trial, connection, statement: str, times: int = TIMES) -> tuple:
    trial.did(statement)
    spent = []
    with connection.cursor() as cursor:
        for _ in range(times):
            started = time.perf_counter()
            cursor.execute(statement)
            told = cursor.fetchone()[0]
            spent.append((time.perf_counter() - started) * 1000)
    return float(told or 0), spent


def purge(trial, server) -> None:
    """Waits until deleted rows are gone (not for MyRocks). Blocks."""
    if trial.family == "InnoDB":
        wait = "SET GLOBAL innodb_max_purge_lag_wait = 0"
        trial.did(wait)
        server.sql(wait)
    deadline = time.monotonic() + PURGE_SECONDS_MAX
    while trial.family == "Cheetah" and server.status("Cheetah_transactions_to_purge"):
        if time.monotonic() > deadline:
            raise Failure("Cheetah has not purged a tenth of sysbench's table in "
                          f"{PURGE_SECONDS_MAX} s: Cheetah_transactions_to_purge is not 0")
        time.sleep(0.01)


def cold(trial, server):
    server.stop()
    trial.engine.drop_page_cache(server, "sbtest")
    server.start()
    with closing(server.connect("sbtest")) as connection:
        run(trial, connection, "SELECT id FROM sbtest1 LIMIT 1")   # opens the table
        before = counters.pages_read(server, trial.family)
        _, times = ask(trial, connection, BY_COUNTING, times=1)
    yield Value("ms cold", times[0])
    yield Value("pages cold", counters.pages_read(server, trial.family) - before)
