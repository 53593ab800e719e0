"""How large tables will be, how much room the way there takes, and whether it is there.

Tables are converted one after the other, the smaller ones first. While one is copied, the old and
the new one are both there; then the old one's room is free again.
"""

import os
import socket
from typing import NamedTuple

from cheetah_client.connection import Connection, ServerError, text

from .tables import Table

# Beyond the estimate: for logs, for the server's own work, and for a disk that others use too.
RESERVE_BYTES = 64 << 20
RESERVE_PART = 0.1
# Smaller tables are not looked at: thousands of them would take long, and weigh little.
SMALL_BYTES = 1 << 20
# InnoDB's files: their first pages belong to the file; a small table has single pages; each index
# of a larger one has whole extents, of which one is not full.
INNODB_FIRST_PAGES_BYTES = 80 << 10
INNODB_SINGLE_PAGES_BYTES = 512 << 10
INNODB_EXTENT_BYTES = 1 << 20


class Weight(NamedTuple):
    """Bytes of a table before and after; by how many percent `after` may be wrong; bytes of
    temporary files while it is copied; bytes that are free again when the old one has gone: those
    of its own files."""

    before: int
    after: int
    error_percent: float
    temporary: int
    freed: int


def weigh_for_cheetah(server: Connection, table: Table) -> Weight:
    """By CHEETAH_COMPRESSION_ESTIMATE, which reads a sample of the rows. Sorting takes as much as
    the indexes at most. A small table counts as it is."""
    if table.bytes_now < SMALL_BYTES:
        return Weight(table.bytes_now, table.bytes_now, 0.0, table.bytes_of_indexes,
                      table.bytes_in_files)
    codec = server.value("SELECT @@cheetah_default_compression")
    rows = server.run(
        "SELECT COMPRESSION, IFNULL(KEY_BLOCK_SIZE, 0), ESTIMATED_BYTES, IFNULL(ERROR_PERCENT, 0) "
        "FROM information_schema.CHEETAH_COMPRESSION_ESTIMATE WHERE "
        f"TABLE_SCHEMA = {text(table.place.schema)} AND TABLE_NAME = {text(table.place.table)}")
    size = table.key_block_size
    if size < 8 or "row_format=compressed" in table.options.lower():
        codec = "zstd"
    fits = ([row for row in rows if row[0] == codec and int(row[1]) == size]
            or [row for row in rows if row[0] == codec] or rows)
    after, error = (int(fits[0][2]), float(fits[0][3])) if fits else (table.bytes_now, 0.0)
    return Weight(table.bytes_now, after, error, table.bytes_of_indexes, table.bytes_in_files)


def weigh_for_innodb(server: Connection, table: Table) -> Weight:
    """By the bytes of the pages before compression; InnoDB may take half as much again. Each
    partition is a file. Rows of a table with constraints are copied twice: the second time InnoDB
    checks them. The room of a table of Cheetah comes back later, so none is counted."""
    rows = server.run(
        "SELECT LOGICAL_BYTES, INDEX_COUNT FROM information_schema.CHEETAH_TABLES WHERE "
        f"TABLE_SCHEMA = {text(table.place.schema)} AND "
        f"SUBSTRING_INDEX(TABLE_NAME, '#P#', 1) = {text(table.place.table)}")
    after = max(sum(innodb_file_bytes(*map(int, row)) for row in rows), table.bytes_now)
    return Weight(table.bytes_now, after, 50.0, after, 0)


def innodb_file_bytes(bytes_of_pages: int, indexes: int) -> int:
    """What InnoDB's file of a table takes that has so many bytes of pages, and indexes with the
    clustered one."""
    if bytes_of_pages < INNODB_SINGLE_PAGES_BYTES:
        return INNODB_FIRST_PAGES_BYTES + bytes_of_pages
    return bytes_of_pages + (indexes + 1) * INNODB_EXTENT_BYTES


def peak(weights: list) -> int:
    """The most bytes beyond those of now that are in use at any time, tables being converted in
    this order."""
    used = most = 0
    for weight in weights:
        largest = round(weight.after * (1 + weight.error_percent / 100))
        most = max(most, used + largest + weight.temporary)
        used += weight.after - weight.freed
    return most


def needed(weights: list) -> int:
    """The bytes that must be free before these tables are converted in this order."""
    return round(peak(weights) * (1 + RESERVE_PART)) + RESERVE_BYTES if weights else 0


def free_bytes(server: Connection) -> tuple:
    """Bytes that are free for the server's data, and where; None and why, if that cannot be told
    from here."""
    folder, host, client = server.run(
        "SELECT @@datadir, @@hostname, (SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = "
        "CONNECTION_ID())")[0]
    if client == "localhost" and host == socket.gethostname() and os.path.isdir(folder):
        try:
            found = os.statvfs(folder)
            return found.f_bavail * found.f_frsize, folder
        except OSError:
            pass
    try:
        disks = server.run("SELECT Path, Available FROM information_schema.DISKS")
    except ServerError:
        return None, (f"the server is on another machine ({host}), and its plugin DISKS is not "
                      "loaded")
    fits = [(len(path), int(kilobytes)) for path, kilobytes in disks
            if folder.startswith(path.rstrip("/") + "/")]
    if not fits:
        return None, f"no disk of information_schema.DISKS holds {folder}"
    return max(fits)[1] * 1024, f"{folder} on {host}"
