//! The buffer pool: logical pages in memory, and the code that moves them to and from disk.
//!
//! A page is addressed by its [`PageId`](crate::base::PageId). For each page, the page table has
//! its frame in memory and the location of its newest image on disk. Pages are changed inside a
//! [`MiniTransaction`]. A checkpoint switches the epoch between mini-transactions, so each epoch
//! contains complete mini-transactions only.
//!
//! Modules, lowest first: `counters` and `shards` (counters for status; sharded maps whose memory
//! is counted), `frames` (pages in memory), `mtr` (mini-transactions and epochs), `images`, `trees`
//! (the definition and the counters of each tree), `dictionaries`, `eviction`, `beside` (the
//! interface to `leaves`, which reads and changes leaves without a frame), `writing` (write-back
//! and the pool's part of a checkpoint), `pages` (the pages that the layers above use), `reading`,
//! `upkeep` (background passes over all images), `statistics`. A file imports types only from lower
//! modules. [`Pool`] holds the parts of all modules except `upkeep`. Most modules add methods to
//! it.
//!
//! The pool does not interpret keys. It knows one transaction ID: images omit the record versions
//! of transactions with lower IDs.
//!
//! Lock order, outermost first: upkeep (`state` of rotation and of scrubbing, `collection`) or a
//! dictionary's trial and making; gate; page latches (in the tree's order); one page entry; the
//! locks of `leaves` (see its `mod.rs`), the image cache; the changes of an epoch, the eviction
//! queues, free page numbers; segments. A thread that waits for the gate holds no lock or latch
//! that comes after the gate in this order.

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
pub(crate) use frames::{latches_held, ReservedToken};
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
pub use writing::{EndedEpoch, EpochState, WrittenEpoch};
