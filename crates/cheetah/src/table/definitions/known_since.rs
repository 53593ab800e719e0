//! Since when a table has the rows that it has, under the name that it has (M2).
//!
//! A snapshot finds under a name what stood there when it was taken, or is refused the table
//! (`TableChanged`). Versions tell what rows of a table were like; they do not tell that the table
//! was another one. So each table, and with it each partition, knows from which stamp on which name
//! was its own.
//!
//! Invariants
//!   K1  A table is known from the change of the catalog that has created it, or that has put
//!       other rows in its place or taken some away; under a name from the change that gave it.
//!       A statement that creates a table and fills it makes it known with its commit.
//!   K2  A table that gets a name again that it has had is known for both times, and not for the
//!       one in between.
//!   K3  Only memory has this: no snapshot is older than the startup, after which all that is there
//!       is known for ever. Prepared transactions that it finds read nothing, and no snapshot sees
//!       the changes that it rolls back later.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Names that are remembered of a table. Snapshots that would need an older one are refused.
const NAMES_MAX: usize = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct KnownSince {
    /// The last stamp of `names`: most snapshots are younger, and need no look at these.
    newest: AtomicU64,
    /// The stamps from which on it had its names, in order; the last name is the one that it has.
    names: Mutex<Vec<(u64, String)>>,
}

impl KnownSince {
    /// A table that is known by this name to all snapshots.
    pub(super) fn ever(name: &str) -> Self {
        Self { newest: AtomicU64::new(0), names: Mutex::new(vec![(0, name.to_owned())]) }
    }

    /// It is known from `stamp` on only.
    pub(super) fn begin(&self, stamp: u64, name: &str) {
        self.change(|names| *names = vec![(stamp, name.to_owned())]);
    }

    /// It is called so from `stamp` on.
    pub(super) fn rename(&self, stamp: u64, name: &str) {
        self.change(|names| {
            names.push((stamp, name.to_owned()));
            names.drain(..names.len().saturating_sub(NAMES_MAX));
        });
    }

    /// It stands for `other` from now on: all snapshots that know that one know it.
    pub(super) fn take_over(&self, other: &Self) {
        let theirs = other.names.lock().clone();
        self.change(|names| *names = theirs);
    }

    /// Whether a snapshot of `stamp` knows it by the name that it has now.
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
