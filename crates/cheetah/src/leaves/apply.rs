//! Applies pending changes to a frame of the leaf, and chooses the leaves that the cleaner folds.
//! Invariants B1, B4 and B5 are at the head of `leaves`.

use super::{ColdLeaves, Leaves};
use crate::base::{reach, sound, Epoch, Error, PageId, Result, TreeId};
use crate::format::page::buffered_keys;
use crate::format::ImageRef;
use crate::memory::MemoryUse;
use crate::pool::{EntryGuard, Frame, Merged, PageRef, Pool, Residence};
use crate::segment::Stream;
use std::sync::Arc;

const DAMAGED_IMAGE_BYTES: usize = 256;
/// Changes that have been pending for this number of epochs are applied: no reader has checked
/// their leaf since.
const EPOCHS_MAX: u64 = 32;
/// The cleaner applies changes while they use more than this many eighths of their memory limit.
const FULL_EIGHTHS: usize = 7;

impl ColdLeaves {
    /// Applies the pending changes of the page of `image` to its frame, which this thread has read
    /// and no other thread has seen. May write an image (B4).
    pub(super) fn merge<'p>(
        &self,
        pool: &'p Pool,
        mut entry: EntryGuard<'p>,
        frame: &Arc<Frame>,
        image: &ImageRef,
    ) -> Result<Merged<'p>> {
        let pid = image.pid;
        if !sound!(true, "buffering: leave to the next epoch what waits for the ended one") {
            self.carry_over_pending(pool, pid, Epoch(pool.epoch().0 - 1));
        }
        if let (Some(ended), Some(_)) = self.pending.epochs(pid) {
            self.put_oldest_into(pool, pid, frame)?;
            drop(entry);
            let written = frame.with_private_bytes(|bytes| pool.append_image(frame, bytes, ended));
            entry = pool.page_entry(pid);
            let is_same = entry.residence() == Residence::BeingRead
                && entry.location() == Some(image.location)
                && self.pending.epochs(pid).0 == Some(ended);
            match written {
                Ok(location) if is_same => {
                    pool.install(&mut entry, pid, location, ended);
                    self.forget_oldest(pool, pid);
                    reach::mark("buffered entries of two epochs");
                }
                Ok(location) => {
                    pool.segments().release(&location, pool.epoch());
                    return Ok(Merged::Again(entry));
                }
                // The checkpoint is abandoned: the changes not written move to the next epoch (like
                // pool::W2).
                Err(error) => {
                    pool.fail_checkpoint(error);
                    self.carry_over_pending(pool, pid, ended);
                    return Ok(Merged::Again(entry));
                }
            }
        }
        let (Some(epoch), _) = self.pending.epochs(pid) else { return Ok(Merged::Into(entry)) };
        self.put_oldest_into(pool, pid, frame)?;
        let changes = pool.changes_of(epoch);
        changes.mark_dirty(pid, frame.bytes_count);
        frame.set_dirty(Some(epoch));
        self.forget_oldest(pool, pid);
        entry.set_pending(false);
        self.pending.merges.one();
        Ok(Merged::Into(entry))
    }

    fn put_oldest_into(&self, pool: &Pool, pid: PageId, frame: &Arc<Frame>) -> Result<()> {
        let applied = self.apply_to(pool, frame, &self.pending.oldest_bytes(pid))?;
        self.note_applied(pool, frame, applied);
        Ok(())
    }

    /// Notes that a pending change for a new entry replaced a live entry (B8).
    pub(super) fn note_live_replaced(&self, pool: &Pool, tree: TreeId) {
        note_damaged_index(pool, tree, "an entry of a new row existed already; run CHECK TABLE");
    }

    /// Notes that a pending removal found no entry (B8).
    pub(super) fn note_missing(&self, pool: &Pool, tree: TreeId) {
        if sound!(true, "buffering: say nothing of what is missing") {
            note_damaged_index(pool, tree, "the entry of a row is missing; run CHECK TABLE");
        }
    }

    /// Removes the pending changes of the oldest epoch, which an image or a frame now contains.
    pub(super) fn forget_oldest(&self, pool: &Pool, pid: PageId) {
        if let Some(epoch) = self.pending.take_oldest(pid) {
            pool.changes_of(epoch).unmark_pending(pid);
        }
    }

    /// Moves the pending changes of an abandoned epoch to the next epoch. Must be called under the
    /// lock of the page's entry.
    pub(super) fn carry_over_pending(&self, pool: &Pool, pid: PageId, given_up: Epoch) {
        let (had, has_newer) = self.pending.carry_over(pid, given_up);
        if had && !has_newer {
            pool.changes_of(Epoch(given_up.0 + 1)).mark_pending(pid);
        }
        if had {
            pool.changes_of(given_up).unmark_pending(pid);
        }
    }

    /// Drops all pending changes of a page that was freed or can never be read. Must be called
    /// under the lock of its entry.
    pub(super) fn forget_pending(&self, pool: &Pool, pid: PageId) {
        while self.pending.epochs(pid).0.is_some() {
            self.forget_oldest(pool, pid);
        }
    }

    /// Reads a page with pending changes of `epoch`, which applies them to its frame; `None` if it
    /// no longer has any. A damaged page receives a deliberately damaged image, because a later
    /// read could succeed and return the page without the changes (B9).
    pub(super) fn read_to_merge(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<Option<PageRef>> {
        let mut has_failed = false;
        loop {
            match pool.fetch_for_scan(pid) {
                Err(error) if self.is_damage(&error) => {
                    if has_failed && self.damage_for_certain(pool, pid, epoch, &error)? {
                        return Ok(None);
                    }
                    has_failed = true;
                    pool.forget_cached_image(pid);
                }
                read => return read,
            }
        }
    }

    /// Gives a damaged page a deliberately damaged image, and drops its pending changes. Does
    /// nothing and returns `false` if a thread is reading or has reserved the page. Otherwise
    /// returns `true`: the page has no pending changes of `epoch`.
    fn damage_for_certain(&self, pool: &Pool, pid: PageId, epoch: Epoch, error: &Error) -> Result<bool> {
        if !self.pending.has(pid, epoch) {
            return Ok(true);
        }
        let location = pool.segments().append(Stream::Hot, &mut [0; DAMAGED_IMAGE_BYTES])?;
        let mut entry = pool.page_entry(pid);
        if entry.residence() != Residence::Stored || entry.is_reserved() || !self.pending.has(pid, epoch) {
            drop(entry);
            pool.segments().release(&location, pool.epoch());
            return Ok(false);
        }
        pool.install(&mut entry, pid, location, epoch);
        let mut changes = Vec::new();
        self.pending.copy_all(pid, &mut changes);
        self.forget_pending(pool, pid);
        entry.set_pending(false);
        entry.set_room(None);
        let tree = entry.tree();
        drop(entry);
        self.pending.note_given_up(tree);
        reach::mark("entries of a damaged page given up");
        let count = buffered_keys(&changes).take_while(|key| key.is_ok()).count();
        let detail = format!("{count} pending changes of rows or entries are lost: {error}");
        let error = Error::corrupt(format!("page {pid} of tree {tree}"), detail);
        pool.health().background_errors().note("buffered entries of a damaged page", &error);
        Ok(true)
    }

    /// Called before a page is freed: writes its pending changes if they belong to the epoch that
    /// is being written (B7), which needs I/O. Returns `false` if the page has a frame now.
    pub(super) fn apply_before_free(&self, pool: &Pool, pid: PageId) -> bool {
        let Some(ended) = pool.epoch_in_writing() else { return true };
        let has =
            || pool.known_entry(pid).is_some_and(|entry| entry.has_pending() && self.pending.has(pid, ended));
        if !sound!(has(), "buffering: free a page that a checkpoint needs") {
            return true;
        }
        match self.read_to_merge(pool, pid, ended) {
            Ok(page) => page.is_none(),
            Err(error) => {
                pool.fail_checkpoint(error);
                true
            }
        }
    }

    /// Applies the oldest pending changes to their leaves and writes these, at most `pages_max`,
    /// while the changes use too much memory or are too old. Returns the number of leaves.
    pub(super) fn merge_oldest(&self, pool: &Pool, pages_max: usize) -> Result<usize> {
        let full = pool.memory().buffered_limit() * FULL_EIGHTHS / 8;
        let mut merged = 0;
        self.pending.tidy_order();
        let are_many = || {
            pool.memory().used(MemoryUse::Buffered) > full
                || self.pending.pages_are_nearly_many()
                || !self.waiting_has_space(pool)
                || self.has_waited_long(pool)
        };
        while merged < pages_max && are_many() {
            let Some(pid) = self.pending.next_in_order() else { break };
            let (Some(epoch), _) = self.pending.epochs(pid) else { continue };
            let merged_one = self.fold_or_merge(pool, pid, epoch);
            if self.pending.epochs(pid).0 == Some(epoch) {
                self.pending.put_back(pid);
            }
            merged_one?;
            merged += 1;
        }
        Ok(merged)
    }

    /// Returns whether some changes have been pending so long that their leaf should be checked
    /// (B9).
    fn has_waited_long(&self, pool: &Pool) -> bool {
        let before = Epoch(pool.epoch().0.saturating_sub(EPOCHS_MAX));
        sound!(self.pending.waits_since_before(before), "buffering: let changes wait for ever")
    }

    pub(super) fn fold_or_merge(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<()> {
        if self.fold(pool, pid, epoch)? {
            return Ok(());
        }
        match self.read_to_merge(pool, pid, epoch)? {
            Some(page) => pool.try_write_out(page.frame()).map(drop),
            None => Ok(()),
        }
    }
}

impl Leaves {
    /// Applies all pending changes to their leaves and writes the leaves, in the order of trees and
    /// pages, like a scan. Calls `goes_on` with the number of finished leaves until it returns
    /// false. Continues after an error of one page, and finally returns the first error. Blocks for
    /// I/O.
    pub fn fold_waiting(&self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<()> {
        let pool = &*self.pool;
        let epoch = pool.epoch();
        let mut waiting = pool.changes_of(epoch).pending_pids();
        waiting.sort_by_cached_key(|pid| (pool.page_entry(*pid).tree(), *pid));
        let mut first_error = Ok(());
        for (done, pid) in waiting.into_iter().enumerate() {
            if pool.epoch() != epoch || !goes_on(done) {
                break;
            }
            if self.cold.pending.has(pid, epoch) {
                first_error = first_error.and(self.cold.fold_or_merge(pool, pid, epoch));
            }
        }
        first_error
    }

    /// Notes that a pending change for a new entry replaced a live entry (B8).
    pub fn note_live_replaced(&self, tree: TreeId) {
        self.cold.note_live_replaced(&self.pool, tree);
    }

    /// Notes that a pending removal found no entry (B8).
    pub fn note_missing(&self, tree: TreeId) {
        self.cold.note_missing(&self.pool, tree);
    }
}

fn note_damaged_index(pool: &Pool, tree: TreeId, found: &str) {
    let error = Error::corrupt(format!("tree {tree}"), found);
    pool.health().background_errors().note("buffered entries", &error);
}
