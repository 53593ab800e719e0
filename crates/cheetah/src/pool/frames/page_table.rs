//! From page number to frame and location: a three-level directory that grows without moving.

use super::frame::Frame;
use crate::base::{PageId, SegmentId, TreeId};
use crate::format::{ImageRef, Location, MapEntry};
use crate::pool::eviction::EvictionTime;
use crate::pool::PageClass;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Entries or pointers in each part of the directory.
const FANOUT: usize = 4096;
const _: () =
    assert!(PageId::MAX.0 as usize == FANOUT * FANOUT * FANOUT - 1, "every page number has its entry");

/// What the page number stands for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::pool) enum Residence {
    /// No page.
    #[default]
    Free,
    /// A page that is only on disk.
    Stored,
    /// A page that some thread is reading now.
    BeingRead,
    /// A page with a frame.
    Resident,
}

/// One page. Kept small: there is one for every page of the database.
#[derive(Debug)]
pub(in crate::pool) struct PageEntry {
    frame: Option<Arc<Frame>>,
    location: Location,
    tree: TreeId,
    pub(in crate::pool) evicted: EvictionTime,
    residence: Residence,
    /// Of the page, when there is an image of it: a guess until the page has been in memory.
    image_class: Option<PageClass>,
}

impl Default for PageEntry {
    fn default() -> Self {
        Self {
            frame: None,
            location: Location { segment: SegmentId(0), offset: 0, stored_bytes: 0, crc: 0 },
            tree: TreeId(0),
            evicted: EvictionTime::default(),
            residence: Residence::Free,
            image_class: None,
        }
    }
}

impl PageEntry {
    pub(in crate::pool) fn residence(&self) -> Residence {
        self.residence
    }

    /// Whether there is such a page.
    pub(in crate::pool) fn is_used(&self) -> bool {
        self.residence != Residence::Free
    }

    pub(in crate::pool) fn tree(&self) -> TreeId {
        self.tree
    }

    pub(in crate::pool) fn frame(&self) -> Option<&Arc<Frame>> {
        self.frame.as_ref()
    }

    /// Where the newest image is, when there is one.
    pub(in crate::pool) fn location(&self) -> Option<Location> {
        self.image_class.map(|_| self.location)
    }

    /// The newest image of page `pid`, whose entry this is, when there is one.
    pub(in crate::pool) fn image(&self, pid: PageId) -> Option<ImageRef> {
        self.location().map(|location| ImageRef { pid, tree: self.tree, location })
    }

    /// The size of the page: a guess until the page has been in memory.
    pub(in crate::pool) fn class(&self) -> PageClass {
        self.frame().map_or(self.image_class.unwrap_or_default(), |frame| frame.class)
    }

    /// Replaces the location; returns the one before.
    pub(in crate::pool) fn set_location(&mut self, location: Location) -> Option<Location> {
        let before = self.location();
        (self.location, self.image_class) = (location, Some(self.class()));
        before
    }

    /// Makes a free entry a page on disk, whose size is guessed.
    pub(in crate::pool) fn open(&mut self, entry: MapEntry, guess: PageClass) {
        self.tree = entry.tree;
        (self.location, self.image_class) = (entry.location, Some(guess));
        self.residence = Residence::Stored;
    }

    /// Makes a free entry a page in memory.
    pub(in crate::pool) fn start(&mut self, frame: Arc<Frame>) {
        self.tree = frame.tree;
        self.publish(frame);
    }

    /// The page is being read.
    pub(in crate::pool) fn start_read(&mut self) {
        self.residence = Residence::BeingRead;
    }

    /// The page has been read.
    pub(in crate::pool) fn publish(&mut self, frame: Arc<Frame>) {
        self.residence = Residence::Resident;
        self.image_class = self.image_class.map(|_| frame.class);
        self.frame = Some(frame);
    }

    /// The page is on disk only (again).
    pub(in crate::pool) fn unload(&mut self) {
        self.residence = Residence::Stored;
        self.frame = None;
    }

    /// The number is free; returns what it stood for.
    pub(in crate::pool) fn clear(&mut self) -> PageEntry {
        std::mem::take(self)
    }
}

type Chunk = Box<[Mutex<PageEntry>]>;
type Level<T> = Box<[OnceLock<T>]>;

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct PageTable {
    root: Level<Level<Chunk>>,
    bytes: AtomicUsize,
}

impl PageTable {
    pub(in crate::pool) fn new() -> Self {
        Self { root: empty_level(), bytes: AtomicUsize::new(size_of::<OnceLock<Level<Chunk>>>() * FANOUT) }
    }

    /// The entry of `pid`, locked; its part of the table is created when needed.
    pub(in crate::pool) fn entry(&self, pid: PageId) -> MutexGuard<'_, PageEntry> {
        let (first, second, third) = split(pid);
        let middle = self.root[first].get_or_init(|| {
            self.bytes.fetch_add(size_of::<OnceLock<Chunk>>() * FANOUT, Relaxed);
            empty_level()
        });
        let chunk = middle[second].get_or_init(|| {
            self.bytes.fetch_add(size_of::<Mutex<PageEntry>>() * FANOUT, Relaxed);
            (0..FANOUT).map(|_| Mutex::default()).collect()
        });
        chunk[third].lock()
    }

    /// The entry of `pid`, locked, if its part of the table exists.
    pub(in crate::pool) fn existing(&self, pid: PageId) -> Option<MutexGuard<'_, PageEntry>> {
        let (first, second, third) = split(pid);
        Some(self.root.get(first)?.get()?[second].get()?[third].lock())
    }

    /// Memory that the table occupies.
    pub(in crate::pool) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

fn empty_level<T>() -> Level<T> {
    (0..FANOUT).map(|_| OnceLock::new()).collect()
}

/// Indexes into the three levels; the first is out of range for numbers above [`PageId::MAX`],
/// which damage can name.
fn split(pid: PageId) -> (usize, usize, usize) {
    let index = pid.0 as usize;
    (index / FANOUT / FANOUT, index / FANOUT % FANOUT, index % FANOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_no_more_than_a_five_hundredth_of_its_page() {
        assert!(size_of::<Mutex<PageEntry>>() <= 40, "{}", size_of::<Mutex<PageEntry>>());
    }
}
