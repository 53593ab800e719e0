//! Makes room for an operation before it begins: in memory, on disk and in the log.
//!
//! Invariants
//!   - Room is made outside of mini-transactions: it may wait and do I/O.
//!   - Work that rolls back or frees space gets room even on a full disk (durability::H3,
//!     durability::O1).
//!   - Work that would be refused, or that has used part of the reserve, first frees space.

use super::parts::Core;
use crate::base::{sound, Error, Result};
use crate::log::{Log, Space};
use crate::pool::Reserve;
use parking_lot::Mutex;

/// Space is freed each time the reserve divided by `RELIEF_PART` has been used.
const RELIEF_PART: u64 = 16;
/// Segments are collected until the reserve divided by `RELIEF_GOAL_PART` is free again.
const RELIEF_GOAL_PART: u64 = 4;
const RELIEF_ROUNDS: usize = 16;

#[derive(Debug)]
pub(crate) struct Reliefs {
    /// Bytes left after the last attempt. Held during an attempt, for which other threads wait.
    left_bytes: Mutex<i64>,
}

impl Default for Reliefs {
    fn default() -> Self {
        Self { left_bytes: Mutex::new(i64::MAX) }
    }
}

/// Whether an operation may be refused for lack of space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Adds data: refused when the disk is full, before anything is changed.
    New,
    /// Deletes: may use half of the reserve, because deleting leads to free space, but leaves the
    /// rest to rollbacks (durability::H3).
    Delete,
    /// Purges deleted records: may use another quarter of the reserve.
    Purge,
    /// Rolls back: must succeed on a full disk, from the reserve (durability::H3). Refused only if
    /// a checkpoint and a collection have just freed nothing; the background tries again.
    RollBack,
    /// Ends a transaction, drops or frees.
    Back,
}

impl Need {
    /// The part of the reserve that must stay free.
    fn stays(self) -> Reserve {
        match self {
            Need::New => Reserve::Whole,
            Need::Delete => Reserve::Half,
            Need::Purge => Reserve::Quarter,
            Need::RollBack => Reserve::Eighth,
            Need::Back => Reserve::Nothing,
        }
    }
}

impl Core {
    /// Makes room for `pages` pages in memory and log. Outside mini-transactions; waits, does I/O.
    pub(crate) fn make_room(&self, need: Need, pages: usize) -> Result<()> {
        self.make_room_unless(need, pages, &|| false)
    }

    /// Like [`make_room`](Self::make_room), but returns `Interrupted` if `interrupted` returns true
    /// while it waits for the log.
    pub(crate) fn make_room_unless(
        &self,
        need: Need,
        pages: usize,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.health.check()?;
        let need = if sound!(true, "txn: roll back only with space") { need } else { Need::New };
        let is_full = self.relieve_disk(need)?;
        self.make_room_in_memory(need, pages)?;
        let Some(log) = self.journal.log() else { return Ok(()) };
        if log.space() == Space::Full && !self.pace.has_threads() {
            match need {
                Need::New => self.checkpoint()?,
                _ => ignore_disk_full(self.checkpoint())?,
            }
        }
        match need {
            Need::New => log.wait_for_space(need.stays(), interrupted),
            Need::Delete if !is_full => log.wait_for_space(need.stays(), interrupted),
            Need::Back => self.find_log_file(log, Reserve::Nothing),
            _ => self.find_log_file(log, Reserve::Last),
        }
    }

    /// Frees space from time to time while the disk is full: images replaced by rolled-back pages
    /// are freed only when a checkpoint has committed, and a long rollback would use up the reserve
    /// before that (durability::H3). Returns whether the disk is full, or `DiskFull` if it is too
    /// full for this need. New data is checked when room is made in memory; redo is not.
    fn relieve_disk(&self, need: Need) -> Result<bool> {
        let is_redo = self.journal.log().is_none();
        if is_redo || need == Need::New {
            return Ok(false);
        }
        if self.pool.check_space(Reserve::Whole).is_ok() {
            return Ok(false);
        }
        let step_bytes = self.pool.space().reserve_bytes() / RELIEF_PART;
        self.give_space_back(need, step_bytes)?;
        if self.pool.check_space(need.stays()).is_err() {
            self.give_space_back(need, 0)?;
            match need {
                Need::Back => {}
                _ => self.pool.check_space(need.stays())?,
            }
        }
        Ok(true)
    }

    /// Frees space until `need` has room, if `step_bytes` were used since the last attempt.
    fn give_space_back(&self, need: Need, step_bytes: u64) -> Result<()> {
        let space = self.pool.space();
        let mut left_bytes = self.reliefs.left_bytes.lock();
        let now = space.left_beside_promised();
        if now >= left_bytes.saturating_sub_unsigned(step_bytes) {
            // Space may have been freed in other ways.
            *left_bytes = now.max(*left_bytes);
            return Ok(());
        }
        ignore_disk_full(self.checkpoint())?;
        for _ in 0..RELIEF_ROUNDS {
            if self.pool.check_space_for(space.reserve_bytes() / RELIEF_GOAL_PART, need.stays()).is_ok() {
                break;
            }
            match self.upkeep.collect(self.config.segment_bytes) {
                Ok(0) | Err(Error::DiskFull(_)) => break,
                moved => drop(moved?),
            }
            ignore_disk_full(self.checkpoint())?;
        }
        // A second checkpoint makes segments sealed before the first one eligible for collection.
        ignore_disk_full(self.checkpoint())?;
        *left_bytes = space.left_beside_promised();
        Ok(())
    }

    fn make_room_in_memory(&self, need: Need, pages: usize) -> Result<()> {
        let is_redo = self.journal.log().is_none();
        match need {
            Need::New if !is_redo => self.pool.make_room(pages),
            _ => ignore_disk_full(self.pool.make_room_from_reserve(pages)),
        }
    }

    /// Prepares the file that follows the current log file. A rollback does not wait for a shorter
    /// log: on a full disk no checkpoint may succeed, so the wait might never end.
    fn find_log_file(&self, log: &Log, stays: Reserve) -> Result<()> {
        match log.prepare_short_reserve(stays) {
            // A checkpoint releases old files, which are then reused.
            Err(Error::DiskFull(_)) => {
                ignore_disk_full(self.checkpoint())?;
                ignore_disk_full(log.prepare_short_reserve(stays))
            }
            other => other,
        }
    }
}

/// For callers that can continue without the space.
pub(crate) fn ignore_disk_full(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::DiskFull(_)) => Ok(()),
        other => other,
    }
}
