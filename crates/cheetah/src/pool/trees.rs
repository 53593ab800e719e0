//! What the pool knows about each tree: how its pages are encoded, and how much it occupies.

use super::PageClass;
use crate::base::TreeId;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// A tree as the pool sees it.
#[derive(Clone, Debug)]
pub struct TreeDef {
    /// Owner of the pages.
    pub id: TreeId,
    /// Class of its tree pages.
    pub class: PageClass,
}

/// What a tree occupies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TreeBytes {
    /// Pages, in memory or on disk.
    pub pages: u64,
    /// Bytes of their newest images on disk.
    pub stored_bytes: u64,
}

/// A tree's definition, when registered, and its counters.
#[derive(Default, Debug)]
pub(super) struct TreeState {
    pub(super) def: RwLock<Option<Arc<TreeDef>>>,
    pub(super) pages: AtomicU64,
    pub(super) stored_bytes: AtomicU64,
}

impl TreeState {
    pub(super) fn bytes(&self) -> TreeBytes {
        TreeBytes { pages: self.pages.load(Relaxed), stored_bytes: self.stored_bytes.load(Relaxed) }
    }
}

/// All trees that own pages or are registered.
#[derive(Default, Debug)]
pub(super) struct Trees(RwLock<HashMap<TreeId, Arc<TreeState>>>);

impl Trees {
    /// The state of a tree, created when it is new.
    pub(super) fn get(&self, tree: TreeId) -> Arc<TreeState> {
        if let Some(state) = self.0.read().get(&tree) {
            return state.clone();
        }
        self.0.write().entry(tree).or_default().clone()
    }

    pub(super) fn register(&self, def: TreeDef) {
        let state = self.get(def.id);
        *state.def.write() = Some(Arc::new(def));
    }

    pub(super) fn forget(&self, tree: TreeId) {
        self.0.write().remove(&tree);
    }
}
