//! The memory budget of the engine: how much memory each part uses and may use.
//!
//! Long-lived memory has a fixed size and is allocated once. Repeated large allocations would
//! fragment the process's heap, and the holes count as its memory. Frames have their own address
//! ranges (the pool's buffers).
//!
//! Invariants
//!   M1  All uses together stay within `buffer_pool_bytes`. Exceptions: frames allocated inside
//!       mini-transactions, a page read that finds no room after a few candidates, a chunk of
//!       images just allocated, and M2's half when the other uses take more than the rest. The
//!       pool's `make_room` makes up for the first three.
//!   M2  Frames, images and pending changes together take what the other uses leave, but never less
//!       than half of the budget. Pending changes take at most half of that; images take at most a
//!       share of the rest, and frames take what remains. So a pool that gives memory to the page
//!       table of a huge database still works.
//!   M3  The limit may change at any time. Parts that were allocated when the database was opened
//!       keep their size: the buffers of the log, of streams and of the codec, the limits of locks
//!       and of sorting, the number of shards and the length of chunks. Dictionaries adapt when the
//!       next one is loaded. All else adapts in the next steps of the pool's cleaner.

mod budget;
mod reservation;
mod shares;

pub use budget::{MemoryBudget, MemoryUse};
pub use reservation::Reservation;
pub use shares::Shares;
