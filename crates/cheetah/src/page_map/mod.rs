//! The page map on disk: for every page of the last committed epoch, the location of its image.
//!
//! CONTROL names the parts of map files that form the map, with exact positions and checksums. They
//! are at most one base (`map-<n>.base`, all pages of one epoch), and logs (`map-<n>.log`, a block
//! of changes for each later epoch).
//!
//! Invariants
//!   P1  An epoch is committed if and only if both copies of CONTROL name its block durably. Files
//!       that an older epoch needs (log, segments, map files) are released only after `commit`
//!       returns.
//!   P2  The copies are written one after the other, each with its own barrier. If only one copy is
//!       good, it is not written first. So at any time at least one copy is intact. If the copies
//!       differ, everything that the older copy names still exists, because it has not been
//!       released yet (P1). Either copy may be torn in a commit or damaged later without losing a
//!       committed epoch.
//!   P3  Bytes that CONTROL does not name are not part of the database (durability::C9): a startup
//!       reads each file up to the exact end, continues in a new file, and removes the files that
//!       are not named. A file is never written within or before a part that a copy of CONTROL may
//!       name.
//!   P4  Every startup is a new incarnation, which is durable before anything else is written.
//!       Numbers of epochs and IDs of files are never reused, not even after a failed attempt.
//!   P5  A new base is merged from files (durability::M5), never from memory, which has newer
//!       content.
//!   P6  Each file has a copy with the same bytes, which is made durable together with the file. If
//!       one is damaged, the other is read. If any bytes are intact in only one of the two files, a
//!       new base is due.
//!
//! Errors    `Corruption` if bytes that CONTROL names are intact in neither file. `DiskFull` and
//!           `Io` leave the committed epoch unchanged. `Fatal` after a failed sync.

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
