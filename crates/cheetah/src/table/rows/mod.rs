//! Row operations: insert, update and delete of a row with all its index entries, and the locks
//! they need.
//!
//! A [`request`] describes the operation. [`operation`] locks the rows ([`operation_locks`],
//! [`locker`]), looks them up ([`look`]), builds the stored row ([`values`], [`stored_row`],
//! [`large`]), plans the steps ([`change`], [`plan`]) and runs one mini-transaction ([`mtr`]).
//! Startup recovery repeats logged operations ([`redo`]).
//!
//! Invariants
//!   - Every refusal, and every wait for another transaction, for space or for the log, happens
//!     before the mini-transaction. Inside it, a stale path is searched again, which may read
//!     pages; a full log buffer is written, and so may be a page image that the ended epoch needs.
//!     None of these steps waits for a thread that waits for the gate. An error inside it stops the
//!     engine.
//!   - One mini-transaction changes the row, all its entries, the row count, the undo log and the
//!     redo log, or nothing.
//!   - A transaction that waits for a lock holds only locks and pins of its own operation's paths:
//!     no latch, no table use, no purge latch.

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
