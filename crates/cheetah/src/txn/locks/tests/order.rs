//! Tests that requests are served in their order, and that requests can be cancelled.

use super::*;
use TableMode::{Exclusive, IntentExclusive, Shared};

#[test]
fn readers_share_a_table_and_a_writer_waits_for_all_of_them() {
    let locks = LockTable::default();
    locks.grants(A, table(Shared));
    locks.grants(B, table(Shared));
    let writer = locks.waits(C, table(Exclusive));
    locks.release_all(A);
    assert!(!writer.is_granted());
    locks.release_all(B);
    assert!(writer.is_granted());
    locks.has(C, table(Exclusive));
}

#[test]
fn a_reader_behind_a_waiting_writer_waits_its_turn() {
    for lock in [table as fn(TableMode) -> Lock<'static>, record_in] {
        let locks = LockTable::default();
        locks.grants(A, lock(Shared));
        let writer = locks.waits(B, lock(Exclusive));
        let reader = locks.waits(C, lock(Shared));
        locks.refuses(D, lock(Shared));
        locks.release_all(A);
        assert!(writer.is_granted() && !reader.is_granted());
        locks.release_all(B);
        assert!(reader.is_granted());
        locks.release_all(C);
        locks.is_clean();
    }
}

/// A lock on a record, in the record mode that corresponds to the table mode.
fn record_in(mode: TableMode) -> Lock<'static> {
    record(b"k", if mode == Shared { S } else { X })
}

#[test]
fn an_upgrade_passes_those_who_wait_for_it_anyway() {
    for lock in [table as fn(TableMode) -> Lock<'static>, record_in] {
        let locks = LockTable::default();
        locks.grants(A, lock(Shared));
        let writer = locks.waits(B, lock(Exclusive));
        locks.grants(A, lock(Exclusive));
        assert!(!writer.is_granted());
        locks.release_all(A);
        assert!(writer.is_granted());
    }
}

#[test]
fn a_waiting_upgrade_passes_them_too() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    locks.grants(B, record(b"k", S));
    let writer = locks.waits(C, record(b"k", X));
    let upgrade = locks.waits(A, record(b"k", X));
    locks.release_all(B);
    assert!(upgrade.is_granted() && !writer.is_granted());
    locks.release_all(A);
    assert!(writer.is_granted());
}

#[test]
fn a_cancelled_request_lets_the_next_one_pass() {
    let locks = LockTable::default();
    locks.grants(A, table(Shared));
    let writer = locks.waits(B, table(Exclusive));
    let reader = locks.waits(C, table(Shared));
    assert_eq!(locks.cancel(&writer), None);
    assert_eq!(reader.outcome(), Some(Outcome::Granted));
    assert_eq!(locks.cancel(&reader), Some(Outcome::Granted), "granted meanwhile");
    locks.has(C, table(Shared));
}

#[test]
fn an_owner_that_ends_while_it_waits_leaves_the_queue() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    let writer = locks.waits(B, record(b"k", X));
    let reader = locks.waits(C, record(b"k", S));
    locks.release_all(B);
    assert!(reader.is_granted() && !writer.is_granted());
    [A, C].into_iter().for_each(|owner| locks.release_all(owner));
    locks.is_clean();
}

#[test]
fn who_does_not_wait_stands_in_nobodys_way() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", X));
    locks.refuses(B, record(b"k", X));
    locks.release_all(A);
    locks.grants(C, record(b"k", X));
}

#[test]
fn what_gets_on_with_all_who_wait_is_granted_at_once() {
    let locks = LockTable::default();
    locks.grants(A, table(IntentExclusive));
    let _reader = locks.waits(B, table(Shared));
    locks.grants(C, table(TableMode::IntentShared));
    locks.grants(A, record(b"k", X));
    let _other = locks.waits(D, record(b"k", S));
    locks.grants(C, record(b"l", X));
    locks.refuses(C, record(b"k", S));
}

#[test]
fn a_wait_ends_with_the_time_or_with_the_answer() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", X));
    let pending = locks.waits(B, record(b"k", X));
    assert_eq!(pending.wait_ns(1), None);
    std::thread::scope(|scope| {
        scope.spawn(|| locks.release_all(A));
        assert_eq!(pending.wait_ns(u64::MAX), Some(Outcome::Granted));
    });
}

#[test]
fn a_wait_is_listed_with_what_keeps_it_waiting() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"a", b"k", S));
    let _writer = locks.waits(B, record(b"k", X));
    let _reader = locks.waits(C, record(b"k", S));
    let waits = locks.list_waits();
    let blocked = |at: usize| waits[at].blocked_by.iter().map(|b| (b.owner, b.kind)).collect::<Vec<_>>();
    assert_eq!(blocked(0), [(A, BlockingKind::Range)]);
    assert_eq!(blocked(1), [(B, BlockingKind::EarlierRequest)]);
    assert_eq!(locks.all_locks().iter().filter(|lock| lock.is_waiting).count(), 2);
}

#[test]
fn five_hundred_writers_of_one_row_are_served_in_their_order() {
    let locks = LockTable::default();
    locks.grants(Owner(0), record(b"k", X));
    let pending = (1..512).map(|n| locks.waits(Owner(n), record(b"k", X))).collect::<Vec<_>>();
    for (n, pending) in (0..).zip(&pending) {
        assert!(!pending.is_granted());
        locks.release_all(Owner(n));
        assert!(pending.is_granted());
    }
    locks.release_all(Owner(511));
    locks.is_clean();
}
