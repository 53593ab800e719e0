//! Snapshots of the database: a state that is pinned in milliseconds, and written as a directory
//! that opens as a database. (The view of a transaction is another kind of snapshot: `txn`.)
//!
//! [`Snapshot::pin`] takes what a crash at that moment would leave, as names: the control block,
//! the position of the log, and the files that these need. [`Snapshot::write_to`] links or copies
//! the files. The first opening of such a directory looks first whether it is whole
//! ([`check_manifest`]). Nothing here knows what the bytes of pages and rows mean.
//!
//! Invariants: Z1 to Z10 of docs/developers/durability.md, "A snapshot".
//! Locks     that of the page map over [`Snapshot::pin`], without the sync of the log; none over
//!           the rest.
//! Errors    those of the engine's own files while a snapshot is pinned. An error in the files of a
//!           snapshot is the caller's, and does not stop the engine (Z7).

mod first_opening;
mod promises;
mod snapshot;
mod target;
mod unfinished;

pub use first_opening::{check_manifest, remove_manifest};
pub use snapshot::{Snapshot, Sources};
pub use target::{Pace, Written};
pub use unfinished::remove_unfinished;
