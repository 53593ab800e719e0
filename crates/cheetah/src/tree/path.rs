//! The way to one leaf: the pinned pages from the root down, or a ticket if the leaf is cold.
//!
//! The caller owns the path. A lookup ([`Tree::look_prepared`](super::Tree::look_prepared)),
//! [`Tree::leave_cold`](super::Tree::leave_cold) or [`Tree::prepare`](super::Tree::prepare) fills
//! it before the caller enters the gate, and a change uses it inside. The path keeps its pages
//! pinned until it is filled for another key or released, so that the next operation on the same
//! leaf needs no descent. The pinned pages may be out of date: every use checks them.

use super::ticket::KeyTicket;
use crate::base::TreeId;
use crate::pool::PageRef;

/// A reusable way to a leaf: pinned pages, or a ticket for a leaf that is not in memory.
#[derive(Default, Debug)]
pub struct Path {
    pub(super) tree: TreeId,
    /// Root first, leaf last. Empty if there is a ticket, before the first use, and after an error.
    pub(super) pages: Vec<PageRef>,
    /// Instead of a leaf.
    pub(super) ticket: KeyTicket,
    /// The slot in which the last search found its key: the next search looks there first.
    pub(super) near: usize,
}

impl Path {
    /// Unpins everything; to be called when a statement ends.
    pub fn release(&mut self) {
        self.ticket.ticket = None;
        self.pages.clear();
    }

    /// Returns whether it pins a leaf.
    pub fn has_leaf(&self) -> bool {
        self.leaf().is_some()
    }

    /// Unpins its pages, and keeps its ticket.
    pub fn unpin(&mut self) {
        self.pages.clear();
    }

    /// Forgets the pages of another tree.
    pub(super) fn belong_to(&mut self, tree: TreeId) {
        if self.tree != tree {
            self.release();
            self.tree = tree;
        }
    }

    pub(super) fn leaf(&self) -> Option<&PageRef> {
        self.pages.last()
    }
}
