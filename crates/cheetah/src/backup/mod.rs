//! Snapshots of the database: a state that is pinned in milliseconds, and written as a directory
//! that opens as a database. (The view of a transaction is another kind of snapshot: `txn`.)
//!
//! [`Snapshot::pin`] records what a crash at that moment would leave, by name: the control block,
//! the position of the log, and the files that both need. [`Snapshot::write_to`] links or copies
//! the files. The first opening of such a directory checks first whether it is complete
//! ([`check_manifest`]). Nothing here interprets the bytes of pages and rows.
//!
//! Invariants: Z1 to Z10 of docs/developers/durability.md, "A snapshot".
//! Locks     the lock of the page map during [`Snapshot::pin`], except while the log is synced;
//!           none otherwise.
//! Errors    like those of the engine's own files while a snapshot is pinned. An error in the files
//!           of a snapshot is returned to the caller, and does not stop the engine (Z7).

mod first_opening;
mod promises;
mod snapshot;
mod target;
mod unfinished;

pub use first_opening::{check_manifest, remove_manifest};
pub use snapshot::{Snapshot, Sources};
pub use target::{Pace, Written};
pub use unfinished::remove_unfinished;
