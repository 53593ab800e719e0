//! A reader: at most one open snapshot, and its answers.

use super::map::State;
use super::number::Number;
use super::order::Shared;
use super::snapshots::{register, SnapshotSlot, CLOSED};
use crate::base::{reach, sound, TxnId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// A reader at snapshots, one after the other; kept for as long as possible, as it has a slot of
/// its own. The answers are those about records that were copied while the snapshot was open.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    slot: SnapshotSlot,
    /// All smaller transactions were frozen when the snapshot was opened.
    visible_below: AtomicU64,
    /// The last transaction that had to be looked up, with the answers: neighbours in a leaf are
    /// often of one.
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

    /// Opens a snapshot in place of the one that may be open, and returns its stamp.
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

    /// Sets whether it is to be found out later that a row has been changed after the snapshot,
    /// also one that the snapshot never sees: so the marks of rows that were deleted after it stay.
    /// To be called while no snapshot is open.
    pub fn watch(&self, watches: bool) {
        self.slot.slot.watches.store(watches, Relaxed);
    }

    /// Closes the snapshot.
    pub fn close(&self) {
        self.slot.slot.stamp.set(CLOSED);
    }

    /// The stamp of the snapshot that is open.
    pub fn read_stamp(&self) -> Option<u64> {
        let stamp = self.slot.slot.stamp.load(Relaxed);
        (stamp != CLOSED).then_some(stamp)
    }

    /// Whether what `txn` did is seen: it is the reader's own transaction, or committed at or
    /// before the snapshot.
    #[inline]
    pub fn sees(&self, txn: TxnId, own: Option<TxnId>) -> bool {
        txn.0 < self.visible_below.load(Relaxed) || is_own(txn, own) || self.answer(txn) & SEES != 0
    }

    /// Whether `txn` is the reader's own transaction or had ended when the snapshot was opened, in
    /// whatever way.
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
            debug_assert!(false, "a snapshot is open while records are judged");
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
