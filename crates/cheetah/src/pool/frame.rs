//! A page in memory, and the guards through which its bytes are read and changed.
//!
//! Invariants
//!   F1  A frame holds the same page, in the same life of its number, from creation to drop.
//!   F2  The bytes change only through a [`WriteGuard`], that is inside an action and under the exclusive latch.
//!   F3  The first change through a guard marks the page dirty in the action's generation and moves its version.
//!   F4  The pool gives up a frame only when nobody else holds a reference to it; a freed page's frame lives on
//!       for those who do, and cannot be changed any more.

use super::latch_count::LatchToken;
use super::{Action, PageClass};
use crate::base::{PageId, TreeId};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) pid: PageId,
    pub(super) tree: TreeId,
    pub(super) class: PageClass,
    /// The latch with the bytes under it.
    pub(super) bytes: RwLock<Box<[u8]>>,
    /// Moves with every change; never the same for two contents of a page.
    pub(super) version: AtomicU64,
    /// Whether the page has been freed.
    pub(super) detached: AtomicBool,
}

impl Frame {
    pub(super) fn new(pid: PageId, tree: TreeId, class: PageClass, bytes: Box<[u8]>, load_no: u64) -> Self {
        Self {
            pid,
            tree,
            class,
            bytes: RwLock::new(bytes),
            version: AtomicU64::new(load_no << 32),
            detached: AtomicBool::new(false),
        }
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

    /// Takes the shared latch; waits for a writer.
    pub fn read(&self) -> ReadGuard<'_> {
        ReadGuard { bytes: self.0.bytes.read(), _held: LatchToken::new() }
    }

    /// Takes the exclusive latch; waits for readers and writers. Nothing is marked as changed until the bytes are
    /// borrowed mutably; look first (page dead? key in range?) through the shared view.
    pub fn write<'a>(&'a self, action: &'a Action<'_>) -> WriteGuard<'a> {
        WriteGuard {
            bytes: self.0.bytes.write(),
            frame: &self.0,
            action,
            changed: false,
            _held: LatchToken::new(),
        }
    }
}

/// The bytes of a page under the shared latch.
#[derive(Debug)]
pub struct ReadGuard<'a> {
    bytes: RwLockReadGuard<'a, Box<[u8]>>,
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
    bytes: RwLockWriteGuard<'a, Box<[u8]>>,
    frame: &'a Arc<Frame>,
    action: &'a Action<'a>,
    changed: bool,
    _held: LatchToken,
}

impl WriteGuard<'_> {
    /// The page.
    pub fn pid(&self) -> PageId {
        self.frame.pid
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
            self.action.pool().before_change(self.frame, &self.bytes, self.action.generation());
            self.frame.version.fetch_add(1, Ordering::Release);
            self.changed = true;
        }
        &mut self.bytes
    }
}
