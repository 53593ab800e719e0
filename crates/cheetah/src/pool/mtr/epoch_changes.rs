//! The changes of an uncommitted epoch: pages to write, and locations to publish.
//!
//! Invariants E1 to E3 are at the head of `mtr`. Both are changed under the lock of the page's
//! entry. Only `absorb` and `clear` need no such lock: they run when no thread adds to the older
//! epoch. `interleaving_tests.rs` compiles this file again with loom.

use super::sync::{AtomicUsize, Mutex, Ordering::Relaxed};
use crate::base::hash::{FastMap, FastSet};
use crate::base::{sound, PageId};
use crate::format::MapEntry;

/// The number of shards. Many shards keep the tables small, so that each growth leaves only a small
/// hole in the memory of the process.
const SHARDS_COUNT: usize = 256;
/// The estimated memory of an element of the sets, including free slots of their tables.
const ELEMENT_BYTES: usize = 64;
/// The estimated memory of a page in `pending`, and of a new location in the list that a commit
/// makes.
const PENDING_BYTES: usize = 16;
const COMMIT_BYTES: usize = size_of::<(PageId, Option<MapEntry>)>();

#[derive(Default, Debug)]
struct Shard {
    dirty: FastSet<PageId>,
    /// Pages without a frame that have pending changes of the epoch.
    pending: FastSet<PageId>,
    moved: FastMap<PageId, Option<MapEntry>>,
}

/// The changes of one epoch.
#[derive(Debug)]
pub(crate) struct EpochChanges {
    shards: Box<[Mutex<Shard>]>,
    dirty_count: AtomicUsize,
    dirty_bytes: AtomicUsize,
    moved_count: AtomicUsize,
}

impl Default for EpochChanges {
    fn default() -> Self {
        Self::with_shards(SHARDS_COUNT)
    }
}

impl EpochChanges {
    /// Creates an empty set of changes with `count` shards. `count` is at least one.
    pub(in crate::pool) fn with_shards(count: usize) -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(count).collect();
        let zero = || AtomicUsize::new(0);
        Self { shards, dirty_count: zero(), dirty_bytes: zero(), moved_count: zero() }
    }

    /// Notes that a page of `bytes` bytes is dirty.
    pub(crate) fn mark_dirty(&self, pid: PageId, bytes: usize) {
        let was_clean = self.with(pid, |shard| {
            self.dirty_count.fetch_add(1, Relaxed);
            self.dirty_bytes.fetch_add(bytes, Relaxed);
            shard.dirty.insert(pid)
        });
        debug_assert!(was_clean, "E1: page {pid} is marked dirty once");
    }

    /// Reverts [`mark_dirty`](Self::mark_dirty) for a page.
    pub(in crate::pool) fn unmark_dirty(&self, pid: PageId, bytes: usize) {
        let uncount = || {
            self.dirty_count.fetch_sub(1, Relaxed);
            if sound!(true, "pool: keep the bytes of a page that is written") {
                self.dirty_bytes.fetch_sub(bytes, Relaxed);
            }
        };
        let counts_first = sound!(true, "pool: count a page that is dirty no more");
        let was = self.with(pid, |shard| {
            if counts_first {
                uncount();
            }
            shard.dirty.remove(&pid)
        });
        if !counts_first {
            uncount();
        }
        debug_assert!(was, "E1: page {pid} is known to be dirty");
    }

    /// Notes that a page has pending changes of the epoch.
    pub(crate) fn mark_pending(&self, pid: PageId) {
        let is_first = self.with(pid, |shard| shard.pending.insert(pid));
        debug_assert!(is_first, "B5: page {pid} is marked as pending once");
    }

    /// Reverts [`mark_pending`](Self::mark_pending) for a page.
    pub(crate) fn unmark_pending(&self, pid: PageId) {
        let was = self.with(pid, |shard| shard.pending.remove(&pid));
        debug_assert!(was, "B5: page {pid} is known to have something pending");
    }

    /// Pages that have pending changes of the epoch now.
    pub(crate) fn pending_pids(&self) -> Vec<PageId> {
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(&shard.pending));
        pids
    }

    /// Pages that a checkpoint of the epoch has to write: pages with pending changes, and dirty
    /// pages. No page is added to an ended epoch (leaves::B5).
    pub(in crate::pool) fn pids_to_write(&self) -> Vec<PageId> {
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(shard.pending.iter().chain(&shard.dirty)));
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Returns whether a checkpoint of the epoch has to write a page.
    pub(in crate::pool) fn has(&self, pid: PageId) -> bool {
        self.with(pid, |shard| shard.dirty.contains(&pid) || shard.pending.contains(&pid))
    }

    pub(in crate::pool) fn set_moved(&self, pid: PageId, entry: Option<MapEntry>) {
        self.with(pid, |shard| {
            if shard.moved.insert(pid, entry).is_none() {
                self.moved_count.fetch_add(1, Relaxed);
            }
        });
    }

    pub(in crate::pool) fn moved(&self, pid: PageId) -> Option<Option<MapEntry>> {
        self.with(pid, |shard| shard.moved.get(&pid).copied())
    }

    /// Pages that are dirty now.
    pub(in crate::pool) fn dirty_pids(&self) -> Vec<PageId> {
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(&shard.dirty));
        pids
    }

    /// Number of dirty pages.
    pub(in crate::pool) fn dirty_count(&self) -> usize {
        self.dirty_count.load(Relaxed)
    }

    /// Number of pages with a new location.
    pub(in crate::pool) fn moved_count(&self) -> usize {
        self.moved_count.load(Relaxed)
    }

    /// Bytes of the dirty pages in memory.
    pub(in crate::pool) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes.load(Relaxed)
    }

    /// Returns whether there are any changes.
    pub(in crate::pool) fn is_some(&self) -> bool {
        let has_any = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            !shard.moved.is_empty() || !shard.pending.is_empty()
        };
        self.dirty_count() > 0 || self.shards.iter().any(has_any)
    }

    /// Returns all new locations, for the commit. The epoch must not change afterwards.
    pub(in crate::pool) fn all_moved(&self) -> Vec<(PageId, Option<MapEntry>)> {
        let mut moved = Vec::with_capacity(self.each(|shard| shard.moved.len()).iter().sum());
        self.each(|shard| moved.extend(shard.moved.iter().map(|(pid, entry)| (*pid, *entry))));
        moved
    }

    /// Removes the new locations, and keeps most of their memory for the epoch after the next. No
    /// page may be dirty.
    pub(in crate::pool) fn clear(&self) {
        self.each(|shard| {
            let count = shard.moved.len();
            shard.moved.clear();
            self.moved_count.fetch_sub(count, Relaxed);
            shard.moved.shrink_to(2 * count);
            shard.pending.shrink_to(2 * count);
        });
    }

    /// Adds the new locations of an older epoch that will not commit. Locations that this epoch
    /// already has are kept.
    pub(in crate::pool) fn absorb(&self, older: Vec<(PageId, Option<MapEntry>)>) {
        for (pid, entry) in older {
            self.with(pid, |shard| {
                shard.moved.entry(pid).or_insert_with(|| {
                    self.moved_count.fetch_add(1, Relaxed);
                    entry
                });
            });
        }
    }

    /// Estimated memory of the new locations, which a commit frees.
    pub(in crate::pool) fn moved_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().moved.len() * (ELEMENT_BYTES + COMMIT_BYTES)).sum()
    }

    /// Estimated memory in use.
    pub(in crate::pool) fn bytes(&self) -> usize {
        let of = |shard: &mut Shard| {
            shard.dirty.capacity() * ELEMENT_BYTES
                + shard.pending.capacity() * PENDING_BYTES
                + shard.moved.capacity() * (ELEMENT_BYTES + COMMIT_BYTES)
        };
        self.each(of).iter().sum()
    }

    fn with<T>(&self, pid: PageId, f: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = self.shards.get(pid.0 as usize % self.shards.len());
        f(&mut shard.expect("the index is a remainder by their number").lock())
    }

    fn each<T>(&self, mut f: impl FnMut(&mut Shard) -> T) -> Vec<T> {
        self.shards.iter().map(|shard| f(&mut shard.lock())).collect()
    }
}
