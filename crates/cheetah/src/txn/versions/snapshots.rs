//! The snapshots that are open: which stamps somebody still reads at.
//!
//! Invariants
//!   H7  Whoever opens a snapshot writes its stamp to its slot and then looks again whether it is still the last published one;
//!       whoever wants to know the oldest reads the last published one first, and then the slots. With a fence between the two steps of both, one
//!       of them sees the other: either the slot is counted, or its stamp is not older than what was published.
//! Slots are given to readers and used again; each door has its own list, so that readers that come and go on many cores do not meet.
//! Locks     one door's list, for a moment.

use super::doors::{door_no, DOORS_COUNT};
use super::number::Number;
use crate::base::{planted, reach};
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
        if published.get() == stamp || planted::is_on("versions: open a snapshot without looking again") {
            return stamp;
        }
        reach::mark("snapshot opened again");
    }
}

/// The last published stamp, to be read before the slots are (H7).
pub(super) fn published_before_slots<N: Number>(published: &N) -> u64 {
    let stamp = published.get();
    N::fence();
    stamp
}

/// One reader's snapshot, alone in its cache line.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stamp: AtomicU64,
    /// Whether the reader watches for changes after its snapshot. Set while no snapshot is open: whoever reads the stamp of one reads
    /// what was set before.
    pub(super) watches: AtomicBool,
}

#[derive(Default, Debug)]
struct Slots {
    all: Vec<Arc<Slot>>,
    free: Vec<Arc<Slot>>,
}

/// A slot, and the door that it goes back to.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) slot: Arc<Slot>,
    door_no: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Snapshots {
    doors: Box<[Mutex<Slots>]>,
}

impl Snapshots {
    pub(super) fn new() -> Self {
        Self { doors: (0..DOORS_COUNT).map(|_| Mutex::default()).collect() }
    }

    /// A slot for a reader, closed.
    pub(super) fn take(&self) -> Place {
        let door_no = door_no();
        let mut slots = self.door(door_no).lock();
        let slot = slots.free.pop().unwrap_or_else(|| {
            let slot = Arc::new(Slot { stamp: AtomicU64::new(CLOSED), watches: AtomicBool::new(false) });
            slots.all.push(Arc::clone(&slot));
            slot
        });
        slot.watches.store(false, Relaxed);
        Place { slot, door_no }
    }

    /// Takes a slot back.
    pub(super) fn give_back(&self, place: &Place) {
        place.slot.stamp.set(CLOSED);
        self.door(place.door_no).lock().free.push(Arc::clone(&place.slot));
    }

    /// Calls `f` with the stamps of all open snapshots, in no order, and whether their readers watch for later changes.
    pub(super) fn for_each(&self, mut f: impl FnMut(u64, bool)) {
        for door in &self.doors {
            for slot in &door.lock().all {
                let stamp = slot.stamp.get();
                if stamp != CLOSED {
                    f(stamp, slot.watches.load(Relaxed));
                }
            }
        }
    }

    /// How many slots there are.
    #[cfg(test)]
    pub(super) fn slots_count(&self) -> usize {
        self.doors.iter().map(|door| door.lock().all.len()).sum()
    }

    fn door(&self, no: usize) -> &Mutex<Slots> {
        self.doors.get(no).expect("a thread's door is there")
    }
}
