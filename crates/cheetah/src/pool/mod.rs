//! The buffer pool: logical pages in memory, and everything that moves them to and from disk.
//!
//! A page is addressed by its [`PageId`](crate::base::PageId). The page table says in one place where it is in
//! memory and where its newest image is on disk. Changes happen inside an [`MiniTransaction`]; a checkpoint switches the
//! epoch between mini-transactions, so that each epoch contains whole mini-transactions only.
//!
//! Lock order, outermost first: gate, page latches (in the tree's order), one page entry, the sets of an epoch
//! and the queues of the evictor, the segments. Nobody waits for the gate while holding any of the others.

mod ahead;
mod buffers;
mod cached;
mod changes;
mod class;
mod cleaner;
mod codec;
mod collect;
mod counters;
mod cut;
mod dictionaries;
mod dictionary_cache;
mod dictionary_trials;
mod doors;
mod drop_tree;
mod ended_epoch;
mod frame;
mod gate;
mod hand_over;
mod image_work;
mod in_memory;
mod latch_count;
mod lists;
mod load;
mod loads;
mod pacing;
mod page_table;
mod pages;
mod pids;
mod queues;
mod room;
mod scratch;
mod stats;
mod trees;
pub(crate) mod trial;
mod write_beside;
mod write_out;

#[cfg(test)]
mod ahead_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod dictionary_tests;
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

use crate::base::sync;

pub use crate::segment::Reserve;
pub use ahead::REQUEST_PAGES_MAX;
pub use cached::Cached;
pub use class::PageClass;
pub use dictionaries::DictionaryDue;
pub use dictionary_trials::LentTree;
pub use ended_epoch::{EndedEpoch, EpochState, WrittenEpoch};
pub use frame::{PageRef, ReadGuard, WriteGuard};
pub use gate::MiniTransaction;
pub use image_work::{ImageWork, IMAGE_BYTES_CLASSES};
pub use pacing::Pressure;
pub use pages::Pool;
pub use stats::{PoolFlow, PoolStats};
pub use trees::{PageCounts, TreeBytes, TreeDef};
