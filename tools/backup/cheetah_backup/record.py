"""What a backup is: the file BACKUP in its folder, written last.

A folder without it is no backup. It lists every other file with its length and digest, and has a
digest of its own, so that what is missing, cut or changed is found by reading.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cheetah_client.say import Failure

NAME = "BACKUP"
FORMAT = 1
# Parts of a backup: what mariadb-backup has made, and the engine's own.
SERVER, CHEETAH = "server", "cheetah"


@dataclass
class File:
    """A file of a backup. `inode` and `written_ns` are those of the server's file: one with the
    same number, time and length has the same bytes, as nobody writes to it any more."""

    path: str
    bytes: int
    digest: str
    inode: int = 0
    written_ns: int = 0


@dataclass
class Record:
    """A backup. `position`: where the binary log was, as file and position, and as a GTID."""

    kind: str
    made: str
    server: str
    base: str = ""
    position: list = field(default_factory=list)
    gtid: str = ""
    files: list = field(default_factory=list)

    def encode(self) -> bytes:
        """The bytes of the file."""
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps({**content, "digest": digest_of(content)}, indent=1).encode() + b"\n"

    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)


def digest_of(content: dict) -> str:
    """Of what the file says."""
    return digest(json.dumps(content, sort_keys=True).encode())


def digest(data: bytes) -> str:
    """A checksum that nobody makes by chance, in hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def hasher():
    """The same, for what comes in parts."""
    return hashlib.blake2b(digest_size=32)


def decode(data: bytes, place) -> Record:
    """What the bytes of `place` say. Failure when they are not what was written."""
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
    """The record of the backup in a folder. Failure when there is none."""
    place = folder / NAME
    try:
        return decode(place.read_bytes(), place)
    except FileNotFoundError as failure:
        why = (f"it has no file {NAME}: nothing was backed up there, or it was not finished"
               if folder.is_dir() else "there is no such folder")
        raise Failure(f"{folder} is no backup: {why}") from failure
