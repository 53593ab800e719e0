//! The background work, as steps: threads loop over them, a simulator interleaves them.

use super::fulltext::{drop_if_empty, WorkingOff};
use super::rest::{Rest, Signs};
use super::rotation::KeyRotation;
use super::statistics_table::is_internal;
use super::taking_statistics;
use super::waiting_snapshot::WaitingSnapshot;
use crate::base::{Error, Result};
use crate::pool::{DictionaryDue, Pool, Scrubbed};
use crate::table::shared::parts::Core;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Interval at which the log is made durable if commits do not do it.
const FLUSH_EVERY_NS: u64 = 1_000_000_000;
const RECORDS_PER_STEP: usize = 256;
const DICTIONARIES_PER_STEP: usize = 16;
/// The pause after returning the allocator's free memory, as a multiple of the time that took.
const HOLES_PAUSES: u64 = 1000;
/// The pause after a return that took longer than `HOLES_NS_MAX`.
const HOLES_LONG_PAUSE_NS: u64 = 3_600_000_000_000;
const HOLES_NS_MAX: u64 = 10_000_000;

pub(in crate::db) struct Background {
    core: Arc<Core>,
    flushed_at_ns: Mutex<u64>,
    /// When the allocator's free memory may be returned next.
    holes_due_at_ns: Mutex<u64>,
    pub(in crate::db) waiting_snapshot: WaitingSnapshot,
    pub(in crate::db) key_rotation: KeyRotation,
    working_off: WorkingOff,
    pub(in crate::db) rest: Rest,
    /// A thread waits for the background to end: statistics are abandoned, and deletions of words
    /// are postponed.
    hurries: Arc<AtomicBool>,
}

impl Background {
    pub(in crate::db) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            flushed_at_ns: Mutex::new(0),
            holes_due_at_ns: Mutex::new(0),
            waiting_snapshot: WaitingSnapshot::default(),
            key_rotation: KeyRotation::default(),
            working_off: WorkingOff::default(),
            rest: Rest::default(),
            hurries: Arc::default(),
        }
    }

    pub(in crate::db) fn stop_after_panic(&self, thread: &str, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let reason = format!("defect of the engine in thread {thread}, please report it: {text}");
        let _ = self.core.health.stop(reason);
    }

    pub(in crate::db) fn pool(&self) -> &Arc<Pool> {
        &self.core.pool
    }

    pub(in crate::db) fn now_ns(&self) -> u64 {
        self.core.clock.now_ns()
    }

    /// Wakes the threads because a setting changed or a thread did something. Does not block.
    pub(in crate::db) fn call(&self) {
        if self.rest.call(self.now_ns()) {
            self.core.pool.call_cleaner();
        }
    }

    pub(in crate::db) fn look_for_signs(&self) {
        if self.rest.look(self.now_ns(), || self.signs()) {
            self.core.pool.call_cleaner();
        }
    }

    fn signs(&self) -> Signs {
        let core = &self.core;
        Signs {
            log_end: core.journal.end(),
            unlogged: core.pace.unlogged(),
            horizon: core.transactions.versions.horizon(),
            reads: core.pool.reads_count(),
            in_progress: (core.health.stalls().lasting_count() + core.unfinished.rollbacks_count()) as u64,
        }
    }

    /// Runs one step of each kind, despite errors, and returns whether anything was done.
    pub(in crate::db) fn step(&self) -> Result<bool> {
        let steps = [
            Self::flush_step,
            Self::clean_step,
            Self::rollback_step,
            Self::free_step,
            Self::collect_step,
            Self::checkpoint_step,
            Self::statistics_step,
            Self::scrub_step,
            Self::key_step,
            Self::words_step,
            Self::watch_step,
        ];
        let done = steps.map(|step| step(self));
        done.into_iter().try_fold(false, |any, done| Ok(any | done?))
    }

    /// Reports long stalls to the listener, which may do I/O. Takes no latch and waits for nothing
    /// in the database, so it runs even when everything else is stuck.
    pub(in crate::db) fn watch_step(&self) -> Result<bool> {
        self.core.health.stalls().look(self.core.clock.now_ns());
        Ok(false)
    }

    /// Runs about once a second. Makes the log durable, sometimes shortens its files, and abandons
    /// a waiting snapshot that has not been written for too long.
    pub(in crate::db) fn flush_step(&self) -> Result<bool> {
        let now_ns = self.core.clock.now_ns();
        let mut at_ns = self.flushed_at_ns.lock();
        let Some(log) = self.core.journal.log() else { return Ok(false) };
        if now_ns.saturating_sub(*at_ns) < FLUSH_EVERY_NS {
            return Ok(false);
        }
        *at_ns = now_ns;
        let flushed = log.background_flush().and_then(|()| log.shorten_files(now_ns));
        self.waiting_snapshot.step(&self.core);
        // Writing the log creates no further work.
        self.noted("writing the log", flushed.map(|()| true)).map(|_| false)
    }

    /// Does the due work on dictionaries, up to one trial. Returns whether more may be due.
    fn dictionary_step(&self) -> Result<bool> {
        let pool = &self.core.pool;
        for _ in 0..DICTIONARIES_PER_STEP {
            let tree = match pool.dictionary_due()? {
                DictionaryDue::Nothing => return Ok(false),
                // At most one replacement per step: pages should use it before the next one.
                DictionaryDue::Replaced => return Ok(false),
                DictionaryDue::Done => continue,
                DictionaryDue::Trial(tree) => tree,
            };
            let Some((table, _)) = self.core.catalog.by_tree(tree) else {
                // An index build may own the tree.
                match pool.trial(tree).try_if_lent()? {
                    Some(is_tried) => return Ok(is_tried),
                    None => continue,
                }
            };
            // The table was dropped or quarantined meanwhile and needs no dictionary.
            let Ok(_usage) = table.use_it() else { continue };
            if pool.trial(tree).is_due() && !is_internal(&table) {
                return pool.trial(tree).run_due();
            }
        }
        Ok(true)
    }

    /// Writes the dirty pages that are due, and makes dictionaries for them.
    pub(in crate::db) fn clean_step(&self) -> Result<bool> {
        let core = &self.core;
        let dictionaries = match self.noted("making dictionaries", self.dictionary_step()) {
            Err(fatal @ Error::Fatal(_)) => return Err(fatal),
            done => done.unwrap_or(false),
        };
        let written = core.pool.clean_step();
        Ok(self.noted("writing changed pages", written.map(|pages| pages > 0))? || dictionaries)
    }

    /// Moves images out of mostly dead segments, and releases the files of snapshots set aside.
    pub(in crate::db) fn collect_step(&self) -> Result<bool> {
        let core = &self.core;
        // Not in the step that flushes the log, which would have to wait for thousands of unlinks.
        self.waiting_snapshot.let_go();
        let moved = core.upkeep.gc_step(core.clock.now_ns(), core.pace.io_capacity());
        self.noted("freeing space", moved)
    }

    pub(in crate::db) fn rollback_step(&self) -> Result<bool> {
        self.noted("rollbacks", self.core.unfinished.step(&self.core))
    }

    /// Frees remains of committed transactions, pages of dropped trees, and undo pages, in part. An
    /// error in one kind does not stop the others.
    pub(in crate::db) fn free_step(&self) -> Result<bool> {
        let core = &self.core;
        let mut purged = self.noted("purge", core.purge.step(core, RECORDS_PER_STEP));
        if let Ok(false) = purged {
            purged =
                self.noted("interval garbage collection", core.purge.step_between(core, RECORDS_PER_STEP));
        }
        let trees = self.noted("dropping tables", self.free_dropped_trees());
        let undo = core.trim_undo();
        Ok(purged? | trees? | undo)
    }

    fn free_dropped_trees(&self) -> Result<bool> {
        let core = &self.core;
        core.dropping.lock().step(&core.catalog, &core.pool)
    }

    /// Finishes rollbacks, purge and frees as far as possible without taking long. The next startup
    /// does the rest.
    pub(in crate::db) fn finish_frees(&self) {
        let core = &self.core;
        let _ = self.noted("rollbacks", core.unfinished.finish_at_close(core).map(|()| true));
        let _ = self.noted("purge", core.purge.finish_at_close(core).map(|()| true));
        while let Ok(true) = self.noted("dropping tables", self.free_dropped_trees()) {}
        while core.trim_undo() {}
    }

    /// Drops an empty table of removals, which older versions of the engine do not know. Runs when
    /// the database is closed, after the frees.
    pub(in crate::db) fn leave_nothing_new(&self) {
        let _ = self.noted("dropping the table of removed words", drop_if_empty(&self.core).map(|()| true));
        while let Ok(true) = self.noted("dropping tables", self.free_dropped_trees()) {}
    }

    /// Returns `result`, after recording an error, or clearing it if the step works again. A full
    /// disk does not end the background: it continues when there is space.
    fn noted(&self, place: &'static str, result: Result<bool>) -> Result<bool> {
        let errors = self.core.health.background_errors();
        match &result {
            Ok(true) => errors.clear(place),
            Ok(false) | Err(Error::Fatal(_)) => {}
            Err(error) => errors.note(place, error),
        }
        match result {
            Err(Error::DiskFull(_)) => Ok(false),
            other => other,
        }
    }

    pub(in crate::db) fn checkpoint_step(&self) -> Result<bool> {
        let checkpointer = &self.core.checkpointer;
        let Some(why) = checkpointer.due() else { return Ok(false) };
        let done = checkpointer.spread_checkpoint(&*self.core, why).map(|()| true);
        let done = self.noted("checkpoint", done)?;
        self.noted("merging the page map", checkpointer.merge_map_if_due())?;
        self.give_holes_back();
        Ok(done)
    }

    /// Returns the allocator's free memory to the operating system, if the amount matters.
    /// Allocating threads may have to wait meanwhile, so this takes at most a thousandth of the
    /// time. Skipped if the engine's part of the heap of the process does not matter.
    fn give_holes_back(&self) {
        let begun_ns = self.core.clock.now_ns();
        let mut due_at_ns = self.holes_due_at_ns.lock();
        if begun_ns < *due_at_ns || !self.core.pool.memory().shares().holes_matter() {
            return;
        }
        cheetah_io::heap::give_back();
        *due_at_ns = next_give_back_ns(begun_ns, self.core.clock.now_ns());
    }

    pub(in crate::db) fn statistics_step(&self) -> Result<bool> {
        self.noted("taking statistics", taking_statistics::step(&self.core, &self.hurries))
    }

    /// Requests newer key versions, and re-encrypts some images, if due.
    pub(in crate::db) fn key_step(&self) -> Result<bool> {
        self.noted("rotating encryption keys", self.key_rotation.step(&self.core))
    }

    pub(in crate::db) fn words_step(&self) -> Result<bool> {
        self.noted("deleting words of removed rows", self.working_off.step(&self.core, &self.hurries))
    }

    /// Reads an image, or a block of a change file, if due; at the end of a pass, the page map.
    pub(in crate::db) fn scrub_step(&self) -> Result<bool> {
        const PLACE: &str = "scrubbing";
        let (core, errors) = (&self.core, self.core.health.background_errors());
        match core.upkeep.scrub_step(core.clock.now_ns())? {
            Scrubbed::Nothing => return Ok(false),
            Scrubbed::Intact => {}
            Scrubbed::PassEnded { is_clean } => {
                if is_clean {
                    errors.clear(PLACE);
                }
                core.checkpointer.map().scrub();
                self.noted("merging the page map", core.checkpointer.merge_map_if_due())?;
            }
            Scrubbed::Damaged(tree, error) => {
                let place = core.catalog.by_tree(tree).map_or_else(
                    || format!("tree {tree}"),
                    |(table, index_no)| format!("table '{}', index {index_no}", table.name()),
                );
                errors.note(PLACE, &Error::corrupt(place, error.to_string()));
            }
        }
        Ok(true)
    }

    /// Until [`Self::end_hurry`], checkpoints do not pause, no statistics are taken and no words
    /// are deleted.
    pub(in crate::db) fn hurry(&self) {
        self.hurries.store(true, Relaxed);
        self.core.checkpointer.hurry();
    }

    pub(in crate::db) fn end_hurry(&self) {
        self.hurries.store(false, Relaxed);
        self.core.checkpointer.end_hurry();
    }
}

/// `begun_ns` and `ended_ns`: when a return of free memory ran.
fn next_give_back_ns(begun_ns: u64, ended_ns: u64) -> u64 {
    let taken_ns = ended_ns - begun_ns;
    ended_ns + if taken_ns > HOLES_NS_MAX { HOLES_LONG_PAUSE_NS } else { taken_ns * HOLES_PAUSES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_holes_back_takes_little_of_the_time() {
        let (begun_ns, ms) = (7, 1_000_000);
        assert_eq!(next_give_back_ns(begun_ns, begun_ns + ms), begun_ns + 1001 * ms);
        assert_eq!(next_give_back_ns(begun_ns, begun_ns + 60 * ms), begun_ns + 3_600_060 * ms);
    }
}
