"""Measures sysbench's workloads in *cells*: a workload with so many connections, after a warm-up.

A cell that fails while the server lives has no values; a remark reports the failure."""

import contextlib
import threading

from cheetah_tools import sysbench
from cheetah_tools.say import Failure

from . import show
from .model import LESS, MORE, TURN, Cell, Measure, Plot, Table, Value

TABLES = 4
STOP_SECONDS = 1          # to connect, and for the last transactions to end
LOAD_ROWS_PER_SECOND = 40_000
# Values of the server, and its use of processor and device per query.
FIELDS = {"tps": ("transactions a second", "1/s", MORE), "p50": ("median", "ms", LESS),
          "p99": ("99th percentile", "ms", LESS), "longest": ("longest", "ms", LESS),
          "cpu": ("server's processor time for a query", "us", LESS),
          "read": ("read from the device for a query", "bytes", LESS),
          "written": ("written to it for a query", "bytes", LESS),
          "errors": ("deadlocks and waits that ran out, a second", "1/s", LESS),
          "disk": ("data on disk, most", "bytes", LESS)}

COMPARED = ("tps", "p99", "cpu", "rate", "reads", "worst", "slow")


def tables(rows: int, texts: str = "digits") -> sysbench.Tables:
    return sysbench.Tables(max(rows // TABLES, 1), TABLES, texts)


def measures(names: list) -> list:
    return [Measure(f"{field} {name}", f"{name}: {label}", unit, better)
            for name in names for field, (label, unit, better) in FIELDS.items()]


def seconds(names: list, places: int, each: float, warm_seconds: float) -> float:
    return len(names) * places * (each + warm_seconds + STOP_SECONDS)


def chosen(words: str, known: list, what: str) -> list:
    """Returns the named words of a list with commas, "all" for all. Raises Failure for others."""
    found = known if words == "all" else words.split(",")
    if unknown := [word for word in found if word not in known]:
        raise Failure(f"no such {what}: {', '.join(unknown)}; there are {', '.join(known)}")
    return found


def measure(trial, server, name: str, at: float, workload: str, of: sysbench.Tables,
            connections: int, seconds: int, warm_seconds: int, keys: str = "uniform"):
    """Yields the values of a cell, then TURN so that other engines can run."""
    trial.step(f"{name}, {connections} connections")
    trial.did("sysbench " + " ".join(sysbench.words(workload, of, connections, seconds,
                                                    warm_seconds, seed=0)) + f"   # {keys} keys")
    moments, sizes = [], []
    try:
        with watched(lambda: sizes.append(trial.engine.allocated_bytes(server,
                                                                       sysbench.DATABASE))):
            found = sysbench.run(server, workload, of, connections, seconds, warm_seconds, seed=0,
                                 histogram=True, keys=keys,
                                 on_report=lambda: moments.append(server.spent()))
        if len(moments) != 2:
            raise Failure(f"sysbench reported {len(moments)} times, not twice")
    except Failure as failure:
        if server.died():
            raise
        trial.remarks.append(f"not measured: {name}, {connections} connections, repeat "
                             f"{trial.repeat + 1}: {failure}")
    else:
        spent = [after - before for before, after in zip(*moments)]
        for field, value in values(found, spent, max(sizes)).items():
            yield Value(f"{field} {name}", value, at)
    yield TURN


def values(found: sysbench.Result, spent: list, disk_bytes: int) -> dict:
    """Returns the figures by field. `spent` holds processor seconds, bytes read and bytes written.
    If no transaction ended, the figures are those of one transaction that took the whole time."""
    queries = max(found.queries, 1)
    cpu, read, written = (amount / queries for amount in spent)
    used = {"cpu": cpu * 1e6, "read": read, "written": written, "disk": disk_bytes}
    if found.tps == 0:
        waited_ms = found.total_seconds * 1000
        return {"tps": 1 / found.total_seconds, "p50": waited_ms, "p99": waited_ms,
                "longest": waited_ms, "errors": 0, **used}
    return {"tps": found.tps, "p50": found.p50_ms, "p99": found.p99_ms, "longest": found.max_ms,
            "errors": found.errors, **used}


@contextlib.contextmanager
def watched(look):
    """Calls `look` now and every second until the block ends."""
    ended = threading.Event()

    def watch():
        while True:
            look()
            if ended.wait(1):
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def plots(results, names: list, x_label: str) -> list:
    return [Plot(name, f"{name}: transactions a second", "lines", x_label, "1/s",
                 show.lines(results, f"tps {name}"), log_x=True)
            for name in names if show.lines(results, f"tps {name}")]


def table(results, title: str, names: list, at_said: str) -> Table:
    rows = []
    for name in names:
        places = sorted({at for engine in results.engines
                         for at, _ in results.curve(engine, f"tps {name}")})
        for at in places:
            rows += [[Cell(f"{name}, {at:g}, {results.label(engine)}"),
                      *(show.cell(results.values(engine, f"{field} {name}", at), unit)
                        for field, (_, unit, _) in FIELDS.items())]
                     for engine in results.engines if results.values(engine, f"tps {name}", at)]
    return Table(title, [f"workload, {at_said}, engine",
                         *(label for label, _, _ in FIELDS.values())], rows)
