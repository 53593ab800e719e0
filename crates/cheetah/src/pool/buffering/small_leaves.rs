//! Leaves that have become small when changes that waited for them were applied. Whoever removes a
//! record from a leaf in memory sees to it that a small leaf is merged with a neighbour. Nobody
//! does when the removal waits, so such leaves are noted for purge; and so are empty ones that are
//! read, of which the note was lost with a crash.

use crate::base::TreeId;
use crate::pool::Pool;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// From so many on, no more changes wait. Twice as many are noted; the others stay small until
/// another record of theirs goes, and those that are empty until they are read again.
const LEAVES_MANY: usize = 1024;

/// See the module. A leaf is told by its tree and its low fence.
#[derive(Default, Debug)]
pub(in crate::pool) struct SmallLeaves(Mutex<BTreeSet<(TreeId, Vec<u8>)>>);

impl SmallLeaves {
    pub(in crate::pool) fn note(&self, tree: TreeId, low: &[u8]) {
        let mut leaves = self.0.lock();
        if leaves.len() < 2 * LEAVES_MANY {
            leaves.insert((tree, low.to_vec()));
        }
    }

    pub(super) fn are_many(&self) -> bool {
        self.0.lock().len() >= LEAVES_MANY
    }
}

impl Pool {
    /// Whether there are any.
    pub fn has_small_leaves(&self) -> bool {
        !self.small_leaves.0.lock().is_empty()
    }

    /// A leaf that has become small when its changes were applied, by its tree and a key that
    /// belongs to it. Each is told once.
    pub fn next_small_leaf(&self) -> Option<(TreeId, Vec<u8>)> {
        self.small_leaves.0.lock().pop_first()
    }
}
