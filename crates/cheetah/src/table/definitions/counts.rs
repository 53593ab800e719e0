//! The number of rows of a table that a snapshot sees, exactly and without a scan.
//!
//! The state is the number of rows at a stamp that all snapshots see, and a list with the stamp and
//! the difference of each later commit. A snapshot adds up the differences at or before its own
//! stamp.
//!
//! Invariants
//!   I1  The changes of a transaction are added before its stamp is published (durability::M1), so
//!       a reader that sees its rows counts them.
//!   I2  Two neighbouring changes are merged if no snapshot, live or future, sees the first but not
//!       the second. Changes that all snapshots see are merged into the base. So there are never
//!       more than about twice as many changes as live snapshots, however long the oldest snapshot
//!       lives.
//!   I3  A transaction that has changed the table counts with its own difference, unless other
//!       transactions have committed changes that its snapshot does not see. These may concern the
//!       same rows, so then it must read the rows.
//! Locks     one mutex for each table, inside the mutex of stamps or alone; the lists of snapshots
//!           are locked after it.
//!
//! This is not the number of rows in the trees, which an epoch keeps: that number includes rows of
//! open transactions.

use crate::txn::Versions;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Changes that are kept without merging.
const CHANGES_MIN: usize = 64;

#[derive(Debug)]
pub(crate) struct Counts(Mutex<Changes>);

#[derive(Debug)]
struct Changes {
    base: i64,
    /// Stamps, ascending, and the difference at each.
    list: VecDeque<(u64, i64)>,
    /// The stamp of the last commit that changed the table, perhaps without a difference.
    newest: u64,
    /// The length at which the list is merged.
    limit: usize,
    /// Buffer for the stamps of live snapshots.
    live: Vec<u64>,
}

impl Counts {
    /// Every snapshot sees the `rows` rows.
    pub(crate) fn new(rows: u64) -> Self {
        let (list, live) = (VecDeque::new(), Vec::new());
        Self(Mutex::new(Changes { base: to_signed(rows), list, newest: 0, limit: CHANGES_MIN, live }))
    }

    /// Starts over at the end of startup.
    pub(crate) fn set(&self, rows: u64) {
        let mut changes = self.0.lock();
        changes.base = to_signed(rows);
        changes.list.clear();
    }

    /// Adds the difference of a transaction whose `stamp` is about to be published (I1).
    pub(crate) fn add(&self, versions: &Versions, stamp: u64, difference: i64) {
        let mut changes = self.0.lock();
        changes.newest = stamp;
        if difference == 0 {
            return;
        }
        debug_assert!(
            changes.list.back().is_none_or(|last| last.0 < stamp),
            "I1: commits are added in the order of their stamps"
        );
        changes.list.push_back((stamp, difference));
        if changes.list.len() > changes.limit {
            changes.merge(versions);
        }
    }

    /// The rows that an open snapshot with this stamp sees. `own_difference`: of the reading
    /// transaction, if it has changed the table. `None` if that must read the rows (I3).
    pub(crate) fn count(&self, read_stamp: u64, own_difference: Option<i64>) -> Option<u64> {
        let changes = self.0.lock();
        if own_difference.is_some() && changes.newest > read_stamp {
            return None;
        }
        let seen = changes.list.iter().take_while(|change| change.0 <= read_stamp).map(|change| change.1);
        let rows = changes.base + seen.sum::<i64>() + own_difference.unwrap_or_default();
        debug_assert!(rows >= 0, "a table has {rows} rows at {read_stamp}");
        Some(rows.max(0).unsigned_abs())
    }
}

impl Changes {
    /// Merges changes that no snapshot can distinguish (I2).
    fn merge(&mut self, versions: &Versions) {
        let Self { base, list, limit, live, .. } = self;
        versions.live_stamps(live);
        let mut kept = VecDeque::with_capacity(live.len() + 1);
        let mut from = 0;
        for (no, &stamp) in live.iter().enumerate() {
            let to = list.partition_point(|change| change.0 <= stamp);
            let group = list.range(from..to);
            let difference = group.clone().map(|change| change.1).sum::<i64>();
            match group.last() {
                Some(_) if no == 0 => *base += difference,
                Some(last) if difference != 0 => kept.push_back((last.0, difference)),
                _ => {}
            }
            from = to;
        }
        // A snapshot not in the list sees the last stamp of the list, and perhaps later ones.
        kept.extend(list.range(from..));
        *list = kept;
        *limit = CHANGES_MIN.max(2 * list.len());
    }
}

fn to_signed(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::TxnId;
    use crate::txn::{Outcome, Reader};
    use cheetah_io::Rng;

    /// All committed changes, and the open snapshots.
    struct Model {
        versions: Versions,
        counts: Counts,
        changes: Vec<(u64, i64)>,
        readers: Vec<Reader>,
    }

    const ROWS: u64 = 100_000;

    impl Model {
        fn new() -> Self {
            let (versions, counts) = (Versions::new(TxnId(1), 1), Counts::new(ROWS));
            Self { versions, counts, changes: Vec::new(), readers: Vec::new() }
        }

        fn commit(&mut self, difference: i64) {
            let Self { versions, counts, changes, .. } = self;
            let publish = |stamp| {
                counts.add(versions, stamp, difference);
                changes.push((stamp, difference));
                Ok(())
            };
            versions.finish(versions.start(), Outcome::Committed, publish).unwrap();
        }

        fn open(&mut self) {
            let reader = self.versions.reader();
            reader.open();
            self.readers.push(reader);
        }

        fn check(&self) {
            for reader in &self.readers {
                let stamp = reader.read_stamp().unwrap();
                let seen = self.changes.iter().filter(|change| change.0 <= stamp).map(|change| change.1);
                let rows = ROWS as i64 + seen.sum::<i64>();
                assert_eq!(self.counts.count(stamp, None), Some(rows as u64), "at {stamp}");
                let is_last = self.changes.last().is_none_or(|change| change.0 <= stamp);
                let with_own = is_last.then_some(rows as u64 - 3);
                assert_eq!(self.counts.count(stamp, Some(-3)), with_own, "at {stamp}");
            }
        }

        fn kept_count(&self) -> usize {
            self.counts.0.lock().list.len()
        }
    }

    #[test]
    fn every_snapshot_counts_what_it_sees() {
        let mut rng = Rng::new(7);
        let mut model = Model::new();
        for _ in 0..5000 {
            match rng.below(20) {
                0 if model.readers.len() < 40 => model.open(),
                1 if !model.readers.is_empty() => {
                    let reader = rng.below(model.readers.len() as u64) as usize;
                    model.readers.swap_remove(reader);
                }
                2 => model.check(),
                _ => model.commit(rng.below(9) as i64 - 4),
            }
        }
        model.open();
        model.check();
    }

    #[test]
    fn m1_one_old_snapshot_does_not_keep_all_changes() {
        let mut model = Model::new();
        model.commit(1);
        model.open();
        for _ in 0..20_000 {
            model.commit(1);
            assert!(model.kept_count() <= CHANGES_MIN + 1);
        }
        model.open();
        model.check();
    }

    #[test]
    fn many_snapshots_keep_a_change_each() {
        let mut model = Model::new();
        for _ in 0..300 {
            model.commit(1);
            model.open();
        }
        (0..1000).for_each(|_| model.commit(-1));
        model.check();
        assert!((300..=2 * 302).contains(&model.kept_count()), "{}", model.kept_count());
        model.readers.clear();
        (0..1000).for_each(|_| model.commit(2));
        assert!(model.kept_count() <= CHANGES_MIN + 1);
        model.open();
        model.check();
    }

    #[test]
    fn an_startup_starts_over() {
        let versions = Versions::new(TxnId(1), 1);
        let counts = Counts::new(5);
        counts.add(&versions, 1, 2);
        counts.set(9);
        assert_eq!((counts.count(1, Some(1)), counts.count(0, Some(1))), (Some(10), None));
    }
}
