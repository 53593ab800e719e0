//! Replacing an image by its copy. Invariant C1 is at the head of `upkeep`.

use crate::base::{sound, Epoch, Result};
use crate::format::{ImageRef, Location};
use crate::pool::frames::PageEntry;
use crate::pool::Pool;

impl Pool {
    /// Makes the copy of an image, which was appended at `copied`, the image of its page, if this
    /// is still allowed. Returns the bytes of the copy and whether it is installed. If the image
    /// was replaced, ignores an error of the append and returns 0 bytes.
    pub(super) fn put_in_place_of(&self, image: &ImageRef, copied: Result<Location>) -> Result<(u64, bool)> {
        let to = match copied {
            // The image was replaced concurrently: its segment may be deleted.
            Err(_) if self.table.entry(image.pid).location() != Some(image.location) => {
                return Ok((0, false))
            }
            copied => copied?,
        };
        let mtr = self.enter();
        let mut entry = self.table.entry(image.pid);
        let may_move = self.is_movable(&entry, image, mtr.epoch());
        if may_move {
            self.install(&mut entry, image.pid, to, mtr.epoch());
            self.beside.on_move(image, to);
        } else {
            self.segments.release(&to, mtr.epoch());
        }
        Ok((u64::from(to.stored_bytes), may_move))
    }

    /// Returns whether an image may move in `epoch`: see C1 in `upkeep`.
    pub(super) fn is_movable(&self, entry: &PageEntry, image: &ImageRef, epoch: Epoch) -> bool {
        let is_changed = entry.frame().is_some_and(|frame| frame.dirty().is_some());
        let may_move = || self.beside.may_move(image.pid, epoch);
        entry.location() == Some(image.location)
            && !sound!(is_changed, "pool: move a page with unwritten changes")
            && (!entry.has_pending() || sound!(may_move(), "pool: pass by what something waits for"))
    }
}
