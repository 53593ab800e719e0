//! Room for an operation before it begins: in memory, on disk and in the log.
//!
//! Invariants
//!   - Room is made outside of mini-transactions: it may wait and do I/O.
//!   - What rolls back, or gives space back, gets room on a full disk too (H3).

use super::parts::Core;
use crate::base::stages::Stage;
use crate::base::{brake, planted, Error, Result};
use crate::log::{Log, Space};
use crate::pool::Reserve;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Steps of a rollback on a full disk between two attempts to give space back.
const STEPS_BETWEEN_RELIEFS: u64 = 32;

/// Steps of rollbacks on a full disk.
#[derive(Default, Debug)]
pub(crate) struct StepsOnFullDisk(AtomicU64);

impl StepsOnFullDisk {
    /// Counts a step; true when it should give space back.
    fn count_step(&self) -> bool {
        self.0.fetch_add(1, Relaxed) % STEPS_BETWEEN_RELIEFS == 0
    }
}

/// Whether an operation may be refused for lack of space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// It brings new data: refused when the disk is full, before anything is changed.
    New,
    /// It deletes: may use half of the reserve, as it leads to space, but leaves the rest to those
    /// who roll back (H3).
    Delete,
    /// It rolls back or gives back: must succeed on a full disk, from the reserve (H3).
    Back,
}

impl Core {
    /// Makes room for `pages` pages in memory and in the log. Outside mini-transactions; may wait
    /// and do I/O.
    pub(crate) fn make_room(&self, need: Need, pages: usize) -> Result<()> {
        self.make_room_unless(need, pages, &|| false)
    }

    /// As [`make_room`](Self::make_room), but `Interrupted` when `interrupted` says so while it
    /// waits for the log.
    pub(crate) fn make_room_unless(
        &self,
        need: Need,
        pages: usize,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.health.check()?;
        let need = if planted::is_on("txn: roll back only with space") { Need::New } else { need };
        let is_full = self.relieve_disk(need)?;
        self.make_room_in_memory(need, pages)?;
        let Some(log) = self.journal.log() else { return Ok(()) };
        if log.space() == Space::Full && !self.pace.has_threads() {
            match need {
                Need::New => self.checkpoint()?,
                Need::Delete | Need::Back => ignore_disk_full(self.checkpoint())?,
            }
        }
        match need {
            Need::New => {
                self.slow_down();
                log.wait_for_space(interrupted)
            }
            Need::Delete if !is_full => log.wait_for_space(interrupted),
            Need::Delete | Need::Back => self.find_log_file(log),
        }
    }

    /// On a full disk, gives space back now and then: images that rolled back pages have replaced
    /// go only when a checkpoint has committed, and a long rollback would use up the reserve before
    /// (H3). Whether the disk is full; `DiskFull` when it is too full for this need. New data finds
    /// that out with its room in memory; during redo everything is let pass.
    fn relieve_disk(&self, need: Need) -> Result<bool> {
        let is_redo = self.journal.log().is_none();
        if is_redo || need == Need::New || self.pool.check_space(Reserve::Whole).is_ok() {
            return Ok(false);
        }
        if self.steps_on_full_disk.count_step() {
            ignore_disk_full(self.checkpoint())?;
            ignore_disk_full(self.pool.collect(self.config.segment_bytes).map(drop))?;
            ignore_disk_full(self.checkpoint())?;
        }
        if need == Need::Delete {
            self.pool.check_space(Reserve::Half)?;
        }
        Ok(true)
    }

    fn make_room_in_memory(&self, need: Need, pages: usize) -> Result<()> {
        let is_redo = self.journal.log().is_none();
        match need {
            Need::New if !is_redo => self.pool.make_room(pages),
            _ => ignore_disk_full(self.pool.make_room_from_reserve(pages)),
        }
    }

    /// Holds a writer up a little when most of the memory is dirty: so the cleaner keeps ahead, and
    /// nobody has to stop.
    fn slow_down(&self) {
        let delay_ns = match self.pace.has_threads() {
            true => self.pool.pressure(0).delay_ns(),
            false => 0,
        };
        if let Some(owed_ns) = brake::owe(delay_ns) {
            let _stall = self.begin_stall(Stage::Memory);
            self.clock.sleep_ns(owed_ns);
        }
    }

    /// Sees to it that a file waits for when the current one of the log is full. What rolls back
    /// does not wait for room below the log's limit: on a full disk no checkpoint may succeed, and
    /// nobody would make room.
    fn find_log_file(&self, log: &Log) -> Result<()> {
        match log.prepare_short_reserve() {
            // A checkpoint lets go of old files, and those are used again.
            Err(Error::DiskFull(_)) => {
                ignore_disk_full(self.checkpoint())?;
                ignore_disk_full(log.prepare_short_reserve())
            }
            other => other,
        }
    }
}

fn ignore_disk_full(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::DiskFull(_)) => Ok(()),
        other => other,
    }
}
