//! Row operations: insert, update and delete of a row with all its index entries, and the locks
//! that they need.
//!
//! A [`request`] says what is asked for. [`operation`] locks the rows ([`operation_locks`],
//! [`locker`]), looks ([`look`]), builds the stored row ([`values`], [`stored_row`], [`large`]),
//! plans the steps ([`change`], [`plan`]) and runs one mini-transaction ([`mtr`]). Startup recovery
//! repeats logged operations ([`redo`]).
//!
//! Invariants
//!   - All that can be refused, and all waits for other transactions, for room and for the log's
//!     space, come before the mini-transaction. Inside it a path that has become stale is searched
//!     again, which may read; a full buffer of the log is written, and so may be the image of a
//!     page that the ended epoch needs. None of that waits for anybody who waits for the gate. An
//!     error there stops the engine.
//!   - One mini-transaction changes the row, all its entries, the row count, the undo log and the
//!     log, or nothing.
//!   - A transaction that waits for a lock holds locks, and at most pins of the paths of its own
//!     operation: no latch, no use of a table, no purge latch.

pub(crate) mod change;
pub(crate) mod large;
pub(crate) mod locker;
pub(crate) mod look;
pub(crate) mod mtr;
pub(crate) mod operation;
pub(crate) mod operation_locks;
pub(crate) mod plan;
pub(crate) mod redo;
pub(crate) mod request;
pub(crate) mod stored_row;
pub(crate) mod values;
pub(crate) mod writer;
