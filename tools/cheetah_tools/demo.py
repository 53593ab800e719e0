"""`make demo`: real text in InnoDB, its KEY_BLOCK_SIZE=8 and Cheetah, equal memory; then kill -9.

By default the data is every text file of the MariaDB source package; `--dump FILE` loads your own.
"""

import argparse
import random
import time
import zlib
from pathlib import Path

from . import build, dump, engines, ledger, setup, texts
from .paths import PROJECT, VAR, make, show
from .say import Failure, megabytes, note, step, table
from .server import PrivateServer, scratch

POOL_BYTES = 256 << 20
LOOKUPS = 1000
WRITERS = 4
WRITE_SECONDS = 4.0


def main(arguments: list) -> int:
    parser = argparse.ArgumentParser(
        description="compare engines on real text, then kill the server")
    parser.add_argument("--dump", default="", help="a dump of your own: .sql, .sql.gz or .sql.zst")
    parser.add_argument("--engines", default="", help="only these, by name, separated by commas")
    choice = parser.parse_args(arguments)
    if any((PROJECT / "plugin").rglob("*.cc")):
        build.build()
    setup.ensure()
    path, unpacked = data_of(choice.dump)
    if choice.dump:
        note("SPATIAL keys, ROW_FORMAT, KEY_BLOCK_SIZE, PAGE_COMPRESSED and ENCRYPTED are taken "
             "out of the dump, for all engines")
    server = PrivateServer(scratch("demo"), {**engines.equal_memory(POOL_BYTES),
                                             "innodb_lock_wait_timeout": 3,
                                             "loose_cheetah_lock_wait_timeout": 3})
    with server:
        wanted = [e for e in engines.ALL
                  if not choice.engines or e.name in choice.engines.split(",")]
        chosen = engines.available(server, wanted)
        if not chosen:
            raise Failure("none of the engines is in this server; make build")
        step(f"MariaDB {setup.ensure()['version']} on data in {show(server.data)}, "
             f"{POOL_BYTES >> 20} MB of memory for each engine")
        results = [load(server, engine, number, path) for number, engine in enumerate(chosen)]
        lookups(server, results)
        print_results(results)
        survive(server, chosen[-1])
    server.remove()
    if unpacked:
        unpacked.unlink()
    if differ := [r for r in results if not r["agrees"]]:
        raise Failure("CHECKSUM TABLE or the rows looked up differ for "
                      + "; ".join(differences(r, results[0]) for r in differ))
    print(f"next: {make('up')} && {make('sql')}     (or your own data: make demo DUMP=file.sql.gz)")
    return 0


def differences(result: dict, first: dict) -> str:
    """Returns the engine, and the tables whose checksums differ from those of the first engine."""
    tables = [table for table, value in result["sums"].items() if first["sums"].get(table) != value]
    return f"{result['engine'].label} (tables: {', '.join(tables) or 'none, but rows looked up'})"


def data_of(given: str) -> tuple:
    """Returns the plain dump to load, and the file to delete afterwards (None: keep)."""
    if not given:
        return texts.source_dump(), None
    path = Path(given)
    if path.suffix == ".sql" and path.is_file():
        return path, None
    step(f"unpacking {path.name}")
    target = VAR / "tmp" / f"demo-{path.name}.sql"
    target.parent.mkdir(parents=True, exist_ok=True)
    dump.unpack(path, target)
    return target, target


def load(server, engine, number: int, path: Path) -> dict:
    database = f"demo_{number}"
    started = time.monotonic()
    with open(path, "rb") as source:
        seconds = dump.load(server, database, source, engine.clause(), engine.label,
                            path.stat().st_size)
    engine.flush(server)
    result = {"engine": engine, "database": database, "load": seconds,
              "flushed": time.monotonic() - started}
    tables = dump.base_tables(server, database)
    if not tables:
        raise Failure(f"{path}: no table in this dump")
    counted = time.monotonic()
    result["rows"] = sum(server.value(f"SELECT COUNT(*) FROM `{t}`", database) for t in tables)
    result["count"] = time.monotonic() - counted
    result["sums"] = dump.checksums(server, database)
    result["bytes"] = engine.bytes_on_disk(server, database)
    return result


def lookups(server, results: list) -> None:
    target, keys = keyed_table(server, results[0]["database"]), []
    if target:
        name, columns = target
        keys = server.sql(f"SELECT {columns} FROM `{name}`", results[0]["database"])
        keys = random.Random(7).choices(keys, k=LOOKUPS) if keys else []
    step(f"restart with cold files, then {len(keys)} random lookups"
         + (f" in `{target[0]}`" if target else ""))
    server.stop()
    for result in results:
        result["engine"].drop_page_cache(server, result["database"])
    server.start()
    for result in results:
        result["lookups"], result["seen"] = (
            read_rows(server, result["database"], target, keys) if keys else (0.0, 0))


def keyed_table(server, database: str):
    rows = server.sql(
        "SELECT t.table_name, "
        "GROUP_CONCAT(CONCAT('`', s.column_name, '`') ORDER BY s.seq_in_index) "
        "FROM information_schema.tables t JOIN information_schema.statistics s "
        "ON s.table_schema = t.table_schema AND s.table_name = t.table_name "
        f"AND s.index_name = 'PRIMARY' WHERE t.table_schema = '{database}' "
        "GROUP BY t.table_name ORDER BY MAX(t.data_length) DESC LIMIT 1")
    return rows[0] if rows else None


def read_rows(server, database: str, target: tuple, keys: list) -> tuple:
    """Reads rows by primary key, one by one; returns the seconds and a checksum of all."""
    name, columns = target
    condition = " AND ".join(f"{column} = %s" for column in columns.split(","))
    rows = []
    with server.cursor(database) as cursor:
        started = time.monotonic()
        for key in keys:
            if cursor.execute(f"SELECT * FROM `{name}` WHERE {condition}", key) != 1:
                raise Failure(f"{name}: no single row with key {key}")
            rows.append(cursor.fetchall())
        seconds = time.monotonic() - started
    return seconds, zlib.crc32(repr(rows).encode())


def print_results(results: list) -> None:
    first = results[0]
    rows = []
    for result in results:
        result["agrees"] = (None not in result["sums"].values()
                            and (result["sums"], result["seen"]) == (first["sums"], first["seen"]))
        rows.append([
            result["engine"].label, f"{result['rows']:,}", f"{result['load']:.1f}",
            f"{result['flushed']:.1f}", megabytes(result["bytes"]),
            f"{result['bytes'] / first['bytes']:.2f}", f"{result['count']:.3f}",
            f"{result['lookups']:.2f}", "yes" if result["agrees"] else "NO"])
    print()
    table(["engine", "rows", "load s", "flushed s", "on disk", "ratio", "COUNT(*) s",
           f"{LOOKUPS} lookups s", "CHECKSUM agrees"], rows)
    print()


def survive(server, engine) -> None:
    """Kills the server during updates; every acknowledged row must exist, and no others."""
    step(f"{WRITERS} clients write to {engine.label} for {WRITE_SECONDS:.0f} s, then kill -9")
    database = "demo_ledger"
    ledger.create_tables(server, database, f"ENGINE={engine.name}")
    writers = [ledger.Writer(server, database, n, 42) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(WRITE_SECONDS)
    server.kill()
    for writer in writers:
        writer.stopping.set()
        writer.join(30)
    if failures := [w.failure for w in writers if w.failure]:
        raise Failure("; ".join(failures))
    acknowledged = sum(w.transactions for w in writers)
    started = time.monotonic()
    server.start()
    ready = time.monotonic() - started
    rows, unanswered = ledger.verify(writers, ledger.read_back(server, database))
    note(f"{acknowledged} transactions were acknowledged before the kill; "
         f"the server was back after {ready:.1f} s")
    note(what_is_there(rows, unanswered))


def what_is_there(rows: int, unanswered: int) -> str:
    """Describes the rows after the restart: the expected rows, and commits without an answer."""
    found = "the one expected row is" if rows == 1 else f"all {rows} expected rows are"
    kept = ("" if unanswered == 0
            else " (one commit without an answer was kept whole)" if unanswered == 1
            else f" ({unanswered} commits without an answer were kept whole)")
    return f"{found} there, and no others{kept}"
