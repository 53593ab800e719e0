//! The transactions that have written something: numbers, and where each one's undo records are.
//!
//! Invariants
//!   I1  A transaction is listed from before its first undo record until its last one is no longer needed: after
//!       a rollback, or after the large values that its commit frees are gone.
//!   I2  A slot is locked inside actions only, or by those who hold nothing else: while no action runs, all
//!       slots can be read (the flip does).
//! Locks     the list, then one slot; then the undo log's.

use crate::base::{Result, TxnId, UndoPtr};
use crate::format::state::TxnState;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// A listed transaction.
#[derive(Debug)]
pub struct Slot {
    txn: TxnId,
    state: Mutex<TxnState>,
    /// Whether an undo record may list large values that die at commit. Not part of the generation state: a
    /// transaction that comes from there is looked through.
    leaves_large_values: AtomicBool,
}

impl Slot {
    /// The transaction.
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// Its state, locked.
    pub fn state(&self) -> MutexGuard<'_, TxnState> {
        self.state.lock()
    }

    /// Notes that the newest undo record lists large values that die at commit.
    pub fn note_frees(&self) {
        self.leaves_large_values.store(true, Ordering::Relaxed);
    }

    /// Whether some undo record may list such values.
    pub fn leaves_large_values(&self) -> bool {
        self.leaves_large_values.load(Ordering::Relaxed)
    }

    fn new(state: TxnState, leaves_large_values: bool) -> Arc<Self> {
        let leaves_large_values = AtomicBool::new(leaves_large_values);
        Arc::new(Self { txn: state.txn, state: Mutex::new(state), leaves_large_values })
    }
}

/// The list, and the counters that number transactions.
#[derive(Debug)]
pub struct Active {
    slots: Mutex<BTreeMap<TxnId, Arc<Slot>>>,
    next_txn: AtomicU64,
    next_commit: AtomicU64,
}

impl Active {
    /// The transactions of a generation's state, and the next numbers.
    pub fn new(txns: &[TxnState], next_txn: TxnId, next_commit: u64) -> Self {
        let slot = |state: &TxnState| (state.txn, Slot::new(*state, true));
        Self {
            slots: Mutex::new(txns.iter().map(slot).collect()),
            next_txn: AtomicU64::new(next_txn.0.max(1)),
            next_commit: AtomicU64::new(next_commit.max(1)),
        }
    }

    /// Lists a new transaction.
    pub fn start(&self) -> Arc<Slot> {
        self.get_or_start(TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed)))
    }

    /// The slot of `txn`, which redo meets in the log; listed when it is new.
    pub fn get_or_start(&self, txn: TxnId) -> Arc<Slot> {
        self.next_txn.fetch_max(txn.0 + 1, Ordering::Relaxed);
        let mut slots = self.slots.lock();
        let slot =
            slots.entry(txn).or_insert_with(|| Slot::new(TxnState { txn, ..TxnState::default() }, false));
        Arc::clone(slot)
    }

    /// Takes a transaction off the list.
    pub fn finish(&self, txn: TxnId) {
        self.slots.lock().remove(&txn);
    }

    /// The next place in the order of commits.
    pub fn take_commit_no(&self) -> u64 {
        self.next_commit.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a place in the order of commits that redo meets.
    pub fn note_commit_no(&self, commit_no: u64) {
        self.next_commit.fetch_max(commit_no + 1, Ordering::Relaxed);
    }

    /// All slots, in the order of their numbers.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().values().cloned().collect()
    }

    /// How many are listed.
    pub fn len(&self) -> usize {
        self.slots.lock().len()
    }

    /// Whether none is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The transactions with undo records, and the next transaction and commit numbers; for the flip, when no
    /// action runs.
    pub fn snapshot(&self) -> (Vec<TxnState>, TxnId, u64) {
        let states = self.slots().iter().map(|slot| *slot.state()).collect::<Vec<_>>();
        let written = states.into_iter().filter(|state| state.head != UndoPtr(0) || state.committed);
        let next = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (written.collect(), TxnId(next(&self.next_txn)), next(&self.next_commit))
    }

    /// The oldest undo record that a listed transaction still needs, at most `end`, the end of the undo log as
    /// read before this call: a record appended since lies behind it.
    pub fn oldest_undo(&self, end: UndoPtr) -> UndoPtr {
        let firsts = self.slots().iter().map(|slot| slot.state().first).collect::<Vec<_>>();
        firsts.into_iter().filter(|first| *first != UndoPtr(0)).fold(end, UndoPtr::min)
    }

    /// Runs `f` on every slot.
    pub fn for_each(&self, mut f: impl FnMut(&Arc<Slot>) -> Result<()>) -> Result<()> {
        self.slots().iter().try_for_each(&mut f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_behind_those_that_redo_has_met() {
        let active = Active::new(&[], TxnId(5), 3);
        assert_eq!(active.start().txn(), TxnId(5));
        active.get_or_start(TxnId(9));
        active.note_commit_no(7);
        assert_eq!(active.start().txn(), TxnId(10));
        assert_eq!(active.take_commit_no(), 8);
        active.finish(TxnId(5));
        assert_eq!(active.len(), 2);
    }

    #[test]
    fn the_oldest_record_still_needed_bounds_the_undo_log() {
        let active = Active::new(&[], TxnId(1), 1);
        assert_eq!(active.oldest_undo(UndoPtr(100)), UndoPtr(100));
        active.start().state().first = UndoPtr(40);
        active.start();
        assert_eq!(active.oldest_undo(UndoPtr(100)), UndoPtr(40));
    }

    #[test]
    fn the_flip_sees_only_transactions_with_records() {
        let active = Active::new(&[], TxnId(1), 1);
        active.start();
        let slot = active.start();
        slot.state().head = UndoPtr(8);
        let (states, next_txn, _) = active.snapshot();
        assert_eq!((states.len(), next_txn), (1, TxnId(3)));
    }
}
