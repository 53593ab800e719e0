"""A user's own tables, made ready for a run: whatever they came as (a dump, MediaWiki's XML, a live
server), a dump that was loaded once.

Each input has a folder in `var/lab/inputs`: the dump (unless the user's own file is one), and
`input.json`, written last, with the tables, their rows and checksums. What was made ready once is
not made again; an import of XML goes on where it ended.
"""

import contextlib
import datetime
import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from cheetah_tools import dump, engines
from cheetah_tools.formatdata import write_dump
from cheetah_tools.paths import VAR, show
from cheetah_tools.say import Failure, note, step
from cheetah_tools.server import PrivateServer

from .. import room, store
from ..numbers import number
from . import dumps, live, mediawiki, packed

FOLDER = VAR / "lab/inputs"
ENGINE = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
DATABASE = "own"
POOL_BYTES = 256 << 20
# The room that is needed, by bytes of SQL or XML.
SERVER_BY_INPUT = 1.6       # InnoDB with indexes beside the SQL
DUMP_BY_INPUT = 1.2
WANTED = 'give DUMP=file, XML=file or LIVE="host=..,database=.."'


@dataclass(frozen=True)
class Input:
    """`dump`: the file to load. `label`: how people know it. `tables`: of dumps.describe, with
    `digest`. `sql_bytes`: unpacked; `innodb_bytes`: loaded into InnoDB DYNAMIC. `mark` changes with
    the contents."""

    kind: str
    label: str
    mark: str
    dump: str
    tables: list
    sql_bytes: int
    innodb_bytes: int
    made: str

    def rows(self) -> int:
        """Of all tables."""
        return sum(table["rows"] for table in self.tables)

    def said(self) -> str:
        """In a line."""
        return (f"{self.label}: {len(self.tables)} tables, {self.rows():,} rows, "
                f"{number(self.sql_bytes, 'bytes')} of SQL")


def prepare(kind: str, given: str) -> Input:
    """`kind`: dump, xml or live; `given`: the file, or the words of `live`. Blocks. Failure for an
    input that is not right, and for no room."""
    source = live.parse(given) if kind == "live" else Path(given).expanduser().resolve()
    if kind != "live":
        packed.checked(source)
    folder = FOLDER / name(kind, source)
    kept = recall(folder)
    if kept:
        note(f"{kept.said()} (made ready {kept.made}; to do so again, delete {show(folder)})")
        return kept
    if kind == "xml":
        mediawiki.check(source)
    expected = live.size(source) if kind == "live" else packed.expected_bytes(source)
    check_room(expected, kind)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)   # a user's own rows are nobody else's
    step(f"making {source if kind == 'live' else source.name} ready in {show(folder)}")
    with undone(folder, kind):
        made = (from_xml(folder, source) if kind == "xml"
                else from_live(folder, source, expected) if kind == "live"
                else from_dump(folder, source, kind, source.name))
        store.replace(folder / "input.json", json.dumps(asdict(made), indent=1) + "\n")
    note(made.said())
    return made


@contextlib.contextmanager
def undone(folder: Path, kind: str):
    """When an input is not made ready, nothing stays of it but an import of XML that can go on."""
    try:
        yield
    except KeyboardInterrupt:
        note("stopped: the same command "
             + ("goes on with the import" if kind == "xml" else "begins the input again"))
        raise
    finally:
        if kind != "xml" and not (folder / "input.json").exists():
            shutil.rmtree(folder, ignore_errors=True)


def experiments_for(found: list, given: list, named: bool) -> list:
    """Which experiments a run has: with an input those that want one, without it all others, unless
    they were named. `given`: (kind, words)."""
    if len(given) > 1:
        raise Failure("DUMP, XML and LIVE: one of them, not "
                      f"{' and '.join(kind.upper() for kind, _ in given)}")
    chosen = [experiment for experiment in found
              if named and not given
              or experiment.wants_input == bool(given) and not experiment.by_name]
    if given and not chosen:
        raise Failure(f"{given[0][0].upper()} is for the experiment own_data: leave EXPERIMENT "
                      "away, or name that one")
    if not given and any(experiment.wants_input for experiment in chosen):
        raise Failure(f"the experiment own_data wants an input: {WANTED}")
    return chosen


def give(chosen: list, given: list) -> dict:
    """Make the input ready, and hand it to the experiments that want one; what the run's
    description says of it. Blocks."""
    if not given:
        return {}
    made = prepare(*given[0])
    for experiment in chosen:
        experiment.input = made
    kind, words = given[0]
    return {"input": {"kind": made.kind, "label": made.label, "mark": made.mark,
                      "words": f'{kind.upper()}="{words}"',
                      "not_compared": dumps.not_compared(made.tables)}}


def recall(folder: Path):
    """The input that was made ready in this folder, or None."""
    place = folder / "input.json"
    if not place.exists():
        return None
    found = Input(**json.loads(place.read_text()))
    return found if Path(found.dump).exists() else None


def name(kind: str, source) -> str:
    """The folder's name: tells inputs apart, and a file from one that has changed."""
    mark = str(source) if kind == "live" else mediawiki.identity(source)
    words = source.database if kind == "live" else source.name
    return (f"{kind}-{re.sub(r'[^A-Za-z0-9.]+', '-', words)[:40]}-"
            f"{hashlib.sha256(mark.encode()).hexdigest()[:12]}")


def check_room(expected: int, kind: str) -> None:
    """Failure when the disk does not have what making ready, and then a trial, take at most."""
    needed = room.SERVER_BYTES + round(
        expected * (SERVER_BY_INPUT + (DUMP_BY_INPUT if kind != "dump" else 0)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(FOLDER).free - room.KEEP_BYTES
    if needed > free:
        raise Failure(f"no room: about {number(needed, 'bytes')} are needed for an input of "
                      f"{number(expected, 'bytes')} unpacked, but {show(FOLDER)} has "
                      f"{number(max(free, 0), 'bytes')} beside the "
                      f"{number(room.KEEP_BYTES, 'bytes')} that stay free: make room, or give a "
                      "part of it")


def from_dump(folder: Path, place: Path, kind: str, label: str) -> Input:
    """Load it into a server that goes again: whether it is whole, and what is in it."""
    shutil.rmtree(folder / "server", ignore_errors=True)
    try:
        with server(folder) as running:
            try:
                size = dumps.load(running, DATABASE, place, ENGINE, progress("loaded"))
            except dumps.Refusal as refusal:
                raise Failure(f"{label}: InnoDB does not take a table or a row of it, so there is "
                              f"nothing to compare with: {refusal}; give a dump without it "
                              "(mariadb-dump --ignore-table=database.table)") from refusal
            return described(running, kind, label, place, size)
    finally:
        shutil.rmtree(folder / "server", ignore_errors=True)


def from_xml(folder: Path, place: Path) -> Input:
    """Import it into a server that stays until it is finished, and dump that. When the file's
    content is wrong nothing stays: once it is mended, it is another input."""
    target, importing = folder / "dump.sql", False
    try:
        with server(folder) as running:
            found = mediawiki.Import(running, DATABASE, place, progress("imported"))
            importing = True
            found.run()
            importing = False
            tell_of(found)
            fresh = target.with_suffix(".new")
            write_dump(running, DATABASE, fresh, "--default-character-set=utf8mb4",
                       f"--ignore-table={DATABASE}.{mediawiki.MARKER}")
            fresh.rename(target)
            made = described(running, "xml", place.name, target, target.stat().st_size)
    except Failure as failure:
        if importing and not mediawiki.goes_on_after(failure):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder / "server", ignore_errors=True)
    return made


def tell_of(found: mediawiki.Import) -> None:
    """Say what an import has left out, or doubts."""
    for element, count in found.ignored.items():
        note(f"<{element}> is not imported: MediaWiki's tables have no column for it "
             f"({count:,} times)")
    for what, (count, first) in found.doubts.items():
        note(f"{count:,} {what} (the first: {first})")


def from_live(folder: Path, source: live.Live, expected: int) -> Input:
    """Copy its tables into a dump, of about so many bytes."""
    target = folder / "dump.sql"
    live.fetch(source, target, expected, progress("copied"))
    return from_dump(folder, target, "live", str(source))


def server(folder: Path) -> PrivateServer:
    """A server of InnoDB, in the input's folder."""
    return PrivateServer(folder / "server",
                         {**engines.equal_memory(POOL_BYTES), "innodb_flush_log_at_trx_commit": 2},
                         plugin=False)


def described(running, kind: str, label: str, place: Path, size: int) -> Input:
    """What a server has of it."""
    if not dump.base_tables(running, DATABASE):
        raise Failure(f"{label} has no tables: give another one")
    engines.INNODB.write_out(running, DATABASE)
    tables = [{**table, "digest": dumps.digest(running, DATABASE, table["name"])}
              for table in dumps.describe(running, DATABASE)
              if table["name"] != mediawiki.MARKER]
    mark = hashlib.sha256(json.dumps([[table["name"], table["rows"], table["digest"]]
                                      for table in tables]).encode()).hexdigest()[:16]
    made = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Input(kind, label, mark, str(place), tables, size,
                 engines.INNODB.bytes_on_disk(running, DATABASE), made)


def progress(what: str):
    """Tells of every tenth of the file."""
    tenths = [0]

    def tell(done: int, size: int, pages: int = 0) -> None:
        if done * 10 // max(size, 1) > tenths[0]:
            tenths[0] = done * 10 // max(size, 1)
            note(f"{what}: {tenths[0] * 10} %{f', {pages:,} pages' if pages else ''}")
    return tell
