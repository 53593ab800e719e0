//! Changing one record inside a mini-transaction: insert, replace, remove.
//!
//! Invariants
//!   I1  The leaf is checked again under its exclusive latch: it may have been split, merged or
//!       freed since `prepare`. Then a new descent inside the mini-transaction corrects the path.
//!   I2  A change that finds no room splits first (see [`super::split`]). It fails only with
//!       `Limit`, an error of reading or of disk space, or an error about corrupt pages. After an
//!       error no record has changed.
//!   I3  With a reservation for its key, a change becomes pending for a cold leaf (see
//!       [`super::ticket`]).
//! Locks     One leaf latch at a time, unless the tree's structure mutex is held.

use super::descend::{Landing, Target};
use super::merge::worth_merging;
use super::path::Basis;
use super::split::Split;
use super::{Path, Tree};
use crate::base::{reach, Result};
use crate::format::page::{BufferedChange, NoRoom, PageMut, PageView, Pending, RecordRef};
use crate::leaves::Expect;
use crate::pool::{MiniTransaction, PageRef, WriteGuard};

/// The outcome of an insert or a replace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Changed {
    /// The record was written.
    Done,
    /// An insert found a record with the key. Nothing was changed.
    Exists,
    /// A replace found no record with the key. Nothing was changed.
    Absent,
}

/// The outcome of a remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Removed {
    /// No record had the key.
    Absent,
    /// The record was removed, or its removal is pending.
    Gone {
        /// The leaf has become small: call [`Tree::merge_if_small`] after the mini-transaction.
        small: bool,
    },
}

/// The fill in percent from which on a leaf is split when it is loaded because it has no room for a
/// pending change. Pending changes count with an upper bound, so such a leaf is seldom full.
/// Without the split it would be loaded several times, each time for fewer changes.
const CROWDED_PERCENT: usize = 80;

#[derive(Clone, Copy)]
pub(super) enum Write<'a> {
    Insert(RecordRef<'a>),
    Replace(RecordRef<'a>),
}

impl Write<'_> {
    /// Applies the change to the leaf that covers `key`, which it searches from slot `near`.
    pub(super) fn attempt(
        &self,
        page: &mut WriteGuard<'_>,
        key: &[u8],
        near: usize,
    ) -> std::result::Result<Changed, NoRoom> {
        let view = PageView::new(page);
        match (self, view.search_near(key, near)) {
            (Write::Insert(_), Ok(_)) => return Ok(Changed::Exists),
            (Write::Replace(_), Err(_)) => return Ok(Changed::Absent),
            (Write::Insert(record), Err(slot)) => {
                if !view.fits(key.len(), record) {
                    return Err(NoRoom);
                }
                PageMut::new(page).insert(slot, key, record)?;
            }
            (Write::Replace(record), Ok(slot)) => {
                if !view.fits_replacement(slot, record) {
                    return Err(NoRoom);
                }
                PageMut::new(page).replace(slot, record)?;
            }
        }
        Ok(Changed::Done)
    }

    /// Returns whether an insert into a leaf that has no room for one more pending change should
    /// split it now, because the next inserts would load it again soon. Leaves that keys in order
    /// fill stay whole.
    pub(super) fn splits_early(&self, leaf: &PageView<'_>, key: &[u8], near: usize) -> bool {
        let is_full = leaf.used_bytes() * 100 >= leaf.bytes().len() * CROWDED_PERCENT;
        // The first slot of the leftmost leaf belongs to a run, too.
        let first = usize::from(leaf.low().is_empty());
        let is_inside =
            || leaf.search_near(key, near).is_err_and(|slot| (first..leaf.count()).contains(&slot));
        matches!(self, Write::Insert(_)) && is_full && !leaf.is_in_run() && is_inside()
    }

    /// The change in the form that the plan of a split needs.
    pub(super) fn pending<'p>(&'p self, page: &PageView<'_>, key: &'p [u8]) -> Pending<'p> {
        let (Ok(index) | Err(index)) = page.search(key);
        match self {
            Write::Insert(record) => Pending { index, key, record: *record, replaces: false },
            Write::Replace(record) => Pending { index, key, record: *record, replaces: true },
        }
    }
}

impl Tree {
    /// Inserts a record unless the key exists. `path` should be prepared for `key`: then only a
    /// rare race causes I/O. Errors: `Limit` if the key or record is too long, errors of reading
    /// and of disk space. After an error no record has changed.
    pub fn insert(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        record: RecordRef<'_>,
    ) -> Result<Changed> {
        self.check_limits(key, &record)?;
        if self.buffer(mtr, path, key, &BufferedChange::New(record)) {
            return Ok(Changed::Done);
        }
        self.write(mtr, path, key, Write::Insert(record))
    }

    /// Replaces the record of `key`. Otherwise like [`insert`](Self::insert).
    pub fn replace(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        record: RecordRef<'_>,
    ) -> Result<Changed> {
        self.check_limits(key, &record)?;
        let change = match path.ticket.basis {
            Basis::Unseen(Expect::Live) => BufferedChange::Mark(record),
            _ => BufferedChange::Put(record),
        };
        if self.buffer(mtr, path, key, &change) {
            return Ok(Changed::Done);
        }
        self.write(mtr, path, key, Write::Replace(record))
    }

    /// Inserts a record for `key`, or replaces the present one. Reads pages unless `path` has a
    /// ticket or is prepared. Errors are those of [`insert`](Self::insert).
    pub fn put(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        record: RecordRef<'_>,
    ) -> Result<()> {
        if self.insert(mtr, path, key, record)? != Changed::Exists {
            return Ok(());
        }
        if self.get_loaded(key, path, |found| !found.is_marked())? == Some(true) {
            self.leaves.note_live_replaced(self.def.id);
        }
        match self.replace(mtr, path, key, record)? {
            Changed::Done => Ok(()),
            _ => Err(self.corrupt(self.def.root, "an existing entry disappeared during the change")),
        }
    }

    /// Removes the record of `key`. Errors are those of [`insert`](Self::insert) except `Limit`.
    pub fn remove(&self, mtr: &MiniTransaction<'_>, path: &mut Path, key: &[u8]) -> Result<Removed> {
        if self.buffer(mtr, path, key, &BufferedChange::Remove) {
            return Ok(Removed::Gone { small: false });
        }
        loop {
            let near = path.near;
            let leaf = self.leaf_of(path, key)?;
            let mut guard = leaf.write(mtr);
            if !self.is_leaf_of(&PageView::new(&guard), key) {
                drop(guard);
                path.release();
                continue;
            }
            let Ok(slot) = PageView::new(&guard).search_near(key, near) else {
                return Ok(Removed::Absent);
            };
            PageMut::new(&mut guard).remove(slot);
            return Ok(Removed::Gone { small: worth_merging(&PageView::new(&guard)) });
        }
    }

    fn write(
        &self,
        mtr: &MiniTransaction<'_>,
        path: &mut Path,
        key: &[u8],
        write: Write<'_>,
    ) -> Result<Changed> {
        loop {
            let (near, is_crowded) = (path.near, std::mem::take(&mut path.is_crowded));
            let leaf = self.leaf_of(path, key)?;
            let mut guard = leaf.write(mtr);
            if !self.is_leaf_of(&PageView::new(&guard), key) {
                drop(guard);
                path.release();
                continue;
            }
            // Versions that no snapshot needs take much of a leaf in which changes were pending.
            if is_crowded {
                guard.forget_old_versions();
            }
            if is_crowded && write.splits_early(&PageView::new(&guard), key, near) {
                drop(guard);
                reach::mark("crowded leaf split early");
                return self.split_and_write(mtr, path, key, write, Split::Early);
            }
            if let Ok(changed) = write.attempt(&mut guard, key, near) {
                return Ok(changed);
            }
            // Dropping versions that no snapshot needs may free enough room to avoid a split.
            if guard.forget_old_versions() {
                if let Ok(changed) = write.attempt(&mut guard, key, near) {
                    reach::mark("room made by freezing");
                    return Ok(changed);
                }
            }
            drop(guard);
            return self.split_and_write(mtr, path, key, write, Split::ForRoom);
        }
    }

    /// Prepares the path if it has no leaf.
    fn leaf_of<'p>(&self, path: &'p mut Path, key: &[u8]) -> Result<&'p PageRef> {
        if path.tree != self.def.id || path.leaf().is_none() {
            self.prepare(key, path)?;
        }
        Ok(path.leaf().expect("a prepared path ends in a leaf"))
    }

    #[inline]
    pub(super) fn is_leaf_of(&self, page: &PageView<'_>, key: &[u8]) -> bool {
        self.landing(page, Some(0), Target::Key(key)) == Landing::Here
    }
}
