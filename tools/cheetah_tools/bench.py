"""`make bench`: Cheetah beside InnoDB, uncompressed and KEY_BLOCK_SIZE=8, under one memory limit.

Engines take turns within each repeat, each on a server and data folder of its own, so that a slow
minute of the machine hits all of them. Bytes on disk are taken once, after a flush and a minute of
rest: they do not vary.
"""

import argparse
import json
import random
import statistics
import time
from pathlib import Path

from . import (backups, cgroup, comments, dump, environment, formatdata, formats, fulltext, guids,
               indexes, inserts, memory, oltp, points, recovery, relations, setup)
from .engines import CHEETAH, ENCRYPTED, INNODB, INNODB_COMPRESSED, Engine, available, equal_memory
from .paths import VAR, shared_data, show
from .say import Failure, megabytes, note, run_main, step, table
from .server import PrivateServer, scratch

POOL_BYTES = 512 << 20
GROUP_BYTES = 1 << 30
BEFORE = "Cheetah before"   # another build of the plugin
SYSBENCH_ROWS = 1_000_000
# Set: table and key for point selects, statement of the full scan.
SETS = {
    "enwiki_text_plain": ("page", "page_id", "SELECT SUM(LENGTH(old_text)) FROM text"),
    "flights_nyc13": ("flights", "id",
                      "SELECT COUNT(*), SUM(air_time) FROM flights FORCE INDEX (PRIMARY)"),
    "sysbench": ("sbtest1", "id", "SELECT SUM(LENGTH(c)) FROM sbtest1 FORCE INDEX (PRIMARY)"),
}
# Sets that are no data: each measures and reports in its own module.
PARTS = {"oltp": oltp.run, "recovery": recovery.run, "formats": formats.run,
         "indexes": indexes.run, "memory": memory.run, "inserts": inserts.run, "guids": guids.run,
         "fulltext": fulltext.run, "comments": comments.run, "relations": relations.run,
         "backups": backups.run}
USUAL = [*SETS, "oltp", "recovery"]
# the sets that can compare two builds
BUILDS = ["oltp", "relations", "formats", "memory", "inserts", "guids"]
TARGETS = [  # measure, of, at most / at least
    ("bytes", INNODB.label, "<=",
     {"enwiki_text_plain": 0.40, "flights_nyc13": 0.40, "sysbench": 0.45}),
    ("bytes", INNODB_COMPRESSED.label, "<=", 0.90),
    ("load", INNODB.label, "<=", 1.05),
    ("point", INNODB.label, ">=", 0.90),
    ("scan", INNODB.label, "<=", 1 / 1.5),
]


def main(arguments: list) -> None:
    """The command. Does not return: it goes on in the lab's environment, which has scipy."""
    choose(arguments)   # wrong words make no environment
    environment.hand_over([str(environment.ensure()), "-m", "cheetah_tools.bench", *arguments])


def measure_all(arguments: list) -> int:
    """What the command does."""
    choice = choose(arguments)
    names = (choice.sets or ",".join(BUILDS if choice.before else USUAL)).split(",")
    unknown = [name for name in names if name not in SETS and name not in PARTS]
    if unknown:
        raise Failure(f"no such set: {', '.join(unknown)}; there are {', '.join([*SETS, *PARTS])}")
    if choice.before and set(names) - set(BUILDS):
        raise Failure(f"--against goes with the sets {' and '.join(BUILDS)}, not with others")
    setup.ensure()
    status = measure_sizes([name for name in names if name in SETS], choice)
    for name in names:
        if name in PARTS:
            status = max(status, PARTS[name](choice))
    return status


def choose(arguments: list):
    """The options of all parts."""
    parser = argparse.ArgumentParser(description="measure Cheetah beside InnoDB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rest", type=float, default=60,
                        help="seconds of rest before bytes on disk are taken")
    parser.add_argument("--sets",
                        help=f"of {', '.join([*SETS, *PARTS])}; usually {', '.join(USUAL)}")
    parser.add_argument("--against", metavar="OTHER.so",
                        help=f"another build of the plugin, for {', '.join(BUILDS)}: "
                             "measured beside this one as \"Cheetah before\"")
    parser.add_argument("--seconds", type=int, default=8,
                        help="oltp, relations, memory: of each cell, when warm; "
                             "inserts: of each run")
    parser.add_argument("--rows", type=int, default=1_000_000,
                        help="oltp, memory: in all tables; relations: children; indexes: in one")
    parser.add_argument("--workloads", default="all", help="oltp, relations, memory")
    parser.add_argument("--connections", help="oltp, relations, memory")
    parser.add_argument("--cache", type=int, default=128, help="inserts: MiB")
    parser.add_argument("--shares", default="0.5,0.2,0.05",
                        help="memory: of InnoDB's bytes as cache")
    parser.add_argument("--best-split", action="store_true",
                        help="memory: each engine divides the same memory as it does most with it")
    parser.add_argument("--log-gigabytes", type=float, default=1.0, help="recovery: log to replay")
    parser.add_argument("--update-rows", type=int, default=5_000_000,
                        help="recovery: rows to roll back")
    parser.add_argument("--data", default="all",
                        help="formats: sets of data, of " + ", ".join(formatdata.SETS))
    parser.add_argument("--measures", default="all",
                        help="formats: of " + ", ".join(formats.MEASURES))
    parser.add_argument("--engines", default="all",
                        help="oltp, formats: of " + ", ".join([*formats.LABELS, BEFORE])
                        + "; oltp, memory: also " + ", ".join(each.label for each in ENCRYPTED)
                        + "; oltp compares the first with each other one")
    choice = parser.parse_args(arguments)
    choice.before = other_build(choice.against) if choice.against else None
    return choice


def other_build(file: str):
    """The engine of another build of the plugin. Failure when there is no such file."""
    plugin = Path(file).expanduser().resolve()
    if not plugin.is_file():
        raise Failure(f"no such file: {plugin}")
    return Engine(BEFORE, CHEETAH.name, plugin=plugin)


def measure_sizes(names: list, choice) -> int:
    """Bytes, loads, scans and point selects of the data sets."""
    if not names:
        return 0
    group = cgroup.make(GROUP_BYTES)
    if group is None:
        print(f"skipped: {', '.join(names)}: no memory cgroup can be had here "
              "(it takes root, or a delegated one)")
        return 0
    try:
        results = {name: measure_set(name, choice, group) for name in names if present(name)}
    finally:
        group.remove()
    if not results:
        print(f"skipped: no data sets in {shared_data()}")
        return 0
    report(results)
    place = VAR / "bench.json"
    place.write_text(json.dumps(results, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    return 0


def present(name: str) -> bool:
    """Whether the set can be had; sysbench's table is made here."""
    found = name == "sysbench" or (shared_data() / f"{name}.sql.zst").exists()
    if not found:
        note(f"skipped: {name} (no such file in {shared_data()})")
    return found


def plain_dump(name: str):
    """The set as a plain file, made once."""
    place = VAR / f"bench-{name}.sql"
    if not place.exists():
        step(f"preparing {name}")
        if name == "sysbench":
            sysbench_dump(place)
        else:
            dump.unpack(shared_data() / f"{name}.sql.zst", place)
    return place


def sysbench_dump(place) -> None:
    """sysbench's table: digits in groups, and a secondary index on an integer with a bell-shaped
    distribution."""
    rng = random.Random(1)
    fresh = place.with_suffix(".new")
    with open(fresh, "w") as out:
        out.write("CREATE TABLE `sbtest1` (`id` int(11) NOT NULL AUTO_INCREMENT, "
                  "`k` int(11) NOT NULL DEFAULT 0, `c` char(120) NOT NULL DEFAULT '', "
                  "`pad` char(60) NOT NULL DEFAULT '', PRIMARY KEY (`id`), "
                  "KEY `k_1` (`k`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n")
        for first in range(1, SYSBENCH_ROWS + 1, 5000):
            rows = []
            for number in range(first, min(first + 5000, SYSBENCH_ROWS + 1)):
                digits = f"{rng.getrandbits(600):0181d}"
                c = "-".join(digits[i:i + 11] for i in range(0, 110, 11))
                pad = "-".join(digits[i:i + 11] for i in range(110, 165, 11))
                k = sum(rng.randint(1, SYSBENCH_ROWS) for _ in range(12)) // 12
                rows.append(f"({number},{k},'{c}','{pad}')")
            out.write("INSERT INTO `sbtest1` VALUES " + ",".join(rows) + ";\n")
    fresh.rename(place)


def measure_set(name: str, choice, group) -> dict:
    """Every engine, interleaved; label -> measure -> values."""
    path = plain_dump(name)
    program = points.build()
    results = {}
    for repeat in range(choice.repeats):
        for engine in (INNODB, INNODB_COMPRESSED, CHEETAH):
            server = PrivateServer(scratch("bench"), equal_memory(POOL_BYTES), cgroup=group.folder)
            with server:
                if not available(server, [engine]):
                    note(f"skipped: {engine.label} is not in this server")
                    continue
                once = measure(server, engine, name, path, program,
                               choice.rest if repeat == 0 else None)
            server.remove()
            note(f"{name}, repeat {repeat + 1}, {engine.label}: "
                 + ", ".join(f"{k} {v:,.2f}" for k, v in once.items()))
            for key, value in once.items():
                results.setdefault(engine.label, {}).setdefault(key, []).append(value)
    return results


def measure(server, engine, name: str, path, program, rest) -> dict:
    """One engine once."""
    key_table, key, scan = SETS[name]
    started = time.monotonic()
    with open(path, "rb") as source:
        dump.load(server, name, source, engine.clause(), f"{name} {engine.label}")
    engine.flush(server)
    result = {"load": time.monotonic() - started}
    if rest is not None:
        time.sleep(rest)
        result["bytes"] = engine.bytes_on_disk(server, name)
    result["point"] = points.rate(server, program, name, key_table, key)
    server.stop()
    engine.drop_page_cache(server, name)
    server.start()
    started = time.monotonic()
    server.sql(scan, name)
    result["scan"] = time.monotonic() - started
    return result


def report(results: dict) -> None:
    """Median and spread of each measure, then the targets."""
    for name, engines in results.items():
        print(f"\n{name}")
        rows = [[label, cell(m.get("load"), "s"), cell(m.get("scan"), "s"),
                 cell(m.get("point"), "/s"), megabytes(m["bytes"][0]) if "bytes" in m else "-"]
                for label, m in engines.items()]
        table(["engine", "load until flushed", "full scan, cold", "point selects", "on disk"], rows)
    print()
    rows = [row for name, engines in results.items() if CHEETAH.label in engines
            for row in verdicts(name, engines)]
    if rows:
        table(["Cheetah compared", "of", "ratio", "wanted", ""], rows)


def cell(values: list, unit: str) -> str:
    """Median and spread."""
    if not values:
        return "-"
    digits = 0 if unit == "/s" else 2
    return (f"{statistics.median(values):,.{digits}f} "
            f"({min(values):,.{digits}f}..{max(values):,.{digits}f}) {unit}")


def verdicts(name: str, engines: dict) -> list:
    """The targets for one set."""
    rows = []
    for measure_name, other, sign, wanted in TARGETS:
        if other not in engines:
            continue
        limit = wanted[name] if isinstance(wanted, dict) else wanted
        ratio = (statistics.median(engines[CHEETAH.label][measure_name])
                 / statistics.median(engines[other][measure_name]))
        met = ratio <= limit if sign == "<=" else ratio >= limit
        rows.append([f"{name} {measure_name}", other, f"{ratio:.2f}", f"{sign} {limit:.2f}",
                     "met" if met else "MISSED"])
    return rows


if __name__ == "__main__":
    run_main(measure_all)
