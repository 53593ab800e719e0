//! Through which door of the map, and to which list of snapshots, a thread goes.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Transactions in a chunk of the map: 32 KiB.
pub(super) const CHUNK_TXNS: u64 = 4096;

/// Doors to the map; more than cores that are likely to look at the same moment.
pub(super) const DOORS_COUNT: usize = 64;

/// The door of this thread.
pub(super) fn door_no() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static DOOR: Cell<Option<usize>> = const { Cell::new(None) };
    }
    DOOR.get().unwrap_or_else(|| {
        let no = NEXT.fetch_add(1, Ordering::Relaxed) % DOORS_COUNT;
        DOOR.set(Some(no));
        no
    })
}
