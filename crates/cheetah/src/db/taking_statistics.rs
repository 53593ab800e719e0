//! Statistics of indexes: taken when somebody asks for them (ANALYZE TABLE), and by themselves in
//! the background; kept with the open table, and written into a table of the engine's own.
//!
//! Invariants
//!   I1  A row of the statistics table belongs to an index by the number of its table and its own
//!       there, neither of which is used again: a new one has no statistics, a renamed one keeps
//!       them. Rows that a dropped table leaves behind are removed by the background; at a startup,
//!       too, in case of a crash.
//!   I2  Statistics are hints. When they cannot be read, an index has none.
//!   I3  Nobody waits for those that are taken by themselves. They take no lock but of their own
//!       rows, for the moment of writing these; a table is used for a look at a time (I1 of
//!       [`crate::table::analyze`]); their reads from disk count as work of the background; and
//!       their commit does not make the log durable. After a crash older ones are there, or none.
//!   I4  None are taken from the moment on when the database shuts down.

use super::{statistics_table, Transaction};
use crate::base::{reach, sound, Error, Result, TableId};
use crate::format::statistics::IndexStatistics;
use crate::table::analyze::{analyze_index, GoOn};
use crate::table::shared::parts::Core;
use crate::table::Table;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// How often a pause looks whether the database shuts down.
const LOOK_EVERY_NS: u64 = 5_000_000;
/// Pages that one look at an index may have read: reads of others meanwhile are not counted beyond
/// this.
const READS_PER_LOOK_MAX: u64 = 8;

/// Statistics of indexes, by position.
pub(super) type Found = Vec<(usize, IndexStatistics)>;

/// Takes the statistics that are due of one table, or removes those of one that has gone; whether
/// there was any. `ends`: whether the database shuts down (I4).
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
        // The table has gone or changed, or the database shuts down; or somebody else writes
        // statistics of the same table.
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
    // It may have gone before there were rows to be removed.
    if core.catalog.by_id(table.id()).is_none() {
        core.forget_statistics(table);
    }
    Ok(())
}

/// Takes statistics of all indexes, and has the open table know them.
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
    // An index whose number does not fit is left out, and has no statistics after the next startup.
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
        // Somebody is about to write them: the next startup removes them.
        Err(Error::LockTimeout | Error::Locked) => Ok(()),
        removed => removed,
    }
}

/// The rate at which the background reads for statistics (I3).
struct Pace<'c> {
    core: &'c Core,
    ends: &'c AtomicBool,
    reads: u64,
}

impl Pace<'_> {
    /// Waits for as long as the pages of the last look take. `Interrupted` when the database shuts
    /// down.
    fn wait(&mut self) -> Result<()> {
        let Self { core, ends, reads } = *self;
        let count = core.pool.reads_count().saturating_sub(reads).min(READS_PER_LOOK_MAX);
        let pause_ns = count * 1_000_000_000 / u64::from(core.pace.io_capacity()).max(1);
        // Without threads somebody waits for the step.
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
