//! What all parts of an open database share.
//!
//! Invariants
//!   - Nothing here knows how rows are written, rolled back or purged: those import this folder.
//!   - Latches of this folder are taken before the gate is entered: unique keys first, then the
//!     latches that keep purge away.

pub(crate) mod deadlock_report;
pub(crate) mod deadlocks;
pub(crate) mod parts;
pub(crate) mod purge_latch;
pub(crate) mod unique_keys;
