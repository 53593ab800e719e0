//! Pages in memory: frames with their latches, the page table, and the free page numbers.
//!
//! Invariants
//!   F1  From creation to drop, a frame holds one page. When a page number is reused, the new page
//!       has a new frame.
//!   F2  The bytes change only through a [`WriteGuard`]: inside a mini-transaction and under the
//!       exclusive latch.
//!   F3  The first change through a guard marks the page dirty in the mini-transaction's epoch and
//!       increments its version.
//!   F4  The pool evicts a frame only if no thread refers to it. The frame of a freed page exists
//!       as long as threads refer to it, and cannot be changed.
//!   F5  `dirty` changes only as described in the module `writing`.
//!   F6  A thread never waits for a latch while it holds the lock of a page table entry. Otherwise
//!       it could deadlock with a thread that holds the latch and waits for the entry.
//!
//! A freed page number is not used again before the epoch that freed it has committed
//! (`page_numbers`).

mod buffers;
mod frame;
mod latch_count;
mod page_class;
mod page_numbers;
mod page_table;

pub(in crate::pool) use buffers::Buffers;
pub use frame::Frame;
pub(crate) use latch_count::latches_held;
pub(crate) use latch_count::ReservedToken;
pub(in crate::pool) use latch_count::{check_nothing_held, check_order, LatchToken};
pub use page_class::PageClass;
pub(in crate::pool) use page_numbers::FreePageNumbers;
pub use page_table::{EntryGuard, PageEntry, Residence};
pub(in crate::pool) use page_table::{EvictionTime, PageTable};
