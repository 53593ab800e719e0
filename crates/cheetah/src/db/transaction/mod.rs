//! A transaction from its begin to its end: changes, savepoints, commit, rollback, two phases.
//! Invariants: I1 to I5 in `handle`.

mod ending;
mod handle;
mod isolation;
mod two_phase;

pub use handle::{Savepoint, Transaction};
pub use isolation::{Isolation, OnLocked, Read};
