//! Tests the conversion of implicit locks of versions into explicit locks.

use super::*;
use crate::base::planted::plant;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

#[test]
fn a_converted_lock_is_the_holders() {
    let locks = LockTable::default();
    assert!(locks.convert_implicit(A, I, b"k", || true).unwrap());
    assert!(locks.convert_implicit(A, I, b"k", || true).unwrap(), "any number of times");
    let waiting = locks.waits(B, record(b"k", S));
    assert!(locks.convert_implicit(A, I, b"k", || true).unwrap());
    locks.release_all(A);
    assert!(waiting.is_granted());
    locks.release_all(B);
    locks.is_clean();
}

#[test]
fn m8_nothing_is_left_of_a_holder_that_has_ended() {
    let locks = LockTable::default();
    assert!(!locks.convert_implicit(A, I, b"k", || false).unwrap());
    locks.is_clean();
    assert!(locks.owners.trees(A).is_empty());
    locks.grants(A, record(b"k", S));
    assert!(!locks.convert_implicit(A, I, b"k", || false).unwrap());
    locks.grants(B, record(b"k", S));
}

#[test]
fn m8_a_conversion_that_does_not_look_again_is_caught() {
    let locks = LockTable::default();
    let bug = plant("locks: convert for a holder that has ended");
    locks.convert_implicit(A, I, b"k", || false).unwrap();
    assert!(bug.reached_count() > 0 && !locks.all_locks().is_empty(), "the lock is never released");
}

#[test]
fn a_conversion_that_closes_a_cycle_of_others_ends_it() {
    let locks = LockTable::default();
    locks.grants(C, record(b"k", S));
    locks.grants(B, record(b"b", X));
    let b = locks.queues(B, record(b"k", X), 1);
    let a = locks.queues(A, record(b"b", X), 9);
    assert!(locks.convert_implicit(A, I, b"k", || true).unwrap());
    assert_eq!((a.outcome(), b.outcome()), (None, Some(Outcome::Deadlock)));
}

/// The writer of a record ends while other threads convert the writer's lock. Afterwards no lock of
/// the writer may remain. `version` holds the writer's ID; 0 means that no transaction is active on
/// the record.
#[test]
fn m8_conversions_while_holders_end_leave_nothing_behind() {
    const ROUNDS: u64 = 3000;
    let locks = LockTable::default();
    let version = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                version.store(round, SeqCst);
                std::hint::spin_loop();
                version.store(0, SeqCst);
                locks.release_all(Owner(round));
            }
            version.store(u64::MAX, SeqCst);
        });
        let reader = |number: u64| {
            let (locks, version) = (&locks, &version);
            move || loop {
                let seen = version.load(SeqCst);
                if seen == u64::MAX {
                    return;
                }
                let is_active = || version.load(SeqCst) == seen;
                if seen == 0 || !locks.convert_implicit(Owner(seen), I, b"k", is_active).unwrap() {
                    continue;
                }
                let own = Owner(ROUNDS + number);
                if let Ok(Answer::Wait(pending)) = locks.request(own, record(b"k", S), QUEUE) {
                    assert_eq!(pending.wait_ns(60_000_000_000), Some(Outcome::Granted), "a lock was left");
                }
                locks.release_all(own);
            }
        };
        scope.spawn(reader(1));
        scope.spawn(reader(2));
    });
    locks.is_clean();
}
