//! Selects the shard of the map, and the list of snapshots, that a thread uses.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of transactions in a chunk of the map: 32 KiB.
pub(super) const CHUNK_TXNS: u64 = 4096;

/// The number of shards of the map; more than the number of cores that are likely to read at once.
pub(super) const SHARDS_COUNT: usize = 64;

pub(super) fn shard_no() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    }
    SHARD.get().unwrap_or_else(|| {
        let no = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS_COUNT;
        SHARD.set(Some(no));
        no
    })
}
