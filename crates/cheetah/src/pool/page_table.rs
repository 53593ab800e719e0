//! From page number to frame and location: a three-level directory that grows without moving.

use super::frame::Frame;
use crate::base::{PageId, TreeId};
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Entries or pointers in each part of the directory.
const FANOUT: usize = 4096;

/// Where a page is in memory.
#[derive(Default, Debug)]
pub(super) enum Residence {
    /// No such page.
    #[default]
    Free,
    /// In memory.
    Frame(Arc<Frame>),
}

/// One page.
#[derive(Default, Debug)]
pub(super) struct PageEntry {
    pub(super) residence: Residence,
    pub(super) tree: TreeId,
}

type Chunk = Box<[Mutex<PageEntry>]>;
type Level<T> = Box<[OnceLock<T>]>;

/// See the module.
#[derive(Debug)]
pub(super) struct PageTable {
    root: Level<Level<Chunk>>,
    bytes: AtomicUsize,
}

impl PageTable {
    pub(super) fn new() -> Self {
        Self { root: empty_level(), bytes: AtomicUsize::new(size_of::<OnceLock<Level<Chunk>>>() * FANOUT) }
    }

    /// The entry of `pid`, locked; its part of the table is created when needed.
    pub(super) fn entry(&self, pid: PageId) -> MutexGuard<'_, PageEntry> {
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
    pub(super) fn existing(&self, pid: PageId) -> Option<MutexGuard<'_, PageEntry>> {
        let (first, second, third) = split(pid);
        Some(self.root.get(first)?.get()?[second].get()?[third].lock())
    }

    /// Memory that the table occupies.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

fn empty_level<T>() -> Level<T> {
    (0..FANOUT).map(|_| OnceLock::new()).collect()
}

/// Indexes into the three levels; the first is out of range for numbers beyond the table's reach.
fn split(pid: PageId) -> (usize, usize, usize) {
    let index = pid.0 as usize;
    (index / FANOUT / FANOUT, index / FANOUT % FANOUT, index % FANOUT)
}
