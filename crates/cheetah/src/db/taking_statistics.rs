//! Taking the statistics of indexes, by ANALYZE TABLE and automatically by the background. They are
//! kept with the open table, and stored in one of the engine's own tables.
//!
//! Invariants
//!   I1  A row of the statistics table belongs to an index by the table's ID and the index's ID
//!       within the table. Neither is ever reused: a new index has no statistics, a renamed one
//!       keeps them. The background removes the rows of dropped tables; so does a startup, in case
//!       of a crash.
//!   I2  Statistics are hints. If they cannot be read, an index has none.
//!   I3  No thread waits for statistics that are taken automatically. They lock only their own
//!       rows, and only while these are written. A table is in use only during one sample at a time
//!       (I1 of [`crate::table::analyze`]). Their page reads count as background I/O, and their
//!       commit does not make the log durable. After a crash older statistics, or none, are found.
//!   I4  No statistics are taken once the database is shutting down.

use super::{statistics_table, Transaction};
use crate::base::{reach, sound, Error, Result, TableId};
use crate::format::statistics::IndexStatistics;
use crate::table::analyze::{analyze_index, GoOn};
use crate::table::shared::parts::Core;
use crate::table::Table;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Interval at which a pause checks for a shutdown.
const LOOK_EVERY_NS: u64 = 5_000_000;
/// Page reads counted for one sample, at most: they include reads of other threads.
const READS_PER_LOOK_MAX: u64 = 8;

pub(super) type Found = Vec<(usize, IndexStatistics)>;

/// Takes the due statistics of one table, or removes those of one dropped table; returns whether
/// there was one. `ends` is set when the database shuts down (I4).
pub(in crate::db) fn step(core: &Arc<Core>, ends: &AtomicBool) -> Result<bool> {
    if ends.load(Relaxed) {
        return Ok(false);
    }
    if let Some(table) = core.statistics.next_gone() {
        remove(core, table)?;
        return Ok(true);
    }
    let (now_ns, by_default) = (core.clock.now_ns(), core.statistics.by_themselves());
    let is_due = |id| Some(core.catalog.by_id(id)?.are_statistics_due(now_ns, by_default));
    let due = core.statistics.next_due(now_ns, is_due);
    let Some(table) = due.and_then(|id| core.catalog.by_id(id)) else { return Ok(false) };
    match take_by_themselves(core, &table, ends) {
        Ok(()) => Ok(true),
        // The table was dropped or altered, the database is shutting down, or another transaction
        // writes statistics of the same table.
        Err(Error::NoSuchTable(_) | Error::Interrupted | Error::LockTimeout | Error::Locked) => Ok(true),
        Err(error) => {
            table.put_statistics_off(now_ns);
            Err(error)
        }
    }
}

fn take_by_themselves(core: &Arc<Core>, table: &Arc<Table>, ends: &AtomicBool) -> Result<()> {
    let mut pace = Pace { core, ends, reads: core.pool.reads_count() };
    let found = take(core, table, &mut || pace.wait())?;
    reach::mark("statistics taken by themselves");
    let mut txn = Transaction::new(Arc::clone(core));
    txn.set_lock_wait(0);
    write(core, &mut txn, table, &found)?;
    match sound!(true, "statistics: sync the log for them") {
        true => txn.commit_lazily()?,
        false => txn.commit()?,
    }
    // The table may have been dropped before its rows could be removed.
    if core.catalog.by_id(table.id()).is_none() {
        core.forget_statistics(table);
    }
    Ok(())
}

pub(super) fn take(core: &Core, table: &Table, go_on: &mut GoOn<'_>) -> Result<Found> {
    let encodings = table.key_encodings()?;
    let places = core.statistics.places(table.statistics_options().places);
    let changed = table.take_statistics_from(core.clock.now_ns());
    let mut found = Vec::new();
    for (index_no, encoding) in encodings.iter().enumerate().filter(|(no, _)| !table.is_disabled(*no)) {
        found.push((index_no, analyze_index(table, index_no, encoding, places, go_on)?));
    }
    table.set_statistics(found.iter().cloned());
    table.statistics_are_taken(changed);
    Ok(found)
}

pub(super) fn write(
    core: &Core,
    txn: &mut Transaction,
    table: &Table,
    found: &[(usize, IndexStatistics)],
) -> Result<()> {
    if table.id().is_temporary() || table.statistics_options().is_temporary {
        return Ok(());
    }
    // An index whose ID does not fit has no statistics after the next startup.
    let numbered = found.iter().filter_map(|(index_no, statistics)| {
        let number = u16::try_from(table.number_of(*index_no)).ok()?;
        Some((number, statistics))
    });
    let numbered = numbered.collect::<Vec<_>>();
    statistics_table::replace(txn, &statistics_table::table(core)?, table.id(), &numbered)
}

fn remove(core: &Arc<Core>, table: TableId) -> Result<()> {
    let Some(kept) = statistics_table::existing(core) else { return Ok(()) };
    let mut txn = Transaction::new(Arc::clone(core));
    txn.set_lock_wait(0);
    let removed = statistics_table::replace(&mut txn, &kept, table, &[]).and_then(|()| txn.commit_lazily());
    match removed {
        // Another transaction is about to write them; the next startup removes them.
        Err(Error::LockTimeout | Error::Locked) => Ok(()),
        removed => removed,
    }
}

/// Limits the rate at which the background reads for statistics (I3).
struct Pace<'c> {
    core: &'c Core,
    ends: &'c AtomicBool,
    reads: u64,
}

impl Pace<'_> {
    /// Pauses for as long as the last sample's page reads would take at the I/O capacity. Fails
    /// with `Interrupted` if the database is shutting down.
    fn wait(&mut self) -> Result<()> {
        let Self { core, ends, reads } = *self;
        let count = core.pool.reads_count().saturating_sub(reads).min(READS_PER_LOOK_MAX);
        let pause_ns = count * 1_000_000_000 / u64::from(core.pace.io_capacity()).max(1);
        // Without background threads a caller waits for the step: no pause.
        let mut left_ns = if core.pace.has_threads() { pause_ns } else { 0 };
        while left_ns > 0 && !ends.load(Relaxed) {
            let slice_ns = left_ns.min(LOOK_EVERY_NS);
            core.clock.sleep_ns(slice_ns);
            left_ns -= slice_ns;
        }
        self.reads = core.pool.reads_count();
        match ends.load(Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}
