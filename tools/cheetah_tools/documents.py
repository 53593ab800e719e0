"""`make bench ARGS="--sets documents"`: what the documents behind this project measured with InnoDB, measured again.

The features of this engine come from three texts about InnoDB's compression, fast index creation and caches. Each of their
figures (W1 to W3, W6 to W14) is a ratio here, but for two times: theirs, that of InnoDB on this machine, and that of Cheetah, given the same words, to
the same base: InnoDB uncompressed. Engines take turns within each repeat. Sizes are small: minutes, where the documents took
hours; so the ratios are compared, not the times.
"""

import json
import statistics
import time

from . import formatdata, formats, points
from .engines import Engine, available, equal_memory
from .formatdata import MEMORY_BYTES
from .paths import VAR, show
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

PLAIN, DYNAMIC = "ROW_FORMAT=COMPACT", "ROW_FORMAT=DYNAMIC"
SIZES = {size: f"ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={size}" for size in (16, 8, 4)}
BASE = ("InnoDB", PLAIN)
NAMES = ("InnoDB", "CHEETAH")
# Figure: what, and what the document has; None: a curve or a claim without a figure.
FIGURES = {
    "W1 8K": ("load of sysbench's old rows, one in each INSERT", 1.05), "W1 4K": ("the same", 1.30), "W1 DYNAMIC": ("the same", 0.99),
    "W2 8K": ("bytes of these", 0.52), "W2 4K": ("the same", 0.25), "W2 DYNAMIC": ("the same", 1.0),
    "W3 cached": ("point selects a second, KEY_BLOCK_SIZE=8, all in the cache", None),
    "W3 overflow": ("the same, with a cache for a fifth", None),
    "W6 time": ("load with the primary key alone, then ADD INDEX, by load with all keys", 0.51), "W6 bytes": ("bytes of it", 0.94),
    "W7 time": ("KEY_BLOCK_SIZE=8: load with all keys", 1.50), "W7 bytes": ("bytes of it", 0.38),
    "W8 time": ("KEY_BLOCK_SIZE=8: primary key alone, then ADD INDEX", 0.74), "W8 bytes": ("bytes of it", 0.35),
    "W9 16K": ("INSERT .. SELECT of Wikipedia's texts", 0.90), "W9 8K": ("the same", 0.94), "W9 4K": ("the same", 1.03),
    "W10 16K": ("bytes of them", 0.71), "W10 8K": ("the same", 0.405), "W10 4K": ("the same", 0.388),
    "W11": ("rows a second into growing indexes: last fifth by first fifth of the time", None),
    "W12 length": ("rows by DATA_LENGTH / AVG_ROW_LENGTH, by those there are", 1.112), "W12 rows": ("TABLE_ROWS, by those there are", 1.038),
    "W12 s": ("seconds of COUNT(1)", 2.03), "W13 ms": ("milliseconds of COUNT(*) of a table, the best of ten", None),
    "W14": ("pages read in 1000 point selects with 0.9 of the cache, by those with all of it", None),
}
WORDS_OF_SIZE = {"8K": SIZES[8], "4K": SIZES[4], "16K": SIZES[16], "DYNAMIC": DYNAMIC}
GROWTH_SECONDS, GROWTH_BATCH, GROWTH_POOL_BYTES = 30, 500, 24 << 20
CACHED_BYTES, FIFTH_BYTES = 128 << 20, 14 << 20
STUDY_BYTES = 56 << 20
POINT_TABLE = "sbtest1"
REST_SECONDS = 10


def run(choice) -> int:
    """The part of the bench."""
    parts = [sysbench_words, shard, texts, growing, counts, caches]
    parts = [part for part in parts if part not in (shard, texts) or all(formats.at_hand(name) for name in ("feed_beer", "enwiki_text_plain"))]
    step(f"documents: {len(parts)} experiments, {choice.repeats} repeats: about {9 * choice.repeats} minutes")
    results = {}
    for repeat in range(choice.repeats):
        order = NAMES if repeat % 2 == 0 else NAMES[::-1]
        for part in parts:
            note(f"repeat {repeat + 1}: {part.__doc__.splitlines()[0]}")
            for figure, name, value in part(order):
                results.setdefault(figure, {}).setdefault(name, []).append(value)
            (VAR / "bench-documents.json").write_text(json.dumps(results, indent=1) + "\n")
    report(results)
    print(f"raw figures: {show(VAR / 'bench-documents.json')}")
    return 0


class Running:
    """A private server for tables of one engine and words; as a context."""

    def __init__(self, name: str, words: str = PLAIN, memory: int = MEMORY_BYTES, **options):
        self.engine = Engine(f"{name} {words}", name, words)
        chunk = {"innodb_buffer_pool_chunk_size": 1 << 20}
        self.server = PrivateServer(scratch("documents"), {**equal_memory(memory), **chunk, **options}, plugin=name == "CHEETAH")

    def __enter__(self):
        self.server.start()
        if not available(self.server, [self.engine]):
            raise Failure(f"{self.engine.name} is not in this server; make build")
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.server.remove()

    def load(self, name: str, form: str) -> float:
        """A form of a set of data; the seconds until all is flushed."""
        return formats.load(self.server, self.engine, formatdata.prepare(name), name, form)

    def bytes(self, name: str) -> int:
        """Bytes on disk, after a rest in which those of dropped pages can go."""
        time.sleep(REST_SECONDS)
        return self.engine.bytes_on_disk(self.server, name)


def sysbench_words(order):
    """W1, W2: sysbench's old rows in each format."""
    times, sizes = {}, {}
    for words in (PLAIN, *(WORDS_OF_SIZE[size] for size in ("8K", "4K", "DYNAMIC"))):
        for name in order:
            with Running(name, words, innodb_flush_log_at_trx_commit=2, loose_cheetah_flush_log_at_trx_commit=2) as place:
                times[name, words] = place.load("sysbench_old", "one_row")
            with Running(name, words) as place:
                place.load("sysbench_old", "multi_row")
                sizes[name, words] = place.bytes("sysbench_old")
    for size in ("8K", "4K", "DYNAMIC"):
        for name in NAMES:
            yield f"W1 {size}", name, times[name, WORDS_OF_SIZE[size]] / times[BASE]
            yield f"W2 {size}", name, sizes[name, WORDS_OF_SIZE[size]] / sizes[BASE]


def shard(order):
    """W6 to W8: tables of a forum with several secondary indexes, loaded with them, and before them.

    COMPACT has no room for their keys."""
    all_keys, key_first = {}, {}
    for words in (DYNAMIC, SIZES[8]):
        for name in order:
            with Running(name, words) as place:
                all_keys[name, words] = place.load("feed_beer", "dump"), place.bytes("feed_beer")
            with Running(name, words) as place:
                seconds = place.load("feed_beer", "multi_row")
                seconds += formats.add_indexes(place.server, place.engine, formatdata.prepare("feed_beer"), "feed_beer")
                key_first[name, words] = seconds, place.bytes("feed_beer")
    for position, unit in enumerate(("time", "bytes")):
        base = all_keys["InnoDB", DYNAMIC][position]
        for name in NAMES:
            yield f"W6 {unit}", name, key_first[name, DYNAMIC][position] / base
            yield f"W7 {unit}", name, all_keys[name, SIZES[8]][position] / base
            yield f"W8 {unit}", name, key_first[name, SIZES[8]][position] / base


def texts(order):
    """W9, W10: INSERT .. SELECT of Wikipedia's texts into a table of each format."""
    found = {}
    for name in order:
        with Running(name) as place:
            place.engine = Engine("source", "InnoDB", PLAIN)
            place.load("enwiki_text_plain", "multi_row")
            for words in (PLAIN, *SIZES.values()):
                found[name, words] = copy_texts(place.server, name, words)
    for size in ("16K", "8K", "4K"):
        for name in NAMES:
            for figure, position in (("W9", 0), ("W10", 1)):
                yield f"{figure} {size}", name, found[name, WORDS_OF_SIZE[size]][position] / found[BASE][position]


def copy_texts(server, name: str, words: str) -> tuple:
    """Seconds until flushed, and bytes, of one copy."""
    server.sql("CREATE DATABASE copy")
    server.sql(f"CREATE TABLE copy.text (old_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, old_text MEDIUMBLOB NOT NULL, "
               f"old_flags TINYBLOB NOT NULL) ENGINE={name} {words}")
    started = time.monotonic()
    server.sql("INSERT INTO copy.text SELECT old_id, old_text, old_flags FROM enwiki_text_plain.text")
    engine = Engine(words, name, words)
    formats.write_out(server, engine, "copy")
    seconds = time.monotonic() - started
    size = engine.bytes_on_disk(server, "copy")
    server.sql("DROP DATABASE copy")
    if name == "CHEETAH":
        wait_for_space(server, engine)
    return seconds, size


def wait_for_space(server, engine, seconds: float = 60) -> None:
    """Until what was dropped is no longer in the files, which all tables share."""
    deadline = time.monotonic() + seconds
    while engine.bytes_on_disk(server, "") > 4 << 20 and time.monotonic() < deadline:
        engine.flush(server)
        time.sleep(1)


def growing(order):
    """W11: batches of rows into a table whose three indexes outgrow the cache."""
    for name in order:
        with Running(name, memory=GROWTH_POOL_BYTES) as place:
            place.server.sql("CREATE DATABASE d")
            place.server.sql(f"CREATE TABLE d.purchases (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, at INT NOT NULL, register INT NOT NULL, "
                             f"customer INT NOT NULL, product INT NOT NULL, price FLOAT NOT NULL, data VARCHAR(40) NOT NULL, KEY (price, customer), "
                             f"KEY (register, price, customer), KEY (price, at, customer)) ENGINE={name}")
            batch = ("INSERT INTO d.purchases (at, register, customer, product, price, data) SELECT seq, RAND() * 1000, RAND() * 100000, "
                     f"RAND() * 10000, RAND() * 500, LEFT(MD5(RAND()), 20) FROM seq_1_to_{GROWTH_BATCH}")
            connection, fifths = place.server.connect("d"), [0] * 5
            started = time.monotonic()
            with connection.cursor() as cursor:
                while (passed := time.monotonic() - started) < GROWTH_SECONDS:
                    cursor.execute(batch)
                    fifths[int(passed * 5 / GROWTH_SECONDS)] += GROWTH_BATCH
            connection.close()
            note(f"{name}: {[round(rows * 5 / GROWTH_SECONDS) for rows in fifths]} rows/s by fifths")
            yield "W11", name, fifths[4] / fifths[0]


def counts(order):
    """W12, W13: three ways to the number of rows, after a tenth was deleted."""
    for name in order:
        with Running(name) as place:
            place.load("sysbench", "dump")
            server = place.server
            server.sql("DELETE FROM sbtest1 WHERE id % 10 = 3", "sysbench")
            by_length, by_rows = server.sql("SELECT data_length / avg_row_length, table_rows FROM information_schema.tables "
                                            "WHERE table_schema = 'sysbench' AND table_name = 'sbtest1'")[0]
            times = []
            for _ in range(10):
                started = time.monotonic()
                rows = server.value("SELECT COUNT(1) FROM sysbench.sbtest1")
                times.append(time.monotonic() - started)
            yield "W12 length", name, float(by_length) / rows
            yield "W12 rows", name, float(by_rows) / rows
            yield "W12 s", name, statistics.median(times)
            yield "W13 ms", name, min(times) * 1000


def caches(order):
    """W3, W14: point selects with a cache that holds everything, one that does not, and a little less."""
    rates = {}
    for name in order:
        for words, memory in ((PLAIN, CACHED_BYTES), (SIZES[8], CACHED_BYTES), (PLAIN, FIFTH_BYTES), (SIZES[8], FIFTH_BYTES)):
            rates[name, words, memory], _ = selects(name, words, memory)
        reads = [selects(name, PLAIN, memory)[1] for memory in (STUDY_BYTES, STUDY_BYTES * 9 // 10)]
        yield "W14", name, reads[1] / max(reads[0], 0.01)
    for figure, memory in (("W3 cached", CACHED_BYTES), ("W3 overflow", FIFTH_BYTES)):
        for name in NAMES:
            yield figure, name, rates[name, SIZES[8], memory] / rates[(*BASE, memory)]


def selects(name: str, words: str, memory: int) -> tuple:
    """Point selects a second, and pages read in a thousand of them."""
    counter = "Innodb_buffer_pool_reads" if name == "InnoDB" else "Cheetah_pool_reads"
    with Running(name, words, memory=memory) as place:
        place.load("sysbench", "multi_row")
        server, program = place.server, points.build()
        rate = points.rate(server, program, "sysbench", POINT_TABLE, "id")
        before = server.status(counter), server.status("Com_stmt_execute")
        points.once(server, program, "sysbench", POINT_TABLE, "id")
        pages, queries = (now - then for now, then in zip((server.status(counter), server.status("Com_stmt_execute")), before))
        return rate, 1000 * pages / max(queries, 1)


def report(results: dict) -> None:
    """One table: the documents' ratios, InnoDB's and ours."""
    print()
    rows = [[figure, what, "-" if theirs is None else f"{theirs:.2f}", cell(results[figure].get("InnoDB")), cell(results[figure].get("CHEETAH"))]
            for figure, (what, theirs) in FIGURES.items() if figure in results]
    table(["figure", "what", "document", "InnoDB here", "Cheetah here"], rows)
    print("Ratios to InnoDB uncompressed with all keys there from the beginning, where nothing else is said.")


def cell(values) -> str:
    """Median and spread."""
    if not values:
        return "-"
    digits = 2 if max(values) >= 0.1 else 4
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"
