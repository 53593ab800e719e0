"""Prepares data sets in every form in which people load them, and loads them.

Each set is a folder, made once: `dump.sql` (mariadb-dump's output), `rows.sql` (the same with one
row in each INSERT), `NAME.txt` for LOAD DATA. `fit` writes the statements of a form for one engine.

Form       Statements
load_data  LOAD DATA into tables without secondary indexes; foreign_key_checks and unique_checks are
           off, with which InnoDB is fastest
multi_row  mariadb-dump's file without secondary indexes
dump       mariadb-dump's file as it is
one_row    the same, one row in each INSERT, each durable; only the first rows of each table"""

import re
import subprocess
import time
from pathlib import Path

from . import dump, setup, sysbench
from .engines import INNODB, equal_memory
from .paths import SERVER, VAR, emptied, shared_data
from .say import Failure, step
from .server import PrivateServer, scratch

SYSBENCH_ROWS = 300_000
# The values that sysbench 0.4 wrote into every row.
OLD_ROW = "c = ' ', pad = 'qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt'"
SETS = ["enwiki_text_plain", "feed_beer", "flights_nyc13", "sysbench", "sysbench_old"]
ONE_ROW_ROWS = 3_000   # per table; each of them waits for a sync
MEMORY_BYTES = 256 << 20
SECONDARY_KEY = re.compile(rb"^\s*((?:UNIQUE )?KEY `[^`]+`.*?),?\s*$")
TABLE_NAME = re.compile(rb"CREATE TABLE `([^`]+)`")


def present(name: str) -> bool:
    """Returns whether the set is available; sysbench's sets are generated here."""
    return name.startswith("sysbench") or (shared_data() / f"{name}.sql.zst").exists()


def prepare(name: str, sysbench_rows: int = SYSBENCH_ROWS) -> Path:
    """Prepares a set if necessary; returns its folder."""
    place = VAR / f"formats-{name}{f'-{sysbench_rows}' if name.startswith('sysbench') else ''}"
    if place.exists():
        return place
    step(f"preparing {name}")
    fresh = emptied(place.with_suffix(".new"))
    server = PrivateServer(scratch("formats-prepare"), equal_memory(MEMORY_BYTES), plugin=False)
    with server:
        server.sql(f"CREATE DATABASE {name}")
        if name.startswith("sysbench"):
            sysbench.prepare(server, name, sysbench.Tables(sysbench_rows))
            if name == "sysbench_old":
                server.sql(f"UPDATE sbtest1 SET {OLD_ROW}", name)
        else:
            source = dump.open_dump(shared_data() / f"{name}.sql.zst")
            dump.load(server, name, source.stdout, INNODB.clause(), name)
        write_dump(server, name, fresh / "dump.sql")
        write_dump(server, name, fresh / "rows.sql", "--skip-extended-insert")
        write_dump(server, name, fresh / "tab.log", f"--tab={fresh}")
    server.remove()
    fresh.rename(place)
    return place


def write_dump(server, name: str, place: Path, *more) -> None:
    words = [str(SERVER / "usr/bin/mariadb-dump"), "--no-defaults", f"--socket={server.socket}",
             "--user=root", f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}", *more,
             name]
    with open(place, "wb") as out:
        done = subprocess.run(words, env=setup.library_environment(), stdout=out,
                              stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failure(f"mariadb-dump of {name}: {done.stderr.decode(errors='replace').strip()}")


def fit(folder: Path, form: str, clause: str, target: Path) -> None:
    """Writes the statements of one form for one engine to `target`."""
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
            lines = first_rows(source) if form == "one_row" else source
            if form == "multi_row":
                lines = (line for lines, defines in dump.statements(source)
                         for line in (without_keys(lines) if defines else lines))
            for line in dump.lines_for(lines, clause):
                out.write(line)


def index_statements(folder: Path) -> list:
    """Returns ALTER TABLE statements that add the indexes that `load_data` leaves out."""
    found = []
    for table in definitions(folder):
        keys = [SECONDARY_KEY.match(line).group(1) for line in table if SECONDARY_KEY.match(line)]
        if keys:
            parts = b", ".join(b"ADD " + key for key in keys)
            found.append(f"ALTER TABLE `{name_of(table).decode()}` {parts.decode()}")
    return found


def definitions(folder: Path) -> list:
    with open(folder / "dump.sql", "rb") as source:
        return [lines for lines, defines in dump.statements(source) if defines]


def name_of(table: list) -> bytes:
    return TABLE_NAME.match(table[0]).group(1)


def without_keys(table: list) -> list:
    kept = [line for line in table if not SECONDARY_KEY.match(line)]
    end = next(number for number, line in enumerate(kept) if line.startswith(b")"))
    kept[end - 1] = re.sub(rb",(\s*)$", rb"\1", kept[end - 1])
    return kept


def first_rows(source):
    """Yields the dump's lines with a bounded number of rows in each table."""
    count = 0
    for line in source:
        count = 0 if line.startswith(b"CREATE TABLE") else count + line.startswith(b"INSERT INTO")
        if count <= ONE_ROW_ROWS or not line.startswith(b"INSERT INTO"):
            yield line


def load(server, engine, folder, database: str, form: str) -> float:
    """Loads a form through the ordinary client; returns the seconds until all is written out."""
    server.sql(f"CREATE DATABASE {database}")
    script = server.folder / "load.sql"
    fit(folder, form, engine.clause(), script)
    started = time.monotonic()
    dump.feed(server, database, script, f"{database}, {form}, {engine.label}")
    engine.write_out(server, database)
    return time.monotonic() - started


def add_indexes(server, engine, folder, database: str):
    """Adds all secondary indexes; returns the seconds to the end of writing; None without any."""
    statements = index_statements(folder)
    started = time.monotonic()
    for statement in statements:
        server.sql(statement, database)
    engine.write_out(server, database)
    return time.monotonic() - started if statements else None
