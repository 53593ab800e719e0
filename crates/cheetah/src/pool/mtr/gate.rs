//! The gate, which admits either many mini-transactions or one epoch switch. Invariants G1, G2 and
//! G4 are at the head of `mtr`.

use super::epoch_switch::{EpochGuard, EpochSwitch};
use crate::base::Epoch;
use crate::pool::frames::latches_held;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of shards of the gate. Threads are distributed over the shards, so that they do not
/// contend for one cache line.
const SHARDS_COUNT: usize = 8;

thread_local! {
    static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// See the module.
#[derive(Debug)]
pub(super) struct Gate {
    switch: EpochSwitch<SHARDS_COUNT>,
    next_shard: AtomicUsize,
}

impl Gate {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { switch: EpochSwitch::new(epoch), next_shard: AtomicUsize::new(0) }
    }

    /// Lets a mini-transaction in. Waits during an epoch switch. [`leave`] must follow.
    pub(super) fn enter(&self) -> EpochGuard<'_> {
        debug_assert_eq!(latches_held(), 0, "G2: the gate is entered before latches are taken");
        debug_assert!(!INSIDE.get(), "G2: one mini-transaction at a time");
        let epoch = self.switch.enter(self.shard_no());
        INSIDE.set(true);
        epoch
    }

    /// Waits until no mini-transaction is open, advances to the next epoch, and runs `at_switch`
    /// with the ended epoch before any mini-transaction of the new epoch starts.
    pub(super) fn switch_epoch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        debug_assert_eq!(latches_held(), 0, "G2: nobody switches the epoch with a latch held");
        debug_assert!(!INSIDE.get(), "G2: a mini-transaction cannot wait for itself");
        self.switch.switch(at_switch)
    }

    /// The current epoch. For a caller outside of mini-transactions, the result may be outdated on
    /// return. Never waits.
    pub(super) fn epoch(&self) -> Epoch {
        self.switch.epoch()
    }

    fn shard_no(&self) -> usize {
        SHARD.get().unwrap_or_else(|| {
            let no = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS_COUNT;
            SHARD.set(Some(no));
            no
        })
    }
}

/// Returns whether this thread has a mini-transaction open.
pub(in crate::pool) fn is_inside() -> bool {
    INSIDE.get()
}

/// Ends the mini-transaction of this thread.
pub(super) fn leave() {
    INSIDE.set(false);
}
