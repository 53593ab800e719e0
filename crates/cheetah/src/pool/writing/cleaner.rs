//! The cleaner: writes changed pages in the background, so that threads which need room find clean
//! pages.
//!
//! A page is written when it is about to leave memory, and not before: a page that is still being
//! changed would be written again. So a load writes each page about once. Only when most of the
//! memory is dirty is any page written. Pages that are finished, as they were built as a whole or
//! left full by ascending keys of a dump, hardly change any more: these are written while the next
//! ones come, but not before the first dictionary of their tree has been tried. A later change
//! writes them again. Parts of large values are written early too, once enough others have come
//! after them.
//!
//! Locks     `finished` is a leaf: it is taken under latches of pages.

use super::cleaner_work::{Cleaner, STEP_PAGES_MAX};
use super::pressure::Pressure;
use crate::base::{PageId, Result};
use crate::pool::eviction::Purpose;
use crate::pool::{PageClass, Pool};
use std::time::Duration;

/// Share of the frames that the cleaner keeps free for threads that read: one in fifty.
const SPARE_SHARE: usize = 50;
/// Free pages that it keeps in any case, and the part of the frames that they take at most.
const SPARE_PAGES_MIN: usize = 4;
const SPARE_SHARE_MAX: usize = 8;
/// Leaves that get what waits for them in one step: while it does that, nobody else makes room for
/// threads that read.
const FOLDS_OF_STEP: usize = 16;
/// Part of the frames that should be clean because they leave next: one in `LEAVING_SHARE`.
const LEAVING_SHARE: usize = 16;
/// Frames looked at in each queue for such pages, at most: the queues are locked meanwhile.
const LEAVING_LOOKS_MAX: usize = 512;
/// Part of the frames that the newest large values may take before the cleaner begins with the
/// oldest: those that do not live long are gone by then.
const VALUES_KEPT_PART: usize = 32;

impl Pool {
    /// One step of the cleaner: writes pages that leave soon, and others when too many are dirty,
    /// evicts ahead of need, gives back what is beyond the limits of memory, and counts what is in
    /// use. `log_percent` is the log written since the last checkpoint, of what there may be.
    /// Returns the number of pages written, or evicted because the limit has fallen: 0 when the
    /// next step has time.
    pub fn clean_step(&self, now_ns: u64, log_percent: u64, io_capacity: u32) -> Result<usize> {
        self.health.check()?;
        self.count_memory();
        self.image_cache.give_way(self.counters.evictions.get(), self.queues.frames_count());
        self.buffers.give_back_idle();
        let mut written = self.cleaner.clean_leaving(self)?;
        written += self.cleaner.clean_finished(self)?;
        let pressure = self.pressure(log_percent);
        let due = self.cleaner.due(now_ns, pressure.cleaner_pages_per_second(io_capacity));
        if pressure.is_high() {
            written += self.cleaner.clean_any(self, due as usize)?;
        }
        written += self.cleaner.keep_spare_frames(self)?;
        // At the end: a page that cannot be read must not keep the others waiting.
        written += self.beside.step(self, FOLDS_OF_STEP)?;
        Ok(written)
    }

    /// Waits until threads need the cleaner, or for `pause`: for its thread, between steps without
    /// work.
    pub fn wait_to_clean(&self, pause: Duration) {
        self.cleaner.wait(pause);
    }

    /// Ends that wait, or the next one.
    pub fn call_cleaner(&self) {
        self.cleaner.call();
    }

    /// The pressure now; `log_percent` as in [`clean_step`](Self::clean_step).
    pub fn pressure(&self, log_percent: u64) -> Pressure {
        let limit = (self.memory.frames_limit() as u64).max(1);
        Pressure { dirty_percent: (self.dirty_bytes() as u64 * 100 / limit).min(100), log_percent }
    }

    /// Has the cleaner write pages that a load has built as a whole, or that do not change any
    /// more.
    pub fn note_finished(&self, pages: impl Iterator<Item = PageId>) {
        self.cleaner.note_finished(pages);
    }

    /// Has the cleaner write pages of a large value, when enough others have come after it.
    pub fn note_value(&self, pages: impl Iterator<Item = PageId>) {
        self.cleaner.note_value(pages);
    }
}

/// The parts of a step.
impl Cleaner {
    /// Writes changed pages that are the next to leave memory, if any must.
    fn clean_leaving(&self, pool: &Pool) -> Result<usize> {
        let share = pool.memory.frames_limit() / LEAVING_SHARE;
        if pool.buffers.in_use() + share <= pool.memory.frames_limit() {
            return Ok(0);
        }
        let looks = (pool.queues.frames_count() / LEAVING_SHARE).min(LEAVING_LOOKS_MAX);
        let leaving = pool.queues.leaving_dirty(looks.max(1));
        self.write_pages(pool, leaving.into_iter().take(STEP_PAGES_MAX as usize))
    }

    /// Writes some of the pages that are finished. Those that wait for a dictionary go to the end.
    fn clean_finished(&self, pool: &Pool) -> Result<usize> {
        let kept = pool.memory.frames_limit() / VALUES_KEPT_PART / pool.page_bytes as usize;
        let pages = self.take_finished(kept).into_iter();
        let (early, due): (Vec<_>, Vec<_>) = pages.partition(|page| self.waits_for_dictionary(pool, *page));
        self.note_finished(early.into_iter());
        self.write_pages(pool, due.into_iter())
    }

    /// Whether a page has no image yet, and the first dictionary of its tree has still to be tried.
    fn waits_for_dictionary(&self, pool: &Pool, page: PageId) -> bool {
        let (tree, is_due) = {
            let entry = pool.table.entry(page);
            let is_new = entry.location().is_none() && entry.frame().is_some();
            (entry.tree(), entry.is_used() && is_new)
        };
        let state = pool.trees.known(tree).filter(|_| is_due);
        state.is_some_and(|state| state.awaits_first_trial())
    }

    /// Writes up to `pages_max` changed pages of the current epoch.
    fn clean_any(&self, pool: &Pool, pages_max: usize) -> Result<usize> {
        let pids = pool.changes_of(pool.epoch()).some_dirty_pids(pages_max);
        self.write_pages(pool, pids.into_iter().take(pages_max))
    }

    /// Writes those of the pages that are dirty and whose latch is free; returns how many.
    fn write_pages(&self, pool: &Pool, pids: impl Iterator<Item = PageId>) -> Result<usize> {
        let mut written = 0;
        for pid in pids {
            let frame = pool.table.entry(pid).frame().cloned();
            if let Some(frame) = frame.filter(|frame| frame.dirty().is_some()) {
                pool.check_space_to_clean(Purpose::Cleaning)?;
                written += usize::from(pool.try_write_out(&frame)?);
            }
        }
        Ok(written)
    }

    /// Evicts until a small share of the frames is free. While there are too many, returns how
    /// many have been evicted meanwhile, by others too: 0 if none could be.
    fn keep_spare_frames(&self, pool: &Pool) -> Result<usize> {
        let page_bytes = PageClass::Base.bytes(pool.page_bytes);
        let frames = pool.memory.frames_limit() / page_bytes;
        let pages = (frames / SPARE_SHARE).max(SPARE_PAGES_MIN).min(frames / SPARE_SHARE_MAX).max(1);
        let before = pool.counters.evictions.get();
        pool.evict_until_fits(
            PageClass::Base,
            pages * page_bytes,
            STEP_PAGES_MAX as usize,
            Purpose::Cleaning,
        )?;
        let evicted = (pool.counters.evictions.get() - before) as usize;
        Ok(if pool.buffers.excess() > 0 { evicted } else { 0 })
    }
}
