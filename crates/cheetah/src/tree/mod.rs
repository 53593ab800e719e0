//! B-link trees: ordered records in slotted pages of the pool.
//!
//! Every operation has two halves. [`Tree::prepare`] goes down and pins the way to the leaf; it may
//! read from disk. Inside a mini-transaction, [`Tree::insert`], [`Tree::replace`] and
//! [`Tree::remove`] change the leaf, splitting pages when there is no room; small leaves are merged
//! afterwards, on request. Reading needs no mini-transaction. docs/developers/tree.md explains the
//! structure, the order of latches, and the differences from the literature.
//!
//! Many files: one for each operation on a tree.

mod ahead;
mod build;
mod check;
mod cursor;
mod descend;
mod estimate;
mod handle;
mod merge;
mod modify;
mod path;
mod point;
mod put;
mod readable;
mod split;
mod spread;
mod stats;
#[cfg(test)]
mod tests;
mod unloaded;
mod walk;

pub use build::Builder;
pub(crate) use build::{fill_target, Packing};
pub use check::TreeReport;
pub use cursor::{successor, Cursor, Offered, SeekMode};
pub(crate) use handle::Fences;
pub use handle::{Tree, TreeDef};
pub use modify::{Changed, Removed};
pub use path::{Path, Peeked};
pub use readable::Gap;
pub use stats::TreeCounts;
pub use walk::{Sight, Walk};
