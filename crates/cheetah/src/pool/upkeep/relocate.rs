//! Putting a copy of an image in its place. Invariant: C1 at the head of the room.

use crate::base::{sound, Epoch, Result};
use crate::format::{ImageRef, Location};
use crate::pool::frames::PageEntry;
use crate::pool::Pool;

impl Pool {
    /// Makes a copy of an image, which has been appended there, the image of its page, if it still
    /// may be: the bytes of the copy, and whether it is. Nothing is appended when the image had
    /// gone.
    pub(super) fn put_in_place_of(&self, image: &ImageRef, copied: Result<Location>) -> Result<(u64, bool)> {
        let to = match copied {
            // Replaced meanwhile: its segment may be gone.
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

    /// Whether an image may move in `epoch`: see C1 of the module.
    pub(super) fn is_movable(&self, entry: &PageEntry, image: &ImageRef, epoch: Epoch) -> bool {
        let is_changed = entry.frame().is_some_and(|frame| frame.dirty().is_some());
        let may_move = || self.beside.may_move(image.pid, epoch);
        entry.location() == Some(image.location)
            && !sound!(is_changed, "pool: move a page with unwritten changes")
            && (!entry.has_pending() || sound!(may_move(), "pool: pass by what something waits for"))
    }
}
