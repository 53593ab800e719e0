//! Leaves: pages of trees that can be read and changed without a frame.
//!
//! A leaf without a frame is *cold*. A record can be read from its image ([`peek`]), a filter may
//! show that the leaf lacks a key ([`filters`]), and changes may be *pending* in memory until the
//! leaf receives a frame or a new image (decisions
//! [40](../../../../docs/developers/decisions/0040-buffered-inserts.md) and
//! [41](../../../../docs/developers/decisions/0041-changes-without-their-leaf.md)). Status
//! variables call pending changes entries. The pool below moves pages and does not interpret keys.
//! It calls [`ColdLeaves`] through [`BesideFrames`](crate::pool::BesideFrames). Trees above call
//! [`Leaves`].
//!
//! This module has many files: one for each step in the life of a pending change, and the parts
//! that the steps share.
//!
//! Invariants
//!   B1  Pending changes of a page change under the lock of its page table entry, like its
//!       residence and its location. They exist only while the page has no frame. They are removed
//!       when its frame is published, when a new image contains them, or when they are dropped.
//!   B2  A ticket names an image. It is made under the shared latch of the parent that names the
//!       page, or from an image whose own fences include the key. The ticket is valid while this
//!       image is the newest and the page has no frame. This is enough: fences change only in
//!       frames, a changed frame receives a new location before it is evicted, and locations are
//!       never reused.
//!   B3  Pending changes fit into their leaf: the entry of an evicted leaf notes the leaf's free
//!       bytes. A new record counts as if its key shared no prefix with the page. A record that
//!       replaces another record counts with the difference in length. No changes are pending for a
//!       leaf whose free bytes are unknown. For a leaf that is known to be full, changes that need
//!       no additional bytes may be pending.
//!   B4  A frame that receives pending changes is dirty in their epoch before other threads can see
//!       the frame. If the changes belong to two epochs, the image with the changes of the ended
//!       epoch is written first.
//!   B5  A page with pending changes of an epoch is in the set `pending` of the epoch's changes.
//!       The page moves from there to `dirty`, or is written, and never moves back. So a walk over
//!       both sets begins with `pending`.
//!   B6  An image with pending changes moves only in their epoch (C1).
//!
//!   B7 to B12, B14 to B20  See docs/developers/leaves.md.
//!   V1 to V8  See [`save`].
//! Locks     After the lock of the page's entry: the order of the pages, then a shard of the map.
//!           The order is never locked while a shard is locked. The mutex of small leaves is
//!           innermost. For the lock of the list of files see [`save`].

mod apply;
mod beside;
mod cells;
pub mod change_file;
mod copy;
mod filters;
mod fold;
mod in_memory;
mod peek;
mod pending;
mod reserve;
mod restore;
mod save;
mod scrub;
mod small;
#[cfg(test)]
pub(crate) mod testing;

pub use filters::{KeyPart, Known};
pub use peek::{Fetched, InImage, Stored, Unloaded};
pub use pending::Size;
pub use reserve::{Expect, Reservation, Ticket};
pub(crate) use save::Saving;

use crate::base::latency::{Latency, LatencyCounts};
use crate::base::{Config, TreeId};
use crate::memory::MemoryBudget;
use crate::pool::{Pool, TreeDef};
use filters::{FilteredTrees, KeyFilters};
use parking_lot::Mutex;
use pending::Pending;
use save::SavedFiles;
use scrub::ScrubbedFiles;
use small::SmallLeaves;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// The pages of trees: a pool, and the state of leaves without a frame.
#[derive(Clone, Debug)]
pub struct Leaves {
    pool: Arc<Pool>,
    cold: Arc<ColdLeaves>,
}

/// The state of leaves without a frame, and their pending changes. Its methods take the leaves'
/// pool.
#[derive(Debug)]
pub struct ColdLeaves {
    pending: Pending,
    filters: KeyFilters,
    filtered_trees: FilteredTrees,
    small: SmallLeaves,
    files: Mutex<SavedFiles>,
    scrubbed: Mutex<ScrubbedFiles>,
    /// See [`Leaves::take_unread_for_damaged`].
    takes_unread_for_damaged: AtomicBool,
    folds: Latency,
}

impl ColdLeaves {
    /// Creates the state for a pool that has no frames yet.
    pub fn new(memory: &Arc<MemoryBudget>, config: &Config) -> Arc<Self> {
        Arc::new(Self {
            pending: Pending::new(memory, config),
            filters: KeyFilters::new(memory),
            filtered_trees: FilteredTrees::default(),
            small: SmallLeaves::default(),
            files: Mutex::default(),
            scrubbed: Mutex::default(),
            takes_unread_for_damaged: AtomicBool::new(false),
            folds: Latency::default(),
        })
    }
}

impl Leaves {
    /// Creates the leaves of `pool`, which was opened with `cold` as its [`BesideFrames`].
    pub fn new(pool: Arc<Pool>, cold: Arc<ColdLeaves>) -> Self {
        Self { pool, cold }
    }

    /// The pool of the pages.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Registers how pages of a tree are encoded, and which part of its keys filters contain.
    pub fn register_tree(&self, def: TreeDef, filtered_by: KeyPart) {
        self.cold.filtered_trees.register(def.id, filtered_by);
        self.pool.register_tree(def);
    }

    /// Forgets a tree whose pages have all been freed.
    pub fn forget_tree(&self, tree: TreeId) {
        self.cold.filtered_trees.forget(tree);
        self.pool.forget_tree(tree);
    }

    /// Sets whether changes may become pending. If not, each change reads its leaf.
    pub fn set_buffering(&self, is_on: bool) {
        self.cold.pending.set_on(is_on);
        if !is_on {
            self.cold.filters.clear();
        }
    }

    /// The latencies of folds, including the read and the write of the page.
    pub fn folds(&self) -> LatencyCounts {
        self.cold.folds.counts()
    }

    /// Names and values of counters, for status.
    pub fn status(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.cold.pending.counts().to_vec();
        all.extend(self.cold.filters.counts());
        all
    }
}
