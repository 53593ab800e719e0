"""`make bench ARGS="--sets oltp"`: sysbench's transactions on Cheetah beside InnoDB.

Commits are durable, and all data is in memory. Each engine has a server with the same settings and
the same tables; InnoDB's runs without the plugin, as its users have it. A *cell* is one workload
with one number of connections. The engines take turns cell by cell, and whoever begins changes with
the repeat. A signal stops the servers that are not measured. So what a cell leaves to the
background is done, and counted, in later cells of its own engine.

Ratios are Cheetah's value through InnoDB's of the same repeat. A cell's ratio is their geometric
mean, with Student's 90 % interval of its logarithm. With `--against OTHER.so`, another build of the
plugin takes InnoDB's part.
"""

import contextlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import geometric_mean

from . import sysbench
from .engines import ALL, CHEETAH, ENCRYPTED, INNODB, available, chosen, equal_memory
from .paths import VAR, show
from .ratios import LEAST, interval, paired, report_means, told
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

WORKLOADS = ["oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_point_select"]
CONNECTIONS = [1, 16, 64, 256, 512]
TABLES = 4
POOL_BYTES = 1 << 30
LOG_BYTES = 1 << 30
WARM_SECONDS = 2
STOP_SECONDS = 1          # for connecting, and for the last transactions to end


@dataclass
class Cell:
    """What one engine did in one cell, after it was warm."""

    tps: float
    p99_ms: float
    cpu_us: float    # of the server, for each query
    errors: float    # deadlocks and lock waits that ran out, each second


@dataclass
class Measure:
    """A line of the verdict. `floor`: larger is better. The geometric mean must reach `mean`, and
    each cell `cell`."""

    label: str
    field: str
    floor: bool
    mean: float
    cell: float


@dataclass(frozen=True)
class Kind:
    """What runs on which tables: workloads, numbers of connections, `tables(rows)` as sysbench is
    told of them, and `fill(server, engine, rows)`, which makes them."""

    name: str
    workloads: list
    connections: list
    tables: Callable
    fill: Callable


MEASURES = [Measure("transactions a second", "tps", True, 1.0, 0.95),
            Measure("p99", "p99_ms", False, 1.15, 1.15),
            Measure("server CPU per query", "cpu_us", False, 1.05, 1.05)]


def sysbench_tables(rows: int) -> sysbench.Tables:
    """The tables, with so many rows together."""
    return sysbench.Tables(max(rows // TABLES, 1), TABLES)


def fill(server, engine, rows: int) -> None:
    """Create and fill sysbench's tables, write everything out, and read every index once."""
    tables = sysbench_tables(rows)
    sysbench.prepare(server, sysbench.DATABASE, tables, "--rand-type=uniform",
                     f"--threads={TABLES}", f"--mysql-storage-engine={engine.name}")
    engine.flush(server)
    sysbench.warm(server, tables)


SYSBENCH = Kind("oltp", WORKLOADS, CONNECTIONS, sysbench_tables, fill)


def run(choice, kind: Kind = SYSBENCH) -> int:
    """The part of the bench; 1 when a cell could not be measured."""
    workloads, connections = chosen_cells(choice, kind.workloads, kind.connections)
    cells = [(workload, count) for workload in workloads for count in connections]
    engines = compared(choice)
    seconds = (choice.repeats * len(cells) * len(engines)
               * (WARM_SECONDS + choice.seconds + STOP_SECONDS))
    step(f"{kind.name}: {len(cells)} cells of {WARM_SECONDS} + {choice.seconds} s, "
         f"{len(engines)} engines, {choice.repeats} repeats: about {seconds / 60:.0f} minutes "
         f"after loading {choice.rows:,} rows into each")
    results, failures = figures(cells, choice, kind)
    for other in engines[1:]:
        report(results, cells, engines[0], other, builds=other is choice.before)
    place = VAR / f"bench-{kind.name}.json"
    raw = {f"{workload} {count}": {label: list(map(asdict, found)) for label, found in cell.items()}
           for (workload, count), cell in results.items()}
    place.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


def chosen_cells(choice, workloads: list, connections: list) -> tuple:
    """The workloads and the numbers of connections that were asked for; usually all of these."""
    asked = workloads if choice.workloads == "all" else choice.workloads.split(",")
    unknown = sorted(set(asked) - set(workloads))
    if unknown:
        raise Failure(f"no such workload: {', '.join(unknown)}; there are {', '.join(workloads)}")
    return asked, (list(map(int, choice.connections.split(","))) if choice.connections
                   else connections)


def compared(choice) -> list:
    """The engines; the first is compared with each other one."""
    known = [*ALL, *ENCRYPTED, *([choice.before] if choice.before else [])]
    return chosen(choice.engines, known, [CHEETAH, choice.before or INNODB])


def figures(cells: list, choice, kind: Kind = SYSBENCH) -> tuple:
    """Load both servers and measure: see `measure_all`."""
    with contextlib.ExitStack() as stack:
        servers = {engine.label: stack.enter_context(loaded(engine, choice.rows, kind))
                   for engine in compared(choice)}
        return measure_all(servers, cells, choice, kind)


@contextlib.contextmanager
def loaded(engine, rows: int, kind: Kind):
    """A server with the tables in one engine, all of it in memory."""
    options = {**equal_memory(POOL_BYTES), "innodb_log_file_size": LOG_BYTES,
               "loose_cheetah_log_size_max": LOG_BYTES,
               **sysbench.server_options(max(CONNECTIONS), TABLES)}
    server = PrivateServer(scratch(f"{kind.name}-{engine.label.replace(' ', '-')}"),
                           {**options, **engine.server_options(POOL_BYTES)}, plugin=engine.plugin)
    try:
        with server:
            if not available(server, [engine]):
                raise Failure(f"engine {engine.name} is not in this server; make build")
            started = time.monotonic()
            kind.fill(server, engine, rows)
            note(f"{engine.label}: loaded and written out in {time.monotonic() - started:.0f} s")
            yield server
    finally:
        server.remove()


def measure_all(servers: dict, cells: list, choice, kind: Kind) -> tuple:
    """Every repeat of every cell: (workload, connections) -> label -> Cells; and what failed."""
    results = {cell: {label: [] for label in servers} for cell in cells}
    failures = []
    for repeat in range(choice.repeats):
        for workload, count in cells:
            order = list(servers) if repeat % 2 == 0 else list(reversed(servers))
            once = {}
            for label in order:
                try:
                    with alone(servers, label):
                        once[label] = measure(servers[label], workload, count, choice.seconds,
                                              kind.tables(choice.rows))
                except Failure as failure:
                    if servers[label].died():
                        raise
                    failures.append(f"{workload}, {count} connections, {label}, "
                                    f"repeat {repeat + 1}: {failure}")
            if len(once) == len(servers):
                for label, cell in once.items():
                    results[workload, count][label].append(cell)
            said = "; ".join(f"{label} {cell.tps:,.0f} tps, p99 {cell.p99_ms:,.2f} ms, "
                             f"{cell.cpu_us:.1f} us a query" for label, cell in once.items())
            note(f"repeat {repeat + 1}, {workload}, {count} connections: {said}")
    return results, failures


@contextlib.contextmanager
def alone(servers: dict, label: str):
    """Stop all other servers for a while."""
    others = [server for name, server in servers.items() if name != label]
    try:
        for server in others:
            server.pause()
        yield
    finally:
        for server in others:
            server.resume()


def measure(server, workload: str, connections: int, seconds: int,
            tables: sysbench.Tables) -> Cell:
    """One cell once. The server's processor time counts from one of sysbench's reports to the next:
    the first ends the warm-up, the second the run."""
    moments = []
    found = sysbench.run(server, workload, tables, connections, seconds, WARM_SECONDS, seed=0,
                         on_report=lambda: moments.append(server.cpu_seconds()))
    if len(moments) != 2:
        raise Failure(f"sysbench reported {len(moments)} times, not twice")
    return cell_of(found, moments[1] - moments[0])


def cell_of(found: sysbench.Result, cpu_seconds: float) -> Cell:
    """The figures. A time without any transaction counts as if the only one had just not ended."""
    if found.tps == 0:
        seconds = found.total_seconds
        return Cell(1 / seconds, seconds * 1000, cpu_seconds * 1e6, 0)
    return Cell(found.tps, found.p99_ms, cpu_seconds * 1e6 / found.queries, found.errors)


def cell_ratio(found: dict, field: str, ours=CHEETAH, theirs=INNODB) -> tuple:
    """`interval` of one measure in one cell."""
    return interval(cell_ratios(found, field, ours, theirs))


def cell_ratios(found: dict, field: str, ours, theirs) -> list:
    """One measure of our engine through theirs, repeat by repeat."""
    return paired(*([getattr(cell, field) for cell in found[engine.label]]
                    for engine in (ours, theirs)))


def report(results: dict, cells: list, ours, theirs, builds: bool) -> None:
    """A line for each cell, then the verdicts. `builds`: they are two builds of one engine."""
    cells = [cell for cell in cells if results[cell][ours.label]]
    if not cells:
        return
    rows = []
    for workload, count in cells:
        found = results[workload, count]
        row = [workload.removeprefix("oltp_"), count]
        for field, digits in (("tps", 0), ("p99_ms", 2), ("cpu_us", 1)):
            for engine in (ours, theirs):
                values = [max(getattr(cell, field), LEAST) for cell in found[engine.label]]
                row.append(f"{geometric_mean(values):,.{digits}f}")
            row.append(told(cell_ratio(found, field, ours, theirs)))
        errors = (statistics.mean(cell.errors for cell in found[engine.label])
                  for engine in (ours, theirs))
        rows.append([*row, "/".join(f"{each:,.0f}" for each in errors)])
    print()
    other = theirs.label
    table(["workload", "connections", f"{ours.label} tps", other, "ratio", "p99 ms", other, "ratio",
           "CPU us/query", other, "ratio", "errors/s"], rows)
    title = f"{ours.label} through {other}"
    if not builds:
        print()
        table([title, "geometric mean", "wanted", "", "cells that miss", "wanted of each"],
              [verdict(measure, [cell_ratio(results[cell], measure.field, ours, theirs)
                                 for cell in cells]) for measure in MEASURES])
    groups = {workload: [cell for cell in cells if cell[0] == workload] for workload, _ in cells}
    groups["all cells"] = cells
    report_means(title, {name: {measure.label: [
        cell_ratios(results[cell], measure.field, ours, theirs) for cell in group]
        for measure in MEASURES} for name, group in groups.items()},
                 {measure.label for measure in MEASURES if measure.floor}, judged=builds)


def verdict(measure: Measure, ratios: list) -> list:
    """A line of the last table. A cell misses when its whole interval lies on the wrong side."""
    mean = geometric_mean([ratio[0] for ratio in ratios])
    sign = ">=" if measure.floor else "<="
    met = mean >= measure.mean if measure.floor else mean <= measure.mean
    missing = [(low, high) for _, low, high in ratios if low is not None
               and (high < measure.cell if measure.floor else low > measure.cell)]
    misses = f"{len(missing)} of {len(ratios)}"
    if ratios[0][1] is None:
        misses = "one repeat: unknown"
    return [measure.label, f"{mean:.3f}", f"{sign} {measure.mean:.2f}", "met" if met else "MISSED",
            misses, f"{sign} {measure.cell:.2f}"]
