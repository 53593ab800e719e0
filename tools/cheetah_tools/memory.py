"""`make bench ARGS="--sets memory"`: sysbench's tables where data outgrow memory.

Each engine's tables are loaded once. For each share of memory, its server is started again with a
cache of that share of InnoDB's bytes, in a memory cgroup that keeps the page cache small. So all
engines have the same memory, and none finds its files in the kernel's. The engines take turns cell
by cell, and whoever begins changes with the repeat; a signal stops the others.

Bytes on disk are looked at each second while a cell runs (`peak`), data and log apart. Those that
are left after a rest are told at the end of each share.
"""

import contextlib
import json
import threading
import time
from dataclasses import asdict, dataclass, fields
from statistics import median

from . import cgroup, sysbench
from .engines import CHEETAH, INNODB, INNODB_COMPRESSED, MYROCKS, available, chosen, equal_memory
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


def run(choice) -> int:
    """The part of the bench; 1 when a cell could not be measured."""
    workloads, connections = chosen_cells(choice, WORKLOADS, CONNECTIONS)
    shares = [float(share) for share in choice.shares.split(",")]
    engines = chosen(choice.engines, known(choice), [INNODB, INNODB_COMPRESSED, MYROCKS, CHEETAH])
    cells = [(workload, count) for workload in workloads for count in connections]
    seconds = (len(shares) * choice.repeats * len(cells) * len(engines)
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
                found = measure_share(servers, share, data_bytes, cells, choice, group, failures)
                results[share] = found
                report(share, int(share * data_bytes), found)
    finally:
        group.remove()
    place = VAR / "bench-memory.json"
    raw = {str(share): {f"{workload} {count}": {label: list(map(asdict, cells_of))
                                                for label, cells_of in cell.items()}
                        for (workload, count), cell in found.items()}
           for share, found in results.items()}
    place.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


def group_of(part: str):
    """A memory cgroup for a part of the bench; None, and a line that says so, where none can be had."""
    group = cgroup.make(GROUP_BYTES)
    if group is None:
        print(f"skipped: {part}: no memory cgroup can be had here (it takes root, or a delegated one)")
    return group


def known(choice) -> list:
    """The engines that can be chosen."""
    return [INNODB, INNODB_COMPRESSED, MYROCKS, CHEETAH, *([choice.before] if choice.before else [])]


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


def measure_share(servers: dict, share: float, data_bytes: int, cells: list, choice, group,
                  failures: list) -> dict:
    """All repeats of all cells with one share: (workload, connections) -> label -> Cells."""
    pool_bytes = max(int(share * data_bytes) >> 20, 8) << 20
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
                    with alone(running, label), group.held(PAGE_CACHE_BYTES):
                        found = measure(engine, server, workload, count, choice)
                except Failure as failure:
                    if server.died():
                        raise
                    failures.append(f"{share:g}, {workload}, {count} connections, {label}, "
                                    f"repeat {repeat + 1}: {failure}")
                    continue
                results[workload, count][label].append(found)
                note(f"{share:g} of the memory, repeat {repeat + 1}, {workload}, {count} "
                     f"connections, {label}: {told(found)}")
    time.sleep(REST_SECONDS)
    for engine, server in servers.values():
        settled = engine.bytes_on_disk(server, sysbench.DATABASE)
        note(f"{share:g} of the memory, {engine.label}: {settled / 1e6:,.0f} MB on disk after a rest")
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


def report(share: float, pool_bytes: int, results: dict) -> None:
    """Medians (and the range of tps) of each cell, one line for each engine."""
    rows = []
    for (workload, count), found in results.items():
        for label, cells in found.items():
            if not cells:
                continue
            middle = {field.name: median(getattr(cell, field.name) for cell in cells)
                      for field in fields(Cell)}
            low, high = min(cell.tps for cell in cells), max(cell.tps for cell in cells)
            rows.append([workload.removeprefix("oltp_"), count, label,
                         f"{middle['tps']:,.0f} ({low:,.0f}..{high:,.0f})",
                         f"{middle['p50_ms']:,.2f}", f"{middle['p99_ms']:,.1f}",
                         f"{middle['longest_ms']:,.0f}", f"{middle['cpu_us']:,.0f}",
                         f"{middle['read_bytes']:,.0f}", f"{middle['written_bytes']:,.0f}",
                         f"{middle['disk_mb']:,.0f}"])
    print(f"\n{share:g} of InnoDB's bytes as cache: {pool_bytes >> 20} MiB")
    table(["workload", "connections", "engine", "tps", "p50 ms", "p99", "longest", "CPU us/query",
           "B read/query", "B written/query", "MB on disk"], rows)
