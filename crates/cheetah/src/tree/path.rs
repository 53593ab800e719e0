//! The pinned pages from the root to one leaf.
//!
//! A path is the caller's: it is filled by [`Tree::prepare`](super::Tree::prepare) before the gate
//! is entered and used inside. It keeps its pages pinned until it is prepared for another key or
//! released, so that the next operation on the same leaf needs no descent. What it pins may be out
//! of date: every use checks again.

use crate::base::TreeId;
use crate::pool::PageRef;

/// A reusable, pinned way to a leaf.
#[derive(Default)]
pub struct Path {
    pub(super) tree: TreeId,
    /// Root first, leaf last; empty before the first use and after an error.
    pub(super) pages: Vec<PageRef>,
}

impl Path {
    /// Unpins everything; to be called when a statement ends.
    pub fn release(&mut self) {
        self.pages.clear();
    }

    /// Forgets the pages of another tree.
    pub(super) fn belong_to(&mut self, tree: TreeId) {
        if self.tree != tree {
            self.pages.clear();
            self.tree = tree;
        }
    }

    pub(super) fn leaf(&self) -> Option<&PageRef> {
        self.pages.last()
    }
}
