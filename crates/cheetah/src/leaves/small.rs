//! Leaves that became small when their pending changes were applied.
//!
//! A thread that removes a record from a leaf in memory also merges the leaf if it has become
//! small. A pending removal cannot, so its leaf is noted for purge. Empty leaves that are read are
//! noted too, because a crash loses the notes.

use super::Leaves;
use crate::base::TreeId;
use crate::format::page::{is_built, PageView};
use crate::pool::Frame;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// With this number of noted leaves no more changes may become pending; at most twice as many
/// leaves are noted. A leaf that is not noted stays small until another of its records is removed,
/// or, if it is empty, until it is read again.
const LEAVES_MANY: usize = 1024;

#[derive(Default, Debug)]
pub(super) struct SmallLeaves(Mutex<BTreeSet<(TreeId, Vec<u8>)>>);

impl SmallLeaves {
    pub(super) fn note(&self, tree: TreeId, low: &[u8]) {
        let mut leaves = self.0.lock();
        if leaves.len() < 2 * LEAVES_MANY {
            leaves.insert((tree, low.to_vec()));
        }
    }

    /// Notes a leaf without records that is not a root. No other thread may know the frame yet.
    pub(super) fn note_if_empty(&self, frame: &Frame) {
        let Some(bytes) = frame.try_read() else { return };
        let page = PageView::new(&bytes);
        let is_leaf = is_built(&bytes) && page.is_leaf() && !page.is_dead();
        let is_root = || page.low().is_empty() && page.high().is_none();
        if is_leaf && page.count() == 0 && !is_root() {
            self.note(frame.tree, page.low());
        }
    }

    pub(super) fn are_many(&self) -> bool {
        self.0.lock().len() >= LEAVES_MANY
    }
}

impl Leaves {
    /// Returns whether any leaf is noted.
    pub fn has_small_leaves(&self) -> bool {
        !self.cold.small.0.lock().is_empty()
    }

    /// Removes and returns a noted leaf: its tree, and a key that belongs to it.
    pub fn next_small_leaf(&self) -> Option<(TreeId, Vec<u8>)> {
        self.cold.small.0.lock().pop_first()
    }
}
