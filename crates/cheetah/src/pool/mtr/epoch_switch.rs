//! The sharded switch from one epoch to the next: many are inside at a time, each through one of
//! several shards; or somebody has closed all shards and moves the epoch on.
//!
//! Invariants: G1, G4 at the head of the room. `interleaving_tests.rs` compiles this file again
//! over loom.

use super::sync::{AtomicU64, Ordering, RwLock, RwLockReadGuard};
use crate::base::{sound, Epoch};

/// Alone in its cache line, so that threads at different shards do not meet.
#[repr(align(128))]
#[derive(Debug)]
struct Shard(RwLock<Epoch>);

/// See the module.
#[derive(Debug)]
pub(in crate::pool) struct EpochSwitch<const COUNT: usize> {
    shards: [Shard; COUNT],
    /// As in the shards, for those who must not wait.
    epoch: AtomicU64,
}

/// The right to be inside, and the epoch while it lasts.
pub(in crate::pool) type EpochGuard<'a> = RwLockReadGuard<'a, Epoch>;

impl<const COUNT: usize> EpochSwitch<COUNT> {
    pub(in crate::pool) fn new(epoch: Epoch) -> Self {
        Self { shards: std::array::from_fn(|_| Shard(RwLock::new(epoch))), epoch: AtomicU64::new(epoch.0) }
    }

    /// Goes in through a shard, any number counts; waits while the shards are closed, or about to
    /// be.
    pub(in crate::pool) fn enter(&self, shard_no: usize) -> EpochGuard<'_> {
        let shard = self.shards.get(shard_no % COUNT).expect("the index is a remainder by their number");
        shard.0.read()
    }

    /// Waits until nobody is inside, moves on to the next epoch, and runs `at_switch`, which gets
    /// the one that has ended, before anybody goes in.
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

    /// The epoch of those who are inside, or would go in, now. From outside it may be outdated by
    /// the time it is looked at. Never waits.
    pub(in crate::pool) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }
}
