"""Sets of data in every form in which people load them, made once by mariadb-dump; and the loads.

Each set is a folder: `dump.sql` (what mariadb-dump writes), `rows.sql` (with one row in each
INSERT), `NAME.txt` for LOAD DATA. `fit` turns a form into the statements for one engine, with
secondary indexes or without.

load_data  LOAD DATA into tables without secondary indexes; foreign_key_checks and unique_checks are
           off, with which InnoDB is fastest
multi_row  mariadb-dump's file without secondary indexes
dump       mariadb-dump's file as it is
one_row    the same with one row in each INSERT, each a durable transaction; the first rows of each
           table
"""

import re
import shutil
import subprocess
import time
from pathlib import Path

from . import dump, setup, sysbench
from .engines import INNODB, equal_memory
from .paths import SERVER, VAR, shared_data
from .say import Failure, step
from .server import PrivateServer, scratch

SYSBENCH_ROWS = 300_000
# What sysbench 0.4 wrote into every row.
OLD_ROW = "c = ' ', pad = 'qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt'"
SETS = ["enwiki_text_plain", "feed_beer", "flights_nyc13", "sysbench", "sysbench_old"]
ONE_ROW_ROWS = 3_000   # of each table: every one of them waits for a sync
MEMORY_BYTES = 256 << 20
SECONDARY_KEY = re.compile(rb"^\s*((?:UNIQUE )?KEY `[^`]+`.*?),?\s*$")
TABLE_NAME = re.compile(rb"CREATE TABLE `([^`]+)`")


def present(name: str) -> bool:
    """Whether the set can be had; sysbench's are made here."""
    return name.startswith("sysbench") or (shared_data() / f"{name}.sql.zst").exists()


def prepare(name: str, sysbench_rows: int = SYSBENCH_ROWS) -> Path:
    """The set's folder."""
    place = VAR / (f"formats-{name}-{sysbench_rows}" if name.startswith("sysbench")
                   else f"formats-{name}")
    if place.exists():
        return place
    step(f"preparing {name}")
    fresh = place.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    server = PrivateServer(scratch("formats-prepare"), equal_memory(MEMORY_BYTES), plugin=False)
    with server:
        server.sql(f"CREATE DATABASE {name}")
        if name.startswith("sysbench"):
            make_sysbench(server, name, sysbench_rows)
        else:
            source = dump.open_dump(shared_data() / f"{name}.sql.zst")
            dump.load(server, name, source.stdout, INNODB.clause(), name)
        write_dump(server, name, fresh / "dump.sql")
        write_dump(server, name, fresh / "rows.sql", "--skip-extended-insert")
        write_dump(server, name, fresh / "tab.log", f"--tab={fresh}")
    server.remove()
    fresh.rename(place)
    return place


def make_sysbench(server, name: str, rows: int) -> None:
    """sysbench's own table, with random texts, or with those that its old versions wrote."""
    sysbench.prepare(server, name, sysbench.Tables(rows))
    if name == "sysbench_old":
        server.sql(f"UPDATE sbtest1 SET {OLD_ROW}", name)


def write_dump(server, name: str, place: Path, *more) -> None:
    """Run mariadb-dump."""
    words = [str(SERVER / "usr/bin/mariadb-dump"), "--no-defaults", f"--socket={server.socket}",
             "--user=root", f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}", *more,
             name]
    with open(place, "wb") as out:
        done = subprocess.run(words, env=setup.library_environment(), stdout=out,
                              stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failure(f"mariadb-dump of {name}: {done.stderr.decode(errors='replace').strip()}")


def fit(folder: Path, form: str, clause: str, target: Path) -> None:
    """Write the statements of one form for one engine to `target`."""
    with open(target, "wb") as out:
        if form == "load_data":
            out.write(b"SET unique_checks = 0, foreign_key_checks = 0;\n")
            for table in definitions(folder):
                out.write(dump.fit_table(without_keys(table), clause))
                text = folder / f"{name_of(table).decode()}.txt"
                out.write(b"LOAD DATA INFILE '%s' INTO TABLE `%s` CHARACTER SET binary;\n"
                          % (str(text).encode(), name_of(table)))
            return
        with open(folder / ("rows.sql" if form == "one_row" else "dump.sql"), "rb") as source:
            lines = (stripped(source) if form == "multi_row"
                     else first_rows(source) if form == "one_row" else source)
            for line in dump.lines_for(lines, clause):
                out.write(line)


def index_statements(folder: Path) -> list:
    """The ALTER TABLE statements that add what `load_data` leaves out: all secondary indexes of a
    table in one."""
    found = []
    for table in definitions(folder):
        keys = [SECONDARY_KEY.match(line).group(1) for line in table if SECONDARY_KEY.match(line)]
        if keys:
            parts = b", ".join(b"ADD " + key for key in keys)
            found.append(f"ALTER TABLE `{name_of(table).decode()}` {parts.decode()}")
    return found


def definitions(folder: Path) -> list:
    """The lines of each CREATE TABLE of the dump."""
    with open(folder / "dump.sql", "rb") as source:
        return [lines for lines, defines in dump.statements(source) if defines]


def name_of(table: list) -> bytes:
    """The table's name."""
    return TABLE_NAME.match(table[0]).group(1)


def without_keys(table: list) -> list:
    """The definition without its secondary indexes."""
    kept = [line for line in table if not SECONDARY_KEY.match(line)]
    end = next(number for number, line in enumerate(kept) if line.startswith(b")"))
    kept[end - 1] = re.sub(rb",(\s*)$", rb"\1", kept[end - 1])
    return kept


def stripped(source):
    """The dump's lines without secondary indexes."""
    for lines, defines in dump.statements(source):
        yield from without_keys(lines) if defines else lines


def first_rows(source):
    """The dump's lines with a bounded number of rows in each table."""
    count = 0
    for line in source:
        if line.startswith(b"CREATE TABLE"):
            count = 0
        if line.startswith(b"INSERT INTO"):
            count += 1
            if count > ONE_ROW_ROWS:
                continue
        yield line


def load(server, engine, folder, database: str, form: str) -> float:
    """Load a form through the ordinary client; the seconds until all is written out."""
    server.sql(f"CREATE DATABASE {database}")
    script = server.folder / "load.sql"
    fit(folder, form, engine.clause(), script)
    started = time.monotonic()
    dump.feed(server, database, script, f"{database}, {form}, {engine.label}")
    engine.write_out(server, database)
    return time.monotonic() - started


def add_indexes(server, engine, folder, database: str):
    """Add all secondary indexes; the seconds until all is written out, None when there are none."""
    statements = index_statements(folder)
    started = time.monotonic()
    for statement in statements:
        server.sql(statement, database)
    engine.write_out(server, database)
    return time.monotonic() - started if statements else None
