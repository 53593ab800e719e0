//! Looking at a record, and changing it, while its leaf stays out of memory.
//!
//! Invariants
//!   I1  The record that a look sees stays so while `f` runs: under the latch of the leaf, or under
//!       the lock of its page table entry when it has no frame. A writer of the record needs that
//!       lock.
//!   I2  A change waits for its leaf only with a ticket for its key, and only if the caller keeps
//!       others from that key since the look: by a lock of the row, and by its purge latch.

use super::descend::{Landing, Target};
use super::path::{Basis, KeyTicket};
use super::{Path, Tree};
use crate::base::{reach, sound, PageId, Result};
use crate::format::page::{cell_bytes, BufferedChange, PageView, RecordRef};
use crate::leaves::{Size, Ticket};
use crate::pool::{MiniTransaction, PageClass};

/// The leaf of a key as its parent names it.
struct Child {
    leaf: PageId,
    /// If something waits for it.
    waiting: Option<Ticket>,
    /// If its image certainly lacks the key.
    lacking: Option<Ticket>,
}

impl Tree {
    /// Runs `f` on the record of `key`, or on nothing if it does not exist; leaves `path` prepared
    /// for `key`: with the leaf, or with a ticket. May do I/O.
    pub(super) fn with_record<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: impl FnOnce(Option<RecordRef<'_>>) -> R,
    ) -> Result<R> {
        let mut f = Some(f);
        let mut run = |record: Option<RecordRef<'_>>| f.take().map(|f| f(record)).expect("f runs once");
        let mut near = path.near;
        let pinned = self.with_pinned(key, path, |leaf| {
            let found = leaf.search_near(key, near).inspect(|slot| near = *slot).ok();
            run(found.map(|slot| leaf.record(slot)))
        });
        path.near = near;
        if let Some(result) = pinned {
            return Ok(result);
        }
        path.belong_to(self.def.id);
        let done = match self.leaves.has_tickets() {
            true => self.with_unloaded(key, path, &mut run),
            false => Ok(None),
        };
        match done {
            Ok(Some(result)) => Ok(result),
            Ok(None) => self.with_prepared(key, path, |leaf| run(record_of(leaf, key))),
            Err(error) => {
                path.release();
                Err(error)
            }
        }
    }

    /// Runs `f` on the record of `key` if there is one that is not delete-marked, and its leaf is
    /// not in memory, and need not be. Leaves `path` with what the image has. May do I/O.
    pub fn see_unloaded<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: impl FnOnce(RecordRef<'_>) -> R,
    ) -> Result<Option<R>> {
        if !self.leaves.has_tickets() {
            return Ok(None);
        }
        let mut f = Some(f);
        let mut see = |record: Option<RecordRef<'_>>| {
            let live = record.filter(|record| !record.is_marked())?;
            f.take().map(|f| f(live))
        };
        path.belong_to(self.def.id);
        if let Some(seen) = self.with_peeked(key, path, &mut see)? {
            return Ok(seen);
        }
        let above = self.with_page(Target::Key(key), 1, &mut (), |_, page| self.child_of(page, key))?;
        let Some(Child { leaf, waiting, lacking }) = above else { return Ok(None) };
        if let Some(seen) = self.with_waiting(waiting, key, &mut path.ticket, &mut see)? {
            return Ok(seen);
        }
        if lacking.is_some() {
            return Ok(None);
        }
        match self.look_into_image(leaf, key, &mut path.ticket)? {
            true => Ok(self.with_ticket(key, &mut path.ticket, &mut see)?.flatten()),
            false => Ok(None),
        }
    }

    /// Runs `f` on the record that a search before has found in the image of the leaf, or that is
    /// pending; `None` when `path` knows nothing of `key`, or that is out of date.
    fn with_peeked<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        match matches!(path.ticket.basis, Basis::Image(_)) && path.ticket.for_key(key).is_some() {
            true => self.with_ticket(key, &mut path.ticket, f),
            false => Ok(None),
        }
    }

    /// Runs `f` without the leaf; or with it if it is in memory, or should be. `None` when the leaf
    /// is to be searched for from the root.
    fn with_unloaded<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        if let Some(result) = self.with_peeked(key, path, f)? {
            return Ok(Some(result));
        }
        path.ticket.ticket = None;
        let mut seen = None;
        let above = self.with_page(Target::Key(key), 1, &mut path.pages, |_, page| {
            if page.is_leaf() {
                seen = Some(f(record_of(page, key)));
            }
            self.child_of(page, key)
        })?;
        let Some(Child { leaf, waiting, lacking }) = above else { return Ok(seen) };
        if let Some(result) = self.with_waiting(waiting, key, &mut path.ticket, f)? {
            path.pages.clear();
            return Ok(Some(result));
        }
        if let Some(ticket) = lacking {
            path.ticket.set(ticket, key, Basis::Image(None));
            if let Some(result) = self.with_ticket(key, &mut path.ticket, f)? {
                path.pages.clear();
                return Ok(Some(result));
            }
        }
        if self.look_into_image(leaf, key, &mut path.ticket)? {
            path.pages.clear();
            return self.with_ticket(key, &mut path.ticket, f);
        }
        let Some(page) = self.load(leaf)? else { return Ok(None) };
        let guard = page.read();
        let view = PageView::new(&guard);
        if self.landing(&view, Some(0), Target::Key(key)) != Landing::Here {
            return Ok(None);
        }
        let result = f(record_of(&view, key));
        drop(guard);
        path.pages.push(page);
        Ok(Some(result))
    }

    /// Fills `ticket` with what the image of `leaf`, which should be that of `key`, has.
    fn look_into_image(&self, leaf: PageId, key: &[u8], ticket: &mut KeyTicket) -> Result<bool> {
        let looked = self.leaves.peek_to_change(leaf, |leaf| self.find_in_image(leaf, key))?;
        let Some((image, stored)) = looked else { return Ok(false) };
        ticket.set(self.leaves.ticket_of(&image), key, Basis::Image(stored));
        Ok(true)
    }

    /// Runs `f` on the record that waits for the leaf of the ticket `waiting`, or on nothing if its
    /// removal waits; `None` when nothing waits of that key.
    fn with_waiting<R>(
        &self,
        waiting: Option<Ticket>,
        key: &[u8],
        ticket: &mut KeyTicket,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        let Some(waiting) = waiting else { return Ok(None) };
        let mut bytes = 0;
        let result = self.leaves.with_waiting(&waiting, key, |record, size| {
            bytes = bytes_of(key, record, size);
            f(record)
        })?;
        if result.is_some() {
            reach::mark("record found among what waits");
            ticket.set(waiting, key, Basis::Pending);
            ticket.cell_bytes = bytes;
        }
        Ok(result)
    }

    /// The leaf of `key`, and the knowledge of it; nothing if `page` is that leaf.
    fn child_of(&self, page: &PageView<'_>, key: &[u8]) -> Option<Child> {
        if page.is_leaf() {
            return None;
        }
        let leaf = page.child(Target::Key(key).slot_in(page));
        if !sound!(true, "tree: read a leaf under its parent's latch") {
            drop(self.pool.fetch(leaf));
        }
        let lacking = self.leaves.ticket_of_lacking(leaf, key);
        Some(Child { leaf, waiting: self.leaves.ticket_of_waiting(leaf), lacking })
    }

    /// Whether certainly no key consists of `beginning` and a row's key, which is known without the
    /// leaf that would have it. Loads inner pages: may do I/O.
    pub fn lacks_beginning(&self, beginning: &[u8]) -> Result<bool> {
        if !self.leaves.has_filters() || self.def.class != PageClass::Base {
            return Ok(false);
        }
        let target = Target::Key(beginning);
        self.with_page(target, 1, &mut (), |_, page| {
            if page.is_leaf() {
                return Ok(false);
            }
            let slot = target.slot_in(page);
            let mut next = Vec::new();
            match slot + 1 < page.count() {
                true => page.key_into(slot + 1, &mut next),
                false => next.extend_from_slice(page.high().unwrap_or_default()),
            }
            // All keys that begin so belong to that leaf.
            match sound!(next.starts_with(beginning), "filters: ask one leaf of two") {
                true => Ok(false),
                false => self.leaves.lacks_beginning(page.child(slot), beginning),
            }
        })?
    }

    /// Runs `f` on the record as it is now, unless the ticket has ended.
    fn with_ticket<R>(
        &self,
        key: &[u8],
        ticket: &mut KeyTicket,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        let KeyTicket { ticket: Some(page), basis: Basis::Image(stored), cell_bytes, .. } = ticket else {
            return Ok(None);
        };
        let stored = stored.as_ref().map(|record| record.as_ref());
        let result = self.leaves.with_stored(page, key, stored, |record, size| {
            *cell_bytes = bytes_of(key, record, size);
            f(record)
        })?;
        match result {
            Some(_) => reach::mark("record seen without its leaf"),
            None => ticket.ticket = None,
        }
        Ok(result)
    }

    /// Pins the way to the leaf of `key`, unless `path` has a ticket for giving it `record`, or for
    /// removing it.
    pub fn prepare_change(&self, key: &[u8], record: Option<RecordRef<'_>>, path: &mut Path) -> Result<()> {
        match path.leaf().is_none() && self.has_good_ticket(key, record, path) {
            true => Ok(()),
            false => self.prepare(key, path),
        }
    }

    /// Whether `path` pins a leaf, or has now a place reserved for giving `key` that `record`, or
    /// for removing it (B10). Inside a mini-transaction, before anything is changed.
    pub fn reserve(
        &self,
        mtr: &MiniTransaction<'_>,
        key: &[u8],
        record: Option<RecordRef<'_>>,
        path: &mut Path,
    ) -> bool {
        if path.tree == self.def.id && path.leaf().is_some() {
            return true;
        }
        if path.ticket.ticket.is_some() && !sound!(true, "buffering: ask for room before, and not again") {
            return true;
        }
        let bytes = path.ticket.growth_bytes(record);
        let ticket = path.ticket.for_key(key).filter(|_| path.tree == self.def.id);
        let reservation = ticket.and_then(|ticket| self.leaves.reserve(mtr, ticket, bytes));
        let is_reserved = reservation.is_some();
        path.ticket.reservation = reservation;
        is_reserved
    }

    /// Gives back what [`reserve`](Self::reserve) has reserved, if the change has not used it.
    pub fn release_reserved(&self, path: &mut Path) {
        if let Some(reservation) = path.ticket.reservation.take() {
            self.leaves.release(reservation);
        }
    }

    /// Whether the ticket of `path` for `key` is good for giving it `record`, or removing it.
    fn has_good_ticket(&self, key: &[u8], record: Option<RecordRef<'_>>, path: &Path) -> bool {
        let ticket = path.ticket.for_key(key).filter(|_| path.tree == self.def.id);
        ticket.is_some_and(|ticket| self.leaves.is_good(ticket, path.ticket.growth_bytes(record)))
    }

    /// Has a change be pending for the leaf, if `path` has a place reserved for it; the ticket
    /// ends.
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

/// Bytes of the cell of a record that was found; 0 where nothing, or nothing certain, is there.
fn bytes_of(key: &[u8], record: Option<RecordRef<'_>>, size: Size) -> usize {
    match size {
        Size::Known => record.map_or(0, |record| cell_bytes(key.len(), &record)),
        Size::Unknown => 0,
    }
}

fn record_of<'a>(leaf: &PageView<'a>, key: &[u8]) -> Option<RecordRef<'a>> {
    leaf.search(key).ok().map(|slot| leaf.record(slot))
}
