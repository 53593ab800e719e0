//! B-link trees: ordered records in slotted pages of the pool.
//!
//! A change has two halves. Outside of a mini-transaction, [`Tree::look_prepared`],
//! [`Tree::leave_cold`] and [`Tree::prepare_change`] search for the leaf and fill a [`Path`]: they
//! pin the leaf, or leave it cold and take a ticket. They may read from disk. Inside a
//! mini-transaction, [`Tree::reserve`] turns the ticket into reserved space. Then [`Tree::insert`],
//! [`Tree::put`], [`Tree::replace`] and [`Tree::remove`] change the leaf, and split pages that have
//! no room. Small leaves are merged afterwards, on request. Reading needs no mini-transaction.
//! docs/developers/tree.md explains the structure, the order of latches, and the differences from
//! the literature.
//!
//! Many files: one for each operation on a tree, and the parts that several operations share.

mod ahead;
mod build;
mod check;
mod cursor;
mod descend;
mod estimate;
mod handle;
mod look;
mod merge;
mod modify;
mod path;
mod readable;
mod split;
mod spread;
mod stats;
#[cfg(test)]
mod tests;
mod ticket;
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
