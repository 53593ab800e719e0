//! The memory budget of the engine: how much each part uses, and how much it may use.
//!
//! Long-lived memory has a fixed size and is allocated once. Memory that comes and goes in large
//! pieces leaves holes in the allocator of the process, and these count as its memory. Frames have
//! addresses of their own (the pool's buffers).
//!
//! Invariants
//!   M1  All uses together stay within `buffer_pool_bytes`. Exceptions: frames allocated inside
//!       mini-transactions, a page read that finds no room in a few looks, a chunk of images that
//!       has just been taken, and M2's half when the other uses take more than the rest. The
//!       pool's `make_room` pays the first three back.
//!   M2  Frames, images and buffered changes together take what the other uses leave, and never
//!       less than half. Buffered changes have at most a half of that; of the rest images have at
//!       most a share, and frames what is left. A pool that gives memory to the page table of a
//!       huge database still works.
//!   M3  The limit may change at any time. Parts that were set aside when the database was opened
//!       keep their size: the buffers of the log, of streams and of the codec, the limits of locks
//!       and of sorting, the shards and the length of chunks. Dictionaries follow when the next one
//!       comes. All else follows in the next steps of the pool's cleaner.

mod budget;
mod reservation;
mod shares;

pub use budget::{MemoryBudget, MemoryUse};
pub use reservation::Reservation;
pub use shares::Shares;
