//! From frame to image: writing pages, and the only function that gives a page a new location.
//! (`free` in `pages/allocate.rs` ends the location of a freed page.)
//!
//! Invariants W1 and W3 are at the head of `writing`. `hand_over` defines the order of the steps.

use super::epoch_in_writing::EpochInWriting;
use super::hand_over::HandOver;
use crate::base::{sound, Epoch, PageId, Result};
use crate::format::image::Primer;
use crate::format::page::{is_built, PageView};
use crate::format::{Location, MapEntry};
use crate::pool::frames::{EntryGuard, Frame, PageEntry};
use crate::pool::images::codec;
use crate::pool::Pool;
use crate::segment::Stream;
use std::sync::Arc;

impl HandOver for Pool {
    type Page = Arc<Frame>;
    type Content = [u8];
    type Entry<'a> = EntryGuard<'a>;
    type Location = Location;

    fn in_writing(&self) -> &EpochInWriting {
        &self.in_writing
    }

    fn entry(&self, frame: &Arc<Frame>) -> EntryGuard<'_> {
        self.table.entry(frame.pid)
    }

    fn with_latch<R>(&self, frame: &Arc<Frame>, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&frame.latch_to_write_out())
    }

    fn is_freed(&self, frame: &Arc<Frame>) -> bool {
        frame.is_detached()
    }

    fn dirty(&self, frame: &Arc<Frame>) -> Option<Epoch> {
        frame.dirty()
    }

    fn set_dirty(&self, _: &EntryGuard<'_>, frame: &Arc<Frame>, epoch: Option<Epoch>) {
        if let Some(before) = frame.dirty() {
            self.changes_of(before).unmark_dirty(frame.pid, frame.bytes_count);
        }
        frame.set_dirty(epoch);
        if let Some(now) = epoch {
            self.changes_of(now).mark_dirty(frame.pid, frame.bytes_count);
        }
    }

    fn append(&self, frame: &Arc<Frame>, bytes: &[u8], epoch: Epoch) -> Result<Location> {
        self.append_image(frame, bytes, epoch)
    }

    fn locate(&self, entry: &mut EntryGuard<'_>, frame: &Arc<Frame>, location: Location, epoch: Epoch) {
        self.install(entry, frame.pid, location, epoch);
    }

    fn count_flush_before_modify(&self) {
        self.counters.flushes_before_modify.one();
    }
}

impl Pool {
    /// Like [`write_out`](HandOver::write_out), but returns `false` if the latch is not free, or if
    /// the page is allocated but not built yet (W3).
    pub(crate) fn try_write_out(&self, frame: &Arc<Frame>) -> Result<bool> {
        let Some(bytes) = frame.try_latch_to_write_out() else { return Ok(false) };
        if !is_built(&bytes) {
            return Ok(false);
        }
        self.write_image(frame, &bytes)?;
        Ok(true)
    }

    pub(crate) fn append_image(&self, frame: &Frame, bytes: &[u8], epoch: Epoch) -> Result<Location> {
        let tree = self.trees.get(frame.tree);
        let def = tree.def();
        let is_sound = sound!(true, "pool: freeze what only the next epoch may");
        let freeze_below = self.freeze_below(if is_sound { epoch } else { self.epoch() });
        let dictionary = match Primer::serves(PageView::new(bytes).kind()) {
            true => self.primer_for(frame.tree, &tree, epoch),
            false => None,
        };
        let key = self.keys.of(tree.closing())?;
        let nonce = key.as_ref().map(|_| self.keys.nonce()).transpose()?;
        self.scratch.with_buffer(|image| {
            self.scratch.with_encoder(|workspace| {
                let def = def.as_deref().map(|def| (def, dictionary.as_deref()));
                let begin_ns = self.images.begin_ns();
                let lock = key.as_deref().zip(nonce);
                codec::encode(def, bytes, frame.pid, epoch, freeze_below, lock, workspace, image);
                self.images.encoded(&tree.work, image.len(), begin_ns);
            });
            let stream = codec::stream_of(bytes);
            let location = self.segments.append(stream, image)?;
            self.count_write(stream, bytes.len(), image.len());
            Ok(location)
        })
    }

    fn count_write(&self, stream: Stream, page_bytes: usize, image_bytes: usize) {
        let (writes, bytes) = match stream {
            Stream::Blob => (&self.counters.blob_writes, &self.counters.blob_written_bytes),
            _ => (&self.counters.writes, &self.counters.written_bytes),
        };
        writes.one();
        bytes.add(image_bytes as u64);
        self.counters.encoded_page_bytes.add(page_bytes as u64);
    }

    /// Gives a page a new location; no other function does so (W1). `content` is the epoch that the
    /// image belongs to. The previous image becomes dead when this epoch commits.
    pub(crate) fn install(&self, entry: &mut PageEntry, pid: PageId, location: Location, content: Epoch) {
        debug_assert!(self.epoch().0.wrapping_sub(content.0) <= 1, "W1: an image is of the last two epochs");
        if self.in_writing.writing() == Some(content) {
            let newer = self.changes_of(Epoch(content.0 + 1)).moved(pid);
            assert!(newer.is_none(), "C1: page {pid} does not move before its changes of an older epoch");
        }
        let tree = self.trees.get(entry.tree());
        let class = entry.class();
        match entry.set_location(location) {
            Some(before) => {
                tree.replace_image(before.stored_bytes, location.stored_bytes);
                self.segments.release(&before, content);
                self.image_cache.forget(pid);
            }
            None => tree.add_image(class, location.stored_bytes),
        }
        if entry.has_pending() {
            self.beside.on_install(pid);
        }
        self.changes_of(content).set_moved(pid, Some(MapEntry { tree: entry.tree(), location }));
    }
}
