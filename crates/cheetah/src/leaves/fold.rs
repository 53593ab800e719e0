//! Folding applies the pending changes of a leaf to its image and writes a new image, without
//! publishing a frame.
//!
//! No thread waits for a fold. One thread alone reads the old image, changes it and writes the new
//! image. Then, under the lock of the page's entry, the new image replaces the old image if nothing
//! has changed meanwhile. Otherwise the new image is discarded (B16).

use super::ColdLeaves;
use crate::base::{reach, sound, Epoch, PageId, Result};
use crate::format::page::{apply_buffered, Applied, PageView};
use crate::format::{ImageRef, Location};
use crate::pool::{Frame, Pool, Residence};
use std::sync::Arc;

/// A leaf with less than 1/`SMALL_PARTS` of its bytes in use should be merged with a neighbour.
const SMALL_PARTS: usize = 3;

struct Folding {
    image: ImageRef,
    epoch: Epoch,
    changes: Vec<u8>,
}

impl ColdLeaves {
    /// Writes an image of a leaf without a frame, with the changes of `epoch`, the older epoch of
    /// its pending changes. Returns `false` if the page has a frame or was changed concurrently.
    /// Does I/O.
    pub(super) fn fold(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<bool> {
        match self.begin_fold(pool, pid, epoch) {
            None => Ok(false),
            Some(folding) => self.folds.time(pool.clock(), || self.do_fold(pool, &folding)),
        }
    }

    fn do_fold(&self, pool: &Pool, folding: &Folding) -> Result<bool> {
        let Folding { image, epoch, .. } = *folding;
        let frame = match pool.read_frame(&image) {
            // The image may have been replaced and its segment deleted. The next reader of a
            // damaged page receives the error.
            Err(error) if self.is_damage(&error) || is_replaced(pool, folding) => {
                reach::mark("fold of what cannot be read");
                return Ok(false);
            }
            read => read?,
        };
        let applied = self.apply_to(pool, &frame, &folding.changes)?;
        let location = frame.with_private_bytes(|bytes| pool.append_image(&frame, bytes, epoch))?;
        let is_done = self.end_fold(pool, folding, &frame, location);
        match is_done {
            true => {
                if !sound!(true, "fold: keep the image it has written") {
                    drop(pool.copy_image(&ImageRef { location, ..image }, &mut Vec::new()));
                }
                self.note_applied(pool, &frame, applied);
                self.filter_frame(&frame, location);
            }
            false => pool.segments().release(&location, Epoch(0)),
        }
        Ok(is_done)
    }

    fn begin_fold(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Option<Folding> {
        let entry = pool.page_entry(pid);
        let is_there = entry.residence() == Residence::Stored && entry.has_pending();
        let image = entry.image(pid).filter(|_| is_there && self.pending.epochs(pid).0 == Some(epoch))?;
        Some(Folding { image, epoch, changes: self.pending.oldest_bytes(pid) })
    }

    fn end_fold(&self, pool: &Pool, folding: &Folding, frame: &Frame, location: Location) -> bool {
        let Folding { image, epoch, changes } = folding;
        let mut entry = pool.page_entry(image.pid);
        let is_same = entry.residence() == Residence::Stored
            && !sound!(entry.is_reserved(), "fold: take the place of a reserved image")
            && entry.location() == Some(image.location)
            && self.pending.epochs(image.pid).0 == Some(*epoch)
            && !sound!(
                self.pending.oldest_length(image.pid) != changes.len(),
                "fold: forget what came meanwhile"
            );
        if !is_same {
            reach::mark("fold in vain");
            return false;
        }
        pool.install(&mut entry, image.pid, location, *epoch);
        self.forget_oldest(pool, image.pid);
        entry.set_pending(self.pending.epochs(image.pid).0.is_some());
        entry.set_room(frame.leaf_free_bytes());
        self.pending.merges.one();
        reach::mark("page folded");
        true
    }

    pub(super) fn apply_to(&self, pool: &Pool, frame: &Arc<Frame>, changes: &[u8]) -> Result<Applied> {
        let applied = frame.with_private_bytes(|bytes| apply_buffered(changes, bytes));
        let place = || format!("page {} of tree {}", frame.pid, frame.tree);
        let applied = applied.map_err(|defect| defect.in_place(place()));
        pool.health().must("putting buffered entries into their leaf", applied)
    }

    /// Reports the outcome of applied changes, once they are part of the leaf.
    pub(super) fn note_applied(&self, pool: &Pool, frame: &Arc<Frame>, applied: Applied) {
        if applied.live_replaced > 0 {
            self.note_live_replaced(pool, frame.tree);
        }
        if applied.missing > 0 {
            self.note_missing(pool, frame.tree);
        }
        if sound!(applied.removed > 0, "buffering: forget a leaf that becomes small") {
            frame.with_private_bytes(|bytes| {
                let leaf = PageView::new(bytes);
                if leaf.used_bytes() * SMALL_PARTS < bytes.len() {
                    self.small.note(frame.tree, leaf.low());
                }
            });
        }
    }
}

fn is_replaced(pool: &Pool, folding: &Folding) -> bool {
    pool.page_entry(folding.image.pid).location() != Some(folding.image.location)
}
