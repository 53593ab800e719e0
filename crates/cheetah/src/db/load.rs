//! Loads through a transaction: many rows at a time, without undo and log, into a table that has
//! never been written.
//!
//! Rows of a new table that no other transaction sees are loaded into the table's own trees. Rows
//! of a table that others see are loaded into a shadow table, which replaces the table when the
//! transaction commits ([`crate::table::definitions::shadow`]).

use super::Transaction;
use crate::base::{Error, Result};
use crate::table::definitions::shadow;
use crate::table::keys;
use crate::table::load::{self, Kept, Taken};
use crate::table::ExpectedEntries;
use crate::table::NewRow;
use crate::table::Table;
use crate::txn::TableMode;
use std::sync::Arc;

/// Rows between two updates of the recorded row count.
const ROWS_PER_NOTE: u64 = 64;

/// A load of one table, see [`Transaction::begin_load`]. Dropping it before it has ended leaves the
/// table empty.
#[derive(Debug)]
pub struct Load {
    load: load::Load,
    is_of_transaction: bool,
    rows: u64,
}

impl Load {
    fn new(table: &Arc<Table>, is_of_transaction: bool) -> Self {
        Self { load: load::Load::new(table, is_of_transaction), is_of_transaction, rows: 0 }
    }

    /// The clustered key and the stored row, with large values inline, of the row that
    /// [`Transaction::load`] or [`Transaction::finish_load`] refused with `DuplicateKey`.
    pub fn refused(&self) -> Option<(&[u8], &[u8])> {
        self.load.refused().map(|refused| (refused.key.as_slice(), refused.row.as_slice()))
    }
}

impl Transaction {
    /// Begins to load a table. Returns `None` if the table has already been written, was not
    /// created by this process, or has had columns added or dropped.
    ///
    /// For a caller that ensures that no other transaction uses the table yet, and that drops the
    /// table unless the load ends successfully: loaded rows are not rolled back with the
    /// transaction. Once the load has ended, all snapshots except older ones see these rows. Until
    /// then the transaction must not read or write the table in another way. Locks the whole table:
    /// errors are those of [`lock_table`](Self::lock_table).
    pub fn begin_load(&mut self, table: &Arc<Table>) -> Result<Option<Load>> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        let _usage = table.use_it()?;
        // A load stores rows in a single row-format version, the one that its new trees know.
        let can_load = table.is_untouched() && !table.has_older_formats();
        Ok(can_load.then(|| Load::new(table, false)))
    }

    /// Begins to load rows of this transaction into a table that other transactions may see.
    /// Returns `None` if the table has already been written, or was not created by this process.
    ///
    /// The rows belong to the transaction like [inserted](Self::insert) rows, except that it does
    /// not see them before it has committed, and that only a full rollback removes them, not a
    /// rollback to a savepoint. So this is for transactions that do nothing else. If there are many
    /// rows, the load locks the whole table. If it would have to wait for this lock, or another
    /// transaction has written the table meanwhile, the rows are inserted like any others. A
    /// transaction whose load has not [ended](Self::finish_load) successfully cannot commit,
    /// because rows would be missing.
    pub fn begin_load_to_commit(&mut self, table: &Arc<Table>) -> Result<Option<Load>> {
        self.catch_up()?;
        self.core.health.check()?;
        let table = table.newest();
        let _usage = table.use_it()?;
        // The rows become visible through a log record, and temporary tables have no log records.
        if !table.is_untouched() || table.has_older_formats() || table.id().is_temporary() {
            return Ok(None);
        }
        self.unended_loads += 1;
        Ok(Some(Load::new(table, true)))
    }

    /// Adds a row; rows may be added in any order. Does I/O now and then. Fails with
    /// `DuplicateKey`, here or at the end, if another row has the same unique key; with `Limit` if
    /// the key or the row is too long; and with `DiskFull`. After an error, the load is over, and
    /// the table is empty, or has some rows that this transaction has inserted.
    pub fn load(&mut self, load: &mut Load, row: &NewRow<'_>) -> Result<()> {
        let core = Arc::clone(&self.core);
        let Load { load: to, is_of_transaction, rows } = load;
        *rows += 1;
        // When a deadlock victim is chosen, loaded rows count like inserted rows.
        if *rows % ROWS_PER_NOTE == 0 {
            self.locker.note_undo_records(*rows);
        }
        let table = Arc::clone(to.table());
        let begin: load::Begin<'_> = match is_of_transaction {
            true => &mut || self.begin_shadow(&table),
            false => &mut || Ok(Some(Arc::clone(&table))),
        };
        match to.add(&core, row, begin)? {
            Taken::Yes => Ok(()),
            Taken::No => {
                self.insert_kept(load)?;
                self.insert_for(load, row)
            }
        }
    }

    /// Ends a load and returns the table from which its rows must be read from now on: other
    /// handles of a new table return `NoSuchTable`. If a new table has many rows, they are durable
    /// on return. Otherwise this transaction has inserted them, or their table becomes visible with
    /// its commit. May take long; [`interrupt_when`](Self::interrupt_when) can interrupt it.
    /// Errors: those of [`load`](Self::load). If the last step fails, the table can only be
    /// dropped, emptied or renamed.
    pub fn finish_load(&mut self, load: &mut Load) -> Result<Arc<Table>> {
        self.finish_load_telling(load, &|_, _| ())
    }

    /// Like [`finish_load`](Self::finish_load). `progress` is called repeatedly with the number of
    /// records written so far, and the total.
    pub fn finish_load_telling(
        &mut self,
        load: &mut Load,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Arc<Table>> {
        let locker = Arc::clone(&self.locker);
        let watch = |done, total| {
            progress(done, total);
            locker.is_interrupted()
        };
        let finished = match load.load.finish(&self.core, &watch)? {
            Some(_) if load.is_of_transaction => {
                self.changed.note(load.load.table(), None);
                Arc::clone(load.load.table())
            }
            Some(table) => table,
            None => {
                self.insert_kept(load)?;
                load.load.end();
                Arc::clone(load.load.table())
            }
        };
        self.unended_loads = self.unended_loads.saturating_sub(u32::from(load.is_of_transaction));
        Ok(finished)
    }

    /// Fails with `Unsupported` if a load has not ended successfully: rows would be missing.
    pub(in crate::db) fn check_loads_have_ended(&self) -> Result<()> {
        match self.unended_loads {
            0 => Ok(()),
            count => Err(Error::Unsupported {
                place: format!("a transaction with {count} unfinished loads"),
                detail: "rows would be missing; roll it back".into(),
            }),
        }
    }

    /// `None` if other transactions use the table or have written it.
    fn begin_shadow(&mut self, table: &Arc<Table>) -> Result<Option<Arc<Table>>> {
        let is_ours = self.try_lock_table(table)? && table.is_untouched() && !table.has_moved();
        if !is_ours {
            return Ok(None);
        }
        let txn = self.slot().txn();
        shadow::create(&self.core, table, txn)
    }

    /// Stops maintaining the entries of the indexes in `which`, except unique indexes, until
    /// [`enable_indexes`](Self::enable_indexes): rows are written without these entries, and no
    /// cursor reads them. Returns the table to use from now on; other handles return `NoSuchTable`.
    /// Durable on return, however the transaction ends. Locks the whole table: errors are those of
    /// [`lock_table`](Self::lock_table), and `Unsupported` if the transaction has written: a later
    /// rollback would restore rows that these indexes lack.
    pub fn disable_indexes(&mut self, table: &Arc<Table>, which: &[usize]) -> Result<Arc<Table>> {
        self.catch_up()?;
        self.check_has_not_written(table)?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        keys::disable(&self.core, table.newest(), which)
    }

    /// Like [`disable_indexes`](Self::disable_indexes), but returns `None`, and changes nothing, if
    /// the table has a row, visible or not. Does not wait if it has one at the time of the call.
    pub fn disable_indexes_if_empty(
        &mut self,
        table: &Arc<Table>,
        which: &[usize],
    ) -> Result<Option<Arc<Table>>> {
        self.catch_up()?;
        self.check_has_not_written(table)?;
        if !keys::has_no_rows(table.newest())? {
            return Ok(None);
        }
        self.lock_table_as(table, TableMode::Exclusive)?;
        match keys::has_no_rows(table.newest())? {
            true => keys::disable(&self.core, table.newest(), which).map(Some),
            false => Ok(None),
        }
    }

    /// Builds the disabled indexes of a table, sorted, from the entries that `entries_of` computes
    /// for each row, and maintains them from now on. May take long; can be interrupted. Otherwise
    /// like [`disable_indexes`](Self::disable_indexes). After an error, the indexes are still
    /// disabled. Older snapshots are refused these indexes (`TableChanged`).
    pub fn enable_indexes(
        &mut self,
        table: &Arc<Table>,
        entries_of: &mut ExpectedEntries<'_>,
    ) -> Result<Arc<Table>> {
        self.enable_indexes_telling(table, entries_of, &|_, _| ())
    }

    /// Like [`enable_indexes`](Self::enable_indexes). `progress` is called repeatedly.
    pub fn enable_indexes_telling(
        &mut self,
        table: &Arc<Table>,
        entries_of: &mut ExpectedEntries<'_>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Arc<Table>> {
        self.catch_up()?;
        self.check_has_not_written(table)?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        let locker = Arc::clone(&self.locker);
        let watch = |done, total| {
            progress(done, total);
            locker.is_interrupted()
        };
        keys::enable(&self.core, table.newest(), entries_of, &watch)
    }

    fn insert_kept(&mut self, load: &mut Load) -> Result<()> {
        let kept = load.load.take_kept();
        kept.map_or(Ok(()), |kept: Kept| kept.each(&mut |row| self.insert_for(load, row)))
    }

    fn insert_for(&mut self, load: &mut Load, row: &NewRow<'_>) -> Result<()> {
        let table = Arc::clone(load.load.table());
        self.insert(&table, row).inspect_err(|error| {
            if let Error::DuplicateKey { .. } = error {
                load.load.set_refused(row);
            }
            load.load.end();
        })
    }
}
