//! Write-back: when pages are written, and how their changes come into the epoch they belong to.
//!
//! Invariants
//!   W1  (C1) Locations and the moves of an epoch change only in `install` and `free`, under the
//!       lock of the page's entry. An epoch's move of a page is never older in content than that of
//!       the epoch before. `abandon` hands the moves of an epoch on to the next when nobody can add
//!       any.
//!   W2  Flush before modify: a page that is dirty in the epoch being written is written before it
//!       changes. Nobody sees an image of epoch n with a change of n+1 in it.
//!   W3  Between being allocated and being built a page is dirty and all zero. Only threads that
//!       write pages of the current epoch meet it: an epoch that has ended has built all its pages.
//!   F5  A page becomes dirty, clean, or dirty in another epoch under the lock of its entry: from
//!       clean to dirty under the exclusive latch, to clean under the exclusive or the upgradable
//!       one.

mod cleaner;
mod cleaner_work;
mod ended_epoch;
mod epoch_in_writing;
mod hand_over;
mod pressure;
mod write_beside;
mod write_out;

use crate::base::sync;

pub(in crate::pool) use cleaner_work::Cleaner;
pub use ended_epoch::{EndedEpoch, EpochState, WrittenEpoch};
pub(in crate::pool) use epoch_in_writing::EpochInWriting;
pub(in crate::pool) use hand_over::HandOver;
pub use pressure::Pressure;
