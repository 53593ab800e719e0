//! Buffered changes on their way into a frame of the leaf, and which the cleaner folds. Invariants:
//! B1, B4 and B5 at the head of the room.

use crate::base::{planted, reach, Epoch, Error, PageId, Result, TreeId};
use crate::format::page::buffered_keys;
use crate::format::ImageRef;
use crate::memory::MemoryUse;
use crate::pool::frames::{EntryGuard, Frame, PageRef, Residence};
use crate::pool::Pool;
use crate::segment::Stream;
use std::sync::Arc;

/// Bytes of an image that is damaged for certain.
const DAMAGED_IMAGE_BYTES: usize = 256;
/// What has waited for so many epochs is brought into its leaf: until then nobody has read that.
const EPOCHS_MAX: u64 = 32;
/// Of what entries may take, the part from which on the cleaner brings them into their leaves.
const FULL_EIGHTHS: usize = 7;

/// What became of the entries of a page that was read.
pub(in crate::pool) enum Merged<'p> {
    /// They are in the frame, which may be published.
    Into(EntryGuard<'p>),
    /// The page has changed meanwhile, and is to be looked up again.
    Again(EntryGuard<'p>),
}

impl Pool {
    /// Bytes in memory of the pages that entries wait for. Their images take no more, but for a
    /// header.
    pub(in crate::pool) fn buffered_page_bytes(&self) -> usize {
        if planted::is_on("buffering: count no page for what waits") {
            return 0;
        }
        self.buffering.pages_count() * self.page_bytes as usize
    }

    /// Puts the entries that wait for the page of `image` into its frame, which this thread has
    /// read and nobody else has seen. May write an image (B4).
    pub(in crate::pool) fn merge_buffered<'p>(
        &'p self,
        mut entry: EntryGuard<'p>,
        frame: &Arc<Frame>,
        image: &ImageRef,
    ) -> Result<Merged<'p>> {
        let pid = image.pid;
        if planted::is_on("buffering: leave to the next epoch what waits for the ended one") {
            self.carry_over_buffered(pid, Epoch(self.epoch().0 - 1));
        }
        if let (Some(ended), Some(_)) = self.buffering.epochs(pid) {
            self.put_oldest_into(pid, frame)?;
            drop(entry);
            let written = frame.with_private_bytes(|bytes| self.append_image(frame, bytes, ended));
            entry = self.table.entry(pid);
            let is_same = entry.residence() == Residence::BeingRead
                && entry.location() == Some(image.location)
                && self.buffering.epochs(pid).0 == Some(ended);
            match written {
                Ok(location) if is_same => {
                    self.install(&mut entry, pid, location, ended);
                    self.forget_oldest(pid);
                    reach::mark("buffered entries of two epochs");
                }
                Ok(location) => {
                    self.segments.release(&location, self.epoch());
                    return Ok(Merged::Again(entry));
                }
                // The checkpoint is given up: what it lacks goes into the next one (as W2).
                Err(error) => {
                    self.in_writing.fail(error);
                    self.carry_over_buffered(pid, ended);
                    return Ok(Merged::Again(entry));
                }
            }
        }
        let (Some(epoch), _) = self.buffering.epochs(pid) else { return Ok(Merged::Into(entry)) };
        self.put_oldest_into(pid, frame)?;
        let changes = self.changes_of(epoch);
        changes.mark_dirty(pid, frame.bytes_count);
        frame.set_dirty(Some(epoch));
        self.forget_oldest(pid);
        entry.set_buffered(false);
        self.buffering.merges.one();
        Ok(Merged::Into(entry))
    }

    fn put_oldest_into(&self, pid: PageId, frame: &Arc<Frame>) -> Result<()> {
        let applied = self.apply_to(frame, &self.buffering.oldest_bytes(pid))?;
        self.note_applied(frame, applied);
        Ok(())
    }

    /// Notes that an entry was put in place of a live one (B8).
    pub fn note_live_replaced(&self, tree: TreeId) {
        self.note_damaged_index(tree, "an entry of a new row was there already; run CHECK TABLE");
    }

    /// Notes that an entry that was to go is missing (B8).
    pub fn note_missing(&self, tree: TreeId) {
        if planted::is_on("buffering: say nothing of what is missing") {
            return;
        }
        self.note_damaged_index(tree, "the entry of a row is missing; run CHECK TABLE");
    }

    fn note_damaged_index(&self, tree: TreeId, found: &str) {
        let error = Error::corrupt(format!("tree {tree}"), found);
        self.health.background_errors().note("buffered entries", &error);
    }

    /// The entries of the oldest epoch are in an image or a frame.
    pub(super) fn forget_oldest(&self, pid: PageId) {
        if let Some(epoch) = self.buffering.take_oldest(pid) {
            self.changes_of(epoch).unmark_buffered(pid);
        }
    }

    /// The entries of an epoch that is given up belong to the next one. Under the lock of the
    /// page's entry.
    pub(in crate::pool) fn carry_over_buffered(&self, pid: PageId, given_up: Epoch) {
        let (had, has_newer) = self.buffering.carry_over(pid, given_up);
        if had && !has_newer {
            self.changes_of(Epoch(given_up.0 + 1)).mark_buffered(pid);
        }
        if had {
            self.changes_of(given_up).unmark_buffered(pid);
        }
    }

    /// Nobody wants the entries of a page any more: it has been freed, or can never be read. Under
    /// the lock of its entry.
    pub(in crate::pool) fn forget_buffered(&self, pid: PageId) {
        while self.buffering.epochs(pid).0.is_some() {
            self.forget_oldest(pid);
        }
    }

    /// Whether the image under the entries of a page may move in `epoch` (B6).
    pub(in crate::pool) fn may_move_under_buffered(&self, pid: PageId, epoch: Epoch) -> bool {
        let (older, newer) = self.buffering.epochs(pid);
        older.into_iter().chain(newer).all(|of| of == epoch)
            || planted::is_on("buffering: move an image under entries of an ended epoch")
    }

    /// Reads a page with entries of `epoch`, so that they are in its frame. `None` when it has none
    /// any more. A page that is damaged gets an image that is so for certain: otherwise it might
    /// seem whole later, without the entries (B9).
    pub(in crate::pool) fn read_to_merge(&self, pid: PageId, epoch: Epoch) -> Result<Option<PageRef>> {
        let mut has_failed = false;
        loop {
            match self.fetch_for_scan(pid) {
                Err(error) if self.is_damage(&error) => {
                    if has_failed && self.damage_for_certain(pid, epoch, &error)? {
                        return Ok(None);
                    }
                    has_failed = true;
                    self.image_cache.forget(pid);
                }
                read => return read,
            }
        }
    }

    /// Whether no entries of `epoch` wait for the page any more; `false` when somebody reads it.
    fn damage_for_certain(&self, pid: PageId, epoch: Epoch, error: &Error) -> Result<bool> {
        if !self.buffering.has(pid, epoch) {
            return Ok(true);
        }
        let location = self.segments.append(Stream::Hot, &mut [0; DAMAGED_IMAGE_BYTES])?;
        let mut entry = self.table.entry(pid);
        if entry.residence() != Residence::Stored || !self.buffering.has(pid, epoch) {
            drop(entry);
            self.segments.release(&location, self.epoch());
            return Ok(false);
        }
        self.install(&mut entry, pid, location, epoch);
        let mut changes = Vec::new();
        self.buffering.copy_all(pid, &mut changes);
        self.forget_buffered(pid);
        entry.set_buffered(false);
        entry.set_room(None);
        let tree = entry.tree();
        drop(entry);
        self.buffering.note_given_up(tree);
        reach::mark("entries of a damaged page given up");
        let count = buffered_keys(&changes).take_while(|key| key.is_ok()).count();
        let detail = format!("{count} changes that waited for it, of rows or entries, are lost: {error}");
        let error = Error::corrupt(format!("page {pid} of tree {tree}"), detail);
        self.health.background_errors().note("buffered entries of a damaged page", &error);
        Ok(true)
    }

    /// Before a page is freed: the epoch that is being written has its entries (B7). Does I/O where
    /// there are such. `false` when the page has a frame now.
    pub(in crate::pool) fn apply_before_free(&self, pid: PageId) -> bool {
        let Some(ended) = self.in_writing.writing() else { return true };
        let has = || {
            self.table
                .existing(pid)
                .is_some_and(|entry| entry.is_buffered() && self.buffering.has(pid, ended))
        };
        if !has() || planted::is_on("buffering: free a page that a checkpoint needs") {
            return true;
        }
        match self.read_to_merge(pid, ended) {
            Ok(page) => page.is_none(),
            Err(error) => {
                self.in_writing.fail(error);
                true
            }
        }
    }

    /// Brings entries that have waited longest into their leaves, and writes these, when entries
    /// take much memory; at most `pages_max` pages. Returns how many.
    pub(in crate::pool) fn merge_oldest(&self, pages_max: usize) -> Result<usize> {
        let full = self.memory.buffered_limit() * FULL_EIGHTHS / 8;
        let mut merged = 0;
        self.buffering.tidy_order();
        let are_many = || {
            self.memory.used(MemoryUse::Buffered) > full
                || self.buffering.pages_are_nearly_many()
                || !self.waiting_has_space()
                || self.has_waited_long()
        };
        while merged < pages_max && are_many() {
            let Some(pid) = self.buffering.next_in_order() else { break };
            let (Some(epoch), _) = self.buffering.epochs(pid) else { continue };
            let merged_one = self.fold_or_merge(pid, epoch);
            if self.buffering.epochs(pid).0 == Some(epoch) {
                self.buffering.put_back(pid);
            }
            merged_one?;
            merged += 1;
        }
        Ok(merged)
    }

    /// Whether something has waited for so many epochs that its leaf should be read: it may be
    /// damaged (B9).
    fn has_waited_long(&self) -> bool {
        let before = Epoch(self.epoch().0.saturating_sub(EPOCHS_MAX));
        self.buffering.waits_since_before(before) && !planted::is_on("buffering: let changes wait for ever")
    }

    /// Brings what waits into its leaves and writes these, in the order of trees and pages, which a
    /// scan reads; as long as `goes_on` says so, with the number of those done. An error of one
    /// page does not keep the others; the first one comes back. Blocks for I/O.
    pub fn fold_waiting(&self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<()> {
        let epoch = self.epoch();
        let mut waiting = self.changes_of(epoch).buffered_pids();
        waiting.sort_by_cached_key(|pid| (self.table.entry(*pid).tree(), *pid));
        let mut first_error = Ok(());
        for (done, pid) in waiting.into_iter().enumerate() {
            if self.epoch() != epoch || !goes_on(done) {
                break;
            }
            if self.buffering.has(pid, epoch) {
                first_error = first_error.and(self.fold_or_merge(pid, epoch));
            }
        }
        first_error
    }

    /// Brings the entries of an epoch, the older one of a page, into its leaf, and writes it.
    pub(super) fn fold_or_merge(&self, pid: PageId, epoch: Epoch) -> Result<()> {
        if self.fold(pid, epoch)? {
            return Ok(());
        }
        match self.read_to_merge(pid, epoch)? {
            Some(page) => self.try_write_out(&page.0).map(drop),
            None => Ok(()),
        }
    }
}
