//! The status of an open database: counters, sizes, transactions and their waits. Nothing here
//! changes data; only counters may be reset, and the starting time of rates moves.

mod counters;
mod encryption;
mod image_work;
mod last_output;
mod listing;
mod pool_status;
mod sizes;
mod waits;

pub use encryption::TableEncryptionStatus;
pub use image_work::IndexImageWork;
pub(in crate::db) use last_output::LastOutput;
pub use listing::{LockEntry, LockWait, TransactionInfo, TransactionState};
pub use pool_status::PoolStatus;
pub use sizes::{IndexStats, Sizes, TableSizes};
pub use waits::StallStatus;

const NS_PER_S: u64 = 1_000_000_000;
