//! From frame to image: writing pages, capturing them for the checkpoint in progress, and the one place where the
//! location of a page changes.
//!
//! Invariants
//!   W1  (C1) Locations and the moves of a generation change only in `install` and `free`, under the lock of the
//!       page's entry. A generation's move of a page is never older in content than that of the generation before.
//!   W2  A page that is dirty in the generation being written is written before it changes: nobody sees an image
//!       of generation n with a change of n+1 in it.
//!   W3  Between being allocated and being built a page is dirty and all zero. Only threads that write pages of the
//!       current generation meet it: a generation that has ended has built all its pages.

use super::frame::Frame;
use super::page_table::PageEntry;
use super::{codec, Pool};
use crate::base::{planted, Generation, PageId, Result};
use crate::format::page::is_built;
use crate::format::{Location, MapEntry};
use crate::segment::Stream;
use std::sync::Arc;

impl Pool {
    /// Runs under the exclusive latch of `frame`, before its bytes change for the first time under a guard.
    ///
    /// # Panics
    /// When the page has been freed.
    pub(super) fn before_change(&self, frame: &Arc<Frame>, bytes: &[u8], generation: Generation) {
        if frame.dirty() == Some(generation) {
            return;
        }
        if !planted::is_on("pool: skip the capture of a changed page") {
            self.capture(frame, bytes, generation);
        }
        let _entry = self.table.entry(frame.pid);
        assert!(!frame.is_detached(), "F4: page {} is changed after it was freed", frame.pid);
        self.unmark_dirty(frame);
        frame.set_dirty(Some(generation));
        self.changes_of(generation).mark_dirty(frame.pid, frame.bytes_count);
    }

    /// W2: writes the page when it is dirty in the generation that a checkpoint is writing. When that fails, the
    /// checkpoint is given up: its changes stay dirty and go into the next one. Takes latched bytes.
    pub(super) fn capture(&self, frame: &Arc<Frame>, bytes: &[u8], generation: Generation) {
        let of_checkpoint = frame.dirty().is_some_and(|dirty| dirty != generation);
        if !of_checkpoint || self.cut.writing().is_none() {
            return;
        }
        self.counters.captures.one();
        if let Err(error) = self.write_image(frame, bytes) {
            self.cut.fail(error);
        }
    }

    /// Writes the page of a frame if it is dirty. Waits for its latch.
    pub(super) fn write_out(&self, frame: &Arc<Frame>) -> Result<()> {
        let bytes = frame.latch_to_write_out();
        self.write_image(frame, &bytes)
    }

    /// As [`write_out`](Self::write_out); `false` when the latch is not free, or when the page has been allocated but
    /// the action that did so has not built it yet (W3).
    pub(super) fn try_write_out(&self, frame: &Arc<Frame>) -> Result<bool> {
        let Some(bytes) = frame.try_latch_to_write_out() else { return Ok(false) };
        if !is_built(&bytes) {
            return Ok(false);
        }
        self.write_image(frame, &bytes)?;
        Ok(true)
    }

    /// Writes an image of latched bytes and marks the frame clean. Does nothing to a clean frame.
    fn write_image(&self, frame: &Arc<Frame>, bytes: &[u8]) -> Result<()> {
        let Some(generation) = frame.dirty() else { return Ok(()) };
        let location = self.append_image(frame, bytes, generation)?;
        let mut entry = self.table.entry(frame.pid);
        // A checkpoint given up meanwhile has moved the page to the next generation; its content is the same.
        let generation = frame.dirty().unwrap_or(generation);
        self.install(&mut entry, frame.pid, location, generation);
        self.unmark_dirty(frame);
        Ok(())
    }

    fn append_image(&self, frame: &Frame, bytes: &[u8], generation: Generation) -> Result<Location> {
        let def = self.trees.get(frame.tree).def();
        let freeze_below = self.freeze_below(generation);
        self.scratch.with_buffer(|image| {
            self.scratch.with_workspace(|workspace| {
                let def = def.as_deref();
                codec::encode(def, bytes, frame.pid, generation, freeze_below, workspace, image);
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

    /// The only place where a page gets a new location (W1). `content` is the generation that the image belongs
    /// to; the image before becomes dead when that generation commits.
    pub(super) fn install(
        &self,
        entry: &mut PageEntry,
        pid: PageId,
        location: Location,
        content: Generation,
    ) {
        if self.cut.writing() == Some(content) {
            let newer = self.changes_of(Generation(content.0 + 1)).moved(pid);
            assert!(newer.is_none(), "C1: page {pid} was moved before its changes of an older generation");
        }
        let tree = self.trees.get(entry.tree());
        tree.add_stored(location.stored_bytes);
        if let Some(before) = entry.set_location(location) {
            tree.subtract_stored(before.stored_bytes);
            self.segments.release(&before, content);
        }
        self.changes_of(content).set_moved(pid, Some(MapEntry { tree: entry.tree(), location }));
    }

    /// Takes a frame out of the set of dirty pages that it is in. Under the entry's lock.
    pub(super) fn unmark_dirty(&self, frame: &Frame) {
        if let Some(generation) = frame.dirty() {
            self.changes_of(generation).unmark_dirty(frame.pid, frame.bytes_count);
            frame.set_dirty(None);
        }
    }
}
