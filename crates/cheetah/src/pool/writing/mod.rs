//! Write-back: when pages are written, and how their changes enter the right epoch.
//!
//! Invariants
//!   W1  (C1) Locations and the moves of an epoch change only in `install` and `free`, under the
//!       lock of the page's entry. The content of a page's image in the moves of an epoch is never
//!       older than in the previous epoch. `abandon` passes the moves of an epoch to the next epoch
//!       when no thread can add moves.
//!   W2  Flush before modify: a page that is dirty in the epoch being written is written before it
//!       changes. So no image of epoch n contains a change of n+1.
//!   W3  Between its allocation and its building a page is dirty and all zero. Only threads that
//!       write pages of the current epoch meet such a page, since all pages of an ended epoch are
//!       built.
//!   F5  The epoch in which a page is dirty, if any, changes under the lock of its entry. A clean
//!       page becomes dirty under the exclusive latch. A dirty page becomes clean under the
//!       exclusive or the upgradable latch.

mod cleaner;
mod cleaner_work;
mod ended_epoch;
mod epoch_in_writing;
mod hand_over;
mod write_beside;
mod write_out;

use crate::base::sync;

pub(in crate::pool) use cleaner_work::Cleaner;
pub use ended_epoch::{EndedEpoch, EpochState, WrittenEpoch};
pub(in crate::pool) use epoch_in_writing::EpochInWriting;
pub(in crate::pool) use hand_over::HandOver;
