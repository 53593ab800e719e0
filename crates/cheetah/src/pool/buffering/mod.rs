//! Buffered changes: what becomes of keys of a leaf that is not in memory, and waits there for it
//! (decisions [40](../../../../docs/decisions/0040-buffered-inserts.md) and
//! [41](../../../../docs/decisions/0041-changes-without-their-leaf.md)). The status and some names
//! here call them entries.
//!
//! Invariants
//!   B1  Buffered changes of a page change under the lock of its page table entry, as its residence
//!       and its location do. They are there only while the page has no frame, and leave when its
//!       frame is published or a new image has them, or when they are given up.
//!   B2  A ticket is made under the shared latch of the parent that names the page, or from an
//!       image whose own fences have the key, and names the image. It is good as long as that is
//!       the newest image, and the page has no frame: fences change in frames only, a changed frame
//!       gets a new location before it goes, and locations are never given out twice.
//!   B3  They fit: a leaf that leaves memory notes how much room it has. A new record counts as if
//!       its key had no prefix in common with the page, one in place of another by what it is
//!       longer. Nothing waits for a leaf whose room is not known. That a leaf is full is known:
//!       what needs no room waits for it.
//!   B4  A frame that gets them is dirty in their epoch before others can see it. Of changes of two
//!       epochs, the image with those of the ended one is written first.
//!   B5  A page with changes of an epoch is in `buffered` of its changes. It goes from there to
//!       `dirty`, or is written, and never back: whoever goes through both begins with `buffered`.
//!   B6  The image under changes moves only in their epoch (C1).
//!   B8, B14 to B18  See docs/durability.md. V1 to V8  See `saving`.
//! Locks     after the lock of the page's entry: the order in which pages have come, then a shard
//!           of the map. Never the order with a shard held.

mod entries;
mod folding;
mod merging;
mod restoring;
mod saving;
mod small_leaves;
mod tickets;

pub use entries::Size;
pub(in crate::pool) use entries::{Buffering, Waiting};
pub(in crate::pool) use merging::Merged;
pub(in crate::pool) use saving::{SavedFiles, Saving};
pub(in crate::pool) use small_leaves::SmallLeaves;
pub use tickets::Ticket;
