//! The path to one leaf: the pinned pages from the root down, or a ticket if the leaf is cold.
//!
//! A lookup ([`Tree::look_prepared`](super::Tree::look_prepared)),
//! [`Tree::leave_cold`](super::Tree::leave_cold) or [`Tree::prepare`](super::Tree::prepare) fills
//! the caller's path before the caller enters the gate, and a change uses it inside. The path keeps
//! its pages pinned until it is filled for another key or released, so that the next operation on
//! the same leaf needs no descent. The pinned pages may be out of date: every use checks them.

use crate::base::{sound, TreeId};
use crate::format::page::{cell_bytes, RecordCopy, RecordRef};
use crate::leaves::{Expect, Reservation, Ticket};
use crate::pool::PageRef;

/// A reusable path to a leaf: pinned pages, or a ticket for a leaf that is not in memory.
#[derive(Default, Debug)]
pub struct Path {
    pub(super) tree: TreeId,
    /// The pages from the root to the leaf. Empty if there is a ticket, before the first use, and
    /// after an error.
    pub(super) pages: Vec<PageRef>,
    pub(super) ticket: KeyTicket,
    /// The slot in which the last search found its key: the next search begins there.
    pub(super) near: usize,
    /// Whether the leaf was loaded because it had no room for one more pending change.
    pub(super) is_crowded: bool,
}

#[derive(Debug)]
pub(super) enum Basis {
    /// No lookup was made. The change assumes this state of the record.
    Unseen(Expect),
    /// A lookup found a pending change of the key.
    Pending,
    /// A lookup searched the image or the filter of the leaf: the record of the key, if any.
    Image(Option<RecordCopy>),
}

impl Default for Basis {
    fn default() -> Self {
        Basis::Unseen(Expect::New)
    }
}

/// A record found in the image of a cold leaf, on its way from one path to another.
#[derive(Debug)]
pub struct Peeked {
    tree: TreeId,
    ticket: KeyTicket,
}

/// The right to make a change of one key pending for its leaf (leaves::B11).
#[derive(Default, Debug)]
pub(super) struct KeyTicket {
    pub(super) ticket: Option<Ticket>,
    pub(super) key: Vec<u8>,
    pub(super) basis: Basis,
    /// The reserved space of the change, inside a mini-transaction.
    pub(super) reservation: Option<Reservation>,
    /// The number of bytes that the record found by the last lookup takes in the leaf.
    pub(super) cell_bytes: usize,
}

impl KeyTicket {
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

    /// An upper bound of the bytes by which the leaf grows if `record` becomes the record of the
    /// key, or if the record is removed.
    pub(super) fn growth_bytes(&self, record: Option<RecordRef<'_>>) -> usize {
        let found_bytes = match sound!(true, "buffering: count no room for a longer record") {
            true => self.cell_bytes,
            false => usize::MAX,
        };
        record.map_or(0, |record| cell_bytes(self.key.len(), &record).saturating_sub(found_bytes))
    }
}

impl Path {
    /// Unpins all pages and drops the ticket. Call it when a statement ends.
    pub fn release(&mut self) {
        self.ticket.ticket = None;
        self.pages.clear();
    }

    /// Returns whether the path pins a leaf.
    pub fn has_leaf(&self) -> bool {
        self.leaf().is_some()
    }

    /// Drops the ticket.
    pub fn forget_ticket(&mut self) {
        self.ticket.ticket = None;
    }

    /// Takes out of the path the record that the last search found in the image of a cold leaf.
    pub fn take_peeked(&mut self) -> Option<Peeked> {
        let is_peeked = matches!(self.ticket.basis, Basis::Image(_)) && self.ticket.ticket.is_some();
        is_peeked.then(|| Peeked { tree: self.tree, ticket: std::mem::take(&mut self.ticket) })
    }

    /// Puts a record that another search found into the path. While the image is the newest and the
    /// leaf has no frame, a search for the same key need not read the image again.
    pub fn set_peeked(&mut self, peeked: Peeked) {
        self.release();
        (self.tree, self.ticket) = (peeked.tree, peeked.ticket);
    }

    /// Unpins the pages and keeps the ticket.
    pub fn unpin(&mut self) {
        self.pages.clear();
    }

    /// Makes the path belong to `tree`: releases it first if it belongs to another tree.
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
