//! Checkpoints: when one is due, how fast it goes, and its steps in order.
//!
//! A checkpoint makes everything up to the epoch switch part of the database without the log. This
//! layer decides and paces, merges the files of the page map first where they are too many, makes
//! the log durable, and lets the old log go. The pool writes the pages (`EndedEpoch`) and commits
//! the page map (`WrittenEpoch::commit`). The one thing that comes from above is the state at the
//! switch ([`StateAtSwitch`]).
//!
//! Invariants
//!   K1  One checkpoint at a time.
//!   K2  The log is durable up to the epoch switch before the map commits the epoch: the epoch
//!       never holds what the log lost.
//!   K3  Log is recycled only after the epoch that replaces it has committed.
//!   K4  Changes that wait for leaves are saved in change files. Of an idle database it is brought
//!       into the leaves before: so it comes to rest.
//!   P1 to P3  See `pace`.
//! Locks     `one` is held over a checkpoint, with I/O and waits. Nobody takes it inside a
//!           mini-transaction or under a latch.
//! Errors    A failed sync is fatal (durable.rs). After any other failure, before or in the commit
//!           of the map, the epoch is abandoned; its changes belong to the next one.

mod checkpointer;
mod due;
mod pace;

pub(crate) use checkpointer::{CheckpointParts, Checkpointer, StateAtSwitch};
