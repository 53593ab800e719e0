"""Making a backup: mariadb-backup for the rest of the server, the engine's part beside it.

mariadb-backup blocks commits, notes where the binary log is, and releases them; at that moment the
engine pins its state. It is written afterwards, by links, so that it takes no time and no space,
and copied from there while the server works on.
"""

import contextlib
import datetime
import os
import shutil
from pathlib import Path

from cheetah_client.say import Failure, Progress, line, size

from . import copying, record, replication, snapshot, stages
from .record import CHEETAH, SERVER, File, Record
from .rest import prepare
from .server import MisreadLog, Server, mariadb_backup

# While mariadb-backup blocks commits, it waits for its own thread that copies InnoDB's log, which
# looks once in so many milliseconds: 1000 unless told otherwise.
LOG_COPY_INTERVAL = "--log-copy-interval=10"
POSITIONS = ("xtrabackup_binlog_info", "mariadb_backup_binlog_info")


def full(options) -> None:
    """The command."""
    to_folder(options, "full", None)


def incremental(options) -> None:
    """The command."""
    base = Path(options.base).resolve()
    to_folder(options, "incremental", Base(base, record.read(base)))


def stream(options) -> None:
    """The command."""
    work = Path(options.work).resolve()
    check_empty(work)
    with Server(options) as server:
        was_there = make_empty(work)
        with emptied_after_failure(work, was_there):
            with os.fdopen(options.output, "wb") as file:
                Making(options, work, copying.Stream(file)).run(server, "full", None)
    shutil.rmtree(work)


def to_folder(options, kind: str, base) -> None:
    """A backup in a folder that is new or empty; after a failure nothing is left in it."""
    target = Path(options.target).resolve()
    check_empty(target)
    with Server(options) as server:   # with its lock: no other cheetah-backup is at work
        was_there = make_empty(target)
        with emptied_after_failure(target, was_there):
            Making(options, target, copying.Folder(target)).run(server, kind, base)


def make_empty(folder: Path) -> bool:
    """See to it that the folder is there, durably, and empty. Whether it was there."""
    check_empty(folder)
    was_there = folder.is_dir()
    if not was_there:
        folder.mkdir(mode=copying.FOLDER_MODE)
        copying.sync_folder(folder.parent)
    return was_there


def check_empty(folder: Path) -> None:
    """Failure unless the folder is empty, or can be made."""
    if folder.is_dir():
        if any(folder.iterdir()):
            raise Failure(f"{folder} is not empty: name a folder that is new or empty")
    elif folder.exists():
        raise Failure(f"{folder} is no folder: name one that is new or empty")
    elif not folder.parent.is_dir():
        raise Failure(f"{folder.parent} does not exist: make it first")


@contextlib.contextmanager
def emptied_after_failure(folder: Path, was_there: bool):
    """Leave the folder as it was found, unless all goes well."""
    try:
        yield
    except BaseException:
        # The first failure is the one to tell.
        for place in [*folder.iterdir()] if folder.is_dir() else []:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    place.unlink()
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


class Base:
    """The backup before, whose files need not be copied again."""

    def __init__(self, folder: Path, found: Record):
        self.folder = folder
        self.files = {file.path: file for file in found.files}

    def same(self, path: str, source: Path, pace) -> str:
        """The digest of the file of that path, if it has the bytes of `source`; "" otherwise. Only
        a file that is not the very one of that time is read."""
        there, found = source.stat(), self.files.get(path)
        place = self.folder / path
        if not found or found.bytes != there.st_size or not is_of_length(place, found.bytes):
            return ""
        if (found.inode, found.written_ns) == (there.st_ino, there.st_mtime_ns):
            pace.skipped(there.st_size)
            return found.digest
        return found.digest if copying.digest_of(source, pace) == found.digest else ""


def is_of_length(place: Path, count: int) -> bool:
    """Whether there is a file of that length."""
    try:
        return place.stat().st_size == count
    except FileNotFoundError:
        return False


class Making:
    """One run. `work`: where mariadb-backup writes to, in the folder SERVER."""

    def __init__(self, options, work: Path, target):
        self.options, self.work, self.target = options, work, target
        self.files, self.linked_bytes = [], 0

    def run(self, server, kind: str, base) -> None:
        """Make it; the record is written last."""
        started = datetime.datetime.now(datetime.timezone.utc)
        rest = self.work / SERVER
        with pinned(self.options, server, rest) as (folder, manifest, position):
            self.take_engine(folder, manifest, base)
        self.take_rest(rest)
        made = Record(kind, started.strftime("%Y-%m-%dT%H:%M:%SZ"), server.version,
                      str(base.folder) if base else "", position[:2], position[2], self.files)
        self.target.finish(made.encode())
        line(f"{kind} backup of {size(made.bytes())}, of which {size(self.linked_bytes)} are links "
             f"into the one before" if base else f"{kind} backup of {size(made.bytes())}")
        tell_position(made)

    def take_engine(self, folder: Path, manifest, base) -> None:
        """The files of the snapshot, which go from there one by one."""
        total = snapshot.size_of(folder, manifest)
        progress = Progress("Cheetah's files", total)
        pace = copying.Pace(self.options.rate, progress)
        for path in snapshot.taking(folder, manifest):
            links_to = base if snapshot.is_final(path) else None
            self.add(f"{CHEETAH}/{path}", folder / path, links_to, pace)
        progress.end(size(total))

    def add(self, path: str, source: Path, base, pace) -> None:
        """Take one file, as a link into the backup before where that has it."""
        there = source.stat()
        digest = base.same(path, source, pace) if base else ""
        if digest and self.target.link(path, base.folder / path):
            self.linked_bytes += there.st_size
        else:
            digest = self.target.take(path, source, pace)
        self.files.append(File(path, there.st_size, digest, there.st_ino, there.st_mtime_ns))

    def take_rest(self, rest: Path) -> None:
        """The files of mariadb-backup, which are there already when the target is a folder, but not
        durably."""
        places = sorted(place for place in rest.rglob("*") if place.is_file())
        total = sum(place.stat().st_size for place in places)
        progress = Progress("the other engines' files", total)
        pace = copying.Pace(self.options.rate, progress)
        is_there = isinstance(self.target, copying.Folder)
        for place in places:
            path = f"{SERVER}/{place.relative_to(rest)}"
            if is_there:
                copying.sync_file(place)
                digest = copying.digest_of(place, pace)
            else:
                digest = self.target.take(path, place, pace)
            self.files.append(File(path, place.stat().st_size, digest))
        progress.end(size(total))


@contextlib.contextmanager
def pinned(options, server: Server, rest: Path):
    """Run mariadb-backup into `rest`, and make that ready. Gives the engine's snapshot of the very
    same moment, which goes at the end: its folder, its manifest, and the position of the binary
    log.

    mariadb-backup may misread InnoDB's log while the server writes it: the more often it looks, the
    more often it does. Then all that is done once more, with a look once a second."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(attempt(options, server, rest, LOG_COPY_INTERVAL))
        except MisreadLog:
            line("  mariadb-backup has misread InnoDB's log (perhaps MDEV-39468). Once more, with "
                 "looks that are rarer: commits may wait for a second")
            shutil.rmtree(rest)
            found = stack.enter_context(attempt(options, server, rest))
        yield found


@contextlib.contextmanager
def attempt(options, server: Server, rest: Path, *words):
    """One attempt of `pinned`; `words`: more for mariadb-backup."""
    begun, count_before = server.time(), stages.count(server)
    with replication.paused(server), server.announced():
        mariadb_backup(options, "the other engines", "--backup", f"--target-dir={rest}", *words,
                       *options.more)
    folder = server.place_of_snapshot()
    try:
        server.write_snapshot(folder)
        stages.check_alone(server, count_before)
        manifest = snapshot.read(folder)
        check_withdrawn(manifest)
        position = check_position(manifest, rest, begun)
        prepare(options, rest)
        yield folder, manifest, position
    finally:
        snapshot.remove(folder)


def check_withdrawn(manifest) -> None:
    """Failure when transactions were prepared while commits were blocked: InnoDB's part may have
    them so, and a server does not start on that."""
    if manifest.withdrawn:
        raise Failure(f"{manifest.withdrawn} transactions were prepared, and waited, when "
                      "mariadb-backup blocked commits, so a server might not start from the "
                      "backup. Workers of a replica do that: somebody has started one meanwhile. "
                      "Begin again")


def check_position(manifest, rest: Path, begun: str) -> list:
    """File, position and GTID of the binary log ("" where there is none). Failure when the snapshot
    is not that of this run."""
    notes = manifest.notes
    if notes.get("by") != "backup" or notes.get("pinned", "") < begun:
        raise Failure("the state that was pinned for this backup is gone: it was older than "
                      "cheetah_snapshot_max_age, the disk was full, or somebody else has had it "
                      "written. The server's error log says which. Begin again")
    told = next((rest / name for name in POSITIONS if (rest / name).is_file()), None)
    pinned = notes.get("binlog", "").split()
    if not told:
        return [*pinned, "", ""][:2] + [notes.get("gtid", "")]
    fields = told.read_text().split(maxsplit=2)
    if pinned and fields[:2] != pinned:
        raise Failure(f"mariadb-backup noted {' '.join(fields[:2])}, the engine "
                      f"{' '.join(pinned)}: another backup ran meanwhile. Begin again")
    told_gtid = fields[2] if len(fields) > 2 else ""
    return [*fields, "", ""][:2] + [later_gtids(told_gtid, notes.get("gtid", ""))]


def later_gtids(*positions: str) -> str:
    """Of each domain the later GTID. mariadb-backup notes what the server has applied as a replica
    or written itself; what was executed from another server's log is in the binary log alone."""
    gtids = (one.strip() for position in positions for one in position.split(",") if one.strip())
    latest = {}
    for gtid in gtids:
        domain, _, number = map(int, gtid.split("-"))
        latest[domain] = max(latest.get(domain, (0, "")), (number, gtid))
    return ",".join(latest[domain][1] for domain in sorted(latest))


def tell_position(made: Record) -> None:
    """Where in the binary log a backup is."""
    if not (made.position and made.position[0]):
        line("no position: the server has no binary log (log_bin)")
    else:
        line(f"position: {' '.join(made.position)}" + (f", GTID {made.gtid}" if made.gtid else ""))
