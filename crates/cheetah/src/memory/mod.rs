//! The memory budget of the engine: how much memory each part uses and may use.
//!
//! Long-lived memory has a fixed size and is allocated once. Repeated large allocations would
//! fragment the process's heap, and the holes count as its memory. Frames have their own address
//! ranges (the pool's buffers).
//!
//! Invariants
//!   M1  All uses together stay within `buffer_pool_bytes`. The exceptions are frames allocated
//!       inside mini-transactions, a page read that finds no space after a few candidates, a chunk
//!       of images that was just allocated, and the half in M2 if the other uses take more than the
//!       rest. The pool's `make_room` compensates for the first three.
//!   M2  Frames, images and pending changes together may take the memory that the other uses do not
//!       take, but at least half of the budget. Pending changes take at most three quarters of
//!       this memory, images take at most a share of the rest, and frames take the remainder, at
//!       least 15 %. So the pool works even if the page table of a huge database takes a lot of
//!       memory.
//!   M3  The limit may change at any time. Parts whose size is set when the database is opened keep
//!       it: the buffers of the log, of streams and of the codec, the limits of locks and of
//!       sorting, the number of shards and the length of chunks. Dictionaries adapt when the next
//!       one is loaded. All other parts adapt in the next steps of the pool's cleaner.

mod budget;
mod reservation;
mod shares;

pub use budget::{MemoryBudget, MemoryUse};
pub use reservation::Reservation;
pub use shares::Shares;
