//! Locks of tables, records and ranges of keys.
//!
//! A lock is on a key or between keys, not on a record in a page: a split, a merge, an insert or a
//! purge does not move or inherit any. Records are told apart by a hash of tree and key; two that
//! share one are locked together.
//!
//! Invariants
//!   I1  The table never sleeps: a request is answered, or queued with a [`PendingLock`]. The
//!       caller decides how to wait, and how long, so that a simulator can interleave transactions.
//!   I2  No two owners are granted the same record in modes that conflict. An owner that is granted
//!       a range with records has only asked for the one at its end: it has seen that the rest of
//!       the range holds no other.
//!   I3  First come, first served: a request that conflicts with an earlier one that waits, waits
//!       behind it, unless that one waits for its owner.
//!   I4  A waiter is granted as soon as nothing blocks it; and in each cycle of waiters one request
//!       has been given up, so there is always a waiter that only a running owner blocks.
//!   I5  A lock is refused for want of memory before anything has changed.
//! Locks     `waits` (everybody who starts or ends waiting), a stripe of records, a shard of trees,
//!           a shard of owners; or `waits`, a shard of tables, a shard of owners. In this order,
//!           never across I/O or a wait.
//!
//! docs/developers/transactions.md, "Locks", tells a caller what to do.

mod acquire;
mod deadlock;
mod grant;
mod granted;
mod implicit;
mod key;
mod listing;
mod lock_compression;
mod lock_table;
mod locked_on;
mod memory;
mod modes;
mod pending_lock;
mod release;
mod request;
#[cfg(test)]
mod tests;
mod waits;

pub use deadlock::report::{Blocking, BlockingKind, Deadlock, DeadlockMember};
pub use granted::owners::LockSummary;
pub use listing::{LockInfo, WaitInfo};
pub use lock_table::{LockLimits, LockTable};
pub use locked_on::{hex, LockedOn, ShowKey};
pub use modes::{LockMode, TableMode};
pub use pending_lock::{Outcome, PendingLock};
pub use request::{Answer, KeyRange, Lock, Wait};

/// The owner of locks: one for each transaction handle, whether it has written or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u64);
