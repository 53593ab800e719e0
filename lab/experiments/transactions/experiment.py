"""sysbench's transactions in memory: at the maximum rate, and response times at a fixed rate."""

from statistics import median

from cheetah_lab import cells, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import LESS, MORE, TURN, Experiment, Measure, Plot, Value
from cheetah_tools import sysbench

QUICK_ROWS = 100_000
QUICK_SECONDS, FULL_SECONDS = 8, 30
WARM_SECONDS = 2
CONNECTIONS = 16
# transactions of twenty statements a second; half of the slowest engine's most on two busy cores
RATE = 100
POOL_BYTES = 64 << 20    # holds the table
LOG_BYTES = 8 << 20
LIMIT_MS = 100
ROW_ROOM_BYTES = 1400    # per row with its key, in two engines at once, without logs
NOTHING_ENDED_MS = 1000   # of a second in which no transaction ended although some were due
WORKLOAD = "oltp_read_write"
WORKLOADS = ["oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_point_select"]
CELL_POOL_BYTES, CELL_LOG_BYTES, CELL_WARM_SECONDS = 1 << 30, 1 << 30, 2
BINLOG = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": 0, "server_id": 1}
RATE_MEASURES = [
    Measure("p99", "99th percentile of a second", "ms", LESS),
    Measure("tps", "transactions a second", "1/s"),
    Measure("p99 all", "99th percentile of the whole time", "ms", LESS),
    Measure("worst", "99th percentile of the worst second", "ms", LESS),
    Measure("middle", "99th percentile of the middle second", "ms", LESS),
    Measure("slowest", "the slowest transaction", "ms", LESS),
    Measure("slow seconds", f"seconds with a 99th percentile above {LIMIT_MS} ms", "", LESS),
    Measure("served", "transactions that ended, by those that were due", "ratio", MORE),
]
# limits of the ratio of Cheetah to InnoDB
WANTED = {"tps": {"low": 1.0}, "p99": {"high": 1.15}, "cpu": {"high": 1.05}}


class Transactions(Experiment):
    together = True
    compared = cells.COMPARED
    options = {"parts": "rate", "rows": 1_000_000, "seconds": 8, "workloads": "all",
               "connections": "1,16,64,256,512", "binlog": 0}
    measures = [*cells.measures(WORKLOADS), *RATE_MEASURES]

    def seconds(self, factor, chosen):
        if "cells" not in self.option["parts"]:
            return super().seconds(factor, chosen)
        option = self.option
        return option["rows"] / cells.LOAD_ROWS_PER_SECOND + cells.seconds(
            cells.chosen(option["workloads"], WORKLOADS, "workload"),
            len(option["connections"].split(",")), option["seconds"], CELL_WARM_SECONDS)

    def room_bytes(self, scale):
        return super().room_bytes(scale) + ("cells" in self.option["parts"]) * (
            self.option["rows"] * ROW_ROOM_BYTES)

    def run(self, trial):
        if "cells" in self.option["parts"]:
            yield from self.cells(trial)
        if "rate" in self.option["parts"]:
            yield from self.at_a_rate(trial)

    def cells(self, trial):
        option = self.option
        of, counts = cells.tables(option["rows"]), [*map(int, option["connections"].split(","))]
        logs = {"innodb_log_file_size": CELL_LOG_BYTES,
                "loose_cheetah_log_size_max": CELL_LOG_BYTES}
        with trial.server(CELL_POOL_BYTES, **logs, **(BINLOG if option["binlog"] else {}),
                          **sysbench.server_options(max(counts), of.tables)) as server:
            trial.step(f"loading {option['rows']:,} rows")
            sysbench.load(server, trial.engine, of)
            sysbench.warm(server, of)
            yield TURN
            for workload in cells.chosen(option["workloads"], WORKLOADS, "workload"):
                for count in counts:
                    yield from cells.measure(trial, server, workload, count, workload, of, count,
                                             option["seconds"], CELL_WARM_SECONDS)

    def at_a_rate(self, trial):
        tables = sysbench.Tables(trial.scale.of(QUICK_ROWS, 1000))
        seconds = max(2, round(trial.scale.factor
                               * (FULL_SECONDS if trial.scale.full else QUICK_SECONDS)))
        small_log = {"innodb_log_file_size": LOG_BYTES, "loose_cheetah_log_size_max": LOG_BYTES,
                     "loose_cheetah_log_file_size": LOG_BYTES // 8,
                     "loose_rocksdb_max_total_wal_size": LOG_BYTES}
        with trial.server(trial.scale.of(POOL_BYTES, 16 << 20),
                          **sysbench.server_options(CONNECTIONS), **small_log) as server:
            trial.step(f"loading {tables.rows:,} rows")
            sysbench.load(server, trial.engine, tables, key_last=True)
            sysbench.warm(server, tables)
            trial.did(sysbench.create_table(1, trial.engine.clause()))
            trial.step(f"{RATE} transactions a second")
            asked = (WORKLOAD, tables, CONNECTIONS, seconds, WARM_SECONDS, RATE, True)
            trial.did("sysbench " + " ".join(sysbench.words(*asked)))
            with trial.held(server, sysbench.DATABASE, f"{RATE} transactions a second"):
                found = sysbench.run(server, *asked)
        yield from values(found)

    def plots(self, results) -> list:
        whole = {"whole time": ("p99 all", None), "middle second": ("middle", None),
                 "worst second": ("worst", None), "slowest\ntransaction": ("slowest", None)}
        title = f"99th percentile of each second, {RATE} transactions a second"
        return [*cells.plots(results, WORKLOADS, "connections"),
                Plot("seconds", title, "lines", "second", "ms", show.lines(results, "p99"),
                     log_y=True),
                Plot("whole", "99th percentiles", "bars", "", "ms", show.bars(results, whole),
                     log_y=True)]

    def tables(self, results) -> list:
        single = [measure for measure in RATE_MEASURES if measure.key not in ("p99", "tps")]
        found = [cells.table(results, "Transactions", WORKLOADS, "connections"),
                 show.table(results, f"Response time at {RATE} transactions a second",
                            show.columns(single))]
        return [table for table in found if table.rows]

    def verdicts(self, results) -> list:
        claims, engines = self.about["claims"], {"innodb": INNODB, "cheetah": CHEETAH}
        by_innodb = "Cheetah by InnoDB, geometric mean over all cells"
        return [*(judge.within(claims[f"cells_{field}"], by_innodb,
                               results.mean_of_cells(CHEETAH, [f"{field} {workload}"
                                                               for workload in WORKLOADS], INNODB),
                               **wanted)
                  for field, wanted in WANTED.items()),
                *(judge.at_most(claims[f"{name}_slow"], f"seconds above {LIMIT_MS} ms",
                                results.values(engine, "slow seconds"), 0)
                  for name, engine in engines.items()),
                *(judge.within(claims[f"{name}_even"], "worst second by the middle one",
                               results.ratios(engine, "worst", engine, base_measure="middle"),
                               high=5) for name, engine in engines.items()),
                judge.within(claims["worst"], "Cheetah's worst second by InnoDB's",
                             results.ratios(CHEETAH, "worst", INNODB), high=judge.NO_LONGER)]


def values(found: sysbench.Result):
    if not found.seconds:
        return
    times = [second.p99_ms if second.tps or not second.queue else NOTHING_ENDED_MS
             for second in found.seconds]
    first = found.seconds[0].second
    for second, time_ms in zip(found.seconds, times):
        yield Value("p99", time_ms, second.second - first + 1)
        yield Value("tps", second.tps, second.second - first + 1)
    yield Value("p99 all", found.p99_ms)
    yield Value("worst", max(times))
    yield Value("middle", median(times))
    yield Value("slowest", found.max_ms)
    yield Value("slow seconds", sum(time_ms > LIMIT_MS for time_ms in times))
    yield Value("served", found.tps / RATE)
