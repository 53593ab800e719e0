//! References to pages in memory, and guards for reading and changing their bytes.

use crate::base::{page_work, PageId, TreeId};
use crate::format::page::{PageBuf, PageMut};
use crate::pool::frames::{check_order, Frame, LatchToken};
use crate::pool::writing::HandOver;
use crate::pool::{MiniTransaction, PageClass};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A page pinned in memory: it is not evicted while this exists.
#[derive(Clone, Debug)]
pub struct PageRef(pub(in crate::pool) Arc<Frame>);

impl PageRef {
    /// The frame of the page.
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.0
    }

    /// The page number.
    pub fn pid(&self) -> PageId {
        self.0.pid
    }

    /// The tree that owns the page.
    pub fn tree(&self) -> TreeId {
        self.0.tree
    }

    /// The page's size class.
    pub fn class(&self) -> PageClass {
        self.0.class
    }

    /// A number that changes whenever the content changes. No two contents of this page number have
    /// the same version since startup, even if the page was evicted and read again.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Returns whether the page was freed. References to it stay readable.
    pub fn is_freed(&self) -> bool {
        self.0.is_detached()
    }

    /// Takes the shared latch; waits for a writer.
    pub fn read(&self) -> ReadGuard<'_> {
        check_order();
        ReadGuard { bytes: self.0.bytes.read(), _held: LatchToken::new() }
    }

    /// Takes the exclusive latch; waits for readers and writers. The page is marked dirty when the
    /// bytes are first borrowed mutably. So the caller first checks through the shared view that
    /// the page is not dead and that the key is in its range.
    pub fn write<'a>(&'a self, mtr: &'a MiniTransaction<'_>) -> WriteGuard<'a> {
        check_order();
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
    /// The page number.
    pub fn pid(&self) -> PageId {
        self.frame.pid
    }

    /// Returns whether the page was freed and must not be changed.
    pub fn is_freed(&self) -> bool {
        self.frame.is_detached()
    }

    /// Removes the record versions that no transaction needs any longer (C2). Returns whether it
    /// removed any. The page must be a leaf.
    pub fn forget_old_versions(&mut self) -> bool {
        let below = self.mtr.pool().freeze_below(self.mtr.epoch());
        PageMut::new(self).freeze_below(below)
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
    /// If the page was freed: the change would be lost.
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        if !self.changed {
            self.mtr.pool().before_change(self.frame, &self.bytes, self.mtr.epoch());
            // No other thread changes the version: this guard holds the exclusive latch.
            let version = self.frame.version.load(Ordering::Relaxed);
            self.frame.version.store(version + 1, Ordering::Release);
            self.changed = true;
            page_work::count(|work| work.pages_updated += 1);
        }
        &mut self.bytes
    }
}
