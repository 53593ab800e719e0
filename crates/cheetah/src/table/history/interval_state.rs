//! The state of interval garbage collection between its steps: how far it is, and which snapshots
//! there are. See [`super::interval_gc`].

use crate::base::{TxnId, UndoPtr};

/// How far interval garbage collection is.
#[derive(Default, Debug)]
pub(super) struct IntervalGc {
    /// How far it is.
    pub(super) ahead: UndoPosition,
    /// The place from which to look again, and where that ends.
    pub(super) again: Option<(UndoPosition, UndoPtr)>,
    /// Records that have been looked at for the first time, and have not paid for another one (I3).
    pub(super) paid: u64,
    pub(super) rests_until_ns: u64,
    pub(super) sight: Sight,
}

/// A place in the undo log.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct UndoPosition {
    /// The next finish record is here or behind it.
    pub(super) at: UndoPtr,
    /// Its transaction, when that has been begun with.
    pub(super) under: Option<Under>,
}

/// A transaction that is being looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) by: TxnId,
    pub(super) stamp: u64,
    /// The next record to look at, and its number; none is left at 0.
    pub(super) head: UndoPtr,
    pub(super) undo_no: u64,
    pub(super) finish: Stretch,
}

/// A part of the undo log, from a finish record to behind that one or another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from: UndoPtr,
    pub(super) to: UndoPtr,
}

impl Stretch {
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

/// The live snapshots, and the stamps that they see.
#[derive(Default, Debug)]
pub(super) struct Sight {
    /// Stamps of snapshots, rising; the last one is seen by all that are not among them.
    pub(super) live: Vec<u64>,
    /// Marks with larger stamps stay: they are not published, or somebody watches.
    pub(super) up_to: u64,
    /// Where snapshots that are not the oldest have kept something; by their stamps.
    pub(super) kept: Vec<(u64, Stretch)>,
    /// The stretch to be looked at again (I3), and the one to come once something new has been
    /// looked at (I4).
    pub(super) due: Option<Stretch>,
    pub(super) busy: Option<Stretch>,
    /// An undo record of an older version.
    pub(super) older: Vec<u8>,
}
