//! The memory of frames: buffers of three sizes, allocated lazily, reused, and returned to the
//! system when another size needs the memory. Each size has its own address range, so returned
//! buffers leave no holes.

use crate::format::page::PageBuf;
use crate::memory::{MemoryBudget, MemoryUse};
use crate::pool::PageClass;
use cheetah_io::Blocks;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// While another class needs memory, the free buffers of a class may hold 1/`IDLE_PART` of the
/// limit.
const IDLE_PART: usize = 32;
/// Concurrent threads may exceed the limit by 1/`SLACK_PART`. An excess buffer that is freed at
/// once would soon be allocated again.
const SLACK_PART: usize = 100;
/// The pool is nearly full when less than 1/`FREE_PART` of the limit is free.
const FREE_PART: usize = 6;
/// Addresses are reserved for 1/`ADDRESSES_PART` and `ADDRESSES_MORE` buffers beyond the limit.
/// Further buffers come from the heap.
const ADDRESSES_PART: usize = 8;
const ADDRESSES_MORE: usize = 64;

/// Address ranges for the buffers of a class: one from startup, and one for each growth of the
/// limit.
#[derive(Default, Debug)]
struct Ranges {
    ranges: Vec<Arc<Blocks>>,
    /// Bytes of buffers that the ranges cover.
    bytes: usize,
}

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct Buffers {
    page_bytes: u32,
    memory: Arc<MemoryBudget>,
    /// Bytes of buffers that belong to frames.
    in_use: AtomicUsize,
    /// The number of buffers allocated because none was free.
    allocations: AtomicUsize,
    ranges: [RwLock<Ranges>; PageClass::ALL.len()],
    free: [Mutex<Vec<PageBuf>>; PageClass::ALL.len()],
}

impl Buffers {
    pub(in crate::pool) fn new(page_bytes: u32, memory: Arc<MemoryBudget>) -> Self {
        let buffers = Self {
            page_bytes,
            ranges: Default::default(),
            memory,
            in_use: AtomicUsize::new(0),
            allocations: AtomicUsize::new(0),
            free: Default::default(),
        };
        buffers.reserve_addresses(buffers.memory.limit());
        buffers
    }

    /// Reserves addresses for all buffers that a limit of `limit_bytes` allows, if the current
    /// ranges are too small. If the reservation fails, buffers come from the heap.
    pub(in crate::pool) fn reserve_addresses(&self, limit_bytes: usize) {
        for (class, ranges) in PageClass::ALL.into_iter().zip(&self.ranges) {
            let mut ranges = ranges.write();
            if limit_bytes <= ranges.bytes {
                continue;
            }
            // A minimum length prevents many small ranges when the limit grows in small steps.
            let more_bytes = (limit_bytes - ranges.bytes).max(ranges.bytes / ADDRESSES_PART);
            let bytes = class.bytes(self.page_bytes);
            let count = more_bytes / bytes;
            let range = Blocks::reserve(bytes, count + count / ADDRESSES_PART + ADDRESSES_MORE);
            if let Some(range) = range {
                ranges.ranges.push(range);
                ranges.bytes += more_bytes;
            }
        }
    }

    /// Returns whether `bytes` more bytes of a class fit within the limit. Frees idle buffers of
    /// the other classes if they hold a lot of memory.
    pub(in crate::pool) fn has_room(&self, class: PageClass, bytes: usize) -> bool {
        let limit = self.memory.frames_limit();
        if self.in_use() + bytes > limit {
            return false;
        }
        if self.memory.used(MemoryUse::Frames) + bytes <= limit {
            return true;
        }
        if self.free[class as usize].lock().len() * class.bytes(self.page_bytes) >= bytes {
            return true;
        }
        let idle = self.memory.used(MemoryUse::Frames).saturating_sub(self.in_use());
        if idle > limit / IDLE_PART {
            PageClass::ALL
                .into_iter()
                .filter(|other| *other != class)
                .for_each(|other| self.drop_free(other, bytes));
        }
        self.memory.used(MemoryUse::Frames) + bytes <= limit
    }

    /// Returns whether so little memory is free that page reads will soon evict pages. The cleaner
    /// always keeps a little memory free.
    pub(in crate::pool) fn is_nearly_full(&self) -> bool {
        let limit = self.memory.frames_limit();
        self.in_use() > limit - limit / FREE_PART
    }

    /// Bytes by which frames exceed their limit.
    pub(in crate::pool) fn excess(&self) -> usize {
        self.in_use().saturating_sub(self.memory.frames_limit())
    }

    /// Bytes of buffers that belong to frames.
    pub(in crate::pool) fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// The number of buffers allocated because none was free.
    pub(in crate::pool) fn allocations(&self) -> usize {
        self.allocations.load(Relaxed)
    }

    /// Takes a buffer with arbitrary content. Never waits. The caller must check the limit.
    pub(in crate::pool) fn take(&self, class: PageClass) -> PageBuf {
        let bytes = class.bytes(self.page_bytes);
        self.in_use.fetch_add(bytes, Relaxed);
        if let Some(buffer) = self.free[class as usize].lock().pop() {
            return buffer;
        }
        self.memory.add(MemoryUse::Frames, bytes);
        self.allocations.fetch_add(1, Relaxed);
        let block = self.ranges[class as usize].read().ranges.iter().find_map(Blocks::take);
        block.map_or_else(|| PageBuf::new(bytes), PageBuf::in_block)
    }

    /// Returns a buffer.
    pub(in crate::pool) fn give(&self, class: PageClass, buffer: PageBuf) {
        self.in_use.fetch_sub(buffer.len(), Relaxed);
        let limit = self.memory.frames_limit();
        if self.memory.used(MemoryUse::Frames) > limit + limit / SLACK_PART {
            self.memory.subtract(MemoryUse::Frames, buffer.len());
        } else {
            self.free[class as usize].lock().push(buffer);
        }
    }

    /// Frees idle buffers beyond the limit. The limit may have been lowered.
    pub(in crate::pool) fn give_back_idle(&self) {
        PageClass::ALL.into_iter().for_each(|class| self.drop_free(class, 0));
    }

    /// Frees idle buffers of a class until `needed` more bytes fit within the limit.
    pub(in crate::pool) fn drop_free(&self, class: PageClass, needed: usize) {
        let mut free = self.free[class as usize].lock();
        while self.memory.used(MemoryUse::Frames) + needed > self.memory.frames_limit() {
            let Some(buffer) = free.pop() else { break };
            self.memory.subtract(MemoryUse::Frames, buffer.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_buffers_of_one_class_make_room_for_another() {
        let memory = Arc::new(MemoryBudget::new(4096 + 65));
        let buffers = Buffers::new(512, memory.clone());
        let taken: Vec<_> = (0..8).map(|_| buffers.take(PageClass::Base)).collect();
        assert!(!buffers.has_room(PageClass::Base, 512));
        taken.into_iter().for_each(|buffer| buffers.give(PageClass::Base, buffer));
        assert_eq!((memory.used(MemoryUse::Frames), buffers.in_use()), (4096, 0));
        assert!(buffers.has_room(PageClass::Large, 2048));
        let large = buffers.take(PageClass::Large);
        assert_eq!((memory.used(MemoryUse::Frames), buffers.in_use()), (4096, 2048));
        buffers.give(PageClass::Large, large);
    }

    #[test]
    fn what_exceeds_the_limit_is_not_kept() {
        let memory = Arc::new(MemoryBudget::new(1024 + 16));
        let buffers = Buffers::new(512, memory.clone());
        let taken: Vec<_> = (0..3).map(|_| buffers.take(PageClass::Base)).collect();
        assert_eq!(memory.used(MemoryUse::Frames), 1536, "beyond the limit and its slack");
        taken.into_iter().for_each(|buffer| buffers.give(PageClass::Base, buffer));
        assert_eq!(memory.used(MemoryUse::Frames), 1024);
    }
}
