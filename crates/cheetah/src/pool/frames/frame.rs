//! A page in memory. Invariants F1 to F5 are at the head of `frames`.

use super::buffers::Buffers;
use super::latch_count::check_order;
use super::page_class::PageClass;
use crate::base::{Epoch, PageId, TreeId};
use crate::format::page::{is_built, PageBuf, PageView};
use parking_lot::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;

/// The maximum of a use count.
const USES_MAX: u8 = 3;

/// See the module.
#[derive(Debug)]
pub struct Frame {
    pub(crate) pid: PageId,
    pub(crate) tree: TreeId,
    pub(in crate::pool) class: PageClass,
    pub(crate) bytes_count: usize,
    /// The latch and the bytes that it protects.
    pub(in crate::pool) bytes: RwLock<PageBuf>,
    /// The version of the page, which changes with every change of the content: no two contents of
    /// a page have the same version.
    pub(in crate::pool) version: AtomicU64,
    /// The epoch of the changes that are not written yet, or 0 if the frame is clean.
    dirty: AtomicU64,
    detached: AtomicBool,
    uses: AtomicU8,
    /// Whether the page was read ahead and not fetched since then.
    ahead: AtomicBool,
    buffers: Arc<Buffers>,
}

impl Frame {
    /// `frame_no` is unique among all frames since startup.
    pub(in crate::pool) fn new(
        pid: PageId,
        tree: TreeId,
        class: PageClass,
        bytes: PageBuf,
        frame_no: u64,
        buffers: Arc<Buffers>,
    ) -> Self {
        Self {
            pid,
            tree,
            class,
            bytes_count: bytes.len(),
            bytes: RwLock::new(bytes),
            version: AtomicU64::new(frame_no << 32),
            dirty: AtomicU64::new(0),
            detached: AtomicBool::new(false),
            uses: AtomicU8::new(0),
            ahead: AtomicBool::new(false),
            buffers,
        }
    }

    /// The epoch of the changes that are not written yet.
    pub(crate) fn dirty(&self) -> Option<Epoch> {
        match self.dirty.load(Ordering::Acquire) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// See F5.
    pub(crate) fn set_dirty(&self, epoch: Option<Epoch>) {
        self.dirty.store(epoch.map_or(0, |epoch| epoch.0), Ordering::Release);
    }

    /// Returns whether the page was freed.
    pub(in crate::pool) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    pub(in crate::pool) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    /// Takes the upgradable latch. It admits readers, but excludes writers and other threads that
    /// want to write the page out.
    pub(in crate::pool) fn latch_to_write_out(&self) -> RwLockUpgradableReadGuard<'_, PageBuf> {
        check_order();
        self.bytes.upgradable_read()
    }

    /// Like [`latch_to_write_out`](Self::latch_to_write_out), but does not wait.
    pub(in crate::pool) fn try_latch_to_write_out(&self) -> Option<RwLockUpgradableReadGuard<'_, PageBuf>> {
        self.bytes.try_upgradable_read()
    }

    /// Returns the bytes, unless a thread is changing them. Does not wait.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, PageBuf>> {
        self.bytes.try_read()
    }

    /// Returns the bytes in use in a leaf, or `None` if a thread is changing it or the page is not
    /// a leaf. Does not wait.
    pub(crate) fn leaf_used_bytes(&self) -> Option<usize> {
        let bytes = self.bytes.try_read()?;
        let view = PageView::new(&bytes);
        (is_built(&bytes) && view.is_leaf() && !view.is_dead()).then(|| view.used_bytes())
    }

    /// Returns the free bytes in a leaf, or `None` if a thread is changing it or the page is not a
    /// leaf. Does not wait.
    pub(crate) fn leaf_free_bytes(&self) -> Option<usize> {
        let bytes = self.bytes.try_read()?;
        let view = PageView::new(&bytes);
        (is_built(&bytes) && view.is_leaf() && !view.is_dead()).then(|| view.free_bytes())
    }

    /// Runs `f` on the bytes of a frame that no other thread knows yet.
    pub(crate) fn with_private_bytes<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut bytes = self.bytes.try_write().expect("nobody else has the frame");
        f(&mut bytes)
    }

    /// Notes that the page was read ahead of any request.
    pub(in crate::pool) fn set_ahead(&self) {
        self.ahead.store(true, Ordering::Relaxed);
    }

    /// Returns whether the page was read ahead, and clears the mark.
    pub(in crate::pool) fn take_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) && self.ahead.swap(false, Ordering::Relaxed)
    }

    pub(in crate::pool) fn count_use(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    pub(in crate::pool) fn uses(&self) -> u8 {
        self.uses.load(Ordering::Relaxed)
    }

    pub(in crate::pool) fn forget_uses(&self) {
        self.uses.store(0, Ordering::Relaxed);
    }

    pub(in crate::pool) fn forget_one_use(&self) {
        self.uses.store(self.uses().saturating_sub(1), Ordering::Relaxed);
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let bytes = std::mem::replace(self.bytes.get_mut(), PageBuf::new(0));
        self.buffers.give(self.class, bytes);
    }
}
