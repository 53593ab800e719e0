//! State of pages, divided into shards by page number. Each shard has a mutex, and its memory is
//! counted.

use crate::base::hash::{hash_number, shard_index, shards_count};
use crate::base::PageId;
use crate::memory::{MemoryBudget, MemoryUse};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// State that reports its memory use.
pub(crate) trait TakesMemory {
    /// The bytes that the state occupies.
    fn memory_bytes(&self) -> usize;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shards<S> {
    shards: Vec<Mutex<S>>,
    memory: Arc<MemoryBudget>,
    of: MemoryUse,
}

impl<S: TakesMemory> Shards<S> {
    /// Creates empty shards. Their number is the largest power of two up to `wanted`.
    pub(crate) fn new(
        memory: &Arc<MemoryBudget>,
        of: MemoryUse,
        wanted: usize,
        empty: impl Fn() -> S,
    ) -> Self {
        let shards = (0..shards_count(wanted)).map(|_| Mutex::new(empty())).collect();
        Self { shards, memory: Arc::clone(memory), of }
    }

    pub(crate) fn count(&self) -> usize {
        self.shards.len()
    }

    /// Locks the shard of a page, for reading only.
    pub(crate) fn lock(&self, pid: PageId) -> MutexGuard<'_, S> {
        self.of_page(pid).lock()
    }

    /// Changes the shard of a page, and updates the memory count.
    pub(crate) fn change<R>(&self, pid: PageId, change: impl FnOnce(&mut S) -> R) -> R {
        self.change_shard(self.of_page(pid), change)
    }

    /// Passes each shard to `look`, one after the other.
    pub(crate) fn each(&self, mut look: impl FnMut(&S)) {
        self.shards.iter().for_each(|shard| look(&shard.lock()));
    }

    /// Changes each shard, one after the other.
    pub(crate) fn change_each(&self, mut change: impl FnMut(&mut S)) {
        self.shards.iter().for_each(|shard| self.change_shard(shard, &mut change));
    }

    fn change_shard<R>(&self, shard: &Mutex<S>, change: impl FnOnce(&mut S) -> R) -> R {
        let mut shard = shard.lock();
        let before = shard.memory_bytes();
        let result = change(&mut shard);
        let after = shard.memory_bytes();
        if after != before {
            self.memory.add(self.of, after.saturating_sub(before));
            self.memory.subtract(self.of, before.saturating_sub(after));
        }
        result
    }

    fn of_page(&self, pid: PageId) -> &Mutex<S> {
        let shard = self.shards.get(shard_index(hash_number(pid.0), self.shards.len()));
        shard.expect("the index is a remainder by their number")
    }
}
