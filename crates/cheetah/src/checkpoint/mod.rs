//! Checkpoints: when one is due, how fast it runs, and its steps in order.
//!
//! A checkpoint makes everything up to the epoch switch part of the database files, so that
//! recovery does not need the log for it. This layer decides when to start, sets the rate, first
//! merges the files of the page map if there are too many, makes the log durable, and recycles the
//! old log. The pool writes the pages (`EndedEpoch`) and commits the page map
//! (`WrittenEpoch::commit`). The layers above provide only the state at the switch
//! ([`StateAtSwitch`]).
//!
//! Invariants
//!   K1  One checkpoint at a time.
//!   K2  The log is durable up to the epoch switch before the map commits the epoch, so the epoch
//!       never contains changes that the log lost.
//!   K3  Log is recycled only after the epoch that replaces it has committed.
//!   K4  Pending changes are saved in change files. In an idle database they are first written into
//!       their leaves, so that none remain pending.
//!   P1 to P3  See `pace`.
//! Locks     `one` is held during a checkpoint, with I/O and waits. It must not be taken inside a
//!           mini-transaction or under a latch.
//! Errors    A failed sync is fatal (durable.rs). After any other failure, before or in the commit
//!           of the map, the epoch is abandoned; its changes belong to the next one.

mod checkpointer;
mod due;
mod pace;

pub(crate) use checkpointer::{CheckpointParts, Checkpointer, StateAtSwitch};
