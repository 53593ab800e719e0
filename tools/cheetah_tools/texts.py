"""Real text for measurements and the demonstration: MediaWiki's table `text`, or one long line.

The texts come from the shared data set of Wikipedia articles if it exists next to the project,
otherwise from the text files of the MariaDB source package (one file per row), which compress
better than articles. Either source gives the same rows each time, so a small dump is the beginning
of a large one. A dump ends early if the texts run out."""

import re
import tarfile
import time
from pathlib import Path

from . import dump, setup
from .paths import VAR, shared_data, show
from .say import Failure, step

WIKIPEDIA = "enwiki_text_plain"
INSERT_BYTES = 1_000_000
# `write_plain` replaces these with blanks: escapes of dumps, quotes, control and non-ASCII bytes.
NOT_PLAIN = re.compile(rb"\\.|['\"\x00-\x1f\x7f-\xff]", re.S)
# The columns of the document's table.
COLUMNS = ("`old_id` int(8) unsigned NOT NULL AUTO_INCREMENT, `old_text` mediumblob NOT NULL, "
           "`old_flags` tinyblob NOT NULL, PRIMARY KEY (`old_id`)")

# The demonstration's tables: each file is a row of the first; the second describes the files.
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
    """Collects rows into INSERT statements of about one megabyte, like mariadb-dump."""

    def __init__(self, out, table: str):
        self.out, self.head = out, b"INSERT INTO `" + table.encode() + b"` VALUES\n"
        self.rows, self.size, self.written = [], 0, 0   # `written`: bytes of all rows

    def add(self, row: bytes) -> None:
        """Adds a row such as `(1,'a')`."""
        self.rows.append(row)
        self.size += len(row)
        self.written += len(row)
        if self.size >= INSERT_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            self.out.write(self.head + b",\n".join(self.rows) + b";\n")
        self.rows, self.size = [], 0


def wikipedia_file():
    return shared_data() / f"{WIKIPEDIA}.sql.zst"


def from_wikipedia() -> bool:
    """Returns whether this machine's texts are Wikipedia's."""
    return wikipedia_file().exists()


def missing() -> str:
    """Returns why there are no texts, or ""."""
    try:
        if not from_wikipedia():
            setup.source_tarball()
    except Failure as failure:
        return f"no texts at hand: {wikipedia_file().name} is not there, and {failure}"
    return ""


def rows():
    return (wikipedia_rows(wikipedia_file()) if from_wikipedia()
            else source_rows(setup.source_tarball()))


def wikipedia_rows(place):
    """Yields the rows of `text` from a dump with one row per line, as mariadb-dump 10.11 writes."""
    source = dump.open_dump(place)
    try:
        inside = False
        for line in source.stdout:
            if line.startswith(b"INSERT INTO"):
                inside = line.startswith(b"INSERT INTO `text`")
            elif inside and line.startswith(b"("):
                yield line.rstrip(b"\n")[:-1]
        source.stdout.close()
        if source.wait() != 0:
            raise Failure(f"{place.name}: cannot be read to its end: "
                          f"{source.stderr.read().decode(errors='replace').strip()}. "
                          "Is the file whole?")
    finally:
        source.kill()
        source.wait()


def source_files(place):
    """Yields (entry, content) of each text file of an archive."""
    with tarfile.open(place) as archive:
        for member in archive:
            content = archive.extractfile(member).read() if member.isfile() else b"\0"
            if is_text(content):
                yield member, content


def source_rows(place):
    """Yields one row for each nonempty text file of an archive."""
    contents = (content for _, content in source_files(place) if content)
    for number, content in enumerate(contents, 1):
        yield b"(%d,'%s','utf-8')" % (number, escaped(content))


def source_dump() -> Path:
    """Returns the demonstration's dump of the source package's texts, made once per version."""
    place = VAR / f"demo-source-{setup.ensure()['version']}.sql"
    if place.exists():
        return place
    step("turning the text files of the MariaDB source package into a dump: " + show(place))
    fresh, files = place.with_suffix(".new"), []
    with open(fresh, "wb") as out:
        out.write(HEAD)
        texts, described = Inserts(out, "text"), Inserts(out, "file")
        for member, content in source_files(setup.source_tarball()):
            files.append((member.name.partition("/")[2], len(content), member.mtime))
            texts.add(b"(%d,_binary '%s','utf-8')" % (len(files), escaped(content)))
        texts.flush()
        for number, (path, size, modified) in enumerate(files, 1):
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(modified)).encode()
            words = (escaped(word.encode()) for word in (path, Path(path).suffix[1:21]))
            described.add(b"(%d,'%s','%s',%d,'%s')" % (number, *words, size, when))
        described.flush()
    fresh.rename(place)
    return place


def write_dump(target, bytes_max: int, found=None) -> int:
    """Writes CREATE TABLE `text` and rows until there are `bytes_max` bytes of rows, or no more
    rows; returns the bytes of the rows. `found` are the rows, by default those of `rows`."""
    with open(target, "wb") as out:
        out.write(f"SET NAMES utf8mb4;\nCREATE TABLE `text` ({COLUMNS}) ENGINE=InnoDB;\n".encode())
        inserts, found = Inserts(out, "text"), found or rows()
        for row in found:
            inserts.add(row)
            if inserts.written >= bytes_max:
                break
        inserts.flush()
        found.close()
    return inserts.written


def write_plain(target, bytes_least: int) -> None:
    """Writes at least so many bytes of the texts, repeated if need be, as one line: printable ASCII
    without quotes and backslashes, words separated by single blanks."""
    written = 0
    with open(target, "wb") as out:
        while written < bytes_least:
            before = written
            for row in rows():
                plain = b" ".join(NOT_PLAIN.sub(b" ", row).split()) + b" "
                out.write(plain)
                written += len(plain)
                if written >= bytes_least:
                    break
            if written == before:
                raise Failure(f"no texts at hand: {missing() or 'there are none'}")


def is_text(content: bytes) -> bool:
    """Returns whether the content is text: valid UTF-8 without a zero byte."""
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def escaped(content: bytes) -> bytes:
    for plain, safe in ESCAPES:
        content = content.replace(plain, safe)
    return content
