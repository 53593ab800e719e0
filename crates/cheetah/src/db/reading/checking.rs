//! CHECK TABLE in a transaction.

use crate::base::{sound, Result};
use crate::check::{self, CheckReport, Checker, Expected, ExpectedEntries};
use crate::db::Transaction;
use crate::table::Table;
use std::sync::Arc;

impl Transaction {
    /// Checks a whole table in its newest state, including this transaction's own changes: compares
    /// its trees with each other, and each row with the entries that `expected` computes. Takes no
    /// locks, does not wait, and holds a snapshot until it is done. Errors: those of
    /// [`cursor`](Self::cursor) without locks.
    pub fn check_table(
        &mut self,
        table: &Arc<Table>,
        expected: &mut ExpectedEntries<'_>,
    ) -> Result<CheckReport> {
        self.check_table_as(table, true, Some(Expected { entries: expected, repeats: &|_, _| false }))
    }

    /// Like [`check_table`](Self::check_table), for payloads that may repeat their key.
    pub fn check_table_expecting(
        &mut self,
        table: &Arc<Table>,
        expected: Expected<'_, '_>,
    ) -> Result<CheckReport> {
        self.check_table_as(table, true, Some(expected))
    }

    /// Reads large values only if `extended`. Without `expected`, entries are not compared with
    /// rows.
    pub(in crate::db) fn check_table_as(
        &mut self,
        table: &Arc<Table>,
        extended: bool,
        expected: Option<Expected<'_, '_>>,
    ) -> Result<CheckReport> {
        self.catch_up()?;
        self.core.health.check()?;
        // Later replacements of the table are not checked.
        let table = table.newest();
        let view = self.new_view();
        let own = self.slot_of(table).and_then(|slot| slot.rows_of(table.id()));
        let stamp = view.stamp();
        let counted = stamp.and_then(|stamp| match sound!(true, "check: count what is newest") {
            true => table.counts().count(stamp, own),
            false => Some(table.row_count()),
        });
        let checker = Checker { locker: &self.locker, table, view: &view, counted };
        check::check_table(checker, extended, expected)
    }

    /// Like [`check_table`](Self::check_table), but checks only the pages above the leaves: a few
    /// pages in a thousand of a large table. Rows and entries are not checked.
    pub fn check_inner_pages(&mut self, table: &Arc<Table>) -> Result<CheckReport> {
        self.core.health.check()?;
        check::check_inner_pages(&self.locker, table.newest())
    }
}
