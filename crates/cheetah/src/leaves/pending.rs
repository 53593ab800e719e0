//! The pending changes of each page. Invariants B1 and B3 are at the head of `leaves`.

use super::cells::{Cells, Chain};
use crate::base::hash::{map_bytes, shrink_map, FastMap, FastSet};
use crate::base::{sound, Config, Epoch, PageId, Result, TreeId};
use crate::format::page::{buffered_keys, encode_buffered, find_buffered, BufferedChange, RecordCopy};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::{Counter, Shards, TakesMemory};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// The size of a cell, which is enough for one or two changes.
const CELL_BYTES: usize = 256;
const SHARDS_MAX: usize = 64;
const SHARD_BYTES_MIN: usize = 4 << 20;
/// The approximate maximum of a page's pending bytes, because a search for a record reads all of
/// them.
const CHAIN_BYTES_MAX: usize = 16 << 10;
const PLACE_BYTES: usize = 2 * size_of::<Place>();
/// The assumed maximum of logging: while a checkpoint reads one page, at most 1/`LOGGED_PART` of a
/// page is logged. At 10,000 pages per second, this is 40 MB of log per second.
const LOGGED_PART: u32 = 4;
/// The length of the order from which on its invalid elements are removed.
const ORDER_MIN: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct EpochPending {
    epoch: Epoch,
    /// The changes, as `format::page` encodes them.
    chain: Chain,
    chain_bytes: u32,
    /// The maximum number of bytes by which the changes make the page grow.
    growth_bytes: u32,
    /// The length of the first part of the changes, which is in listed change files (V3).
    saved_bytes: u32,
    since: Epoch,
}

impl EpochPending {
    fn none_of(epoch: Epoch) -> Self {
        Self { epoch, chain: Chain::default(), chain_bytes: 0, growth_bytes: 0, saved_bytes: 0, since: epoch }
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Reserved {
    count: u32,
    bytes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unsaved {
    /// Whether these are all pending changes of the page.
    pub(super) begins: bool,
    /// The maximum number of bytes by which all pending changes make the page grow.
    pub(super) growth_bytes: usize,
}

/// An element of the order: a page and the `since` of its older changes, valid while they have it.
type Place = (PageId, Epoch);

/// Whether a record that a search found is certainly in the leaf: then its length there is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// The record is in the leaf.
    Known,
    /// The record was delete-marked without reading the leaf, which may have another record or
    /// none.
    Unknown,
}

/// The pending change of one key of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// No change of the key is pending. The image has the record, if there is one.
    Nothing,
    /// The key has a record, which was copied.
    Record(Size),
    /// The removal of the record is pending.
    Removal,
}

/// The changes of a page belong to one epoch, or to the ended epoch and the current one. Most pages
/// have changes of one epoch only, so the changes of a second epoch are in another map.
#[derive(Debug)]
struct Shard {
    older: FastMap<u64, EpochPending>,
    newer: FastMap<u64, EpochPending>,
    reserved: FastMap<u64, Reserved>,
    cells: Cells<CELL_BYTES>,
    bytes: Vec<u8>,
}

impl TakesMemory for Shard {
    fn memory_bytes(&self) -> usize {
        let places_bytes = self.older.len() * PLACE_BYTES;
        let maps_bytes = map_bytes(&self.older) + map_bytes(&self.newer) + map_bytes(&self.reserved);
        places_bytes + maps_bytes + self.cells.memory_bytes() + self.bytes.capacity()
    }
}

impl Shard {
    fn of_page(&self, pid: PageId) -> impl DoubleEndedIterator<Item = EpochPending> {
        [self.older.get(&pid.0).copied(), self.newer.get(&pid.0).copied()].into_iter().flatten()
    }

    fn growth_bytes(&self, pid: PageId) -> usize {
        self.of_page(pid).map(|entries| entries.growth_bytes as usize).sum()
    }

    fn fits(&self, pid: PageId, bytes: usize, room: usize) -> bool {
        let reserved = match sound!(true, "buffering: ask for the room of each change alone") {
            true => self.reserved.get(&pid.0).map_or(0, |reserved| reserved.bytes as usize),
            false => 0,
        };
        self.growth_bytes(pid) + reserved + bytes <= room && self.chain_bytes(pid) < CHAIN_BYTES_MAX
    }

    fn release(&mut self, pid: PageId, bytes: usize) -> bool {
        let Entry::Occupied(mut place) = self.reserved.entry(pid.0) else { return false };
        let reserved = place.get_mut();
        reserved.count -= 1;
        reserved.bytes -= bytes as u32;
        let is_last = reserved.count == 0;
        if is_last {
            place.remove();
        }
        is_last
    }

    fn chain_bytes(&self, pid: PageId) -> usize {
        self.of_page(pid).map(|entries| entries.chain_bytes as usize).sum()
    }

    fn find(&mut self, pid: PageId, key: &[u8], record: &mut RecordCopy) -> Result<Waiting> {
        for entries in self.of_page(pid).rev() {
            self.bytes.clear();
            self.cells.copy_bytes(entries.chain, &mut self.bytes);
            let found =
                find_buffered(&self.bytes, key).map_err(|defect| defect.in_place("buffered changes"))?;
            let Some(found) = found else { continue };
            let Some(newest) = found.record() else { return Ok(Waiting::Removal) };
            record.take(newest);
            return Ok(Waiting::Record(match found {
                BufferedChange::Mark(_) => Size::Unknown,
                _ => Size::Known,
            }));
        }
        Ok(Waiting::Nothing)
    }
}

#[derive(Debug)]
pub(super) struct Pending {
    is_on: AtomicBool,
    shards: Shards<Shard>,
    pages: AtomicUsize,
    pages_max: usize,
    /// The pages in the order in which their older changes became pending. Some elements are no
    /// longer valid.
    order: Mutex<VecDeque<Place>>,
    /// Trees whose pending changes were dropped as lost.
    given_up: Mutex<Vec<TreeId>>,
    pub(super) puts: Counter,
    pub(super) refused: Counter,
    pub(super) merges: Counter,
}

impl Pending {
    pub(super) fn new(memory: &Arc<MemoryBudget>, config: &Config) -> Self {
        let source = Cells::<CELL_BYTES>::reserve(memory.limit());
        let shard = || Shard {
            older: FastMap::default(),
            newer: FastMap::default(),
            reserved: FastMap::default(),
            cells: Cells::new(source.clone()),
            bytes: Vec::new(),
        };
        // There are few shards if memory is small, because each shard has a block that is not full.
        let shards = (memory.limit() / SHARD_BYTES_MIN).min(SHARDS_MAX);
        Self {
            is_on: AtomicBool::new(config.buffers_changes),
            shards: Shards::new(memory, MemoryUse::Buffered, shards, shard),
            pages: AtomicUsize::new(0),
            pages_max: (config.log_bytes_max / u64::from(config.page_bytes / LOGGED_PART)) as usize,
            order: Mutex::default(),
            given_up: Mutex::default(),
            puts: Counter::default(),
            refused: Counter::default(),
            merges: Counter::default(),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    pub(super) fn set_on(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }

    pub(super) fn pages_count(&self) -> usize {
        self.pages.load(Relaxed)
    }

    /// Returns whether a checkpoint could hardly read more pages before the log is full (B15).
    pub(super) fn pages_are_many(&self) -> bool {
        self.pages_count() >= self.pages_max
    }

    pub(super) fn pages_are_nearly_many(&self) -> bool {
        self.pages_count() >= self.pages_max / 8 * 7
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 4] {
        [
            ("pool_buffered_pages", self.pages_count() as u64),
            ("pool_buffered_entries", self.puts.get()),
            ("pool_buffered_refused", self.refused.get()),
            ("pool_buffered_merges", self.merges.get()),
        ]
    }

    /// Returns whether a change that makes a page grow by `bytes` may become pending: the page has
    /// `room` for all its changes, and the changes stay few enough for a fast search.
    pub(super) fn fits(&self, pid: PageId, bytes: usize, room: usize) -> bool {
        self.shards.lock(pid).fits(pid, bytes, room)
    }

    /// Reserves `bytes` of a page for a change, if it [fits](Self::fits). Must be called under the
    /// lock of the page's entry.
    pub(super) fn reserve(&self, pid: PageId, bytes: usize, room: usize) -> bool {
        self.shards.change(pid, |shard| {
            let fits = shard.fits(pid, bytes, room);
            if fits {
                let reserved = shard.reserved.entry(pid.0).or_default();
                (reserved.count, reserved.bytes) = (reserved.count + 1, reserved.bytes + bytes as u32);
            }
            fits
        })
    }

    /// Releases reserved bytes. Returns whether all reservations of the page have ended. Must be
    /// called under the lock of the page's entry.
    pub(super) fn release(&self, pid: PageId, bytes: usize) -> bool {
        self.shards.change(pid, |shard| shard.release(pid, bytes))
    }

    /// Adds a change to the changes of `epoch`, and ends its reservation. Returns whether the
    /// change is the first of the epoch, and whether it had the last reservation of the page. Must
    /// be called under the lock of the page's entry.
    pub(super) fn put(
        &self,
        pid: PageId,
        epoch: Epoch,
        key: &[u8],
        change: &BufferedChange<'_>,
        bytes: usize,
    ) -> (bool, bool) {
        let (result, is_first_of_page) = self.shards.change(pid, |shard| {
            let is_last_reserved = shard.release(pid, bytes);
            let older = shard.older.get(&pid.0);
            let is_next = older.is_none_or(|older| epoch.0.wrapping_sub(older.epoch.0) <= 1);
            debug_assert!(is_next, "B14: changes wait behind those of the epoch before at most");
            let is_first_of_page = older.is_none();
            let place = match older.is_some_and(|older| older.epoch != epoch) {
                true => shard.newer.entry(pid.0),
                false => shard.older.entry(pid.0),
            };
            let is_first = matches!(place, Entry::Vacant(_));
            let entries = place.or_insert(EpochPending::none_of(epoch));
            debug_assert_eq!(entries.epoch, epoch, "B14: changes are pending of two epochs at most");
            shard.bytes.clear();
            encode_buffered(&mut shard.bytes, key, change);
            shard.cells.append(&mut entries.chain, &shard.bytes);
            entries.chain_bytes += shard.bytes.len() as u32;
            entries.growth_bytes += bytes as u32;
            ((is_first, is_last_reserved), is_first_of_page)
        });
        if is_first_of_page {
            self.pages.fetch_add(1, Relaxed);
            self.order.lock().push_back((pid, epoch));
        }
        result
    }

    /// Finds the pending change of `key`, and copies its record into `record`.
    pub(super) fn find(&self, pid: PageId, key: &[u8], record: &mut RecordCopy) -> Result<Waiting> {
        self.shards.change(pid, |shard| shard.find(pid, key, record))
    }

    /// Returns whether a page has a pending change of a key that begins with `beginning`.
    pub(super) fn has_beginning(&self, pid: PageId, beginning: &[u8]) -> Result<bool> {
        self.shards.change(pid, |shard| {
            shard.bytes.clear();
            for entries in shard.of_page(pid) {
                shard.cells.copy_bytes(entries.chain, &mut shard.bytes);
            }
            for key in buffered_keys(&shard.bytes) {
                if key.map_err(|defect| defect.in_place("buffered changes"))?.starts_with(beginning) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// The length of a page's pending changes. Until the page has a new image or a frame, the
    /// length only grows.
    pub(super) fn bytes_waiting(&self, pid: PageId) -> usize {
        self.shards.lock(pid).chain_bytes(pid)
    }

    /// The older and the newer epoch of the pending changes of a page.
    pub(super) fn epochs(&self, pid: PageId) -> (Option<Epoch>, Option<Epoch>) {
        let shard = self.shards.lock(pid);
        (shard.older.get(&pid.0).map(|of| of.epoch), shard.newer.get(&pid.0).map(|of| of.epoch))
    }

    pub(super) fn has(&self, pid: PageId, epoch: Epoch) -> bool {
        let (older, newer) = self.epochs(pid);
        older == Some(epoch) || newer == Some(epoch)
    }

    pub(super) fn oldest_bytes(&self, pid: PageId) -> Vec<u8> {
        let shard = self.shards.lock(pid);
        let mut bytes = Vec::new();
        let oldest = shard.older.get(&pid.0);
        oldest.iter().for_each(|oldest| shard.cells.copy_bytes(oldest.chain, &mut bytes));
        bytes
    }

    pub(super) fn copy_all(&self, pid: PageId, bytes: &mut Vec<u8>) {
        let shard = self.shards.lock(pid);
        shard.of_page(pid).for_each(|entries| shard.cells.copy_bytes(entries.chain, bytes));
    }

    pub(super) fn oldest_length(&self, pid: PageId) -> usize {
        let shard = self.shards.lock(pid);
        shard.older.get(&pid.0).map_or(0, |oldest| oldest.chain_bytes as usize)
    }

    pub(super) fn take_oldest(&self, pid: PageId) -> Option<Epoch> {
        let (oldest, next_since) = self.shards.change(pid, |shard| {
            let oldest = shard.older.remove(&pid.0)?;
            let next = shard.newer.remove(&pid.0);
            match next {
                Some(next) => drop(shard.older.insert(pid.0, next)),
                None => shrink_map(&mut shard.older),
            }
            shrink_map(&mut shard.newer);
            shard.cells.free(oldest.chain);
            Some((oldest.epoch, next.map(|next| next.since)))
        })?;
        match next_since {
            Some(since) => self.order.lock().push_back((pid, since)),
            None => drop(self.pages.fetch_sub(1, Relaxed)),
        }
        Some(oldest)
    }

    /// Appends to `bytes` the changes of an epoch that are not in listed change files, or all its
    /// changes if `all`, and counts them as saved. Returns `None` if the older changes have another
    /// epoch.
    pub(super) fn save(&self, pid: PageId, epoch: Epoch, all: bool, bytes: &mut Vec<u8>) -> Option<Unsaved> {
        self.shards.change(pid, |shard| {
            let older = shard.older.get_mut(&pid.0).filter(|older| older.epoch == epoch)?;
            let from = if all { 0 } else { older.saved_bytes as usize };
            let at = bytes.len();
            shard.cells.copy_bytes(older.chain, bytes);
            bytes.drain(at..at + from);
            older.saved_bytes = older.chain_bytes;
            let growth_bytes = older.growth_bytes as usize;
            Some(Unsaved { begins: from == 0, growth_bytes })
        })
    }

    /// Notes that change files no longer hold for a page, because its image was replaced or moved.
    pub(super) fn forget_saved(&self, pid: PageId) {
        self.shards.change(pid, |shard| {
            let entries = [shard.older.get_mut(&pid.0), shard.newer.get_mut(&pid.0)];
            entries.into_iter().flatten().for_each(|entries| entries.saved_bytes = 0);
        });
    }

    /// Adds saved changes to those of the current epoch `epoch`, in the order of their files.
    /// Returns whether they are the first changes of the page.
    pub(super) fn restore(&self, pid: PageId, epoch: Epoch, changes: &[u8], growth_bytes: usize) -> bool {
        let is_first = self.shards.change(pid, |shard| {
            let is_first = !shard.older.contains_key(&pid.0);
            let entries = shard.older.entry(pid.0).or_insert(EpochPending::none_of(epoch));
            shard.cells.append(&mut entries.chain, changes);
            entries.chain_bytes += changes.len() as u32;
            entries.saved_bytes = entries.chain_bytes;
            entries.growth_bytes = growth_bytes as u32;
            is_first
        });
        if is_first {
            self.pages.fetch_add(1, Relaxed);
            self.order.lock().push_back((pid, epoch));
        }
        is_first
    }

    /// Moves the changes of an abandoned epoch to the next epoch. Returns whether there were any,
    /// and whether the next epoch already had changes.
    pub(super) fn carry_over(&self, pid: PageId, given_up: Epoch) -> (bool, bool) {
        self.shards.change(pid, |shard| {
            let older = shard.older.get_mut(&pid.0).filter(|older| older.epoch == given_up);
            let Some(older) = older else {
                return (false, false);
            };
            older.epoch = Epoch(given_up.0 + 1);
            let Some(newer) = shard.newer.remove(&pid.0) else { return (true, false) };
            shard.cells.join(&mut older.chain, newer.chain);
            older.growth_bytes += newer.growth_bytes;
            older.chain_bytes += newer.chain_bytes;
            (true, true)
        })
    }

    pub(super) fn note_given_up(&self, tree: TreeId) {
        let mut given_up = self.given_up.lock();
        if !given_up.contains(&tree) {
            given_up.push(tree);
        }
    }

    pub(super) fn take_given_up(&self) -> Vec<TreeId> {
        std::mem::take(&mut *self.given_up.lock())
    }

    pub(super) fn waits_since_before(&self, epoch: Epoch) -> bool {
        let mut order = self.order.lock();
        while let Some(place) = order.front() {
            if self.counts_still(*place) {
                return place.1 < epoch;
            }
            // The invalid element would hide the elements after it.
            order.pop_front();
        }
        false
    }

    fn counts_still(&self, (pid, since): Place) -> bool {
        self.shards.lock(pid).older.get(&pid.0).is_some_and(|older| older.since == since)
    }

    /// Takes the page with the oldest pending changes out of the order.
    pub(super) fn next_in_order(&self) -> Option<PageId> {
        let mut order = self.order.lock();
        while let Some(place) = order.pop_front() {
            if self.counts_still(place) {
                return Some(place.0);
            }
        }
        None
    }

    /// Appends a page to the order if it still has pending changes.
    pub(super) fn put_back(&self, pid: PageId) {
        let mut order = self.order.lock();
        let since = self.shards.lock(pid).older.get(&pid.0).map(|older| older.since);
        order.extend(since.map(|since| (pid, since)));
    }

    pub(super) fn tidy_order(&self) {
        let mut order = self.order.lock();
        if order.len() <= ORDER_MIN.max(4 * self.pages_count()) {
            return;
        }
        // A page may be in the order twice with the same epoch: put back and added again.
        let mut seen = FastSet::default();
        order.retain(|place| self.counts_still(*place) && seen.insert(place.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory for each page with pending changes, without its cells.
    #[test]
    fn what_is_known_of_a_page_with_entries_is_small() {
        assert!(size_of::<EpochPending>() <= 40, "{}", size_of::<EpochPending>());
    }

    #[test]
    fn pages_that_have_no_entries_any_more_hide_none_that_wait_longer() {
        let memory = Arc::new(MemoryBudget::new(1 << 20));
        let buffering = Pending::new(&memory, &Config::tiny());
        for pid in [1, 2, 3] {
            buffering.put(PageId(pid), Epoch(pid), b"key", &BufferedChange::Remove, 0);
        }
        assert!(buffering.waits_since_before(Epoch(2)) && !buffering.waits_since_before(Epoch(1)));
        assert_eq!(buffering.take_oldest(PageId(1)), Some(Epoch(1)));
        assert!(buffering.waits_since_before(Epoch(3)) && !buffering.waits_since_before(Epoch(2)));
    }

    #[test]
    fn a_page_that_entries_wait_for_again_hides_none_that_wait_longer() {
        let memory = Arc::new(MemoryBudget::new(1 << 20));
        let buffering = Pending::new(&memory, &Config::tiny());
        let put = |pid, epoch| {
            buffering.put(PageId(pid), Epoch(epoch), b"key", &BufferedChange::Remove, 0);
        };
        put(1, 1);
        put(2, 2);
        assert_eq!(buffering.take_oldest(PageId(1)), Some(Epoch(1)));
        put(1, 8);
        put(1, 9);
        assert!(buffering.waits_since_before(Epoch(3)) && !buffering.waits_since_before(Epoch(2)));
        assert_eq!(buffering.take_oldest(PageId(2)), Some(Epoch(2)));
        assert_eq!(buffering.take_oldest(PageId(1)), Some(Epoch(8)));
        assert!(buffering.waits_since_before(Epoch(10)) && !buffering.waits_since_before(Epoch(9)));
        assert_eq!(buffering.next_in_order(), Some(PageId(1)));
        assert_eq!(buffering.next_in_order(), None);
        buffering.put_back(PageId(1));
        buffering.put_back(PageId(2));
        assert_eq!(buffering.next_in_order(), Some(PageId(1)));
        assert_eq!(buffering.next_in_order(), None);
    }
}
