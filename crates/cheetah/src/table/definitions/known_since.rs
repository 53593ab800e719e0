//! Records the stamp since which a table has had its rows and its name (durability::M2).
//!
//! A snapshot that opens a table by name gets the table that had this name when the snapshot was
//! taken, or is refused (`TableChanged`). Row versions describe older states of a table's rows, but
//! not that the name belonged to a different table. So each table, and with it each partition,
//! knows from which stamp on it has had its name.
//!
//! Invariants
//!   K1  A table is known to snapshots newer than the catalog change that created it, replaced its
//!       rows or removed some of them; under a name, to those newer than the change that gave it
//!       the name. A statement that creates and fills a table makes it known with its commit.
//!   K2  A table that returns to an earlier name is known for both periods, and not for the period
//!       in between.
//!   K3  This state is only in memory: no snapshot is older than the startup, after which all
//!       existing tables are known to every snapshot. Prepared transactions found by startup read
//!       nothing, and no snapshot sees the changes that startup rolls back later.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Names remembered per table; snapshots that need an older one are refused.
const NAMES_MAX: usize = 8;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct KnownSince {
    /// The last stamp of `names`: most snapshots are newer and need not check the list.
    newest: AtomicU64,
    /// With the stamps at which it got them, in order; the last name is the current one.
    names: Mutex<Vec<(u64, String)>>,
}

impl KnownSince {
    /// All snapshots know the table by this name.
    pub(super) fn ever(name: &str) -> Self {
        Self { newest: AtomicU64::new(0), names: Mutex::new(vec![(0, name.to_owned())]) }
    }

    pub(super) fn begin(&self, stamp: u64, name: &str) {
        self.change(|names| *names = vec![(stamp, name.to_owned())]);
    }

    pub(super) fn rename(&self, stamp: u64, name: &str) {
        self.change(|names| {
            names.push((stamp, name.to_owned()));
            names.drain(..names.len().saturating_sub(NAMES_MAX));
        });
    }

    /// All snapshots that know `other` know this table.
    pub(super) fn take_over(&self, other: &Self) {
        let theirs = other.names.lock().clone();
        self.change(|names| *names = theirs);
    }

    /// Whether a snapshot of `stamp` knows the table by its current name.
    pub(super) fn is_known_at(&self, stamp: u64) -> bool {
        stamp >= self.newest.load(Acquire) || self.was_called_so_at(stamp)
    }

    fn was_called_so_at(&self, stamp: u64) -> bool {
        let names = self.names.lock();
        let then = names.iter().rev().find(|(from, _)| *from <= stamp);
        then.map(|(_, name)| name) == names.last().map(|(_, name)| name)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(u64, String)>)) {
        let mut names = self.names.lock();
        change(&mut names);
        self.newest.store(names.last().map_or(0, |(from, _)| *from), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: &KnownSince, at: &[u64], not_at: &[u64]) {
        at.iter().for_each(|&stamp| assert!(known.is_known_at(stamp), "at {stamp}"));
        not_at.iter().for_each(|&stamp| assert!(!known.is_known_at(stamp), "at {stamp}"));
    }

    #[test]
    fn it_is_known_by_its_name_while_it_has_it() {
        let known = KnownSince::ever("a");
        check(&known, &[0, 7], &[]);
        known.begin(3, "a");
        check(&known, &[3, 7], &[0, 2]);
        known.rename(5, "b");
        check(&known, &[5, 7], &[0, 3, 4]);
        known.rename(6, "a");
        check(&known, &[3, 4, 6, 7], &[2, 5]);
        known.begin(8, "a");
        check(&known, &[8], &[3, 6, 7]);
    }

    #[test]
    fn what_is_forgotten_is_refused() {
        let known = KnownSince::ever("a");
        (1..=NAMES_MAX as u64).for_each(|stamp| known.rename(stamp, if stamp % 2 == 0 { "a" } else { "b" }));
        check(&known, &[2, 4, 8], &[0, 1, 3]);
    }
}
