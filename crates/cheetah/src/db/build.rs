//! Building indexes through a transaction, while others read and write the table.

use super::{Cursor, Transaction};
use crate::base::{Error, Result};
use crate::table::build::{self, EntriesOf};
use crate::table::{BuiltIndexes, IndexSpec, Table};
use crate::tree::SeekMode;
use crate::txn::TableMode;
use std::sync::Arc;

/// Rows read at a time, and between two questions whether the statement is to end.
const ROWS_PER_STEP: usize = 512;
/// With fewer changed rows in a round than that the last one is short; rounds after which it is
/// made all the same.
const ROWS_OF_SHORT_ROUND: u64 = 512;
const ROUNDS_MAX: usize = 32;

/// Indexes that are being built for a table, see [`Transaction::begin_build`]. Dropping it before a
/// change of the definition has taken them leaves nothing behind.
#[derive(Debug)]
pub struct Build(build::Build);

impl Build {
    /// Clustered key and stored row, with its large values in it, of the row because of which
    /// [`Transaction::run_build`] or [`Transaction::finish_build`] has answered `DuplicateKey`; the
    /// number of the index there counts the new ones, from 1.
    pub fn refused(&self) -> Option<(&[u8], &[u8])> {
        self.0.refused().map(|refused| (refused.key.as_slice(), refused.row.as_slice()))
    }

    /// The indexes that a change of the definition can take; `None` before
    /// [`Transaction::finish_build`].
    pub fn indexes(&self) -> Option<BuiltIndexes> {
        self.0.indexes()
    }
}

impl Transaction {
    /// Keeps loads from the table until this transaction ends: one that is committed meanwhile
    /// would put another table into its place, with the definition of before. Many rows for it are
    /// inserted like any others meanwhile. Waits for a load that is under way, after which the
    /// table may [have moved](Table::has_moved). Errors: those of [`lock_table`](Self::lock_table).
    pub fn keep_loads_off(&mut self, table: &Arc<Table>) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::IntentShared)
    }

    /// Begins to build indexes for a table from the rows that are committed now. `with_values`:
    /// entries need large values, so rows are handed out with them.
    /// [Keeps loads off](Self::keep_loads_off) first. `Limit` when there would be too many indexes
    /// or too long keys; `Unsupported` when too many statements sort already, or this transaction
    /// has written: its changes are no rows that others see; `NoSuchTable`.
    pub fn begin_build(
        &mut self,
        table: &Arc<Table>,
        specs: &[IndexSpec],
        with_values: bool,
    ) -> Result<Build> {
        self.check_has_not_written(table)?;
        self.keep_loads_off(table)?;
        if table.has_moved() {
            return Err(Error::NoSuchTable(table.name()));
        }
        drop(table.use_it()?);
        build::Build::new(&self.core, table, specs, with_values).map(Build)
    }

    /// Builds them, and brings them up to what is committed at its end, durably; others may write
    /// the table meanwhile. Waits before for prepared transactions that have locked the table, as
    /// [`finish_build`](Self::finish_build) would after all the work: `LockTimeout`. `entries_of`
    /// computes the entries of a row. `progress` is told now and then how far it is. Takes long,
    /// and asks whether to stop, see [`interrupt_when`](Self::interrupt_when). `DuplicateKey` when
    /// two rows that were committed at the same time have the same unique key; `DiskFull`.
    pub fn run_build(
        &mut self,
        build: &mut Build,
        entries_of: &mut EntriesOf<'_>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<()> {
        let locker = Arc::clone(&self.locker);
        let watch = |done, total| {
            progress(done, total);
            locker.is_interrupted()
        };
        let may_stop = || locker.is_interrupted();
        self.core.prepared.wait_for(build.0.table().id(), locker.wait_ns(), &may_stop)?;
        self.scan(&mut build.0, entries_of, &watch)?;
        build.0.build_trees(&self.core, &watch)?;
        let quiet = |_, _| locker.is_interrupted();
        for _ in 0..ROUNDS_MAX {
            if build.0.catch_up(&self.core, &quiet, entries_of)? < ROWS_OF_SHORT_ROUND {
                break;
            }
        }
        build.0.make_durable(&self.core)
    }

    /// Locks the table against writers, and brings the indexes up to what is there then, durably:
    /// until this transaction ends, a change of the definition may take them. Errors: those of
    /// [`lock_table`](Self::lock_table), [`begin_build`](Self::begin_build) and
    /// [`run_build`](Self::run_build).
    pub fn finish_build(&mut self, build: &mut Build, entries_of: &mut EntriesOf<'_>) -> Result<()> {
        self.check_has_not_written(build.0.table())?;
        self.lock_table_as(build.0.table(), TableMode::Shared)?;
        let locker = Arc::clone(&self.locker);
        build.0.catch_up(&self.core, &|_, _| locker.is_interrupted(), entries_of)?;
        build.0.make_durable(&self.core)?;
        build.0.set_finished();
        Ok(())
    }

    fn scan(
        &mut self,
        build: &mut build::Build,
        entries_of: &mut EntriesOf<'_>,
        watch: &dyn Fn(u64, u64) -> bool,
    ) -> Result<()> {
        let table = Arc::clone(build.table());
        let total = table.row_count() * build.built().indexes().len() as u64;
        let mut cursor = Cursor::new(&self.locker, &table, 0, Some(Arc::clone(build.base())))?;
        if !cursor.seek(SeekMode::First, b"")? {
            return Ok(());
        }
        build.add(&self.core, [cursor.key(), &[]], cursor.row(), entries_of)?;
        let (mut done, mut failure) = (1, None);
        loop {
            let found = cursor.next_rows(ROWS_PER_STEP, |prefix, suffix, row| {
                if failure.is_none() {
                    failure = build.add(&self.core, [prefix, suffix], row, entries_of).err();
                    done += 1;
                }
            })?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            if watch(done, total) {
                return Err(Error::Interrupted);
            }
            if !found {
                return Ok(());
            }
        }
    }
}
