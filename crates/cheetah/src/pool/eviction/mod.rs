//! Eviction: which frames leave memory, and making room.
//!
//! The cleaner has usually written a changed page before its turn. Where it has not, a thread that
//! makes room outside of mini-transactions writes the page itself.
//!
//! Invariant
//!   R1  A frame is given up only when it is clean, in the page table, and referenced by nobody
//!       else. All three are looked at under the lock of its entry, where new references to it are
//!       made. Only `FifoLists` makes others, by `upgrade` under the lock of the queues; and of a
//!       candidate it makes none, as that has been taken out of the lists.

mod fifo_lists;
mod make_room;
mod s3_fifo;

pub(in crate::pool) use make_room::Purpose;
pub(in crate::pool) use s3_fifo::Queues;
