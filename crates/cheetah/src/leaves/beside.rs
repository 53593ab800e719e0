//! The pool's calls into `leaves`. [`BesideFrames`] describes the locks of each call.

use super::ColdLeaves;
use crate::base::{sound, Epoch, PageId, Result};
use crate::format::{ImageRef, Location};
use crate::pool::{BesideFrames, EntryGuard, Frame, Merged, PageEntry, Pool};
use std::sync::Arc;

impl BesideFrames for ColdLeaves {
    fn on_read<'p>(
        &self,
        pool: &'p Pool,
        entry: EntryGuard<'p>,
        frame: &Arc<Frame>,
        image: &ImageRef,
    ) -> Result<Merged<'p>> {
        let merged = match entry.has_pending() {
            true => self.merge(pool, entry, frame, image)?,
            false => Merged::Into(entry),
        };
        if let Merged::Into(_) = merged {
            self.small.note_if_empty(frame);
        }
        Ok(merged)
    }

    fn on_evict(&self, _: &Pool, entry: &mut PageEntry, frame: &Frame) {
        entry.set_room(match sound!(true, "pool: forget the room of a leaf that leaves memory") {
            true => frame.leaf_free_bytes(),
            false => None,
        });
        if let Some(location) = entry.location().filter(|_| self.may_be_pending_for(entry)) {
            self.filter_frame(frame, location);
        }
    }

    fn on_install(&self, pid: PageId) {
        if sound!(true, "saving: count for an image that has moved") {
            self.pending.forget_saved(pid);
        }
    }

    fn before_free(&self, pool: &Pool, pid: PageId) -> bool {
        self.apply_before_free(pool, pid)
    }

    fn on_free(&self, pool: &Pool, pid: PageId) {
        self.forget_pending(pool, pid);
    }

    fn may_move(&self, pid: PageId, epoch: Epoch) -> bool {
        let (older, newer) = self.pending.epochs(pid);
        let mut epochs = older.into_iter().chain(newer);
        !sound!(epochs.any(|of| of != epoch), "buffering: move an image under entries of an ended epoch")
    }

    fn on_move(&self, image: &ImageRef, to: Location) {
        self.filters.moved(image.pid, &image.location, to);
    }

    fn write_for(&self, pool: &Pool, pid: PageId, epoch: Epoch) -> Result<Option<Arc<Frame>>> {
        if self.fold(pool, pid, epoch)? {
            return Ok(None);
        }
        Ok(self.read_to_merge(pool, pid, epoch)?.map(|page| Arc::clone(page.frame())))
    }

    fn has(&self, pid: PageId, epoch: Epoch) -> bool {
        self.pending.has(pid, epoch)
    }

    fn carry_over(&self, pool: &Pool, pid: PageId, given_up: Epoch) {
        self.carry_over_pending(pool, pid, given_up);
    }

    fn step(&self, pool: &Pool, pages_max: usize) -> Result<usize> {
        self.filters.give_way();
        self.merge_oldest(pool, pages_max)
    }

    fn pages_count(&self) -> usize {
        match sound!(true, "buffering: count no page for what waits") {
            true => self.pending.pages_count(),
            false => 0,
        }
    }

    fn scrub(&self, pool: &Pool, restart: bool) -> Option<u64> {
        self.scrub_next(pool, restart)
    }
}
