//! Statistics of an open table: the last results, the number of changes since, and whether new
//! statistics are due.
//!
//! Invariants
//!   I1  Statistics are recalculated automatically only for a table whose key encodings are set:
//!       without them, keys cannot be read.
//!   I2  Changes made during a calculation count as made after it.
//!   I3  After a failure a table is skipped for a while, because damage does not disappear.
//! Source    InnoDB recalculates after a tenth of the rows has changed, at most once in ten seconds
//!           (`innodb_stats_auto_recalc`). Here a table which has doubled its rows need not wait so
//!           long, because the statistics of its first rows say little.

use super::handle::Table;
use crate::base::{Error, Result};
use crate::format::statistics::IndexStatistics;
use crate::table::key_encoding::KeyEncoding;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// Statistics are outdated once more than 1 / `CHANGED_PART` of the counted rows have changed.
const CHANGED_PART: u64 = 10;
/// Minimum interval between calculations.
const EVERY_NS: u64 = 10_000_000_000;
/// The shorter interval, if an index has no statistics, or more than [`SOON_ROWS`] rows and more
/// than the last calculation counted have changed.
const SOON_NS: u64 = 1_000_000_000;
const SOON_ROWS: u64 = 16;
/// Delay after a failure.
const FAILED_NS: u64 = 600_000_000_000;

/// The statistics options in the definition of a table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatisticsOptions {
    /// Pages of each index to sample; 0: the database's default.
    pub places: u32,
    /// Whether statistics are recalculated automatically; `None`: the database's default.
    pub by_themselves: Option<bool>,
    /// Whether the table is temporary: its statistics are not kept over a restart.
    pub is_temporary: bool,
}

/// The statistics of one definition, by position of the index.
#[derive(Default, Debug)]
pub(super) struct StatisticsOfHandle {
    found: RwLock<BTreeMap<usize, IndexStatistics>>,
    /// The key encodings of all indexes (I1).
    keys: OnceLock<Vec<KeyEncoding>>,
}

/// The part that stays when the definition changes.
#[derive(Default, Debug)]
pub(super) struct LastingStatistics {
    version: AtomicU64,
    /// Rows inserted, deleted, or changed in an index since the last calculation.
    changed_rows: AtomicU64,
    /// The start of the last calculation, or a later time after a failure (I3); 0 is never.
    taken_ns: AtomicU64,
    options: Mutex<StatisticsOptions>,
}

impl StatisticsOfHandle {
    /// `before`: the position of the index in the other definition.
    pub(super) fn take_over(&mut self, of: &Self, before: usize, index_no: usize) {
        if let Some(known) = of.found.read().get(&before) {
            self.found.get_mut().insert(index_no, known.clone());
        }
    }
}

impl Table {
    /// The approximate number of rows with equal values in the first `parts` parts of an index;
    /// `None` if the index was never analyzed.
    pub fn rows_per_value(&self, index_no: usize, parts: usize) -> Option<u64> {
        let found = self.statistics.found.read();
        let index = found.get(&index_no)?;
        let distinct = index.distinct.get(parts.checked_sub(1)?)?;
        Some((index.rows / (*distinct).max(1)).max(1))
    }

    /// The number of times that statistics have been set since startup.
    pub fn statistics_version(&self) -> u64 {
        self.lasting.statistics.version.load(Relaxed)
    }

    pub(crate) fn set_statistics(&self, found: impl IntoIterator<Item = (usize, IndexStatistics)>) {
        self.statistics.found.write().extend(found);
        self.lasting.statistics.version.fetch_add(1, Relaxed);
    }

    /// Whether the table ever had statistics, under any definition.
    pub(crate) fn has_had_statistics(&self) -> bool {
        self.statistics_version() > 0
    }

    /// Sets the key encodings, once and only if there is one for each index, and the statistics
    /// options, which may change.
    pub(crate) fn describe_keys(&self, keys: Vec<KeyEncoding>, options: StatisticsOptions) {
        *self.lasting.statistics.options.lock() = options;
        if keys.len() == self.indexes().len() {
            let _ = self.statistics.keys.set(keys);
        }
    }

    /// `other` has the same indexes.
    pub(super) fn describe_keys_as(&self, other: &Table) {
        if let Some(keys) = other.statistics.keys.get() {
            self.describe_keys(keys.clone(), other.statistics_options());
        }
    }

    /// Returns `Unsupported` if the encodings are not set.
    pub(crate) fn key_encodings(&self) -> Result<&[KeyEncoding]> {
        let unknown = || Error::Unsupported {
            place: format!("statistics of table '{}'", self.name()),
            detail: "its keys have not been described; describe them when it is opened".into(),
        };
        self.statistics.keys.get().map(Vec::as_slice).ok_or_else(unknown)
    }

    pub(crate) fn statistics_options(&self) -> StatisticsOptions {
        *self.lasting.statistics.options.lock()
    }

    /// Counts a row inserted, deleted, or changed in an index.
    pub(crate) fn count_changed_row(&self) {
        self.lasting.statistics.changed_rows.fetch_add(1, Relaxed);
    }

    /// Whether statistics are to be recalculated automatically now. `by_default` applies if the
    /// definition does not say.
    pub(crate) fn are_statistics_due(&self, now_ns: u64, by_default: bool) -> bool {
        let lasting = &self.lasting.statistics;
        let is_wanted = self.statistics_options().by_themselves.unwrap_or(by_default);
        if !is_wanted || self.statistics.keys.get().is_none() || self.quarantine_reason().is_some() {
            return false;
        }
        let taken_ns = lasting.taken_ns.load(Relaxed);
        let waited = |ns: u64| taken_ns == 0 || now_ns.saturating_sub(taken_ns) >= ns;
        if taken_ns > now_ns || !waited(SOON_NS) {
            return false;
        }
        let (rows, found) = (self.row_count(), self.statistics.found.read());
        let lacks = |index_no: usize| !self.is_disabled(index_no) && !found.contains_key(&index_no);
        let Some(then) = found.get(&0).map(|clustered| clustered.rows) else { return rows > 0 };
        let changed = lasting.changed_rows.load(Relaxed).max(rows.abs_diff(then));
        let is_other = changed > then && changed > SOON_ROWS;
        is_other
            || (changed > then / CHANGED_PART && waited(EVERY_NS))
            || (rows > 0 && (1..self.indexes().len()).any(lacks))
    }

    /// The result is for [`statistics_are_taken`](Self::statistics_are_taken).
    pub(crate) fn take_statistics_from(&self, now_ns: u64) -> u64 {
        let lasting = &self.lasting.statistics;
        lasting.taken_ns.store(now_ns.max(1), Relaxed);
        lasting.changed_rows.load(Relaxed)
    }

    /// `changed` is from the beginning of the calculation (I2).
    pub(crate) fn statistics_are_taken(&self, changed: u64) {
        // Another thread may have done the same meanwhile.
        let less = |now: u64| Some(now.saturating_sub(changed));
        let _ = self.lasting.statistics.changed_rows.fetch_update(Relaxed, Relaxed, less);
    }

    /// Postpones the next calculation after a failure (I3).
    pub(crate) fn put_statistics_off(&self, now_ns: u64) {
        self.lasting.statistics.taken_ns.store(now_ns + FAILED_NS, Relaxed);
    }
}
