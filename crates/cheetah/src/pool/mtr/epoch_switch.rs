//! The sharded switch from one epoch to the next. At any time, either mini-transactions are inside,
//! each through one of several shards, or a thread has locked all shards and advances the epoch.
//!
//! Invariants G1 and G4 are at the head of `mtr`. `interleaving_tests.rs` compiles this file again
//! with loom.

use super::sync::{AtomicU64, Ordering, RwLock, RwLockReadGuard};
use crate::base::{sound, Epoch};

/// Each shard has its own cache line, so that threads in different shards do not contend.
#[repr(align(128))]
#[derive(Debug)]
struct Shard(RwLock<Epoch>);

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct EpochSwitch<const COUNT: usize> {
    shards: [Shard; COUNT],
    /// The same epoch as in the shards, for threads that must not wait.
    epoch: AtomicU64,
}

/// The permission to be inside, and the epoch, which does not change while this guard exists.
pub(in crate::pool) type EpochGuard<'a> = RwLockReadGuard<'a, Epoch>;

impl<const COUNT: usize> EpochSwitch<COUNT> {
    pub(in crate::pool) fn new(epoch: Epoch) -> Self {
        Self { shards: std::array::from_fn(|_| Shard(RwLock::new(epoch))), epoch: AtomicU64::new(epoch.0) }
    }

    /// Enters through a shard. `shard_no` may be any number. Waits while the shards are locked or
    /// about to be locked.
    pub(in crate::pool) fn enter(&self, shard_no: usize) -> EpochGuard<'_> {
        let shard = self.shards.get(shard_no % COUNT).expect("the index is a remainder by their number");
        shard.0.read()
    }

    /// Waits until no thread is inside, advances to the next epoch, and runs `at_switch` with the
    /// ended epoch before any thread enters.
    pub(in crate::pool) fn switch<T>(&self, at_switch: impl FnOnce(Epoch) -> T) -> T {
        let mut closed: Vec<_> = self.shards.iter().map(|shard| shard.0.write()).collect();
        let ended = closed.first().map(|shard| **shard).expect("there is a shard");
        for shard in &mut closed {
            **shard = Epoch(ended.0 + 1);
        }
        self.epoch.store(ended.0 + 1, Ordering::Release);
        if !sound!(true, "pool: let mini-transactions in before the epoch switch") {
            closed.clear();
        }
        at_switch(ended)
    }

    /// The current epoch. For a caller outside, the result may be outdated on return. Never waits.
    pub(in crate::pool) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
}
