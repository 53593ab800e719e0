"""Counts the pages that an engine read from its files, with its own counters."""

COUNTERS = {"InnoDB": ["Innodb_pages_read"], "Cheetah": ["Cheetah_pool_reads"],
            "MyRocks": [f"Rocksdb_block_cache_{kind}_miss" for kind in ("data", "index", "filter")]}


def pages_read(server, family: str) -> int:
    """Returns the pages (MyRocks: blocks) read since the server started, read-ahead included."""
    return sum(server.status(name) for name in COUNTERS[family])
