"""`make bench ARGS="--sets formats"`: formats and loads side by side: InnoDB in four formats,
MyRocks, Cheetah in three.

Every engine runs in a private server of its own with the same memory, with durable commits. Within
each repeat the engines take turns, and whoever begins changes with the repeat.

bytes      allocated blocks of the data files, logs apart, of an unchanged dump that was loaded,
           flushed, and left alone
           for `--rest` seconds; the servers of a set rest together. MyRocks is compacted by hand
           before.
load_data  LOAD DATA into tables without secondary indexes, until flushed; foreign_key_checks and
           unique_checks are off,
           with which InnoDB is fastest.
add_index  what follows: ALTER TABLE with all secondary indexes of a table at once, until flushed.
multi_row  mariadb-dump's file without secondary indexes, until flushed.
dump       mariadb-dump's file as it is, until flushed.
one_row    the same with one row in each INSERT, each a durable transaction; the first rows of each
           table.
"""

import contextlib
import json
import re
import statistics
import time

from . import dump, formatdata
from .engines import (CHEETAH, CHEETAH_DENSE, CHEETAH_PLAIN, INNODB, INNODB_COMPRESSED,
                      INNODB_DENSE, INNODB_HOLES, MYROCKS, available, equal_memory)
from .engines import chosen as chosen_engines
from .formatdata import MEMORY_BYTES
from .paths import VAR, show
from .ratios import paired, report_means
from .say import Failure, note, step, table
from .server import PrivateServer, scratch

ENGINES = [INNODB, INNODB_COMPRESSED, INNODB_DENSE, INNODB_HOLES, MYROCKS, CHEETAH, CHEETAH_DENSE,
           CHEETAH_PLAIN]
LABELS = [engine.label for engine in ENGINES]
PEERS = [engine.label for engine in ENGINES if engine.name != "CHEETAH"]
SMALLEST = "the smallest of the others"
FORMS = ["load_data", "multi_row", "dump", "one_row"]
MEASURES = ["bytes", "load_data", "add_index", "multi_row", "dump", "one_row"]
SEVERAL_INDEXES = ["feed_beer", "flights_nyc13"]   # what a dump "with several secondary indexes" is
# Measure, of whom, through whom, at most, on which sets.
TARGETS = [
    ("bytes", CHEETAH.label, SMALLEST, 1.0, formatdata.SETS),
    ("bytes", CHEETAH_DENSE.label, SMALLEST, 0.9, formatdata.SETS),
    ("load_data", CHEETAH.label, INNODB.label, 0.8, formatdata.SETS),
    ("multi_row", CHEETAH.label, INNODB.label, 0.8, formatdata.SETS),
    ("dump", CHEETAH.label, INNODB.label, 0.6, SEVERAL_INDEXES),
    ("dump", CHEETAH.label, INNODB_COMPRESSED.label, 0.2, SEVERAL_INDEXES),
    ("one_row", CHEETAH.label, INNODB.label, 1.0, formatdata.SETS),
    ("add_index", CHEETAH.label, INNODB.label, 0.5, formatdata.SETS),
    ("load_data", CHEETAH.label, CHEETAH_PLAIN.label, 1.05, formatdata.SETS),
    ("multi_row", CHEETAH.label, CHEETAH_PLAIN.label, 1.05, formatdata.SETS),
]


def run(choice) -> int:
    """The part of the bench."""
    names, measures = (chosen(choice.data, formatdata.SETS, "data set"),
                       chosen(choice.measures, MEASURES, "measure"))
    names = [name for name in names if at_hand(name)]
    before = [choice.before] if choice.before else []
    engines = chosen_engines(choice.engines, [*ENGINES, *before],
                             [CHEETAH, *before] if before else ENGINES)
    seconds = choice.repeats * len(names) * (choice.rest * ("bytes" in measures)
                                             + 8 * len(engines) * len(measures))
    step(f"formats: {len(engines)} engines, {len(names)} sets of data, {choice.repeats} repeats, "
         f"{', '.join(measures)}: about {seconds / 60:.0f} minutes")
    results = {}
    for repeat in range(choice.repeats):
        order = engines[repeat % len(engines):] + engines[:repeat % len(engines)]
        for name in names:
            folder = formatdata.prepare(name)
            if "bytes" in measures:
                add(results, name, "bytes", bytes_at_rest(folder, name, order, choice.rest))
            for form in FORMS:
                if form in measures or (form == "load_data" and "add_index" in measures):
                    for measure, found in load_times(folder, name, form, order,
                                                     "add_index" in measures).items():
                        add(results, name, measure, found)
            place = VAR / "bench-formats.json"
            place.write_text(json.dumps(results, indent=1) + "\n")
    report(results)
    for other in before:
        report_against(results, other.label)
    print(f"raw figures: {show(VAR / 'bench-formats.json')}")
    return 0


def chosen(text: str, known: list, what: str) -> list:
    """The words of a list that was given by hand."""
    words = known if text == "all" else text.split(",")
    unknown = [word for word in words if word not in known]
    if unknown:
        raise Failure(f"no such {what}: {', '.join(unknown)}; there are {', '.join(known)}")
    return words


def at_hand(name: str) -> bool:
    """Whether the set is there; says so otherwise."""
    found = formatdata.present(name)
    if not found:
        note(f"skipped: {name} (no such file)")
    return found


def add(results: dict, name: str, measure: str, found: dict) -> None:
    """Keep the values of one repeat: set -> measure -> engine -> values."""
    shown = ", ".join(f"{label} {value / 1e6:,.2f} MB" if measure == "bytes"
                      else f"{label} {value:,.2f} s"
                      for label, value in found.items())
    note(f"{name}, {measure}: {shown}")
    for label, value in found.items():
        results.setdefault(name, {}).setdefault(measure, {}).setdefault(label, []).append(value)


@contextlib.contextmanager
def running(engine):
    """A private server for one engine; None when this machine does not have the engine."""
    options = {**equal_memory(MEMORY_BYTES), **engine.server_options(MEMORY_BYTES)}
    server = PrivateServer(scratch("formats-" + re.sub(r"\W+", "-", engine.label)), options,
                           plugin=engine.plugin)
    try:
        with server:
            if available(server, [engine]):
                yield server
            else:
                note(f"skipped: {engine.label} is not in this server")
                yield None
    finally:
        server.remove()


def bytes_at_rest(folder, name: str, order: list, rest: float) -> dict:
    """Bytes on disk of the dump in every engine."""
    with contextlib.ExitStack() as stack:
        servers = []
        for engine in order:
            server = stack.enter_context(running(engine))
            if server:
                load(server, engine, folder, name, "dump")
                engine.flush(server)
                engine.settle(server)
                servers.append((engine, server))
        time.sleep(rest)
        return {engine.label: engine.bytes_on_disk(server, name) for engine, server in servers}


def load_times(folder, name: str, form: str, order: list, indexes: bool) -> dict:
    """Seconds by engine: of one form of load and, behind LOAD DATA, of adding the indexes."""
    found = {form: {}}
    for engine in order:
        with running(engine) as server:
            if not server:
                continue
            found[form][engine.label] = load(server, engine, folder, name, form)
            if form == "load_data" and indexes:
                seconds = add_indexes(server, engine, folder, name)
                if seconds is not None:
                    found.setdefault("add_index", {})[engine.label] = seconds
    return found


def load(server, engine, folder, name: str, form: str) -> float:
    """Load a form through the ordinary client; the seconds until all is flushed."""
    server.sql(f"CREATE DATABASE {name}")
    script = server.folder / "load.sql"
    formatdata.fit(folder, form, engine.clause(), script)
    started = time.monotonic()
    dump.feed(server, name, script, f"{name}, {form}, {engine.label}")
    engine.write_out(server, name)
    return time.monotonic() - started


def add_indexes(server, engine, folder, name: str):
    """Add all secondary indexes; the seconds until all is flushed, None when there are none."""
    statements = formatdata.index_statements(folder)
    started = time.monotonic()
    for statement in statements:
        server.sql(statement, name)
    engine.write_out(server, name)
    return time.monotonic() - started if statements else None


def report(results: dict) -> None:
    """Median and spread of every measure, then the verdicts."""
    for name, measures in results.items():
        print(f"\n{name}")
        labels = dict.fromkeys(label for found in measures.values() for label in found)
        table(["engine", *measures],
              [[label, *(cell(measure, found.get(label)) for measure, found in measures.items())]
               for label in labels])
    print()
    lines = [line for name, measures in results.items() for line in verdicts(name, measures)]
    if lines:
        table(["set, measure", "of", "through", "ratio", "wanted", ""], lines)


def report_against(results: dict, other: str) -> None:
    """The ratios of each measure to those of another build, of each set and over all sets."""
    groups, total = {}, {}
    for name, measures in results.items():
        for measure, found in measures.items():
            if CHEETAH.label in found and other in found:
                ratios = paired(found[CHEETAH.label], found[other])
                groups.setdefault(name, {})[measure] = [ratios]
                total.setdefault(measure, []).append(ratios)
    report_means(f"{CHEETAH.label} through {other}", {**groups, "all sets": total}, set(),
                 judged=True)


def cell(measure: str, values) -> str:
    """Median and spread: MB of bytes, seconds of times."""
    if not values:
        return "-"
    scaled = [value / 1e6 if measure == "bytes" else value for value in values]
    unit = "MB" if measure == "bytes" else "s"
    if len(scaled) == 1:
        return f"{scaled[0]:,.2f} {unit}"
    return f"{statistics.median(scaled):,.2f} ({min(scaled):,.2f}..{max(scaled):,.2f}) {unit}"


def verdicts(name: str, measures: dict) -> list:
    """The targets for one set."""
    lines = []
    for measure, ours, theirs, limit, sets in TARGETS:
        found = measures.get(measure, {})
        others = [label for label in (PEERS if theirs == SMALLEST else [theirs]) if label in found]
        if name not in sets or ours not in found or not others:
            continue
        least = min(others, key=lambda label: statistics.median(found[label]))
        ratio = statistics.median(found[ours]) / statistics.median(found[least])
        lines.append([f"{name} {measure}", ours, least, f"{ratio:.3f}", f"<= {limit:.2f}",
                      "met" if ratio <= limit else "MISSED"])
    return lines
