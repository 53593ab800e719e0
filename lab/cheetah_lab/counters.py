"""Pages that an engine read from its files, by its own counters."""

COUNTERS = {
    "InnoDB": ["Innodb_pages_read"],
    "Cheetah": ["Cheetah_pool_reads"],
    "MyRocks": ["Rocksdb_block_cache_data_miss", "Rocksdb_block_cache_index_miss",
                "Rocksdb_block_cache_filter_miss"],
}


def pages_read(server, family: str) -> int:
    """Pages (of MyRocks: blocks) since the server started; what was read ahead is among them."""
    return sum(server.status(name) for name in COUNTERS[family])
