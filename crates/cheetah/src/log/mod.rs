//! The log: one logical stream of frames, whose durable prefix survives a crash. This module does
//! not know the meaning of frames.
//!
//! Invariants
//!   L1  An [`Lsn`](crate::base::Lsn) is a byte position in the stream of frames since the creation
//!       of the database; headers of files do not count, and there are no gaps.
//!   L2  If `sync_to` has confirmed a position, everything before it is read after any crash,
//!       without holes.
//!   L3  A file gets the name of a log file only after the previous file is durable to its end, and
//!       its own header is durable. So a log file that ends before its successor starts is damaged,
//!       not torn.
//!   L4  Every startup continues in a new file, whose header names the end and the chain of the old
//!       file. Bytes of the old file after that end are never read again, whatever they contain.
//!   L5  Before the database accepts work, the used bytes of the last file before the crash are
//!       written and synced again: they may have been read from the operating system's cache after
//!       a sync had failed.
//!   L6  Appending never waits for a checkpoint, only for I/O when the buffer is full.
//! Locks     writer < files; writer < tail. Only `writer` and `files` are held across I/O.
//! Errors    A failed write or sync of the log stops the engine.
//!
//! Many files: one for each task of the log, each readable on its own.

mod commit;
mod file_sizes;
mod files;
mod frames;
mod group;
mod pinned;
mod read;
mod shorten;
mod space;
mod tail;
mod writer;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod interleaving_tests;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod tests;

use crate::base::sync;

pub use commit::FlushMode;
pub use frames::Frame;
pub use pinned::{frames_behind, PinnedFile, PinnedLog};
pub use read::{read_from, read_undamaged, Recovered};
pub use space::Space;
pub use writer::{Log, LogSetup, LogStatus};
