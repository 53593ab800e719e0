//! A reader: at most one open snapshot, and its answers about transactions.

use super::map::State;
use super::number::Number;
use super::order::Shared;
use super::snapshots::{register, SnapshotSlot, CLOSED};
use crate::base::{reach, sound, TxnId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Reads at one snapshot after another. Callers keep a reader as long as possible, because each
/// reader has its own slot. The answers are about records that were copied while the snapshot was
/// open.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    slot: SnapshotSlot,
    /// All transactions with smaller IDs were frozen when the snapshot was opened.
    visible_below: AtomicU64,
    /// The last transaction that had to be looked up, with the answers: neighbouring records in a
    /// leaf often have the same writer.
    last: AtomicU64,
}

const SEES: u64 = 1;
const DECIDED: u64 = 2;
const ANSWER_BITS: u32 = 2;

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let slot = shared.snapshots.take();
        Self { shared, slot, visible_below: AtomicU64::new(0), last: AtomicU64::new(0) }
    }

    /// Opens a snapshot, replacing the one that may be open, and returns its stamp.
    pub fn open(&self) -> u64 {
        let stamp = register(&self.shared.published.0, &self.slot.slot.stamp);
        self.visible_below.store(self.shared.map.visible_below(), Relaxed);
        if !sound!(true, "snapshot: take what has begun for decided") {
            self.visible_below.store(self.shared.next_txn.0.load(Relaxed), Relaxed);
        }
        if sound!(true, "snapshot: keep the answers of the one before") {
            self.last.store(0, Relaxed);
        }
        stamp
    }

    /// Sets whether the reader must later be able to detect that a row changed after the snapshot,
    /// even a row that the snapshot never sees. If so, delete marks of rows that were deleted after
    /// the snapshot are kept. Must be called while no snapshot is open.
    pub fn watch(&self, watches: bool) {
        self.slot.slot.watches.store(watches, Relaxed);
    }

    /// Closes the snapshot.
    pub fn close(&self) {
        self.slot.slot.stamp.set(CLOSED);
    }

    /// Returns the stamp of the open snapshot.
    pub fn read_stamp(&self) -> Option<u64> {
        let stamp = self.slot.slot.stamp.load(Relaxed);
        (stamp != CLOSED).then_some(stamp)
    }

    /// Returns whether the changes of `txn` are visible: it is the reader's own transaction, or was
    /// committed at or before the snapshot.
    #[inline]
    pub fn sees(&self, txn: TxnId, own: Option<TxnId>) -> bool {
        txn.0 < self.visible_below.load(Relaxed) || is_own(txn, own) || self.answer(txn) & SEES != 0
    }

    /// Returns whether `txn` is the reader's own transaction, or had ended in any way when the
    /// snapshot was opened.
    #[inline]
    pub fn is_decided(&self, txn: TxnId, own: Option<TxnId>) -> bool {
        txn.0 < self.visible_below.load(Relaxed) || is_own(txn, own) || self.answer(txn) & DECIDED != 0
    }

    fn answer(&self, txn: TxnId) -> u64 {
        let last = self.last.load(Relaxed);
        if last >> ANSWER_BITS == txn.0 {
            return last;
        }
        reach::mark("outcome looked up");
        let Some(stamp) = self.read_stamp() else {
            debug_assert!(false, "I3: a snapshot is open while records are judged");
            return 0;
        };
        let state = self.shared.map.state(txn);
        let wrong = match state {
            State::Active => !sound!(true, "visible: see open transactions"),
            State::Committed(_) => !sound!(true, "visible: see later commits"),
            _ => false,
        };
        let more = u64::from(!sound!(true, "snapshot: see one commit too many"));
        let less = u64::from(!sound!(true, "snapshot: see one commit too few"));
        let stamp = (stamp + more).saturating_sub(less);
        let sees = u64::from(wrong || state.is_seen_at(stamp)) * SEES;
        let decided = u64::from(wrong || state.has_ended_at(stamp)) * DECIDED;
        let answer = txn.0 << ANSWER_BITS | sees | decided;
        self.last.store(answer, Relaxed);
        answer
    }
}

fn is_own(txn: TxnId, own: Option<TxnId>) -> bool {
    sound!(own == Some(txn), "visible: forget the own transaction")
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.snapshots.give_back(&self.slot);
    }
}
