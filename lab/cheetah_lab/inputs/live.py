"""Tables of a live server, read only: `mariadb-dump --single-transaction` writes them to a file,
which then is a dump like others.

The server is given SELECT, SHOW and one transaction's consistent view; nothing is locked, nothing
is written there. (Tables of engines without transactions are read as they are at that moment.) The
password comes from the environment, and goes to the programs in a file in memory: no list of
processes shows it, and nothing of it comes to a disk.
"""

import contextlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cheetah_tools import dump, setup
from cheetah_tools.paths import SERVER
from cheetah_tools.say import Failure, note
from cheetah_tools.server import end_with_parent

PASSWORD = "CHEETAH_LAB_PASSWORD"
KEYS = ("host", "port", "user", "socket", "database", "tables")
EXAMPLE = "host=db1,user=reader,database=shop,tables=orders,customers"
OF_TABLES = f"FROM information_schema.tables WHERE {dump.WITH_ROWS}"
PROGRESS_SECONDS = 0.5
READ_ONLY = ["--single-transaction", "--quick", "--skip-lock-tables", "--skip-triggers",
             "--no-tablespaces", "--default-character-set=utf8mb4"]


@dataclass(frozen=True)
class Live:
    """A server and what to copy from it. `tables`: all of the database when empty."""

    database: str
    tables: tuple = ()
    host: str = ""
    port: int = 0
    user: str = ""
    socket: str = ""

    def __str__(self):
        place = self.socket or f"{self.host or 'localhost'}{f':{self.port}' if self.port else ''}"
        return f"{self.database} ({', '.join(self.tables) or 'all tables'}) at {place}"

    def option_lines(self) -> str:
        """Of a my.cnf."""
        said = {"host": self.host, "port": self.port, "user": self.user, "socket": self.socket,
                "password": os.environ.get(PASSWORD, "")}
        return "[client]\n" + "".join(f"{key} = {option_value(value)}\n"
                                      for key, value in said.items() if value)


def parse(words: str) -> Live:
    """Words such as EXAMPLE; Failure for those that are not understood. A piece without = belongs
    to the one before (tables)."""
    said = {}
    for piece in (piece.strip() for piece in words.split(",")):
        key, equals, value = piece.partition("=")
        if equals and key.strip() in KEYS:
            said[last := key.strip()] = [value.strip()]
        elif not equals and piece and said and last == "tables":
            said["tables"].append(piece)
        else:
            raise Failure(f"LIVE: {key.strip()!r} is not understood (known: {', '.join(KEYS)}; "
                          f"the password: ${PASSWORD}); an example: {EXAMPLE}")
    if not said.get("database", [""])[0]:
        raise Failure(f"LIVE: database= is missing; an example: {EXAMPLE}")
    port = said.get("port", ["0"])[0]
    if not port.isdigit():
        raise Failure(f"LIVE: port={port}: wanted a number")
    names = [name for name in said.get("tables", []) if name]
    if any(name.startswith("-") for name in [said["database"][0], *names]):
        raise Failure("LIVE: a name cannot begin with -")
    return Live(said["database"][0], tuple(names), said.get("host", [""])[0], int(port),
                said.get("user", [""])[0], said.get("socket", [""])[0])


def option_value(value) -> str:
    """A value in a my.cnf, whatever characters it has."""
    if "\n" in str(value):
        raise Failure(f"a line break in a name or in ${PASSWORD}: remove it")
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextlib.contextmanager
def options_file(live: Live):
    """A my.cnf in memory, for this user alone: its path for programs that get `pass_fds` of its
    number, and that number. It goes with the block, and with the process, however that ends."""
    number = os.memfd_create("my.cnf")
    try:
        os.fchmod(number, 0o600)     # the programs ignore one that others could write
        os.write(number, live.option_lines().encode())
        yield f"/proc/self/fd/{number}", number
    finally:
        os.close(number)


def words(program: str, options: str, *more) -> list:
    """The command line of a program of the private server."""
    return [str(SERVER / "usr/bin" / program), f"--defaults-file={options}",
            f"--character-sets-dir={SERVER / 'usr/share/mysql/charsets'}", *more]


def ask(live: Live, query: str) -> list:
    """Rows of a query, as lists of texts, in a session that cannot write; Failure when the server
    cannot be reached, or refuses."""
    with options_file(live) as (options, number):
        command = words("mariadb", options, "--init-command=SET SESSION TRANSACTION READ ONLY",
                        "--batch", "--skip-column-names", "-e", query)
        done = subprocess.run(command, env=setup.library_environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False,
                              pass_fds=[number])
    if done.returncode != 0:
        raise Failure(f"{live}: {done.stderr.strip()}{hint(done.stderr)}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def size(live: Live) -> int:
    """Bytes of the tables as their server counts them; Failure when it is out of reach, or lacks
    any."""
    rows = ask(live, f"SELECT table_name, data_length + index_length {OF_TABLES} "
                     f"AND table_schema = {literal(live.database)}")
    sizes = {name: int(count) if count.isdigit() else 0 for name, count in rows}
    missing = [name for name in live.tables if name not in sizes]
    if missing or not sizes:
        raise Failure(f"{live}: {f'no table {chr(44).join(missing)}' if missing else 'no tables'} "
                      f"that {live.user or 'this user'} may read in that database"
                      + (f"; there are {', '.join(sorted(sizes)[:20])}" if sizes else ""))
    return sum(count for name, count in sizes.items() if not live.tables or name in live.tables)


def without_transactions(live: Live) -> list:
    """Tables that one transaction does not show as of one moment (MyISAM, Aria)."""
    rows = ask(live, f"SELECT table_name {OF_TABLES} AND table_schema = {literal(live.database)} "
                     "AND engine NOT IN (SELECT engine FROM information_schema.engines "
                     "WHERE transactions = 'YES') ORDER BY 1")
    return [name for name, in rows if not live.tables or name in live.tables]


def fetch(live: Live, target: Path, expected: int = 0, on_progress=lambda done, size: None) -> None:
    """Write the dump to `target`: there whole, or not at all. Blocks; `on_progress` is told its
    bytes so far, and the `expected` ones."""
    fresh = target.with_name(target.name + ".new")
    loose = without_transactions(live)
    if loose:
        note(f"{', '.join(loose)}: engines without transactions, so these are copied as they are "
             "when their turn comes")
    try:
        with (options_file(live) as (options, number), open(fresh, "wb") as out,
              tempfile.TemporaryFile() as complaints):
            command = words("mariadb-dump", options, *READ_ONLY, live.database, *live.tables)
            dumping = subprocess.Popen(command, env=setup.library_environment(),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=complaints,
                                       pass_fds=[number], preexec_fn=end_with_parent)
            try:
                while dumping.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        dumping.wait(PROGRESS_SECONDS)
                    on_progress(min(fresh.stat().st_size, expected), expected)
            finally:
                dumping.kill()
                dumping.wait()
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip()
        if dumping.returncode != 0:
            raise Failure(f"{live}: {said[-1000:]}{hint(said)}")
        fresh.rename(target)
    finally:
        fresh.unlink(missing_ok=True)


def literal(name: str) -> str:
    """A name as a string in SQL."""
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def hint(complaint: str) -> str:
    """What to do about an error."""
    if "Access denied" in complaint:
        return (f"; the password comes from ${PASSWORD}; the user needs SELECT and SHOW VIEW "
                "on that database")
    return ("; are host, port or socket right, and does the server run?"
            if "Can't connect" in complaint else "")
