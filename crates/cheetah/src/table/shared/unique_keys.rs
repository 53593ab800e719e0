//! Keeps two writers from adding the same key to a unique index at the same time (durability::H4).
//!
//! Two entries with one key end with different clustered keys, so they may be in different leaves
//! and no page latch covers both. A writer therefore holds the latch of a key from its uniqueness
//! check until its entry is inserted. Afterwards other writers find the entry, and wait for the
//! lock of its row.
//!
//! Invariants
//!   I1  Keys share latches according to a hash of tree and key. A writer takes all the latches it
//!       needs at once, in a fixed order.
//! Locks     a latch is taken before the gate is entered and before purge latches. The writer then
//!           holds only table use and locks, and waits for no lock while it holds the latch.

use crate::base::hash::{hash_key, shard_index};
use crate::base::{sound, TreeId};
use parking_lot::{Mutex, MutexGuard};

const SHARDS: usize = 1024;

#[derive(Debug)]
pub(crate) struct UniqueKeys(Vec<Mutex<()>>);

#[derive(Default, Debug)]
pub(crate) struct UniqueGuard<'s>(#[expect(dead_code, reason = "held, not read")] Vec<MutexGuard<'s, ()>>);

impl Default for UniqueKeys {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl UniqueKeys {
    /// Waits for other writers that hold the latches.
    pub(crate) fn take<'k>(&self, keys: impl Iterator<Item = (TreeId, &'k [u8])>) -> UniqueGuard<'_> {
        let keys = keys.filter(|_| sound!(true, "unique: look without the key's latch"));
        let mut shards = keys.map(|(tree, key)| shard(tree, key)).collect::<Vec<_>>();
        shards.sort_unstable();
        shards.dedup();
        let lock = |at| self.0.get(at).map(Mutex::lock).expect("the index is less than their number");
        UniqueGuard(shards.into_iter().map(lock).collect())
    }
}

fn shard(tree: TreeId, key: &[u8]) -> usize {
    shard_index(hash_key(tree.0, key), SHARDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_taken_twice_by_one_writer_is_no_deadlock() {
        let keys = UniqueKeys::default();
        let _guard = keys.take([(TreeId(1), &b"a"[..]), (TreeId(1), b"a"), (TreeId(2), b"a")].into_iter());
        assert!(keys.0.get(shard(TreeId(1), b"a")).is_some_and(|latch| latch.try_lock().is_none()));
    }
}
