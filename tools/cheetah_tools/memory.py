"""`make bench ARGS="--sets memory"`: sysbench's tables where data outgrow memory.

Each engine's tables are loaded once. For each share of memory, its server is started again with a
cache of that share of InnoDB's bytes, in a memory cgroup that keeps the page cache small. So all
engines have the same memory, and none finds its files in the kernel's. The engines take turns cell
by cell, and whoever begins changes with the repeat; a signal stops the others.

`--best-split` has the same memory in all, and each engine has its own choice of how much of it is
its cache and how much is left to the page cache: the best of three, for each cell.

Bytes of the data on disk are looked at each second while a cell runs (`disk_mb`); the log is not
counted. Those that are left after a rest are told at the end of each share.
"""

import contextlib
import json
import threading
import time
from dataclasses import asdict, dataclass, fields
from statistics import median

from . import cgroup, sysbench
from .engines import (CHEETAH, ENCRYPTED, INNODB, INNODB_COMPRESSED, MYROCKS, available, chosen,
                      equal_memory)
from .oltp import STOP_SECONDS, TABLES, alone, chosen_cells, sysbench_tables
from .paths import VAR, show
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

WORKLOADS = ["oltp_point_select", "oltp_read_write", "oltp_update_index"]
CONNECTIONS = [1, 16, 64, 256]
WARM_SECONDS = 5
LOAD_POOL_BYTES = 1 << 30
GROUP_BYTES = 4 << 30          # what the programs need; `PAGE_CACHE_BYTES` is what is held
PAGE_CACHE_BYTES = 24 << 20
# What is left to the page cache of the cache's and `PAGE_CACHE_BYTES` together; logs need some.
PAGE_CACHE_PARTS = [0.1, 0.3, 0.6]
LOG_BYTES = 256 << 20
REST_SECONDS = 20
# Its default keeps 24 MiB of pages free, which is all of a small cache.
SMALL_CACHE = {"innodb_lru_scan_depth": 100, "innodb_buffer_pool_chunk_size": 1 << 20}


@dataclass
class Cell:
    """What one engine did in one cell, after it was warm. Figures of the disk are per query."""

    tps: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    cpu_us: float
    read_bytes: float
    written_bytes: float
    disk_mb: float    # the most that the data took while the cell ran


@dataclass(frozen=True)
class Split:
    """How memory is divided. `known_as` is what people know the whole by."""

    known_as: str
    cache_bytes: int
    page_cache_bytes: int


def run(choice) -> int:
    """The part of the bench; 1 when a cell could not be measured."""
    workloads, connections = chosen_cells(choice, WORKLOADS, CONNECTIONS)
    shares = [float(share) for share in choice.shares.split(",")]
    engines = chosen(choice.engines, known(choice), [INNODB, INNODB_COMPRESSED, MYROCKS, CHEETAH])
    cells = [(workload, count) for workload in workloads for count in connections]
    splits_count = len(PAGE_CACHE_PARTS) if choice.best_split else 1
    seconds = (len(shares) * splits_count * choice.repeats * len(cells) * len(engines)
               * (WARM_SECONDS + choice.seconds + STOP_SECONDS))
    step(f"less memory: {len(shares)} shares, {len(cells)} cells of {WARM_SECONDS} + "
         f"{choice.seconds} s, {len(engines)} engines, {choice.repeats} repeats: about "
         f"{seconds / 60:.0f} minutes after loading {choice.rows:,} rows into each")
    group = group_of("memory")
    if group is None:
        return 0
    results, failures = {}, []
    try:
        with contextlib.ExitStack() as stack:
            servers, data_bytes = load_all(stack, engines, choice.rows, group)
            for share in shares:
                found = {split: measure_split(servers, split, cells, choice, group, failures)
                         for split in splits(share, data_bytes, choice.best_split)}
                results |= {split.known_as: each for split, each in found.items()}
                report(f"{share:g} of InnoDB's bytes as memory", found)
    finally:
        group.remove()
    place = VAR / "bench-memory.json"
    raw = {known_as: {f"{workload} {count}": {label: list(map(asdict, cells_of))
                                              for label, cells_of in cell.items()}
                      for (workload, count), cell in found.items()}
           for known_as, found in results.items()}
    place.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


def group_of(part: str):
    """A memory cgroup for a part of the bench; None, and a line that says so, where none can be
    had."""
    group = cgroup.make(GROUP_BYTES)
    if group is None:
        print(f"skipped: {part}: no memory cgroup can be had here "
              "(it takes root, or a delegated one)")
    return group


def known(choice) -> list:
    """The engines that can be chosen."""
    return [INNODB, INNODB_COMPRESSED, MYROCKS, CHEETAH, *ENCRYPTED,
            *([choice.before] if choice.before else [])]


def load_all(stack, engines: list, rows: int, group) -> tuple:
    """Servers with loaded tables, stopped (label -> engine, server), and InnoDB's bytes of data.
    InnoDB's are measured also when it takes no part."""
    servers = {}
    data_bytes = 0
    for engine in dict.fromkeys([INNODB, *engines]):
        options = {**equal_memory(LOAD_POOL_BYTES), **engine.server_options(LOAD_POOL_BYTES)}
        server = PrivateServer(scratch(f"memory-{engine.label.replace(' ', '-')}"), options,
                               plugin=engine.plugin, cgroup=group.folder)
        stack.callback(server.remove)
        stack.callback(server.kill)
        server.start()
        if not available(server, [engine]):
            raise Failure(f"engine {engine.label} is not in this server")
        started, tables = time.monotonic(), sysbench_tables(rows)
        sysbench.load(server, engine, tables)
        engine.settle(server)
        note(f"{engine.label}: loaded and written out in {time.monotonic() - started:.0f} s")
        if engine is INNODB:
            data_bytes = engine.bytes_on_disk(server, sysbench.DATABASE)
        server.stop()
        if engine in engines:
            servers[engine.label] = (engine, server)
    return servers, data_bytes


def splits(share: float, data_bytes: int, several: bool) -> list:
    """How the memory of a share is divided, in each way that is to be measured."""
    cache_bytes = max(int(share * data_bytes) >> 20, 8) << 20
    if not several:
        return [Split(f"{share:g}", cache_bytes, PAGE_CACHE_BYTES)]
    total = cache_bytes + PAGE_CACHE_BYTES
    return [Split(f"{share:g} ({part:g} of it page cache)", int((1 - part) * total) >> 20 << 20,
                  int(part * total)) for part in PAGE_CACHE_PARTS]


def measure_split(servers: dict, split: Split, cells: list, choice, group,
                  failures: list) -> dict:
    """All repeats of all cells with one split: (workload, connections) -> label -> Cells."""
    pool_bytes, known_as = split.cache_bytes, split.known_as
    counts = [count for _, count in cells]
    for engine, server in servers.values():
        server.options = {**equal_memory(pool_bytes), **SMALL_CACHE,
                          "innodb_log_file_size": LOG_BYTES,
                          "loose_cheetah_log_size_max": LOG_BYTES,
                          **sysbench.server_options(max(counts), TABLES),
                          **engine.server_options(pool_bytes)}
        server.start()
    running = {label: server for label, (_, server) in servers.items()}
    results = {cell: {label: [] for label in servers} for cell in cells}
    for repeat in range(choice.repeats):
        for workload, count in cells:
            for label in list(servers) if repeat % 2 == 0 else list(reversed(servers)):
                engine, server = servers[label]
                try:
                    with alone(running, label), group.held(split.page_cache_bytes):
                        found = measure(engine, server, workload, count, choice)
                except Failure as failure:
                    if server.died():
                        raise
                    failures.append(f"{known_as}: {workload}, {count} connections, {label}, "
                                    f"repeat {repeat + 1}: {failure}")
                    continue
                results[workload, count][label].append(found)
                note(f"{known_as} of the memory, repeat {repeat + 1}, {workload}, {count} "
                     f"connections, {label}: {told(found)}")
    time.sleep(REST_SECONDS)
    for engine, server in servers.values():
        settled = engine.bytes_on_disk(server, sysbench.DATABASE)
        note(f"{known_as} of the memory, {engine.label}: {settled / 1e6:,.0f} MB on disk "
             "after a rest")
        server.stop()
    return results


def measure(engine, server, workload: str, connections: int, choice) -> Cell:
    """One cell once."""
    moments = []
    with watched(engine, server) as sizes:
        found = sysbench.run(server, workload, sysbench_tables(choice.rows), connections,
                             choice.seconds, WARM_SECONDS, seed=0, histogram=True,
                             on_report=lambda: moments.append(spent(server)))
    if len(moments) != 2:
        raise Failure(f"sysbench reported {len(moments)} times, not twice")
    cpu, read, written = ((after - before) / found.queries for before, after in zip(*moments))
    return Cell(found.tps, found.p50_ms, found.p99_ms, found.max_ms, cpu * 1e6, read, written,
                max(sizes) / 1e6)


def spent(server) -> tuple:
    """Processor seconds, and bytes that the device read and wrote for the server."""
    return (server.cpu_seconds(), *server.device_bytes())


@contextlib.contextmanager
def watched(engine, server):
    """Look at the bytes on disk each second, until the block ends: a list that grows."""
    sizes, ended = [], threading.Event()

    def look():
        while True:
            sizes.append(engine.allocated_bytes(server, sysbench.DATABASE))
            if ended.wait(1):
                return

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield sizes
    finally:
        ended.set()
        watcher.join()


def told(cell: Cell) -> str:
    """A cell in words."""
    return (f"{cell.tps:,.0f} tps, p50 {cell.p50_ms:,.2f}, p99 {cell.p99_ms:,.1f}, longest "
            f"{cell.longest_ms:,.0f} ms, {cell.cpu_us:.0f} us a query, reads "
            f"{cell.read_bytes:,.0f} and writes {cell.written_bytes:,.0f} bytes a query, "
            f"{cell.disk_mb:,.0f} MB on disk")


def best(found: dict, cell: tuple, label: str) -> tuple:
    """The split in which the engine did most in a cell, by the median, and its Cells."""
    measured = {split: results[cell][label] for split, results in found.items()}
    return max(measured.items(),
               key=lambda one: median(cell.tps for cell in one[1]) if one[1] else 0)


def report(title: str, found: dict) -> None:
    """Medians (and the range of tps) of each cell, one line for each engine, of its best split."""
    rows = []
    first = next(iter(found.values()))
    for workload, count in first:
        for label in first[workload, count]:
            split, cells = best(found, (workload, count), label)
            if not cells:
                continue
            middle = {field.name: median(getattr(cell, field.name) for cell in cells)
                      for field in fields(Cell)}
            low, high = min(cell.tps for cell in cells), max(cell.tps for cell in cells)
            rows.append([workload.removeprefix("oltp_"), count, label,
                         f"{split.cache_bytes >> 20} + {split.page_cache_bytes >> 20}",
                         f"{middle['tps']:,.0f} ({low:,.0f}..{high:,.0f})",
                         f"{middle['p50_ms']:,.2f}", f"{middle['p99_ms']:,.1f}",
                         f"{middle['longest_ms']:,.0f}", f"{middle['cpu_us']:,.0f}",
                         f"{middle['read_bytes']:,.0f}", f"{middle['written_bytes']:,.0f}",
                         f"{middle['disk_mb']:,.0f}"])
    print(f"\n{title}")
    table(["workload", "connections", "engine", "cache + page cache, MiB", "tps", "p50 ms", "p99",
           "longest", "CPU us/query", "B read/query", "B written/query", "MB on disk"], rows)
