//! A transaction from begin to end: changes, savepoints, commit, rollback, two-phase commit. The
//! invariants I1 to I7 are in `handle`.

mod ending;
mod handle;
mod isolation;
mod two_phase;

pub use handle::{Savepoint, Transaction};
pub use isolation::{Isolation, OnLocked, Read};
