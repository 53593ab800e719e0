//! Writing the pages of an epoch that has ended: the pool's part of a checkpoint. The other parts
//! are in `checkpoint/`.
//!
//! Each step relies on the previous ones. The types enforce the order.
//!   1. epoch switch: no mini-transaction is open; the caller takes its state at the same instant;
//!   2. the caller may save the pending changes of leaves (see `leaves/save`). Every other page
//!      that is dirty in the ended epoch g, or has pending changes of g, is written in its state at
//!      the epoch switch (see `write_out`);
//!   3. segments are synced: all images that g names are durable; [`WrittenEpoch`] exists;
//!   4. the caller makes the log durable up to the switch: g must not contain changes that the log
//!      has lost;
//!   5. the page map commits g with the caller's state: g is now the state of the database;
//!   6. numbers freed in g may be reused, and segments that only older epochs name are removed.
//!
//! An epoch that is dropped before step 5 is abandoned: its changes stay dirty, or written but not
//! committed, and belong to the next epoch. The same happens if the commit of the map fails. A
//! failed sync is fatal (durable.rs).

use super::hand_over::HandOver;
use crate::base::{sound, Epoch, Lsn, PageId, Result};
use crate::format::MapEntry;
use crate::page_map::{Commit, MapStore};
use crate::pool::Pool;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::thread;

/// The number of pages that one of several threads takes at a time. It is small, so that images are
/// stored approximately in the order of their pages.
const PAGES_PER_TURN: usize = 16;
/// The number of pages for each further thread that is started. Encoding these pages takes some
/// milliseconds; starting a thread takes a tenth of a millisecond.
const PAGES_PER_THREAD_MIN: usize = 32;

/// The state at the epoch switch that the layers above store with an epoch.
#[derive(Clone, Default, Debug)]
pub struct EpochState {
    /// The layers' own bytes, returned when the database is opened.
    pub bytes: Vec<u8>,
    /// The position in the log at which redo begins.
    pub log_start: Lsn,
}

/// An epoch that has ended and is being written. Dropping it abandons the epoch.
#[derive(Debug)]
pub struct EndedEpoch<'p> {
    pool: &'p Pool,
    epoch: Epoch,
    /// Pages that were dirty or had pending changes at the epoch switch and are not processed yet.
    /// The next page is at the end.
    pages: Vec<PageId>,
    open: bool,
}

/// An epoch whose images are all durable. Dropping it abandons the epoch.
#[derive(Debug)]
pub struct WrittenEpoch<'p> {
    ended: EndedEpoch<'p>,
    moved: Vec<(PageId, Option<MapEntry>)>,
}

impl Pool {
    /// The number of flushes before modify since startup.
    pub fn flushes_before_modify(&self) -> u64 {
        self.counters.flushes_before_modify.get()
    }

    /// Ends the current epoch. `at_switch` runs while no mini-transaction is open; its result
    /// describes that instant. Waits for open mini-transactions, so the caller must hold no latches
    /// and must be outside of mini-transactions.
    ///
    /// # Panics
    /// If another ended epoch is being written.
    pub fn end_epoch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> (EndedEpoch<'_>, T) {
        let (epoch, state) = self.epochs.switch(|ended| {
            self.in_writing.begin(ended);
            (ended, at_switch(ended))
        });
        let mut pages = self.changes_of(epoch).pids_to_write();
        // The pages are taken from the end. So the pages of a tree are written together and in
        // ascending order, approximately in the order of their keys. A scan then reads the file
        // forward, and the kernel reads ahead.
        pages.sort_by_cached_key(|pid| Reverse((self.table.entry(*pid).tree(), *pid)));
        (EndedEpoch { pool: self, epoch, pages, open: true }, state)
    }
}

impl<'p> EndedEpoch<'p> {
    /// The epoch being written.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Number of pages not processed yet.
    pub fn pages_left(&self) -> usize {
        self.pages.len()
    }

    /// Removes the pages that need not be written because their pending changes are saved.
    pub fn leave_out_saved(&mut self) -> Result<()> {
        let changes = self.pool.changes_of(self.epoch);
        self.pages.retain(|pid| changes.has(*pid));
        self.check()
    }

    /// Writes up to `pages_max` pages. Returns the number of pages left. After an error, drop the
    /// epoch.
    pub fn write_some(&mut self, pages_max: usize) -> Result<usize> {
        for _ in 0..pages_max.min(self.pages.len()) {
            if let Some(pid) = self.pages.pop() {
                self.pool.write_page_of(pid, self.epoch)?;
            }
            self.check()?;
        }
        Ok(self.pages.len())
    }

    /// Writes all remaining pages, with up to `threads` threads including this one. If no thread
    /// can be started, this thread writes them alone. After an error, drop the epoch: the unwritten
    /// pages are no longer listed.
    pub fn write_all(&mut self, threads: usize) -> Result<()> {
        let helpers = (self.pages.len() / PAGES_PER_THREAD_MIN).min(threads.saturating_sub(1));
        let pages = Mutex::new(std::mem::take(&mut self.pages));
        thread::scope(|scope| {
            let help = |_| {
                let thread = thread::Builder::new().name("cheetah-write".into());
                // If the thread cannot start, the other threads do its part.
                thread.spawn_scoped(scope, || self.write_in_turns(&pages)).ok()
            };
            let helpers: Vec<_> = (0..helpers).filter_map(help).collect();
            let written = self.write_in_turns(&pages);
            helpers.into_iter().fold(written, |written, helper| match helper.join() {
                Ok(helped) => written.and(helped),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Takes pages from the end of `pages` and writes them until `pages` is empty or a write fails.
    fn write_in_turns(&self, pages: &Mutex<Vec<PageId>>) -> Result<()> {
        loop {
            let turn = {
                let mut pages = pages.lock();
                let rest = pages.len().saturating_sub(PAGES_PER_TURN);
                pages.split_off(rest)
            };
            if turn.is_empty() {
                return Ok(());
            }
            let mut write = |pid: &PageId| {
                self.pool.write_page_of(*pid, self.epoch)?;
                self.check()
            };
            turn.iter().rev().try_for_each(&mut write).inspect_err(|_| pages.lock().clear())?;
        }
    }

    /// Makes the images written so far durable, so that the final sync has little to do. A long
    /// sync at the end would delay concurrent commits.
    pub fn sync_written(&self) -> Result<()> {
        self.pool.segments.sync()
    }

    /// Writes the remaining pages, and makes all images of the epoch durable. Blocks for I/O.
    pub fn finish(mut self) -> Result<WrittenEpoch<'p>> {
        self.write_some(usize::MAX)?;
        let changes = self.pool.changes_of(self.epoch);
        self.check()?;
        assert_eq!(changes.dirty_count(), 0, "E1: all pages of the epoch are written");
        debug_assert_eq!(changes.dirty_bytes(), 0, "E3: no bytes count of pages that are written");
        assert!(changes.pending_pids().is_empty(), "B5: what is pending of the epoch is written");
        let moved = changes.all_moved();
        self.pool.segments.sync()?;
        Ok(WrittenEpoch { ended: self, moved })
    }

    /// Returns an error once a flush before modify has failed: the epoch can no longer be written
    /// in its state at the switch. Then drop the epoch.
    pub fn check(&self) -> Result<()> {
        self.pool.in_writing.take_failure().map_or(Ok(()), Err)
    }
}

impl WrittenEpoch<'_> {
    /// Commits the epoch with the state of the epoch switch. The log must be durable up to the
    /// switch. Blocks for I/O.
    pub fn commit(mut self, map: &MapStore, state: &EpochState) -> Result<Epoch> {
        let Self { ended, moved } = &mut self;
        map.commit(Commit {
            epoch: ended.epoch,
            changes: moved,
            state: &state.bytes,
            log_start: state.log_start,
            next_segment: ended.pool.segments.next_segment(),
        })?;
        ended.open = false;
        ended.pool.committed(ended.epoch);
        Ok(ended.epoch)
    }
}

impl Drop for EndedEpoch<'_> {
    fn drop(&mut self) {
        if self.open {
            self.pool.abandon(self.epoch);
        }
    }
}

impl Pool {
    /// Writes a page if it is still dirty, or has pending changes, in `epoch`.
    fn write_page_of(&self, pid: PageId, epoch: Epoch) -> Result<()> {
        let (frame, has_pending) = {
            let entry = self.table.entry(pid);
            (entry.frame().cloned(), entry.has_pending() && self.beside.has(pid, epoch))
        };
        let frame = match has_pending {
            true => self.beside.write_for(self, pid, epoch)?,
            false => frame,
        };
        frame.map_or(Ok(()), |frame| self.write_for(&frame, epoch))
    }

    fn committed(&self, epoch: Epoch) {
        self.in_writing.stop();
        self.changes_of(epoch).clear();
        self.in_writing.end();
        self.numbers.lock().release(epoch);
        self.counters.checkpoints.one();
        // The epoch is committed even if files cannot be removed: the next checkpoint tries again.
        let _ = self.segments.remove_dead(epoch);
    }

    /// Moves all changes of `epoch` to the next epoch. The dirty pages are moved first. After that
    /// no thread can add moves to the old epoch, because only a page that is dirty in it can move
    /// in it.
    fn abandon(&self, epoch: Epoch) {
        self.in_writing.stop();
        self.counters.checkpoints_abandoned.one();
        let next = Epoch(epoch.0 + 1);
        let (old, new) = (self.changes_of(epoch), self.changes_of(next));
        // B5 requires this order.
        old.pending_pids().into_iter().for_each(|pid| self.carry_over_page(pid, epoch));
        old.dirty_pids().into_iter().for_each(|pid| self.carry_over_page(pid, epoch));
        if sound!(true, "pool: forget the moves of an abandoned checkpoint") {
            new.absorb(old.all_moved());
        }
        old.clear();
        self.in_writing.end();
    }

    /// Moves the changes of a page from an abandoned epoch to the next epoch.
    fn carry_over_page(&self, pid: PageId, given_up: Epoch) {
        let entry = self.table.entry(pid);
        if let Some(frame) = entry.frame() {
            self.carry_over(&entry, frame, given_up);
        }
        if entry.has_pending() {
            self.beside.carry_over(self, pid, given_up);
        }
    }
}
