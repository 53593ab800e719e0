//! Insert, update and delete of a row with all its index entries.
//!
//! Order: lock the rows of the old and the new key, look up (old row, old entries, uniqueness, and
//! delete-marked records at the new keys), write large values, pin every page, make room; then one
//! mini-transaction writes the undo record, the trees and row count, and the log record. The locks
//! keep other writers away from the row, and its purge latch
//! ([`crate::table::shared::purge_latch`]) keeps purge away, so the results of the lookups still
//! hold in the mini-transaction.
//!
//! When another transaction is in the way, with a row of the same unique key or a locked range, the
//! operation waits for it without latches and then starts over. During the wait it holds locks, and
//! the pins of the paths searched so far, which are only hints for the next attempt. Range locks
//! are checked before and after the change: a scan that locked a range in between has not seen the
//! new record, so the operation is rolled back. A later scan sees the new record.
//!
//! Invariants
//!   I1  A refusal (duplicate key, limit, disk full) changes nothing: large values already written
//!       are rolled back.
//!   I2  After the operation, its versions serve as the locks of its rows: the requested row locks
//!       are released.
//!   I3  The undo record is appended before the trees change: a reader that finds the new version
//!       finds its undo record.

use super::change::Change;
use super::locker::ScannedBy;
use super::operation_locks::{forget_locks, give_back_key, Obstacle};
use super::request::{check_entries, check_limits, RowRequest, Target};
use super::writer::Writer;
use crate::base::{reach, sound, Error, Result};
use crate::format::log_record::RowOp;
use crate::table::definitions::spec::NewRow;
use crate::table::history::rollback;
use crate::table::shared::counters::Counters;
use crate::table::shared::purge_latch::PurgeLatch;

#[derive(Debug)]
enum Attempt {
    Done,
    /// Nothing has changed.
    Wait(Obstacle),
    /// The operation is done, but must be rolled back.
    RollBack(Obstacle),
}

/// Times that a row with the same unique key may be found deleted. Other transactions can delete
/// and insert it repeatedly, but after this many the index is assumed to be damaged.
const GONE_TIMES_MAX: u32 = 10_000;

impl Writer {
    /// Executes `request` and counts it.
    pub(crate) fn run(&mut self, on: Target<'_>, request: RowRequest<'_>) -> Result<()> {
        match on.table.has_disabled() {
            true => self.run_without_disabled(on, request)?,
            false => self.run_all(on, request)?,
        }
        let counters = &on.core.counters;
        Counters::add(match request.op {
            RowOp::Insert => &counters.rows_inserted,
            RowOp::Update => &counters.rows_updated,
            RowOp::Delete => &counters.rows_deleted,
        });
        Ok(())
    }

    fn run_without_disabled(&mut self, on: Target<'_>, request: RowRequest<'_>) -> Result<()> {
        let is_kept = |index_no: usize| !on.table.is_disabled(index_no);
        let secondary = request.new_entries().iter().filter(|entry| is_kept(entry.index_no));
        let secondary = secondary.copied().collect::<Vec<_>>();
        let old_entries = request.old_entries.iter().filter(|entry| is_kept(entry.index_no));
        let old_entries = old_entries.copied().collect::<Vec<_>>();
        let new = request.new.map(|new| NewRow { secondary: &secondary, ..new });
        self.run_all(on, RowRequest { new, old_entries: &old_entries, ..request })
    }

    fn run_all(&mut self, on: Target<'_>, request: RowRequest<'_>) -> Result<()> {
        check_entries(on.table, &request)?;
        check_limits(on.table, request.new.as_ref())?;
        on.table.note_written();
        self.duplicate = None;
        let mut key_locks = 0;
        let done = self.run_until_done(on, &request, &mut key_locks);
        match done {
            Ok(gone_by) => forget_locks(on, &request, gone_by),
            Err(_) => give_back_key(on, &request, &mut key_locks),
        }
        done.map(drop)
    }

    /// `key_locks` counts the lock requests for a new key at which no row exists. Returns how a
    /// scan locked the old row, if the row was not locked again.
    fn run_until_done(
        &mut self,
        on: Target<'_>,
        request: &RowRequest<'_>,
        key_locks: &mut u32,
    ) -> Result<Option<ScannedBy>> {
        let mut times_gone = 0;
        loop {
            let before = on.slot.undo_no();
            let locks = self.lock_rows(on, request)?;
            *key_locks += u32::from(locks.has_new_key);
            let obstacle = match self.attempt(on, request)? {
                Attempt::Done => return Ok(locks.gone_by),
                Attempt::Wait(obstacle) => obstacle,
                Attempt::RollBack(obstacle) => {
                    reach::mark("row operation rolled back for a range");
                    on.locks.iter().for_each(|locks| locks.locker.forget_scanned());
                    rollback::roll_back_to(on.core, on.slot, before, &[], self)?;
                    obstacle
                }
            };
            if let Obstacle::Range(..) = obstacle {
                // The next owner of the range may insert the row itself.
                give_back_key(on, request, key_locks);
            }
            if !self.wait_for(on, obstacle)? {
                times_gone += 1;
                if times_gone > GONE_TIMES_MAX {
                    let detail = "a unique index has the entry of a row that does not exist; run CHECK TABLE";
                    return Err(Error::corrupt(format!("table '{}'", on.table.name()), detail));
                }
            }
            on.check_interrupted()?;
        }
    }

    fn attempt(&mut self, on: Target<'_>, request: &RowRequest<'_>) -> Result<Attempt> {
        let Target { core, slot, table, .. } = on;
        let _usage = table.use_it()?;
        let _unique = on.locks.map(|_| core.unique_keys.take(request.unique_keys(table)));
        self.change.start(request.op, request.old_key, request.new_key());
        let _latch = self.purge_latch(on);
        self.read_old_row(table)?;
        if let Some(new) = &request.new {
            if let Some(obstacle) = self.check_unique(on, new)? {
                return Ok(Attempt::Wait(obstacle));
            }
        }
        self.add_entries(core, table, request)?;
        if let Some(obstacle) = self.range_of_others(on)? {
            return Ok(Attempt::Wait(obstacle));
        }
        let done = self.build_and_execute(on, request);
        if done.is_err() && core.health.check().is_ok() {
            rollback::roll_back_large_values(core, slot, &mut self.unclaimed, &mut self.buffers)?;
        }
        done?;
        match self.range_of_others(on)?.filter(|_| sound!(true, "rows: do not ask for ranges again")) {
            Some(obstacle) => Ok(Attempt::RollBack(obstacle)),
            None => Ok(Attempt::Done),
        }
    }

    fn build_and_execute(&mut self, on: Target<'_>, request: &RowRequest<'_>) -> Result<()> {
        if let Some(new) = &request.new {
            self.build_row(on, new.row)?;
        }
        self.collect_freed(on.table)?;
        self.execute(on)
    }

    /// Keeps purge away from the rows of the change.
    pub(in crate::table) fn purge_latch<'a>(&self, on: Target<'a>) -> PurgeLatch<'a> {
        let Change { op, old_key, new_key, .. } = self.change;
        let old = (op != RowOp::Insert).then(|| self.change.get(old_key));
        let new = (op != RowOp::Delete).then(|| self.change.get(new_key));
        on.core.purge_latches.of_rows(on.table.id(), old, new)
    }
}
