"""The demonstration's data: every text file of the MariaDB source package, as a dump.

One file is one row of MediaWiki's table `text`; a second table describes the files under several
indexes.
"""

import tarfile
import time
from pathlib import Path

from . import setup
from .paths import VAR, show
from .say import step

INSERT_BYTES = 1_000_000
HEAD = b"""SET NAMES utf8mb4;
SET time_zone = '+00:00';
SET foreign_key_checks = 0, unique_checks = 0;
CREATE TABLE `text` (
  `old_id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `old_text` mediumblob NOT NULL,
  `old_flags` tinyblob NOT NULL,
  PRIMARY KEY (`old_id`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
CREATE TABLE `file` (
  `file_id` int(10) unsigned NOT NULL,
  `path` varchar(255) NOT NULL,
  `suffix` varchar(20) NOT NULL,
  `size` int(10) unsigned NOT NULL,
  `modified` datetime NOT NULL,
  PRIMARY KEY (`file_id`),
  UNIQUE KEY `by_path` (`path`),
  KEY `by_suffix` (`suffix`,`size`),
  KEY `by_size` (`size`),
  KEY `by_time` (`modified`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
"""
ESCAPES = [(b"\\", b"\\\\"), (b"'", b"\\'"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\x1a", b"\\Z")]


class Inserts:
    """Collects rows into INSERT statements of about one megabyte, as mariadb-dump does."""

    def __init__(self, out, table: str):
        self.out, self.head = out, b"INSERT INTO `" + table.encode() + b"` VALUES "
        self.rows, self.size = [], 0

    def add(self, row: bytes) -> None:
        """Add a row such as `(1,'a')`."""
        self.rows.append(row)
        self.size += len(row)
        if self.size >= INSERT_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the statement."""
        if self.rows:
            self.out.write(self.head + b",".join(self.rows) + b";\n")
        self.rows, self.size = [], 0


def source_dump() -> Path:
    """The dump of the source package's text files; made once per version."""
    version = setup.ensure()["version"]
    place = VAR / f"demo-source-{version}.sql"
    if place.exists():
        return place
    step("turning the text files of the MariaDB source package into a dump: " + show(place))
    fresh = place.with_suffix(".new")
    files = []
    with open(fresh, "wb") as out, tarfile.open(setup.source_tarball()) as archive:
        out.write(HEAD)
        texts = Inserts(out, "text")
        for member in archive:
            if not member.isfile():
                continue
            content = archive.extractfile(member).read()
            if is_text(content):
                files.append((member.name.partition("/")[2], len(content), member.mtime))
                texts.add(b"(%d,_binary '%s','utf-8')" % (len(files), escaped(content)))
        texts.flush()
        described = Inserts(out, "file")
        for number, (path, size, modified) in enumerate(files, 1):
            described.add(file_row(number, path, size, modified))
        described.flush()
    fresh.rename(place)
    return place


def is_text(content: bytes) -> bool:
    """Text has no zero byte and is valid UTF-8 (or plain ASCII)."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def escaped(content: bytes) -> bytes:
    """The inside of a string literal."""
    for plain, safe in ESCAPES:
        content = content.replace(plain, safe)
    return content


def file_row(number: int, path: str, size: int, modified: float) -> bytes:
    """A row of the table of files."""
    suffix = Path(path).suffix[1:21]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(modified))
    return b"(%d,'%s','%s',%d,'%s')" % (number, escaped(path.encode()), escaped(suffix.encode()),
                                        size, when.encode())
