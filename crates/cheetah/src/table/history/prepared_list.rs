//! Prepared transactions without a session (P3 of [`super::prepared`]).
//!
//! Locks     the list, briefly; no other lock is taken while it is held.

use crate::base::{Error, Result, TableId, Xid};
use crate::table::shared::changed_tables::ChangedTables;
use crate::txn::{Listed, Slot};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

const WAIT_SLICE_NS: u64 = 50_000_000;

/// The prepared transactions without a session (P3).
#[derive(Default, Debug)]
pub(crate) struct Prepared {
    list: Mutex<Vec<Waiting>>,
    left: Condvar,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) xid: Xid,
    pub(super) slot: Arc<Slot>,
    pub(super) listed: Listed,
    pub(super) tables: Vec<TableId>,
    pub(super) changed: ChangedTables,
    /// The coordinator knows of the transaction: it was reported, or was prepared since startup.
    pub(super) is_told: bool,
}

impl Prepared {
    pub(crate) fn add(
        &self,
        slot: Arc<Slot>,
        xid: Xid,
        listed: Listed,
        tables: Vec<TableId>,
        changed: ChangedTables,
    ) {
        self.list.lock().push(Waiting { xid, slot, listed, tables, changed, is_told: true });
    }

    pub(crate) fn xids(&self) -> Vec<Xid> {
        self.list.lock().iter().map(|waiting| waiting.xid).collect()
    }

    /// The XIDs, and the tables that each transaction keeps locked.
    pub(crate) fn locks(&self) -> Vec<(Xid, Vec<TableId>)> {
        self.list.lock().iter().map(|waiting| (waiting.xid, waiting.tables.clone())).collect()
    }

    /// At most `count` XIDs of transactions prepared before the last startup and not reported yet.
    pub(crate) fn tell(&self, count: usize) -> Vec<Xid> {
        let mut list = self.list.lock();
        let untold = list.iter_mut().filter(|waiting| !waiting.is_told).take(count);
        let tell = |waiting: &mut Waiting| {
            waiting.is_told = true;
            waiting.xid
        };
        untold.map(tell).collect()
    }

    /// Errors: `LockTimeout`, `Interrupted`.
    pub(crate) fn wait_for(
        &self,
        table: TableId,
        timeout_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut left_ns = timeout_ns;
        let mut list = self.list.lock();
        while list.iter().any(|waiting| waiting.tables.contains(&table)) {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            if left_ns == 0 {
                return Err(Error::LockTimeout);
            }
            let slice_ns = left_ns.min(WAIT_SLICE_NS);
            self.left.wait_for(&mut list, Duration::from_nanos(slice_ns));
            left_ns -= slice_ns;
        }
        Ok(())
    }

    pub(super) fn take(&self, xid: &Xid) -> Result<Waiting> {
        let mut list = self.list.lock();
        let at = list.iter().position(|waiting| waiting.xid.names_same(xid));
        at.map(|at| list.swap_remove(at)).ok_or_else(|| Error::UnknownXid(xid.to_string()))
    }

    pub(super) fn put_back(&self, waiting: Waiting) {
        self.list.lock().push(waiting);
    }

    pub(super) fn note_left(&self) {
        let _list = self.list.lock();
        self.left.notify_all();
    }
}
