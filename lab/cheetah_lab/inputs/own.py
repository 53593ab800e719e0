"""A user's own tables, made ready for a run: a dump of mariadb-dump or mysqldump that was loaded
once into InnoDB, to learn whether it is whole, and the rows of its tables.

Each input has a folder in `var/lab/inputs`: the dump's text, where it came packed, and
`input.json`, written last. What was made ready once is not made again. A dump is run as it is, by a
private server: give only dumps that you trust.
"""

import datetime
import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from cheetah_tools import dump, engines
from cheetah_tools.paths import VAR, show
from cheetah_tools.say import Failure, note, step
from cheetah_tools.server import PrivateServer

from .. import room, store
from ..numbers import number

FOLDER = VAR / "lab/inputs"
ENGINE = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
DATABASE = "own"
POOL_BYTES = 256 << 20
ROOM_BY_BYTES = {".sql": 1.6}       # of InnoDB beside the SQL
PACKED_ROOM_BY_BYTES = 16           # the same, and the SQL
WRITERS, END = (b"-- MariaDB dump ", b"-- MySQL dump "), b"-- Dump completed"
LOOKED_AT_BYTES = 4096
WANTED = "give DUMP=file"
# Lines of definitions that are left out, for every engine: FULLTEXT, SPATIAL and foreign keys,
# which some engines lack.
NOT_COMPARED = re.compile(rb"^\s*(?:(?P<kind>FULLTEXT|SPATIAL)\s+(?:KEY|INDEX)\b"
                          rb"|(?:CONSTRAINT\s+`(?:[^`]|``)+`\s+)?(?P<foreign>FOREIGN)\s+KEY\b)",
                          re.I)


@dataclass(frozen=True)
class Input:
    """`dump`: the file to load. `label`: how people know it. `tables`: name -> rows and a sum over
    their values. `sql_bytes`: unpacked; `innodb_bytes`: loaded into InnoDB DYNAMIC. `mark` changes
    with the contents. `left_out`: how many keys of which kind are not compared."""

    label: str
    mark: str
    dump: str
    tables: dict
    sql_bytes: int
    innodb_bytes: int
    left_out: str
    made: str

    def rows(self) -> int:
        """Of all tables."""
        return sum(rows for rows, _ in self.tables.values())

    def said(self) -> str:
        """In a line."""
        return (f"{self.label}: {len(self.tables)} tables, {self.rows():,} rows, "
                f"{number(self.sql_bytes, 'bytes')} of SQL")


def prepare(given: str) -> Input:
    """`given`: the dump. Blocks. Failure for an input that is not right, and for no room."""
    source = Path(given).expanduser().resolve()
    if not source.is_file():
        raise Failure(f"no such dump: {source}")
    folder = FOLDER / name(source)
    kept = folder / "input.json"
    if kept.exists():
        found = Input(**json.loads(kept.read_text()))
        note(f"{found.said()} (made ready {found.made}; to do so again, delete {show(folder)})")
        return found
    check_room(source)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)   # a user's own rows are nobody else's
    step(f"making {source.name} ready in {show(folder)}")
    try:
        place = source
        if source.suffix != ".sql":
            place = folder / "dump.sql"
            dump.unpack(source, place)
        check_end(place)
        made = loaded(folder, place, source.name)
        store.replace(kept, json.dumps(asdict(made), indent=1) + "\n")
    finally:   # when it is not made ready, nothing stays of it
        if not kept.exists():
            shutil.rmtree(folder, ignore_errors=True)
    note(made.said())
    return made


def experiments_for(found: list, given: str, named: bool) -> list:
    """Which experiments a run has: with a dump those that want one, without it all others that need
    not be named, unless they were named."""
    chosen = [experiment for experiment in found
              if named and not given
              or experiment.wants_input == bool(given) and not experiment.by_name]
    if given and not chosen:
        raise Failure("DUMP is for the experiment own_data: leave EXPERIMENT away, or name that "
                      "one")
    if not given and any(experiment.wants_input for experiment in chosen):
        raise Failure(f"the experiment own_data wants an input: {WANTED}")
    return chosen


def give(chosen: list, given: str) -> dict:
    """Make the dump ready, and hand it to the experiments that want one; what the run's description
    says of it. Blocks."""
    if not given:
        return {}
    made = prepare(given)
    for experiment in chosen:
        experiment.input = made
    return {"input": {"label": made.label, "mark": made.mark, "words": f'DUMP="{given}"',
                      "not_compared": made.left_out}}


def name(source: Path) -> str:
    """The folder's name: tells inputs apart, and a file from one that has changed."""
    found = source.stat()
    mark = f"{source} {found.st_size} {found.st_mtime_ns}"
    return (f"dump-{re.sub(r'[^A-Za-z0-9.]+', '-', source.name)[:40]}-"
            f"{hashlib.sha256(mark.encode()).hexdigest()[:12]}")


def check_room(source: Path) -> None:
    """Failure when the disk does not have what making ready, and then a trial, take at most."""
    needed = room.SERVER_BYTES + round(
        source.stat().st_size * ROOM_BY_BYTES.get(source.suffix, PACKED_ROOM_BY_BYTES))
    FOLDER.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(FOLDER).free - room.KEEP_BYTES
    if needed > free:
        raise Failure(f"no room: about {number(needed, 'bytes')} are needed for {source.name}, but "
                      f"{show(FOLDER)} has {number(max(free, 0), 'bytes')} beside the "
                      f"{number(room.KEEP_BYTES, 'bytes')} that stay free: make room, or give a "
                      "part of it")


def check_end(place: Path) -> None:
    """Failure for a dump whose writer's last line is not there."""
    with open(place, "rb") as file:
        head = file.read(LOOKED_AT_BYTES)
        file.seek(max(0, place.stat().st_size - LOOKED_AT_BYTES))
        end = file.read()
    if any(word in head for word in WRITERS) and END not in end:
        raise Failure(f"{show(place)} is cut off: its end, \"{END.decode()}\", is not there; make "
                      "or fetch it again")


def loaded(folder: Path, place: Path, label: str) -> Input:
    """What InnoDB has of it, in a server that goes again."""
    running = PrivateServer(folder / "server", {**engines.equal_memory(POOL_BYTES),
                                                "innodb_flush_log_at_trx_commit": 2}, plugin=False)
    try:
        with running:
            load(running, place, ENGINE)
            tables = described(running)
            if not tables:
                raise Failure(f"{label} has no tables: give another one")
            engines.INNODB.write_out(running, DATABASE)
            made = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            mark = hashlib.sha256(json.dumps(tables).encode()).hexdigest()[:16]
            return Input(label, mark, str(place), tables, place.stat().st_size,
                         engines.INNODB.bytes_on_disk(running, DATABASE), left_out(place), made)
    finally:
        running.remove()


def load(server, place: Path, clause: str) -> None:
    """Load the dump, all tables declared by `clause`, without keys that some engines lack."""
    with open(place, "rb") as source:
        dump.load(server, DATABASE, source, clause, place.name, without=NOT_COMPARED)


def described(server) -> dict:
    """Of each table: rows, and a sum over their values."""
    return {table: [server.value(f"SELECT COUNT(*) FROM {dump.quoted(table)}", DATABASE),
                    str(dump.rows_sum(server, DATABASE, table))]
            for table in dump.base_tables(server, DATABASE)}


def differences(server, tables: dict) -> list:
    """In words, where the database has other tables, rows or values than these."""
    here, said = described(server), []
    for table, (rows, total) in tables.items():
        if table not in here:
            said.append(f"{table} is missing")
        elif here[table][0] != rows:
            said.append(f"{table} has {here[table][0]:,} rows, the source has {rows:,}")
        elif here[table][1] != total:
            said.append(f"{table} has other contents than the source")
    return said


def left_out(place: Path) -> str:
    """How many keys are not compared, by their kind; empty for none."""
    counts = {}
    with open(place, "rb") as source:
        inside = False
        for line in source:
            inside = inside or line.startswith(b"CREATE TABLE")
            for part in dump.definition_lines(line) if inside else ():
                found = NOT_COMPARED.match(part)
                if found:
                    kind = (found["kind"] or found["foreign"]).decode().upper()
                    counts[kind] = counts.get(kind, 0) + 1
            inside = inside and not line.rstrip().endswith(b";")
    return ", ".join(f"{count} {kind} key{'s' * (count > 1)}" for kind, count in counts.items())
