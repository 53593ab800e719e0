//! Loads through a transaction: rows of a table that nobody has written, many at a time, without
//! undo and log.
//!
//! Those of a new table that nobody else sees go to its own trees. Those of a table that others see
//! go to a shadow one, which takes its place with the commit
//! ([`crate::table::definitions::shadow`]).

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

/// Rows between two notes of how many there are.
const ROWS_PER_NOTE: u64 = 64;

/// A load of one table, see [`Transaction::begin_load`]. Dropping it before it has ended leaves the
/// table empty.
#[derive(Debug)]
pub struct Load {
    load: load::Load,
    /// Whether its rows come with the commit.
    is_of_transaction: bool,
    rows: u64,
}

impl Load {
    fn new(table: &Arc<Table>, is_of_transaction: bool) -> Self {
        Self { load: load::Load::new(table, is_of_transaction), is_of_transaction, rows: 0 }
    }

    /// Clustered key and stored row, with its large values in it, of the row because of which
    /// [`Transaction::load`] or [`Transaction::finish_load`] has answered `DuplicateKey`.
    pub fn refused(&self) -> Option<(&[u8], &[u8])> {
        self.load.refused().map(|refused| (refused.key.as_slice(), refused.row.as_slice()))
    }
}

impl Transaction {
    /// Begins to load a table; `None` when somebody has written it already, when it is not from
    /// this process, or when its columns have come and gone.
    ///
    /// For a caller that knows that nobody else has use for the table yet, and will drop it unless
    /// the load ends well: rows of a load are not rolled back with the transaction, and are seen by
    /// everybody once it has ended, but for snapshots from before. Until then the transaction must
    /// not read or write the table in another way. The transaction has the table locked as a whole:
    /// errors are those of [`lock_table`](Self::lock_table).
    pub fn begin_load(&mut self, table: &Arc<Table>) -> Result<Option<Load>> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        let _usage = table.use_it()?;
        // A load stores rows of the one row-format version that its new trees know.
        let can_load = table.is_untouched() && !table.has_older_formats();
        Ok(can_load.then(|| Load::new(table, false)))
    }

    /// Begins to load rows of this transaction into a table that others may see; `None` when
    /// somebody has written it already, or when it is not from this process.
    ///
    /// The rows are the transaction's like those that it [inserts](Self::insert), but for two
    /// things: it does not find them itself before it has committed, and no savepoint takes them
    /// back, only a rollback. So it is for callers whose transaction does nothing else. When there
    /// are many, it locks the table as a whole, unless somebody would have to be waited for or has
    /// written it since: then they are inserted like any others. A transaction whose load has not
    /// [ended](Self::finish_load) well does not commit, as rows would be missing.
    pub fn begin_load_to_commit(&mut self, table: &Arc<Table>) -> Result<Option<Load>> {
        self.catch_up()?;
        self.core.health.check()?;
        let table = table.newest();
        let _usage = table.use_it()?;
        // A log record gives the rows their place, and a temporary table has no log records.
        if !table.is_untouched() || table.has_older_formats() || table.id().is_temporary() {
            return Ok(None);
        }
        self.unended_loads += 1;
        Ok(Some(Load::new(table, true)))
    }

    /// Takes a row, which may come in any order. Does I/O now and then. `DuplicateKey`, here or at
    /// the end, when another one has a unique key of it; `Limit` when key or row are too long;
    /// `DiskFull`. After an error the load is over, and the table is empty, or has some rows that
    /// this transaction has inserted.
    pub fn load(&mut self, load: &mut Load, row: &NewRow<'_>) -> Result<()> {
        let core = Arc::clone(&self.core);
        let Load { load: to, is_of_transaction, rows } = load;
        *rows += 1;
        // Its work counts in a deadlock as that of whoever inserts.
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

    /// Ends a load; returns the table from which its rows are read from now on: other handles of a
    /// new table answer `NoSuchTable`. If there are many rows of a new table, they are durable on
    /// return; otherwise this transaction has inserted them, or their table waits for its commit.
    /// May take long and asks meanwhile whether to stop, see
    /// [`interrupt_when`](Self::interrupt_when). Errors: those of [`load`](Self::load); when the
    /// last step fails, the table can only be dropped, emptied or renamed.
    pub fn finish_load(&mut self, load: &mut Load) -> Result<Arc<Table>> {
        self.finish_load_telling(load, &|_, _| ())
    }

    /// As [`finish_load`](Self::finish_load); `progress` is told now and then how many records have
    /// been put into their place, of how many.
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

    /// `Unsupported` when rows of a load would be missing.
    pub(in crate::db) fn check_loads_have_ended(&self) -> Result<()> {
        match self.unended_loads {
            0 => Ok(()),
            count => Err(Error::Unsupported {
                place: format!("a transaction with {count} unfinished loads"),
                detail: "rows would be missing; roll it back".into(),
            }),
        }
    }

    /// The shadow table to load in place of `table`; none when others use that, or have written it.
    fn begin_shadow(&mut self, table: &Arc<Table>) -> Result<Option<Arc<Table>>> {
        let is_ours = self.try_lock_table(table)? && table.is_untouched() && !table.has_moved();
        if !is_ours {
            return Ok(None);
        }
        let txn = self.slot().txn();
        shadow::create(&self.core, table, txn)
    }

    /// Stops keeping the entries of the indexes in `which`, but for unique ones, until
    /// [`enable_indexes`](Self::enable_indexes): rows are written without them, and no cursor reads
    /// them. Returns the table to use from now on; other handles answer `NoSuchTable`. Durable on
    /// return, however the transaction ends, which has the table locked as a whole: errors are
    /// those of [`lock_table`](Self::lock_table). `Unsupported` when the transaction has written:
    /// the rows that it would roll back later are not in these indexes.
    pub fn disable_indexes(&mut self, table: &Arc<Table>, which: &[usize]) -> Result<Arc<Table>> {
        self.catch_up()?;
        self.check_has_not_written(table)?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        keys::disable(&self.core, table.newest(), which)
    }

    /// As [`disable_indexes`](Self::disable_indexes) for a table without rows. `None` when it has a
    /// row, whether or not anybody sees it: then nothing has changed, and nobody is waited for.
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
    /// of each row, and keeps them from now on. May take long, and asks meanwhile whether to stop.
    /// Otherwise as [`disable_indexes`](Self::disable_indexes). After an error they are disabled as
    /// before. Older snapshots are refused these indexes (`TableChanged`).
    pub fn enable_indexes(
        &mut self,
        table: &Arc<Table>,
        entries_of: &mut ExpectedEntries<'_>,
    ) -> Result<Arc<Table>> {
        self.enable_indexes_telling(table, entries_of, &|_, _| ())
    }

    /// As [`enable_indexes`](Self::enable_indexes); `progress` is told now and then how far it is.
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

    /// Inserts the rows that a load has kept.
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
