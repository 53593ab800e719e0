"""`make bench ARGS="--sets fulltext"`: FULLTEXT keys beside InnoDB in the same server.

The texts are those of the demonstration: the files of the MariaDB source package. Measured are ADD
FULLTEXT in place, what it adds on disk, INSERT .. SELECT of all rows into an empty table with such
a key, of 20 rows at a time, and searches for the best ten rows. Engines take turns, and whoever
begins changes with the repeat. Both must find the same rows.
"""

import statistics
import time

from . import corpus, dump
from .say import Failure, step, table
from .server import PrivateServer, scratch

ENGINES = ("InnoDB", "CHEETAH")
DATABASE = "words"
OPTIONS = {"loose_innodb_buffer_pool_size": "1G", "loose_cheetah_buffer_pool_size": "1G",
           "loose_innodb_log_file_size": "512M", "loose_innodb_flush_log_at_trx_commit": 2,
           "loose_cheetah_flush_log_at_trx_commit": 2}
COLUMNS = "id INT PRIMARY KEY, t MEDIUMTEXT NOT NULL"
SMALL_STATEMENTS, SMALL_ROWS = 50, 20
SEARCHES = ("mutex", "the transaction log", "+buffer +pool -mutex", '"storage engine"', "inno*",
            "+(read write) +lock", "character set collation", '"foreign key" @4',
            "optimizer statistics index", "+copyright +oracle -innodb")
MEASURES = ("ADD FULLTEXT, s", "bytes of it, MB", "load of all, s", "20 rows a statement, s",
            "10 searches, s")


def run(choice) -> int:
    """The part of the bench; 1 when the engines find other rows."""
    step(f"fulltext: {len(MEASURES)} measures, {choice.repeats} repeats on each engine")
    found = {(measure, engine): [] for measure in MEASURES for engine in ENGINES}
    server = PrivateServer(scratch("fulltext"), OPTIONS)
    with server:
        server.sql(f"CREATE DATABASE {DATABASE}")
        rows = fill(server)
        for repeat in range(choice.repeats):
            for engine in ENGINES if repeat % 2 == 0 else reversed(ENGINES):
                for measure, value in zip(MEASURES, measure_once(server, engine)):
                    found[measure, engine].append(value)
        differing = [words for words in SEARCHES
                     if answers(server, words, "InnoDB") != answers(server, words, "CHEETAH")]
    server.remove()
    report(rows, found)
    for words in differing:
        print(f"other rows are found: {words}")
    return 1 if differing else 0


def fill(server) -> int:
    """A table of all texts in each engine; how many."""
    with dump.open_dump(corpus.source_dump()) as source:
        dump.load(server, DATABASE, source, "ENGINE=InnoDB")
    for engine in ENGINES:
        server.sql(f"CREATE TABLE {engine}_t ({COLUMNS}) ENGINE={engine} DEFAULT CHARSET=latin1",
                   DATABASE)
        server.sql(f"INSERT INTO {engine}_t SELECT old_id, old_text FROM text", DATABASE)
    return int(server.sql("SELECT COUNT(*) FROM CHEETAH_t", DATABASE)[0][0])


def measure_once(server, engine: str) -> list:
    """Each measure once, in their order."""
    values = [0.0, 0.0]
    server.sql(f"ALTER TABLE {engine}_t DROP KEY IF EXISTS ft", DATABASE)
    server.sql(f"ALTER TABLE {engine}_t FORCE", DATABASE)
    before = size(server, engine)
    values[0] = seconds(server,
                        f"ALTER TABLE {engine}_t ADD FULLTEXT KEY ft (t), ALGORITHM=INPLACE")
    values[1] = (size(server, engine) - before) / 1e6
    searching = sum(seconds(server, f"SELECT id FROM {engine}_t WHERE {condition(words)} LIMIT 10")
                    for words in SEARCHES)
    for table_name, statements in ((f"{engine}_l", [f"SELECT * FROM {engine}_t"]),
                                   (f"{engine}_s", small_parts(engine))):
        server.sql(f"CREATE TABLE {table_name} ({COLUMNS}, FULLTEXT KEY ft (t)) ENGINE={engine} "
                   "DEFAULT CHARSET=latin1", DATABASE)
        values.append(sum(seconds(server, f"INSERT INTO {table_name} {part}")
                          for part in statements))
        server.sql(f"DROP TABLE {table_name}", DATABASE)
    return [*values, searching]


def small_parts(engine: str) -> list:
    """Queries of a few rows each."""
    return [f"SELECT * FROM {engine}_t "
            f"WHERE id > {no * SMALL_ROWS} AND id <= {(no + 1) * SMALL_ROWS}"
            for no in range(SMALL_STATEMENTS)]


def seconds(server, statement: str) -> float:
    """How long it takes."""
    began = time.monotonic()
    server.sql(statement, DATABASE)
    return time.monotonic() - began


def condition(words: str) -> str:
    """What finds the rows."""
    mode = " IN BOOLEAN MODE" if set(words) & set('+-"*(') else ""
    return f"MATCH (t) AGAINST ('{words}'{mode})"


def size(server, engine: str) -> int:
    """Bytes on disk of the engine's table: of all its files where these are its own."""
    if engine == "InnoDB":
        files = [*(server.data / DATABASE).glob("FTS_*.ibd"),
                 server.data / DATABASE / "InnoDB_t.ibd"]
        return sum(file.stat().st_blocks * 512 for file in files)
    server.sql("SET GLOBAL cheetah_checkpoint_now = ON")
    server.sql(f"FLUSH TABLE {engine}_t", DATABASE)
    query = ("SELECT data_length + index_length FROM information_schema.tables "
             f"WHERE table_name = '{engine}_t'")
    return int(server.sql(query, DATABASE)[0][0])


def answers(server, words: str, engine: str) -> list:
    """The rows that a search finds."""
    return server.sql(f"SELECT id FROM {engine}_t WHERE {condition(words)} ORDER BY id", DATABASE)


def report(rows: int, found: dict) -> None:
    """Medians with their range, and the ratio of medians."""
    lines = []
    for measure in MEASURES:
        both = [found[measure, engine] for engine in ENGINES]
        if not all(both):
            raise Failure(f"'{measure}' was not measured")
        cells = [f"{statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})"
                 for values in both]
        lines.append([measure, *cells,
                      f"{statistics.median(both[1]) / statistics.median(both[0]):.2f}"])
    print(f"{rows:,} texts")
    table(["FULLTEXT", *ENGINES, "Cheetah / InnoDB"], lines)
