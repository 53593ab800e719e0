//! Garbage collection: moves the images that are still needed out of segments that are mostly dead.
//!
//! Invariants
//!   C1  A page with unwritten changes, or whose location is not the one that was copied, is not
//!       moved: its old content must never come after newer content of an older epoch. Looked at
//!       again under the lock of the entry, inside the mini-transaction that installs the copy.
//!   I2  The work is coupled to what users write, so that it neither starves nor comes in bursts;
//!       at rest it goes on until the files are well filled.
//!   I3  An image that cannot be read stops the collection of its segment only.

mod collect;
mod collection;

pub(in crate::pool) use collection::Collection;
