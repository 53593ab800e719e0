//! The checkpoint: an epoch flip, and making what ended with it the database on disk.
//!
//! Steps, each of which the next relies on:
//!   1. epoch switch: no mini-transaction is open; the caller's state (log end, transactions, counters) is taken at the same instant;
//!   2. every page that is dirty in the ended epoch g is written as it was at the epoch switch (see `write_out`);
//!   3. segments are synced: every image that g names is durable;
//!   4. the caller's barrier: the log up to the cut is durable, so that g never holds what the log lost;
//!   5. the page map commits g with the caller's state. Now g is the database;
//!   6. numbers freed in g may be given out again, and segments that only older epochs name are removed.
//!
//! A checkpoint that fails before 5 is abandoned: its changes stay dirty, or written but not committed, and belong
//! to the next epoch. A failed sync or a failed commit of the map is fatal (durable.rs decides that).

use super::hand_over::HandOver;
use super::Pool;
use crate::base::{planted, statement_threads, Epoch, Lsn, PageId, Result, TreeId};
use crate::page_map::{Commit, MapStore};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Pages that one of several threads takes at a time: few, so that images come to lie about in the order of their pages.
const PAGES_PER_TURN: usize = 16;
/// Pages that are worth another thread: some milliseconds of encoding, for a tenth of one to start it.
const PAGES_PER_THREAD_MIN: usize = 32;

/// What the layers above store with an epoch, as it was at the cut.
#[derive(Clone, Default, Debug)]
pub struct CutState {
    /// Their own bytes; come back when the database is opened.
    pub state: Vec<u8>,
    /// Where redo of the log begins.
    pub log_start: Lsn,
}

/// An epoch that has ended and is being written. Dropping it abandons the checkpoint.
#[derive(Debug)]
pub struct Checkpoint<'p> {
    pool: &'p Pool,
    epoch: Epoch,
    /// Pages that were dirty at the epoch switch and have not been looked at yet; the next one last.
    pages: Vec<PageId>,
    open: bool,
}

impl Pool {
    /// Pages that writers have captured for checkpoints so far.
    pub fn captures(&self) -> u64 {
        self.counters.captures.get()
    }

    /// Ends the current epoch. `at_cut` runs while no mini-transaction is open; what it returns describes the cut.
    /// Waits for open mini-transactions; call without latches and outside of mini-transactions.
    ///
    /// # Panics
    /// When a checkpoint is in progress already.
    pub fn begin_checkpoint<T>(&self, at_cut: impl FnOnce(Epoch) -> T) -> (Checkpoint<'_>, T) {
        let (epoch, state) = self.gate.switch_epoch(|ended| {
            self.cut.begin(ended);
            self.carry_freeze_below(ended);
            (ended, at_cut(ended))
        });
        let mut pages = self.changes_of(epoch).dirty_pids();
        // Taken from the end: the pages of a tree are written together and in ascending order, about that of its keys,
        // so that a scan reads the file forward, which is what the kernel reads ahead for.
        pages.sort_by_cached_key(|pid| Reverse((self.table.entry(*pid).tree(), *pid)));
        (Checkpoint { pool: self, epoch, pages, open: true }, state)
    }

    /// A whole checkpoint without pauses. `at_cut` gives what is stored with the epoch, `log_barrier` makes the log durable up to the cut.
    pub fn checkpoint(
        &self,
        map: &MapStore,
        at_cut: impl FnOnce(Epoch) -> CutState,
        log_barrier: impl FnOnce() -> Result<()>,
    ) -> Result<Epoch> {
        let (checkpoint, cut) = self.begin_checkpoint(at_cut);
        checkpoint.commit(map, &cut, log_barrier)
    }
}

impl Pool {
    /// Does `work`, and writes meanwhile, on another thread if a statement may have one, changed pages of a tree, so that little of it is left to a
    /// checkpoint afterwards. In any case it settles what dictionary they are written with, see [`settle_dictionary`](Self::settle_dictionary). The caller
    /// keeps the tree from being dropped and others from changing it: those pages would be written again. Errors are those of `work`: who needs the pages on
    /// disk meets the others again.
    pub fn write_beside<T>(&self, tree: TreeId, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let helper = (statement_threads() > 1).then(|| {
                let thread = thread::Builder::new().name("cheetah-write".into());
                // Without it the checkpoint has more to do.
                thread.spawn_scoped(scope, || self.write_tree(tree, &is_over)).ok()
            });
            let done = work();
            is_over.store(true, Relaxed);
            match helper.flatten().map(thread::ScopedJoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                Some(Ok(_)) => done,
                None => done.and_then(|done| self.settle_dictionary(tree).map(|()| done)),
            }
        })
    }

    /// Writes the pages of a tree that are dirty now, in their order, until `is_over`.
    fn write_tree(&self, tree: TreeId, is_over: &AtomicBool) -> Result<()> {
        self.settle_dictionary(tree)?;
        let mut pages = self.changes_of(self.epoch()).dirty_pids();
        pages.retain(|pid| self.table.entry(*pid).tree() == tree);
        pages.sort_unstable();
        for pid in pages.into_iter().take_while(|_| !is_over.load(Relaxed)) {
            let frame = self.table.entry(pid).frame().cloned();
            if let Some(frame) = frame.filter(|frame| frame.dirty().is_some()) {
                self.try_write_out(&frame)?;
            }
        }
        Ok(())
    }
}

impl Checkpoint<'_> {
    /// The epoch being written.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Pages that remain to be looked at.
    pub fn pages_left(&self) -> usize {
        self.pages.len()
    }

    /// Writes up to `pages_max` pages; returns how many are left. After an error, drop the checkpoint.
    pub fn write_some(&mut self, pages_max: usize) -> Result<usize> {
        for _ in 0..pages_max.min(self.pages.len()) {
            if let Some(pid) = self.pages.pop() {
                self.pool.write_page_of(pid, self.epoch)?;
            }
            self.check()?;
        }
        Ok(self.pages.len())
    }

    /// Writes all pages that are left, with up to `threads` threads, this one among them; alone if no other can be started. After an error, drop the
    /// checkpoint: nobody has the pages that were left.
    pub fn write_all(&mut self, threads: usize) -> Result<()> {
        let helpers = (self.pages.len() / PAGES_PER_THREAD_MIN).min(threads.saturating_sub(1));
        let pages = Mutex::new(std::mem::take(&mut self.pages));
        thread::scope(|scope| {
            let help = |_| {
                let thread = thread::Builder::new().name("cheetah-write".into());
                // Without it the others do its part.
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

    /// Takes pages from the end of `pages` and writes them until there are none, or one cannot be written.
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

    /// Makes the images written so far durable, so that little is left for the end: a long sync there makes the commits of
    /// that moment wait for the disk.
    pub fn sync_written(&self) -> Result<()> {
        self.pool.segments.sync()
    }

    /// Writes what is left and makes the epoch the database. `Ok` when it is.
    pub fn commit(
        mut self,
        map: &MapStore,
        cut: &CutState,
        log_barrier: impl FnOnce() -> Result<()>,
    ) -> Result<Epoch> {
        self.write_some(usize::MAX)?;
        let changes = self.pool.changes_of(self.epoch);
        self.check()?;
        assert_eq!(changes.dirty_count(), 0, "N1: a page of the epoch was not written");
        let mut moved = changes.all_moved();
        self.pool.segments.sync()?;
        log_barrier()?;
        map.commit(Commit {
            epoch: self.epoch,
            changes: &mut moved,
            state: &cut.state,
            log_start: cut.log_start,
            next_segment: self.pool.segments.next_segment(),
        })?;
        self.open = false;
        self.pool.committed(self.epoch);
        Ok(self.epoch)
    }

    /// Fails once a capture has failed: the epoch cannot be written as it was any more.
    fn check(&self) -> Result<()> {
        self.pool.cut.take_failure().map_or(Ok(()), Err)
    }
}

impl Drop for Checkpoint<'_> {
    fn drop(&mut self) {
        if self.open {
            self.pool.abandon(self.epoch);
        }
    }
}

impl Pool {
    /// Writes a page if it is still dirty in `epoch`.
    fn write_page_of(&self, pid: PageId, epoch: Epoch) -> Result<()> {
        let frame = self.table.entry(pid).frame().cloned();
        frame.map_or(Ok(()), |frame| self.write_for(&frame, epoch))
    }

    fn committed(&self, epoch: Epoch) {
        self.cut.stop();
        self.changes_of(epoch).clear();
        self.cut.end();
        self.pids.lock().release(epoch);
        self.counters.checkpoints.one();
        // The epoch is committed whatever becomes of the files: the next checkpoint tries again.
        let _ = self.segments.remove_dead(epoch);
    }

    /// Moves everything of `epoch` into the next one. First the dirty pages: afterwards nobody adds moves to
    /// the old epoch any more, because that takes a page that is dirty in it.
    fn abandon(&self, epoch: Epoch) {
        self.cut.stop();
        self.counters.checkpoints_abandoned.one();
        let next = Epoch(epoch.0 + 1);
        let (old, new) = (self.changes_of(epoch), self.changes_of(next));
        for pid in old.dirty_pids() {
            let entry = self.table.entry(pid);
            if let Some(frame) = entry.frame() {
                self.carry_over(&entry, frame, epoch);
            }
        }
        if !planted::is_on("pool: forget the moves of an abandoned checkpoint") {
            new.absorb(old.all_moved());
        }
        old.clear();
        self.cut.end();
    }
}
