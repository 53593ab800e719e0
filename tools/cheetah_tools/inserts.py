"""`make bench ARGS="--sets inserts"`: rows into indexes that outgrow memory, as Mark Callaghan's
insert benchmark does.

One connection inserts batches of rows with ascending primary keys into a table with three secondary
indexes, whose keys are random. Each engine starts with an empty table and a cache of
`--cache` MiB, in a memory cgroup that keeps the page cache small. The engines take turns; whoever
begins changes with the repeat.

At the end each index is read: it must have the rows that were acknowledged, and their customers.
"""

import contextlib
import json
import random
import time
from dataclasses import asdict, dataclass, fields
from statistics import median

from . import memory
from .engines import CHEETAH, INNODB, MYROCKS, available, chosen, equal_memory
from .paths import VAR, show
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

DATABASE = "inserts"
BATCH_ROWS = 500
PARTS = 5
DDL = ("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, dateandtime DATETIME NOT NULL, "
       "cashregister INT NOT NULL, customer INT NOT NULL, product INT NOT NULL, "
       "price DOUBLE NOT NULL, data VARCHAR(40) NOT NULL, KEY price (price, customer), "
       "KEY cashregister (cashregister, price, customer), "
       "KEY moment (price, dateandtime, customer)) ")


@dataclass
class Run:
    """What one engine did in one run. Figures of the disk and the processor are per row."""

    rows_per_second: float
    last_part: float       # rows a second in the last fifth of the time
    p99_ms: float          # of a batch
    longest_ms: float
    cpu_us: float
    read_bytes: float
    written_bytes: float
    disk_bytes: float      # when the last batch had ended


def run(choice) -> int:
    """The part of the bench; 1 when a run failed."""
    engines = chosen(choice.engines, memory.known(choice), [INNODB, MYROCKS, CHEETAH])
    seconds = choice.repeats * len(engines) * (choice.seconds + 20)
    step(f"inserts: {choice.seconds} s into an empty table, {choice.cache} MiB of cache, "
         f"{len(engines)} engines, {choice.repeats} repeats: about {seconds / 60:.0f} minutes")
    group = memory.group_of("inserts")
    if group is None:
        return 0
    results, failures = {engine.label: [] for engine in engines}, []
    try:
        for repeat in range(choice.repeats):
            for engine in engines if repeat % 2 == 0 else reversed(engines):
                try:
                    found = measure(engine, choice, group)
                except Failure as failure:
                    failures.append(f"{engine.label}, repeat {repeat + 1}: {failure}")
                    continue
                results[engine.label].append(found)
                note(f"repeat {repeat + 1}, {engine.label}: {told(found)}")
    finally:
        group.remove()
    report(results)
    place = VAR / "bench-inserts.json"
    raw = {label: list(map(asdict, runs)) for label, runs in results.items()}
    place.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


@contextlib.contextmanager
def empty_server(engine, cache_mib: int, group):
    """A server of an engine's own with an empty database, in the memory cgroup."""
    cache_bytes = cache_mib << 20
    options = {**equal_memory(cache_bytes), **memory.SMALL_CACHE,
               "innodb_log_file_size": memory.LOG_BYTES,
               "loose_cheetah_log_size_max": memory.LOG_BYTES, **engine.server_options(cache_bytes)}
    server = PrivateServer(scratch("inserts"), options, plugin=engine.plugin, cgroup=group.folder)
    with contextlib.ExitStack() as stack:
        stack.callback(server.remove)
        stack.callback(server.kill)
        server.start()
        if not available(server, [engine]):
            raise Failure(f"engine {engine.label} is not in this server")
        server.sql(f"CREATE DATABASE {DATABASE}")
        yield server
        server.stop()


def measure(engine, choice, group) -> Run:
    """One run of an engine, with a server of its own."""
    with empty_server(engine, choice.cache, group) as server:
        server.sql(DDL + engine.clause(), DATABASE)
        with group.held(memory.PAGE_CACHE_BYTES):
            before = memory.spent(server)
            moments = insert_for(server, choice.seconds)
            spent = [after - start for after, start in zip(memory.spent(server), before)]
        rows = BATCH_ROWS * len(moments)
        disk = engine.allocated_bytes(server, DATABASE)
        check(server, rows)
    return summary(moments, choice.seconds, rows, spent, disk)


def insert_for(server, seconds: int) -> list:
    """Insert batches for so long: when each ended, and how long it took."""
    numbers, moments = random.Random(1), []
    connection = server.connect(DATABASE)
    connection.autocommit(True)
    with contextlib.closing(connection), connection.cursor() as cursor:
        started = time.monotonic()
        while True:
            rows = ", ".join(row(numbers) for _ in range(BATCH_ROWS))
            begin = time.monotonic()
            if begin - started >= seconds:
                return moments
            cursor.execute("INSERT INTO t (dateandtime, cashregister, customer, product, price, "
                           f"data) VALUES {rows}")
            end = time.monotonic()
            moments.append((end - started, end - begin))


def row(numbers: random.Random) -> str:
    """A row as VALUES has it."""
    return (f"(NOW(), {numbers.randrange(1000)}, {numbers.randrange(100_000)}, "
            f"{numbers.randrange(10_000)}, {numbers.random() * 500:.6f}, "
            f"'{numbers.getrandbits(64):016x}')")


def check(server, rows: int) -> None:
    """Failure unless all rows are there, in each index."""
    found = {}
    for index in ("PRIMARY", "price", "cashregister", "moment"):
        sums = f"SELECT COUNT(*), SUM(customer) FROM t FORCE INDEX ({index}) WHERE price >= 0"
        found[index] = tuple(map(int, server.sql(sums, DATABASE)[0]))
    if len(set(found.values())) != 1 or found["PRIMARY"][0] != rows:
        raise Failure(f"{rows} rows were acknowledged, and the indexes have (rows, sum): {found}")


def summary(moments: list, seconds: int, rows: int, spent: list, disk: int) -> Run:
    """The figures of a run: `moments` as of `insert_for`, `spent` processor seconds and bytes."""
    took = sorted(duration for _, duration in moments)
    last = sum(BATCH_ROWS for end, _ in moments if end > seconds * (PARTS - 1) / PARTS)
    cpu, read, written = (amount / rows for amount in spent)
    return Run(rows / seconds, last * PARTS / seconds, took[int(len(took) * 0.99)] * 1e3,
               took[-1] * 1e3, cpu * 1e6, read, written, disk / rows)


def told(found: Run) -> str:
    """A run in words."""
    return (f"{found.rows_per_second:,.0f} rows a second, {found.last_part:,.0f} in the last "
            f"fifth, batch p99 {found.p99_ms:,.0f} ms, longest {found.longest_ms:,.0f} ms; for a "
            f"row {found.cpu_us:.1f} us, {found.read_bytes:,.0f} bytes read, "
            f"{found.written_bytes:,.0f} written, {found.disk_bytes:,.0f} on disk")


def report(results: dict) -> None:
    """Medians, with the range of rows a second, a line for each engine."""
    lines = []
    for label, runs in results.items():
        if not runs:
            continue
        middle = {field.name: median(getattr(found, field.name) for found in runs)
                  for field in fields(Run)}
        low, high = (end(found.rows_per_second for found in runs) for end in (min, max))
        lines.append([label, f"{middle['rows_per_second']:,.0f} ({low:,.0f}..{high:,.0f})",
                      f"{middle['last_part']:,.0f}", f"{middle['p99_ms']:,.0f}",
                      f"{middle['longest_ms']:,.0f}", f"{middle['cpu_us']:.1f}",
                      f"{middle['read_bytes']:,.0f}", f"{middle['written_bytes']:,.0f}",
                      f"{middle['disk_bytes']:,.0f}"])
    print()
    table(["engine", "rows/s", "last fifth", "batch p99 ms", "longest", "CPU us/row", "B read/row",
           "B written/row", "B on disk/row"], lines)
