"""`make big`: a table much larger than memory, and whether the server's anonymous memory keeps to
the limit.

The measure: anonymous memory of the server while it loads, looks up and scans, less that of the
same server when idle without the engine. It may exceed `cheetah_buffer_pool_size` by 5 %.
"""

import argparse
import threading
import time

from .engines import CHEETAH
from .say import Failure, Progress, megabytes, note, step
from .server import PrivateServer, scratch

POOL_BYTES = 64 << 20
TOLERANCE = 1.05
ROW_BYTES = 1000
BATCH_ROWS = 20_000
LOOKUPS = 2000
OPTIONS = {"innodb_buffer_pool_size": "16M", "performance_schema": "OFF", "query_cache_size": 0,
           "innodb_flush_log_at_trx_commit": 0, "loose_cheetah_flush_log_at_trx_commit": 2}
# Words differ by row, so that pages differ; most of a row repeats, so that 5 GB do not fill the
# disk.
ROW = f"SELECT {{first}} + seq, (({{first}} + seq) * 2654435761) % 1000003, RPAD(MD5({{first}} + seq), {ROW_BYTES - 20}, MD5(seq)) FROM seq_1_to_{{count}}"


class Sampler(threading.Thread):
    """Watches the server's anonymous memory."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.peak, self.stopping = server, 0, threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(0.05):
            try:
                self.peak = max(self.peak, self.server.anonymous_bytes())
            except (OSError, AttributeError):
                return


def main(arguments: list) -> int:
    """The command; 1 when the limit was not kept."""
    parser = argparse.ArgumentParser(description="a table larger than memory")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    choice = parser.parse_args(arguments)
    idle = idle_bytes()
    server = PrivateServer(scratch("big"), {**OPTIONS, "loose_cheetah_buffer_pool_size": POOL_BYTES})
    with server:
        if not server.has_engine(CHEETAH.name):
            raise Failure("engine CHEETAH is not in this server; make build")
        sampler = Sampler(server)
        sampler.start()
        work(server, int(choice.gigabytes * 1e9 / ROW_BYTES))
        sampler.stopping.set()
        sampler.join()
        on_disk = CHEETAH.bytes_on_disk(server, "big")
    server.remove()
    used = sampler.peak - idle
    kept = used <= POOL_BYTES * TOLERANCE
    print(f"big: {choice.gigabytes:g} GB in a pool of {megabytes(POOL_BYTES)}: at most {megabytes(used)} of anonymous memory "
          f"({used / POOL_BYTES:.2f} of the limit; idle without the engine: {megabytes(idle)}), {megabytes(on_disk)} on disk")
    return 0 if kept else 1


def idle_bytes() -> int:
    """Anonymous memory of the same server without the engine, idle after a statement that stores
    nothing: caches of other engines must not count as the server's own."""
    server = PrivateServer(scratch("big-idle"), OPTIONS, plugin=False)
    with server:
        server.sql("SELECT COUNT(*) FROM information_schema.tables")
        server.sql(f"SELECT COUNT(*) FROM seq_1_to_{BATCH_ROWS}", "mysql")
        time.sleep(1)
        used = server.anonymous_bytes()
    server.remove()
    return used


def work(server, rows: int) -> None:
    """Load, look up, scan, check the sums."""
    server.sql("CREATE DATABASE big")
    server.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT, c TEXT, KEY (b)) ENGINE=CHEETAH", "big")
    step(f"loading {rows:,} rows of {ROW_BYTES} bytes, with a secondary key in random order")
    bar = Progress("load", rows)
    connection = server.connect("big")
    with connection.cursor() as cursor:
        for first in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - first)
            cursor.execute("INSERT INTO t " + ROW.format(first=first, count=count))
            bar.add(count)
        bar.finish()
        started = time.monotonic()
        for number in range(LOOKUPS):
            key = number * 2654435761 % rows + 1
            cursor.execute(f"SELECT LEFT(c, 32) = MD5({key}) FROM t WHERE a = {key}")
            if cursor.fetchall() != ((1,),):
                raise Failure(f"row {key} is missing or wrong")
        note(f"{LOOKUPS} lookups in {time.monotonic() - started:.1f} s")
        started = time.monotonic()
        cursor.execute("SELECT COUNT(*), SUM(LENGTH(c)) FROM t FORCE INDEX (PRIMARY)")
        found = cursor.fetchall()[0]
        if (int(found[0]), int(found[1])) != (rows, rows * (ROW_BYTES - 20)):
            raise Failure(f"the scan found {found}, expected {rows} rows")
        note(f"scan in {time.monotonic() - started:.1f} s")
    connection.close()
