//! The two epochs that may be without a commit: the current one, and the one before it.
//!
//! Both share arrays of two, by the lowest bit of their numbers.

use super::epoch_changes::EpochChanges;
use super::gate::Gate;
use super::mini_transaction::MiniTransaction;
use crate::base::{Epoch, TxnId};
use crate::pool::Pool;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Epochs {
    pub(super) gate: Gate,
    changes: [EpochChanges; 2],
    freeze_below: [AtomicU64; 2],
}

impl Epochs {
    /// The first mini-transactions belong to epoch `first`.
    pub(in crate::pool) fn new(first: Epoch) -> Self {
        Self { gate: Gate::new(first), changes: Default::default(), freeze_below: Default::default() }
    }

    /// Moves on to the next epoch, which starts with what the ended one knew of versions. See
    /// [`Gate::switch_epoch`].
    pub(in crate::pool) fn switch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        self.gate.switch_epoch(|ended| {
            let below = self.freeze_below(ended);
            self.set_freeze_below(Epoch(ended.0 + 1), below);
            at_switch(ended)
        })
    }

    /// Bytes in memory of what both epochs have changed.
    pub(in crate::pool) fn changes_bytes(&self) -> usize {
        self.changes.iter().map(EpochChanges::bytes).sum()
    }

    fn changes_of(&self, epoch: Epoch) -> &EpochChanges {
        &self.changes[epoch.0 as usize % 2]
    }

    fn freeze_below(&self, epoch: Epoch) -> TxnId {
        TxnId(self.freeze_below[epoch.0 as usize % 2].load(Ordering::Acquire))
    }

    fn set_freeze_below(&self, epoch: Epoch, txn: TxnId) {
        self.freeze_below[epoch.0 as usize % 2].store(txn.0, Ordering::Release);
    }
}

impl Pool {
    /// The epoch of the mini-transactions that are open now.
    pub fn epoch(&self) -> Epoch {
        self.epochs.gate.epoch()
    }

    /// From now on, images of the mini-transaction's epoch and later ones need no versions of
    /// transactions below `txn`: they have committed, and everybody sees them. An image of an older
    /// epoch must keep them, because its log may end before their commit (C2).
    pub fn set_freeze_below(&self, mtr: &MiniTransaction<'_>, txn: TxnId) {
        self.epochs.set_freeze_below(mtr.epoch(), txn);
    }

    /// Versions of smaller transactions may go from pages that the mini-transaction changes.
    pub fn frozen_below(&self, mtr: &MiniTransaction<'_>) -> TxnId {
        self.freeze_below(mtr.epoch())
    }

    /// Images of the epoch need no versions of smaller transactions.
    pub(in crate::pool) fn freeze_below(&self, epoch: Epoch) -> TxnId {
        self.epochs.freeze_below(epoch)
    }

    pub(in crate::pool) fn changes_of(&self, epoch: Epoch) -> &EpochChanges {
        self.epochs.changes_of(epoch)
    }

    /// Pages that are dirty in any epoch.
    pub(in crate::pool) fn dirty_count(&self) -> usize {
        self.epochs.changes.iter().map(EpochChanges::dirty_count).sum()
    }

    /// Bytes in memory of the pages that are dirty in any epoch. Their images on disk take no more,
    /// but for a header.
    pub(in crate::pool) fn dirty_bytes(&self) -> usize {
        self.epochs.changes.iter().map(EpochChanges::dirty_bytes).sum()
    }
}
