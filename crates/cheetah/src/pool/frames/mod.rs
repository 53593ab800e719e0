//! Pages in memory: frames with their latches, the page table, free page numbers.
//!
//! Invariants
//!   F1  A frame holds the same page, in the same life of its number, from creation to drop.
//!   F2  The bytes change only through a [`WriteGuard`]: inside a mini-transaction and under the
//!       exclusive latch.
//!   F3  The first change through a guard marks the page dirty in the mini-transaction's epoch and
//!       moves its version.
//!   F4  The pool gives up a frame only when nobody else holds a reference to it. A freed page's
//!       frame lives on for those who do, and cannot be changed any more.
//!   F5  When `dirty` changes: see `writing`.
//!   F6  Locks of page table entries come after latches: nobody waits for a latch under one, or a
//!       thread that has the latch and wants the lock would wait for ever.
//! A page number that is freed is given out again only after its epoch has committed
//! (`page_numbers`).

mod buffers;
mod frame;
mod latch_count;
mod page_class;
mod page_numbers;
mod page_table;

pub(in crate::pool) use buffers::Buffers;
pub use frame::Frame;
pub(crate) use latch_count::ReservedToken;
pub(in crate::pool) use latch_count::{check_nothing_held, check_order, latches_held, LatchToken};
pub use page_class::PageClass;
pub(in crate::pool) use page_numbers::FreePageNumbers;
pub use page_table::{EntryGuard, PageEntry, Residence};
pub(in crate::pool) use page_table::{EvictionTime, PageTable};
