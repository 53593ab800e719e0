//! Mini-transactions and their epochs.
//!
//! Invariants
//!   G1  The epoch is constant while any mini-transaction is open.
//!   G2  A thread opens one mini-transaction at a time, and holds no page latch when it does (C7).
//!       Otherwise it could deadlock with the epoch switch, which waits for open mini-transactions,
//!       one of which may wait for the latch.
//!   G3  A panic inside a mini-transaction aborts the process, because half of a mini-transaction
//!       must not reach a checkpoint. A thread that is already unwinding may open a
//!       mini-transaction (when a transaction is dropped and rolls back) and complete it. A second
//!       panic inside it aborts the process by the rules of the language.
//!   G4  (`epoch_switch`) When `at_switch` runs, every mini-transaction of the ended epoch has
//!       ended and none of the next epoch has begun.
//!   E1  (`epoch_changes`) A page whose frame is dirty in epoch n is in `dirty` of n, and in no
//!       other `dirty` set.
//!   E2  `moved` of n maps each page whose newest image of n is written to that image, and each
//!       page freed in n to `None`.
//!   E3  The counts change together with the sets, under the shard's lock, so a clean page is not
//!       counted. A checkpoint skips clean pages, and the counts must be zero at its end.

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
