"""The record of a backup: the file BACKUP in its folder, which is written last.

A folder without a record is not a backup. The record has the lengths and digests of all files, and
a digest of itself. Verification therefore finds missing, truncated and changed files."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cheetah_client.say import Failure

NAME = "BACKUP"
FORMAT = 1
# The parts of a backup: mariadb-backup's files, and the engine's files.
SERVER, CHEETAH = "server", "cheetah"


@dataclass
class File:
    """A file in a backup. `inode` and `written_ns` are of the server's file. The server never
    changes such files: with equal inode, modification time and length the content is the same."""

    path: str
    bytes: int
    digest: str
    inode: int = 0
    written_ns: int = 0


@dataclass
class Record:
    """A backup. `position`: file and offset of the binary log; `gtid`: the position as a GTID."""

    kind: str
    made: str
    server: str
    base: str = ""
    position: list = field(default_factory=list)
    gtid: str = ""
    files: list = field(default_factory=list)

    def encode(self) -> bytes:
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps({**content, "digest": digest_of(content)}, indent=1).encode() + b"\n"

    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def digest_of(content: dict) -> str:
    return hasher(json.dumps(content, sort_keys=True).encode()).hexdigest()


def hasher(data: bytes = b""):
    """Returns a hash object, to which data may be added in parts."""
    return hashlib.blake2b(data, digest_size=32)


def decode(data: bytes, place) -> Record:
    """Parses the record at `place`. Raises Failure if it is damaged."""
    damaged = Failure(f"{place} is damaged: this is no backup that can be relied on. Take another")
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise Failure(f"{place} was written by a newer cheetah-backup (format "
                          f"{content['format']}, this one knows {FORMAT}): use that one")
        told = content.pop("digest")
        if told != digest_of(content):
            raise damaged
        content.pop("format")
        content["files"] = [File(**one) for one in content["files"]]
        return Record(**content)
    except (ValueError, KeyError, TypeError) as failure:
        raise damaged from failure


def read(folder: Path) -> Record:
    """Reads the record of the backup in a folder. Raises Failure if there is no record."""
    place = folder / NAME
    try:
        return decode(place.read_bytes(), place)
    except FileNotFoundError as failure:
        why = (f"it has no file {NAME}: nothing was backed up there, or it was not finished"
               if folder.is_dir() else "there is no such folder")
        raise Failure(f"{folder} is no backup: {why}") from failure
