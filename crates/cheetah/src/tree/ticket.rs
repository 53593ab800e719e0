//! Changing a record whose leaf stays out of memory: tickets and reservations.
//!
//! Invariants
//!   I1  A change becomes pending only with a ticket for its key. Since the lookup, the caller must
//!       have kept other transactions and purge away from that key, by a lock on the row and its
//!       purge latch.
//!   I2  Inside a mini-transaction the ticket alone is not enough: [`Tree::reserve`] turns it into
//!       a reservation (leaves::B10).

use super::descend::{Above, Target};
use super::path::Basis;
use super::{Path, Tree};
use crate::base::{reach, sound, Result};
use crate::format::page::{cell_bytes, BufferedChange, RecordRef, VERSION_BYTES};
use crate::leaves::Expect;
use crate::pool::MiniTransaction;

impl Tree {
    /// Gives `path` a ticket for a change that writes `record`, or removes the record of `key`, if
    /// the leaf is cold and the change may become pending. `expect` is the state of the record that
    /// the change assumes. Returns whether `path` has a ticket now. Loads inner pages: may do I/O.
    pub fn leave_cold(
        &self,
        key: &[u8],
        expect: Expect,
        record: Option<&RecordRef<'_>>,
        path: &mut Path,
    ) -> Result<bool> {
        (path.ticket.ticket, path.is_crowded) = (None, false);
        if !self.leaves.has_tickets() || self.covers(path, key) {
            return Ok(false);
        }
        let record_bytes = record.map_or(0, |record| cell_bytes(key.len(), record));
        let (found_bytes, growth_bytes) = match expect {
            // A delete mark replaces the record and adds a version.
            Expect::Live => (record_bytes, VERSION_BYTES),
            Expect::New | Expect::Any => (0, record_bytes),
        };
        let (ticket, is_crowded) = self.above_leaf(Target::Key(key), &mut (), |above: Above<'_>| {
            let Some(leaf) = above.child() else { return (None, false) };
            let ticket = self.leaves.ticket(leaf, growth_bytes);
            (ticket, ticket.is_none() && self.leaves.lacks_room(leaf, growth_bytes))
        })?;
        path.is_crowded = is_crowded;
        if let Some(ticket) = ticket {
            path.release();
            path.tree = self.def.id;
            path.ticket.set(ticket, key, Basis::Unseen(expect));
            path.ticket.cell_bytes = found_bytes;
        }
        Ok(ticket.is_some())
    }

    /// Pins the pages down to the leaf of `key`, unless `path` has a valid ticket for writing
    /// `record`, or for removing the record of `key`. May do I/O.
    pub fn prepare_change(&self, key: &[u8], record: Option<RecordRef<'_>>, path: &mut Path) -> Result<()> {
        let ticket = path.ticket.for_key(key).filter(|_| path.tree == self.def.id && !path.has_leaf());
        if let Some(ticket) = ticket {
            let growth_bytes = path.ticket.growth_bytes(record);
            if self.leaves.is_good(ticket, growth_bytes) {
                return Ok(());
            }
            path.is_crowded = self.leaves.lacks_room(ticket.pid(), growth_bytes);
        }
        self.prepare(key, path)
    }

    /// Returns `true` if `path` pins a leaf. Otherwise reserves space for writing `record`, or for
    /// removing the record of `key` (leaves::B10), and returns whether the space was available.
    /// Call it inside a mini-transaction, before its first change.
    pub fn reserve(
        &self,
        mtr: &MiniTransaction<'_>,
        key: &[u8],
        record: Option<RecordRef<'_>>,
        path: &mut Path,
    ) -> bool {
        if path.tree == self.def.id && path.has_leaf() {
            return true;
        }
        if path.ticket.ticket.is_some() && !sound!(true, "buffering: ask for room before, and not again") {
            return true;
        }
        let bytes = path.ticket.growth_bytes(record);
        let ticket = path.ticket.for_key(key).filter(|_| path.tree == self.def.id);
        path.ticket.reservation = ticket.and_then(|ticket| self.leaves.reserve(mtr, ticket, bytes));
        path.ticket.reservation.is_some()
    }

    /// Releases the space that [`reserve`](Self::reserve) reserved, if the change did not use it.
    pub fn release_reserved(&self, path: &mut Path) {
        if let Some(reservation) = path.ticket.reservation.take() {
            self.leaves.release(reservation);
        }
    }

    /// Makes a change pending for its leaf if `path` has a reservation for the change. Returns
    /// whether it did so. Drops the ticket if the ticket is for `key`.
    pub(super) fn buffer(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        change: &BufferedChange<'_>,
    ) -> bool {
        if path.tree != self.def.id || path.ticket.for_key(key).is_none() {
            return false;
        }
        path.ticket.ticket = None;
        let Some(reservation) = path.ticket.reservation.take() else {
            self.leaves.note_refused();
            return false;
        };
        let is_buffered = self.leaves.buffer(mtr, reservation, key, change);
        if is_buffered {
            reach::mark("change buffered");
        }
        is_buffered
    }
}
