//! The lock table: the compression of an owner's many record locks on a tree, which drops their
//! keys.
//!
//! A lock is added to the compressed ones before it is removed from its stripe: for a moment its
//! owner holds it twice, but the lock is never missing. Only the owner's own requests compress its
//! locks, so the owner cannot end meanwhile.

use super::lock_table::LockTable;
use super::modes::LockMode;
use super::Owner;
use crate::base::{reach, TreeId};
use std::sync::atomic::Ordering::Relaxed;

impl LockTable {
    /// Compresses the locks of `owner` on all trees, because memory is short.
    pub(super) fn compress_all(&self, owner: Owner) {
        self.owners.trees(owner).into_iter().for_each(|tree| self.compress(owner, tree));
    }

    /// Compresses the record locks of `owner` on a tree, except the newest one (which may be
    /// unlocked next) and those that other owners also hold or wait for.
    pub(super) fn compress(&self, owner: Owner, tree: TreeId) {
        let points = self.owners.take_points(owner, tree);
        let mode_of =
            |hash: u64| self.stripes.lock(hash).get(hash).and_then(|point| point.mode_of_only(owner));
        let only =
            points.iter().filter_map(|hash| mode_of(*hash).map(|mode| (*hash, mode))).collect::<Vec<_>>();
        self.add_compressed(owner, tree, &only);
        only.iter().for_each(|(hash, mode)| self.take_point(owner, *hash, *mode));
        let has =
            |hash: &&u64| self.stripes.lock(**hash).get(**hash).and_then(|p| p.mode_of(owner)).is_some();
        let kept = points.iter().filter(has).copied().collect::<Vec<_>>();
        self.owners.give_back(owner, tree, &kept, only.len());
    }

    fn add_compressed(&self, owner: Owner, tree: TreeId, hashes: &[(u64, LockMode)]) {
        if hashes.is_empty() {
            return;
        }
        reach::mark("locks: compress");
        let shard = self.tree_shard(tree);
        let mut trees = shard.trees.write();
        trees.add_compressed(&self.memory, tree, owner, hashes);
        shard.in_use.store(trees.len(), Relaxed);
    }

    /// Removes a record that was just compressed from its stripe, unless its mode has changed.
    fn take_point(&self, owner: Owner, hash: u64, mode: LockMode) {
        let mut stripe = self.stripes.lock(hash);
        if stripe.get(hash).is_some_and(|point| point.mode_of(owner) == Some(mode)) {
            stripe.remove(&self.memory, hash, owner);
        }
    }
}
