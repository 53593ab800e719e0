//! The parts that manage transactions: open transactions, version visibility, and the undo log.

use crate::txn::{Active, Owner, Roster, UndoLog, Versions};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module documentation. Each part keeps its own invariants.
pub(crate) struct Transactions {
    pub(crate) active: Active,
    pub(crate) versions: Versions,
    pub(crate) undo: UndoLog,
    pub(crate) roster: Roster,
    next_owner: AtomicU64,
}

impl Transactions {
    pub(crate) fn new(active: Active, versions: Versions, undo: UndoLog) -> Self {
        Self { active, versions, undo, roster: Roster::default(), next_owner: AtomicU64::new(1) }
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Relaxed))
    }
}
