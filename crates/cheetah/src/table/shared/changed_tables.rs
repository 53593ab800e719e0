//! Which tables a transaction has changed, for those who want to know when a table was changed
//! last.
//!
//! The engine does not know the time of day: the caller says when its statement began, and the
//! tables are told at the commit.

use crate::table::definitions::handle::Table;
use std::sync::Arc;

/// See the module.
#[derive(Default, Debug)]
pub(crate) struct ChangedTables {
    /// As the caller counts time; 0: changes are not noted.
    time: u64,
    /// By their numbers.
    tables: Vec<Changed>,
}

#[derive(Debug)]
struct Changed {
    table: Arc<Table>,
    /// Undo records of the transaction before its first change of the table; none when no
    /// savepoint takes that back.
    undo_no: Option<u64>,
    time: u64,
}

impl ChangedTables {
    /// Changes are from this time, until another one is told; 0: they are not noted.
    pub(crate) fn set_time(&mut self, time: u64) {
        self.time = time;
    }

    /// Notes a change of the table, before which the transaction had `undo_no` undo records.
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

    /// The transaction has gone back to this undo record.
    pub(crate) fn forget_since(&mut self, undo_no: u64) {
        self.tables.retain(|changed| changed.undo_no.is_none_or(|before| before < undo_no));
    }

    /// The transaction has been rolled back.
    pub(crate) fn forget(&mut self) {
        self.tables.clear();
    }

    /// The transaction has been committed: tells the tables when they were changed.
    pub(crate) fn tell(&mut self) {
        for changed in self.tables.drain(..) {
            changed.table.newest().set_changed_at(changed.time);
        }
    }
}
