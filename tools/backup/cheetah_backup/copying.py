"""Copying files: how fast, with a digest, into a folder or into a stream."""

import ctypes
import errno
import fcntl
import io
import os
import tarfile
import time
from pathlib import Path

from . import record

CHUNK_BYTES = 1 << 20
# How much of a copy may wait to be written to the disk. The syncs of others wait for it, such as
# those of the server's logs, and so commits do.
UNSYNCED_BYTES_MAX = 4 << 20
FOLDER_MODE, FILE_MODE = 0o750, 0o640
# Why a file cannot have a second name: another file system, or one without links.
NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK}
# Why files cannot share their bytes: another file system, or one that does not share.
NO_CLONES = {*NO_LINKS, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
# Why a file cannot be written out in steps: the system, or the file system, does not do that.
NO_STEPS = {errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EOPNOTSUPP}
FICLONE = 0x40049409   # of linux/fs.h
WRITE_AND_WAIT = 7     # of sync_file_range(2): what is on its way, what is not yet, and its end


class Pace:
    """At most so many bytes a second (None: as fast as it goes), with a progress that is shown."""

    def __init__(self, rate, progress=None):
        self.rate, self.progress = rate, progress
        self.done, self.due = 0, time.monotonic()

    def skipped(self, count: int) -> None:
        """So many bytes more, which nobody has read."""
        self.done += count
        if self.progress:
            self.progress.show(min(self.done / max(self.progress.total, 1), 1.0))

    def moved(self, count: int) -> None:
        """So many bytes more; waits until that was not too fast."""
        self.skipped(count)
        if self.rate:
            now = time.monotonic()
            self.due = max(self.due, now - 1) + count / self.rate
            time.sleep(max(self.due - now, 0))


class Reader(io.RawIOBase):
    """A file that is read once, with the digest of what was read."""

    def __init__(self, source: Path, pace: Pace):
        super().__init__()
        self._file, self._pace, self.hash = open(source, "rb", buffering=0), pace, record.hasher()

    def readinto(self, buffer) -> int:
        """As every file."""
        count = self._file.readinto(buffer)
        self.hash.update(memoryview(buffer)[:count])
        self._pace.moved(count)
        return count

    def readable(self) -> bool:
        """As every file."""
        return True

    def close(self) -> None:
        """Its pages leave the system's cache: nobody reads them soon."""
        if not self.closed:
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._file.close()
        super().close()


def digest_of(source: Path, pace: Pace) -> str:
    """The digest of a file."""
    buffer = bytearray(CHUNK_BYTES)
    with Reader(source, pace) as reader:
        while reader.readinto(buffer):
            pass
        return reader.hash.hexdigest()


def copy(source: Path, target: Path, pace: Pace) -> str:
    """Copy a file, durably, to where none is; its digest."""
    buffer, unsynced = bytearray(CHUNK_BYTES), 0
    with Reader(source, pace) as reader, open(target, "xb", buffering=0, opener=opener) as writer:
        while count := reader.readinto(buffer):
            view = memoryview(buffer)[:count]
            while view:
                view = view[writer.write(view):]
            unsynced += count
            if unsynced >= UNSYNCED_BYTES_MAX:
                os.fdatasync(writer.fileno())
                unsynced = 0
        os.fsync(writer.fileno())
        return reader.hash.hexdigest()


def clone(source: Path, target: Path) -> bool:
    """Make a new file that shares the bytes of another until one is written to; False where that
    cannot be."""
    with open(source, "rb") as reader, open(target, "xb", opener=opener) as writer:
        try:
            fcntl.ioctl(writer.fileno(), FICLONE, reader.fileno())
        except OSError as failure:
            if failure.errno not in NO_CLONES:
                raise
        else:
            os.fsync(writer.fileno())
            return True
    target.unlink()
    return False


def sync_file(place: Path) -> None:
    """Make the bytes of a file durable that another program has written."""
    with open(place, "rb") as file:
        write_out(file)
        os.fsync(file.fileno())


def write_out(file) -> None:
    """Have a file written to the disk in small steps, so that little of it waits at any time. An
    error of the disk is told here: the sync that follows does not tell it again. Where steps cannot
    be, that sync writes all."""
    write_range = ctypes.CDLL(None, use_errno=True).sync_file_range
    for first in range(0, os.fstat(file.fileno()).st_size, UNSYNCED_BYTES_MAX):
        if write_range(file.fileno(), ctypes.c_int64(first), ctypes.c_int64(UNSYNCED_BYTES_MAX),
                       ctypes.c_uint(WRITE_AND_WAIT)) != 0:
            code = ctypes.get_errno()
            if code in NO_STEPS:
                return
            raise OSError(code, os.strerror(code), file.name)


def opener(path, flags) -> int:
    """For new files."""
    return os.open(path, flags, FILE_MODE)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Make the names in a folder and all below durable."""
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))


def sync_files(top: Path) -> None:
    """Make the bytes of a file durable, or of all files in a folder and below."""
    for place in [top, *top.rglob("*")]:
        if place.is_file():
            sync_file(place)


def give_to(owner, folder: Path) -> bool:
    """A folder and all below belong to that owner; False where only root could do it."""
    if os.geteuid() != 0:
        return False
    for place, folders, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in (*folders, *names))):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    return True


class Folder:
    """A backup that is being written as a folder."""

    def __init__(self, root: Path):
        self.root = root

    def take(self, path: str, source: Path, pace: Pace) -> str:
        """Copy a file to `path`; its digest."""
        target = self.root / path
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        return copy(source, target, pace)

    def link(self, path: str, other: Path) -> bool:
        """Give a file of another backup a second name; False where that cannot be. Syncs it before:
        that backup may have been copied to its place without a sync."""
        sync_file(other)
        target = self.root / path
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        try:
            os.link(other, target)
        except OSError as failure:
            if failure.errno not in NO_LINKS:
                raise
            return False
        return True

    def finish(self, data: bytes) -> None:
        """Write the record, when all else is durable."""
        sync_tree(self.root)
        place = self.root / record.NAME
        with open(place, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.root)


class Stream:
    """A backup that is being written as a tar archive."""

    def __init__(self, file):
        self._tar = tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT)

    def take(self, path: str, source: Path, pace: Pace) -> str:
        """As that of a folder."""
        with Reader(source, pace) as reader:
            self._add(path, source.stat().st_size, io.BufferedReader(reader, CHUNK_BYTES))
            return reader.hash.hexdigest()

    def link(self, _path: str, _other: Path) -> bool:
        """An archive has all files."""
        return False

    def finish(self, data: bytes) -> None:
        """The record comes last."""
        self._add(record.NAME, len(data), io.BytesIO(data))
        self._tar.close()

    def _add(self, path: str, count: int, file) -> None:
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode, entry.mtime = count, FILE_MODE, int(time.time())
        self._tar.addfile(entry, file)
