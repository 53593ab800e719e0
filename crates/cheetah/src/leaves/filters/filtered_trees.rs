//! The part of the keys that the filters of each tree contain, and whether filters pay for a tree.

use super::KeyPart;
use crate::base::hash::FastMap;
use crate::base::TreeId;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The unsuccessful lookups of keys in a tree's images after which its leaves receive filters.
const ABSENT_MIN: u64 = 32;

#[derive(Default, Debug)]
pub(in crate::leaves) struct FilteredTrees(RwLock<FastMap<TreeId, FilteredTree>>);

#[derive(Debug)]
struct FilteredTree {
    part: KeyPart,
    absent: AtomicU64,
}

impl FilteredTrees {
    pub(in crate::leaves) fn register(&self, tree: TreeId, part: KeyPart) {
        let absent = AtomicU64::new(0);
        self.0.write().entry(tree).or_insert(FilteredTree { part, absent }).part = part;
    }

    pub(in crate::leaves) fn forget(&self, tree: TreeId) {
        self.0.write().remove(&tree);
    }

    /// Counts an unsuccessful lookup that a filter of `part` would have answered.
    pub(super) fn note_absent(&self, tree: TreeId, part: KeyPart) {
        if let Some(tree) = self.0.read().get(&tree).filter(|tree| tree.part == part) {
            tree.absent.fetch_add(1, Relaxed);
        }
    }

    /// Returns the part of the keys in a tree's filters, if filters pay for the tree.
    pub(super) fn part_of(&self, tree: TreeId) -> Option<KeyPart> {
        let trees = self.0.read();
        trees.get(&tree).filter(|tree| tree.absent.load(Relaxed) >= ABSENT_MIN).map(|tree| tree.part)
    }
}
