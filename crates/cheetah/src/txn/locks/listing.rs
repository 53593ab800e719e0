//! The lock table: listings for views and reports.

use super::deadlock::report::Blocking;
use super::granted::owners::LockSummary;
use super::lock_table::LockTable;
use super::locked_on::LockedOn;
use super::modes::{LockMode, TableMode};
use super::waits::{Waiter, Waits};
use super::Owner;

/// A lock, or a waiting request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// Its owner.
    pub owner: Owner,
    /// Its object.
    pub on: LockedOn,
    /// Its mode.
    pub mode: TableMode,
    /// Whether it is a waiting request.
    pub is_waiting: bool,
}

/// A wait: the waiting owner, and the locks and requests that block it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitInfo {
    /// The waiting owner.
    pub owner: Owner,
    /// The requested object and mode.
    pub waits_for: (LockedOn, TableMode),
    /// The locks and requests that block it.
    pub blocked_by: Vec<Blocking>,
}

impl LockTable {
    /// Returns all waits, as they are at one moment.
    pub fn list_waits(&self) -> Vec<WaitInfo> {
        let waits = self.waits.lock();
        let wait = |waiter| WaitInfo::of(self, &waits, waiter);
        waits.all().map(wait).collect()
    }

    /// Returns the owners that keep an owner waiting now; empty if it does not wait.
    pub fn blockers_of(&self, owner: Owner) -> Vec<Owner> {
        let waits = self.waits.lock();
        waits.waiter(owner).map_or_else(Vec::new, |waiter| self.blocking_owners(&waits, waiter))
    }

    /// Returns the number of waiting requests.
    pub fn waiters_count(&self) -> usize {
        self.waits.lock().len()
    }

    /// Returns how many locks an owner has, and how much memory they take.
    pub fn summary(&self, owner: Owner) -> LockSummary {
        self.owners.summary(owner)
    }

    /// Returns the granted locks, but at most `count_max` record locks. Visits one shard after
    /// the other: locks that change meanwhile may be missing, or be listed twice.
    pub fn list_locks(&self, count_max: usize) -> Vec<LockInfo> {
        let mut list = Vec::new();
        let held = |owner, on, mode| LockInfo { owner, on, mode, is_waiting: false };
        for shard in self.tables.shards() {
            let locks = shard.iter().flat_map(|(table, locks)| locks.holds().map(|hold| (*table, hold)));
            list.extend(locks.map(|(table, (owner, mode))| held(owner, LockedOn::Table(table), mode)));
        }
        self.list_shared(&mut list);
        let mut left = count_max;
        for stripe in self.stripes.all() {
            let holds = stripe.points().flat_map(|point| point.holds().map(move |hold| (point, hold)));
            let modes = holds.filter_map(|(point, hold)| Some((point, hold.owner, hold.mode()?)));
            let before = list.len();
            list.extend(modes.take(left).map(|(point, owner, mode)| {
                held(owner, LockedOn::record(point.tree, &point.key), mode.into())
            }));
            left -= list.len() - before;
        }
        list
    }

    fn list_shared(&self, list: &mut Vec<LockInfo>) {
        for shard in &self.tree_shards {
            let trees = shard.trees.read();
            for (&tree, shared) in trees.iter() {
                list.extend(shared.ranges.list().into_iter().map(|(owner, level, span)| LockInfo {
                    owner,
                    on: LockedOn::range(tree, &span, level.records().is_some()),
                    mode: level.mode().into(),
                    is_waiting: false,
                }));
                let compressed = shared.compressed.iter().flat_map(|own| {
                    own.counts().into_iter().map(|(mode, count): (LockMode, usize)| (own.owner, mode, count))
                });
                list.extend(compressed.filter(|entry| entry.2 > 0).map(|(owner, mode, count)| LockInfo {
                    owner,
                    on: LockedOn::Records { tree, count },
                    mode: mode.into(),
                    is_waiting: false,
                }));
            }
        }
    }
}

impl WaitInfo {
    /// Returns the request in the form of a lock.
    pub fn request(&self) -> LockInfo {
        let (on, mode) = self.waits_for.clone();
        LockInfo { owner: self.owner, on, mode, is_waiting: true }
    }

    fn of(locks: &LockTable, waits: &Waits, waiter: &Waiter) -> Self {
        let blocked_by = locks.blockers(waits, waiter);
        Self { owner: waiter.owner, waits_for: LockedOn::wanted(&waiter.want), blocked_by }
    }
}
