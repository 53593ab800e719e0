//! The buffer pool: logical pages in memory, and everything that moves them to and from disk.
//!
//! A page is addressed by its [`PageId`](crate::base::PageId). The page table says in one place where it is in
//! memory and where its newest image is on disk. Changes happen inside an [`Action`]; a checkpoint flips the
//! generation between actions, so that each generation contains whole actions only.
//!
//! Lock order, outermost first: gate, page latches (tree order), the queues of the evictor, one page entry, the
//! sets of a generation, the segments. Nobody waits for the gate while holding any of the others.

#![expect(dead_code, reason = "the checkpoint uses these")]

mod class;
mod frame;
mod gate;
mod latch_count;
mod page_table;
mod pages;
mod pids;
mod trees;

pub use class::PageClass;
pub use frame::{PageRef, ReadGuard, WriteGuard};
pub use gate::Action;
pub use pages::Pool;
pub use trees::{TreeBytes, TreeDef};
