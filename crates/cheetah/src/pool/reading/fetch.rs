//! Fetching pages from memory or disk. Invariants L1 to L3 are at the head of `reading`.

use super::page_read::stored_image;
use crate::base::{page_work, reach, sound, Error, ErrorKind, PageId, Result};
use crate::format::ImageRef;
use crate::pool::beside::Merged;
use crate::pool::frames::EvictionTime;
use crate::pool::frames::{check_nothing_held, EntryGuard, Frame, PageEntry, Residence};
use crate::pool::mtr;
use crate::pool::{PageRef, Pool};
use std::sync::Arc;

/// The outcome of a lookup in the page table.
pub(crate) enum Lookup<'p> {
    Resident(PageRef),
    Freed,
    /// Another thread is reading the page.
    BeingRead,
    /// The page has an image and no frame. Contains its entry.
    Stored(EntryGuard<'p>),
}

/// Whether a fetch predicts future fetches of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Likely,
    Unlikely,
}

/// A page that this thread is reading. Dropping this value, even after a panic, wakes the threads
/// that wait for the page.
struct PageRead<'p> {
    pool: &'p Pool,
    pid: PageId,
    /// Whether the entry has the result of the read.
    is_done: bool,
}

impl Drop for PageRead<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut entry = self.pool.table.entry(self.pid);
            if entry.residence() == Residence::BeingRead {
                entry.unload();
            }
        }
        self.pool.reads.finished(self.pid);
    }
}

impl Pool {
    /// Pins a page. If it is not in memory, reads it, which blocks. Returns `None` if the page was
    /// freed: the caller's reference is outdated, and the caller must start again from the root.
    /// Fails with `Corruption` if the page is damaged.
    pub fn fetch(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.fetch_for(pid, Reuse::Likely)
    }

    /// Pins a page if it is in memory. Never does I/O.
    pub fn fetch_resident(&self, pid: PageId) -> Option<PageRef> {
        self.table.existing(pid)?.frame().cloned().map(PageRef)
    }

    /// Like [`fetch`](Self::fetch), for pages that are not expected to be used again soon, so that
    /// a scan does not evict pages in use.
    pub fn fetch_for_scan(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.fetch_for(pid, Reuse::Unlikely)
    }

    /// Like [`fetch_for_scan`](Self::fetch_for_scan), but reads a page without a frame from disk
    /// even if its image is cached.
    pub fn fetch_to_check(&self, pid: PageId) -> Result<Option<PageRef>> {
        self.image_cache.forget(pid);
        self.fetch_for_scan(pid)
    }

    /// Counts a fetch.
    #[inline]
    pub(crate) fn count_access(&self) {
        self.counters.requests.one_by(page_work::count_access());
    }

    fn fetch_for(&self, pid: PageId, reuse: Reuse) -> Result<Option<PageRef>> {
        self.count_access();
        loop {
            match self.look_up(pid, reuse)? {
                Lookup::Resident(page) => return Ok(Some(page)),
                Lookup::Freed => return Ok(None),
                Lookup::BeingRead => self.reads.wait_while(pid, || is_being_read(&self.table.entry(pid))),
                Lookup::Stored(mut entry) if must_wait_for(&entry) => {
                    entry.set_wanted();
                    drop(entry);
                    reach::mark("reader waited for a reserved leaf");
                    check_nothing_held();
                    self.reads.wait_while(pid, || is_reserved(&self.table.entry(pid)));
                }
                Lookup::Stored(mut entry) => {
                    let image = stored_image(pid, &entry);
                    entry.start_read();
                    drop(entry);
                    let mut reading = PageRead { pool: self, pid, is_done: false };
                    let page = self.read_page(image);
                    reading.is_done = true;
                    return page;
                }
            }
        }
    }

    /// Reads and checks the newest image of a page, even if the page is in memory. Returns `Ok` if
    /// the page has no image yet.
    pub fn check_image(&self, pid: PageId) -> Result<()> {
        loop {
            let Some(image) = self.newest_image(pid) else { return Ok(()) };
            let read = self.read_stored_frame(&image);
            let moved = self.newest_image(pid) != Some(image);
            if !moved {
                return read.map(drop);
            }
        }
    }

    /// Looks a page up in the page table.
    pub(crate) fn look_up(&self, pid: PageId, reuse: Reuse) -> Result<Lookup<'_>> {
        if reuse == Reuse::Likely {
            self.cache_curve.note(pid);
        }
        let Some(entry) = self.table.existing(pid) else { return self.unknown(pid) };
        Ok(match (entry.residence(), entry.frame()) {
            (_, Some(frame)) => {
                if reuse == Reuse::Likely {
                    frame.count_use();
                }
                if frame.take_ahead() {
                    self.read_ahead.used();
                }
                Lookup::Resident(PageRef(frame.clone()))
            }
            (Residence::Stored, _) => Lookup::Stored(entry),
            (Residence::BeingRead, _) => Lookup::BeingRead,
            (Residence::Free | Residence::Resident, _) => {
                drop(entry);
                return self.unknown(pid);
            }
        })
    }

    /// Returns the result for a number without a page. Either the page was freed, or the number was
    /// never used. In the latter case the reference is damaged.
    fn unknown(&self, pid: PageId) -> Result<Lookup<'_>> {
        if pid != PageId::NONE && pid < self.numbers.lock().end() {
            return Ok(Lookup::Freed);
        }
        Err(Error::corrupt(format!("reference to page {pid}"), "no page ever had this number"))
    }

    /// Reads the page, after this thread has marked it as being read. Retries if the image was
    /// moved, because its old segment may be deleted.
    fn read_page(&self, mut image: ImageRef) -> Result<Option<PageRef>> {
        loop {
            let read = self.read_frame(&image);
            let mut entry = self.table.entry(image.pid);
            if let Some(frame) = entry.frame() {
                return Ok(Some(PageRef(frame.clone())));
            }
            if entry.residence() == Residence::Free {
                return Ok(None);
            }
            if entry.location() != Some(image.location) {
                image = stored_image(image.pid, &entry);
                continue;
            }
            match read {
                Ok(frame) => match self.beside.on_read(self, entry, &frame, &image) {
                    Ok(Merged::Into(mut entry)) => {
                        let evicted = entry.evicted;
                        self.publish(&mut entry, &frame, evicted);
                        return Ok(Some(PageRef(frame)));
                    }
                    Ok(Merged::Again(entry)) => match (entry.frame(), entry.image(image.pid)) {
                        (Some(frame), _) => return Ok(Some(PageRef(frame.clone()))),
                        (None, Some(newest)) => image = newest,
                        (None, None) => return Ok(None),
                    },
                    Err(error) => {
                        let mut entry = self.table.entry(image.pid);
                        if entry.residence() == Residence::BeingRead {
                            entry.unload();
                        }
                        return Err(error);
                    }
                },
                Err(error) => {
                    entry.unload();
                    if error.kind() == ErrorKind::Corruption {
                        // No change may become pending for a page that cannot be read.
                        entry.set_room(None);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Publishes the frame of a page that was read.
    pub(in crate::pool) fn publish(&self, entry: &mut PageEntry, frame: &Arc<Frame>, evicted: EvictionTime) {
        let guess = entry.class();
        if guess != frame.class {
            self.trees.get(frame.tree).correct_class(guess, frame.class);
        }
        entry.publish(frame.clone());
        self.queues.add(frame, evicted);
    }
}

fn is_reserved(entry: &PageEntry) -> bool {
    entry.residence() == Residence::Stored && entry.is_reserved()
}

fn is_being_read(entry: &PageEntry) -> bool {
    entry.residence() == Residence::BeingRead
}

/// Returns whether a thread may not give a page a frame yet, because a change of it is about to
/// become pending (B20). Inside a mini-transaction no thread waits: two threads with reservations
/// could wait for each other.
fn must_wait_for(entry: &PageEntry) -> bool {
    sound!(entry.is_reserved() && !mtr::is_inside(), "leaves: give a reserved leaf a frame")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::pool::testing::Database;
    use crate::pool::PageClass;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    #[test]
    fn a_panic_of_the_thread_that_reads_a_page_leaves_the_page_to_others() {
        let db = Database::new(&Config::tiny());
        let pid = db.add(PageClass::Base, 7);
        db.checkpoint().unwrap();
        let disk = db.disk.clone();
        let db = db.crash(disk);
        let pool = &db.pool;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.table.entry(pid).start_read();
            let _reading = PageRead { pool, pid, is_done: false };
            panic!("while the page is read");
        }));
        assert!(panicked.is_err());
        assert_eq!(db.value(pid), Some(7));
    }
}
