//! The public interface: a database, its transactions, and cursors over its tables.

mod background;
mod build;
mod cursor;
mod database;
mod ending;
mod image_work;
#[cfg(test)]
mod interval_gc_tests;
mod isolation;
mod listing;
#[cfg(test)]
mod listing_tests;
mod load;
#[cfg(test)]
mod load_tests;
mod locking_scan;
mod pool_status;
mod reading;
#[cfg(test)]
mod rollback_tests;
mod scan_step;
#[cfg(test)]
mod search_tests;
mod sizes;
mod statistics;
mod status;
mod threads;
mod transaction;
mod two_phase;
#[cfg(test)]
mod version_tests;

pub use crate::check::{CheckReport, ExpectedEntries, ExpectedEntry};
pub use crate::tree::SeekMode;
pub use crate::txn::LockMode;
pub use build::Build;
pub use cursor::Cursor;
pub use database::{Db, Env, Stopper};
pub use image_work::IndexImageWork;
pub use isolation::{Isolation, OnLocked, Read};
pub use listing::{LockEntry, LockWait, TransactionInfo, TransactionState};
pub use load::Load;
pub use locking_scan::SeekEnd;
pub use pool_status::PoolStatus;
pub use sizes::{IndexStats, Sizes, TableSizes};
pub use transaction::{Savepoint, Transaction};
