"""The engines that are compared: how their tables are declared, flushed, and measured on disk."""

import os
import time
from pathlib import Path

from .say import Failure

FLUSH_SECONDS_MAX = 900


class Engine:
    """One column of a comparison."""

    def __init__(self, label: str, name: str, table_options: str = ""):
        self.label = label
        self.name = name
        self.table_options = table_options

    def clause(self) -> str:
        """What stands behind the closing parenthesis of CREATE TABLE."""
        return f"ENGINE={self.name}" + (" " + self.table_options if self.table_options else "")

    def flush(self, server) -> float:
        """Write every changed page out; the seconds it took."""
        started = time.monotonic()
        if self.name == "CHEETAH":
            server.sql("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")   # a checkpoint
        else:
            flush_innodb(server)
        return time.monotonic() - started

    def data_files(self, server, database: str) -> list:
        """The files that hold the tables of `database`, logs apart. Cheetah keeps all tables of a server in one store."""
        if self.name == "CHEETAH":
            return [f for f in (server.data / "#cheetah").rglob("*") if f.is_file() and not is_log(f)]
        return [f for f in (server.data / database).glob("*.ibd")]

    def bytes_on_disk(self, server, database: str) -> int:
        """Allocated blocks of the data files."""
        os.sync()
        return sum(allocated(f) for f in self.data_files(server, database))

    def drop_page_cache(self, server, database: str) -> None:
        """Let the kernel forget the data files (the server is stopped)."""
        for file in self.data_files(server, database):
            with open(file, "rb") as handle:
                os.fdatasync(handle.fileno())
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


INNODB = Engine("InnoDB", "InnoDB")
INNODB_COMPRESSED = Engine("InnoDB KEY_BLOCK_SIZE=8", "InnoDB", "KEY_BLOCK_SIZE=8")
CHEETAH = Engine("Cheetah", "CHEETAH")
ALL = [INNODB, INNODB_COMPRESSED, CHEETAH]


def equal_memory(pool_bytes: int) -> dict:
    """Options that give every engine the same memory and the same promise at commit."""
    return {
        "innodb_buffer_pool_size": pool_bytes, "loose_cheetah_buffer_pool_size": pool_bytes,
        "innodb_log_file_size": 256 << 20, "innodb_flush_log_at_trx_commit": 1,
        "loose_cheetah_flush_log_at_trx_commit": 1, "innodb_flush_method": "O_DIRECT",
        # The default of 200 would make InnoDB's flushing wait for nothing.
        "innodb_io_capacity": 10000, "innodb_io_capacity_max": 20000, "loose_cheetah_io_capacity": 10000,
        "innodb_buffer_pool_dump_at_shutdown": 0, "innodb_buffer_pool_load_at_startup": 0,
    }


def available(server, engines: list) -> list:
    """Those of `engines` that this server has."""
    return [engine for engine in engines if server.has_engine(engine.name)]


def is_log(file: Path) -> bool:
    """Whether a file of Cheetah's folder belongs to its redo log."""
    return file.parent.name == "wal"


def allocated(file: Path) -> int:
    """Bytes that a file occupies; 0 when it has just gone."""
    try:
        return file.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def flush_innodb(server) -> None:
    """Have InnoDB write every dirty page, and wait for it."""
    before = server.sql("SELECT @@innodb_max_dirty_pages_pct, @@innodb_max_dirty_pages_pct_lwm")[0]
    server.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")
    server.sql("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    deadline = time.monotonic() + FLUSH_SECONDS_MAX
    while server.status("Innodb_buffer_pool_pages_dirty") > 0:
        if time.monotonic() > deadline:
            raise Failure(f"InnoDB still has dirty pages after {FLUSH_SECONDS_MAX} s")
        time.sleep(0.05)
    server.sql(f"SET GLOBAL innodb_max_dirty_pages_pct = {before[0]}")
    server.sql(f"SET GLOBAL innodb_max_dirty_pages_pct_lwm = {before[1]}")
