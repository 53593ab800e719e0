//! The pool's questions to its two epochs, and its messages to them.

use super::mini_transaction::MiniTransaction;
use crate::base::{Epoch, TxnId};
use crate::pool::Pool;

/// Of a page in both copies of the map, at most: 20 bytes each, numbers and a checksum.
const MAP_BYTES_PER_PAGE: usize = 2 * 20;

impl Pool {
    /// The epoch of the mini-transactions that are open now.
    pub fn epoch(&self) -> Epoch {
        self.epochs.current()
    }

    /// From now on, images of the mini-transaction's epoch and later ones need no versions of
    /// transactions below `txn`: they have committed, and everybody sees them. An image of an older
    /// epoch must keep them, because its log may end before their commit (C2).
    pub fn set_freeze_below(&self, mtr: &MiniTransaction<'_>, txn: TxnId) {
        self.epochs.set_freeze_below(mtr.epoch(), txn);
    }

    /// Images of the epoch need no versions of smaller transactions.
    pub(in crate::pool) fn freeze_below(&self, epoch: Epoch) -> TxnId {
        self.epochs.freeze_below(epoch)
    }

    /// Pages that are dirty in any epoch.
    pub(in crate::pool) fn dirty_count(&self) -> usize {
        self.epochs.dirty_count()
    }

    /// Bytes in memory of the pages that are dirty in any epoch. Their images on disk take no more,
    /// but for a header.
    pub(in crate::pool) fn dirty_bytes(&self) -> usize {
        self.epochs.dirty_bytes()
    }

    /// About what the two copies of the map take for the pages that are dirty or have moved.
    pub(in crate::pool) fn map_bytes(&self) -> usize {
        MAP_BYTES_PER_PAGE * (self.epochs.dirty_count() + self.epochs.moved_count())
    }
}
