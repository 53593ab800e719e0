//! Looking up one record, whose leaf may stay out of memory.
//!
//! Invariants
//!   I1  The record that [`Tree::look_prepared`] passes to `f` does not change while `f` runs. The
//!       latch of the leaf protects it, or, for a leaf without a frame, the lock of its page-table
//!       entry. A writer of the record needs the same latch or lock.
//!   I2  A record that is found without its leaf was the record of its key at some moment of the
//!       search. The leaf had no frame then, so its newest image and its pending changes were its
//!       content. The image is checked like a page: its tree, its fences, and that it is not dead.

use super::descend::{Above, Landing, Target};
use super::path::{Basis, KeyTicket};
use super::{Path, Tree};
use crate::base::{reach, sound, PageId, Result};
use crate::format::bytes::Defect;
use crate::format::image::LeafImage;
use crate::format::page::{cell_bytes, PageView, RecordRef};
use crate::leaves::{Fetched, InImage, Known, Size, Stored, Ticket};
use crate::pool::{PageClass, PageRef};

pub(super) enum Point<R> {
    /// The result of the closure that ran on the leaf.
    Page(R),
    /// The answer of the image and the pending changes.
    Stored(Stored),
}

/// The reaction of [`Tree::point`] to a cold leaf without a record of the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// It returns the answer that the record is absent.
    Answers,
    /// It loads the leaf, because the caller wants the next record.
    LoadsLeaf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Allowed,
    Refused,
}

impl Tree {
    /// Runs `f` on the state of the record of `key` at some moment of this call. `f` must be short
    /// and must not use a tree. May do I/O. A cold leaf may stay cold.
    pub fn get<R>(&self, key: &[u8], f: impl FnOnce(RecordRef<'_>) -> R) -> Result<Option<R>> {
        let mut f = Some(f);
        let found =
            self.point(key, Absent::Answers, |_, leaf| f.take().and_then(|f| record_of(leaf, key).map(f)))?;
        Ok(match found {
            Point::Page(read) => read,
            Point::Stored(stored) => f.zip(stored.record).map(|(f, record)| f(record.as_ref())),
        })
    }

    /// Like [`look_prepared`](Self::look_prepared), but returns `None` without running `f` if the
    /// key has no record.
    pub fn get_prepared<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: impl FnOnce(RecordRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.look_prepared(key, path, |record| record.map(f))
    }

    /// Like [`get_prepared`](Self::get_prepared), but always loads the leaf into memory.
    pub fn get_loaded<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        f: impl FnOnce(RecordRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.with_prepared(key, path, |leaf| record_of(leaf, key).map(f))
    }

    /// Runs `f` on the record of `key`, or on `None` if it does not exist, and leaves `path`
    /// prepared for `key`: with the leaf, or with a ticket. While `f` runs no thread changes the
    /// record or inserts one (I1). May do I/O.
    pub fn look_prepared<R>(
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
            true => self.look_unloaded(key, path, Load::Allowed, &mut run),
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

    /// Runs `f` on the record of `key` if its leaf is not in memory and need not be loaded, and the
    /// record is not delete-marked. Otherwise returns `None`. Leaves a ticket in `path` if it finds
    /// one. May do I/O.
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
        path.belong_to(self.def.id);
        let seen = self.look_unloaded(key, path, Load::Refused, &mut |record| {
            let live = record.filter(|record| !record.is_marked())?;
            f.take().map(|f| f(live))
        });
        path.unpin();
        Ok(seen?.flatten())
    }

    /// Searches for the record of `key`, without loading its leaf if possible. If the leaf is in
    /// memory or should be, runs `on_page` on it under its latch instead. May do I/O.
    pub(super) fn point<R>(
        &self,
        key: &[u8],
        absent: Absent,
        on_page: impl FnOnce(&PageRef, &PageView<'_>) -> R,
    ) -> Result<Point<R>> {
        let target = Target::Key(key);
        let mut on_page = Some(on_page);
        let mut see = |page: &PageRef, view: &PageView<'_>| {
            on_page.take().map(|on_page| on_page(page, view)).expect("one leaf is seen")
        };
        let above = self.above_leaf(target, &mut (), |above| match above {
            Above::Leaf(page, view) => Err(see(page, view)),
            Above::Parent(page, slot) => Ok(page.child(slot)),
        })?;
        let leaf = match above {
            Ok(leaf) => leaf,
            Err(seen) => return Ok(Point::Page(seen)),
        };
        let find = |leaf: &LeafImage<'_>| {
            let found = self.find_in_image(leaf, key)?;
            Ok(found.filter(|record| record.is_some() || absent == Absent::Answers))
        };
        match self.leaves.fetch_or_peek(leaf, key, find)? {
            Fetched::Peeked(stored) => {
                reach::mark("record out of an image");
                return Ok(Point::Stored(stored));
            }
            Fetched::Page(page) => {
                if let Some(seen) = self.on_leaf(&page, target, &mut see) {
                    return Ok(Point::Page(seen));
                }
            }
            Fetched::Freed => {}
        }
        self.with_page(target, 0, &mut (), see).map(Point::Page)
    }

    /// Returns `true` if filters prove that the tree has no key that consists of `beginning` and a
    /// row's key. Loads inner pages: may do I/O.
    pub fn lacks_beginning(&self, beginning: &[u8]) -> Result<bool> {
        if !self.leaves.has_filters() || self.def.class != PageClass::Base {
            return Ok(false);
        }
        self.above_leaf(Target::Key(beginning), &mut (), |above| {
            let Above::Parent(page, slot) = above else { return Ok(false) };
            let mut next = Vec::new();
            match slot + 1 < page.count() {
                true => page.key_into(slot + 1, &mut next),
                false => next.extend_from_slice(page.high().unwrap_or_default()),
            }
            match sound!(next.starts_with(beginning), "filters: ask one leaf of two") {
                true => Ok(false),
                // One leaf covers all keys with this beginning.
                false => self.leaves.lacks_beginning(page.child(slot), beginning),
            }
        })?
    }

    /// Runs `f` on the record of `key` without the leaf. If the leaf is in memory or should be, and
    /// `load` permits, runs `f` with the leaf instead. Returns `None` if it did not run `f`: if
    /// `load` permits, the caller searches for the leaf from the root.
    fn look_unloaded<R>(
        &self,
        key: &[u8],
        path: &mut Path,
        load: Load,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        if matches!(path.ticket.basis, Basis::Image(_)) && path.ticket.for_key(key).is_some() {
            if let Some(result) = self.with_ticket(key, &mut path.ticket, f)? {
                return Ok(Some(result));
            }
        }
        path.ticket.ticket = None;
        let mut seen = None;
        let above = self.above_leaf(Target::Key(key), &mut path.pages, |above| {
            if let (Above::Leaf(_, page), Load::Allowed) = (&above, load) {
                seen = Some(f(record_of(page, key)));
            }
            let leaf = above.child()?;
            if !sound!(true, "tree: read a leaf under its parent's latch") {
                drop(self.pool.fetch(leaf));
            }
            Some((leaf, self.leaves.known(leaf, key)))
        })?;
        let Some((leaf, known)) = above else { return Ok(seen) };
        let result = self.look_into(leaf, known, key, &mut path.ticket, f)?;
        if result.is_some() {
            path.pages.clear();
            return Ok(result);
        }
        if load == Load::Refused {
            return Ok(None);
        }
        let Some(page) = self.pool.fetch(leaf)? else { return Ok(None) };
        let result = self.on_leaf(&page, Target::Key(key), |_, view| f(record_of(view, key)));
        if result.is_some() {
            path.pages.push(page);
        }
        Ok(result)
    }

    /// Runs `f` on the record of `key` in the cold leaf `leaf`: on the pending record, on `None` if
    /// the filter lacks the key, or on the record in the image. Sets `ticket`. Returns `None` if
    /// the leaf should be in memory, or is not the leaf of `key`.
    fn look_into<R>(
        &self,
        leaf: PageId,
        known: Known,
        key: &[u8],
        ticket: &mut KeyTicket,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
        if let Some(waiting) = known.waiting {
            let result = self.with_waiting(waiting, key, ticket, f)?;
            if result.is_some() {
                return Ok(result);
            }
        }
        if let Some(lacking) = known.lacking {
            ticket.set(lacking, key, Basis::Image(None));
            let result = self.with_ticket(key, ticket, f)?;
            if result.is_some() {
                return Ok(result);
            }
        }
        let looked = self.leaves.peek_to_change(leaf, |leaf| self.find_in_image(leaf, key))?;
        let Some((image, stored)) = looked else { return Ok(None) };
        ticket.set(Ticket::of(&image), key, Basis::Image(stored));
        self.with_ticket(key, ticket, f)
    }

    /// Runs `f` on the pending record of `key`, or on `None` if its removal is pending. Returns
    /// `None` if no change of the key is pending or the ticket is no longer valid.
    fn with_waiting<R>(
        &self,
        waiting: Ticket,
        key: &[u8],
        ticket: &mut KeyTicket,
        f: &mut impl FnMut(Option<RecordRef<'_>>) -> R,
    ) -> Result<Option<R>> {
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

    /// Runs `f` on the present record of `key`, if the ticket is still valid. Otherwise drops the
    /// ticket and returns `None`.
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

    /// The record of `key` in an image, if the image is one of the leaf of `key`.
    fn find_in_image(&self, leaf: &LeafImage<'_>, key: &[u8]) -> std::result::Result<InImage, Defect> {
        let is_ours = !leaf.is_dead() && leaf.tree() == self.def.id;
        let is_leaf_of = is_ours && Target::Key(key).seen_from(leaf.low(), leaf.high()) == Landing::Here;
        is_leaf_of.then(|| leaf.find(key)).transpose()
    }
}

/// The size of the cell of a record that a search found, in bytes; 0 without a record or a size.
fn bytes_of(key: &[u8], record: Option<RecordRef<'_>>, size: Size) -> usize {
    match size {
        Size::Known => record.map_or(0, |record| cell_bytes(key.len(), &record)),
        Size::Unknown => 0,
    }
}

fn record_of<'a>(leaf: &PageView<'a>, key: &[u8]) -> Option<RecordRef<'a>> {
    leaf.search(key).ok().map(|slot| leaf.record(slot))
}
