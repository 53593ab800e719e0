//! The pinned pages from the root to one leaf, or the knowledge needed to change it without reading
//! it.
//!
//! A path is the caller's: it is filled by [`Tree::prepare`](super::Tree::prepare) before the gate
//! is entered and used inside. It keeps its pages pinned until it is prepared for another key or
//! released, so that the next operation on the same leaf needs no descent. The pinned pages may be
//! out of date: every use checks again.

use crate::base::{sound, TreeId};
use crate::format::page::{cell_bytes, RecordCopy, RecordRef};
use crate::leaves::{Expect, Reservation, Ticket};
use crate::pool::PageRef;

/// A reusable way to a leaf: pinned pages, or a ticket for a leaf that is not in memory.
#[derive(Default, Debug)]
pub struct Path {
    pub(super) tree: TreeId,
    /// Root first, leaf last; empty before the first use and after an error.
    pub(super) pages: Vec<PageRef>,
    /// Instead of a leaf.
    pub(super) ticket: KeyTicket,
    /// Where in the leaf the last search has found its key: the next one looks there first.
    pub(super) near: usize,
}

/// The knowledge about the record of a ticket.
#[derive(Debug)]
pub(super) enum Basis {
    /// Nobody has looked.
    Unseen(Expect),
    /// It was found among what is pending.
    Pending,
    /// The image of the leaf was searched: the record of the key there, if there is one.
    Image(Option<RecordCopy>),
}

impl Default for Basis {
    fn default() -> Self {
        Basis::Unseen(Expect::New)
    }
}

/// The record that a search has found in the image of a cold leaf, on its way from one path to
/// another.
#[derive(Debug)]
pub struct Peeked {
    tree: TreeId,
    ticket: KeyTicket,
}

/// The right to have a change wait for its leaf, and of which key (B11).
#[derive(Default, Debug)]
pub(super) struct KeyTicket {
    pub(super) ticket: Option<Ticket>,
    pub(super) key: Vec<u8>,
    pub(super) basis: Basis,
    /// The place of the change, inside a mini-transaction.
    pub(super) reservation: Option<Reservation>,
    /// Bytes in the leaf of the record that the last look has found.
    pub(super) cell_bytes: usize,
}

impl KeyTicket {
    /// Becomes the ticket for a change of `key`.
    pub(super) fn set(&mut self, ticket: Ticket, key: &[u8], basis: Basis) {
        self.ticket = Some(ticket);
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.basis, self.cell_bytes) = (basis, 0);
    }

    pub(super) fn for_key(&self, key: &[u8]) -> Option<&Ticket> {
        let is_other = sound!(self.key != key, "tree: take a ticket for another key");
        self.ticket.as_ref().filter(|_| !is_other)
    }

    /// By how many bytes the leaf grows at most when the key has `record`; by none when it has
    /// none.
    pub(super) fn growth_bytes(&self, record: Option<RecordRef<'_>>) -> usize {
        let found_bytes = match sound!(true, "buffering: count no room for a longer record") {
            true => self.cell_bytes,
            false => usize::MAX,
        };
        record.map_or(0, |record| cell_bytes(self.key.len(), &record).saturating_sub(found_bytes))
    }
}

impl Path {
    /// Unpins everything; to be called when a statement ends.
    pub fn release(&mut self) {
        self.ticket.ticket = None;
        self.pages.clear();
    }

    /// Whether it pins a leaf.
    pub fn has_leaf(&self) -> bool {
        self.leaf().is_some()
    }

    /// Forgets what is known of a leaf that is not in memory.
    pub fn forget_ticket(&mut self) {
        self.ticket.ticket = None;
    }

    /// Gives away what the last search has found in the image of a cold leaf, if it did.
    pub fn take_peeked(&mut self) -> Option<Peeked> {
        let is_peeked = matches!(self.ticket.basis, Basis::Image(_)) && self.ticket.ticket.is_some();
        is_peeked.then(|| Peeked { tree: self.tree, ticket: std::mem::take(&mut self.ticket) })
    }

    /// Takes over what another search has found: a search for the same key need not read the image
    /// again, as long as it is the newest one and has no frame.
    pub fn set_peeked(&mut self, peeked: Peeked) {
        self.release();
        (self.tree, self.ticket) = (peeked.tree, peeked.ticket);
    }

    /// Unpins its pages, and keeps what it knows of a cold leaf.
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
