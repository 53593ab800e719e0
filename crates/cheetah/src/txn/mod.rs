//! Transactions without their tables: identities, locks, and the undo log.

mod active;
mod locks;
mod undo_log;

pub use active::{Active, Slot};
pub use locks::{
    Answer, Blocking, BlockingKind, Deadlock, DeadlockMember, KeyRange, Lock, LockInfo, LockLimits, LockMode,
    LockTable, LockedOn, Outcome, Owner, TableMode, Ticket, Wait, WaitInfo,
};
pub use undo_log::{start_record, UndoLog, UndoStart};
