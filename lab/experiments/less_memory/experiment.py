"""Point selects over the size of the cache: rates and pages read, by the arithmetic; W14."""

from statistics import median

from cheetah_lab import counters, judge, show
from cheetah_lab.engines import CHEETAH, INNODB
from cheetah_lab.model import (LESS, MORE, OPEN, Cell, Experiment, Measure, Plot, Series, Table,
                               Value, Verdict)
from cheetah_lab.trial import PAGE_CACHE_BYTES
from cheetah_tools import points, sysbench

QUICK_ROWS = 350_000
LOAD_POOL_BYTES = 128 << 20
# A row takes 226 bytes of InnoDB's leaves. The additional bytes per row and 3.5 MiB cover
# everything else that the cache has to hold or to keep free.
EVERYTHING_BYTES_OF_ROW, EVERYTHING_BYTES_BESIDE = 229, 7 << 19
EVERYTHING_READS_MAX = 20  # in 1000 selects; more mean that the cache did not hold everything
ROWS_MIN = 40_000
POOL_BYTES_MIN = 8 << 20   # the minimum for all engines; smaller shares are left out
SHARES = [1.0, 0.9, 0.75, 0.5, 0.25]
FULL_SHARES = [1.0, 0.98, 0.95, 0.9, 0.85, 0.75, 0.6, 0.5, 0.35, 0.25, 0.15]
JUDGED_SHARES_MAX = 0.9    # with larger shares there are few reads, which are mostly noise
SLOW_IOPS = 100
READ_THROUGH = "SELECT COUNT(*), MAX(LENGTH(pad)) FROM sbtest1 FORCE INDEX (PRIMARY)"
SELECT = "SELECT * FROM sbtest1 WHERE id = ?"
TABLE = "Queries a second through a device of 100 reads a second"


def served(rate_in_memory: float, reads_per_query: float, iops: float) -> float:
    """Returns the queries per second that a device with `iops` reads per second allows."""
    return rate_in_memory if reads_per_query <= 0 else min(rate_in_memory, iops / reads_per_query)


def predicted_reads(share: float) -> float:
    """Returns the pages read per select if the cache holds this share of the leaves."""
    return max(0.0, 1 - share)


class LessMemory(Experiment):
    measures = [Measure("rate", "selects a second", "1/s", MORE),
                Measure("reads", "pages read in 1000 selects", "pages", LESS),
                Measure("cache", "cache", "bytes")]

    def run(self, trial):
        rows = trial.scale.of(QUICK_ROWS, ROWS_MIN)
        program = points.build()
        with trial.server(LOAD_POOL_BYTES) as server:
            everything_bytes = rows * EVERYTHING_BYTES_OF_ROW + EVERYTHING_BYTES_BESIDE
            trial.step(f"loading {rows:,} rows")
            sysbench.load(server, trial.engine, sysbench.Tables(rows), key=False)
            trial.did(sysbench.create_table(1, trial.engine.clause(), key=False))
            for share in FULL_SHARES if trial.scale.full else SHARES:
                pool_bytes = round(everything_bytes * share)
                if pool_bytes < POOL_BYTES_MIN:
                    continue
                trial.step(f"point selects with {share:g} of the memory")
                trial.restart(server, pool_bytes)
                yield Value("cache", pool_bytes, share)
                with trial.held(server, sysbench.DATABASE, f"{share:g} of the memory"):
                    yield from selects(trial, server, program, share)

    def plots(self, results) -> list:
        shares = all_shares(results)
        arithmetic = Series("arithmetic: 1 - share",
                            [(share, [1000 * predicted_reads(share)]) for share in shares])
        slow = [Series(results.label(engine),
                       [(share, slow_rates(results, engine, share)) for share in shares], engine)
                for engine in results.engines]
        share_label = "share of the memory that holds everything in InnoDB"
        return [Plot("rate", "Selects a second", "lines", share_label, "1/s",
                     show.lines(results, "rate")),
                Plot("reads", "Pages read in 1000 selects", "lines", share_label, "pages",
                     [*show.lines(results, "reads"), arithmetic]),
                Plot("slow", TABLE, "lines", share_label, "1/s", slow, log_y=True,
                     caption=f"min(rate with everything in memory, {SLOW_IOPS} / reads for each "
                             "select), from what was measured.")]

    def tables(self, results) -> list:
        shares = all_shares(results)[::-1]
        if not shares:
            return []
        head = ["engine", *(f"{share:g} of the memory" for share in shares)]
        reads, rates = ([show.cells(results, engine, [(measure, share, unit) for share in shares])
                         for engine in results.engines]
                        for measure, unit in (("reads", "pages"), ("rate", "1/s")))
        reads.append([Cell("arithmetic"),
                      *(Cell(f"{1000 * predicted_reads(share):.0f}") for share in shares)])
        slow = [[Cell(results.label(engine)),
                 *(Cell(values=slow_rates(results, engine, share), unit="1/s") for share in shares)]
                for engine in results.engines]
        return [Table("Pages read in 1000 selects", head, reads),
                Table("Selects a second", head, rates), Table(TABLE, head, slow)]

    def figures(self, results) -> list:
        """Returns the figure W14: pages read divided by the prediction of the arithmetic. The
        document computes and does not measure, so its column is empty."""
        return [show.figure(results, f"W14 {share:g}",
                            f"pages read with {share:g} of the memory ({said} in the document), "
                            "by the arithmetic", None, "ratio",
                            lambda engine, share=share: (
                                [pages / (1000 * predicted_reads(share))
                                 for pages in results.values(engine, "reads", share)]
                                if not overflowed(results) else []))
                for share, said in ((0.9, "9 G for 10 G"), (0.5, "34 G for 68 G"))]

    def verdicts(self, results) -> list:
        claims = self.about["claims"]
        if overflowed(results):
            return [Verdict(claim, OPEN, overflowed(results)) for claim in claims.values()]
        less = [served(rate, pages / 1000, SLOW_IOPS) / rate
                for rate, pages in results.together((INNODB, "rate", 1.0), (INNODB, "reads", 0.9))]
        shares = [share for share, _ in results.curve(INNODB, "reads")
                  if share <= JUDGED_SHARES_MAX]
        measured = (results.together(*((INNODB, "reads", share) for share in shares)) if shares
                    else [])
        by_arithmetic = [median([pages / (1000 * predicted_reads(share))
                                 for share, pages in zip(shares, repeat)])
                         for repeat in measured]
        reads = results.median_ratios(CHEETAH, "reads", INNODB, shares)
        everything = max(results.values(INNODB, "cache", 1.0), default=0)
        missed = [share for share in shares if (1 - share) * everything > PAGE_CACHE_BYTES]
        rates = results.median_ratios(CHEETAH, "rate", INNODB, missed)
        return judge.each(claims, [
            ("tenth", "queries a second with 0.9 of the memory, by those with all of it", less,
             0, 0.1),
            ("arithmetic", "pages read, by the arithmetic, median of the shares", by_arithmetic,
             1 / 1.33, 1.33),
            ("reads", "pages read by Cheetah, by those of InnoDB, median of the shares", reads,
             0, 1),
            ("rates", "selects a second of Cheetah, by those of InnoDB, median of the shares of "
             "which the page cache does not hold the rest", rates, 1)])


def all_shares(results) -> list:
    return sorted({share for engine in results.engines
                   for share, _ in results.curve(engine, "reads")})


def overflowed(results) -> str:
    """Returns why the shares say nothing, or "": InnoDB read pages in spite of the cache."""
    pages = max(results.values(INNODB, "reads", 1.0), default=0)
    return (f"InnoDB read {pages:.0f} pages in 1000 selects with the memory that should hold "
            "everything"
            if pages > EVERYTHING_READS_MAX else "")


def selects(trial, server, program, share: float):
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
    return [served(rate, pages / 1000, SLOW_IOPS)
            for rate, pages in results.together((engine, "rate", 1.0), (engine, "reads", share))]
