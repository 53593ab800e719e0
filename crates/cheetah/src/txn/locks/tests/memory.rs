//! Tests that the memory of locks is bounded, and that locks are compressed.

use super::*;
use crate::memory::{MemoryBudget, MemoryUse};
use std::sync::Arc;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn small(bytes_max: usize, compress_at: usize) -> LockTable {
    LockTable::new(LockLimits { bytes_max, compress_at })
}

#[test]
fn compressed_locks_keep_others_off_and_no_neighbour_is_locked() {
    let locks = small(1 << 20, 10);
    (0..1000).for_each(|n| locks.grants(A, record(&key(2 * n), if n % 2 == 0 { S } else { X })));
    let records = |lock: &LockInfo| matches!(lock.on, LockedOn::Record { .. });
    assert!(locks.all_locks().iter().filter(|lock| records(lock)).count() <= 11);
    for n in 0..1000 {
        locks.grants(B, record(&key(2 * n + 1), X));
        locks.refuses(B, record(&key(2 * n), X));
        let shared = locks.request(B, record(&key(2 * n), S), Wait::Never);
        assert_eq!(matches!(shared, Ok(Answer::Granted)), n % 2 == 0, "{n}: {shared:?}");
    }
    (0..1000).for_each(|n| locks.has(A, record(&key(2 * n), S)));
    let waiting = locks.waits(C, next_key(&key(5), &key(6), S));
    locks.release_all(A);
    assert!(waiting.is_granted());
    [B, C].into_iter().for_each(|owner| locks.release_all(owner));
    locks.is_clean();
}

#[test]
fn the_newest_lock_can_be_unlocked_after_a_compression() {
    let locks = small(1 << 20, 10);
    for n in 0..1000 {
        locks.grants(A, record(&key(n), X));
        if n % 10 != 0 {
            assert!(locks.unlock_row(A, I, &key(n), X), "{n}");
        }
    }
    let refused = |n: &u32| matches!(locks.request(B, record(&key(*n), S), Wait::Never), Ok(Answer::Refused));
    assert_eq!((0..1000).filter(refused).count(), 100);
}

#[test]
fn records_that_others_have_too_are_not_compressed_away() {
    let locks = small(1 << 20, 10);
    (0..100).for_each(|n| locks.grants(B, record(&key(n), S)));
    (0..100).for_each(|n| locks.grants(A, record(&key(n), S)));
    locks.release_all(B);
    (0..100).for_each(|n| locks.refuses(C, record(&key(n), X)));
    locks.release_all(A);
    (0..100).for_each(|n| locks.grants(C, record(&key(n), X)));
    locks.release_all(C);
    locks.is_clean();
}

const LIMIT: usize = 1_000_000;

#[test]
fn a_full_lock_table_refuses_and_leaves_everything_as_it_was() {
    let locks = small(LIMIT, 1_000_000);
    let taken = (0..).find(|n| locks.request(A, record(&key(*n), X), QUEUE).is_err()).unwrap();
    assert!(taken > 20_000, "the owner's locks are compressed first: {taken}");
    let refused = locks.request(A, record(&key(taken), X), QUEUE);
    assert!(matches!(refused, Err(Error::LockTableFull)), "{refused:?}");
    for lock in [next_key(&key(1 << 20), &key(1 << 21), X), gap(&key(1 << 20), &key(1 << 21))] {
        assert!(matches!(locks.request(B, lock, QUEUE), Err(Error::LockTableFull)));
    }
    assert!(matches!(locks.convert_implicit(B, I, b"other", || true), Err(Error::LockTableFull)));
    locks.has(A, record(&key(0), X));
    locks.grants(B, insert(b"other"));
    locks.grants(B, table(TableMode::IntentShared));
    let waiting = locks.waits(B, record(&key(0), S));
    assert!(locks.memory_bytes().0 <= LIMIT + LIMIT / 20, "{:?}", locks.memory_bytes());
    locks.release_all(A);
    assert!(waiting.is_granted());
    locks.release_all(B);
    locks.is_clean();
}

#[test]
fn an_owner_that_asks_for_a_range_has_its_records_compressed_first_too() {
    let locks = small(LIMIT, 1_000_000);
    (0..3000).for_each(|n| locks.grants(A, record(&key(n), X)));
    assert!((3000..).any(|n| locks.request(B, record(&key(n), X), QUEUE).is_err()));
    locks.grants(A, gap(&key(1 << 20), &key(1 << 21)));
    [A, B].into_iter().for_each(|owner| locks.release_all(owner));
    locks.is_clean();
}

#[test]
fn many_ranges_are_bounded_too() {
    let locks = small(100_000, 10);
    let refused =
        (0..).find(|n| locks.request(A, gap(&key(4 * n), &key(4 * n + 2)), QUEUE).is_err()).unwrap();
    assert!((100..1000).contains(&refused), "{refused}");
    locks.grants(B, insert(&key(4 * refused + 1)));
    locks.release_all(A);
    locks.is_clean();
}

#[test]
fn the_memory_of_locks_is_in_the_budget_of_the_engine_and_comes_back() {
    let budget = Arc::new(MemoryBudget::new(1 << 20));
    let limits = LockLimits { bytes_max: 1 << 18, compress_at: 100 };
    let locks = LockTable::counted(limits, Arc::clone(&budget));
    let refused = (0..1 << 20)
        .find_map(|n| locks.request(A, record(&key(n), X), QUEUE).err().map(|error| (n, error)))
        .unwrap();
    assert!(matches!(refused.1, Error::LockTableFull) && refused.0 > 10_000, "{refused:?}");
    let used = budget.used(MemoryUse::Locks);
    assert!((limits.bytes_max - 1024..limits.bytes_max + 1024).contains(&used), "{used}");
    assert_eq!((budget.total(), locks.memory_bytes()), (used, (used, limits.bytes_max)));
    locks.release_all(A);
    assert_eq!(budget.total(), 0);
    locks.is_clean();
}
