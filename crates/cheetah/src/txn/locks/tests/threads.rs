//! Tests with threads: deadlock storms, and counters that only locks keep correct.

use super::*;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

const THREADS: u64 = 4;

/// Waits for a queued request. Returns false for a victim.
fn got(locks: &LockTable, answer: crate::base::Result<Answer>) -> bool {
    match answer {
        Ok(Answer::Granted | Answer::AlreadyHeld) => true,
        Ok(Answer::Wait(pending)) => {
            let outcome = pending.wait_ns(60_000_000_000);
            assert!(outcome.is_some(), "the wait does not end: {:?}", locks.list_waits());
            outcome == Some(Outcome::Granted)
        }
        Err(Error::Deadlock) => false,
        other => panic!("{other:?}"),
    }
}

/// Runs `transactions` transactions. Each increments a few cells in random order. Returns the
/// number of victims, which start over.
fn storm(locks: &LockTable, cells: &[AtomicI64], owner: Owner, transactions: u64) -> u64 {
    let mut random = Random(owner.0);
    let (mut done, mut victims) = (0, 0);
    while done < transactions {
        let mut locked = Vec::new();
        for _ in 0..3 {
            let cell = random.below(cells.len() as u64);
            let key = cell.to_be_bytes();
            let lock = match random.below(3) {
                0 => Lock::NextKey { tree: I, range: (Included(&key), Included(&key)), key: &key, mode: X },
                _ => record(&key, X),
            };
            if !got(locks, locks.request(owner, lock, Wait::Queue { undo_records_count: random.below(4) })) {
                break;
            }
            locked.push(cell as usize);
        }
        if locked.len() == 3 {
            // The load and the store are not one atomic step: two concurrent increments would lose
            // one.
            locked.iter().for_each(|cell| cells[*cell].store(cells[*cell].load(Relaxed) + 1, Relaxed));
            done += 1;
        } else {
            victims += 1;
        }
        locks.release_all(owner);
    }
    victims
}

#[test]
fn a_deadlock_storm_ends_with_every_transaction_done() {
    let locks = LockTable::new(LockLimits { compress_at: 2, ..LockLimits::default() });
    let cells = (0..6).map(|_| AtomicI64::new(0)).collect::<Vec<_>>();
    let victims = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (locks, cells, victims) = (&locks, &cells, &victims);
            scope.spawn(move || victims.fetch_add(storm(locks, cells, Owner(thread), 4000), Relaxed));
        }
    });
    let sum = cells.iter().map(|cell| cell.load(Relaxed)).sum::<i64>();
    assert_eq!(sum, THREADS as i64 * 4000 * 3);
    assert_eq!(locks.deadlocks().0, victims.load(Relaxed));
    locks.is_clean();
}

/// Gap locks keep inserts out while their owner reads twice. As in the engine, a thread holds the
/// latch of the leaf from the lock request to the insert or to the first read.
#[test]
fn no_thread_inserts_into_a_range_between_two_reads_of_it() {
    let locks = LockTable::default();
    let latched_count = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (locks, latched_count) = (&locks, &latched_count);
            scope.spawn(move || {
                for _ in 0..5000 {
                    let count = latched_count.lock();
                    locks.grants(Owner(thread), gap(b"10", b"20"));
                    let first = *count;
                    drop(count);
                    std::thread::yield_now();
                    assert_eq!(*latched_count.lock(), first);
                    locks.release_all(Owner(thread));
                }
            });
        }
        scope.spawn(|| (0..5000).for_each(|_| insert_one(&locks, Owner(9), &latched_count)));
    });
    assert_eq!(latched_count.into_inner(), 5000);
    locks.is_clean();
}

/// Inserts when no other owner has the gap. A thread waits without the latch, so it latches again
/// and repeats the request.
fn insert_one(locks: &LockTable, owner: Owner, latched_count: &Mutex<u64>) {
    loop {
        let mut count = latched_count.lock();
        let Ok(Answer::Wait(pending)) = locks.request(owner, insert(b"15"), QUEUE) else {
            *count += 1;
            break;
        };
        drop(count);
        assert!(pending.wait_ns(60_000_000_000).is_some());
    }
    locks.release_all(owner);
}

#[test]
fn time_outs_and_ends_at_any_moment_leave_nothing_behind() {
    let locks = LockTable::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let locks = &locks;
            scope.spawn(move || {
                let (owner, mut random) = (Owner(thread), Random(thread + 50));
                for _ in 0..5000 {
                    let key = random.below(3).to_be_bytes();
                    let mode = if random.one_in(2) { S } else { X };
                    let lock =
                        if random.one_in(5) { Lock::Table(T, mode.into()) } else { record(&key, mode) };
                    match locks.request(owner, lock, QUEUE) {
                        Ok(Answer::Wait(pending)) if random.one_in(2) => {
                            pending.wait_ns(1000);
                            locks.cancel(&pending);
                        }
                        Ok(Answer::Wait(_)) | Err(Error::Deadlock) => locks.release_all(owner),
                        Ok(_) if random.one_in(4) => locks.release_all(owner),
                        Ok(_) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                locks.release_all(owner);
            });
        }
    });
    locks.is_clean();
}
