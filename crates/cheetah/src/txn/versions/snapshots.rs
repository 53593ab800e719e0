//! The open snapshots, that is, the stamps at which readers still read.
//!
//! Invariants
//!   H7  Opening a snapshot writes its stamp to its slot and then checks whether it is still the
//!       last published stamp. The search for the oldest snapshot first reads the last published
//!       stamp, and then the slots. With a fence between the two steps of both, one of them sees
//!       the other: either the slot is counted, or its stamp is not older than the published one.
//!       Slots are reused by later readers. Each shard has its own list, so that readers on many
//!       cores do not contend.
//! Locks     one shard's list, briefly.

use super::number::Number;
use super::shards::{shard_no, SHARDS_COUNT};
use crate::base::{reach, sound};
use parking_lot::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;

/// The stamp of a slot whose reader has no snapshot open.
pub(super) const CLOSED: u64 = u64::MAX;

/// Opens a snapshot in `slot` and returns its stamp (H7).
pub(super) fn register<N: Number>(published: &N, slot: &N) -> u64 {
    loop {
        let stamp = published.get();
        slot.set(stamp);
        N::fence();
        if !sound!(published.get() != stamp, "versions: open a snapshot without looking again") {
            return stamp;
        }
        reach::mark("snapshot opened again");
    }
}

/// Returns the last published stamp, which must be read before the slots (H7).
pub(super) fn published_before_slots<N: Number>(published: &N) -> u64 {
    let stamp = published.get();
    N::fence();
    stamp
}

/// One reader's snapshot, in its own cache line.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stamp: AtomicU64,
    /// Whether the reader watches for changes after its snapshot. Set while no snapshot is open: a
    /// thread that reads the stamp of an open snapshot sees the value set before.
    pub(super) watches: AtomicBool,
}

#[derive(Default, Debug)]
struct Slots {
    all: Vec<Arc<Slot>>,
    free: Vec<Arc<Slot>>,
}

/// A slot, and the shard to which it is returned.
#[derive(Debug)]
pub(super) struct SnapshotSlot {
    pub(super) slot: Arc<Slot>,
    shard_no: usize,
}

#[derive(Debug)]
pub(super) struct Snapshots {
    shards: Box<[Mutex<Slots>]>,
}

impl Snapshots {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS_COUNT).map(|_| Mutex::default()).collect() }
    }

    pub(super) fn take(&self) -> SnapshotSlot {
        let shard_no = shard_no();
        let mut slots = self.shard(shard_no).lock();
        let slot = slots.free.pop().unwrap_or_else(|| {
            let slot = Arc::new(Slot { stamp: AtomicU64::new(CLOSED), watches: AtomicBool::new(false) });
            slots.all.push(Arc::clone(&slot));
            slot
        });
        slot.watches.store(false, Relaxed);
        SnapshotSlot { slot, shard_no }
    }

    pub(super) fn give_back(&self, given: &SnapshotSlot) {
        given.slot.stamp.set(CLOSED);
        self.shard(given.shard_no).lock().free.push(Arc::clone(&given.slot));
    }

    /// Calls `f` with the stamp of each open snapshot, unordered, and whether its reader watches.
    pub(super) fn for_each(&self, mut f: impl FnMut(u64, bool)) {
        for shard in &self.shards {
            for slot in &shard.lock().all {
                let stamp = slot.stamp.get();
                if stamp != CLOSED {
                    f(stamp, slot.watches.load(Relaxed));
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn slots_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().all.len()).sum()
    }

    fn shard(&self, no: usize) -> &Mutex<Slots> {
        self.shards.get(no).expect("a thread's shard is there")
    }
}
