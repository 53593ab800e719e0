//! Frees the pages of dropped trees: by background walks over the page table, or at once for a
//! small temporary table.
//!
//! Invariants
//!   I1  The pages of a tree are freed under the lock of [`Dropping`], and a tree that belongs to a
//!       walk is freed by that walk alone. So no page is freed twice.
//!   I2  A tree stays on the catalog's list until its last page is free.
//! Locks     the DDL lock, when a table is dropped; then the lock of [`Dropping`]; then the
//!           catalog's lock.

use crate::base::{PageId, Result, TreeId};
use crate::pool::Pool;
use crate::table::definitions::catalog::Catalog;
use std::collections::HashSet;

/// Pages that a walk frees in one step.
const PAGES_PER_STEP: usize = 256;
/// The thread that drops a temporary table frees it if it has no more pages: the next temporary
/// table reuses them from the processor's cache.
const PAGES_AT_ONCE_MAX: u64 = 8;

/// A walk over all pages that frees the pages of dropped trees.
#[derive(Default, Debug)]
pub(crate) struct Dropping {
    /// Empty between walks.
    trees: HashSet<TreeId>,
    next: PageId,
}

impl Dropping {
    /// Returns whether there may be more to do. Does I/O for pages with pending changes.
    pub(crate) fn step(&mut self, catalog: &Catalog, pool: &Pool) -> Result<bool> {
        if self.trees.is_empty() {
            *self = Self { trees: catalog.trees_to_free(), next: PageId::NONE };
        }
        if self.trees.is_empty() {
            return Ok(false);
        }
        match pool.free_trees_step(&self.trees, self.next, PAGES_PER_STEP)? {
            Some(next) => self.next = next,
            None => self.trees.drain().for_each(|tree| catalog.tree_is_free(tree)),
        }
        Ok(true)
    }

    /// Frees the pages of trees just dropped with a temporary table, if they are few and no thread
    /// uses the trees. Otherwise, and after an error, the background frees them. Does I/O for pages
    /// with pending changes, or pages that a checkpoint is writing.
    pub(crate) fn free_at_once(&mut self, trees: &HashSet<TreeId>, catalog: &Catalog, pool: &Pool) {
        let pages = trees.iter().map(|tree| pool.tree_bytes(*tree).pages).sum::<u64>();
        let is_free = |tree: &TreeId| !self.trees.contains(tree) && catalog.may_be_freed(*tree);
        if pages > PAGES_AT_ONCE_MAX || !trees.iter().all(is_free) {
            return;
        }
        if let Ok(None) = pool.free_trees_step(trees, PageId::NONE, usize::MAX) {
            trees.iter().for_each(|tree| catalog.tree_is_free(*tree));
        }
    }
}
