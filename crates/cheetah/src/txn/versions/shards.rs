//! Through which shard of the map, and to which list of snapshots, a thread goes.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Transactions in a chunk of the map: 32 KiB.
pub(super) const CHUNK_TXNS: u64 = 4096;

/// Shards of the map; more than cores that are likely to look at the same moment.
pub(super) const SHARDS_COUNT: usize = 64;

/// The shard of this thread.
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
