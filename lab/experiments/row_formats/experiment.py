"""sysbench's old table in the row formats: load, size, statistics, throughput with two caches."""

import time

from cheetah_lab import judge, show
from cheetah_lab.model import (ABSENT, LESS, MORE, OPEN, Cell, Experiment, Figure, Measure, Plot,
                               Table, Value, Verdict)
from cheetah_lab.numbers import number
from cheetah_tools import dump, sysbench

ROWS, ONE_ROW_ROWS, FULL_BY = 240_000, 30_000, 4
LOAD_BYTES = 256 << 20
# InnoDB's bytes per row with its key, uncompressed. A cache of twice the table holds everything; a
# fifth corresponds to the document's 512 MB for 2.3 GB.
ROW_BYTES, CACHED_BY, OVERFLOW_BY, POOL_BYTES_MIN = 270, 2, 0.21, 8 << 20
# a cache that holds a larger share of the table does not count as overflowing
OVERFLOW_MOST = 0.5
# bytes of rows in InnoDB; the files of a smaller table have more free space than data
SMALL_BYTES = 16_000_000
CONNECTIONS, FULL_CONNECTIONS = [1, 16, 128], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
WARM_SECONDS, SECONDS, FULL_SECONDS = 1, 2, 3
BASE, UNCOMPRESSED = "innodb-compact", "innodb-dynamic"
# The document's formats, and the same options in Cheetah, which stores rows of all formats alike.
FORMATS = {"Compact": ("innodb-compact", "cheetah"), "8K": ("innodb-8k", "cheetah-8k"),
           "4K": ("innodb-4k", "cheetah-4k"), "DYNAMIC": ("innodb-dynamic", "cheetah")}
# The document's values: seconds, bytes, Data_length, Index_length; and compression statistics.
DOCUMENT = {"Compact": (1698, 2.3 * 2**30, 2247098368, 137019392),
            "8K": (1786, 1.2 * 2**30, 2247098368, 137035776),
            "4K": (2203, 592 * 2**20, 2249195520, 160301056),
            "DYNAMIC": (1675, 2.3 * 2**30, 2247098368, 137019392)}
DOCUMENT_STATISTICS = {"8K": (8192, 446198, 445598, 73, 300, 0),
                       "4K": (4096, 1091421, 1012917, 463, 38801, 13)}
DEFINITION = ("CREATE TABLE sbtest1 (id INT(10) UNSIGNED NOT NULL, "
              "k INT(10) UNSIGNED NOT NULL DEFAULT '0', c CHAR(120) NOT NULL DEFAULT '', "
              "pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k)) ")
STATISTICS = {"compress_ops": ("compressions", ""),
              "compress_ops_ok": ("of these succeeded", ""),
              "compress_time": ("time to compress", "s"),
              "uncompress_ops": ("decompressions", ""),
              "uncompress_time": ("time to decompress", "s")}
VIEWS = {"InnoDB": "INNODB_CMP", "Cheetah": "CHEETAH_CMP"}
CACHES = {"cached": "a cache that holds everything", "overflow": "a cache that overflows"}
LAZY_LOG = {name: 2
            for name in ("innodb_flush_log_at_trx_commit", "loose_cheetah_flush_log_at_trx_commit",
                         "loose_rocksdb_flush_log_at_trx_commit")}


class RowFormats(Experiment):
    measures = [Measure("load_rows", "rows, one in each INSERT", "rows"),
                Measure("rows", "rows of the table", "rows"),
                Measure("load_s", "load, one row in each INSERT", "s", LESS),
                Measure("bytes", "size", "bytes", LESS),
                Measure("data_length", "Data_length", "bytes"),
                Measure("index_length", "Index_length", "bytes"),
                Measure("status_bytes", "Data_length + Index_length", "bytes"),
                *(Measure(key, label, unit) for key, (label, unit) in STATISTICS.items()),
                Measure("failures", "compressions that failed", "ratio", LESS),
                Measure("random_bytes", "size of random digits", "bytes", LESS),
                Measure("random_s", "load of random digits", "s", LESS),
                *(Measure(f"{key}_{cache}", f"{label}, {said}", unit, better)
                  for key, label, unit, better in (
                      ("tps", "transactions a second", "1/s", MORE),
                      ("p99", "99 of 100 transactions took at most", "ms", LESS))
                  for cache, said in CACHES.items())]

    def engines(self, chosen, scale):
        return list(dict.fromkeys([*chosen,
                                   *(engine for pair in FORMATS.values() for engine in pair)]))

    def room_bytes(self, scale):
        return super().room_bytes(scale) * (FULL_BY if scale.full else 1)

    def input_bytes(self, scale):
        return super().input_bytes(scale) * (FULL_BY if scale.full else 1)

    def run(self, trial):
        rows = trial.scale.of(ROWS * (FULL_BY if trial.scale.full else 1), 2000)
        with trial.server(LOAD_BYTES, **LAZY_LOG) as server:
            trial.step("load, one row in each INSERT")
            one_row = sysbench.Tables(trial.scale.of(ONE_ROW_ROWS, 300), texts="old", batch=1)
            yield Value("load_s", load(trial, server, one_row))
        yield Value("load_rows", one_row.rows)
        yield Value("rows", rows)
        tables = sysbench.Tables(rows, texts="old")
        with trial.server(LOAD_BYTES) as server:
            trial.step(f"load of {rows:,} rows")
            load(trial, server, tables)
            yield Value("bytes", trial.bytes_at_rest(server, sysbench.DATABASE))
            yield from table_status(trial, server)
            yield from compression(trial, server)
            if trial.chosen:
                yield from self.throughput(trial, server, tables)
        if not trial.chosen:
            return
        with trial.server(LOAD_BYTES) as server:
            trial.step("load of random digits")
            yield Value("random_s", load(trial, server, sysbench.Tables(max(rows // 2, 1000))))
            yield Value("random_bytes", trial.bytes_at_rest(server, sysbench.DATABASE))

    def throughput(self, trial, server, tables):
        counts = (FULL_CONNECTIONS if trial.scale.full
                  else CONNECTIONS if trial.scale.factor >= 0.1 else CONNECTIONS[:2])
        warm, seconds = ((WARM_SECONDS, FULL_SECONDS if trial.scale.full else SECONDS)
                         if trial.scale.factor >= 0.1 else (0, 1))
        for cache, memory in caches(tables.rows).items():
            trial.restart(server, memory, **sysbench.server_options(max(counts)))
            with trial.held(server, sysbench.DATABASE, CACHES[cache]):
                sysbench.warm(server, tables)
                for count in counts:
                    trial.step(f"{count} connections, {CACHES[cache]}")
                    asked = ("oltp_read_write", tables, count, seconds, warm)
                    found = sysbench.run(server, *asked)
                    trial.did(f"sysbench {' '.join(sysbench.words(*asked))}"
                              f"   # {CACHES[cache]}: {memory >> 20} MiB")
                    yield Value(f"tps_{cache}", found.tps, count)
                    yield Value(f"p99_{cache}", found.p99_ms, count)

    def plots(self, results):
        sizes = show.bars(results, {"texts of sysbench 0.4": ("bytes", None),
                                    "random digits (half of the rows)": ("random_bytes", None)})
        return [Plot("load", "Time to load, one row in each INSERT", "bars", "", "seconds",
                     show.bars(results, {"load": ("load_s", None)}),
                     caption="Until all pages are written out; "
                             "what MyRocks compacts later is not in it."),
                Plot("size", "Size of the table", "bars", "rows", "bytes", sizes),
                *(Plot(cache, f"Reads and writes with {said}", "lines", "connections",
                       "transactions a second", show.lines(results, f"tps_{cache}"), log_x=True)
                  for cache, said in CACHES.items() if show.lines(results, f"tps_{cache}"))]

    def tables(self, results):
        return [self.load_and_size(results), self.status(results), self.statistics(results),
                *(self.rates(results, cache) for cache in CACHES
                  if any(results.curve(engine, f"tps_{cache}") for engine in results.engines))]

    def load_and_size(self, results):
        rows = [[Cell(f"document: {name}"), Cell(f"{seconds:,} s"),
                 Cell(f"{seconds / DOCUMENT['Compact'][0]:.2f}"), Cell(f"{size / 1e6:,.0f} MB"),
                 Cell(f"{size / DOCUMENT['Compact'][1]:.2f}"), Cell(ABSENT), Cell(ABSENT)]
                for name, (seconds, size, *_) in DOCUMENT.items()]
        for engine in results.engines:
            row = [Cell(results.label(engine))]
            for measure, unit in (("load_s", "s"), ("bytes", "bytes")):
                row += [show.cell(results.values(engine, measure), unit),
                        show.cell(results.ratios(engine, measure, BASE), "ratio")]
            rows.append([*row, *(show.cell(results.values(engine, f"random_{unit}"), unit)
                                 for unit in ("s", "bytes"))])
        return Table("Load and size",
                     ["format", "load", "by COMPACT", "size", "by COMPACT", "random digits: load",
                      "random digits: size"], rows,
                     f"Load: {most(results, 'load_rows')} rows, the document 10 million. "
                     f"Size: {most(results, 'rows')} rows; random digits: half of them, "
                     "in large INSERTs.")

    def status(self, results):
        rows = [[Cell(f"document: {name}"), Cell(f"{data:,}"), Cell(f"{index:,}"),
                 Cell(f"{(data + index) / size:.2f}")]
                for name, (_, size, data, index) in DOCUMENT.items()]
        rows += [[*show.cells(results, engine, [("data_length", None, "bytes"),
                                                ("index_length", None, "bytes")]),
                  show.cell(results.ratios(engine, "status_bytes", engine, base_measure="bytes"),
                            "ratio")] for engine in results.engines]
        return Table("SHOW TABLE STATUS",
                     ["format", "Data_length", "Index_length", "both by the size on disk"], rows)

    def statistics(self, results):
        """Returns the table of V1 and V2 by page size. Cheetah's images have any length; their page
        size is the smallest one into which they would have fitted."""
        rows = [[Cell(f"document: {name}"), *(Cell(f"{number:,}") for number in numbers),
                 Cell(f"{1 - numbers[2] / numbers[1]:.2%}")]
                for name, numbers in DOCUMENT_STATISTICS.items()]
        for engine in results.engines:
            if results.family(engine) not in VIEWS:
                rows.append([Cell(results.label(engine)), Cell("has no such view"),
                             *[Cell(ABSENT)] * 6])
            repeats = len(results.values(engine, "compress_ops"))
            for size, found in results.curve(engine, "compress_ops"):
                if len(found) != repeats:
                    continue
                failed = [100 * (1 - ratio)
                          for ratio in results.ratios(engine, "compress_ops_ok", engine, size,
                                                      "compress_ops")]
                rows.append([Cell(results.label(engine)), Cell(f"{size:,.0f}"),
                             *(show.cell(results.values(engine, key, size), unit)
                               for key, (_, unit) in STATISTICS.items()), show.cell(failed, "%")])
        return Table("Compression statistics", ["format", "page_size", *STATISTICS, "failed"], rows,
                     "After the load of all rows. InnoDB's times are whole seconds, and 0 is less "
                     "than one. Uncompressed formats of InnoDB do not compress, and have no line; "
                     "neither have sizes that not every repeat had.")

    def rates(self, results, cache):
        counts = sorted({count for engine in results.engines
                         for count, _ in results.curve(engine, f"tps_{cache}")})
        return show.table(results, f"Transactions a second with {CACHES[cache]}",
                          [(f"{count:g} connections", f"tps_{cache}", count, "1/s")
                           for count in counts]
                          + [(f"p99 with {counts[-1]:g}", f"p99_{cache}", counts[-1], "ms")])

    def figures(self, results):
        made = []
        for key, measure, what, position in (("W1", "load_s", "load, one row in each INSERT", 0),
                                             ("W2", "bytes", "bytes on disk", 1)):
            def by_compact(engine, measure=measure):
                return (results.ratios(engine, measure, BASE)
                        if measure == "load_s" or not too_small(results) else [])
            others = show.others(results, by_compact, ["myrocks"])
            for name in ("8K", "4K", "DYNAMIC"):
                found = [by_compact(engine) for engine in FORMATS[name]]
                document = round(DOCUMENT[name][position] / DOCUMENT["Compact"][position], 2)
                made.append(Figure(f"{key} {name}", f"{what}, by COMPACT", document, "ratio",
                                   *found, others=others))
        for cache, said in CACHES.items():
            def ratios(engine, cache=cache):
                return results.mean_of_cells(engine, [f"tps_{cache}"], UNCOMPRESSED)
            rest = [engine for engine in results.engines
                    if engine not in ("innodb-8k", "cheetah", UNCOMPRESSED)]
            made.append(Figure(f"W3 {cache}",
                               f"throughput with {said}, compressed by InnoDB uncompressed, "
                               "geometric mean over connections", None, "ratio",
                               ratios("innodb-8k"), ratios("cheetah"),
                               show.others(results, ratios, rest)))
        return made

    def verdicts(self, results):
        claims, ratios, within = self.about["claims"], results.ratios, judge.within
        small, dense, denser = too_small(results), "innodb-8k", "innodb-4k"
        of_bytes = (lambda claim, *_: Verdict(claim, OPEN, small)) if small else within
        innodb, cheetah = ({cache: results.mean_of_cells(engine, [f"tps_{cache}"], UNCOMPRESSED)
                            for cache in CACHES} for engine in (dense, "cheetah"))
        rows = [
            (within, "load_8k", "load, KEY_BLOCK_SIZE=8 by COMPACT",
             ratios(dense, "load_s", BASE), 1.0, 1.15),
            (within, "load_4k", "load, KEY_BLOCK_SIZE=4 by 8",
             ratios(denser, "load_s", dense), 1.05),
            (of_bytes, "bytes_dynamic", "bytes, DYNAMIC by COMPACT",
             ratios(UNCOMPRESSED, "bytes", BASE), 0.95, 1.05),
            (of_bytes, "bytes_8k", "bytes, KEY_BLOCK_SIZE=8 by COMPACT",
             ratios(dense, "bytes", BASE), 0.42, 0.62),
            (of_bytes, "bytes_4k", "bytes, KEY_BLOCK_SIZE=4 by COMPACT",
             ratios(denser, "bytes", BASE), 0.2, 0.33),
            (within, "status", "Data_length + Index_length, KEY_BLOCK_SIZE=8 by COMPACT",
             ratios(dense, "status_bytes", BASE), 0.9, 1.1),
            (within, "compressions", "compressions, KEY_BLOCK_SIZE=8 by 4",
             ratios(dense, "compress_ops", denser), 0, 0.99),
            (within, "cached", "throughput, KEY_BLOCK_SIZE=8 by DYNAMIC", innodb["cached"], 0.7, 1),
            (within, "overflow", "throughput, KEY_BLOCK_SIZE=8 by DYNAMIC", innodb["overflow"], 1),
            (within, "cheetah_load", "load, Cheetah by InnoDB COMPACT",
             ratios("cheetah", "load_s", BASE), 0, judge.NO_LONGER),
            (of_bytes, "cheetah_bytes", "bytes, Cheetah by the smallest of InnoDB",
             results.by_smallest("cheetah", "bytes", [pair[0] for pair in FORMATS.values()]), 0, 1),
            (judge.at_most, "cheetah_failures", "share of compressions that failed",
             results.values("cheetah", "failures"), 0),
            (of_bytes, "cheetah_status", "Data_length + Index_length by the files",
             ratios("cheetah", "status_bytes", "cheetah", base_measure="bytes"), 0.8, 1.1),
            (within, "cheetah_cached", "throughput, Cheetah by InnoDB DYNAMIC", cheetah["cached"],
             1 / judge.NO_LONGER),
            (within, "cheetah_overflow", "throughput, Cheetah by InnoDB DYNAMIC",
             cheetah["overflow"], 1)]
        return [decide(claims[key], *rest) for decide, key, *rest in rows]


def too_small(results) -> str:
    """Returns why file sizes say nothing about formats in this run, or ""."""
    rows = max((value for engine in results.engines for value in results.values(engine, "rows")),
               default=0)
    if rows * ROW_BYTES >= SMALL_BYTES:
        return ""
    return (f"too small to say: {rows:,.0f} rows are {number(rows * ROW_BYTES, 'bytes')}, "
            f"less than {number(SMALL_BYTES, 'bytes')}; the room of files beside them counts more")


def most(results, measure: str) -> str:
    found = [value for engine in results.engines for value in results.values(engine, measure)]
    return f"{max(found):,.0f}" if found else "no"


def caches(rows: int) -> dict:
    """Returns the bytes of each cache for the throughput test. If even the smallest cache would
    hold too large a share of the table, the cache that overflows is left out."""
    table_bytes = rows * ROW_BYTES
    found = {"cached": max(POOL_BYTES_MIN, round(table_bytes * CACHED_BY)),
             "overflow": max(POOL_BYTES_MIN, round(table_bytes * OVERFLOW_BY))}
    if found["overflow"] > OVERFLOW_MOST * table_bytes:
        del found["overflow"]
    return found


def load(trial, server, tables) -> float:
    """Fills the document's table; returns the seconds until everything is written out."""
    script, definition = sysbench.rows_file(tables), DEFINITION + trial.engine.clause()
    server.sql(f"CREATE DATABASE {sysbench.DATABASE}")
    server.sql(definition, sysbench.DATABASE)
    trial.did(definition + ";")
    started = time.monotonic()
    dump.feed(server, sysbench.DATABASE, script, trial.engine.label)
    trial.engine.write_out(server, sysbench.DATABASE)
    trial.did(f"mariadb sbtest < {script.name}   "
              f"# {tables.rows:,} rows, {tables.batch:,} in each INSERT")
    return time.monotonic() - started


def table_status(trial, server):
    server.sql("ANALYZE TABLE sbtest1", sysbench.DATABASE)
    trial.did("ANALYZE TABLE sbtest1; SHOW TABLE STATUS LIKE 'sbtest1';")
    data, index = server.sql("SELECT data_length, index_length FROM information_schema.tables "
                             "WHERE table_schema = 'sbtest' AND table_name = 'sbtest1'")[0]
    yield Value("data_length", data)
    yield Value("index_length", index)
    yield Value("status_bytes", data + index)


def compression(trial, server):
    """Yields the engine's counters by page size and in total, if it has such a view."""
    if trial.family not in VIEWS:
        return
    time_of = "{}_time_us / 1e6" if trial.family == "Cheetah" else "{}_time"
    question = ("SELECT page_size, compress_ops, compress_ops_ok, "
                f"{time_of.format('compress')}, uncompress_ops, {time_of.format('uncompress')} "
                f"FROM information_schema.{VIEWS[trial.family]}")
    trial.did(question + ";")
    found = [row for row in server.sql(question) if row[1] or row[4]]
    for size, *numbers in found:
        for key, number in zip(STATISTICS, numbers):
            yield Value(key, number, size)
    if found:
        for position, key in enumerate(STATISTICS, 1):
            yield Value(key, sum(row[position] for row in found))
        done = sum(row[1] for row in found)
        yield Value("failures", 1 - sum(row[2] for row in found) / done if done else 0)
