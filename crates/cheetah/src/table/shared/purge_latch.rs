//! Keeps purge away from rows that a writer is about to change.
//!
//! A writer looks up the records that its operation will touch, prepares, may wait, and then
//! changes them in one mini-transaction. Locks keep out other writers. Purge takes no locks, but
//! removes delete-marked records, which a writer may have planned to reuse. So a writer takes a
//! shared *purge latch* of the row before the lookup and holds it until the change is done. Purge
//! takes the latch exclusively, and retries later if it cannot have it at once.
//!
//! Invariants
//!   I1  Rows share purge latches according to a hash of table and clustered key. Secondary entries
//!       are covered by the latch of their row.
//!   I2  Purge never waits for a purge latch: a writer that holds one may be waiting for a
//!       checkpoint.
//! Locks     a purge latch is taken before the gate is entered. The writer then holds only table
//!           use, locks, and latches of unique keys.

use crate::base::hash::{hash_key, shard_index};
use crate::base::{sound, TableId};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

const SHARDS: usize = 256;

#[derive(Debug)]
pub(crate) struct PurgeLatches(Vec<RwLock<()>>);

/// Purge stays away from two rows while this is held.
#[derive(Debug)]
pub(crate) struct PurgeLatch<'s>(
    #[expect(dead_code, reason = "held, not read")] [Option<RwLockReadGuard<'s, ()>>; 2],
);

impl Default for PurgeLatches {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| RwLock::new(())).collect())
    }
}

impl PurgeLatches {
    /// Waits until purge has finished with the rows.
    pub(crate) fn of_rows(&self, table: TableId, one: Option<&[u8]>, other: Option<&[u8]>) -> PurgeLatch<'_> {
        let keys = match sound!(true, "rows: look without the purge latch") {
            true => [one, other.filter(|_| one != other)],
            false => [None; 2],
        };
        // Recursive: both may be in one shard.
        PurgeLatch(keys.map(|key| key.map(|key| self.latch(table, key).read_recursive())))
    }

    /// The exclusive purge latch of a row; `None` while a writer holds it.
    pub(crate) fn for_purge(&self, table: TableId, key: &[u8]) -> Option<RwLockWriteGuard<'_, ()>> {
        self.latch(table, key).try_write()
    }

    fn latch(&self, table: TableId, key: &[u8]) -> &RwLock<()> {
        self.0.get(shard(table, key)).expect("the index is less than their number")
    }
}

fn shard(table: TableId, key: &[u8]) -> usize {
    shard_index(hash_key(table.0, key), SHARDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TableId = TableId(1);

    #[test]
    fn purge_stays_away_from_rows_that_are_looked_at() {
        let latches = PurgeLatches::default();
        let latch = latches.of_rows(T, Some(b"a"), Some(b"b"));
        assert!(latches.for_purge(T, b"a").is_none() && latches.for_purge(T, b"b").is_none());
        drop(latch);
        assert!(latches.for_purge(T, b"a").is_some());
    }

    #[test]
    fn a_row_that_keeps_its_key_and_rows_of_one_shard_need_no_second_latch() {
        let latches = PurgeLatches::default();
        let _twice = (latches.of_rows(T, Some(b"a"), Some(b"a")), latches.of_rows(T, Some(b"a"), None));
        assert!(latches.for_purge(T, b"a").is_none());
    }
}
