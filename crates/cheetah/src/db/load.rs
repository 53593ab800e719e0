//! Loads through a transaction: rows of a new table that nobody else sees, many at a time, without undo and log.

use super::Transaction;
use crate::base::{Error, Result};
use crate::table::load::{self, Kept, Taken};
use crate::table::{keys, ExpectedEntries, NewRow, Table};
use crate::txn::TableMode;
use std::sync::Arc;

/// A load of one table, see [`Transaction::begin_load`]. Dropping it before it has ended leaves the table empty.
#[derive(Debug)]
pub struct Load(load::Load);

impl Load {
    /// Clustered key and stored row, with its large values in it, of the row because of which [`Transaction::load`] or
    /// [`Transaction::finish_load`] has answered `DuplicateKey`.
    pub fn refused(&self) -> Option<(&[u8], &[u8])> {
        self.0.refused().map(|refused| (refused.key.as_slice(), refused.row.as_slice()))
    }
}

impl Transaction {
    /// Begins to load a table; `None` when somebody has written it already, or when it is not from this process.
    ///
    /// For a caller who knows that nobody else has use for the table yet, and who will drop it unless the load ends well: rows of a load
    /// are not taken back with the transaction, and are seen by everybody once it has ended, but for snapshots from before. Until then
    /// the transaction must not read or write the table in another way. It has it locked as a whole: errors as of
    /// [`lock_table`](Self::lock_table).
    pub fn begin_load(&mut self, table: &Arc<Table>) -> Result<Option<Load>> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        let _usage = table.use_it()?;
        Ok(table.is_untouched().then(|| Load(load::Load::new(table))))
    }

    /// Takes a row, which may come in any order. Does I/O now and then. `DuplicateKey`, here or at the end, when another one has a
    /// unique key of it; `Limit` when key or row are too long; `DiskFull`. After an error the load is over, and the table is empty, or has some
    /// rows that this transaction has inserted.
    pub fn load(&mut self, load: &mut Load, row: &NewRow<'_>) -> Result<()> {
        match load.0.add(&self.core, row)? {
            Taken::Yes => Ok(()),
            Taken::No => {
                self.insert_kept(load)?;
                self.insert_for(load, row)
            }
        }
    }

    /// Ends a load; returns the table from which its rows are read from now on: other handles of it answer `NoSuchTable`. If there are many rows,
    /// they are durable on return; otherwise this transaction has inserted them. May take long and asks meanwhile whether to stop, see
    /// [`interrupt_when`](Self::interrupt_when). Errors as of [`load`](Self::load); when the last step fails, the table can only be dropped, emptied or renamed.
    pub fn finish_load(&mut self, load: &mut Load) -> Result<Arc<Table>> {
        self.finish_load_telling(load, &|_, _| ())
    }

    /// As [`finish_load`](Self::finish_load); `progress` is told now and then how many records have been put into their place, of how many.
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
        match load.0.finish(&self.core, &watch)? {
            Some(table) => Ok(table),
            None => {
                self.insert_kept(load)?;
                load.0.end();
                Ok(Arc::clone(load.0.table()))
            }
        }
    }

    /// Stops keeping the entries of the indexes in `which`, but for unique ones, until [`enable_indexes`](Self::enable_indexes): rows are written without them, and no
    /// cursor reads them. Returns the table to use from now on; other handles answer `NoSuchTable`. Durable on return, whatever becomes of the transaction, which has the table
    /// locked as a whole: errors as of [`lock_table`](Self::lock_table). `Unsupported` when the transaction has written: what it would take back
    /// later is not in these indexes.
    pub fn disable_indexes(&mut self, table: &Arc<Table>, which: &[usize]) -> Result<Arc<Table>> {
        self.catch_up()?;
        self.check_has_not_written(table)?;
        self.lock_table_as(table, TableMode::Exclusive)?;
        keys::disable(&self.core, table, which)
    }

    /// Builds the disabled indexes of a table, sorted, from the entries that `entries_of` computes of each row, and keeps them from now on. May take long, and asks
    /// meanwhile whether to stop. Otherwise as [`disable_indexes`](Self::disable_indexes). After an error they are disabled as before.
    /// Older snapshots are refused these indexes (`TableChanged`).
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
        keys::enable(&self.core, table, entries_of, &watch)
    }

    /// Inserts the rows that a load has kept.
    fn insert_kept(&mut self, load: &mut Load) -> Result<()> {
        let kept = load.0.take_kept();
        kept.map_or(Ok(()), |kept: Kept| kept.each(&mut |row| self.insert_for(load, row)))
    }

    fn insert_for(&mut self, load: &mut Load, row: &NewRow<'_>) -> Result<()> {
        let table = Arc::clone(load.0.table());
        self.insert(&table, row).inspect_err(|error| {
            if let Error::DuplicateKey { .. } = error {
                load.0.set_refused(row);
            }
            load.0.end();
        })
    }
}
