"""`make bench ARGS="--sets guids"`: rows with random GUIDs into a table larger than memory.

The GUID is the primary key, or has a UNIQUE index beside an ascending primary key, or one that is
not. One connection inserts 80,000 rows in batches of a thousand, each a durable transaction, with
another index on a random number. Each table is in a server of its own with a cache of 8 MiB, in a
memory cgroup that keeps the page cache small. Kinds and engines take turns, and whoever begins
changes with the repeat. At the end each index must have all rows.
"""

import contextlib
import json
import random
import time
import uuid
from statistics import median

from . import inserts, memory
from .engines import CHEETAH, INNODB, MYROCKS, chosen
from .paths import VAR, show
from .say import Failure, note, step, table

ROWS, BATCH_ROWS = 80_000, 1000
CACHE_MIB = 8
SECONDS_OF_RUN = 8   # with its server's start and check, about
GUID = "guid CHAR(36) CHARACTER SET ascii NOT NULL"
KINDS = {"primary key": f"{GUID} PRIMARY KEY",
         "unique": f"id BIGINT AUTO_INCREMENT PRIMARY KEY, {GUID}, UNIQUE KEY guid (guid)",
         "plain": f"id BIGINT AUTO_INCREMENT PRIMARY KEY, {GUID}, KEY guid (guid)"}
COLUMNS = ("customer INT NOT NULL, price DOUBLE NOT NULL, data VARCHAR(40) NOT NULL, "
           "KEY customer (customer)")


def run(choice) -> int:
    """The part of the bench; 1 when a run failed."""
    engines = chosen(choice.engines, memory.known(choice), [INNODB, MYROCKS, CHEETAH])
    seconds = choice.repeats * len(engines) * len(KINDS) * SECONDS_OF_RUN
    step(f"guids: {ROWS:,} rows, {CACHE_MIB} MiB of cache, {len(KINDS)} tables, "
         f"{len(engines)} engines, {choice.repeats} repeats: about {seconds / 60:.0f} minutes")
    group = memory.group_of("guids")
    if group is None:
        return 0
    results = {engine.label: {kind: [] for kind in KINDS} for engine in engines}
    failures = []
    try:
        for repeat in range(choice.repeats):
            for kind in KINDS:
                for engine in engines if repeat % 2 == 0 else reversed(engines):
                    try:
                        took = measure(engine, kind, group)
                    except Failure as failure:
                        failures.append(f"{engine.label}, {kind}, repeat {repeat + 1}: {failure}")
                        continue
                    results[engine.label][kind].append(took)
                    note(f"repeat {repeat + 1}, {kind}, {engine.label}: {took:.2f} s")
    finally:
        group.remove()
    report(results)
    place = VAR / "bench-guids.json"
    place.write_text(json.dumps(results, indent=1) + "\n")
    print(f"raw figures: {show(place)}")
    for failure in failures:
        print(f"not measured: {failure}")
    return 1 if failures else 0


def measure(engine, kind: str, group) -> float:
    """Seconds that an engine takes for all rows."""
    statements = list(batches(random.Random(1)))
    with inserts.empty_server(engine, CACHE_MIB, group) as server:
        server.sql(f"CREATE TABLE t ({KINDS[kind]}, {COLUMNS}) {engine.clause()}", inserts.DATABASE)
        with group.held(memory.PAGE_CACHE_BYTES):
            connection = server.connect(inserts.DATABASE)
            connection.autocommit(True)
            with contextlib.closing(connection), connection.cursor() as cursor:
                started = time.monotonic()
                for statement in statements:
                    cursor.execute(statement)
                took = time.monotonic() - started
        for index in ("PRIMARY", "customer", *(["guid"] if kind != "primary key" else [])):
            query = (f"SELECT COUNT(*), COUNT(DISTINCT guid) FROM t FORCE INDEX ({index}) "
                     "WHERE customer >= 0")
            found = tuple(map(int, server.sql(query, inserts.DATABASE)[0]))
            if found != (ROWS, ROWS):
                raise Failure(f"the index {index} has {found[0]} rows and {found[1]} GUIDs, "
                              f"not {ROWS}")
    return took


def batches(numbers: random.Random):
    """The statements."""
    for _ in range(ROWS // BATCH_ROWS):
        rows = ", ".join(row(numbers) for _ in range(BATCH_ROWS))
        yield f"INSERT INTO t (guid, customer, price, data) VALUES {rows}"


def row(numbers: random.Random) -> str:
    """A row as VALUES has it."""
    guid = uuid.UUID(int=numbers.getrandbits(128), version=4)
    return (f"('{guid}', {numbers.randrange(100_000)}, {numbers.random() * 500:.6f}, "
            f"'{numbers.getrandbits(64):016x}')")


def report(results: dict) -> None:
    """Medians with their range, a line for each engine; and the unique index by the plain one."""
    lines = []
    for label, by_kind in results.items():
        if not all(by_kind.values()):
            continue
        cells = [f"{median(times):.2f} ({min(times):.2f}..{max(times):.2f})"
                 for times in by_kind.values()]
        lines.append([label, *cells, f"{median(by_kind['plain']) / median(by_kind['unique']):.2f}"])
    print()
    table(["engine", *(f"{kind}, s" for kind in KINDS), "rate unique / plain"], lines)
