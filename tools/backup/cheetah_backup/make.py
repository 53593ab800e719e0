"""Makes a backup: mariadb-backup copies the other engines' files, and this program the engine's.

mariadb-backup blocks commits, notes the position of the binary log, and releases commits. At that
moment the engine pins its state. After mariadb-backup ends, the server writes this state as a
snapshot of links, with almost no time and space, which is then copied while the server works."""

import contextlib
import datetime
import os
import secrets
import shutil
from pathlib import Path

from cheetah_client.say import Failure, line, size

from . import copying, record, replication, snapshot, stages
from .record import CHEETAH, SERVER, File, Record
from .server import MisreadLog, Server, mariadb_backup

# While mariadb-backup blocks commits, it waits for its thread that copies InnoDB's log. The thread
# checks the log at this interval in milliseconds; the default is 1000.
LOG_COPY_INTERVAL = "--log-copy-interval=10"
POSITIONS = ("xtrabackup_binlog_info", "mariadb_backup_binlog_info")


def full(options) -> None:
    to_folder(options, "full", None)


def incremental(options) -> None:
    base = Path(options.base).resolve()
    to_folder(options, "incremental", Base(base, record.read(base)))


def stream(options) -> None:
    work = Path(options.work).resolve()
    check_empty(work)
    with (Server(options) as server, emptied_after_failure(work),
          os.fdopen(options.output, "wb") as file):
        Making(options, work, copying.Stream(file)).run(server, "full", None)
    shutil.rmtree(work)


def to_folder(options, kind: str, base) -> None:
    """Makes a backup in a new or empty folder, which a failure leaves empty or removes."""
    target = Path(options.target).resolve()
    check_empty(target)
    # The server's lock comes first, so no other cheetah-backup runs.
    with Server(options) as server, emptied_after_failure(target):
        Making(options, target, copying.Folder(target)).run(server, kind, base)


def make_empty(folder: Path) -> bool:
    """Ensures that the folder exists durably and is empty. Returns whether it existed before."""
    check_empty(folder)
    was_there = folder.is_dir()
    if not was_there:
        folder.mkdir(mode=copying.FOLDER_MODE)
        copying.sync_folder(folder.parent)
    return was_there


def check_empty(folder: Path) -> None:
    if folder.is_dir():
        if any(folder.iterdir()):
            raise Failure(f"{folder} is not empty: name a folder that is new or empty")
    elif folder.exists():
        raise Failure(f"{folder} is no folder: name one that is new or empty")
    elif not folder.parent.is_dir():
        raise Failure(f"{folder.parent} does not exist: make it first")


@contextlib.contextmanager
def emptied_after_failure(folder: Path):
    """Makes the folder (see `make_empty`), and restores its state if the block fails."""
    was_there = make_empty(folder)
    try:
        yield was_there
    except BaseException:
        # Report the first failure, not errors of the cleanup.
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
    """The previous backup, whose unchanged files can be linked instead of copied."""

    def __init__(self, folder: Path, found: Record):
        self.folder = folder
        self.files = {file.path: file for file in found.files}

    def same(self, path: str, source: Path, pace) -> str:
        """Returns the digest of the previous backup's file at that path if it has the same content,
        or "". The content is read only if the inode or the modification time differs."""
        there, found = source.stat(), self.files.get(path)
        place = self.folder / path
        if not found or found.bytes != there.st_size or not is_of_length(place, found.bytes):
            return ""
        if (found.inode, found.written_ns) == (there.st_ino, there.st_mtime_ns):
            pace.skipped(there.st_size)
            return found.digest
        return found.digest if copying.digest_of(source, pace) == found.digest else ""


def is_of_length(place: Path, count: int) -> bool:
    return place.exists() and place.stat().st_size == count


class Making:
    """One backup run. mariadb-backup writes to the folder SERVER in `work`."""

    def __init__(self, options, work: Path, target):
        self.options, self.work, self.target = options, work, target
        self.files, self.linked_bytes = [], 0

    def run(self, server, kind: str, base) -> None:
        """Makes the backup. The record is written last."""
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
        """Adds the files of the snapshot, deleting each one from it once it is copied."""
        total = snapshot.size_of(folder, manifest)
        pace = copying.Pace(self.options.rate, "Cheetah's files", total)
        for path in snapshot.taking(folder, manifest):
            links_to = base if snapshot.is_final(path) else None
            self.add(f"{CHEETAH}/{path}", folder / path, links_to, pace)
        pace.progress.end(size(total))

    def add(self, path: str, source: Path, base, pace) -> None:
        """Adds one file, as a link to the previous backup if it has the same file."""
        there = source.stat()
        digest = base.same(path, source, pace) if base else ""
        if digest and self.target.link(path, base.folder / path):
            self.linked_bytes += there.st_size
        else:
            digest = self.target.take(path, source, pace)
        self.files.append(File(path, there.st_size, digest, there.st_ino, there.st_mtime_ns))

    def take_rest(self, rest: Path) -> None:
        """Adds mariadb-backup's files; in a folder they are in place, but not durable."""
        places = sorted(place for place in rest.rglob("*") if place.is_file())
        total = sum(place.stat().st_size for place in places)
        pace = copying.Pace(self.options.rate, "the other engines' files", total)
        is_there = isinstance(self.target, copying.Folder)
        for place in places:
            path = f"{SERVER}/{place.relative_to(rest)}"
            if is_there:
                copying.sync_file(place)
                digest = copying.digest_of(place, pace)
            else:
                digest = self.target.take(path, place, pace)
            self.files.append(File(path, place.stat().st_size, digest))
        pace.progress.end(size(total))


@contextlib.contextmanager
def pinned(options, server: Server, rest: Path):
    """Runs mariadb-backup into `rest` and prepares the result. Yields the engine's snapshot of the
    same moment (folder, manifest, position of the binary log), and deletes it at the end.
    mariadb-backup may misread InnoDB's log while the server writes to it, more often with a short
    interval. Then a second attempt checks the log only once a second."""
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
    """Makes one attempt for `pinned`. `words` are extra arguments for mariadb-backup."""
    begun, count_before = server.time(), stages.count(server)
    with replication.paused(server), server.announced():
        mariadb_backup(options, "the other engines", "--backup", f"--target-dir={rest}", *words,
                       *options.more)
    # a new name among the server's files that only this program uses
    name = f"{snapshot.PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    folder = server.engine_folder / "snapshots" / name
    try:
        server.write_snapshot(folder)
        stages.check_alone(server, count_before)
        manifest = snapshot.read(folder)
        check_withdrawn(manifest)
        position = check_position(manifest, rest, begun)
        mariadb_backup(options, "made ready to start from", "--prepare", f"--target-dir={rest}")
        yield folder, manifest, position
    finally:
        snapshot.remove(folder)


def check_withdrawn(manifest) -> None:
    """Raises Failure if transactions were prepared while commits were blocked. InnoDB's part of the
    backup may contain them as prepared, and a server does not start from such a backup."""
    if manifest.withdrawn:
        raise Failure(f"{manifest.withdrawn} transactions were prepared, and waited, when "
                      "mariadb-backup blocked commits, so a server might not start from the "
                      "backup. Workers of a replica do that: somebody has started one meanwhile. "
                      "Begin again")


def check_position(manifest, rest: Path, begun: str) -> list:
    """Returns file, position and GTID of the binary log. Raises Failure for another snapshot."""
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
    """Returns the latest GTID of each domain. mariadb-backup notes what the server wrote or applied
    as a replica; what it executed from another's binary log is only in the binary log."""
    gtids = (one.strip() for position in positions for one in position.split(",") if one.strip())
    latest = {}
    for gtid in gtids:
        domain, _, number = map(int, gtid.split("-"))
        latest[domain] = max(latest.get(domain, (0, "")), (number, gtid))
    return ",".join(latest[domain][1] for domain in sorted(latest))


def tell_position(made: Record) -> None:
    if not (made.position and made.position[0]):
        line("no position: the server has no binary log (log_bin)")
    else:
        line(f"position: {' '.join(made.position)}" + (f", GTID {made.gtid}" if made.gtid else ""))
