//! Building indexes through a transaction, while other transactions read and write the table.

use super::{Cursor, Transaction};
use crate::base::{Error, Result};
use crate::table::build::{self, EntriesOf};
use crate::table::{BuiltIndexes, IndexSpec, Table};
use crate::tree::SeekMode;
use crate::txn::TableMode;
use std::sync::Arc;

/// Rows read at a time, and between two checks for an interrupt.
const ROWS_PER_STEP: usize = 512;
/// A round with fewer changed rows is the last one before the table is locked, as is round
/// `ROUNDS_MAX`.
const ROWS_OF_SHORT_ROUND: u64 = 512;
const ROUNDS_MAX: usize = 32;

/// Indexes being built for a table, see [`Transaction::begin_build`]. They are removed when this is
/// dropped, unless a change of the definition has taken them over.
#[derive(Debug)]
pub struct Build(build::Build);

impl Build {
    /// The clustered key and the stored row, with large values inlined, of the row that
    /// [`Transaction::run_build`] or [`Transaction::finish_build`] refused with `DuplicateKey`. The
    /// index position in that error counts the new indexes, from 1.
    pub fn refused(&self) -> Option<(&[u8], &[u8])> {
        self.0.refused().map(|refused| (refused.key.as_slice(), refused.row.as_slice()))
    }

    /// The indexes for a change of the definition to take over; `None` before
    /// [`Transaction::finish_build`].
    pub fn indexes(&self) -> Option<BuiltIndexes> {
        self.0.indexes()
    }
}

impl Transaction {
    /// Keeps loads away from the table until this transaction ends: a load that commits meanwhile
    /// would replace the table with one of the old definition. Until then, rows that would be
    /// loaded are inserted like any others. Waits for a load in progress, after which the table may
    /// [have moved](Table::has_moved). Errors: those of [`lock_table`](Self::lock_table).
    pub fn keep_loads_off(&mut self, table: &Arc<Table>) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::IntentShared)
    }

    /// Begins to build indexes for a table from the rows committed now. `with_values`: the entries
    /// need large values, so rows are passed with them inlined. Calls
    /// [`keep_loads_off`](Self::keep_loads_off) first. Fails with `Limit` for too many indexes or
    /// too long keys, with `NoSuchTable`, and with `Unsupported` if too many statements are sorting
    /// already, or if this transaction has written, because its changes are not committed.
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

    /// Builds the indexes and updates them, durably, to the rows committed at the end of the build.
    /// Other transactions may write the table meanwhile. First waits for prepared transactions that
    /// have locked the table, because [`finish_build`](Self::finish_build) would otherwise wait for
    /// them after all the work; this wait can fail with `LockTimeout`. `entries_of` computes the
    /// entries of a row. `progress` is called repeatedly. May take long, and
    /// [`interrupt_when`](Self::interrupt_when) can interrupt it. Fails with `DuplicateKey` if two
    /// rows that were committed at the same time have the same unique key, and with `DiskFull`.
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

    /// Locks the table against writers and updates the indexes, durably, to its rows. Until this
    /// transaction ends, a change of the definition may take the indexes over. Errors: those of
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
