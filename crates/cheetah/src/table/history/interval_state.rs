//! The state of interval garbage collection between its steps: its progress, and the live
//! snapshots. See [`super::interval_gc`].

use crate::base::{TxnId, UndoPtr};

#[derive(Default, Debug)]
pub(super) struct IntervalGc {
    /// The position of the first pass.
    pub(super) ahead: UndoPosition,
    /// The position of the repeated pass, and its end.
    pub(super) again: Option<(UndoPosition, UndoPtr)>,
    /// First visits that have not yet paid for a repeated visit (I3).
    pub(super) paid: u64,
    pub(super) rests_until_ns: u64,
    pub(super) sight: Sight,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct UndoPosition {
    /// The next finish record is at this address or after it.
    pub(super) at: UndoPtr,
    pub(super) under: Option<Under>,
}

/// A transaction whose undo records are being visited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) by: TxnId,
    pub(super) stamp: u64,
    /// The next record to visit, and its number; 0 if there is none.
    pub(super) head: UndoPtr,
    pub(super) undo_no: u64,
    pub(super) finish: Stretch,
}

/// A range of the undo log, from the start of one finish record to the end of one.
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

/// The live snapshots, and the stamps they see.
#[derive(Default, Debug)]
pub(super) struct Sight {
    /// Stamps of live snapshots, ascending. Snapshots not listed see everything up to the last one.
    pub(super) live: Vec<u64>,
    /// Marks with larger stamps stay: they are not published, or a reader watches for changes.
    pub(super) up_to: u64,
    /// Ranges in which snapshots have kept records, with their stamps; without the oldest snapshot.
    pub(super) kept: Vec<(u64, Stretch)>,
    /// The range to visit again (I3), and the one to visit again after the next new record (I4).
    pub(super) due: Option<Stretch>,
    pub(super) busy: Option<Stretch>,
    pub(super) older: Vec<u8>,
}
