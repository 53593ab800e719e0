//! Row operations: insert, update and delete of a row with all its index entries, and the locks
//! that they need.
//!
//! A [`request`] says what is asked for. [`operation`] locks the rows ([`operation_locks`],
//! [`locker`]), looks ([`look`]), builds the stored row ([`values`], [`stored_row`], [`large`]),
//! plans the steps ([`change`], [`plan`]) and runs one mini-transaction ([`mtr`]).
//!
//! Invariants
//!   - All that can wait, fail or read comes before the mini-transaction; nothing is refused in it.
//!   - One mini-transaction changes the row, all its entries, the row count, the undo log and the
//!     log, or nothing.
//!   - Who waits for a lock holds nothing but locks.

pub(crate) mod change;
pub(crate) mod large;
pub(crate) mod locker;
pub(crate) mod look;
pub(crate) mod mtr;
pub(crate) mod operation;
pub(crate) mod operation_locks;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod stored_row;
pub(crate) mod values;
pub(crate) mod writer;
