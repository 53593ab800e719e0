//! The state that all locks on a tree share: ranges, and the compressed record locks of owners that
//! have very many.
//!
//! A compressed lock is the hash of a key, 8 bytes in a set, without the key itself. It does not
//! lock neighbours of the key.

use super::ranges::Ranges;
use crate::base::hash::{FastMap, FastSet};
use crate::base::TreeId;
use crate::txn::locks::key::KeySpan;
use crate::txn::locks::memory::{LockMemory, Share};
use crate::txn::locks::modes::{Level, LockMode};
use crate::txn::locks::Owner;

/// The memory of a hash in its set, which is three quarters full on average.
pub(crate) const COMPRESSED_BYTES: usize = (std::mem::size_of::<u64>() + 1) * 4 / 3;

#[derive(Debug)]
pub(crate) struct Compressed {
    pub(crate) owner: Owner,
    shared: FastSet<u64>,
    exclusive: FastSet<u64>,
}

impl Compressed {
    fn new(owner: Owner) -> Self {
        Self { owner, shared: FastSet::default(), exclusive: FastSet::default() }
    }

    pub(crate) fn mode_of(&self, hash: u64) -> Option<LockMode> {
        if self.exclusive.contains(&hash) {
            return Some(LockMode::Exclusive);
        }
        self.shared.contains(&hash).then_some(LockMode::Shared)
    }

    fn insert(&mut self, hash: u64, mode: LockMode) -> bool {
        match mode {
            LockMode::Shared => self.shared.insert(hash),
            LockMode::Exclusive => self.exclusive.insert(hash),
        }
    }

    pub(crate) fn counts(&self) -> [(LockMode, usize); 2] {
        [(LockMode::Shared, self.shared.len()), (LockMode::Exclusive, self.exclusive.len())]
    }

    fn bytes(&self) -> usize {
        (self.shared.len() + self.exclusive.len()) * COMPRESSED_BYTES
    }
}

#[derive(Default, Debug)]
pub(crate) struct TreeShared {
    pub(crate) ranges: Ranges,
    pub(crate) compressed: Vec<Compressed>,
}

impl TreeShared {
    fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.compressed.is_empty()
    }
}

#[derive(Default, Debug)]
pub(crate) struct Trees {
    trees: FastMap<TreeId, TreeShared>,
    share: Share,
}

impl Trees {
    pub(crate) fn get(&self, tree: TreeId) -> Option<&TreeShared> {
        self.trees.get(&tree)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TreeId, &TreeShared)> {
        self.trees.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.trees.len()
    }

    /// Grants a range to an owner, and reserves its memory and that of the owner's list.
    pub(crate) fn add_range(
        &mut self,
        memory: &LockMemory,
        tree: TreeId,
        (owner, level): (Owner, Level),
        (span, listed_bytes): (&KeySpan, usize),
    ) {
        let shared = self.trees.entry(tree).or_default();
        let before = shared.ranges.bytes();
        shared.ranges.add(owner, level, span);
        let after = shared.ranges.bytes();
        self.share.add(memory, after + listed_bytes);
        self.share.subtract(memory, before);
    }

    pub(crate) fn remove_ranges(
        &mut self,
        memory: &LockMemory,
        tree: TreeId,
        owner: Owner,
        (pieces, listed_bytes): (&[KeySpan], usize),
    ) {
        let Some(shared) = self.trees.get_mut(&tree) else { return };
        let before = shared.ranges.bytes();
        pieces.iter().for_each(|piece| shared.ranges.remove(owner, piece));
        let after = shared.ranges.bytes();
        self.share.add(memory, after);
        self.share.subtract(memory, before + listed_bytes);
        self.forget_if_empty(tree);
    }

    pub(crate) fn add_compressed(
        &mut self,
        memory: &LockMemory,
        tree: TreeId,
        owner: Owner,
        hashes: &[(u64, LockMode)],
    ) {
        let shared = self.trees.entry(tree).or_default();
        if !shared.compressed.iter().any(|compressed| compressed.owner == owner) {
            shared.compressed.push(Compressed::new(owner));
        }
        let own = shared.compressed.iter_mut().find(|compressed| compressed.owner == owner);
        let new = own.map_or(0, |own| hashes.iter().filter(|(hash, mode)| own.insert(*hash, *mode)).count());
        self.share.add(memory, new * COMPRESSED_BYTES);
    }

    pub(crate) fn remove_compressed(&mut self, memory: &LockMemory, tree: TreeId, owner: Owner) {
        let Some(shared) = self.trees.get_mut(&tree) else { return };
        let is_own = |compressed: &&Compressed| compressed.owner == owner;
        let bytes = shared.compressed.iter().filter(is_own).map(Compressed::bytes).sum();
        shared.compressed.retain(|compressed| compressed.owner != owner);
        self.share.subtract(memory, bytes);
        self.forget_if_empty(tree);
    }

    fn forget_if_empty(&mut self, tree: TreeId) {
        if self.trees.get(&tree).is_some_and(TreeShared::is_empty) {
            self.trees.remove(&tree);
        }
    }
}
