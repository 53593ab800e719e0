//! What the pool knows about each tree: how its pages are encoded, and how much it occupies.

use super::image_work::WorkCounters;
use crate::base::TreeId;
use crate::format::image::Compression;
use crate::format::row::RowShape;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// A tree as the pool sees it.
#[derive(Clone, Debug)]
pub struct TreeDef {
    /// Owner of the pages.
    pub id: TreeId,
    /// The columns of the rows in its leaves.
    pub shape: RowShape,
    /// How its images are compressed.
    pub compression: Compression,
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
    def: RwLock<Option<Arc<TreeDef>>>,
    pages: AtomicU64,
    stored_bytes: AtomicU64,
    pub(super) work: WorkCounters,
}

impl TreeState {
    pub(super) fn def(&self) -> Option<Arc<TreeDef>> {
        self.def.read().clone()
    }

    pub(super) fn bytes(&self) -> TreeBytes {
        TreeBytes { pages: self.pages.load(Relaxed), stored_bytes: self.stored_bytes.load(Relaxed) }
    }

    pub(super) fn add_page(&self) {
        self.pages.fetch_add(1, Relaxed);
    }

    pub(super) fn remove_page(&self) {
        self.pages.fetch_sub(1, Relaxed);
    }

    pub(super) fn add_stored(&self, bytes: u32) {
        self.stored_bytes.fetch_add(bytes.into(), Relaxed);
    }

    pub(super) fn subtract_stored(&self, bytes: u32) {
        self.stored_bytes.fetch_sub(bytes.into(), Relaxed);
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
