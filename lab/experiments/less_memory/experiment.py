"""Point selects over the size of the cache: throughput and pages read, beside the document's
arithmetic; W14. And sysbench's workloads with shares of the memory, in cells."""

from cheetah_lab import cells, counters, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import (LESS, MORE, OPEN, TURN, Cell, Experiment, Measure, Plot, Series,
                               Table, Value, Verdict)
from cheetah_lab.results import median
from cheetah_lab.trial import PAGE_CACHE_BYTES
from cheetah_tools import points, sysbench

QUICK_ROWS = 350_000
LOAD_POOL_BYTES, LOAD_CELLS_POOL_BYTES = 128 << 20, 1 << 30
# A row takes 226 bytes of InnoDB's leaves; a little more, and three and a half megabytes, are for
# what else the cache has to hold and to keep free.
EVERYTHING_BYTES_OF_ROW, EVERYTHING_BYTES_BESIDE = 229, 7 << 19
EVERYTHING_READS_MAX = 20  # in 1000 selects: with more, what should have held everything did not
ROWS_MIN = 40_000
POOL_BYTES_MIN = 8 << 20   # what all engines start with; smaller shares are left out
SHARES = [1.0, 0.9, 0.75, 0.5, 0.25]
FULL_SHARES = [1.0, 0.98, 0.95, 0.9, 0.85, 0.75, 0.6, 0.5, 0.35, 0.25, 0.15]
JUDGED_SHARES_MAX = 0.9    # with more, what is read is little, and mostly noise
SLOW_IOPS = 100
WORKLOADS = ["oltp_point_select", "oltp_read_write", "oltp_update_index"]
CELL_WARM_SECONDS = 5
# Of a row of the cells' tables, with its key, in InnoDB: shares are of that.
CELL_BYTES_OF_ROW = 285
ROOM_BYTES_OF_ROW = 2800   # in four engines at once
# What is left to the page cache of the cache's and `PAGE_CACHE_BYTES` together; logs need some.
PAGE_CACHE_PARTS = [0.1, 0.3, 0.6]
READ_THROUGH = "SELECT COUNT(*), MAX(LENGTH(pad)) FROM sbtest1 FORCE INDEX (PRIMARY)"
SELECT = "SELECT * FROM sbtest1 WHERE id = ?"
TABLE = "Queries a second through a device of 100 reads a second"


def served(rate_in_memory: float, reads_per_query: float, iops: float) -> float:
    """Queries a second that a device of so many reads a second lets through."""
    return rate_in_memory if reads_per_query <= 0 else min(rate_in_memory, iops / reads_per_query)


def predicted_reads(share: float) -> float:
    """Pages read a select, of equally likely keys, with a cache for a share of the leaves."""
    return max(0.0, 1 - share)


def everything_bytes(rows: int) -> int:
    """The cache that holds all of the table in InnoDB, uncompressed."""
    return rows * EVERYTHING_BYTES_OF_ROW + EVERYTHING_BYTES_BESIDE


class LessMemory(Experiment):
    """See experiment.toml."""

    together = True
    compared = cells.COMPARED
    options = {"parts": "selects", "rows": 1_000_000, "seconds": 8, "workloads": "all",
               "connections": "1,16,64,256", "shares": "0.5,0.2,0.05", "best_split": False}

    @property
    def measures(self):
        """Those of selects, and of each of the cells that are asked for."""
        return [Measure("rate", "selects a second", "1/s", MORE),
                Measure("reads", "pages read in 1000 selects", "pages", LESS),
                Measure("cache", "cache", "bytes"), *cells.measures(self.names())]

    def names(self):
        """Of cells: workload, connections, and how the memory is divided."""
        workloads = cells.chosen(self.option["workloads"], WORKLOADS, "workload")
        return [f"{workload} {count}{split}" for workload in workloads
                for count in self.option["connections"].split(",") for split in self.splits()]

    def splits(self):
        """Ways to divide the memory: what stands behind a cell's name -> what part the page cache
        has; None: `PAGE_CACHE_BYTES`, beside the cache."""
        return ({f" {part:g}": part for part in PAGE_CACHE_PARTS} if self.option["best_split"]
                else {"": None})

    def seconds(self, factor, chosen):
        """Those of the cells, when they are measured."""
        if "cells" not in self.option["parts"]:
            return super().seconds(factor, chosen)
        return self.option["rows"] / cells.LOAD_ROWS_PER_SECOND + cells.seconds(
            self.names(), len(self.option["shares"].split(",")), self.option["seconds"],
            CELL_WARM_SECONDS)

    def room_bytes(self, scale):
        """Those of the cells' tables, when they are measured."""
        return super().room_bytes(scale) + ("cells" in self.option["parts"]) * (
            self.option["rows"] * ROOM_BYTES_OF_ROW)

    def run(self, trial):
        """The parts that are asked for."""
        if "cells" in self.option["parts"]:
            yield from self.cells(trial)
        if "selects" in self.option["parts"]:
            yield from self.point_selects(trial)

    def cells(self, trial):
        """Load once; then all cells with each share of the memory."""
        option, of = self.option, cells.tables(self.option["rows"])
        counts = [*map(int, option["connections"].split(","))]
        with trial.server(LOAD_CELLS_POOL_BYTES) as server:
            trial.step(f"loading {option['rows']:,} rows")
            sysbench.load(server, trial.engine, of)
            trial.engine.settle(server)
            yield TURN
            for share in map(float, option["shares"].split(",")):
                for split, part in self.splits().items():
                    cache, page_cache = divided(share * option["rows"] * CELL_BYTES_OF_ROW, part)
                    trial.restart(server, cache, **sysbench.server_options(max(counts), of.tables))
                    for workload in cells.chosen(option["workloads"], WORKLOADS, "workload"):
                        for count in counts:
                            with trial.held(server, sysbench.DATABASE,
                                            f"{share:g} of the memory{split}, {workload}, {count}",
                                            page_cache):
                                found = list(cells.measure(
                                    trial, server, f"{workload} {count}{split}", share, workload,
                                    of, count, option["seconds"], CELL_WARM_SECONDS))
                            yield from found

    def point_selects(self, trial):
        """Load once, then measure at each size of the cache."""
        rows = trial.scale.of(QUICK_ROWS, ROWS_MIN)
        program = points.build()
        with trial.server(LOAD_POOL_BYTES) as server:
            trial.step(f"loading {rows:,} rows")
            sysbench.load(server, trial.engine, sysbench.Tables(rows), key=False)
            trial.did(sysbench.create_table(1, trial.engine.clause(), key=False))
            for share in FULL_SHARES if trial.scale.full else SHARES:
                pool_bytes = round(everything_bytes(rows) * share)
                if pool_bytes < POOL_BYTES_MIN:
                    continue
                trial.step(f"point selects with {share:g} of the memory")
                trial.restart(server, pool_bytes)
                yield Value("cache", pool_bytes, share)
                with trial.held(server, sysbench.DATABASE, f"{share:g} of the memory"):
                    yield from selects(trial, server, program, share)

    def plots(self, results) -> list:
        """Both curves, and what a slow device would make of them."""
        shares = sorted({share for engine in results.engines
                         for share, _ in results.curve(engine, "reads")})
        arithmetic = Series("arithmetic: 1 - share",
                            [(share, [1000 * predicted_reads(share)]) for share in shares])
        slow = [Series(results.label(engine),
                       [(share, slow_rates(results, engine, share)) for share in shares], engine)
                for engine in results.engines]
        share_label = "share of the memory that holds everything in InnoDB"
        return [*cells.plots(results, self.names(), "share of InnoDB's bytes as cache"),
                Plot("rate", "Selects a second", "lines", share_label, "1/s",
                     show.lines(results, "rate")),
                Plot("reads", "Pages read in 1000 selects", "lines", share_label, "pages",
                     [*show.lines(results, "reads"), arithmetic]),
                Plot("slow", TABLE, "lines", share_label, "1/s", slow, log_y=True,
                     caption=f"min(rate with everything in memory, {SLOW_IOPS} / reads for each "
                             "select), from what was measured.")]

    def tables(self, results) -> list:
        """By engine and share, beside the arithmetic."""
        shares = sorted({share for engine in results.engines
                         for share, _ in results.curve(engine, "reads")}, reverse=True)
        made = [table for table in (
            cells.table(best(results, self.names(), len(self.splits())), "With less memory",
                        self.names(), "share of InnoDB's bytes as cache"),) if table.rows]
        if not shares:
            return made
        head = ["engine", *(f"{share:g} of the memory" for share in shares)]
        reads = [show.cells(results, engine, [("reads", share, "pages") for share in shares])
                 for engine in results.engines]
        reads.append([Cell("arithmetic"),
                      *(Cell(f"{1000 * predicted_reads(share):.0f}") for share in shares)])
        rates = [show.cells(results, engine, [("rate", share, "1/s") for share in shares])
                 for engine in results.engines]
        slow = [[Cell(results.label(engine)),
                 *(Cell(values=slow_rates(results, engine, share), unit="1/s") for share in shares)]
                for engine in results.engines]
        return [*made, Table("Pages read in 1000 selects", head, reads),
                Table("Selects a second", head, rates), Table(TABLE, head, slow)]

    def figures(self, results) -> list:
        """W14: what was read by what the arithmetic says. The document reckons, and does not
        measure: so without its numbers."""
        return [show.figure(results, f"W14 {share:g}",
                            f"pages read with {share:g} of the memory ({said} in the document), "
                            "by the arithmetic", None, "ratio",
                            lambda engine, share=share: (
                                [pages / (1000 * predicted_reads(share))
                                 for pages in results.values(engine, "reads", share)]
                                if not overflowed(results) else []))
                for share, said in ((0.9, "9 G for 10 G"), (0.5, "34 G for 68 G"))]

    def verdicts(self, results) -> list:
        """The claims of experiment.toml."""
        claims, innodb, cheetah = self.about["claims"], INNODB, CHEETAH
        if overflowed(results):
            return [Verdict(claim, OPEN, overflowed(results)) for claim in claims.values()]
        less = [served(rate, pages / 1000, SLOW_IOPS) / rate
                for rate, pages in results.together((innodb, "rate", 1.0), (innodb, "reads", 0.9))]
        shares = [share for share, _ in results.curve(innodb, "reads")
                  if share <= JUDGED_SHARES_MAX]
        measured = (results.together(*((innodb, "reads", share) for share in shares)) if shares
                    else [])
        by_arithmetic = [median([pages / (1000 * predicted_reads(share))
                                 for share, pages in zip(shares, repeat)])
                         for repeat in measured]
        reads = results.median_ratios(cheetah, "reads", innodb, shares)
        everything = max(results.values(innodb, "cache", 1.0), default=0)
        missed = [share for share in shares if (1 - share) * everything > PAGE_CACHE_BYTES]
        rates = results.median_ratios(cheetah, "rate", innodb, missed) if missed else []
        return [judge.within(claims["tenth"],
                             "queries a second with 0.9 of the memory, by those with all of it",
                             less, high=0.1),
                judge.within(claims["arithmetic"],
                             "pages read, by the arithmetic, median of the shares", by_arithmetic,
                             1 / 1.33, 1.33),
                judge.within(claims["reads"],
                             "pages read by Cheetah, by those of InnoDB, median of the shares",
                             reads, high=1),
                judge.within(claims["rates"],
                             "selects a second of Cheetah, by those of InnoDB, median of the "
                             "shares of which the page cache does not hold the rest", rates, low=1)]


def divided(cache_bytes: float, part: float) -> tuple:
    """Bytes of cache and of page cache; with a part for the page cache, both are the same memory in
    all."""
    cache = max(int(cache_bytes) >> 20, POOL_BYTES_MIN >> 20) << 20
    if part is None:
        return cache, PAGE_CACHE_BYTES
    total = cache + PAGE_CACHE_BYTES
    return int((1 - part) * total) >> 20 << 20, int(part * total)


def best(results, names: list, splits_count: int):
    """The results with only that way to divide the memory in which an engine did most, by the
    median, of each cell."""
    if splits_count == 1:
        return results
    dropped = set()
    for engine in results.engines:
        for first in range(0, len(names), splits_count):
            found = {}
            for name in names[first:first + splits_count]:
                for share, values in results.curve(engine, f"tps {name}"):
                    found.setdefault(share, {})[name] = median(values)
            dropped |= {(engine, name, share) for share, each in found.items() for name in each
                        if name != max(each, key=each.get)}
    return results.without(lambda engine, measure, at: (
        (engine, measure.partition(" ")[2], at) in dropped))


def overflowed(results) -> str:
    """Why nothing follows from the shares: InnoDB read pages with what should have held all of
    them. Empty where it did not."""
    pages = max(results.values(INNODB, "reads", 1.0), default=0)
    return (f"InnoDB read {pages:.0f} pages in 1000 selects with the memory that should hold "
            "everything"
            if pages > EVERYTHING_READS_MAX else "")


def selects(trial, server, program, share: float):
    """Warm, then measure."""
    server.sql(READ_THROUGH, "sbtest")
    trial.did(READ_THROUGH)
    seconds = max(0.1, min(1, trial.scale.factor) * (2 if trial.scale.full else 1))
    points.once(server, program, "sbtest", "sbtest1", "id", seconds / 2)
    before = counters.pages_read(server, trial.family), server.status("Com_stmt_execute")
    rate = points.once(server, program, "sbtest", "sbtest1", "id", seconds)
    trial.did(f"{SELECT}   -- prepared; {points.CONNECTIONS} connections, {seconds:g} s")
    pages, queries = (counters.pages_read(server, trial.family) - before[0],
                      server.status("Com_stmt_execute") - before[1])
    yield Value("rate", rate, share)
    yield Value("reads", 1000 * pages / max(queries, 1), share)


def slow_rates(results, engine: str, share: float) -> list:
    """What a device of 100 reads a second would let through, repeat by repeat."""
    return [served(rate, pages / 1000, SLOW_IOPS)
            for rate, pages in results.together((engine, "rate", 1.0), (engine, "reads", share))]
