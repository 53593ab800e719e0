//! Evicts frames to free memory. Invariant R1 is at the head of `eviction`.

use super::s3_fifo::Candidate;
use crate::base::stages::Stage;
use crate::base::stalls::Stall;
use crate::base::{sound, Error, Result};
use crate::durable::space::{Reserve, Space};
use crate::pool::mtr;
use crate::pool::{PageClass, Pool};
use std::sync::Arc;

/// The number of references to an unused frame: the page table's and the candidate's.
const OWN_REFERENCES: usize = 2;
/// The number of candidates that a thread checks before it exceeds the limit to read a page.
const LOOKS_FOR_READ: usize = 16;

/// The bytes that a checkpoint writes in addition to pages: the ends of segments, and blocks of the
/// map in two files, rounded up to blocks of the file system.
const CHECKPOINT_BYTES: u64 = 32 << 10;

/// Why a thread makes room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) enum Purpose {
    /// The caller needs memory. A write counts as a stall.
    Needed,
    /// The cleaner makes room in advance.
    Cleaning,
}

/// The fate of a candidate.
enum Fate {
    Evicted,
    InUse,
    Dirty,
}

impl Pool {
    /// Fails with `DiskFull` unless all changes in memory fit on the disk and `reserve` stays free
    /// (H3). Users may change more data only if this succeeds.
    pub fn check_space(&self, reserve: Reserve) -> Result<()> {
        self.health.check()?;
        self.check_space_beside(0, reserve)
    }

    /// Like [`check_space`](Self::check_space) with `bytes` more bytes, but does not check the
    /// health.
    pub fn check_space_for(&self, bytes: u64, reserve: Reserve) -> Result<()> {
        self.segments.check_space(self.promised_bytes(), bytes, reserve)
    }

    /// Like [`check_space`](Self::check_space) with `bytes` more bytes, but does not check the
    /// health.
    fn check_space_beside(&self, bytes: usize, reserve: Reserve) -> Result<()> {
        self.segments.check_space(self.promised_bytes(), bytes as u64, reserve)
    }

    /// The free space of the disk.
    pub fn space(&self) -> &Space {
        self.segments.durable().space()
    }

    /// The approximate bytes that a checkpoint would write now: the changed pages with the average
    /// length of images, and the entries of the map. The other parts of a checkpoint do not count,
    /// because an unsuccessful checkpoint is better than none.
    pub fn checkpoint_bytes(&self) -> u64 {
        let pages = self.numbers.lock().used_count().max(1);
        let live_bytes = self.segments.totals().live_bytes;
        let image_bytes = match live_bytes {
            0 => u64::from(self.page_bytes),
            live_bytes => (live_bytes / pages).clamp(1, self.page_bytes.into()),
        };
        let changed = (self.dirty_bytes() + self.pending_page_bytes()) as u64 / u64::from(self.page_bytes);
        changed.saturating_mul(image_bytes).saturating_add(self.map_bytes() as u64)
    }

    /// The bytes in memory of the pages with pending changes. Apart from a header, the images of
    /// these pages are not longer.
    fn pending_page_bytes(&self) -> usize {
        self.beside.pages_count() * self.page_bytes as usize
    }

    /// The maximum bytes to be written for all changes in memory, and for the map.
    pub fn promised_bytes(&self) -> u64 {
        if !sound!(true, "space: promise changed pages nothing") {
            return 0;
        }
        (self.dirty_bytes() + self.pending_page_bytes() + self.map_bytes()) as u64 + CHECKPOINT_BYTES
    }

    /// Returns whether the disk has room for `bytes` bytes in addition to all changed pages in
    /// memory and the reserve. Returns `false` if the free space cannot be determined.
    pub fn has_space(&self, bytes: usize) -> bool {
        self.check_space_beside(bytes, Reserve::Whole).is_ok()
    }

    /// Returns whether any frame was evicted since startup.
    pub fn has_evicted(&self) -> bool {
        self.counters.evictions.get() > 0
    }

    /// Checks, like [`check_space`](Self::check_space) for the whole reserve, that `bytes` may be
    /// written to another file of this disk, and counts them.
    pub fn take_space(&self, bytes: usize) -> Result<()> {
        self.health.check()?;
        self.check_space_beside(bytes, Reserve::Whole)?;
        self.note_space_taken(bytes);
        Ok(())
    }

    /// Counts `bytes` that are written to another file of this disk, without a check.
    pub fn note_space_taken(&self, bytes: usize) {
        self.segments.wrote_beside(bytes as u64);
    }

    /// Evicts pages, after writing dirty ones, until about `pages` more base pages fit into memory.
    /// Blocks for I/O, so the caller must be outside of mini-transactions and hold no latches.
    /// Returns `DiskFull` if the disk has no room for the changes that are already in memory.
    pub fn make_room(&self, pages: usize) -> Result<()> {
        self.check_space(Reserve::Whole)?;
        self.make_room_from_reserve(pages)
    }

    /// Like [`make_room`](Self::make_room), for work that must succeed on a full disk: rolling back
    /// and freeing (H3). It may use the reserve. `DiskFull` means that the reserve is used up, too.
    pub fn make_room_from_reserve(&self, pages: usize) -> Result<()> {
        debug_assert!(!mtr::is_inside(), "C7: no page is written inside a mini-transaction to make room");
        let class = PageClass::Base;
        let bytes = pages * class.bytes(self.page_bytes);
        if self.buffers.has_room(class, bytes) {
            return Ok(());
        }
        self.evict_until_fits(class, bytes, 2 * self.queues.frames_count(), Purpose::Needed)
    }

    /// Makes room for a page that will be read. Stops after a few candidates, because exceeding the
    /// limit slightly is better than delaying the read.
    pub(in crate::pool) fn make_room_for_read(&self, class: PageClass) -> Result<()> {
        let bytes = class.bytes(self.page_bytes);
        if self.buffers.has_room(class, bytes) {
            return Ok(());
        }
        let result = self.evict_until_fits(class, bytes, LOOKS_FOR_READ, Purpose::Needed);
        if !self.buffers.has_room(class, bytes) {
            self.counters.overshoots.one();
        }
        if self.buffers.excess() > self.memory.frames_limit() / 8 {
            return result;
        }
        Ok(())
    }

    /// Evicts candidates until `bytes` more bytes of a class fit, or `looks` candidates were
    /// checked.
    pub(in crate::pool) fn evict_until_fits(
        &self,
        class: PageClass,
        bytes: usize,
        looks: usize,
        purpose: Purpose,
    ) -> Result<()> {
        let mut stall = None;
        // After a write that failed for lack of space, no other page is written.
        let mut full = Ok(());
        for _ in 0..looks {
            if self.buffers.has_room(class, bytes) {
                return Ok(());
            }
            let Some(candidate) = self.queues.candidate() else { continue };
            let from = candidate.frame.class;
            match self.evict(candidate, purpose, full.is_ok(), &mut stall) {
                // A later candidate may be clean.
                Err(error @ Error::DiskFull(_)) => full = Err(error),
                evicted => evicted?,
            }
            if from != class {
                self.buffers.drop_free(from, bytes);
            }
        }
        full
    }

    /// Evicts a candidate. Writes a dirty candidate first, if this thread may write. A stall begins
    /// with the first page that is written.
    fn evict<'p>(
        &'p self,
        candidate: Candidate,
        purpose: Purpose,
        may_write: bool,
        stall: &mut Option<Stall<'p>>,
    ) -> Result<()> {
        let mut fate = self.evict_clean(&candidate);
        let mut written = Ok(true);
        if matches!(fate, Fate::Dirty) && purpose == Purpose::Needed {
            self.cleaner.call();
        }
        if matches!(fate, Fate::Dirty) && may_write && !mtr::is_inside() {
            self.counters.foreground_writes.one();
            if purpose == Purpose::Needed {
                stall.get_or_insert_with(|| self.health.stalls().begin(Stage::Memory, &*self.clock));
            }
            written = self.check_space_to_clean(purpose).and_then(|()| self.try_write_out(&candidate.frame));
            if matches!(written, Ok(true)) {
                fate = self.evict_clean(&candidate);
            }
        }
        if !matches!(fate, Fate::Evicted) {
            self.queues.put_back(candidate);
        }
        written.map(drop)
    }

    /// The cleaner leaves the last part of the reserve to the checkpoint.
    pub(in crate::pool) fn check_space_to_clean(&self, purpose: Purpose) -> Result<()> {
        match purpose {
            Purpose::Needed => Ok(()),
            Purpose::Cleaning => self.space().check_to_write(self.page_bytes.into(), Reserve::Last),
        }
    }

    fn evict_clean(&self, candidate: &Candidate) -> Fate {
        let frame = &candidate.frame;
        if frame.is_detached() {
            return Fate::Evicted;
        }
        let mut entry = self.table.entry(frame.pid);
        if frame.is_detached() {
            return Fate::Evicted;
        }
        // The thread that has reserved the page is about to change it.
        if Arc::strong_count(frame) > OWN_REFERENCES || entry.is_reserved() {
            return Fate::InUse;
        }
        if frame.dirty().is_some() {
            return Fate::Dirty;
        }
        if !sound!(true, "pool: wait for a latch under the lock of an entry") {
            drop(frame.latch_to_write_out());
        }
        self.beside.on_evict(self, &mut entry, frame);
        entry.unload();
        if frame.take_ahead() {
            self.read_ahead.wasted();
        }
        entry.evicted = self.queues.evicted(candidate);
        self.counters.evictions.one();
        Fate::Evicted
    }
}
