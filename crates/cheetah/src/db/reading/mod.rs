//! A transaction's reads: by key, and by cursors over ranges, with locks or in a snapshot. The
//! invariants of scans with locks are in `locking_scan`.

mod checking;
mod cursor;
mod how_to_read;
mod locking_scan;
mod references;
mod scan_step;
mod transaction_reads;

pub use cursor::Cursor;
pub(in crate::db) use how_to_read::{HowToRead, Reading};
pub use locking_scan::SeekEnd;
