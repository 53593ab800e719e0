//! The memory of locks, as part of the engine's memory budget.
//!
//! Invariants
//!   I1  At the limit a lock is refused before anything has changed. A lock granted to a waiter is
//!       reserved even so: the limit can be passed by one lock for each waiter, and not by more.
//!   I2  Shards reserve by [`STEP_BYTES`], so that the shared counter is not touched at every lock.
//!       It is wrong by at most that much for each shard: less than 100 KiB.

use crate::base::{Error, Result};
use crate::memory::{MemoryBudget, MemoryUse};
use std::sync::Arc;

/// The bytes that a shard may have taken or given back without reserving them.
const STEP_BYTES: usize = 256;

/// See the module.
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

    /// Whether less than half of it is in use: room for whatever one range can need, as that is at
    /// most a cover for each cut that is there.
    pub(super) fn is_half_empty(&self) -> bool {
        self.used_bytes() < self.limit_bytes / 2
    }

    /// `LockTableFull` when there is no room for `more_bytes` more (I1).
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
        debug_assert!(bytes <= self.bytes, "{bytes} of {}", self.bytes);
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
