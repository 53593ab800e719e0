//! The two epochs that may be uncommitted: the current one and the previous one.
//!
//! Their data is in arrays of two elements, indexed by the lowest bit of the epoch.

use super::epoch_changes::EpochChanges;
use super::epoch_switch::EpochGuard;
use super::gate::Gate;
use crate::base::{Epoch, TxnId};
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Epochs {
    gate: Gate,
    changes: [EpochChanges; 2],
    freeze_below: [AtomicU64; 2],
}

impl Epochs {
    /// The first mini-transactions belong to epoch `first`.
    pub(in crate::pool) fn new(first: Epoch) -> Self {
        Self { gate: Gate::new(first), changes: Default::default(), freeze_below: Default::default() }
    }

    /// Advances to the next epoch, which inherits `freeze_below` from the ended one. See
    /// [`Gate::switch_epoch`].
    pub(in crate::pool) fn switch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        self.gate.switch_epoch(|ended| {
            let below = self.freeze_below(ended);
            self.set_freeze_below(Epoch(ended.0 + 1), below);
            at_switch(ended)
        })
    }

    /// The epoch of the mini-transactions that are open now.
    pub(super) fn current(&self) -> Epoch {
        self.gate.epoch()
    }

    /// Waits during an epoch switch. See [`Gate::enter`].
    pub(super) fn enter(&self) -> EpochGuard<'_> {
        self.gate.enter()
    }

    /// Pages that are dirty in one of the two epochs.
    pub(super) fn dirty_count(&self) -> usize {
        self.changes.iter().map(EpochChanges::dirty_count).sum()
    }

    /// Bytes in memory of the pages that are dirty in one of the two epochs.
    pub(super) fn dirty_bytes(&self) -> usize {
        self.changes.iter().map(EpochChanges::dirty_bytes).sum()
    }

    /// Pages with a new location in one of the two epochs.
    pub(super) fn moved_count(&self) -> usize {
        self.changes.iter().map(EpochChanges::moved_count).sum()
    }

    /// Bytes of memory for the changes of both epochs.
    pub(in crate::pool) fn changes_bytes(&self) -> usize {
        self.changes.iter().map(EpochChanges::bytes).sum()
    }

    pub(in crate::pool) fn changes_of(&self, epoch: Epoch) -> &EpochChanges {
        &self.changes[epoch.0 as usize % 2]
    }

    pub(super) fn freeze_below(&self, epoch: Epoch) -> TxnId {
        TxnId(self.freeze_below[epoch.0 as usize % 2].load(Ordering::Acquire))
    }

    pub(super) fn set_freeze_below(&self, epoch: Epoch, txn: TxnId) {
        self.freeze_below[epoch.0 as usize % 2].store(txn.0, Ordering::Release);
    }
}
