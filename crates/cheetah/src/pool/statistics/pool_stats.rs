//! Statistics of the pool: its contents, and its reads and writes.

use super::{CacheNow, CurvePoint};
use crate::memory::MemoryUse;
use crate::pool::Pool;

/// The contents of the pool at one point in time. `size_pages` and `free_pages` count memory in
/// pages of the smallest size; the other counts are of pages of any size.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PoolStats {
    /// Pages that fit in the memory for frames.
    pub size_pages: u64,
    /// Pages that still fit before pages are evicted.
    pub free_pages: u64,
    /// Pages in memory.
    pub pages: u64,
    /// Pages in the small queue, which are evicted first unless they are used again.
    pub leaving_pages: u64,
    /// Dirty pages.
    pub dirty_pages: u64,
    /// The work of the pool since it was opened.
    pub flow: PoolFlow,
}

/// The work of a pool during some time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PoolFlow {
    /// Pages requested.
    pub gets: u64,
    /// Pages read, including those read ahead.
    pub reads: u64,
    /// New pages.
    pub creates: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages read ahead of any request.
    pub reads_ahead: u64,
    /// Pages read ahead that left memory without being requested.
    pub ahead_wasted: u64,
}

impl PoolFlow {
    /// The work since `before`.
    pub fn since(&self, before: &PoolFlow) -> PoolFlow {
        PoolFlow {
            gets: self.gets.saturating_sub(before.gets),
            reads: self.reads.saturating_sub(before.reads),
            creates: self.creates.saturating_sub(before.creates),
            writes: self.writes.saturating_sub(before.writes),
            reads_ahead: self.reads_ahead.saturating_sub(before.reads_ahead),
            ahead_wasted: self.ahead_wasted.saturating_sub(before.ahead_wasted),
        }
    }

    /// The number of requests per thousand that found the page in memory, or `None` if there were
    /// no requests.
    pub fn hits_per_1000(&self) -> Option<u64> {
        let misses = (self.reads * 1000).checked_div(self.gets)?;
        Some(1000u64.saturating_sub(misses))
    }
}

impl Pool {
    /// Collects [`PoolStats`]. The numbers are read one after the other. Does not block.
    pub fn stats(&self) -> PoolStats {
        let limit = self.memory.frames_limit();
        let pages_of = |bytes: usize| (bytes / self.page_bytes as usize) as u64;
        let (leaving, pages) = self.queues.counts();
        PoolStats {
            size_pages: pages_of(limit),
            free_pages: pages_of(limit.saturating_sub(self.buffers.in_use())),
            pages: pages as u64,
            leaving_pages: leaving as u64,
            dirty_pages: self.dirty_count() as u64,
            flow: self.flow(),
        }
    }

    /// Number of images of pages read from disk since startup.
    pub fn reads_count(&self) -> u64 {
        self.counters.reads.get()
    }

    /// Returns the predicted reads with more or less memory, based on the latest requests. Empty if
    /// there were too few requests. Does not block for long.
    pub fn cache_curve(&self, now_ns: u64) -> Vec<CurvePoint> {
        let memory = &self.memory;
        let of_pages = [MemoryUse::Frames, MemoryUse::Images, MemoryUse::Buffered];
        let fixed = [MemoryUse::PageTable, MemoryUse::Changes, MemoryUse::Scratch];
        let bytes = |uses: [MemoryUse; 3]| uses.into_iter().map(|of| memory.used(of)).sum::<usize>();
        let shared_bytes = memory.total().saturating_sub(bytes(of_pages) + bytes(fixed));
        let cache = CacheNow {
            memory_bytes: memory.limit() as u64,
            fixed_bytes: bytes(fixed) as u64,
            shared_bytes: shared_bytes as u64,
            pages: (self.queues.counts().1 + self.image_cache.count()) as u64,
        };
        self.cache_curve.points(now_ns, cache)
    }

    fn flow(&self) -> PoolFlow {
        let counters = &self.counters;
        let (reads_ahead, ahead_wasted) = self.read_ahead.read_and_wasted();
        PoolFlow {
            gets: counters.requests.get(),
            reads: counters.reads.get(),
            creates: counters.creates.get(),
            writes: counters.writes.get() + counters.blob_writes.get(),
            reads_ahead,
            ahead_wasted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::pool::testing::Database;
    use crate::pool::PageClass;

    #[test]
    fn pages_and_what_goes_through_the_pool_are_counted() {
        let db = Database::new(&Config::tiny());
        let pids: Vec<_> = (0..4).map(|value| db.add(PageClass::Base, value)).collect();
        let stats = db.pool.stats();
        assert_eq!((stats.pages, stats.leaving_pages, stats.dirty_pages), (4, 4, 4));
        assert_eq!(stats.size_pages - stats.free_pages, 4);
        db.checkpoint().unwrap();
        assert_eq!(db.pool.stats().dirty_pages, 0);
        assert_eq!(db.pool.stats().flow, PoolFlow { creates: 4, writes: 4, ..PoolFlow::default() });
        let disk = db.disk.clone();
        let db = db.crash(disk);
        pids.iter().chain(&pids).for_each(|pid| assert!(db.value(*pid).is_some()));
        let flow = db.pool.stats().flow;
        assert_eq!(flow, PoolFlow { gets: 8, reads: 4, ..PoolFlow::default() });
        assert_eq!(flow.hits_per_1000(), Some(500));
        assert_eq!(flow.since(&flow).hits_per_1000(), None);
    }
}
