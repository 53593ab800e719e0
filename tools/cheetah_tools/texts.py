"""Real text for measurements: rows of MediaWiki's table `text` as a dump, or as one long line.

From the shared data set of Wikipedia articles where it lies beside the project, otherwise every
text file of the MariaDB source package (a file is a row), which compresses better than articles do.
Either gives the same rows each time; a small dump is the beginning of a large one, and what there
is ends it.
"""

import itertools
import re
import tarfile

from . import corpus, dump, setup
from .paths import shared_data
from .say import Failure

WIKIPEDIA = "enwiki_text_plain"
INSERT_BYTES = 1_000_000
NOT_PLAIN = re.compile(rb"\\.|['\"\x00-\x1f\x7f-\xff]", re.S)   # and what dumps write for line ends
# As the document has it, but for the name.
COLUMNS = ("`old_id` int(8) unsigned NOT NULL AUTO_INCREMENT, `old_text` mediumblob NOT NULL, "
           "`old_flags` tinyblob NOT NULL, PRIMARY KEY (`old_id`)")


def wikipedia_file():
    """The shared data set; it may be absent."""
    return shared_data() / f"{WIKIPEDIA}.sql.zst"


def from_wikipedia() -> bool:
    """Whether the texts of this machine are Wikipedia's."""
    return wikipedia_file().exists()


def missing() -> str:
    """Why there are no texts here, or the empty string."""
    if from_wikipedia():
        return ""
    try:
        setup.source_tarball()
    except Failure as failure:
        return f"no texts at hand: {wikipedia_file().name} is not there, and {failure}"
    return ""


def rows():
    """The rows as in an INSERT, `(1,'..','utf-8')`, one after the other."""
    return (wikipedia_rows(wikipedia_file()) if from_wikipedia()
            else source_rows(setup.source_tarball()))


def wikipedia_rows(place):
    """The rows of the table `text` of a dump with one row in each line, as mariadb-dump 10.11
    writes it."""
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


def source_rows(place):
    """One row for each text file of an archive."""
    numbers = itertools.count(1)
    with tarfile.open(place) as archive:
        for member in archive:
            content = archive.extractfile(member).read() if member.isfile() else b""
            if content and corpus.is_text(content):
                yield b"(%d,'%s','utf-8')" % (next(numbers), corpus.escaped(content))


def write_dump(target, bytes_max: int, found=None) -> int:
    """Write CREATE TABLE `text` and rows until there are `bytes_max` bytes, or no more rows; the
    bytes of the rows. `found`: rows; those of `rows` unless given."""
    written = 0
    with open(target, "wb") as out:
        out.write(f"SET NAMES utf8mb4;\nCREATE TABLE `text` ({COLUMNS}) ENGINE=InnoDB;\n".encode())
        found = found or rows()
        while written < bytes_max:
            batch = take(found, min(INSERT_BYTES, bytes_max - written))
            if not batch:
                break
            out.write(b"INSERT INTO `text` VALUES\n" + b",\n".join(batch) + b";\n")
            written += sum(map(len, batch))
        found.close()
    return written


def write_plain(target, bytes_least: int) -> None:
    """Write at least so many bytes of the texts as one line: printable ASCII without quotes and
    backslashes, words between single blanks. The texts begin again when there are no more."""
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


def take(found, bytes_least: int) -> list:
    """The next rows: at least so many bytes, while there are any."""
    batch, size = [], 0
    while size < bytes_least and (row := next(found, None)) is not None:
        batch.append(row)
        size += len(row)
    return batch
