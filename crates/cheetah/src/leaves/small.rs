//! Leaves that have become small when their pending changes were applied. A thread that removes a
//! record from a leaf in memory sees to it that a small leaf is merged with a neighbour. Nobody
//! does when the removal is pending, so such leaves are noted for purge; and so are empty ones that
//! are read, of which the note was lost with a crash.

use super::Leaves;
use crate::base::TreeId;
use crate::format::page::{is_built, PageView};
use crate::pool::Frame;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// From this many on, no more changes may be pending. Twice as many are noted; the others stay
/// small until another record of theirs goes, and those that are empty until they are read again.
const LEAVES_MANY: usize = 1024;

/// See the module. A leaf is told by its tree and its low fence.
#[derive(Default, Debug)]
pub(super) struct SmallLeaves(Mutex<BTreeSet<(TreeId, Vec<u8>)>>);

impl SmallLeaves {
    pub(super) fn note(&self, tree: TreeId, low: &[u8]) {
        let mut leaves = self.0.lock();
        if leaves.len() < 2 * LEAVES_MANY {
            leaves.insert((tree, low.to_vec()));
        }
    }

    /// Notes a leaf without records that is no root. Nobody else has seen the frame.
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
    /// Whether there are any.
    pub fn has_small_leaves(&self) -> bool {
        !self.cold.small.0.lock().is_empty()
    }

    /// A leaf that has become small when its changes were applied, by its tree and a key that
    /// belongs to it. Each is told once.
    pub fn next_small_leaf(&self) -> Option<(TreeId, Vec<u8>)> {
        self.cold.small.0.lock().pop_first()
    }
}
