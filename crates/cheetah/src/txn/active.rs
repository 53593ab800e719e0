//! The transactions that have written something and have not ended: their undo records, and the
//! changes made so far. [`super::Versions`] has their IDs, outcomes and order.
//!
//! Invariants
//!   I1  A transaction is listed from before its first undo record until the mini-transaction that
//!       appends its finish record. Purge then finds the transaction's records by following the
//!       undo log.
//!   I2  A slot is locked only inside mini-transactions, or by threads that hold nothing else:
//!       while no mini-transaction runs, all slots can be read, as the epoch switch does.
//!   I3  The number of a slot's undo records can be read without its lock: releasing the lock
//!       publishes the number. The thread that writes for the transaction reads its own value.
//! Locks     the list, then one slot; then the undo log's.

use super::Owner;
use crate::base::{Result, TableId, TxnId, UndoPtr};
use crate::format::state::TxnState;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// A listed transaction.
#[derive(Debug)]
pub struct Slot {
    txn: TxnId,
    state: Mutex<TxnState>,
    /// The number of its undo records (I3).
    undo_no: AtomicU64,
    /// Whether an undo record may name something that purge has to remove after the commit. Not in
    /// the epoch state: set for a transaction loaded from there, so purge checks its records.
    leaves_garbage: AtomicBool,
    /// The changes of the row counts of tables. Not in the epoch state either.
    rows: Mutex<BTreeMap<TableId, i64>>,
    /// A table that is known to be in `rows`; 0 if none is known.
    listed_table: AtomicU32,
    owner: AtomicU64,
    /// Whether it is logged: changes of temporary tables are not.
    is_logged: bool,
}

impl Slot {
    /// Returns the transaction.
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// Locks and returns its state.
    pub fn state(&self) -> StateGuard<'_> {
        StateGuard { state: self.state.lock(), published: &self.undo_no }
    }

    /// Returns the number of its undo records.
    pub fn undo_no(&self) -> u64 {
        self.undo_no.load(Ordering::Relaxed)
    }

    /// Returns whether it is logged.
    pub fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// Sets the owner of the locks on the rows that it writes.
    pub fn belong_to(&self, owner: Owner) {
        self.owner.store(owner.0, Ordering::Release);
    }

    /// Returns the owner of its locks; `None` until it is known.
    pub fn owner(&self) -> Option<Owner> {
        let owner = self.owner.load(Ordering::Acquire);
        (owner != 0).then_some(Owner(owner))
    }

    /// Records that the newest undo record names something that purge must remove after the commit.
    pub fn note_garbage(&self) {
        self.leaves_garbage.store(true, Ordering::Relaxed);
    }

    /// Returns whether some undo record may name something that purge has to remove.
    pub fn leaves_garbage(&self) -> bool {
        self.leaves_garbage.load(Ordering::Relaxed)
    }

    /// Records that it changed a table, and by how much the row count changed.
    pub fn count_rows(&self, table: TableId, difference: i64) {
        // An update of a listed table changes nothing here.
        if difference == 0 && self.listed_table.load(Ordering::Relaxed) == table.0 {
            return;
        }
        let mut rows = self.rows.lock();
        *rows.entry(table).or_default() += difference;
        self.listed_table.store(table.0, Ordering::Relaxed);
    }

    /// Sets the changes of the row counts of all tables that it has changed.
    pub fn set_rows(&self, rows: BTreeMap<TableId, i64>) {
        let mut own = self.rows.lock();
        self.listed_table.store(0, Ordering::Relaxed);
        *own = rows;
    }

    /// Returns the change of a table's row count, if it has changed the table.
    pub fn rows_of(&self, table: TableId) -> Option<i64> {
        self.rows.lock().get(&table).copied()
    }

    /// Calls `f` with each table that it has changed, and the change of the table's row count.
    pub fn for_each_count(&self, mut f: impl FnMut(TableId, i64)) {
        self.rows.lock().iter().for_each(|(&table, &difference)| f(table, difference));
    }

    fn new(state: TxnState, leaves_garbage: bool, is_logged: bool) -> Arc<Self> {
        let leaves_garbage = AtomicBool::new(leaves_garbage);
        Arc::new(Self {
            txn: state.txn,
            undo_no: AtomicU64::new(state.undo_no),
            state: Mutex::new(state),
            leaves_garbage,
            rows: Mutex::default(),
            listed_table: AtomicU32::new(0),
            owner: AtomicU64::new(0),
            is_logged,
        })
    }
}

/// The state of a slot, locked.
#[derive(Debug)]
pub struct StateGuard<'a> {
    state: MutexGuard<'a, TxnState>,
    published: &'a AtomicU64,
}

impl Deref for StateGuard<'_> {
    type Target = TxnState;
    fn deref(&self) -> &TxnState {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut TxnState {
        &mut self.state
    }
}

impl Drop for StateGuard<'_> {
    /// Publishes the number of undo records (I3).
    fn drop(&mut self) {
        self.published.store(self.state.undo_no, Ordering::Relaxed);
    }
}

/// The list of active transactions.
#[derive(Debug)]
pub struct Active(Mutex<BTreeMap<TxnId, Arc<Slot>>>);

impl Active {
    /// Creates the list with the transactions of an epoch's state.
    pub fn new(txns: &[TxnState]) -> Self {
        let slot = |state: &TxnState| (state.txn, Slot::new(*state, true, true));
        Self(Mutex::new(txns.iter().map(slot).collect()))
    }

    /// Returns the slot of `txn`; lists the transaction if it is new.
    pub fn get_or_start(&self, txn: TxnId) -> Arc<Slot> {
        let new = || Slot::new(TxnState { txn, ..TxnState::default() }, false, true);
        Arc::clone(self.0.lock().entry(txn).or_insert_with(new))
    }

    /// Lists the new transaction `txn`, which is not logged.
    pub fn start_unlogged(&self, txn: TxnId) -> Arc<Slot> {
        let slot = Slot::new(TxnState { txn, ..TxnState::default() }, false, false);
        let before = self.0.lock().insert(txn, Arc::clone(&slot));
        debug_assert!(before.is_none(), "I1: a transaction is listed once");
        slot
    }

    /// Returns the slot of a listed transaction.
    pub fn get(&self, txn: TxnId) -> Option<Arc<Slot>> {
        self.0.lock().get(&txn).cloned()
    }

    /// Removes a transaction from the list.
    pub fn finish(&self, txn: TxnId) {
        self.0.lock().remove(&txn);
    }

    /// Returns all slots, in order of ID.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.0.lock().values().cloned().collect()
    }

    /// Returns the number of listed transactions.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Returns the number of prepared transactions.
    pub fn prepared_count(&self) -> usize {
        self.slots().iter().filter(|slot| slot.state().xid.is_some()).count()
    }

    /// Returns whether no transaction is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the transactions with undo records and the prepared ones, for the epoch switch,
    /// while no mini-transaction runs.
    pub fn snapshot(&self) -> Vec<TxnState> {
        let states = self.slots().iter().map(|slot| *slot.state()).collect::<Vec<_>>();
        states.into_iter().filter(|state| state.first != UndoPtr(0) || state.xid.is_some()).collect()
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
    fn the_epoch_switch_sees_the_transactions_that_have_appended_records_rolled_back_or_not() {
        let active = Active::new(&[]);
        active.get_or_start(TxnId(1));
        active.get_or_start(TxnId(2)).state().first = UndoPtr(8);
        assert_eq!(active.snapshot().iter().map(|state| state.txn).collect::<Vec<_>>(), [TxnId(2)]);
        active.finish(TxnId(2));
        assert_eq!((active.snapshot().len(), active.len()), (0, 1));
    }

    #[test]
    fn rows_are_counted_by_table() {
        let slot = Active::new(&[]).get_or_start(TxnId(1));
        [(3, 1), (4, -1), (3, 1), (5, 0)]
            .iter()
            .for_each(|&(table, rows)| slot.count_rows(TableId(table), rows));
        assert_eq!(
            [3, 4, 5, 6].map(|table| slot.rows_of(TableId(table))),
            [Some(2), Some(-1), Some(0), None]
        );
        slot.count_rows(TableId(5), 0);
        assert_eq!(slot.rows_of(TableId(5)), Some(0));
        slot.set_rows(BTreeMap::new());
        slot.count_rows(TableId(5), 0);
        assert_eq!(slot.rows_of(TableId(5)), Some(0), "a table that was listed before is listed again");
    }

    #[test]
    fn whoever_lets_go_of_a_state_publishes_its_count_of_undo_records() {
        let slot = Active::new(&[TxnState { txn: TxnId(1), undo_no: 7, ..TxnState::default() }]);
        let slot = slot.get_or_start(TxnId(1));
        assert_eq!(slot.undo_no(), 7);
        let mut state = slot.state();
        state.undo_no += 1;
        assert_eq!(slot.undo_no(), 7);
        drop(state);
        assert_eq!(slot.undo_no(), 8);
        slot.state().undo_no = 2;
        assert_eq!(slot.undo_no(), 2);
    }
}
