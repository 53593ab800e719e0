//! Transactions without their tables: identities, locks, the undo log, and the versions that each
//! transaction sees.
//!
//! `locks` has the locks on tables, records and ranges of keys. `versions` has the outcome of each
//! transaction, and which snapshot sees it. `active` lists the transactions that have not ended,
//! `roster` all handles. `read_view` is a transaction's view, and `undo_log` the undo log.

mod active;
mod locks;
mod read_view;
mod roster;
mod undo_log;
mod versions;

#[cfg(test)]
mod undo_log_tests;

pub use active::{Active, Slot};
pub use locks::{
    hex, Answer, Blocking, BlockingKind, Deadlock, DeadlockMember, KeyRange, Lock, LockInfo, LockLimits,
    LockMode, LockSummary, LockTable, LockedOn, Outcome as LockOutcome, Owner, PendingLock, ShowKey,
    TableMode, Wait, WaitInfo,
};
pub use read_view::ReadView;
pub use roster::{Entry, Listed, Phase, Roster};
pub use undo_log::{start_record, UndoLog, UndoStart};
pub use versions::{Outcome, Reader, State, Versions};
