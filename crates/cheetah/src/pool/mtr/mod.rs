//! Mini-transactions and the epochs that they belong to.
//!
//! Invariants
//!   G1  The epoch is constant while any mini-transaction is open.
//!   G2  A thread opens one mini-transaction at a time, and holds no page latch when it does (C7).
//!       Otherwise the epoch switch, which waits for open mini-transactions, and one that waits for
//!       that latch would wait for each other.
//!   G3  A panic inside a mini-transaction aborts the process: half of one must not reach a
//!       checkpoint. A mini-transaction that a thread opens while it unwinds already (a transaction
//!       is dropped, and rolls back) is like any other. A second panic inside of it aborts the
//!       process by the rules of the language.
//!   G4  (`epoch_switch`) When `at_switch` runs, every mini-transaction of the ended epoch is over
//!       and none of the next has begun.
//!   E1  (`epoch_changes`) A page whose frame is dirty in epoch n is in `dirty` of n, and nowhere
//!       else.
//!   E2  `moved` of n holds, for each page whose newest image of n is written, that image; `None`
//!       for a page that n has freed.
//!   E3  The counts change with the sets, under the shard's lock: a page seen clean is already
//!       uncounted. A checkpoint does not look for such a page, and must find nothing left at its
//!       end.

mod epoch_changes;
mod epoch_switch;
mod epochs;
mod gate;
mod mini_transaction;
mod pool_epochs;

use crate::base::sync;

pub(crate) use epoch_changes::EpochChanges;
pub(in crate::pool) use epochs::Epochs;
pub(in crate::pool) use gate::is_inside;
pub use mini_transaction::MiniTransaction;
