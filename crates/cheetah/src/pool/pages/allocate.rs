//! Allocating and freeing pages.

use crate::base::{sound, Epoch, PageId, TreeId};
use crate::format::page::PageBuf;
use crate::pool::frames::{EvictionTime, Frame, Residence};
use crate::pool::writing::HandOver;
use crate::pool::{MiniTransaction, PageClass, PageRef, Pool};
use std::sync::atomic::Ordering;
use std::sync::Arc;

impl Pool {
    /// Allocates a zeroed, pinned page of `tree`. Never waits and does no I/O. It may exceed the
    /// memory budget by a few pages; the next [`make_room`](Self::make_room) frees this memory.
    pub fn allocate(&self, mtr: &MiniTransaction<'_>, tree: TreeId, class: PageClass) -> PageRef {
        let pid = self.numbers.lock().take();
        let mut bytes = self.buffers.take(class);
        bytes.fill(0);
        let frame = self.new_frame(pid, tree, class, bytes);
        let mut entry = self.table.entry(pid);
        assert_eq!(entry.residence(), Residence::Free, "P1: a page number is given out once");
        self.set_dirty(&entry, &frame, Some(mtr.epoch()));
        entry.start(frame.clone());
        self.queues.add(&frame, EvictionTime::default());
        let state = self.trees.get(tree);
        state.add_page(pid, class);
        self.trial(tree).note_growth(&state);
        self.counters.creates.one();
        PageRef(frame)
    }

    pub(in crate::pool) fn new_frame(
        &self,
        pid: PageId,
        tree: TreeId,
        class: PageClass,
        bytes: PageBuf,
    ) -> Arc<Frame> {
        let frame_no = self.frame_no.fetch_add(1, Ordering::Relaxed);
        Arc::new(Frame::new(pid, tree, class, bytes, frame_no, self.buffers.clone()))
    }

    /// Frees a page. This thread must not hold its latch. References to the page stay valid for
    /// reading. Its number is not used again before the mini-transaction's epoch has committed.
    ///
    /// # Panics
    /// If the page is not allocated.
    pub fn free(&self, mtr: &MiniTransaction<'_>, pid: PageId) {
        while !self.try_free(mtr.epoch(), pid) {}
    }

    /// Tries once to free a page. Returns `false` if the page was loaded or evicted meanwhile.
    fn try_free(&self, epoch: Epoch, pid: PageId) -> bool {
        if !self.beside.before_free(self, pid) {
            return false;
        }
        let frame = self.table.entry(pid).frame().cloned();
        let latch = frame.as_ref().map(|frame| frame.latch_to_write_out());
        if let (Some(frame), Some(bytes)) = (&frame, &latch) {
            if sound!(true, "pool: skip flush before free") {
                self.flush_before_modify(frame, bytes, epoch);
            }
        }
        let mut entry = self.table.entry(pid);
        if entry.frame().map(Arc::as_ptr) != frame.as_ref().map(Arc::as_ptr) {
            return false;
        }
        assert_ne!(entry.residence(), Residence::Free, "P1: page {pid} is freed once");
        if let Some(frame) = &frame {
            self.set_dirty(&entry, frame, None);
            frame.detach();
            if frame.take_ahead() {
                self.read_ahead.wasted();
            }
        }
        if entry.has_pending() {
            self.beside.on_free(self, pid);
        }
        let tree = self.trees.get(entry.tree());
        let class = entry.class();
        tree.remove_page(class);
        if let Some(location) = entry.clear().location() {
            tree.remove_image(class, location.stored_bytes);
            self.segments.release(&location, epoch);
        }
        self.changes_of(epoch).set_moved(pid, None);
        drop(entry);
        drop(latch);
        self.numbers.lock().put(pid, epoch);
        if frame.is_some() {
            self.queues.note_freed();
        }
        true
    }
}
