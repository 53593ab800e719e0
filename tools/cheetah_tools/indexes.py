"""`make bench ARGS="--sets indexes"`: how long ADD INDEX takes in place, and how much of the
processor, beside InnoDB in the same server.

The table is that of sysbench (id, k, c CHAR(120), pad CHAR(60)) with one more text column in
utf8mb4. Engines take turns; an index is dropped again before the next one is added.
"""

import statistics
import time

from .say import step, table
from .server import PrivateServer, scratch

CHANGES = {
    "k INT": ("ADD INDEX k (k)", "DROP INDEX k"),
    "k, c CHAR(120), and both": ("ADD INDEX k (k), ADD INDEX c (c), ADD INDEX kc (k, c)",
                                 "DROP INDEX k, DROP INDEX c, DROP INDEX kc"),
    "name VARCHAR(40), utf8mb4": ("ADD INDEX name (name)", "DROP INDEX name"),
    "unique (k, id)": ("ADD UNIQUE ki (k, id)", "DROP INDEX ki"),
}
ENGINES = ("InnoDB", "CHEETAH")
WANTED = 0.5   # of InnoDB's time, at most
REST_SECONDS = 1
OPTIONS = {"loose_innodb_buffer_pool_size": "512M", "loose_cheetah_buffer_pool_size": "512M",
           "loose_innodb_log_file_size": "512M", "loose_innodb_sort_buffer_size": "1M"}


def run(choice) -> int:
    """The part of the bench."""
    step(f"indexes: {len(CHANGES)} changes of {choice.rows:,} rows, "
         f"{choice.repeats} repeats on each engine")
    found = measure(choice.rows, choice.repeats)
    lines = []
    for change in CHANGES:
        medians = [statistics.median(clock for clock, _ in found[change, engine])
                   for engine in ENGINES]
        ratio = medians[1] / medians[0]
        cells = [told(found[change, engine]) for engine in ENGINES]
        lines.append([change, *cells, f"{ratio:.2f}", "met" if ratio <= WANTED else "missed"])
    table(["ADD INDEX", *(f"{engine}: s (processor s)" for engine in ENGINES), "Cheetah / InnoDB",
           f"at most {WANTED}"], lines)
    return 0


def told(times: list) -> str:
    """Median and spread of the seconds by the clock, and the median of those of the processor."""
    clock, processor = zip(*times)
    return (f"{statistics.median(clock):.2f} [{min(clock):.2f}..{max(clock):.2f}] "
            f"({statistics.median(processor):.2f})")


def measure(rows: int, repeats: int, rest_seconds: float = REST_SECONDS) -> dict:
    """Seconds by the clock and of the processor of each repeat, by change and engine."""
    found = {(change, engine): [] for change in CHANGES for engine in ENGINES}
    server = PrivateServer(scratch("indexes"), OPTIONS)
    try:
        server.start()
        server.sql("CREATE DATABASE d")
        for engine in ENGINES:
            fill(server, engine, rows)
        for _ in range(repeats):
            for (change, engine), times in found.items():
                add, drop = CHANGES[change]
                began, processor = time.monotonic(), server.cpu_seconds()
                server.sql(f"ALTER TABLE {engine} {add}, ALGORITHM=NOCOPY, LOCK=NONE", "d")
                times.append((time.monotonic() - began, server.cpu_seconds() - processor))
                server.sql(f"ALTER TABLE {engine} {drop}", "d")
                time.sleep(rest_seconds)
    finally:
        server.kill()
        server.remove()
    return found


def fill(server, engine: str, rows: int) -> None:
    """Make the table."""
    latin = "CHARACTER SET latin1 NOT NULL"
    server.sql(f"CREATE TABLE {engine} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) {latin}, "
               f"pad CHAR(60) {latin}, "
               "name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci) "
               f"ENGINE={engine}", "d")
    server.sql(f"INSERT INTO {engine} SELECT seq, seq * 2654435761 % 1000003, REPEAT(MD5(seq), 3), "
               f"MD5(seq * 7), CONCAT('näme', MD5(seq * 11)) FROM seq_1_to_{rows}", "d")
