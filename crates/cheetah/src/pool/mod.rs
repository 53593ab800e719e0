//! The buffer pool: logical pages in memory, and everything that moves them to and from disk.
//!
//! A page is addressed by its [`PageId`](crate::base::PageId). The page table says in one place
//! where it is in memory and where its newest image is on disk. Changes happen inside a
//! [`MiniTransaction`]. A checkpoint switches the epoch between mini-transactions, so each epoch
//! contains whole mini-transactions only.
//!
//! Rooms: `frames` (pages in memory), `mtr` (mini-transactions and epochs), `reading`, `eviction`,
//! `images`, `buffering` (changes that wait for a leaf), `filters` (which keys a leaf lacks),
//! `writing` (write-back and the pool's part of a checkpoint), `dictionaries`,
//! `garbage_collection`, `rotation` (images are encrypted with newer keys), `scrubbing` (reading
//! all images to find damage), `statistics`. Beside them: `cells` (memory for small things),
//! `shards`, `trees` (the definition and the counters of each tree), `drop_tree`. [`Pool`] holds
//! the parts of all. The order is for reading, not of imports.
//!
//! Of transactions the pool knows one number: versions below it are left out of images.
//!
//! Lock order, outermost first: rotation (`state`), scrubbing, garbage collection (`collection`) or
//! a dictionary's trial and making; gate; page latches (in the tree's order); one page entry; what
//! waits (order, then map), filters, the image cache, small leaves; the changes of an epoch, the
//! eviction queues, free page numbers; segments. Nobody waits for the gate with a lock or latch
//! that stands behind it.

mod buffer_pool;
mod buffering;
mod cells;
pub(crate) mod dictionaries;
mod drop_tree;
mod eviction;
mod filters;
mod frames;
mod garbage_collection;
mod images;
mod in_memory;
mod mtr;
mod reading;
mod rotation;
mod scrubbing;
mod shards;
mod statistics;
mod trees;
mod writing;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod interleaving_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::durable::space::Reserve;
pub use buffer_pool::{Pool, PoolParts};
pub use buffering::{Size, Ticket};
pub use dictionaries::{DictionaryDue, LentTree};
pub use filters::KeyPart;
pub use frames::{PageClass, PageRef, ReadGuard, WriteGuard};
pub use images::{ImageWork, IMAGE_BYTES_CLASSES};
pub use mtr::MiniTransaction;
pub use reading::{Fetched, InImage, Stored, Unloaded, REQUEST_PAGES_MAX};
pub use rotation::{Rotated, RotationPass};
pub use scrubbing::Scrubbed;
pub use statistics::{Cached, CurvePoint, PoolFlow, PoolStats};
pub use trees::{PageCounts, TreeBytes, TreeDef};
pub use writing::{EndedEpoch, EpochState, Pressure, WrittenEpoch};
