"""The engines that are compared: how their tables are declared, flushed, and measured on disk."""

import os
import time
from pathlib import Path

from . import dump
from .paths import PLUGIN, VAR
from .say import Failure

FLUSH_SECONDS_MAX = 900
FAMILIES = {"InnoDB": "InnoDB", "ROCKSDB": "MyRocks", "CHEETAH": "Cheetah"}


def checkpoint(server) -> None:
    """Makes Cheetah write a checkpoint; earlier builds in the bench have no variable for it."""
    has_variable = server.sql("SHOW VARIABLES LIKE 'cheetah_checkpoint_now'")
    server.sql("SET GLOBAL cheetah_checkpoint_now = ON" if has_variable
               else "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")


class Engine:
    def __init__(self, label: str, name: str, table_options: str = "", plugin: Path = None):
        """`plugin` is the file of the engine; for Cheetah the default is this build's."""
        self.label = label
        self.name = name
        self.table_options = table_options
        self.plugin = plugin or (PLUGIN if name == "CHEETAH" else None)
        self.key = ""   # its key in a dictionary of engines

    @property
    def family(self) -> str:
        return FAMILIES[self.name]

    def server_options(self, _memory_bytes: int) -> dict:
        """Returns the lines of my.cnf that this engine needs in addition to `equal_memory`."""
        return {}

    def clause(self) -> str:
        """Returns the text after the closing parenthesis of CREATE TABLE."""
        return f"ENGINE={self.name}" + (" " + self.table_options if self.table_options else "")

    def flush(self, server) -> float:
        """Writes out every changed page; returns the seconds."""
        started = time.monotonic()
        if self.name == "CHEETAH":
            checkpoint(server)
        else:
            flush_innodb(server)
        return time.monotonic() - started

    def write_out(self, server, database: str) -> None:
        """Writes out all pages of a database. InnoDB's cleaner is slow; FOR EXPORT is not."""
        if self.name != "InnoDB":
            self.flush(server)
            return
        names = ", ".join(map(dump.quoted, dump.base_tables(server, database)))
        with server.cursor(database) as cursor:
            cursor.execute(f"FLUSH TABLES {names} FOR EXPORT")
            cursor.execute("UNLOCK TABLES")

    def settle(self, _server) -> None:
        """Makes the engine compact its files now, if it has a command for this."""

    def data_files(self, server, database: str) -> list:
        """Returns the files of a database's tables, without logs; Cheetah has one store for all."""
        if self.name == "CHEETAH":
            return [f for f in (server.data / "#cheetah").rglob("*")
                    if f.is_file() and not is_log(f)]
        return list((server.data / database).glob("*.ibd"))

    def bytes_on_disk(self, server, database: str) -> int:
        """Returns the allocated bytes of the data files after a sync."""
        os.sync()
        return self.allocated_bytes(server, database)

    def allocated_bytes(self, server, database: str) -> int:
        return sum(allocated(f) for f in self.data_files(server, database))

    def drop_page_cache(self, server, database: str) -> None:
        """Drops the data files from the page cache (the server is stopped)."""
        forget_pages(self.data_files(server, database))


class MyRocks(Engine):
    """RocksDB with usual settings: LZ4 in the upper levels, zstd in the lowest. Without partitioned
    index and filters it collapses in a small cache."""

    def server_options(self, memory_bytes: int) -> dict:
        """Returns options: a quarter of the memory for memtables, durable commits, direct I/O."""
        layout = ("compression=kLZ4Compression;bottommost_compression=kZSTD;"
                  "level_compaction_dynamic_level_bytes=true;"
                  f"write_buffer_size={memory_bytes // 8};"
                  "block_based_table_factory={cache_index_and_filter_blocks=1;"
                  "filter_policy=bloomfilter:10:false;index_type=kTwoLevelIndexSearch;"
                  "partition_filters=1}")
        return {"plugin_load_add": "ha_rocksdb.so",
                "rocksdb_block_cache_size": memory_bytes * 3 // 4,
                "rocksdb_db_write_buffer_size": memory_bytes // 4, "rocksdb_block_size": 16384,
                "rocksdb_default_cf_options": layout, "rocksdb_flush_log_at_trx_commit": 1,
                "rocksdb_use_direct_reads": 1, "rocksdb_use_direct_io_for_flush_and_compaction": 1,
                # otherwise it refuses keys on strings with case-insensitive collations
                "rocksdb_strict_collation_check": 0}

    def flush(self, server) -> float:
        started = time.monotonic()
        server.sql("SET GLOBAL rocksdb_force_flush_memtable_now = 1")
        return time.monotonic() - started

    def settle(self, server) -> None:
        """Merges all levels into the lowest one, which is what its users compare."""
        server.sql("SET GLOBAL rocksdb_compact_cf = 'default'")

    def data_files(self, server, _database: str) -> list:
        return list((server.data / "#rocksdb").glob("*.sst"))


class Encrypted(Engine):
    """An engine that encrypts all its tables and its log, with keys from a file."""

    def server_options(self, _memory_bytes: int) -> dict:
        """Returns the options of the key service and of encryption. Writes the key file."""
        VAR.mkdir(exist_ok=True)
        keys = VAR / "bench-keys"
        keys.write_text("1;770a8a65da156d24ee2a093277530142\n")
        prefix = self.name.lower()
        # This spelling differs from `plugin_load_add`, which the engine itself may already use.
        return {"plugin-load-add": "file_key_management", "file_key_management_filename": keys,
                f"loose_{prefix}_encrypt_tables": "ON", f"loose_{prefix}_encrypt_log": "ON"}


INNODB = Engine("InnoDB", "InnoDB")
INNODB_COMPRESSED = Engine("InnoDB KEY_BLOCK_SIZE=8", "InnoDB", "KEY_BLOCK_SIZE=8")
MYROCKS = MyRocks("MyRocks", "ROCKSDB")
CHEETAH = Engine("Cheetah", "CHEETAH")
CHEETAH_ENCRYPTED = Encrypted("Cheetah encrypted", "CHEETAH")
INNODB_ENCRYPTED = Encrypted("InnoDB encrypted", "InnoDB")
ALL = [INNODB, INNODB_COMPRESSED, CHEETAH]


def equal_memory(pool_bytes: int) -> dict:
    """Returns options that give every engine the same memory and the same durability at commit."""
    return {
        "innodb_buffer_pool_size": pool_bytes, "loose_cheetah_buffer_pool_size": pool_bytes,
        "innodb_log_file_size": 256 << 20, "innodb_flush_log_at_trx_commit": 1,
        "loose_cheetah_flush_log_at_trx_commit": 1, "innodb_flush_method": "O_DIRECT",
        # With the default of 200, InnoDB's flushing would wait needlessly.
        "innodb_io_capacity": 10000, "innodb_io_capacity_max": 20000,
        "loose_cheetah_io_capacity": 10000, "innodb_buffer_pool_dump_at_shutdown": 0,
        "innodb_buffer_pool_load_at_startup": 0,
    }


def available(server, engines: list) -> list:
    return [engine for engine in engines if server.has_engine(engine.name)]


def forget_pages(files) -> None:
    """Drops files from the page cache; no server may have them open."""
    for file in files:
        with open(file, "rb") as handle:
            os.fdatasync(handle.fileno())
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def is_log(file: Path) -> bool:
    return file.parent.name == "wal"


def allocated(file: Path) -> int:
    """Returns the bytes that a file occupies; 0 if it was just deleted."""
    try:
        return file.stat().st_blocks * 512
    except FileNotFoundError:
        return 0


def flush_innodb(server) -> None:
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
