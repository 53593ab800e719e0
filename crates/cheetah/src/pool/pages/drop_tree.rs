//! Dropping trees: one walk frees all pages of several trees, in small mini-transactions.

use crate::base::{PageId, Result, TreeId};
use crate::pool::Pool;
use std::collections::HashSet;

/// The maximum number of page table entries checked in one step, so that a step stays short when
/// few pages match.
const LOOKS_MAX: u64 = 100_000;
/// The maximum number of pages freed in one mini-transaction.
const ACTION_PAGES: usize = 64;

impl Pool {
    /// Frees up to about `pages_max` pages of `trees`, from page number `from` upwards. The trees
    /// must no longer be in use. Returns the number at which to continue, or `None` if no page
    /// remains. After a crash the walk can be repeated from the start.
    pub fn free_trees_step(
        &self,
        trees: &HashSet<TreeId>,
        from: PageId,
        pages_max: usize,
    ) -> Result<Option<PageId>> {
        self.health.check()?;
        let (pids, next) = self.pages_of(trees, from, pages_max);
        for batch in pids.chunks(ACTION_PAGES) {
            // This runs outside of the mini-transaction, because a read inside would delay an epoch
            // switch (B7).
            batch.iter().for_each(|pid| {
                self.beside.before_free(self, *pid);
            });
            let mtr = self.enter();
            batch.iter().for_each(|pid| self.free(&mtr, *pid));
        }
        Ok(next)
    }

    /// Returns the pages of a tree with the highest numbers, at most `pages_max`, in ascending
    /// order. These are probably the newest pages. Checks only the last `looks_max` page numbers.
    pub(in crate::pool) fn newest_pages_of(
        &self,
        tree: TreeId,
        pages_max: usize,
        looks_max: usize,
    ) -> Vec<PageId> {
        let end = self.numbers.lock().end();
        let is_of = |pid: &PageId| {
            let entry = self.table.existing(*pid);
            entry.is_some_and(|entry| entry.is_used() && entry.tree() == tree)
        };
        let looked_at = (1..end.0).rev().take(looks_max).map(PageId);
        let mut found: Vec<_> = looked_at.filter(is_of).take(pages_max).collect();
        found.reverse();
        found
    }

    /// Returns up to `pages_max` pages of `trees` from page number `from` upwards, and the number
    /// at which to continue, after a bounded number of checks. No page may be added to the trees
    /// meanwhile. Checks only the range of numbers that the trees have had, so a small tree costs
    /// little in a large database.
    pub(in crate::pool) fn pages_of(
        &self,
        trees: &HashSet<TreeId>,
        from: PageId,
        pages_max: usize,
    ) -> (Vec<PageId>, Option<PageId>) {
        let states = trees.iter().filter_map(|tree| self.trees.known(*tree)).collect::<Vec<_>>();
        let left = states.iter().map(|state| state.pages_count()).sum::<u64>();
        let first = states.iter().map(|state| *state.numbers().start()).min().unwrap_or(PageId(u64::MAX));
        let last = states.iter().map(|state| *state.numbers().end()).max().unwrap_or(PageId::NONE);
        let start = from.max(first).0;
        let mut found = Vec::new();
        for number in start..=last.0 {
            if found.len() as u64 >= left {
                break;
            }
            if found.len() >= pages_max || number - start >= LOOKS_MAX {
                return (found, Some(PageId(number)));
            }
            let entry = self.table.existing(PageId(number));
            if entry.is_some_and(|entry| entry.is_used() && trees.contains(&entry.tree())) {
                found.push(PageId(number));
            }
        }
        (found, None)
    }
}
