//! Deleting the postings of deleted rows in the background (W4).
//!
//! Each removal is worked off in a separate transaction. A removal that cannot be locked is
//! skipped; if the posting table is not accessible, all its removals are. Skipped removals are
//! tried again after all others. If the database shuts down or an error occurs, the open
//! transaction is rolled back, and the next startup continues.

use super::table::existing;
use crate::base::{reach, sound, Error, Result, TableId};
use crate::db::reading::Reading;
use crate::db::{Cursor, OnLocked, Read, SeekMode, Transaction};
use crate::format::removed_words::{key_prefix, parse_key};
use crate::table::shared::parts::Core;
use crate::table::Table;
use crate::tree::successor;
use crate::txn::TableMode;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Removals that one step skips, so that thousands of locked removals cost little.
const PASSED_PER_STEP: usize = 64;
/// Interval at which a pause checks for a shutdown.
const LOOK_EVERY_NS: u64 = 5_000_000;
/// Page reads counted for one removal, at most: they include reads of other threads.
const READS_PER_REMOVAL_MAX: u64 = 64;

#[derive(Default, Debug)]
pub(in crate::db) struct WorkingOff {
    /// Removals below this key were worked off or skipped.
    next: Mutex<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Worked {
    Off,
    /// Skipped: it was deleted, or another transaction has locked it or one of its postings.
    Passed,
    /// Its posting table is not accessible now.
    TablePassed,
}

impl WorkingOff {
    /// Works off one removal, if there is one. `ends` is set when the database shuts down.
    pub(in crate::db) fn step(&self, core: &Arc<Core>, ends: &Arc<AtomicBool>) -> Result<bool> {
        // Rows of open transactions are counted, too, so a count of 0 means that no view sees a
        // removal. (The rollback of a deletion in progress may bring one back. That rollback is
        // logged, and the background looks again.)
        let Some(removed) = existing(core).filter(|table| table.row_count() > 0) else { return Ok(false) };
        let reads = core.pool.reads_count();
        let worked = Step { txn: begin(core, ends), removed, ends }.run(&mut self.next.lock())?;
        if worked {
            reach::mark("removal worked off");
            pause(core, ends, core.pool.reads_count().saturating_sub(reads));
        }
        Ok(worked)
    }
}

/// The transaction waits for no lock (W4).
fn begin(core: &Arc<Core>, ends: &Arc<AtomicBool>) -> Transaction {
    let (mut txn, ends) = (Transaction::new(Arc::clone(core)), Arc::clone(ends));
    txn.set_lock_wait(0);
    txn.interrupt_when(move || ends.load(Relaxed));
    txn
}

struct Step<'e> {
    txn: Transaction,
    removed: Arc<Table>,
    ends: &'e AtomicBool,
}

impl Step<'_> {
    /// Looks from `next` on, then from the beginning, for a removal; returns whether there was one.
    fn run(&mut self, next: &mut Vec<u8>) -> Result<bool> {
        let how = (Reading::View(self.txn.new_view()), None);
        let mut cursor = self.txn.cursor_as(&self.removed, 0, how, OnLocked::Wait)?;
        let begun_at = next.clone();
        let (mut found, mut is_second_round) = (cursor.seek(SeekMode::AtLeast, next)?, false);
        for _ in 0..PASSED_PER_STEP {
            if !found && !is_second_round {
                is_second_round = true;
                next.clear();
                found = cursor.seek(SeekMode::First, b"")?;
            }
            if !found || is_second_round && cursor.key() >= begun_at.as_slice() || self.ends.load(Relaxed) {
                return Ok(false);
            }
            match self.work_off(&cursor, next)? {
                Worked::Off => return Ok(true),
                Worked::Passed => found = cursor.next()?,
                Worked::TablePassed => found = cursor.seek(SeekMode::AtLeast, next)?,
            }
        }
        Ok(false)
    }

    /// Sets `next` behind the removal at the cursor, even if skipped, so that others continue.
    fn work_off(&mut self, cursor: &Cursor, next: &mut Vec<u8>) -> Result<Worked> {
        let key = cursor.key();
        next.clear();
        next.extend_from_slice(key);
        next.push(0);
        let (table, row_key) = parse_key(key)?;
        let worked = self.try_to_work_off(table, key, row_key);
        match worked {
            Ok(Worked::Off) => return self.txn.commit_lazily().map(|()| Worked::Off),
            Ok(Worked::TablePassed) => *next = successor(&key_prefix(table)).unwrap_or_default(),
            _ => {}
        }
        self.txn.rollback()?;
        match worked {
            // A search locks a posting, the table is altered or dropped, or the database closes.
            Err(
                Error::LockTimeout
                | Error::RollbackUnfinished { .. }
                | Error::NoSuchTable(_)
                | Error::Interrupted,
            ) => Ok(Worked::Passed),
            worked => worked,
        }
    }

    fn try_to_work_off(&mut self, table: TableId, key: &[u8], row_key: &[u8]) -> Result<Worked> {
        let Self { txn, removed, .. } = self;
        let mut row = Vec::new();
        let Some(postings) = txn.core.catalog.by_id(table) else {
            let is_mine = txn.get_unless_locked(removed, key, Read::Exclusive, &mut row)?;
            return match is_mine {
                true => txn.delete(removed, key, &[]).map(|()| Worked::Off),
                false => Ok(Worked::Passed),
            };
        };
        let is_within_reach = postings.quarantine_reason().is_none();
        if !is_within_reach || !txn.try_lock_table_as(&postings, TableMode::IntentExclusive)? {
            return Ok(Worked::TablePassed);
        }
        if !txn.get_unless_locked(removed, key, Read::Exclusive, &mut row)? {
            return Ok(Worked::Passed);
        }
        if sound!(true, "full text: work a removal off without its words") {
            txn.delete_removed_words(&postings, (removed, &row), row_key)?;
        }
        txn.delete(removed, key, &[]).map(|()| Worked::Off)
    }
}

/// Pauses for as long as the page reads take at the I/O capacity, unless the database shuts down.
/// No lock is held and no view is open meanwhile.
fn pause(core: &Core, ends: &AtomicBool, reads: u64) {
    let pause_ns =
        reads.min(READS_PER_REMOVAL_MAX) * 1_000_000_000 / u64::from(core.pace.io_capacity()).max(1);
    // Without background threads a caller waits for the step: no pause.
    let mut left_ns = if core.pace.has_threads() { pause_ns } else { 0 };
    while left_ns > 0 && !ends.load(Relaxed) {
        let slice_ns = left_ns.min(LOOK_EVERY_NS);
        core.clock.sleep_ns(slice_ns);
        left_ns -= slice_ns;
    }
}
