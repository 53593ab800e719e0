"""`make check-data`: every data set beside the project into InnoDB and Cheetah; CHECKSUM TABLE must agree."""

import argparse

from . import dump
from .engines import CHEETAH, INNODB, Engine
from .paths import shared_data, show
from .say import Failure, note, step, table
from .server import PrivateServer, scratch


def main(arguments: list) -> int:
    """The command; 1 when a table differs."""
    parser = argparse.ArgumentParser(description="compare engines on real data sets")
    parser.add_argument("--engine", default=CHEETAH.name)
    parser.add_argument("--quick", action="store_true", help="without the sets over 5 MB compressed")
    choice = parser.parse_args(arguments)
    sets = sorted(shared_data().glob("*.sql.zst"))
    if not sets:
        print(f"skipped: no data sets in {shared_data()} (they are not part of the project)")
        return 0
    if choice.quick:
        sets = [path for path in sets if path.stat().st_size < 5e6]
    server = PrivateServer(scratch("check-data"), {"innodb_flush_log_at_trx_commit": 0, "max_allowed_packet": "256M",
                                                   "innodb_buffer_pool_size": "256M", "loose_cheetah_buffer_pool_size": "256M"})
    rows, bad = [], 0
    with server:
        if not server.has_engine(choice.engine):
            raise Failure(f"engine {choice.engine} is not in this server; make build")
        for path in sets:
            compared, different = compare(server, path, choice.engine)
            rows.append([path.name.removesuffix(".sql.zst"), compared, "agrees" if not different else ", ".join(different)])
            bad += len(different)
        restart_and_compare(server)
    server.remove()
    table(["data set", "tables", "CHECKSUM TABLE"], rows)
    print(f"check-data: {sum(row[1] for row in rows)} tables of {len(rows)} sets, {bad} differ")
    return 1 if bad else 0


def compare(server, path, engine_name: str) -> tuple:
    """Load one set into both; how many tables, and the names of those that differ."""
    name = path.name.split(".")[0]
    step(f"{name} (FULLTEXT and SPATIAL keys taken out)")
    sums = []
    for engine in (INNODB, Engine(engine_name, engine_name)):
        database = f"{name}_{'reference' if engine is INNODB else 'tested'}"
        server.sql(f"CREATE DATABASE {database}")
        source = dump.open_dump(path)
        dump.load(server, database, source.stdout, engine.clause(), label=f"{name} {engine.label}")
        if source.wait() != 0:
            raise Failure(f"{show(path)}: cannot be unpacked to its end")
        sums.append(dump.checksums(server, database))
    reference, tested = sums
    different = [f"{t}" for t in reference if reference[t] != tested.get(t) or tested.get(t) is None]
    return len(reference), different


def restart_and_compare(server) -> None:
    """The same sums after an orderly restart."""
    step("restarting, and comparing again")
    databases = [row[0] for row in server.sql("SHOW DATABASES LIKE '%\\_tested'")]
    before = {d: dump.checksums(server, d) for d in databases}
    server.restart()
    for database in databases:
        if dump.checksums(server, database) != before[database]:
            raise Failure(f"{database}: another checksum after a restart")
    note("unchanged")
