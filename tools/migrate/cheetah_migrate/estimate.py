"""Estimates the sizes of converted tables and the free space that the conversion needs.

Tables are converted one after another, the smaller ones first. While a table is copied, both the
old and the new table exist. Afterwards the old table's space is free."""

import os
import socket
from typing import NamedTuple

from cheetah_client.connection import Connection, ServerError, text

from .tables import Table

# Added to the estimate: space for logs, the server's own work, and other users of the disk.
RESERVE_BYTES = 64 << 20
RESERVE_PART = 0.1
# Smaller tables are not estimated: thousands would take long, and are a small part of the total.
SMALL_BYTES = 1 << 20
# InnoDB's files: the first pages hold file metadata. A small table consists of single pages. In a
# larger table each index has full extents, of which one is partly filled.
INNODB_FIRST_PAGES_BYTES = 80 << 10
INNODB_SINGLE_PAGES_BYTES = 512 << 10
INNODB_EXTENT_BYTES = 1 << 20


class Weight(NamedTuple):
    """A table's bytes before and after the conversion, the error of `after` in percent, the bytes
    of temporary files, and those freed with the old table's own files."""

    before: int
    after: int
    error_percent: float
    temporary: int
    freed: int


def weigh(server: Connection, table: Table, engine: str) -> Weight:
    """Estimates the sizes of a table that gets this engine."""
    return (weigh_for_cheetah if engine.upper() == "CHEETAH" else weigh_for_innodb)(server, table)


def weigh_for_cheetah(server: Connection, table: Table) -> Weight:
    """Estimates with CHEETAH_COMPRESSION_ESTIMATE, which reads a sample of the rows. Sorting needs
    at most the size of the indexes. A small table is estimated at its current size."""
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
    """Estimates from the uncompressed pages, or half more; each partition is a file. Rows with
    constraints are copied twice. The Cheetah table's space, freed later, does not count."""
    rows = server.run(
        "SELECT LOGICAL_BYTES, INDEX_COUNT FROM information_schema.CHEETAH_TABLES WHERE "
        f"TABLE_SCHEMA = {text(table.place.schema)} AND "
        f"SUBSTRING_INDEX(TABLE_NAME, '#P#', 1) = {text(table.place.table)}")
    after = max(sum(innodb_file_bytes(*map(int, row)) for row in rows), table.bytes_now)
    return Weight(table.bytes_now, after, 50.0, after, 0)


def innodb_file_bytes(bytes_of_pages: int, indexes: int) -> int:
    """Returns the bytes of InnoDB's file for a table with these pages and indexes."""
    if bytes_of_pages < INNODB_SINGLE_PAGES_BYTES:
        return INNODB_FIRST_PAGES_BYTES + bytes_of_pages
    return bytes_of_pages + (indexes + 1) * INNODB_EXTENT_BYTES


def peak(weights: list) -> int:
    """Returns the maximum additional space in use if tables are converted in this order."""
    used = most = 0
    for weight in weights:
        largest = round(weight.after * (1 + weight.error_percent / 100))
        most = max(most, used + largest + weight.temporary)
        used += weight.after - weight.freed
    return most


def needed(weights: list) -> int:
    """Returns the bytes that must be free before tables are converted in this order."""
    return round(peak(weights) * (1 + RESERVE_PART)) + RESERVE_BYTES if weights else 0


def free_bytes(server: Connection) -> tuple:
    """Returns the free space for the server's data and its location, or None and a reason."""
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
