//! Leaves: pages of trees that may be known, and changed, without a frame.
//!
//! A leaf without a frame is *cold*. A record of it can be taken out of its image ([`peek`]), a
//! filter may say that it lacks a key ([`filters`]), and changes of it may be *pending* in memory
//! until it gets a frame or a new image (decisions
//! [40](../../../../docs/developers/decisions/0040-buffered-inserts.md) and
//! [41](../../../../docs/developers/decisions/0041-changes-without-their-leaf.md)). Status
//! variables call pending changes entries. The pool below moves pages and knows no keys; it calls
//! [`ColdLeaves`] through [`BesideFrames`](crate::pool::BesideFrames). Trees above ask [`Leaves`].
//!
//! Many files: one for each step in the life of a pending change, and the parts that the steps
//! share.
//!
//! Invariants
//!   B1  Pending changes of a page change under the lock of its page table entry, as its residence
//!       and its location do. They are there only while the page has no frame, and leave when its
//!       frame is published or a new image has them, or when they are given up.
//!   B2  A ticket is made under the shared latch of the parent that names the page, or from an
//!       image whose own fences have the key, and names the image. It is good as long as that is
//!       the newest image, and the page has no frame: fences change in frames only, a changed frame
//!       gets a new location before it goes, and locations are never given out twice.
//!   B3  They fit: a leaf that leaves memory notes how much room it has. A new record counts as if
//!       its key had no prefix in common with the page, one in place of another by what it is
//!       longer. Nothing is pending for a leaf whose room is not known. A leaf that is full is
//!       known to be full: changes that need no room may be pending for it.
//!   B4  A frame that gets them is dirty in their epoch before others can see it. Of changes of two
//!       epochs, the image with those of the ended one is written first.
//!   B5  A page with changes of an epoch is in `pending` of its changes. It goes from there to
//!       `dirty`, or is written, and never back: a walk through both begins with `pending`.
//!   B6  The image under changes moves only in their epoch (C1).
//!   B8, B10, B14 to B20  See docs/developers/leaves.md. V1 to V8  See [`save`].
//! Locks     after the lock of the page's entry: the order in which pages have come, then a shard
//!           of the map. Never the order with a shard held. Small leaves and the list of files
//!           have mutexes of their own, with nothing under them.

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

/// The pages of trees: those of a pool, and the knowledge of leaves without a frame.
#[derive(Clone, Debug)]
pub struct Leaves {
    pool: Arc<Pool>,
    cold: Arc<ColdLeaves>,
}

/// The knowledge of leaves without a frame, and the changes pending for them. Its calls are given
/// the pool that they are the leaves of.
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
    /// Of a pool without frames.
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
    /// The pages of `pool`, which was opened with `cold` beside its frames.
    pub fn new(pool: Arc<Pool>, cold: Arc<ColdLeaves>) -> Self {
        Self { pool, cold }
    }

    /// The pool of the pages.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Tells how pages of a tree are encoded, and by which part of its keys it is filtered.
    pub fn register_tree(&self, def: TreeDef, filtered_by: KeyPart) {
        self.cold.filtered_trees.register(def.id, filtered_by);
        self.pool.register_tree(def);
    }

    /// Forgets a tree whose pages have all been freed.
    pub fn forget_tree(&self, tree: TreeId) {
        self.cold.filtered_trees.forget(tree);
        self.pool.forget_tree(tree);
    }

    /// Whether changes may be pending, instead of having their leaf read.
    pub fn set_buffering(&self, is_on: bool) {
        self.cold.pending.set_on(is_on);
        if !is_on {
            self.cold.filters.clear();
        }
    }

    /// How long it has taken to fold what is pending for a leaf, page read and write included.
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
