"""`make bench ARGS="--sets oltp"`: sysbench's transactions on Cheetah beside InnoDB; durable commits, all data in memory.

Two servers with the same settings hold the same tables, one in each engine; InnoDB's runs without the plugin, as its
users have it. A *cell* is one workload with one number of connections. The engines take turns cell by cell, and
whoever begins changes with the repeat. The server that is not measured is stopped by a signal meanwhile: what a cell
leaves to the background is done, and counted, in later cells of its own engine, and takes nothing from the other's.

Ratios are Cheetah's value through InnoDB's of the same repeat. A cell's ratio is their geometric mean, with Student's
90 % interval of its logarithm. With `--against OTHER.so`, another build of the plugin takes InnoDB's part.
"""

import contextlib
import json
import re
import statistics
import subprocess
import threading
import time
from dataclasses import asdict, dataclass

from . import setup
from .engines import ALL, CHEETAH, INNODB, available, chosen, equal_memory
from .paths import SERVER, VAR, show
from .ratios import LEAST, geometric_mean, interval, paired, report_means, told
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

WORKLOADS = ["oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_point_select"]
CONNECTIONS = [1, 16, 64, 256, 512]
TABLES = 4
POOL_BYTES = 1 << 30
LOG_BYTES = 1 << 30
WARM_SECONDS = 2
STOP_SECONDS = 1          # for connecting, and for the last transactions to end
HANGING_SECONDS = 120     # a cell that takes that much longer than it should is a finding
SCRIPTS = SERVER / "usr/share/sysbench"


@dataclass
class Cell:
    """What one engine did in one cell, after it was warm."""

    tps: float
    p99_ms: float
    cpu_us: float    # of the server, for each query
    errors: float    # deadlocks and lock waits that ran out, each second


@dataclass
class Measure:
    """A line of the verdict. `floor`: larger is better; `mean` is what the geometric mean must reach, `cell` each cell."""

    label: str
    field: str
    floor: bool
    mean: float
    cell: float


MEASURES = [Measure("transactions a second", "tps", True, 1.0, 0.95), Measure("p99", "p99_ms", False, 1.15, 1.15),
            Measure("server CPU per query", "cpu_us", False, 1.05, 1.05)]


def run(choice) -> int:
    """The part of the bench; 1 when a cell could not be measured."""
    workloads, connections = choice.workloads.split(","), [int(count) for count in choice.connections.split(",")]
    unknown = sorted(set(workloads) - set(WORKLOADS))
    if unknown:
        raise Failure(f"no such workload: {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    cells = [(workload, count) for workload in workloads for count in connections]
    engines = compared(choice)
    seconds = choice.repeats * len(cells) * len(engines) * (WARM_SECONDS + choice.seconds + STOP_SECONDS)
    step(f"sysbench: {len(cells)} cells of {WARM_SECONDS} + {choice.seconds} s, {len(engines)} engines, "
         f"{choice.repeats} repeats: about {seconds / 60:.0f} minutes after loading {choice.rows:,} rows into each")
    results, failures = figures(cells, choice)
    for other in engines[1:]:
        report(results, cells, engines[0], other, builds=other is choice.before)
    place = VAR / "bench-oltp.json"
    raw = {f"{workload} {count}": {label: [asdict(cell) for cell in found] for label, found in results[workload, count].items()}
           for workload, count in results}
    place.write_text(json.dumps(raw, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


def compared(choice) -> list:
    """The engines; the first is compared with each other one."""
    known = [*ALL, *([choice.before] if choice.before else [])]
    return chosen(choice.engines, known, [CHEETAH, choice.before or INNODB])


def figures(cells: list, choice) -> tuple:
    """Load both servers and measure: see `measure_all`."""
    with contextlib.ExitStack() as stack:
        servers = {engine.label: stack.enter_context(loaded(engine, choice.rows)) for engine in compared(choice)}
        return measure_all(servers, cells, choice)


@contextlib.contextmanager
def loaded(engine, rows: int):
    """A server with sysbench's tables in one engine, all of it in memory."""
    most = max(CONNECTIONS) + 50
    options = {**equal_memory(POOL_BYTES), "innodb_log_file_size": LOG_BYTES, "loose_cheetah_log_size_max": LOG_BYTES,
               "max_connections": most, "thread_cache_size": most, "back_log": most, "max_prepared_stmt_count": 1_000_000,
               "table_open_cache": most * TABLES + 400, "innodb_lock_wait_timeout": 10, "loose_cheetah_lock_wait_timeout": 10}
    server = PrivateServer(scratch(f"oltp-{engine.label.replace(' ', '-')}"),
                           {**options, **engine.server_options(POOL_BYTES)}, plugin=engine.plugin)
    try:
        with server:
            if not available(server, [engine]):
                raise Failure(f"engine {engine.name} is not in this server; make build")
            load(server, engine, rows)
            yield server
    finally:
        server.remove()


def load(server, engine, rows: int) -> None:
    """Create and fill the tables, write everything out, and read every index once."""
    started = time.monotonic()
    server.sql("CREATE DATABASE sbtest")
    words = [*sysbench_words(server, rows), f"--threads={TABLES}", f"--mysql-storage-engine={engine.name}", "--rand-seed=1",
             str(SCRIPTS / "oltp_read_write.lua"), "prepare"]
    done = subprocess.run(words, env=environment(), text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise Failure("sysbench prepare:\n" + done.stdout[-1500:] + done.stderr[-1500:])
    engine.flush(server)
    for number in range(1, TABLES + 1):
        server.sql(f"ANALYZE TABLE sbtest{number}", "sbtest")
        for index in ("PRIMARY", f"k_{number}"):
            server.sql(f"SELECT COUNT(*), MAX(k + id) FROM sbtest{number} FORCE INDEX ({index}) WHERE k > 0", "sbtest")
    note(f"{engine.label}: loaded and written out in {time.monotonic() - started:.0f} s")


def sysbench_words(server, rows: int) -> list:
    """The command line's beginning: every script knows these options."""
    return [str(SERVER / "usr/bin/sysbench"), f"--mysql-socket={server.socket}", "--mysql-user=root", f"--tables={TABLES}",
            f"--table-size={max(rows // TABLES, 1)}", "--rand-type=uniform", "--percentile=99"]


def environment() -> dict:
    """For sysbench: the private libraries, and where its scripts find one another."""
    return {**setup.library_environment(), "LUA_PATH": f"{SCRIPTS}/?.lua"}


def measure_all(servers: dict, cells: list, choice) -> tuple:
    """Every repeat of every cell: (workload, connections) -> label -> Cells, and what went wrong."""
    results = {cell: {label: [] for label in servers} for cell in cells}
    failures = []
    for repeat in range(choice.repeats):
        for workload, count in cells:
            order = list(servers) if repeat % 2 == 0 else list(reversed(servers))
            once = {}
            for label in order:
                try:
                    with alone(servers, label):
                        once[label] = measure(servers[label], workload, count, choice)
                except Failure as failure:
                    if servers[label].died():
                        raise
                    failures.append(f"{workload}, {count} connections, {label}, repeat {repeat + 1}: {failure}")
            if len(once) == len(servers):
                for label, cell in once.items():
                    results[workload, count][label].append(cell)
            told = "; ".join(f"{label} {cell.tps:,.0f} tps, p99 {cell.p99_ms:,.2f} ms, {cell.cpu_us:.1f} us a query" for label, cell in once.items())
            note(f"repeat {repeat + 1}, {workload}, {count} connections: {told}")
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


def measure(server, workload: str, connections: int, choice) -> Cell:
    """One cell once. sysbench tells all figures when the warm-up is over and forgets them, and tells again at the end: at
    these two moments the server's processor time is taken."""
    total = WARM_SECONDS + choice.seconds
    words = [*sysbench_words(server, choice.rows), f"--threads={connections}", f"--time={total}", f"--report-checkpoints={WARM_SECONDS}",
             str(SCRIPTS / f"{workload}.lua"), "run"]
    lines, moments = [], []
    with subprocess.Popen(words, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        watch = threading.Timer(total + HANGING_SECONDS, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                if line.startswith("SQL statistics:"):
                    moments.append(server.cpu_seconds())
                    lines = []
                lines.append(line)
        except BaseException:
            process.kill()
            raise
        finally:
            watch.cancel()
    if process.returncode != 0 or len(moments) != 2:
        raise Failure(f"sysbench ended with status {process.returncode}: " + "".join(lines)[-500:].strip())
    return parse("".join(lines), moments[1] - moments[0])


def parse(text: str, cpu_seconds: float) -> Cell:
    """Read a report of sysbench. A time without any transaction counts as if the only one had just not ended."""
    def number(pattern: str) -> float:
        found = re.search(pattern, text)
        if not found:
            raise Failure(f"sysbench's report is not as expected: {text[-500:]}")
        return float(found.group(1))

    transactions = number(r"transactions: +(\d+) ")
    if transactions == 0:
        seconds = number(r"total time: +([\d.]+)s")
        return Cell(1 / seconds, seconds * 1000, cpu_seconds * 1e6, 0)
    return Cell(number(r"transactions: .*\(([\d.]+) per sec"), number(r"99th percentile: +([\d.]+)"),
                cpu_seconds * 1e6 / number(r"queries: +(\d+) "), number(r"ignored errors: .*\(([\d.]+) per sec"))


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
    report_means(title, {name: {measure.label: [cell_ratios(results[cell], measure.field, ours, theirs)
                                                for cell in group] for measure in MEASURES}
                         for name, group in [*groups.items(), ("all cells", cells)]},
                 {measure.label for measure in MEASURES if measure.floor}, judged=builds)


def verdict(measure: Measure, ratios: list) -> list:
    """A line of the last table. A cell misses when its whole interval lies on the wrong side."""
    mean = geometric_mean([ratio[0] for ratio in ratios])
    sign = ">=" if measure.floor else "<="
    met = mean >= measure.mean if measure.floor else mean <= measure.mean
    missing = [r for r in ratios if r[1] is not None and (r[2] < measure.cell if measure.floor else r[1] > measure.cell)]
    told = f"{len(missing)} of {len(ratios)}" if ratios[0][1] is not None else "one repeat: unknown"
    return [measure.label, f"{mean:.3f}", f"{sign} {measure.mean:.2f}", "met" if met else "MISSED", told, f"{sign} {measure.cell:.2f}"]
