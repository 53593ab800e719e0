//! The steps by which the changes of a page become an image in the epoch that they belong to, and
//! in no other.
//!
//! Invariants W2 and F5 are at the head of `writing`. `interleaving_tests.rs` compiles this file
//! again with loom and a pool of one page.

use super::epoch_in_writing::EpochInWriting;
use crate::base::{sound, Epoch, Result};

/// The types and operations that the steps use, and the steps.
pub(in crate::pool) trait HandOver {
    /// A page in memory.
    type Page;
    /// The content of the page, under its latch.
    type Content: ?Sized;
    /// The lock of the page's entry.
    type Entry<'a>
    where
        Self: 'a;
    /// The location of an image.
    type Location;

    fn in_writing(&self) -> &EpochInWriting;

    fn entry(&self, page: &Self::Page) -> Self::Entry<'_>;

    /// Runs `f` under the upgradable latch. Waits for the latch.
    fn with_latch<R>(&self, page: &Self::Page, f: impl FnOnce(&Self::Content) -> R) -> R;

    fn is_freed(&self, page: &Self::Page) -> bool;

    /// The epoch of the changes that are not written yet.
    fn dirty(&self, page: &Self::Page) -> Option<Epoch>;

    /// Makes the page dirty in `epoch` and in no other epoch, or clean if `epoch` is `None`.
    fn set_dirty(&self, entry: &Self::Entry<'_>, page: &Self::Page, epoch: Option<Epoch>);

    /// Writes an image.
    fn append(&self, page: &Self::Page, content: &Self::Content, epoch: Epoch) -> Result<Self::Location>;

    /// Makes an image the page's newest image of the epoch.
    fn locate(&self, entry: &mut Self::Entry<'_>, page: &Self::Page, location: Self::Location, epoch: Epoch);

    fn count_flush_before_modify(&self);

    /// Runs under the exclusive latch, before the first change through a guard.
    ///
    /// # Panics
    /// If the page was freed.
    fn before_change(&self, page: &Self::Page, content: &Self::Content, epoch: Epoch) {
        if self.dirty(page) == Some(epoch) {
            return;
        }
        if sound!(true, "pool: skip flush before modify") {
            self.flush_before_modify(page, content, epoch);
        }
        let entry = self.entry(page);
        assert!(!self.is_freed(page), "F4: no page is changed after it was freed");
        self.set_dirty(&entry, page, Some(epoch));
    }

    /// W2: writes the page if it is dirty in the epoch that a checkpoint is writing. If the write
    /// fails, the checkpoint is abandoned: its changes stay dirty and belong to the next epoch. The
    /// caller holds the exclusive or upgradable latch.
    fn flush_before_modify(&self, page: &Self::Page, content: &Self::Content, epoch: Epoch) {
        let of_checkpoint = self.dirty(page).is_some_and(|dirty| dirty != epoch);
        if !of_checkpoint || self.in_writing().writing().is_none() {
            return;
        }
        self.count_flush_before_modify();
        if let Err(error) = self.write_image(page, content) {
            self.in_writing().fail(error);
        }
    }

    /// Writes an image and marks the page clean. Does nothing to a clean page. The caller holds the
    /// exclusive or upgradable latch.
    fn write_image(&self, page: &Self::Page, content: &Self::Content) -> Result<()> {
        let Some(before) = self.dirty(page) else { return Ok(()) };
        let location = self.append(page, content, before)?;
        let mut entry = self.entry(page);
        // If the checkpoint was abandoned meanwhile, the page was moved to the next epoch with the
        // same content.
        let now = self.dirty(page).unwrap_or(before);
        let epoch = if sound!(true, "pool: do not look again whose an image is") { now } else { before };
        self.locate(&mut entry, page, location, epoch);
        self.set_dirty(&entry, page, None);
        Ok(())
    }

    /// Writes the page if it is dirty. Waits for its latch.
    fn write_out(&self, page: &Self::Page) -> Result<()> {
        self.with_latch(page, |content| self.write_image(page, content))
    }

    /// Writes the page for a checkpoint, if it is still dirty in that epoch.
    fn write_for(&self, page: &Self::Page, epoch: Epoch) -> Result<()> {
        match self.dirty(page) == Some(epoch) {
            true => self.write_out(page),
            false => Ok(()),
        }
    }

    /// Moves the changes of a page in memory from an abandoned epoch to the next epoch.
    fn carry_over(&self, entry: &Self::Entry<'_>, page: &Self::Page, given_up: Epoch) {
        if self.dirty(page) == Some(given_up) {
            self.set_dirty(entry, page, Some(Epoch(given_up.0 + 1)));
        }
    }
}
