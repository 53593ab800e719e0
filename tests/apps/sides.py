"""Two servers for comparison. All tables are InnoDB's in one and Cheetah's in the other."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from cheetah_tools import engines, setup
from cheetah_tools.paths import SERVER
from servers import free_port, started

# The default without NO_ENGINE_SUBSTITUTION: "ENGINE=InnoDB" selects the enforced engine.
SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER"
POOL = 128 << 20
USER, PASSWORD, DATABASE = "app", "app", "app"
SECONDS_MAX = 1500
SHOWN_MAX = 1500   # characters shown of a difference

lines = []   # a summary line for each application, printed at the end of the run


class Side:
    """A server with a user, an empty database and one engine for all tables."""

    def __init__(self, engine: engines.Engine, new_server, options: dict):
        self.engine, self.label = engine, engine.label
        self.port = free_port()
        self.server = started(new_server({
            **engines.equal_memory(POOL), "innodb_log_file_size": 96 << 20,
            "loose_cheetah_log_file_size": "64M", "loose_cheetah_log_size_max": "256M",
            "skip_networking": "OFF", "bind_address": "127.0.0.1", "port": self.port,
            "character_set_server": "utf8mb4", "collation_server": "utf8mb4_general_ci",
            "default_storage_engine": engine.name, "enforce_storage_engine": engine.name,
            "sql_mode": SQL_MODE, **options}), f"CREATE DATABASE {DATABASE}")
        for host in ("localhost", "127.0.0.1"):
            self.server.sql(f"CREATE USER {USER}@{host!r} IDENTIFIED BY {PASSWORD!r}")
            self.server.sql(f"GRANT ALL ON *.* TO {USER}@{host!r}")
        self.folder = self.server.folder / "work"
        self.folder.mkdir()
        self.seconds = {}   # times of the programs that `call` ran with `timed`
        self.notes = []     # for the summary line

    def call(self, *words, env: dict = None, cwd: Path = None, timed: str = "", ok=(0,),
             text: str = "") -> str:
        """Runs a program in this side's folder and returns its output. `timed` is the name under
        which to record its time, `ok` the accepted exit statuses, and `text` its standard input."""
        started = time.monotonic()
        done = subprocess.run(list(map(str, words)), env={**setup.library_environment(),
                                                          **(env or {})},
                              cwd=cwd or self.folder, text=True, errors="replace", input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS_MAX, check=False)
        end = "\n".join(done.stdout.splitlines()[-40:])
        assert done.returncode in ok, f"{self.label}: {words}: status {done.returncode}\n{end}"
        if timed:
            self.seconds[timed] = self.seconds.get(timed, 0) + time.monotonic() - started
        return done.stdout

    def tool(self, name: str, *words, **more) -> str:
        """Runs one of the server's client programs as root and returns its output."""
        return self.call(SERVER / "usr/bin" / name, f"--defaults-file={self.server.folder}/my.cnf",
                         f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}",
                         *words, **more)

    def rows(self, statement: str, database: str = DATABASE) -> list:
        return self.server.sql(statement, database)

    def value(self, statement: str, database: str = DATABASE):
        return self.rows(statement, database)[0][0]

    def has_only_its_engine(self, database: str = DATABASE) -> int:
        """Returns the number of tables. Fails if a table has another engine."""
        found = dict(self.rows("SELECT engine, COUNT(*) FROM information_schema.tables WHERE "
                               f"table_schema = {database!r} AND table_type = 'BASE TABLE' "
                               "GROUP BY engine"))
        assert list(found) == [self.engine.name], found
        return sum(found.values())

    def schema(self, database: str = DATABASE) -> list:
        """Returns information_schema's facts on the tables, without values that engines choose."""
        where = f"WHERE table_schema = {database!r}"
        return [self.rows(statement) for statement in (
            "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, "
            f"column_type, column_key, extra FROM information_schema.columns {where} ORDER BY 1, 3",
            "SELECT table_name, index_name, seq_in_index, column_name, non_unique, sub_part, "
            f"index_type FROM information_schema.statistics {where} ORDER BY 1, 2, 3",
            "SELECT constraint_name, table_name, referenced_table_name, update_rule, delete_rule, "
            "unique_constraint_name FROM information_schema.referential_constraints "
            f"WHERE constraint_schema = {database!r} ORDER BY 2, 1",
            "SELECT constraint_name, table_name, constraint_type FROM "
            f"information_schema.table_constraints {where} ORDER BY 2, 1")]

    def checksums(self, database: str = DATABASE) -> dict:
        """Returns each table's row count and checksum. CHECKSUM TABLE is unsuitable: for InnoDB it
        skips stored generated columns and uses stale bytes from the previous row."""
        found = {}
        for (name,) in self.rows("SELECT table_name FROM information_schema.tables WHERE "
                                 f"table_schema = {database!r} AND table_type = 'BASE TABLE'"):
            columns = ", ".join(f"HEX(`{row[0]}`), '+'" for row in
                                self.rows(f"SHOW COLUMNS FROM `{name}`", database))
            found[name] = self.rows(f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('/', {columns}))) FROM "
                                    f"`{name}`", database)
        return found

    def disk(self, database: str = DATABASE) -> int:
        """Returns the bytes of the data files, without logs, after all pages are written."""
        self.engine.write_out(self.server, database)
        return self.engine.bytes_on_disk(self.server, database)

    def folder_bytes(self) -> int:
        """Returns the size of the server's data folder in bytes, including logs."""
        return sum(engines.allocated(file) for file in self.server.data.rglob("*"))


def compared(what: str, first: dict, second: dict) -> None:
    """Fails if the outcomes of the two sides differ, and prints the differences."""
    differing = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    for key in differing:
        one, other = first.get(key), second.get(key)
        if isinstance(one, list) and isinstance(other, list):
            one, other = ([each for each in mine if each not in theirs] or "in another order"
                          for mine, theirs in ((one, other), (other, one)))
        print(f"{what}: {key} differs:\n  InnoDB:  {str(one)[:SHOWN_MAX]}\n"
              f"  Cheetah: {str(other)[:SHOWN_MAX]}")
    assert not differing, f"{what}: other than with InnoDB: {', '.join(map(str, differing))}"


@contextlib.contextmanager
def running(words: list, log, **environment):
    with open(log, "wb") as out, subprocess.Popen(
            list(map(str, words)), stdout=out, stderr=out,
            env={**os.environ, **environment}) as program:
        try:
            yield program
        finally:
            program.terminate()
