//! The buffer pool: logical pages in memory, and everything that moves them to and from disk.
//!
//! A page is addressed by its [`PageId`](crate::base::PageId). The page table says in one place
//! where it is in memory and where its newest image is on disk. Changes happen inside a
//! [`MiniTransaction`]. A checkpoint switches the epoch between mini-transactions, so each epoch
//! contains whole mini-transactions only.
//!
//! Rooms, lowest first: `frames` (pages in memory), `mtr` (mini-transactions and epochs), `images`,
//! `trees` (the definition and the counters of each tree), `dictionaries`, `eviction`, `beside`
//! (the door for the layer above that knows leaves without a frame), `writing` (write-back and the
//! pool's part of a checkpoint), `pages` (as others have them), `reading`, `upkeep` (what goes over
//! all images in the background), `statistics`. [`Pool`] holds the parts of all but upkeep, and
//! each room adds methods to it. A file imports types of other rooms only from lower ones.
//!
//! The pool knows no keys. Of transactions it knows one number: versions below it are left out of
//! images.
//!
//! Lock order, outermost first: upkeep (`state` of rotation and of scrubbing, `collection`) or a
//! dictionary's trial and making; gate; page latches (in the tree's order); one page entry; the
//! locks of `leaves` (see there), the image cache; the changes of an epoch, the eviction queues,
//! free page numbers; segments. Nobody waits for the gate with a lock or latch that stands behind
//! it.

mod beside;
mod buffer_pool;
mod counters;
pub(crate) mod dictionaries;
mod eviction;
mod frames;
mod images;
mod mtr;
mod pages;
mod reading;
mod shards;
mod statistics;
mod trees;
mod upkeep;
mod writing;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod interleaving_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod reservation_model_tests;
#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::durable::space::Reserve;
pub use beside::{BesideFrames, Merged, NothingBeside};
pub use buffer_pool::{Pool, PoolParts};
pub(crate) use counters::Counter;
pub use dictionaries::{DictionaryDue, LentTree, Trial};
pub(crate) use frames::ReservedToken;
pub use frames::{EntryGuard, Frame, PageClass, PageEntry, Residence};
pub use images::{ImageWork, IMAGE_BYTES_CLASSES};
pub use mtr::MiniTransaction;
pub use pages::{PageRef, ReadGuard, WriteGuard};
pub use reading::REQUEST_PAGES_MAX;
pub(crate) use reading::{Lookup, Reuse};
pub(crate) use shards::{Shards, TakesMemory};
pub use statistics::{Cached, CurvePoint, PoolFlow, PoolStats};
pub use trees::{PageCounts, TreeBytes, TreeDef};
pub use upkeep::{Rotated, RotationPass, Scrubbed, Upkeep};
pub use writing::{EndedEpoch, EpochState, Pressure, WrittenEpoch};
