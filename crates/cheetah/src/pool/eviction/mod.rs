//! Eviction: chooses the frames to evict, and makes room in memory.
//!
//! The cleaner has usually written a dirty page before its eviction. Otherwise a thread that makes
//! room outside of mini-transactions writes the page itself.
//!
//! Invariant
//!   R1  A frame is evicted only if it is clean, in the page table, and not referenced by any
//!       thread. All three conditions are checked under the lock of its entry, which also protects
//!       the creation of references. Only `FifoLists` creates references without that lock, with
//!       `upgrade` under the lock of the queues. It creates none to a candidate, because candidates
//!       were taken out of the lists.

mod fifo_lists;
mod make_room;
mod s3_fifo;

pub(in crate::pool) use make_room::Purpose;
pub(in crate::pool) use s3_fifo::Queues;
