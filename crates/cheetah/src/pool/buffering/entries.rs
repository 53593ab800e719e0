//! Which entries wait for which page. Invariants: B1 and B3 at the head of the room.

use crate::base::hash::{hash_number, shard_index, FastMap, FastSet};
use crate::base::{Epoch, PageId};
use crate::format::page::{cell_bytes, BufferedRecords, RecordRef};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::statistics::Counter;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

const SHARDS: usize = 64;
/// What the map and the order take for each page, about.
const PAGE_BYTES: usize = 96;
/// From so many places on, those of pages that have no entries any more are taken out.
const ORDER_MIN: usize = 1024;

/// The entries of a page that are of one epoch.
#[derive(Debug)]
pub(super) struct EpochEntries {
    pub(super) epoch: Epoch,
    pub(super) records: BufferedRecords,
}

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Buffering {
    is_on: AtomicBool,
    /// Entries of each page: of one epoch, or of the ended one and then of the current one.
    shards: Vec<Mutex<FastMap<u64, Vec<EpochEntries>>>>,
    pages: AtomicUsize,
    /// Pages in the order in which they got their first entry; some have none any more.
    order: Mutex<VecDeque<PageId>>,
    memory: Arc<MemoryBudget>,
    pub(super) puts: Counter,
    pub(super) refused: Counter,
    pub(super) merges: Counter,
}

impl Buffering {
    pub(in crate::pool) fn new(memory: &Arc<MemoryBudget>, is_on: bool) -> Self {
        Self {
            is_on: AtomicBool::new(is_on),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            pages: AtomicUsize::new(0),
            order: Mutex::default(),
            memory: Arc::clone(memory),
            puts: Counter::default(),
            refused: Counter::default(),
            merges: Counter::default(),
        }
    }

    /// Whether entries that come may wait.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    pub(in crate::pool) fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }

    /// Pages with entries.
    pub(in crate::pool) fn pages_count(&self) -> usize {
        self.pages.load(Relaxed)
    }

    /// What is to be told about it.
    pub(in crate::pool) fn counts(&self) -> [(&'static str, u64); 4] {
        [
            ("pool_buffered_pages", self.pages_count() as u64),
            ("pool_buffered_entries", self.puts.get()),
            ("pool_buffered_refused", self.refused.get()),
            ("pool_buffered_merges", self.merges.get()),
        ]
    }

    /// Whether the entries of a page leave `room` for `bytes` more.
    pub(super) fn fits(&self, pid: PageId, bytes: usize, room: usize) -> bool {
        let shard = self.shard(pid).lock();
        let used = shard.get(&pid.0).map_or(0, |entries| cells_bytes(entries));
        used + bytes <= room
    }

    /// Adds a record to those of `epoch`, if there is room. Whether it was added, and whether it is
    /// the first of that epoch.
    pub(super) fn put(
        &self,
        pid: PageId,
        epoch: Epoch,
        key: &[u8],
        record: &RecordRef<'_>,
        room: usize,
    ) -> (bool, bool) {
        let mut shard = self.shard(pid).lock();
        let is_first_of_page = !shard.contains_key(&pid.0);
        let entries = shard.entry(pid.0).or_default();
        if cells_bytes(entries) + cell_bytes(key.len(), record) > room {
            if is_first_of_page {
                shard.remove(&pid.0);
            }
            return (false, false);
        }
        let is_first = entries.last().is_none_or(|last| last.epoch != epoch);
        if is_first {
            debug_assert!(entries.len() < 2, "entries wait of two epochs at most");
            entries.push(EpochEntries { epoch, records: BufferedRecords::default() });
        }
        let newest = entries.last_mut().expect("entries of this epoch are there now");
        let before = newest.records.memory_bytes();
        newest.records.push(key, record);
        let grown = newest.records.memory_bytes() - before;
        drop(shard);
        self.memory.add(MemoryUse::Buffered, grown);
        if is_first_of_page {
            self.memory.add(MemoryUse::Buffered, PAGE_BYTES);
            self.pages.fetch_add(1, Relaxed);
            self.order.lock().push_back(pid);
        }
        (true, is_first)
    }

    /// The epochs of which a page has entries, oldest first.
    pub(super) fn epochs(&self, pid: PageId) -> Vec<Epoch> {
        self.with(pid, |entries| entries.iter().map(|entries| entries.epoch).collect())
    }

    /// Whether a page has entries of `epoch`.
    pub(in crate::pool) fn has(&self, pid: PageId, epoch: Epoch) -> bool {
        self.with(pid, |entries| entries.iter().any(|entries| entries.epoch == epoch))
    }

    /// Runs `f` on the entries of a page, oldest first.
    pub(super) fn with<R>(&self, pid: PageId, f: impl FnOnce(&[EpochEntries]) -> R) -> R {
        f(self.shard(pid).lock().get(&pid.0).map_or(&[], Vec::as_slice))
    }

    /// Takes out the entries of the oldest epoch.
    pub(super) fn take_oldest(&self, pid: PageId) -> Option<EpochEntries> {
        let mut shard = self.shard(pid).lock();
        let entries = shard.get_mut(&pid.0)?;
        let oldest = (!entries.is_empty()).then(|| entries.remove(0))?;
        let mut bytes = oldest.records.memory_bytes();
        if entries.is_empty() {
            shard.remove(&pid.0);
            self.pages.fetch_sub(1, Relaxed);
            bytes += PAGE_BYTES;
        }
        self.memory.subtract(MemoryUse::Buffered, bytes);
        Some(oldest)
    }

    /// The entries of an epoch that is given up belong to the next one. Whether there were any, and
    /// whether there are others of the next one.
    pub(super) fn carry_over(&self, pid: PageId, given_up: Epoch) -> (bool, bool) {
        let mut shard = self.shard(pid).lock();
        let Some(entries) = shard.get_mut(&pid.0) else { return (false, false) };
        let Some(oldest) = entries.first_mut().filter(|oldest| oldest.epoch == given_up) else {
            return (false, false);
        };
        oldest.epoch = Epoch(given_up.0 + 1);
        if entries.len() < 2 {
            return (true, false);
        }
        let newer = entries.remove(1);
        let Some(oldest) = entries.first_mut() else { return (true, true) };
        let before = oldest.records.memory_bytes() + newer.records.memory_bytes();
        oldest.records.append(&newer.records);
        let after = oldest.records.memory_bytes();
        self.memory.add(MemoryUse::Buffered, after);
        self.memory.subtract(MemoryUse::Buffered, before);
        (true, true)
    }

    /// The page whose entries have waited longest, or one that has none any more; it is out of the
    /// order then.
    pub(super) fn next_in_order(&self) -> Option<PageId> {
        self.order.lock().pop_front()
    }

    /// Puts a page back to the end of the order.
    pub(super) fn put_back(&self, pid: PageId) {
        self.order.lock().push_back(pid);
    }

    /// Takes places that count no more out of the order when there are many.
    pub(super) fn tidy_order(&self) {
        let mut order = self.order.lock();
        if order.len() <= ORDER_MIN.max(4 * self.pages_count()) {
            return;
        }
        // Of several places of a page, the last is that of the entries that it has now.
        let mut seen = FastSet::default();
        let newest_first = order.iter().rev().copied();
        let mut kept = newest_first
            .filter(|pid| self.shard(*pid).lock().contains_key(&pid.0) && seen.insert(*pid))
            .collect::<VecDeque<_>>();
        kept.make_contiguous().reverse();
        *order = kept;
    }

    fn shard(&self, pid: PageId) -> &Mutex<FastMap<u64, Vec<EpochEntries>>> {
        let shard = self.shards.get(shard_index(hash_number(pid.0), SHARDS));
        shard.expect("the index is a remainder by their number")
    }
}

fn cells_bytes(entries: &[EpochEntries]) -> usize {
    entries.iter().map(|entries| entries.records.cells_bytes()).sum()
}
