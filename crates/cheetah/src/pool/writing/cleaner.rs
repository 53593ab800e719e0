//! The cleaner: writes dirty pages in the background, so that threads that need memory find clean
//! pages.
//!
//! A page is written shortly before it is evicted, not earlier: a page that still changes would be
//! written again. So a load writes each page about once. The share of dirty pages does not matter:
//! a pool may consist of dirty pages, as long as the next ones to be evicted are clean.
//!
//! Finished pages hardly change: pages that a load built completely, or that a dump with ascending
//! keys has filled. They are written while later pages are filled, but not before the first
//! dictionary of their tree was tried. A page that changes later is written again. Pages of large
//! values are written early too, once enough further pages of large values follow.
//!
//! Invariants
//!   W4  The cleaner writes a page only if it is among the next 1/`LEAVING_SHARE` of the frames to
//!       be evicted (at most `LEAVING_LOOKS_MAX` of each queue), or is finished, or belongs to the
//!       epoch that a checkpoint writes. Otherwise pages that change often are written for each few
//!       changes.
//! Locks     `finished` is innermost: it is taken under page latches.

use super::cleaner_work::{Cleaner, STEP_PAGES_MAX};
use crate::base::{sound, PageId, Result};
use crate::pool::eviction::Purpose;
use crate::pool::{PageClass, Pool};
use std::time::Duration;

/// The cleaner keeps 1/`SPARE_SHARE` of the frames free, for threads that read pages.
const SPARE_SHARE: usize = 50;
/// The minimum number of pages kept free, limited to 1/`SPARE_SHARE_MAX` of the frames.
const SPARE_PAGES_MIN: usize = 4;
const SPARE_SHARE_MAX: usize = 8;
/// The maximum number of leaves folded in one step. During a fold the cleaner makes no room for
/// threads that read.
const FOLDS_OF_STEP: usize = 16;
/// The frames that are evicted next should be clean: the number of frames divided by
/// `LEAVING_SHARE`.
const LEAVING_SHARE: usize = 8;
/// The maximum number of frames checked in each queue to find the dirty ones: the queues are locked
/// meanwhile.
const LEAVING_LOOKS_MAX: usize = 512;
/// The newest large values may take 1/`VALUES_KEPT_PART` of the frames before the cleaner writes
/// the oldest of them. Before that, short-lived values are freed.
const VALUES_KEPT_PART: usize = 32;

impl Pool {
    /// Does one step of the cleaner: writes pages that will be evicted soon, and finished pages,
    /// evicts ahead of need, folds leaves, frees memory beyond the limits, and updates the memory
    /// counts. Returns the number of pages written, or evicted because the limit has fallen: after
    /// 0 the next step is not urgent.
    pub fn clean_step(&self) -> Result<usize> {
        self.health.check()?;
        self.count_memory();
        self.image_cache.give_way(self.counters.evictions.get(), self.queues.frames_count());
        self.buffers.give_back_idle();
        let mut written = self.cleaner.clean_leaving(self)?;
        written += self.cleaner.clean_finished(self)?;
        written += self.cleaner.keep_spare_frames(self)?;
        // This is the last part, because an unreadable page must not delay the other work.
        written += self.beside.step(self, FOLDS_OF_STEP)?;
        Ok(written)
    }

    /// Waits until a thread calls the cleaner, or for `pause`. For the cleaner's thread, between
    /// steps without work.
    pub fn wait_to_clean(&self, pause: Duration) {
        self.cleaner.wait(pause);
    }

    /// Ends the current wait, or the next one.
    pub fn call_cleaner(&self) {
        self.cleaner.call();
    }

    /// Queues pages for the cleaner that a load has built completely, or that will not change any
    /// more.
    pub fn note_finished(&self, pages: impl Iterator<Item = PageId>) {
        self.cleaner.note_finished(pages);
    }

    /// Queues the pages of a large value for the cleaner. The cleaner writes them when enough pages
    /// of further values follow.
    pub fn note_value(&self, pages: impl Iterator<Item = PageId>) {
        self.cleaner.note_value(pages);
    }
}

/// The parts of a step.
impl Cleaner {
    /// Writes dirty pages that are evicted next, if evictions are near.
    fn clean_leaving(&self, pool: &Pool) -> Result<usize> {
        let share = pool.memory.frames_limit() / LEAVING_SHARE;
        if pool.buffers.in_use() + share <= pool.memory.frames_limit() {
            return Ok(0);
        }
        let share = match sound!(true, "cleaner: write any dirty page") {
            true => LEAVING_SHARE,
            false => 1,
        };
        let looks = (pool.queues.frames_count() / share).min(LEAVING_LOOKS_MAX);
        let leaving = pool.queues.leaving_dirty(looks.max(1));
        self.write_pages(pool, leaving.into_iter().take(STEP_PAGES_MAX))
    }

    /// Writes some of the finished pages. Pages that wait for a dictionary return to the end of the
    /// queue.
    fn clean_finished(&self, pool: &Pool) -> Result<usize> {
        let kept = pool.memory.frames_limit() / VALUES_KEPT_PART / pool.page_bytes as usize;
        let pages = self.take_finished(kept).into_iter();
        let (early, due): (Vec<_>, Vec<_>) = pages.partition(|page| self.waits_for_dictionary(pool, *page));
        self.note_finished(early.into_iter());
        self.write_pages(pool, due.into_iter())
    }

    /// Returns whether a page has no image yet, and the first dictionary of its tree was not tried
    /// yet.
    fn waits_for_dictionary(&self, pool: &Pool, page: PageId) -> bool {
        let (tree, is_due) = {
            let entry = pool.table.entry(page);
            let is_new = entry.location().is_none() && entry.frame().is_some();
            (entry.tree(), entry.is_used() && is_new)
        };
        let state = pool.trees.known(tree).filter(|_| is_due);
        state.is_some_and(|state| state.awaits_first_trial())
    }

    /// Writes the pages that are dirty and whose latch is free. Returns their number.
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

    /// Evicts until a small share of the frames is free. If the frames still exceed their limit,
    /// returns the number of evictions during the call, including evictions by other threads.
    /// Otherwise returns 0.
    fn keep_spare_frames(&self, pool: &Pool) -> Result<usize> {
        let page_bytes = PageClass::Base.bytes(pool.page_bytes);
        let frames = pool.memory.frames_limit() / page_bytes;
        let pages = (frames / SPARE_SHARE).max(SPARE_PAGES_MIN).min(frames / SPARE_SHARE_MAX).max(1);
        let before = pool.counters.evictions.get();
        pool.evict_until_fits(PageClass::Base, pages * page_bytes, STEP_PAGES_MAX, Purpose::Cleaning)?;
        let evicted = (pool.counters.evictions.get() - before) as usize;
        Ok(if pool.buffers.excess() > 0 { evicted } else { 0 })
    }
}
