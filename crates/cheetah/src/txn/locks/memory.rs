//! The memory of locks, as part of the engine's memory budget.
//!
//! Invariants
//!   I1  At the limit a lock is refused before anything has changed. A lock that is granted to a
//!       waiter is reserved even beyond the limit, so the limit can be exceeded by one lock for
//!       each waiter, but not by more.
//!   I2  Shards reserve in steps of [`STEP_BYTES`], so that not every lock touches the shared
//!       counter. The counter is wrong by at most one step per shard: less than 100 KiB in all.

use crate::base::{Error, Result};
use crate::memory::{MemoryBudget, MemoryUse};
use std::sync::Arc;

const STEP_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct LockMemory {
    budget: Arc<MemoryBudget>,
    limit_bytes: usize,
}

impl LockMemory {
    pub(super) fn new(budget: Arc<MemoryBudget>, limit_bytes: usize) -> Self {
        Self { budget, limit_bytes }
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.budget.used(MemoryUse::Locks)
    }

    pub(super) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns whether less than half of the memory is in use: then there is room for any range,
    /// because a range needs at most one cover for each existing cut.
    pub(super) fn is_half_empty(&self) -> bool {
        self.used_bytes() < self.limit_bytes / 2
    }

    /// Fails with `LockTableFull` if there is no room (I1).
    pub(super) fn check(&self, more_bytes: usize) -> Result<()> {
        if self.used_bytes() + more_bytes > self.limit_bytes {
            return Err(Error::LockTableFull);
        }
        Ok(())
    }
}

/// The bytes of one shard (I2).
#[derive(Default, Debug)]
pub(super) struct Share {
    bytes: usize,
    reserved_bytes: usize,
}

impl Share {
    pub(super) fn add(&mut self, memory: &LockMemory, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= self.reserved_bytes + STEP_BYTES {
            self.reserve(memory);
        }
    }

    pub(super) fn subtract(&mut self, memory: &LockMemory, bytes: usize) {
        debug_assert!(bytes <= self.bytes, "I2: {bytes} bytes of {} are given back", self.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.bytes + STEP_BYTES <= self.reserved_bytes || self.bytes == 0 {
            self.reserve(memory);
        }
    }

    fn reserve(&mut self, memory: &LockMemory) {
        if self.bytes >= self.reserved_bytes {
            memory.budget.add(MemoryUse::Locks, self.bytes - self.reserved_bytes);
        } else {
            memory.budget.subtract(MemoryUse::Locks, self.reserved_bytes - self.bytes);
        }
        self.reserved_bytes = self.bytes;
    }
}
