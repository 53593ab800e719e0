//! The pool's door for the layer above that knows, and changes, leaves without a frame.
//!
//! That layer ([`leaves`](crate::leaves)) implements [`BesideFrames`]: the pool tells it when a
//! page gets a frame, loses it, moves or is freed, and asks it to write what it has pending. In the
//! other direction the pool lends the locks of page table entries and the steps from image to frame
//! and back. The pool itself knows no keys.
//!
//! Invariants
//!   I1  The pool calls with the lock of the page's entry where a call takes an entry or says so,
//!       and otherwise without any lock or latch but those of its caller.
//!   I2  An implementation waits for no latch under the lock of an entry (F6), and takes no lock
//!       of an entry in a call that is made under one.

use super::frames::{EntryGuard, Frame, PageEntry};
use super::mtr::EpochChanges;
use crate::base::{Epoch, Health, PageId, Result};
use crate::format::{ImageRef, Location};
use crate::pool::Pool;
use cheetah_io::Clock;
use std::sync::Arc;

/// The result of [`BesideFrames::on_read`].
pub enum Merged<'p> {
    /// The frame has everything that was pending, and may be published.
    Into(EntryGuard<'p>),
    /// The page has changed meanwhile: look it up again.
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

/// State that a layer above keeps of pages beside their frames. See the module for the locks.
pub trait BesideFrames: Send + Sync + std::fmt::Debug {
    /// `frame` was read from `image`, the newest of its page, and nobody else has seen it. Puts
    /// into it what is pending. May let go of the entry meanwhile, and write an image.
    fn on_read<'p>(
        &self,
        pool: &'p Pool,
        entry: EntryGuard<'p>,
        frame: &Arc<Frame>,
        image: &ImageRef,
    ) -> Result<Merged<'p>>;

    /// A page loses its clean frame.
    fn on_evict(&self, pool: &Pool, entry: &mut PageEntry, frame: &Frame);

    /// A page for which something is pending got another image. Under the lock of its entry.
    fn on_install(&self, pid: PageId);

    /// A page is about to be freed: an epoch that is being written gets what is pending of it. May
    /// do I/O. `false` when the page has a frame now.
    fn before_free(&self, pool: &Pool, pid: PageId) -> bool;

    /// A page for which something is pending is freed. Under the lock of its entry.
    fn on_free(&self, pool: &Pool, pid: PageId);

    /// Whether the image of a page for which something is pending may move in `epoch`. Under the
    /// lock of its entry.
    fn may_move(&self, pid: PageId, epoch: Epoch) -> bool;

    /// `image` was copied, and the copy at `to` is the image of the page now. Under the lock of its
    /// entry.
    fn on_move(&self, image: &ImageRef, to: Location);

    /// Writes what is pending of a page for `epoch`, or gives the page a frame that has it.
    /// `None` when there is no such frame. Does I/O.
    fn write_for(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<Option<Arc<Frame>>>;

    /// Whether something of `epoch` is pending for a page. Under the lock of its entry.
    fn has(&self, pid: PageId, epoch: Epoch) -> bool;

    /// Pending changes of an epoch that is given up belong to the next one. Under the lock of the
    /// page's entry.
    fn carry_over(&self, pool: &Pool, pid: PageId, given_up: Epoch);

    /// A step of the cleaner: gives memory back, and writes at most `pages_max` pages. How many.
    /// Does I/O.
    fn step(&self, pool: &Pool, pages_max: usize) -> Result<usize>;

    /// Pages for which something is pending: a checkpoint may have to write as many.
    fn pages_count(&self) -> usize;

    /// Reads the next block of the files beside the images, to find damage: from the first one if
    /// `restart`. Bytes that were read; `None` at the end. Does I/O.
    fn scrub(&self, pool: &Pool, restart: bool) -> Option<u64>;
}

/// Nothing beside the frames: for a pool by itself.
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

/// For the layer above.
impl Pool {
    /// The entry of a page under its lock; its part of the table is created when needed.
    pub(crate) fn page_entry(&self, pid: PageId) -> EntryGuard<'_> {
        self.table.entry(pid)
    }

    /// The entry of a page under its lock, if the table has a place for it.
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

    /// The checkpoint that is being written cannot succeed any more.
    pub(crate) fn fail_checkpoint(&self, error: crate::base::Error) {
        self.in_writing.fail(error);
    }

    /// Wakes threads that wait to give a page a frame. Without the lock of its entry.
    pub(crate) fn wake_readers(&self, pid: PageId) {
        self.reads.finished(pid);
    }

    /// Forgets an image that is kept in memory: the next read is from disk.
    pub(crate) fn forget_cached_image(&self, pid: PageId) {
        self.image_cache.forget(pid);
    }
}
