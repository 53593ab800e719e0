//! The page map on disk: for every page of the last committed epoch, the location of its image.
//!
//! CONTROL names, by exact position and checksum, the parts of map files that form the map: at most
//! one base (`map-<n>.base`, all pages of some epoch) and logs (`map-<n>.log`, a block of changes
//! for each later epoch).
//!
//! Invariants
//!   P1  An epoch is committed if and only if both copies of CONTROL name its block durably. Files
//!       that an older epoch needs (log, segments, map files) are released only after `commit`
//!       returns.
//!   P2  The copies are written one after the other, each with its barrier, and never the only good
//!       copy first. So at any time at least one copy is intact. If they differ, everything that
//!       the older one names still exists, because nothing it needs has been released (P1). Either
//!       copy may be torn in a commit or damaged later without losing a committed epoch.
//!   P3  Bytes that CONTROL does not name do not exist (C9): a startup reads up to the exact end,
//!       continues in a new file, and removes the files that are not named. A file is never written
//!       within or before a part that a copy of CONTROL may name.
//!   P4  Every startup is a new incarnation, durable before anything else is written. Numbers of
//!       epochs and IDs of files are never reused, not even those of failed attempts.
//!   P5  A new base is merged from files (M5), never from memory, which is already newer.
//!   P6  Each file has a copy with the same bytes, which is made durable with it. If one is
//!       damaged, the other is read. Once something is in one file only, a new base is due.
//!
//! Errors    Corruption if bytes that CONTROL names are in neither file as written; DiskFull and Io
//!           leave the committed epoch unchanged; Fatal after a failed sync.

mod control_file;
mod load;
mod map_file;
mod merge;
mod store;
#[cfg(test)]
mod tests;

pub use crate::format::control::{ControlBlock, Identity};
pub use crate::format::map_block::Change;
pub use crate::format::MapEntry;
pub use control_file::{control_bytes, PATH as CONTROL_PATH};
pub use load::{load as read, Loaded};
pub use map_file::{named_files, NamedFile};
pub use store::{Commit, MapStore, Opened};
