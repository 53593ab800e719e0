"""Copies files at a limited rate and with a digest, into a folder or a stream."""

import ctypes
import errno
import fcntl
import io
import os
import tarfile
import time
from pathlib import Path

from cheetah_client.say import Progress

from . import record

CHUNK_BYTES = 1 << 20
# The maximum number of bytes of a copy that are not yet synced. Other syncs, such as those of the
# server's logs, wait until these bytes are written, and delay commits.
UNSYNCED_BYTES_MAX = 4 << 20
FOLDER_MODE, FILE_MODE = 0o750, 0o640
# Errors if a file cannot have a second name: another file system, or one without links.
NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK}
# Errors if files cannot share their blocks: another file system, or one without reflinks.
NO_CLONES = {*NO_LINKS, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
# Errors if the system or the file system cannot write out a file in steps.
NO_STEPS = {errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EOPNOTSUPP}
FICLONE = 0x40049409   # from linux/fs.h
WRITE_AND_WAIT = 7     # flags of sync_file_range(2): wait before, write, wait after


class Pace:
    """Limits a copy to `rate` bytes a second (None: no limit). Shows its progress with a label."""

    def __init__(self, rate, label: str = "", total: int = 0):
        self.rate, self.progress = rate, Progress(label, total) if label else None
        self.done, self.due = 0, time.monotonic()

    def skipped(self, count: int) -> None:
        self.done += count
        if self.progress:
            self.progress.show(min(self.done / max(self.progress.total, 1), 1.0))

    def moved(self, count: int) -> None:
        """Counts bytes that were read, and sleeps if the rate is exceeded."""
        self.skipped(count)
        if self.rate:
            now = time.monotonic()
            self.due = max(self.due, now - 1) + count / self.rate
            time.sleep(max(self.due - now, 0))


class Reader(io.RawIOBase):
    """A file that is read once, and the digest of the bytes read."""

    def __init__(self, source: Path, pace: Pace):
        super().__init__()
        self._file, self._pace, self.hash = open(source, "rb", buffering=0), pace, record.hasher()

    def readinto(self, buffer) -> int:
        count = self._file.readinto(buffer)
        self.hash.update(memoryview(buffer)[:count])
        self._pace.moved(count)
        return count

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Closes the file and drops its pages from the page cache; they are not read again soon."""
        if not self.closed:
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._file.close()
        super().close()


def digest_of(source: Path, pace: Pace) -> str:
    buffer = bytearray(CHUNK_BYTES)
    with Reader(source, pace) as reader:
        while reader.readinto(buffer):
            pass
        return reader.hash.hexdigest()


def copy(source: Path, target: Path, pace: Pace) -> str:
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
    """Creates a file with shared blocks. Returns False if the file system cannot share them."""
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
    """Syncs the content of a file that another program wrote."""
    with open(place, "rb") as file:
        write_out(file)
        os.fsync(file.fileno())


def write_out(file) -> None:
    """Writes a file to the disk in small steps, so that few dirty bytes are pending. Raises disk
    errors, which the next sync does not report again. Without steps, the next sync writes all."""
    write_range = ctypes.CDLL(None, use_errno=True).sync_file_range
    for first in range(0, os.fstat(file.fileno()).st_size, UNSYNCED_BYTES_MAX):
        if write_range(file.fileno(), ctypes.c_int64(first), ctypes.c_int64(UNSYNCED_BYTES_MAX),
                       ctypes.c_uint(WRITE_AND_WAIT)) != 0:
            code = ctypes.get_errno()
            if code in NO_STEPS:
                return
            raise OSError(code, os.strerror(code), file.name)


def opener(path, flags) -> int:
    return os.open(path, flags, FILE_MODE)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))


def give_to(owner, folder: Path) -> bool:
    """Changes the owner of a folder and all in it. Returns False if the process is not root."""
    if os.geteuid() != 0:
        return False
    for place, folders, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in (*folders, *names))):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    return True


class Folder:
    def __init__(self, root: Path):
        self.root = root

    def take(self, path: str, source: Path, pace: Pace) -> str:
        target = self.root / path
        target.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        return copy(source, target, pace)

    def link(self, path: str, other: Path) -> bool:
        """Creates a hard link to a file of another backup, synced first, as it may have been copied
        there without a sync. Returns False if the file system cannot do so."""
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
        """Writes the record after all other files are durable."""
        sync_tree(self.root)
        place = self.root / record.NAME
        with open(place, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.root)


class Stream:
    def __init__(self, file):
        self._tar = tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT)

    def take(self, path: str, source: Path, pace: Pace) -> str:
        with Reader(source, pace) as reader:
            self._add(path, source.stat().st_size, io.BufferedReader(reader, CHUNK_BYTES))
            return reader.hash.hexdigest()

    def link(self, _path: str, _other: Path) -> bool:
        """Returns False, because an archive contains all files."""
        return False

    def finish(self, data: bytes) -> None:
        """Writes the record, which is the last file of the archive."""
        self._add(record.NAME, len(data), io.BytesIO(data))
        self._tar.close()

    def _add(self, path: str, count: int, file) -> None:
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode, entry.mtime = count, FILE_MODE, int(time.time())
        self._tar.addfile(entry, file)
