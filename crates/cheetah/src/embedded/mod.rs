//! The engine inside a program: a directory on disk with its threads, and keys that the crate
//! encodes.
//!
//! Invariants
//!   I1  A [`Database`] has its threads from `open` to `close`, and is closed when it is dropped.
//!   I2  Of two [`Key`]s with the same kinds of parts none is the beginning of the other, and their
//!       bytes sort as their parts do. Their encoding never changes: it is on users' disks.

mod database;
mod key;

pub use database::Database;
pub use key::Key;
