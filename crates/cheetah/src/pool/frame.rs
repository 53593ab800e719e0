//! A page in memory, and the guards through which its bytes are read and changed.
//!
//! Invariants
//!   F1  A frame holds the same page, in the same life of its number, from creation to drop.
//!   F2  The bytes change only through a [`WriteGuard`], that is inside a mini-transaction and under the exclusive latch.
//!   F3  The first change through a guard marks the page dirty in the mini-transaction's epoch and moves its version.
//!   F4  The pool gives up a frame only when nobody else holds a reference to it; a freed page's frame lives on
//!       for those who do, and cannot be changed any more.
//!   F5  When `dirty` changes: see `hand_over`.

use super::buffers::Buffers;
use super::hand_over::HandOver;
use super::latch_count::LatchToken;
use super::{MiniTransaction, PageClass};
use crate::base::{Epoch, PageId, TreeId};
use crate::format::page::{is_built, PageBuf, PageView};
use parking_lot::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;

/// Uses beyond this count as this many.
const USES_MAX: u8 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) pid: PageId,
    pub(super) tree: TreeId,
    pub(super) class: PageClass,
    pub(super) bytes_count: usize,
    /// The latch with the bytes under it.
    bytes: RwLock<PageBuf>,
    /// Moves with every change; never the same for two contents of a page.
    version: AtomicU64,
    /// Epoch of the changes that are not written yet; 0 when clean.
    dirty: AtomicU64,
    detached: AtomicBool,
    uses: AtomicU8,
    /// Read ahead and not fetched since.
    ahead: AtomicBool,
    buffers: Arc<Buffers>,
}

impl Frame {
    /// `load_no` is different for every frame of a pool's life.
    pub(super) fn new(
        pid: PageId,
        tree: TreeId,
        class: PageClass,
        bytes: PageBuf,
        load_no: u64,
        buffers: Arc<Buffers>,
    ) -> Self {
        Self {
            pid,
            tree,
            class,
            bytes_count: bytes.len(),
            bytes: RwLock::new(bytes),
            version: AtomicU64::new(load_no << 32),
            dirty: AtomicU64::new(0),
            detached: AtomicBool::new(false),
            uses: AtomicU8::new(0),
            ahead: AtomicBool::new(false),
            buffers,
        }
    }

    /// The epoch whose changes are not written yet.
    pub(super) fn dirty(&self) -> Option<Epoch> {
        match self.dirty.load(Ordering::Acquire) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// See F5.
    pub(super) fn set_dirty(&self, epoch: Option<Epoch>) {
        self.dirty.store(epoch.map_or(0, |epoch| epoch.0), Ordering::Release);
    }

    /// Whether the page has been freed.
    pub(super) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    pub(super) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    /// The latch that lets readers in, but no writer and nobody else who wants to write the page out.
    pub(super) fn latch_to_write_out(&self) -> RwLockUpgradableReadGuard<'_, PageBuf> {
        self.bytes.upgradable_read()
    }

    /// As [`latch_to_write_out`](Self::latch_to_write_out) without waiting.
    pub(super) fn try_latch_to_write_out(&self) -> Option<RwLockUpgradableReadGuard<'_, PageBuf>> {
        self.bytes.try_upgradable_read()
    }

    /// The bytes, unless somebody is changing them. Does not wait.
    pub(super) fn try_read(&self) -> Option<RwLockReadGuard<'_, PageBuf>> {
        self.bytes.try_read()
    }

    /// Bytes in use of a leaf, unless somebody is changing it; none of other pages. Does not wait.
    pub(super) fn leaf_used_bytes(&self) -> Option<usize> {
        let bytes = self.bytes.try_read()?;
        let view = PageView::new(&bytes);
        (is_built(&bytes) && view.is_leaf() && !view.is_dead()).then(|| view.used_bytes())
    }

    /// Notes that the page was read before anybody asked for it.
    pub(super) fn set_ahead(&self) {
        self.ahead.store(true, Ordering::Relaxed);
    }

    /// Whether the page was read ahead; `true` once.
    pub(super) fn take_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) && self.ahead.swap(false, Ordering::Relaxed)
    }

    pub(super) fn count_use(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        if uses < USES_MAX {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn uses(&self) -> u8 {
        self.uses.load(Ordering::Relaxed)
    }

    pub(super) fn forget_uses(&self) {
        self.uses.store(0, Ordering::Relaxed);
    }

    pub(super) fn forget_one_use(&self) {
        self.uses.store(self.uses().saturating_sub(1), Ordering::Relaxed);
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let bytes = std::mem::replace(self.bytes.get_mut(), PageBuf::new(0));
        self.buffers.give(self.class, bytes);
    }
}

/// A page pinned in memory: it is not evicted while this exists.
#[derive(Clone, Debug)]
pub struct PageRef(pub(super) Arc<Frame>);

impl PageRef {
    /// The page.
    pub fn pid(&self) -> PageId {
        self.0.pid
    }

    /// The tree that owns it.
    pub fn tree(&self) -> TreeId {
        self.0.tree
    }

    /// Its size class.
    pub fn class(&self) -> PageClass {
        self.0.class
    }

    /// Moves whenever the content changes, and differs between any two contents of this page number since the pool
    /// was opened, even if the page was evicted and read again meanwhile.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Whether the page has been freed. References to it stay readable.
    pub fn is_freed(&self) -> bool {
        self.0.is_detached()
    }

    /// Takes the shared latch; waits for a writer.
    pub fn read(&self) -> ReadGuard<'_> {
        ReadGuard { bytes: self.0.bytes.read(), _held: LatchToken::new() }
    }

    /// Takes the exclusive latch; waits for readers and writers. Nothing is marked as changed until the bytes are
    /// borrowed mutably; look first (page dead? key in range?) through the shared view.
    pub fn write<'a>(&'a self, mtr: &'a MiniTransaction<'_>) -> WriteGuard<'a> {
        WriteGuard {
            bytes: self.0.bytes.write(),
            frame: &self.0,
            mtr,
            changed: false,
            _held: LatchToken::new(),
        }
    }
}

/// The bytes of a page under the shared latch.
#[derive(Debug)]
pub struct ReadGuard<'a> {
    bytes: RwLockReadGuard<'a, PageBuf>,
    _held: LatchToken,
}

impl Deref for ReadGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The bytes of a page under the exclusive latch.
#[derive(Debug)]
pub struct WriteGuard<'a> {
    bytes: RwLockWriteGuard<'a, PageBuf>,
    frame: &'a Arc<Frame>,
    mtr: &'a MiniTransaction<'a>,
    changed: bool,
    _held: LatchToken,
}

impl WriteGuard<'_> {
    /// The page.
    pub fn pid(&self) -> PageId {
        self.frame.pid
    }

    /// Whether the page has been freed and must not be changed.
    pub fn is_freed(&self) -> bool {
        self.frame.is_detached()
    }
}

impl Deref for WriteGuard<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for WriteGuard<'_> {
    /// Marks the page dirty (F3).
    ///
    /// # Panics
    /// When the page has been freed: the change would be lost.
    fn deref_mut(&mut self) -> &mut [u8] {
        if !self.changed {
            self.mtr.pool().before_change(self.frame, &self.bytes, self.mtr.epoch());
            self.frame.version.fetch_add(1, Ordering::Release);
            self.changed = true;
        }
        &mut self.bytes
    }
}
