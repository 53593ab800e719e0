//! The public interface: a database, its transactions, and cursors over its tables.
//!
//! `database` opens and closes a database. `transaction` has the changes and the end of a
//! transaction, `reading` its reads, `status` the counters and views. `load`, `build`,
//! `statistics`, `fulltext` and `backup` implement the calls of these names. `own_tables` creates
//! the engine's own tables, such as `statistics_table`, which `taking_statistics` fills.
//! `background` has the background steps, and `threads` the threads that run them.

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
pub use crate::check::{CheckReport, Expected, ExpectedEntries, ExpectedEntry};
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
