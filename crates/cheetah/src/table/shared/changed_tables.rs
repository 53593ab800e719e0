//! The tables that a transaction has changed, with the time of the change for users: the start of
//! the caller's statement, because the engine does not know the time of day. The tables get it at
//! commit.

use crate::table::definitions::handle::Table;
use std::sync::Arc;

#[derive(Default, Debug)]
pub(crate) struct ChangedTables {
    /// In the caller's unit; 0: changes are not noted.
    time: u64,
    /// Ordered by table ID.
    tables: Vec<Changed>,
}

#[derive(Debug)]
struct Changed {
    table: Arc<Table>,
    /// The transaction's undo records before its first change of the table; `None` if a rollback to
    /// a savepoint does not undo that change.
    undo_no: Option<u64>,
    time: u64,
}

impl ChangedTables {
    /// 0: changes are not noted.
    pub(crate) fn set_time(&mut self, time: u64) {
        self.time = time;
    }

    /// `undo_no`: the transaction's undo records before the change.
    #[inline]
    pub(crate) fn note(&mut self, table: &Arc<Table>, undo_no: Option<u64>) {
        if self.time == 0 {
            return;
        }
        let at = self.tables.partition_point(|changed| changed.table.id() < table.id());
        match self.tables.get_mut(at).filter(|changed| changed.table.id() == table.id()) {
            Some(changed) => changed.time = self.time,
            None => {
                let changed = Changed { table: Arc::clone(table), undo_no, time: self.time };
                self.tables.insert(at, changed);
            }
        }
    }

    /// Must be called after the rollback to this undo record.
    pub(crate) fn forget_since(&mut self, undo_no: u64) {
        self.tables.retain(|changed| changed.undo_no.is_none_or(|before| before < undo_no));
    }

    /// Must be called after the transaction was rolled back.
    pub(crate) fn forget(&mut self) {
        self.tables.clear();
    }

    /// Sets the tables' last change times. Must be called after the commit.
    pub(crate) fn tell(&mut self) {
        for changed in self.tables.drain(..) {
            changed.table.newest().set_changed_at(changed.time);
        }
    }
}
