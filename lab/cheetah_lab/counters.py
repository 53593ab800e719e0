"""Counts the pages that an engine read from its files, with its own counters."""

COUNTERS = {
    "InnoDB": ["Innodb_pages_read"],
    "Cheetah": ["Cheetah_pool_reads"],
    "MyRocks": ["Rocksdb_block_cache_data_miss", "Rocksdb_block_cache_index_miss",
                "Rocksdb_block_cache_filter_miss"],
}


def pages_read(server, family: str) -> int:
    """Returns the pages (MyRocks: blocks) read since the server started, read-ahead included."""
    return sum(server.status(name) for name in COUNTERS[family])
