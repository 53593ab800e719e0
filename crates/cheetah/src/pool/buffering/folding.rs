//! Folding: the changes that wait for a leaf become a new image of it, and no frame.
//!
//! Nobody waits for that. The image is read, changed and written by one thread for itself. Then,
//! under the lock of the page's entry, it takes the place of the old one if nothing has happened
//! meanwhile; otherwise it is thrown away (B16).

use crate::base::{planted, reach, Epoch, PageId, Result};
use crate::format::page::{apply_buffered, Applied, PageView};
use crate::format::{ImageRef, Location};
use crate::pool::frames::{Frame, PageEntry, Residence};
use crate::pool::Pool;
use std::sync::Arc;

/// A leaf with less than so many parts of it in use should be merged with a neighbour.
const SMALL_PARTS: usize = 3;

/// A leaf and what waits for it, as they were at one moment.
struct Folding {
    image: ImageRef,
    epoch: Epoch,
    changes: Vec<u8>,
}

impl Pool {
    /// Writes an image of a leaf without a frame that has the changes of `epoch`, the older one of
    /// which something waits for it. `false` when that was in vain: the page has a frame, or has
    /// changed meanwhile. Does I/O.
    pub(in crate::pool) fn fold(&self, pid: PageId, epoch: Epoch) -> Result<bool> {
        match self.begin_fold(pid, epoch) {
            None => Ok(false),
            Some(folding) => self.folds.time(&*self.clock, || self.do_fold(&folding)),
        }
    }

    fn do_fold(&self, folding: &Folding) -> Result<bool> {
        let Folding { image, epoch, .. } = *folding;
        let frame = match self.read_frame(&image) {
            // It may have been replaced meanwhile, and its segment be gone. Whoever reads the page
            // next knows what is damaged.
            Err(error) if self.is_damage(&error) || self.is_replaced(folding) => {
                reach::mark("fold of what cannot be read");
                return Ok(false);
            }
            read => read?,
        };
        let applied = self.apply_to(&frame, &folding.changes)?;
        let location = frame.with_private_bytes(|bytes| self.append_image(&frame, bytes, epoch))?;
        let is_done = self.end_fold(folding, &frame, location);
        match is_done {
            true => {
                if planted::is_on("fold: keep the image it has written") {
                    self.keep_image(image.pid);
                }
                self.note_applied(&frame, applied);
                self.filter_frame(&frame, location);
            }
            false => self.segments.release(&location, Epoch(0)),
        }
        Ok(is_done)
    }

    fn begin_fold(&self, pid: PageId, epoch: Epoch) -> Option<Folding> {
        let entry = self.table.entry(pid);
        let is_there = entry.residence() == Residence::Stored && entry.is_buffered();
        let image = entry.image(pid).filter(|_| is_there && self.buffering.epochs(pid).0 == Some(epoch))?;
        Some(Folding { image, epoch, changes: self.buffering.oldest_bytes(pid) })
    }

    fn is_replaced(&self, folding: &Folding) -> bool {
        self.table.entry(folding.image.pid).location() != Some(folding.image.location)
    }

    fn end_fold(&self, folding: &Folding, frame: &Frame, location: Location) -> bool {
        let Folding { image, epoch, changes } = folding;
        let mut entry = self.table.entry(image.pid);
        let is_same = entry.residence() == Residence::Stored
            && entry.location() == Some(image.location)
            && self.buffering.epochs(image.pid).0 == Some(*epoch)
            && self.buffering.oldest_length(image.pid) == changes.len();
        if !is_same && !self.is_same_but_longer(&entry, folding) {
            reach::mark("fold in vain");
            return false;
        }
        self.install(&mut entry, image.pid, location, *epoch);
        self.forget_oldest(image.pid);
        entry.set_buffered(self.buffering.epochs(image.pid).0.is_some());
        entry.set_room(frame.leaf_free_bytes());
        self.buffering.merges.one();
        reach::mark("page folded");
        true
    }

    /// For a bug: what is written comes into the cache of images, though nobody has looked for it.
    fn keep_image(&self, pid: PageId) {
        let Some(image) = self.table.entry(pid).image(pid) else { return };
        self.scratch.with_buffer(|bytes| {
            if self.segments.read_unchecked(&image, bytes).is_ok() {
                self.image_cache.put(&image, bytes);
            }
        });
    }

    /// For a bug: more came meanwhile.
    fn is_same_but_longer(&self, entry: &PageEntry, folding: &Folding) -> bool {
        let forgets = planted::is_on("fold: forget what came meanwhile")
            && entry.residence() == Residence::Stored
            && entry.location() == Some(folding.image.location)
            && self.buffering.epochs(folding.image.pid).0 == Some(folding.epoch);
        if forgets {
            reach::mark("fold forgot what came meanwhile");
        }
        forgets
    }

    /// Applies changes to a frame that nobody else has seen.
    pub(super) fn apply_to(&self, frame: &Arc<Frame>, changes: &[u8]) -> Result<Applied> {
        let applied = frame.with_private_bytes(|bytes| apply_buffered(changes, bytes));
        let place = || format!("page {} of tree {}", frame.pid, frame.tree);
        let applied = applied.map_err(|defect| defect.in_place(place()));
        self.health.must("putting buffered entries into their leaf", applied)
    }

    /// Tells of what changes have met in their leaf, once they are part of it.
    pub(super) fn note_applied(&self, frame: &Arc<Frame>, applied: Applied) {
        if applied.live_replaced > 0 {
            self.note_live_replaced(frame.tree);
        }
        if applied.missing > 0 {
            self.note_missing(frame.tree);
        }
        if applied.removed > 0 && !planted::is_on("buffering: forget a leaf that becomes small") {
            frame.with_private_bytes(|bytes| {
                let leaf = PageView::new(bytes);
                if leaf.used_bytes() * SMALL_PARTS < bytes.len() {
                    self.small_leaves.note(frame.tree, leaf.low());
                }
            });
        }
    }
}
