//! The engine inside a program: a directory on disk with its threads, and keys that the crate
//! encodes.
//!
//! Invariants
//!   I1  A [`Database`] has background threads from `open` to `close`, and is closed when it is
//!       dropped.
//!   I2  Of two different [`Key`]s with the same kinds of parts, neither is a prefix of the other,
//!       and their bytes sort in the order of their parts. The encoding never changes: it is on
//!       users' disks.

mod database;
mod key;

pub use database::Database;
pub use key::Key;
