//! Event counters since the database was opened.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub(crate) rows_inserted: AtomicU64,
    pub(crate) rows_updated: AtomicU64,
    pub(crate) rows_deleted: AtomicU64,
    pub(crate) rows_read: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) rollbacks: AtomicU64,
    pub(crate) prepares: AtomicU64,
    pub(crate) rows_rolled_back: AtomicU64,
    pub(crate) large_values_written: AtomicU64,
    /// Deleted rows and entries that were removed although an old snapshot held up purge.
    pub(crate) purged_between_snapshots: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) lock_timeouts: AtomicU64,
    /// Bulk loads: tables built, their rows, and the bytes written to temporary files for sorting.
    pub(crate) loads: AtomicU64,
    pub(crate) loaded_rows: AtomicU64,
    pub(crate) load_spilled_bytes: AtomicU64,
    pub(crate) log_records_replayed: AtomicU64,
    pub(crate) transactions_recovered: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}
