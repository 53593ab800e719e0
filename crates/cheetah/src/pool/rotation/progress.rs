//! How far rotation is.

use crate::base::PageId;
use crate::format::encryption::KeyName;
use crate::pool::statistics::Counter;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// See the room.
#[derive(Default, Debug)]
pub(in crate::pool) struct Rotation {
    pub(super) state: Mutex<State>,
    pub(super) moved: Counter,
}

#[derive(Default, Debug)]
pub(super) struct State {
    pub(super) pass: Option<RotationPass>,
    /// The next image may be read then.
    pub(super) due_ns: u64,
}

/// A walk through all pages.
#[derive(Clone, Default, Debug)]
pub struct RotationPass {
    /// The page to look at next.
    pub(super) next: PageId,
    /// Pages from here on are newer than the pass.
    pub(super) end: u64,
    /// Pages that could not be moved.
    pub(super) left: u64,
    /// Keys of images that stay.
    pub(super) seen: BTreeSet<KeyName>,
}

impl RotationPass {
    /// The page to look at next, and the first one behind the pass.
    pub fn place(&self) -> (u64, u64) {
        (self.next.0, self.end)
    }
}
