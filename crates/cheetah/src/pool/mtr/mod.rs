//! Mini-transactions and their epochs.
//!
//! Invariants
//!   G1  The epoch is constant while any mini-transaction is open.
//!   G2  A thread opens one mini-transaction at a time, and then holds no page latch (C7).
//!       Otherwise it could deadlock with the epoch switch: the switch waits for open
//!       mini-transactions, and one of these may wait for the latch.
//!   G3  A panic inside a mini-transaction aborts the process, because half of a mini-transaction
//!       must not reach a checkpoint. A thread that is already unwinding may open and complete a
//!       mini-transaction, for example when it drops a transaction and so rolls it back. A second
//!       panic inside it aborts the process by the rules of the language.
//!   G4  (`epoch_switch`) When `at_switch` runs, every mini-transaction of the ended epoch has
//!       ended and no mini-transaction of the next epoch has begun.
//!   E1  (`epoch_changes`) A page whose frame is dirty in epoch n is in `dirty` of n, and in no
//!       other `dirty` set.
//!   E2  `moved` of n maps each page with a written image of n to the newest such image, and each
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
