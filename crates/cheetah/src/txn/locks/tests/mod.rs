//! Tests of the lock table.

mod deadlocks;
mod gaps;
mod implicit;
mod memory;
mod oracle;
mod order;
mod rules;
mod threads;

use super::*;
use crate::base::{Error, TableId, TreeId};
use std::ops::Bound::{Excluded, Included, Unbounded};
use LockMode::{Exclusive as X, Shared as S};

const A: Owner = Owner(1);
const B: Owner = Owner(2);
const C: Owner = Owner(3);
const D: Owner = Owner(4);
const T: TableId = TableId(1);
const I: TreeId = TreeId(16);

fn table(mode: TableMode) -> Lock<'static> {
    Lock::Table(T, mode)
}

fn record(key: &[u8], mode: LockMode) -> Lock<'_> {
    Lock::Record { tree: I, key, mode }
}

/// The lock of a scan from `from` to `key`.
fn next_key<'a>(from: &'a [u8], key: &'a [u8], mode: LockMode) -> Lock<'a> {
    Lock::NextKey { tree: I, range: (Excluded(from), Included(key)), key, mode }
}

/// The gap between two records.
fn gap<'a>(low: &'a [u8], high: &'a [u8]) -> Lock<'a> {
    Lock::Gap { tree: I, range: (Excluded(low), Excluded(high)), mode: X }
}

/// The gap after a record at the end of the index.
fn supremum(low: &[u8]) -> Lock<'_> {
    Lock::Gap { tree: I, range: (Excluded(low), Unbounded), mode: X }
}

fn insert(key: &[u8]) -> Lock<'_> {
    Lock::InsertIntention { tree: I, key }
}

const QUEUE: Wait = Wait::Queue { undo_records_count: 0 };

impl LockTable {
    #[track_caller]
    fn grants(&self, owner: Owner, lock: Lock<'_>) {
        let answer = self.request(owner, lock, QUEUE);
        assert!(matches!(answer, Ok(Answer::Granted)), "{owner:?} {lock:?}: {answer:?}");
    }

    #[track_caller]
    fn has(&self, owner: Owner, lock: Lock<'_>) {
        let answer = self.request(owner, lock, QUEUE);
        assert!(matches!(answer, Ok(Answer::AlreadyHeld)), "{owner:?} {lock:?}: {answer:?}");
    }

    #[track_caller]
    fn refuses(&self, owner: Owner, lock: Lock<'_>) {
        let answer = self.request(owner, lock, Wait::Never);
        assert!(matches!(answer, Ok(Answer::Refused)), "{owner:?} {lock:?}: {answer:?}");
    }

    #[track_caller]
    fn queues(&self, owner: Owner, lock: Lock<'_>, undo_records_count: u64) -> PendingLock {
        match self.request(owner, lock, Wait::Queue { undo_records_count }) {
            Ok(Answer::Wait(pending)) => pending,
            other => panic!("{owner:?} {lock:?} should wait, got {other:?}"),
        }
    }

    #[track_caller]
    fn waits(&self, owner: Owner, lock: Lock<'_>) -> PendingLock {
        self.queues(owner, lock, 0)
    }

    #[track_caller]
    fn deadlocks_with(&self, owner: Owner, lock: Lock<'_>, undo_records_count: u64) {
        let answer = self.request(owner, lock, Wait::Queue { undo_records_count });
        assert!(matches!(answer, Err(Error::Deadlock)), "{owner:?} {lock:?}: {answer:?}");
    }

    /// Returns the locks of all owners, and the waits.
    fn all_locks(&self) -> Vec<LockInfo> {
        let mut locks = self.list_locks(usize::MAX);
        locks.extend(self.list_waits().iter().map(WaitInfo::request));
        locks
    }

    /// Checks that no locks or waits remain.
    #[track_caller]
    fn is_clean(&self) {
        assert_eq!(self.all_locks(), []);
        assert_eq!(self.memory_bytes().0, 0);
        self.tree_shards.iter().for_each(|shard| {
            assert_eq!(shard.in_use.load(std::sync::atomic::Ordering::Relaxed), 0);
            assert_eq!(shard.waiters.load(std::sync::atomic::Ordering::Relaxed), 0);
        });
    }
}

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
