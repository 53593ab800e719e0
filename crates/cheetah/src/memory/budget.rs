//! The memory that each part of the engine uses.

use super::Shares;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The uses of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryUse {
    /// Page frames, in use or free.
    Frames,
    /// Cached images of leaves without a frame.
    Images,
    /// Pending changes of leaves without a frame.
    Buffered,
    /// Filters of keys, for leaves without a frame.
    Filters,
    /// The page table.
    PageTable,
    /// The changed pages of the epochs that have not committed.
    Changes,
    /// Tails of the streams: bytes that are not in a segment file yet.
    Tails,
    /// The log buffers.
    Log,
    /// Encoding and decoding of images.
    Scratch,
    /// Locks of transactions.
    Locks,
    /// The part of the log that redo holds during startup.
    Redo,
    /// Rows that loads sort.
    Sort,
    /// The outcomes of transactions that may still be looked up.
    Outcomes,
    /// Memory that is too small or too short-lived to be counted individually: rows and keys of
    /// operations, cursors, the catalog, merges of the page map, and the allocator's memory for
    /// each thread.
    Rest,
}

impl MemoryUse {
    /// All uses, with their names in status.
    pub const ALL: [(MemoryUse, &'static str); 14] = [
        (MemoryUse::Frames, "memory_frames_bytes"),
        (MemoryUse::Images, "memory_images_bytes"),
        (MemoryUse::Buffered, "memory_buffered_bytes"),
        (MemoryUse::Filters, "memory_filters_bytes"),
        (MemoryUse::PageTable, "memory_page_table_bytes"),
        (MemoryUse::Changes, "memory_changes_bytes"),
        (MemoryUse::Tails, "memory_write_buffers_bytes"),
        (MemoryUse::Log, "memory_log_bytes"),
        (MemoryUse::Scratch, "memory_scratch_bytes"),
        (MemoryUse::Locks, "memory_locks_bytes"),
        (MemoryUse::Redo, "memory_redo_bytes"),
        (MemoryUse::Sort, "memory_sort_bytes"),
        (MemoryUse::Outcomes, "memory_outcomes_bytes"),
        (MemoryUse::Rest, "memory_rest_bytes"),
    ];
}

/// The memory of the engine, by use.
#[derive(Debug)]
pub struct MemoryBudget {
    total_bytes: AtomicUsize,
    used: [AtomicUsize; MemoryUse::ALL.len()],
}

impl MemoryBudget {
    /// Creates a budget of `total_bytes` bytes, of which no bytes are in use.
    pub fn new(total_bytes: u64) -> Self {
        Self { total_bytes: AtomicUsize::new(total_bytes as usize), used: Default::default() }
    }

    /// The share of each use.
    pub fn shares(&self) -> Shares {
        Shares::of(self.limit() as u64)
    }

    /// Sets the limit for all uses together (M3).
    pub fn set_limit(&self, total_bytes: u64) {
        self.total_bytes.store(total_bytes as usize, Relaxed);
    }

    /// Bytes in use.
    pub fn used(&self, of: MemoryUse) -> usize {
        self.used[of as usize].load(Relaxed)
    }

    /// Bytes of all uses together.
    pub fn total(&self) -> usize {
        MemoryUse::ALL.iter().map(|(of, _)| self.used(*of)).sum()
    }

    /// The limit for all uses together, in bytes.
    pub fn limit(&self) -> usize {
        self.total_bytes.load(Relaxed)
    }

    /// Sets the bytes of a use. Called by parts that know their size.
    pub fn set(&self, of: MemoryUse, bytes: usize) {
        self.used[of as usize].store(bytes, Relaxed);
    }

    /// Counts `bytes` more, and returns the bytes in use. Never waits or fails.
    pub fn add(&self, of: MemoryUse, bytes: usize) -> usize {
        self.used[of as usize].fetch_add(bytes, Relaxed) + bytes
    }

    /// Counts `bytes` less.
    pub fn subtract(&self, of: MemoryUse, bytes: usize) {
        self.used[of as usize].fetch_sub(bytes, Relaxed);
    }

    /// The current maximum bytes for frames (M2).
    pub fn frames_limit(&self) -> usize {
        let (pages_bytes, buffered_bytes) = self.pages_and_buffered();
        // Images that exceed their share will be dropped soon.
        let images_bytes_max = self.shares().images_bytes_max(pages_bytes, buffered_bytes);
        pages_bytes - buffered_bytes - self.used(MemoryUse::Images).min(images_bytes_max)
    }

    /// The current maximum bytes for images.
    pub fn images_limit(&self) -> usize {
        let (pages_bytes, buffered_bytes) = self.pages_and_buffered();
        self.shares().images_bytes_max(pages_bytes, buffered_bytes)
    }

    /// The current maximum bytes for pending changes.
    pub fn buffered_limit(&self) -> usize {
        self.shares().buffered_bytes_max(self.pages_limit())
    }

    /// The limit of [`pages_limit`](Self::pages_limit), and the bytes of it that pending changes
    /// take. They exceed their own limit for a while after it fell.
    fn pages_and_buffered(&self) -> (usize, usize) {
        let pages_bytes = self.pages_limit();
        let not_frames = pages_bytes - self.shares().frames_bytes_min(pages_bytes);
        (pages_bytes, self.used(MemoryUse::Buffered).min(not_frames))
    }

    /// The maximum bytes for frames, images and pending changes together.
    fn pages_limit(&self) -> usize {
        let of_pages =
            self.used(MemoryUse::Frames) + self.used(MemoryUse::Images) + self.used(MemoryUse::Buffered);
        self.shares().pages_bytes_max(self.total().saturating_sub(of_pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_get_what_the_others_leave_but_at_least_half() {
        let memory = MemoryBudget::new(1000);
        memory.set(MemoryUse::Log, 100);
        memory.set(MemoryUse::Frames, 700);
        assert_eq!(memory.frames_limit(), 900 - 14);
        memory.set(MemoryUse::PageTable, 5000);
        assert_eq!(memory.frames_limit(), 500 - 7);
        assert_eq!(memory.total(), 5800);
    }

    #[test]
    fn frames_get_a_part_whatever_images_and_pending_changes_take() {
        let memory = MemoryBudget::new(1000);
        for (buffered_bytes, images_bytes_max, frames_bytes) in
            [(0, 788, 197), (700, 138, 147), (800, 38, 147), (900, 0, 147)]
        {
            memory.set(MemoryUse::Buffered, buffered_bytes);
            memory.set(MemoryUse::Images, 1000);
            assert_eq!((memory.images_limit(), memory.frames_limit()), (images_bytes_max, frames_bytes));
        }
    }
}
