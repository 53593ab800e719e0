//! The changes of an epoch that has not committed: pages to be written, and locations to be
//! published.
//!
//! Invariants: E1 to E3 at the head of the room. Both change under the lock of the page's entry,
//! except in `absorb` and `clear`, when nobody adds to the older epoch.
//! `interleaving_tests.rs` compiles this file again over loom.

use super::sync::{AtomicUsize, Mutex, Ordering::Relaxed};
use crate::base::hash::{FastMap, FastSet};
use crate::base::{sound, PageId};
use crate::format::MapEntry;

/// Many, so that the tables are small, and each growth leaves a small hole in the memory of the
/// process.
const SHARDS_COUNT: usize = 256;
/// Estimate of the memory of one element of the sets, with the free slots of their tables; and of a
/// move in the list that a commit makes.
const ELEMENT_BYTES: usize = 64;
/// The same of a page for which something is pending.
const PENDING_BYTES: usize = 16;
const COMMIT_BYTES: usize = size_of::<(PageId, Option<MapEntry>)>();

#[derive(Default, Debug)]
struct Shard {
    dirty: FastSet<PageId>,
    /// Pages without a frame for which something of the epoch is pending.
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
    /// None, in `count` shards, at least one.
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

    /// Reverts a [`mark_dirty`](Self::mark_dirty) of the same page.
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
        debug_assert!(was, "E1: page {pid} was dirty without being known as such");
    }

    /// Notes that something of the epoch is pending for a page.
    pub(crate) fn mark_pending(&self, pid: PageId) {
        let is_first = self.with(pid, |shard| shard.pending.insert(pid));
        debug_assert!(is_first, "B5: page {pid} is marked as pending once");
    }

    /// Reverts a [`mark_pending`](Self::mark_pending).
    pub(crate) fn unmark_pending(&self, pid: PageId) {
        let was = self.with(pid, |shard| shard.pending.remove(&pid));
        debug_assert!(was, "B5: page {pid} was pending without being known as such");
    }

    /// Pages for which something of the epoch is pending now.
    pub(crate) fn pending_pids(&self) -> Vec<PageId> {
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(&shard.pending));
        pids
    }

    /// Pages that a checkpoint of the epoch has to write: those for which something
    /// is pending, and those that are dirty. An epoch that has ended gets no others (B5).
    pub(in crate::pool) fn pids_to_write(&self) -> Vec<PageId> {
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(shard.pending.iter().chain(&shard.dirty)));
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Whether a checkpoint of the epoch has to write a page.
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

    /// Up to about `limit` pages that are dirty now.
    pub(in crate::pool) fn some_dirty_pids(&self, limit: usize) -> Vec<PageId> {
        let share = limit.div_ceil(self.shards.len());
        let mut pids = Vec::new();
        self.each(|shard| pids.extend(shard.dirty.iter().take(share)));
        pids
    }

    /// Number of dirty pages.
    pub(in crate::pool) fn dirty_count(&self) -> usize {
        self.dirty_count.load(Relaxed)
    }

    /// Number of pages that have moved.
    pub(in crate::pool) fn moved_count(&self) -> usize {
        self.moved_count.load(Relaxed)
    }

    /// Bytes of the dirty pages in memory.
    pub(in crate::pool) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes.load(Relaxed)
    }

    /// Whether there are any changes.
    pub(in crate::pool) fn is_some(&self) -> bool {
        let has_any = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            !shard.moved.is_empty() || !shard.pending.is_empty()
        };
        self.dirty_count() > 0 || self.shards.iter().any(has_any)
    }

    /// All moves, for the commit. The epoch must not change any more.
    pub(in crate::pool) fn all_moved(&self) -> Vec<(PageId, Option<MapEntry>)> {
        let mut moved = Vec::with_capacity(self.each(|shard| shard.moved.len()).iter().sum());
        self.each(|shard| moved.extend(shard.moved.iter().map(|(pid, entry)| (*pid, *entry))));
        moved
    }

    /// Forgets the moves, and keeps most of their memory for the epoch after the next. No page must
    /// be dirty.
    pub(in crate::pool) fn clear(&self) {
        self.each(|shard| {
            let count = shard.moved.len();
            shard.moved.clear();
            self.moved_count.fetch_sub(count, Relaxed);
            shard.moved.shrink_to(2 * count);
            shard.pending.shrink_to(2 * count);
        });
    }

    /// Adds the moves of an older epoch that will not commit; newer ones of this epoch win.
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

    /// Estimate of the memory that the moves take, which a commit sets free.
    pub(in crate::pool) fn moved_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().moved.len() * (ELEMENT_BYTES + COMMIT_BYTES)).sum()
    }

    /// Estimate of the memory in use.
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
