"""Dump files of mariadb-dump and mysqldump: fed to a server's client, with every table declared for
an engine.

An engine's column says which types or keys it does not have. Trials leave out, for every engine
alike, keys that some engines lack (`NOT_COMPARED`); which ones they are is said. A dump that is cut
off, has several databases or another encoding than it says is a Failure.
"""

import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path

import pymysql

from cheetah_tools import dump
from cheetah_tools.paths import show
from cheetah_tools.say import Failure

from . import live, packed

WRITERS = re.compile(rb"-- (MariaDB|MySQL) dump ")
END = b"-- Dump completed"
HEAD_LINES = 5
COMPLAINT_CHARACTERS = 1500
SAID_BYTES = 1 << 16    # of what a program says, as much is looked at at once
# loads dumps: a user that may do everything in their database, and has no right to the server's
# files and settings
LOADER = "lab_loader"
# Warnings about values that did not arrive as they are in the dump: wrong bytes, out of range, cut
# off. Who made a view, a trigger or a routine: what these do is done with the rights of that user,
# who might have some to files.
DEFINED = re.compile(rb"\s*(?:/\*M?!\d*\s*)?(?:CREATE|ALTER|DEFINER)\b")
WORD = rb"(?:`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|[\w.%$-]+)"
DEFINER = re.compile(rb"\bDEFINER\s*=\s*" + WORD + rb"(?:\s*@\s*" + WORD
                     + rb")?(?:\s*\(\s*\))?\s*", re.I)
LOST = re.compile(rb"(?:Warning|Note|Error) \(Code (?:1366|1264|1265|1300|1406)\): (.*)")
HINTS = {
    "GTID_PURGED": "dump it again with --set-gtid-purged=OFF",
    "Unknown collation":
        "the dump is of a newer server: replace that collation in it by one of MariaDB's",
    "max_allowed_packet": "a row is larger than 256 MB",
    "You have an error in your SQL syntax":
        "is the file the whole, unchanged output of mariadb-dump?",
}
# Lines of definitions that trials leave out, for every engine: FULLTEXT and SPATIAL keys, and
# foreign keys.
NOT_COMPARED = re.compile(
    rb"^\s*(?:(?P<kind>FULLTEXT|SPATIAL)\s+(?:KEY|INDEX)\b\s*(?:`(?P<key>(?:[^`]|``)+)`)?"
    rb"|(?:CONSTRAINT\s+`(?:[^`]|``)+`\s+)?(?P<foreign>FOREIGN)\s+KEY\b)", re.I)
KEYS_NAMED = 5
# The server's errors that say that an engine cannot have a table or a row, not that something went
# wrong.
REFUSALS = re.compile(r"ERROR (1031|1071|1112|1118|1178|1214|1235|1252|1286|1464|1478|4161)\b.*")


class Lines:
    """The lines of a dump, unpacked; iterating ends with a Failure when the dump is not whole.
    `bytes`: what was unpacked."""

    def __init__(self, path: Path, on_progress=lambda done, size: None):
        """`on_progress` is told bytes of the file that were read, and its size."""
        self.path, self.on_progress, self.bytes = Path(path), on_progress, 0

    def __iter__(self):
        written, ended, last = False, False, b""
        with packed.opened(self.path) as source:
            for number, line in enumerate(source):
                written |= number < HEAD_LINES and bool(WRITERS.match(line))
                ended = line.startswith(END) or (ended and not line.strip())
                last = line.strip() or last
                self.bytes += len(line)
                if number % 64 == 0:
                    self.on_progress(source.raw.done(), source.raw.size)
                yield line
            self.on_progress(source.raw.size, source.raw.size)
        if written and not ended:
            raise Failure(f"{show(self.path)} is cut off: its end, \"{END.decode()}\", is not "
                          f"there (the last line begins {beginning(last)}); make or fetch it again")
        if not written and not last.endswith((b";", b"*/")) and not last.startswith(b"--"):
            raise Failure(f"{show(self.path)} is cut off, or is no dump: it ends in the middle of "
                          f"a statement ({beginning(last)}); make or fetch it again")


def load(server, database: str, path: Path, clause: str, on_progress=lambda done, size: None,
         without: re.Pattern | None = None) -> int:
    """Feed a dump to the client, all tables declared by `clause`, `without` some lines of
    definitions; bytes of SQL. Blocks. Refusal when the server says that it does not take such a
    table or row; Failure for everything else, also for values that the server changed. Statements
    of a dump reach no file of this machine."""
    make_loader(server, database)
    lines = Lines(path, on_progress)
    with tempfile.TemporaryFile() as complaints:
        client = server.client(f"--user={LOADER}", "--local-infile=0", "--binary-mode",
                               "--show-warnings", "--unbuffered", database, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=complaints)
        lost, broken = Lost(client.stdout), None
        try:
            for line in dump.lines_for(lines, clause, without):
                client.stdin.write(without_definer(line))
            client.stdin.close()
        except BrokenPipeError:
            pass
        except Failure as failure:
            broken = failure
            client.kill()
        except BaseException:
            client.kill()
            client.wait()
            raise
        status = client.wait()
        lost.join()
        if broken:
            raise broken
        if status != 0:
            raise refusal(server, path, clause, end_of(complaints))
    if lost.count:
        raise Failure(f"{show(path)}: {lost.count:,} values do not arrive as they are in the dump; "
                      f"the first: {lost.first}. Is the dump in another encoding than it says (SET "
                      "NAMES)? Make it with --default-character-set=utf8mb4")
    return lines.bytes


def make_loader(server, database: str) -> None:
    """The database, and the user that loads a dump into it, and has rights there alone: whatever
    the dump makes does no more, either."""
    for statement in (f"CREATE DATABASE IF NOT EXISTS `{database}`",
                      f"CREATE USER IF NOT EXISTS {LOADER}@localhost",
                      f"GRANT ALL ON `{database}`.* TO {LOADER}@localhost",
                      f"GRANT BINLOG ADMIN ON *.* TO {LOADER}@localhost"):
        server.sql(statement)


def without_definer(line: bytes) -> bytes:
    """A line of a definition that names nobody as its maker: the loader is. Rows stay."""
    return DEFINER.sub(b"", line) if DEFINED.match(line) else line


class Lost(threading.Thread):
    """Reads all that a client says, and keeps how many values it lost, and what is said of the
    first."""

    def __init__(self, stream):
        """Begins at once; `join` it before looking at `count` and `first`."""
        super().__init__(daemon=True)
        self.stream, self.count, self.first = stream, 0, ""
        self.start()

    def run(self):
        """To the end of the stream, a line (or so much of it) at a time."""
        with self.stream:
            for line in iter(lambda: self.stream.readline(SAID_BYTES), b""):
                found = LOST.match(line)
                if found:
                    self.first = self.first or found[1].decode(errors="replace").strip()
                    self.count += 1


def unpacked(path: Path, folder: Path, on_progress=lambda done, size: None) -> Path:
    """The dump itself, when it is not packed, or its content in a file of this folder, written to
    the disk. Blocks."""
    if not packed.checked(path):
        return path
    target = folder / "unpacked.sql"
    with packed.opened(path) as source, open(target, "wb") as out:
        while block := source.read(1 << 20):
            out.write(block)
            on_progress(source.raw.done(), source.raw.size)
        out.flush()
        os.fsync(out.fileno())
    return target


class Refusal(Failure):
    """The server does not take a table or a row of the dump with this engine."""


def refusal(server, path: Path, clause: str, complaint: str) -> Failure:
    """What the client said, as a Failure or a Refusal."""
    if server.died():
        return Failure(f"loading {show(path)} ({clause}): {complaint}\n"
                       f"the server ended; the end of its log:\n{server.log_tail(20)}")
    complaint = next((line for line in reversed(complaint.splitlines())
                      if line.startswith("ERROR")), complaint[-COMPLAINT_CHARACTERS:])
    found = REFUSALS.search(complaint)
    if found:
        return Refusal(found.group(0))
    hint = next((f"; {what}" for word, what in HINTS.items() if word in complaint), "")
    return Failure(f"loading {show(path)} ({clause}): {complaint}{hint}")


def end_of(file) -> str:
    """The last that a program wrote."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - SAID_BYTES))
    return file.read().decode(errors="replace").strip()


def beginning(line: bytes) -> str:
    """How people find a line."""
    return repr(line[:40].decode(errors="replace"))


def describe(server, database: str) -> list:
    """Of each table: name, statement that makes it, rows, CHECKSUM TABLE. Blocks: it reads all."""
    return [{"name": name,
             "create": server.sql(f"SHOW CREATE TABLE {dump.quoted(name)}", database)[0][1],
             "rows": server.value(f"SELECT COUNT(*) FROM {dump.quoted(name)}", database),
             "checksum": server.sql(f"CHECKSUM TABLE {dump.quoted(name)}", database)[0][1]}
            for name in dump.base_tables(server, database)]


def digest(server, database: str, table: str) -> str:
    """Tells contents apart by their values alone; CHECKSUM TABLE changes with ROW_FORMAT, too, when
    a table has no columns of variable length."""
    # When a row of a versioned table began and ended is of the server that it is on.
    names = [name for name, made in server.sql(
                 "SELECT column_name, generation_expression FROM information_schema.columns "
                 f"WHERE table_schema = '{database}' AND table_name = {live.literal(table)} "
                 "ORDER BY ordinal_position")
             if made not in ("ROW START", "ROW END")]
    whole = ", ".join(f"IFNULL(MD5(CAST({dump.quoted(name)} AS BINARY)), '-')" for name in names)
    found = server.sql("SELECT BIT_XOR(CAST(CONV(LEFT(h, 16), 16, 10) AS UNSIGNED)), SUM(CRC32(h)) "
                       f"FROM (SELECT MD5(CONCAT({whole})) AS h FROM {dump.quoted(table)}) "
                       "AS hashes", database)
    return "-".join(map(str, found[0]))


def refused_tables(server, tables: list, clause: str) -> dict:
    """Tables (of `describe`) that cannot be declared by `clause`, without `NOT_COMPARED`, and why.
    Leaves nothing behind."""
    server.sql("CREATE DATABASE lab_probe")
    why = {}
    with server.connect("lab_probe") as connection:
        connection.query("SET SESSION foreign_key_checks = 0, innodb_strict_mode = 1")
        for table in tables:
            statement = dump.fit_table(table["create"].encode().splitlines(keepends=True), clause,
                                       NOT_COMPARED)
            try:
                connection.query(statement)
            except pymysql.MySQLError as failure:
                why[table["name"]] = str(failure.args[-1])
    server.sql("DROP DATABASE lab_probe")
    return why


def not_compared(tables: list) -> str:
    """In words, what of `tables` (of `describe`) is left out for every engine; the empty string
    when it is nothing."""
    keys, foreign = [], 0
    for table in tables:
        for found in filter(None, map(NOT_COMPARED.match, table["create"].encode().splitlines())):
            foreign += bool(found["foreign"])
            if found["kind"]:
                keys.append(f"{found['kind'].decode()} key "
                            f"{(found['key'] or b'').decode().replace('``', '`')} "
                            f"of {table['name']}")
    said = keys[:KEYS_NAMED]
    if len(keys) > KEYS_NAMED:
        said.append(f"{len(keys) - KEYS_NAMED} more FULLTEXT or SPATIAL keys")
    return "; ".join([*said, *([f"{foreign} foreign key{'s' if foreign > 1 else ''}"] if foreign
                               else [])])


def differences(server, database: str, tables: list) -> list:
    """In words, where the database has other tables, rows or contents than `tables` (of `describe`,
    each with its `digest`)."""
    here, said = {table["name"]: table for table in describe(server, database)}, []
    for table in tables:
        name, found = table["name"], here.get(table["name"])
        if not found:
            said.append(f"{name} is missing")
        elif found["rows"] != table["rows"]:
            said.append(f"{name} has {found['rows']:,} rows, the source has {table['rows']:,}")
        elif (found["checksum"] != table["checksum"]
                and digest(server, database, name) != table["digest"]):
            said.append(f"{name} has other contents than the source")
    return said
