//! The pool's methods for its two epochs.

use super::mini_transaction::MiniTransaction;
use crate::base::{Epoch, TxnId};
use crate::pool::Pool;

/// The maximum bytes that a page takes in both copies of the map: 20 each, with numbers and a
/// checksum.
const MAP_BYTES_PER_PAGE: usize = 2 * 20;

impl Pool {
    /// The epoch of the mini-transactions that are open now.
    pub fn epoch(&self) -> Epoch {
        self.epochs.current()
    }

    /// Notes that images of the mini-transaction's epoch and of later epochs need no versions of
    /// transactions below `txn`, because these transactions have committed and are visible to all
    /// snapshots. An image of an older epoch must keep the versions, because its log may end before
    /// the commits (C2).
    pub fn set_freeze_below(&self, mtr: &MiniTransaction<'_>, txn: TxnId) {
        self.epochs.set_freeze_below(mtr.epoch(), txn);
    }

    /// The transaction ID below which images of the epoch need no versions.
    pub(in crate::pool) fn freeze_below(&self, epoch: Epoch) -> TxnId {
        self.epochs.freeze_below(epoch)
    }

    /// Pages that are dirty in any epoch.
    pub(in crate::pool) fn dirty_count(&self) -> usize {
        self.epochs.dirty_count()
    }

    /// The bytes in memory of the pages that are dirty in any epoch. Apart from a header, the
    /// images of these pages are not longer.
    pub(in crate::pool) fn dirty_bytes(&self) -> usize {
        self.epochs.dirty_bytes()
    }

    /// The approximate bytes that the dirty and moved pages take in both copies of the map.
    pub(in crate::pool) fn map_bytes(&self) -> usize {
        MAP_BYTES_PER_PAGE * (self.epochs.dirty_count() + self.epochs.moved_count())
    }
}
