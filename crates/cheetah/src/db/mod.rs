//! The public interface: a database, its transactions, and cursors over its tables.
//!
//! Rooms: `transaction`, `reading`, `status`. `database` opens and closes it; `load`, `build`,
//! `statistics`, `fulltext` and `backup` are calls of their own. `own_tables` makes tables of the
//! engine's own; `statistics_table` is the one in which statistics of indexes are kept, and
//! `taking_statistics` takes them. The background's work is in `background`, its threads in
//! `threads`.

mod background;
mod backup;
mod build;
mod database;
mod fulltext;
mod load;
mod own_tables;
mod reading;
mod rest;
mod rotation;
mod statistics;
mod statistics_table;
mod status;
mod taking_statistics;
#[cfg(test)]
mod tests;
mod threads;
mod transaction;
mod waiting_snapshot;

pub use crate::backup::{Pace, Snapshot, Written};
pub use crate::check::{CheckReport, ExpectedEntries, ExpectedEntry};
pub use crate::fulltext::{Matches, Mode, Position, Word, WordKind};
pub use crate::pool::CurvePoint;
pub use crate::tree::SeekMode;
pub use crate::txn::LockMode;
pub use backup::SnapshotOrder;
pub use build::Build;
pub(crate) use database::{lock_directory, LOCK_FILE};
pub use database::{Db, Env, Stopper};
pub use fulltext::{Found, NewPostings, RowWords, Search, Texts, WordList};
pub use load::Load;
pub use reading::{Cursor, SeekEnd};
pub use status::{
    IndexImageWork, IndexStats, LockEntry, LockWait, PoolStatus, Sizes, StallStatus, TableEncryptionStatus,
    TableSizes, TransactionInfo, TransactionState,
};
pub use transaction::{Isolation, OnLocked, Read, Savepoint, Transaction};
pub use waiting_snapshot::Note;
