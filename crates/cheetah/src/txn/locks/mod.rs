//! Locks on tables, records and ranges of keys.
//!
//! A lock is on a key or between keys, not on a record in a page: splits, merges, inserts and purge
//! neither move nor inherit locks. Records are identified by a hash of tree and key; two records
//! with the same hash are locked together.
//!
//! Invariants
//!   I1  The lock table never sleeps: a request is answered, or queued with a [`PendingLock`]. The
//!       caller decides how to wait, and how long, so that a simulator can interleave transactions.
//!   I2  No two owners are granted the same record in conflicting modes. An owner that is granted a
//!       range with records has requested only the record at the range's end. The owner has seen
//!       that the rest of the range contains no other record.
//!   I3  First come, first served. A request that conflicts with an earlier waiting request waits
//!       until that request is granted, unless the earlier request waits for the later request's
//!       owner.
//!   I4  A waiter is granted as soon as nothing blocks it. In each cycle of waiters, one request
//!       has failed. So there is always a waiter that is blocked only by a running owner.
//!   I5  A lock is refused for lack of memory before anything has changed.
//! Locks     `waits` (for all owners that begin or end waiting), a stripe of records, a shard of
//!           trees, a shard of owners; or `waits`, a shard of tables, a shard of owners. In this
//!           order, never across I/O or a wait.
//!
//! docs/developers/transactions.md, "Locks", describes how a caller uses locks.

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

/// The owner of locks: each transaction handle has one, whether or not it has written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner(pub u64);
