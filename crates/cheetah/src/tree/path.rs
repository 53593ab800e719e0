//! The pinned pages from the root to one leaf.
//!
//! A path is the caller's: it is filled by [`Tree::prepare`](super::Tree::prepare) before the gate
//! is entered and used inside. It keeps its pages pinned until it is prepared for another key or
//! released, so that the next operation on the same leaf needs no descent. What it pins may be out
//! of date: every use checks again.

use crate::base::{planted, TreeId};
use crate::pool::{PageRef, Ticket};

/// A reusable, pinned way to a leaf.
#[derive(Default)]
pub struct Path {
    pub(super) tree: TreeId,
    /// Root first, leaf last; empty before the first use and after an error.
    pub(super) pages: Vec<PageRef>,
    /// Instead of a leaf.
    pub(super) ticket: KeyTicket,
}

/// The right to have an entry wait for its leaf, and for which key (B11).
#[derive(Default, Debug)]
pub(super) struct KeyTicket {
    pub(super) ticket: Option<Ticket>,
    pub(super) key: Vec<u8>,
}

impl KeyTicket {
    pub(super) fn for_key(&self, key: &[u8]) -> Option<&Ticket> {
        let is_same = self.key == key || planted::is_on("tree: take a ticket for another key");
        self.ticket.as_ref().filter(|_| is_same)
    }
}

impl Path {
    /// Unpins everything; to be called when a statement ends.
    pub fn release(&mut self) {
        self.ticket.ticket = None;
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
