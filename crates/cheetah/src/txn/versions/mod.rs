//! The transactions that a snapshot sees: the outcome of each transaction, the order of their ends,
//! and the snapshots that may still look them up.
//!
//! Commits and aborts take numbers, *stamps*, from one counter. A *snapshot* is the last published
//! stamp: it sees what was committed at or before it. The *horizon* is the largest stamp that all
//! live and all future snapshots see.
//!
//! Invariants
//!   I1  Commit order is stamp order. Under one mutex, the stamp, log record, counts, outcome and
//!       publication of a transaction come before those of the next one. Everything that a snapshot
//!       may look up exists before its stamp is published (durability::M1).
//!   I2  A reader's answer about a transaction does not change while the reader's snapshot is open:
//!       a stamp is published after the outcome, and later stamps are larger.
//!   I3  No snapshot is older than any horizon that was returned (H7), and the map forgets only
//!       transactions at or below it (durability::H8). So a record may be judged only by a snapshot
//!       that was open when the record was copied.
//! Locks     `commits` during the publication; within it no other lock of this module. `swept`,
//!           then `directory`, then shards, each briefly. A reader takes its thread's shard shared,
//!           and only for a transaction that is not known to be frozen.
//! Source    HyPer's commit stamps (Neumann 2015), with the stamps in a map, like the states in
//!           PostgreSQL's commit log. There is no copy of the list of active transactions, which
//!           costs InnoDB O(connections) for each snapshot.

mod map;
#[cfg(test)]
mod map_model_tests;
#[cfg(test)]
mod model_tests;
mod number;
mod order;
mod reader;
mod shards;
mod snapshots;
#[cfg(test)]
mod tests;

use crate::base::sync;

pub use map::{Outcome, State};
pub use order::Versions;
pub use reader::Reader;
