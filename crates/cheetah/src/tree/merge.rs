//! Merging pages that have become small, one pair at a time, and removing a level of the tree.
//!
//! Invariants
//!   I1  A step merges a page into its left neighbour under the same parent, or the only child of
//!       the root into the root. It holds the latches of all these pages exclusively, so no search
//!       finds a key twice or misses one.
//!   I2  The page that was merged into its neighbour is marked dead and then freed. A search that
//!       still reaches it restarts at the root.
//!   I3  An empty leaf is merged with any neighbour under the same parent that has room for the
//!       wider fences. A tree that has lost all its records becomes a single page again.
//! Locks     Gate, structure mutex, latches: left page, right page, then parent; or the root, then
//!           its only child. Neighbours are loaded before the gate is entered. Inside the gate they
//!           are loaded again only if they were evicted or changed meanwhile.

use super::stats::add;
use super::{Path, Tree};
use crate::base::{reach, sound, PageId, Result};
use crate::format::page::{merge_into, merged_bytes, PageMut, PageView};
use crate::pool::{MiniTransaction, PageRef};

/// The maximum number of merges in one call. Further merges are left to the next remove.
const STEPS_MAX: usize = 64;

/// Returns whether a merge should be tried for a leaf that has just lost a record. For a small leaf
/// with full neighbours a merge would be tried in vain after every remove, so it is tried only when
/// the number of records is 0 or a power of two.
pub(super) fn worth_merging(page: &PageView<'_>) -> bool {
    is_small(page) && (page.count() == 0 || page.count().is_power_of_two())
}

/// Returns whether less than two fifths of the page are in use, or the page is a leaf without a
/// record or an inner page with at most one child.
fn is_small(page: &PageView<'_>) -> bool {
    let few = if page.is_leaf() { 0 } else { 1 };
    page.count() <= few || page.used_bytes() * 5 < page.bytes().len() * 2
}

/// The largest size of the merged page, in bytes. It leaves room for inserts: less room if one page
/// has a single record, and no room if one page is empty.
fn merged_bytes_max(left: &PageView<'_>, right: &PageView<'_>) -> usize {
    let page_bytes = left.bytes().len();
    match left.count().min(right.count()) {
        0 => page_bytes,
        1 => page_bytes / 10 * 9,
        _ => page_bytes / 10 * 7,
    }
}

impl Tree {
    /// Merges the leaf of `key`, and the pages above it, with their neighbours as long as they are
    /// small. Call this function outside of a mini-transaction, after a remove that returned
    /// `small`: it opens its own mini-transactions. Loads pages: may do I/O.
    pub fn merge_if_small(&self, path: &mut Path, key: &[u8]) -> Result<()> {
        for _ in 0..STEPS_MAX {
            self.prepare(key, path)?;
            let _neighbours = self.neighbours(path, key)?;
            let is_free = sound!(true, "tree: enter the gate with a latch held");
            let latched = path.leaf().filter(|_| !is_free).cloned();
            let _latch = latched.as_ref().map(PageRef::read);
            let mtr = self.pool.enter();
            let _structure = self.structure.lock();
            self.make_exact(path, key)?;
            if !self.merge_step(&mtr, &path.pages, key)? {
                break;
            }
        }
        Ok(())
    }

    fn neighbours(&self, path: &Path, key: &[u8]) -> Result<Vec<PageRef>> {
        let mut pinned = Vec::new();
        for pair in path.pages.windows(2).rev() {
            if !is_small(&PageView::new(&pair[1].read())) {
                break;
            }
            let pairs = sibling_pairs(&PageView::new(&pair[0].read()), key);
            for (left, right) in pairs {
                for pid in [left, right] {
                    pinned.extend(self.pool.fetch(pid)?);
                }
            }
        }
        Ok(pinned)
    }

    /// Does the lowest possible merge on the exact path `pages`; returns `false` if there is none.
    fn merge_step(&self, mtr: &MiniTransaction<'_>, pages: &[PageRef], key: &[u8]) -> Result<bool> {
        for pair in pages.windows(2).rev() {
            if !is_small(&PageView::new(&pair[1].read())) {
                continue;
            }
            let pairs = sibling_pairs(&PageView::new(&pair[0].read()), key);
            for (left, right) in pairs {
                if let (Some(left), Some(right)) = (self.pool.fetch(left)?, self.pool.fetch(right)?) {
                    if self.merge_pair(mtr, &pair[0], &left, &right) {
                        return Ok(true);
                    }
                }
            }
        }
        match pages {
            [root, child, ..] => Ok(self.collapse_root(mtr, root, child)),
            _ => Ok(false),
        }
    }

    /// Moves all entries of `right` into `left` if they fit. Returns whether they fit.
    fn merge_pair(
        &self,
        mtr: &MiniTransaction<'_>,
        parent: &PageRef,
        left: &PageRef,
        right: &PageRef,
    ) -> bool {
        let mut left = left.write(mtr);
        let mut right = right.write(mtr);
        let (left_view, right_view) = (PageView::new(&left), PageView::new(&right));
        if merged_bytes(left_view, right_view) > merged_bytes_max(&left_view, &right_view) {
            return false;
        }
        let mut merged = vec![0; left.len()];
        if merge_into(left_view, right_view, &mut merged).is_err() {
            return false;
        }
        let mut parent = parent.write(mtr);
        let posted = PageView::new(&parent).search(right_view.low());
        let slot = posted.expect("I1 of splits: every page has a separator in its parent");
        reach::mark(if left_view.is_leaf() { "merge_leaf" } else { "merge_inner" });
        left.copy_from_slice(&merged);
        PageMut::new(&mut right).set_dead();
        PageMut::new(&mut parent).remove(slot);
        let freed = right.pid();
        drop((left, right, parent));
        self.pool.free(mtr, freed);
        add(&self.stats.merges);
        true
    }

    /// Moves `child` to the root if it is the root's only child. Returns whether it did.
    fn collapse_root(&self, mtr: &MiniTransaction<'_>, root: &PageRef, child: &PageRef) -> bool {
        let mut root = root.write(mtr);
        if PageView::new(&root).count() != 1 {
            return false;
        }
        let mut child = child.write(mtr);
        reach::mark("collapse_root");
        root.copy_from_slice(&child);
        PageMut::new(&mut child).set_dead();
        let freed = child.pid();
        drop((root, child));
        self.pool.free(mtr, freed);
        add(&self.stats.merges);
        true
    }
}

/// The child that covers `key`, paired with its right and its left neighbour under `parent`.
fn sibling_pairs(parent: &PageView<'_>, key: &[u8]) -> Vec<(PageId, PageId)> {
    let slot = parent.find_child(key);
    let lefts = [Some(slot), slot.checked_sub(1)].into_iter().flatten();
    lefts
        .filter(|left| left + 1 < parent.count())
        .map(|left| (parent.child(left), parent.child(left + 1)))
        .collect()
}
