//! The memory budget of the engine: how much each part uses, and how much it may use.
//!
//! What lives long has a fixed size and is allocated once. Memory that comes and goes in large
//! pieces leaves holes in the allocator of the process, and these count as its memory. Frames have
//! addresses of their own (the pool's buffers).
//!
//! Invariants
//!   M1  All uses together stay within `buffer_pool_bytes`. Exceptions: frames allocated inside
//!       mini-transactions, a page read that finds no room in a few looks, and M2's half when the
//!       other uses take more than the rest. The pool's `make_room` pays the first two back.
//!   M2  Frames and the image cache take what the other uses leave, but never less than half. A
//!       pool that gives memory to the page table of a huge database still works.

mod budget;
mod reservation;
mod shares;

pub use budget::{MemoryBudget, MemoryUse};
pub use reservation::Reservation;
pub use shares::Shares;
