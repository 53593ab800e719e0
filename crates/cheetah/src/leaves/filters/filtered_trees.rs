//! By which part of their keys trees are filtered, and whether that is worth it.

use super::KeyPart;
use crate::base::hash::FastMap;
use crate::base::TreeId;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keys that were looked for in vain in images of a tree, from which on its leaves get filters.
const ABSENT_MIN: u64 = 32;

/// The trees that are registered.
#[derive(Default, Debug)]
pub(in crate::leaves) struct FilteredTrees(RwLock<FastMap<TreeId, FilteredTree>>);

#[derive(Debug)]
struct FilteredTree {
    part: KeyPart,
    /// Keys that were looked for in images in vain.
    absent: AtomicU64,
}

impl FilteredTrees {
    /// Tells by which part of its keys a tree is filtered.
    pub(in crate::leaves) fn register(&self, tree: TreeId, part: KeyPart) {
        let absent = AtomicU64::new(0);
        self.0.write().entry(tree).or_insert(FilteredTree { part, absent }).part = part;
    }

    pub(in crate::leaves) fn forget(&self, tree: TreeId) {
        self.0.write().remove(&tree);
    }

    /// Counts a key, or a part of one, that was looked for in vain where a filter would know it.
    pub(super) fn note_absent(&self, tree: TreeId, part: KeyPart) {
        if let Some(tree) = self.0.read().get(&tree).filter(|tree| tree.part == part) {
            tree.absent.fetch_add(1, Relaxed);
        }
    }

    /// The part of its keys that a tree is filtered by, if that is worth it.
    pub(super) fn part_of(&self, tree: TreeId) -> Option<KeyPart> {
        let trees = self.0.read();
        trees.get(&tree).filter(|tree| tree.absent.load(Relaxed) >= ABSENT_MIN).map(|tree| tree.part)
    }
}
