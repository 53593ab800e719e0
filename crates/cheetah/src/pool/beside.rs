//! The pool's interface to the layer above, which reads and changes leaves without a frame.
//!
//! The layer above ([`leaves`](crate::leaves)) implements [`BesideFrames`]. The pool calls it when
//! a page receives a frame, loses its frame, moves or is freed, and when pending changes must be
//! written. In the other direction the pool provides the locks of page table entries and the steps
//! that convert images to frames and back. The pool itself does not interpret keys.
//!
//! Invariants
//!   I1  The lock of the page's entry is held during a call if the method has an entry as a
//!       parameter or if the method's documentation says so. Otherwise only the caller's own locks
//!       and latches are held.
//!   I2  An implementation does not wait for a latch under the lock of an entry (F6), and does not
//!       take the lock of an entry in a call that already holds one.

use super::frames::{EntryGuard, Frame, PageEntry};
use super::mtr::EpochChanges;
use crate::base::{Epoch, Health, PageId, Result};
use crate::format::{ImageRef, Location};
use crate::pool::Pool;
use cheetah_io::Clock;
use std::sync::Arc;

/// The result of [`BesideFrames::on_read`].
pub enum Merged<'p> {
    /// All pending changes are in the frame, which may be published.
    Into(EntryGuard<'p>),
    /// The page was changed concurrently, so it must be looked up again.
    Again(EntryGuard<'p>),
}

impl std::fmt::Debug for Merged<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Merged::Into(_) => "Into",
            Merged::Again(_) => "Again",
        })
    }
}

/// State that the layer above keeps for pages without a frame. The module describes the locks.
pub trait BesideFrames: Send + Sync + std::fmt::Debug {
    /// Applies the pending changes to `frame`, which was read from `image`, the newest image of its
    /// page, and is not published yet. May release the entry temporarily, and may write an image.
    fn on_read<'p>(
        &self,
        pool: &'p Pool,
        entry: EntryGuard<'p>,
        frame: &Arc<Frame>,
        image: &ImageRef,
    ) -> Result<Merged<'p>>;

    /// Called when a page loses its clean frame.
    fn on_evict(&self, pool: &Pool, entry: &mut PageEntry, frame: &Frame);

    /// Called when a page with pending changes has received a new image, under the lock of its
    /// entry.
    fn on_install(&self, pid: PageId);

    /// Called before a page is freed. Writes its pending changes if they belong to an epoch that is
    /// being written. May do I/O. Returns `false` if the page has a frame now.
    fn before_free(&self, pool: &Pool, pid: PageId) -> bool;

    /// Called when a page with pending changes is freed, under the lock of its entry.
    fn on_free(&self, pool: &Pool, pid: PageId);

    /// Returns whether the image of a page with pending changes may move in `epoch`. Called under
    /// the lock of the page's entry.
    fn may_move(&self, pid: PageId, epoch: Epoch) -> bool;

    /// Called when `image` was copied and the copy at `to` is now the page's image, under the lock
    /// of the page's entry.
    fn on_move(&self, image: &ImageRef, to: Location);

    /// Writes a page's pending changes for `epoch`, or returns a frame that contains the changes.
    /// Returns `None` if there is no such frame. Does I/O.
    fn write_for(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<Option<Arc<Frame>>>;

    /// Returns whether a page has pending changes of `epoch`. Called under the lock of its entry.
    fn has(&self, pid: PageId, epoch: Epoch) -> bool;

    /// Moves the pending changes of an abandoned epoch to the next epoch. Called under the lock of
    /// the page's entry.
    fn carry_over(&self, pool: &Pool, pid: PageId, given_up: Epoch);

    /// Performs a step of the cleaner: frees memory, and writes at most `pages_max` pages. Returns
    /// the number of pages written. Does I/O.
    fn step(&self, pool: &Pool, pages_max: usize) -> Result<usize>;

    /// The number of pages with pending changes, each of which a checkpoint may have to write.
    fn pages_count(&self) -> usize;

    /// Reads the next block of the files with saved changes, or the first block if `restart`, to
    /// detect damage. Returns the number of bytes read, or `None` at the end. Does I/O.
    fn scrub(&self, pool: &Pool, restart: bool) -> Option<u64>;
}

/// An implementation without any state, for a pool without `leaves`.
#[derive(Debug)]
pub struct NothingBeside;

impl BesideFrames for NothingBeside {
    fn on_read<'p>(
        &self,
        _: &'p Pool,
        entry: EntryGuard<'p>,
        _: &Arc<Frame>,
        _: &ImageRef,
    ) -> Result<Merged<'p>> {
        Ok(Merged::Into(entry))
    }

    fn on_evict(&self, _: &Pool, _: &mut PageEntry, _: &Frame) {}

    fn on_install(&self, _: PageId) {}

    fn before_free(&self, _: &Pool, _: PageId) -> bool {
        true
    }

    fn on_free(&self, _: &Pool, _: PageId) {}

    fn may_move(&self, _: PageId, _: Epoch) -> bool {
        true
    }

    fn on_move(&self, _: &ImageRef, _: Location) {}

    fn write_for(&self, _: &Pool, _: PageId, _: Epoch) -> Result<Option<Arc<Frame>>> {
        Ok(None)
    }

    fn has(&self, _: PageId, _: Epoch) -> bool {
        false
    }

    fn carry_over(&self, _: &Pool, _: PageId, _: Epoch) {}

    fn step(&self, _: &Pool, _: usize) -> Result<usize> {
        Ok(0)
    }

    fn pages_count(&self) -> usize {
        0
    }

    fn scrub(&self, _: &Pool, _: bool) -> Option<u64> {
        None
    }
}

/// Methods for the layer above.
impl Pool {
    /// The entry of a page under its lock. Creates the entry's part of the table if necessary.
    pub(crate) fn page_entry(&self, pid: PageId) -> EntryGuard<'_> {
        self.table.entry(pid)
    }

    /// The entry of a page under its lock, if its part of the table exists.
    pub(crate) fn known_entry(&self, pid: PageId) -> Option<EntryGuard<'_>> {
        self.table.existing(pid)
    }

    /// The health of the engine.
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The clock of the engine.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The changes of an epoch that has not committed.
    pub(crate) fn changes_of(&self, epoch: Epoch) -> &EpochChanges {
        self.epochs.changes_of(epoch)
    }

    /// The epoch that a checkpoint is writing.
    pub(crate) fn epoch_in_writing(&self) -> Option<Epoch> {
        self.in_writing.writing()
    }

    /// Makes the current checkpoint fail with `error`.
    pub(crate) fn fail_checkpoint(&self, error: crate::base::Error) {
        self.in_writing.fail(error);
    }

    /// Wakes threads that wait to give a page a frame. The caller must not hold the lock of its
    /// entry.
    pub(crate) fn wake_readers(&self, pid: PageId) {
        self.reads.finished(pid);
    }

    /// Removes a page's image from the image cache, so that the next read is from disk.
    pub(crate) fn forget_cached_image(&self, pid: PageId) {
        self.image_cache.forget(pid);
    }
}
