//! Which entries wait for which page. Invariants: B1 and B3 at the head of the room.

use super::cells::{Cells, Chain};
use crate::base::hash::{hash_number, shard_index, FastMap, FastSet};
use crate::base::{Epoch, PageId};
use crate::format::page::{cell_bytes, encode_buffered, RecordRef};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::statistics::Counter;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

const SHARDS_MAX: usize = 64;
const SHARD_BYTES_MIN: usize = 1 << 20;
/// What the map and the order take for each page, about.
const PAGE_BYTES: usize = 96;
/// From so many places on, those of pages that have no entries any more are taken out.
const ORDER_MIN: usize = 1024;

/// The entries of a page that are of one epoch.
#[derive(Clone, Copy, Debug)]
struct EpochEntries {
    epoch: Epoch,
    /// Their bytes, as `format::page` encodes them.
    chain: Chain,
    /// What they take in a page at most: as if no key had a prefix in common with it.
    cells_bytes: u32,
}

/// The entries of a page: of one epoch, or of the ended one and of the current one.
#[derive(Clone, Copy, Default, Debug)]
struct PageEntries {
    older: Option<EpochEntries>,
    newer: Option<EpochEntries>,
}

impl PageEntries {
    fn all(&self) -> impl Iterator<Item = &EpochEntries> {
        self.older.iter().chain(&self.newer)
    }

    fn cells_bytes(&self) -> usize {
        self.all().map(|entries| entries.cells_bytes as usize).sum()
    }
}

#[derive(Debug)]
struct Shard {
    pages: FastMap<u64, PageEntries>,
    cells: Cells,
    /// For a record that is being encoded.
    record: Vec<u8>,
}

impl Shard {
    fn memory_bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES + self.cells.memory_bytes()
    }
}

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Buffering {
    is_on: AtomicBool,
    shards: Vec<Mutex<Shard>>,
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
        let source = Cells::reserve(memory.limit());
        let shard =
            || Shard { pages: FastMap::default(), cells: Cells::new(source.clone()), record: Vec::new() };
        // Few where memory is small: each has a block that is not full.
        let shards = (memory.limit() / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        Self {
            is_on: AtomicBool::new(is_on),
            shards: (0..shards).map(|_| Mutex::new(shard())).collect(),
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
        let used = shard.pages.get(&pid.0).map_or(0, PageEntries::cells_bytes);
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
        let bytes = cell_bytes(key.len(), record);
        let (result, is_first_of_page) = self.change(pid, |shard| {
            let mut page = shard.pages.get(&pid.0).copied().unwrap_or_default();
            if page.cells_bytes() + bytes > room {
                return ((false, false), false);
            }
            let is_first_of_page = page.older.is_none();
            let place = match &mut page {
                PageEntries { older: older @ None, .. } => older,
                PageEntries { older, newer: None } if older.is_some_and(|older| older.epoch == epoch) => {
                    older
                }
                PageEntries { newer, .. } => newer,
            };
            let is_first = place.is_none();
            let new = EpochEntries { epoch, chain: Chain::default(), cells_bytes: 0 };
            let entries = place.get_or_insert(new);
            debug_assert_eq!(entries.epoch, epoch, "entries wait of two epochs at most");
            shard.record.clear();
            encode_buffered(&mut shard.record, key, record);
            shard.cells.append(&mut entries.chain, &shard.record);
            entries.cells_bytes += bytes as u32;
            shard.pages.insert(pid.0, page);
            ((true, is_first), is_first_of_page)
        });
        if is_first_of_page {
            self.pages.fetch_add(1, Relaxed);
            self.order.lock().push_back(pid);
        }
        result
    }

    /// The epochs of which a page has entries: the older one, and the newer one.
    pub(super) fn epochs(&self, pid: PageId) -> (Option<Epoch>, Option<Epoch>) {
        let shard = self.shard(pid).lock();
        let page = shard.pages.get(&pid.0).copied().unwrap_or_default();
        (page.older.map(|entries| entries.epoch), page.newer.map(|entries| entries.epoch))
    }

    /// Whether a page has entries of `epoch`.
    pub(in crate::pool) fn has(&self, pid: PageId, epoch: Epoch) -> bool {
        let (older, newer) = self.epochs(pid);
        older == Some(epoch) || newer == Some(epoch)
    }

    /// The entries of the older epoch, encoded; none if there are none.
    pub(super) fn oldest_bytes(&self, pid: PageId) -> Vec<u8> {
        let shard = self.shard(pid).lock();
        let oldest = shard.pages.get(&pid.0).and_then(|page| page.older);
        oldest.map_or(Vec::new(), |oldest| shard.cells.bytes(oldest.chain))
    }

    /// Takes out the entries of the older epoch, and says which it is.
    pub(super) fn take_oldest(&self, pid: PageId) -> Option<Epoch> {
        let (oldest, is_last) = self.change(pid, |shard| {
            let page = shard.pages.get_mut(&pid.0)?;
            let oldest = page.older.take()?;
            page.older = page.newer.take();
            let is_last = page.older.is_none();
            if is_last {
                shard.pages.remove(&pid.0);
            }
            shard.cells.free(oldest.chain);
            Some((oldest.epoch, is_last))
        })?;
        if is_last {
            self.pages.fetch_sub(1, Relaxed);
        }
        Some(oldest)
    }

    /// The entries of an epoch that is given up belong to the next one. Whether there were any, and
    /// whether there are others of the next one.
    pub(super) fn carry_over(&self, pid: PageId, given_up: Epoch) -> (bool, bool) {
        self.change(pid, |shard| {
            let Some(page) = shard.pages.get_mut(&pid.0) else { return (false, false) };
            let Some(older) = page.older.as_mut().filter(|older| older.epoch == given_up) else {
                return (false, false);
            };
            older.epoch = Epoch(given_up.0 + 1);
            let Some(newer) = page.newer.take() else { return (true, false) };
            shard.cells.join(&mut older.chain, newer.chain);
            older.cells_bytes += newer.cells_bytes;
            (true, true)
        })
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
            .filter(|pid| self.shard(*pid).lock().pages.contains_key(&pid.0) && seen.insert(*pid))
            .collect::<VecDeque<_>>();
        kept.make_contiguous().reverse();
        *order = kept;
    }

    fn shard(&self, pid: PageId) -> &Mutex<Shard> {
        let shard = self.shards.get(shard_index(hash_number(pid.0), self.shards.len()));
        shard.expect("the index is a remainder by their number")
    }

    /// Changes the shard of a page, and counts the memory that it has then.
    fn change<R>(&self, pid: PageId, change: impl FnOnce(&mut Shard) -> R) -> R {
        let mut shard = self.shard(pid).lock();
        let before = shard.memory_bytes();
        let result = change(&mut shard);
        let after = shard.memory_bytes();
        self.memory.add(MemoryUse::Buffered, after.saturating_sub(before));
        self.memory.subtract(MemoryUse::Buffered, before.saturating_sub(after));
        result
    }
}
