//! Freeing the pages of dropped trees: by walks of the background, and at once where a small
//! temporary table goes.
//!
//! Invariants
//!   I1  The pages of a tree are freed under the lock of [`Dropping`], and a tree that is in a walk
//!       is freed by that walk alone: no page is freed twice.
//!   I2  A tree is on the catalog's list until its last page is free.
//! Locks     that of definitions, where a table is dropped; then that of [`Dropping`]; then the
//!           catalog's.

use crate::base::{PageId, Result, TreeId};
use crate::pool::Pool;
use crate::table::definitions::catalog::Catalog;
use std::collections::HashSet;

/// Pages that a walk frees in one step.
const PAGES_PER_STEP: usize = 256;
/// Pages of a temporary table up to which they are freed by whoever drops it: they are in the
/// processor's cache, and the next temporary table gets them there.
const PAGES_AT_ONCE_MAX: u64 = 8;

/// A walk over pages for those of dropped trees.
#[derive(Default, Debug)]
pub(crate) struct Dropping {
    /// Those whose pages are freed by this walk; none while there is no walk.
    trees: HashSet<TreeId>,
    next: PageId,
}

impl Dropping {
    /// One step of a walk that frees the pages of dropped trees; whether there may be more to do.
    /// Does I/O where changes wait for a page.
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

    /// Frees the pages of trees that have just been dropped with a temporary table, if they are few
    /// and nobody uses them. Otherwise, and after an error, the background does. Does I/O where
    /// changes wait for a page, or where a checkpoint writes it.
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
