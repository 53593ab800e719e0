//! The filters of all leaves with a filter. When memory is full, the oldest filters are dropped.

use super::KeyPart;
use crate::base::bloom;
use crate::base::hash::{map_bytes, shrink_map, FastMap};
use crate::base::{sound, PageId};
use crate::format::Location;
use crate::leaves::cells::{Cells, Chain};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::{Counter, Shards, TakesMemory};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Most leaves with rows have about a hundred keys, and a filter has a byte for each.
const CELL_BYTES: usize = 128;
const SHARDS_MAX: usize = 64;
const SHARD_BYTES_MIN: usize = 4 << 20;

#[derive(Debug)]
pub(in crate::leaves) struct KeyFilters {
    shards: Shards<Shard>,
    memory: Arc<MemoryBudget>,
    is_used: AtomicBool,
    lacking: Counter,
    made: Counter,
}

/// Filters of some pages, in order of creation.
#[derive(Debug)]
struct Shard {
    filters: FastMap<u64, Filter>,
    order: VecDeque<PageId>,
    cells: Cells<CELL_BYTES>,
    /// A buffer for building or checking a filter.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Filter {
    location: Location,
    part: KeyPart,
    bits: Chain,
}

impl Filter {
    fn is_of(&self, location: &Location) -> bool {
        !sound!(self.location != *location, "filters: take that of another image")
    }
}

impl KeyFilters {
    pub(in crate::leaves) fn new(memory: &Arc<MemoryBudget>) -> Self {
        let source = Cells::<CELL_BYTES>::reserve(memory.shares().filters_bytes_max());
        let shard = || Shard {
            filters: FastMap::default(),
            order: VecDeque::new(),
            cells: Cells::new(source.clone()),
            bytes: Vec::new(),
        };
        let wanted = (memory.limit() / SHARD_BYTES_MIN).min(SHARDS_MAX);
        let shards = Shards::new(memory, MemoryUse::Filters, wanted, shard);
        Self {
            shards,
            memory: Arc::clone(memory),
            is_used: AtomicBool::new(false),
            lacking: Counter::default(),
            made: Counter::default(),
        }
    }

    pub(in crate::leaves) fn is_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    pub(in crate::leaves) fn counts(&self) -> [(&'static str, u64); 2] {
        [("pool_filters_made", self.made.get()), ("pool_filters_lacking", self.lacking.get())]
    }

    pub(in crate::leaves) fn has(&self, pid: PageId, location: &Location) -> bool {
        let shard = self.shards.lock(pid);
        shard.filters.get(&pid.0).is_some_and(|filter| filter.is_of(location))
    }

    /// Adds the filter of an image whose keys have these hashes.
    pub(in crate::leaves) fn put(&self, pid: PageId, location: Location, part: KeyPart, hashes: &[u64]) {
        let limit = self.shard_bytes_max();
        self.shards.change(pid, |shard| {
            bloom::build(hashes, &mut shard.bytes);
            let mut bits = Chain::default();
            shard.cells.append(&mut bits, &shard.bytes);
            match shard.filters.insert(pid.0, Filter { location, part, bits }) {
                Some(before) => shard.cells.free(before.bits),
                None => shard.order.push_back(pid),
            }
            shard.drop_beyond(limit);
        });
        self.made.one();
        self.is_used.store(true, Relaxed);
    }

    /// Drops the oldest filters until the memory is within the limit, which may have been lowered.
    pub(in crate::leaves) fn give_way(&self) {
        let limit = self.shard_bytes_max();
        self.shards.change_each(|shard| shard.drop_beyond(limit));
    }

    fn shard_bytes_max(&self) -> usize {
        self.memory.shares().filters_bytes_max() / self.shards.count()
    }

    pub(in crate::leaves) fn clear(&self) {
        self.shards.change_each(|shard| while shard.drop_oldest() {});
        self.is_used.store(false, Relaxed);
    }

    /// Notes that the image of a page was copied to another location.
    pub(in crate::leaves) fn moved(&self, pid: PageId, from: &Location, to: Location) {
        let mut shard = self.shards.lock(pid);
        if let Some(filter) = shard.filters.get_mut(&pid.0).filter(|filter| filter.location == *from) {
            filter.location = to;
        }
    }

    pub(in crate::leaves) fn lacks(
        &self,
        pid: PageId,
        location: &Location,
        part: KeyPart,
        hash: u64,
    ) -> bool {
        let is_lacking = self.shards.change(pid, |shard| {
            let Shard { filters, cells, bytes, .. } = shard;
            let filter = filters.get(&pid.0).filter(|filter| filter.is_of(location) && filter.part == part);
            filter.is_some_and(|filter| {
                bytes.clear();
                cells.copy_bytes(filter.bits, bytes);
                !bloom::may_have(bytes, hash)
            })
        });
        if is_lacking {
            self.lacking.one();
        }
        is_lacking
    }
}

impl TakesMemory for Shard {
    fn memory_bytes(&self) -> usize {
        let order_bytes = self.order.capacity() * size_of::<PageId>();
        map_bytes(&self.filters) + order_bytes + self.cells.memory_bytes() + self.bytes.capacity()
    }
}

impl Shard {
    fn drop_beyond(&mut self, limit: usize) {
        while self.memory_bytes() > limit && self.drop_oldest() {}
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(pid) = self.order.pop_front() else { return false };
        if let Some(filter) = self.filters.remove(&pid.0) {
            self.cells.free(filter.bits);
        }
        shrink_map(&mut self.filters);
        if self.order.capacity() / 4 > self.order.len() {
            self.order.shrink_to(2 * self.order.len());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::hash_number;
    use crate::base::SegmentId;

    fn location(number: u32) -> Location {
        Location { segment: SegmentId(7), offset: number, stored_bytes: 100, crc: 1 }
    }

    #[test]
    fn filters_are_of_one_image_and_one_part_and_those_that_came_first_go_first() {
        let memory = Arc::new(MemoryBudget::new(8 << 20));
        let filters = KeyFilters::new(&memory);
        let hashes = |pid: u64| (0..100).map(move |key| hash_number(1000 * pid + key)).collect::<Vec<_>>();
        let lacks = |pid: u64, at, part| filters.lacks(PageId(pid), &location(at), part, hash_number(3));
        for pid in 1..20_000 {
            filters.put(PageId(pid), location(1), KeyPart::Whole, &hashes(pid));
        }
        let used = memory.used(MemoryUse::Filters);
        assert!(used <= memory.shares().filters_bytes_max(), "{used}");
        assert!(used > memory.shares().filters_bytes_max() / 2, "{used}");
        assert!(!filters.has(PageId(1), &location(1)) && filters.has(PageId(19_999), &location(1)));
        assert!(lacks(19_999, 1, KeyPart::Whole));
        assert!(!lacks(19_999, 2, KeyPart::Whole) && !lacks(19_999, 1, KeyPart::BeforeRowKey));
        assert!(!lacks(1, 1, KeyPart::Whole), "a leaf without a filter may have any key");
        filters.moved(PageId(19_999), &location(1), location(2));
        assert!(lacks(19_999, 2, KeyPart::Whole));
        for hash in hashes(19_999) {
            assert!(!filters.lacks(PageId(19_999), &location(2), KeyPart::Whole, hash));
        }
        filters.clear();
        let left = memory.used(MemoryUse::Filters);
        assert!(!filters.has(PageId(19_999), &location(2)) && left < used / 2, "{left} of {used}");
    }

    #[test]
    fn what_is_known_of_a_filter_beside_its_bits_is_small() {
        assert!(size_of::<Filter>() <= 28, "{}", size_of::<Filter>());
    }

    #[test]
    fn filters_follow_a_limit_that_falls() {
        let memory = Arc::new(MemoryBudget::new(64 << 20));
        let filters = KeyFilters::new(&memory);
        let put = |pid: u64| filters.put(PageId(pid), location(1), KeyPart::Whole, &[hash_number(pid)]);
        (1..100_000).for_each(put);
        memory.set_limit(4 << 20);
        filters.give_way();
        assert!(memory.used(MemoryUse::Filters) <= memory.shares().filters_bytes_max());
        put(100_000);
        assert!(filters.has(PageId(100_000), &location(1)));
    }
}
