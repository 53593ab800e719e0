//! Tests cycles of waiters.

use super::*;

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Owners 0 to `count` - 1 each hold a record. Each owner except the last waits for the record of
/// the next owner.
fn chain(count: u64, undo_records: impl Fn(u64) -> u64) -> (LockTable, Vec<PendingLock>) {
    let locks = LockTable::default();
    (0..count).for_each(|n| locks.grants(Owner(n), record(&key(n), X)));
    let waits = |n| locks.queues(Owner(n), record(&key(n + 1), X), undo_records(n));
    let pending = (0..count - 1).map(waits).collect();
    (locks, pending)
}

#[test]
fn of_two_who_have_done_the_same_the_second_is_the_victim() {
    let (locks, pending) = chain(2, |_| 7);
    locks.deadlocks_with(Owner(1), record(&key(0), X), 7);
    locks.release_all(Owner(1));
    assert!(pending[0].is_granted());
}

#[test]
fn the_victim_is_who_has_done_least() {
    for count in [2, 3, 5] {
        for lightest in 0..count {
            let (locks, pending) = chain(count, |n| if n == lightest { 1 } else { 10 + n });
            let last = Owner(count - 1);
            if lightest == count - 1 {
                locks.deadlocks_with(last, record(&key(0), X), 1);
            } else {
                let _waiting = locks.queues(last, record(&key(0), X), 99);
                assert_eq!(pending[lightest as usize].outcome(), Some(Outcome::Deadlock));
                assert_eq!(locks.cancel(&pending[lightest as usize]), Some(Outcome::Deadlock));
            }
            let (number, latest) = locks.deadlocks();
            let latest = latest.unwrap();
            assert_eq!((number, latest.victim, latest.members.len() as u64), (1, Owner(lightest), count));
            let others = pending.iter().zip(0..).filter(|(_, n)| *n != lightest);
            assert!(others.clone().all(|(pending, _)| pending.outcome().is_none()));
            locks.release_all(Owner(lightest));
            assert_eq!(others.filter(|(pending, _)| pending.is_granted()).count(), usize::from(lightest > 0));
        }
    }
}

#[test]
fn who_must_be_spared_is_no_victim_however_little_he_has_done() {
    for count in [2, 3, 5] {
        for latest in 0..count {
            let (locks, pending) = chain(count, |n| n);
            // Of two owners up to `latest`, the later one must be the victim. These owners have
            // done the least work.
            locks.set_victim_choice(move |first, second| {
                let later = first.0.max(second.0);
                (later <= latest).then_some(Owner(later))
            });
            let last = Owner(count - 1);
            if latest == last.0 {
                locks.deadlocks_with(last, record(&key(0), X), 99);
            } else {
                let _waiting = locks.queues(last, record(&key(0), X), 99);
                assert_eq!(pending[latest as usize].outcome(), Some(Outcome::Deadlock));
            }
            assert_eq!(locks.deadlocks().1.unwrap().victim, Owner(latest));
        }
    }
}

#[test]
fn locks_count_as_work() {
    let (locks, pending) = chain(2, |_| 0);
    (10..20).for_each(|n| locks.grants(Owner(1), record(&key(n), X)));
    let _waiting = locks.waits(Owner(1), record(&key(0), X));
    assert_eq!(pending[0].outcome(), Some(Outcome::Deadlock));
}

#[test]
fn a_cycle_over_a_table_a_record_and_a_gap_is_found() {
    let locks = LockTable::default();
    locks.grants(A, table(TableMode::Exclusive));
    locks.grants(B, record(b"10", X));
    locks.grants(C, gap(b"20", b"30"));
    let _a = locks.queues(A, next_key(b"05", b"10", S), 9);
    let _b = locks.queues(B, insert(b"25"), 9);
    locks.deadlocks_with(C, table(TableMode::IntentShared), 1);
    let text = locks.deadlocks().1.unwrap().to_string();
    assert_eq!(
        text,
        "(1) owner 3, weight 2, waits for IS on table 1\n    owner 1 holds it: X\n\
         (2) owner 1, weight 10, waits for S on records and gaps of index 16 from (3035, 3130]\n    owner 2 holds it: X\n\
         (3) owner 2, weight 10, waits for X on a new record 3235 of index 16\n    owner 3 holds a range around it: X\n\
         owner 3 is rolled back"
    );
}

#[test]
fn two_upgrades_are_a_deadlock_of_the_second() {
    for lock in [table(TableMode::Exclusive), record(b"k", X)] {
        let locks = LockTable::default();
        let shared = if let Lock::Table(..) = lock { table(TableMode::Shared) } else { record(b"k", S) };
        locks.grants(A, shared);
        locks.grants(B, shared);
        let upgrade = locks.waits(A, lock);
        locks.deadlocks_with(B, lock, 0);
        locks.release_all(B);
        assert!(upgrade.is_granted());
    }
}

#[test]
fn a_cycle_through_an_earlier_request_is_found() {
    let locks = LockTable::default();
    locks.grants(A, record(b"1", S));
    locks.grants(C, record(b"2", X));
    let writer = locks.queues(B, record(b"1", X), 9);
    let _reader = locks.queues(C, record(b"1", S), 9);
    locks.deadlocks_with(A, record(b"2", S), 0);
    locks.release_all(A);
    assert!(writer.is_granted());
}

#[test]
fn who_waits_behind_others_is_reached_through_them() {
    let locks = LockTable::default();
    locks.grants(A, record(b"1", X));
    locks.grants(D, record(b"2", X));
    let _first = locks.queues(B, record(b"1", X), 9);
    let _second = locks.queues(C, record(b"1", X), 9);
    let _third = locks.queues(D, record(b"1", X), 9);
    locks.deadlocks_with(A, record(b"2", X), 0);
    let members = locks.deadlocks().1.unwrap().members;
    assert!(members.iter().any(|member| member.owner == D && member.blocked_by.owner != D));
}

#[test]
fn a_victim_that_waited_lets_those_behind_it_go_on() {
    let locks = LockTable::default();
    locks.grants(A, record(b"1", S));
    locks.grants(B, record(b"2", X));
    let victim = locks.queues(B, record(b"1", X), 0);
    let behind = locks.waits(C, record(b"1", S));
    let _waiting = locks.queues(A, record(b"2", X), 50);
    assert_eq!(victim.outcome(), Some(Outcome::Deadlock));
    assert!(behind.is_granted());
}

#[test]
fn two_cycles_at_once_are_both_broken() {
    let locks = LockTable::default();
    locks.grants(A, record(b"a", X));
    locks.grants(B, record(b"k", S));
    locks.grants(C, record(b"k", S));
    let (b, c) = (locks.queues(B, record(b"a", X), 1), locks.queues(C, record(b"a", X), 1));
    let waiting = locks.queues(A, record(b"k", X), 9);
    assert_eq!((b.outcome(), c.outcome()), (Some(Outcome::Deadlock), Some(Outcome::Deadlock)));
    locks.release_all(B);
    assert!(!waiting.is_granted());
    locks.release_all(C);
    assert!(waiting.is_granted());
    assert_eq!(locks.deadlocks().0, 2);
}

/// D holds a record for which C waits, and D waits for A. When A requests that record, after C, A
/// is in two cycles: one with C and D, and one with D alone.
#[test]
fn nobody_is_given_up_whose_cycle_another_victim_breaks() {
    for (work_of_a, work_of_d, victim) in [(5, 9, A), (9, 5, D)] {
        let locks = LockTable::default();
        locks.grants(D, record(b"k", X));
        locks.grants(A, record(b"a", X));
        let behind = locks.queues(C, record(b"k", X), 1);
        let middle = locks.queues(D, record(b"a", X), work_of_d);
        if victim == A {
            locks.deadlocks_with(A, record(b"k", X), work_of_a);
        } else {
            let _waiting = locks.queues(A, record(b"k", X), work_of_a);
            assert_eq!(middle.outcome(), Some(Outcome::Deadlock));
        }
        assert_eq!(behind.outcome(), None, "C is in a cycle with D, and D or A is the victim");
        assert_eq!((locks.deadlocks().0, locks.deadlocks().1.unwrap().victim), (1, victim));
        locks.release_all(victim);
        assert_eq!((middle.is_granted(), behind.is_granted()), (victim == A, victim == D));
    }
}

/// A holds an S lock on the record. B requests an X lock, C requests an S lock after B, and then A
/// requests an X lock. A may pass B, which waits for A, but not C.
#[test]
fn an_upgrade_behind_a_reader_behind_a_writer_is_a_cycle() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    let (writer, reader) = (locks.queues(B, record(b"k", X), 9), locks.queues(C, record(b"k", S), 9));
    locks.deadlocks_with(A, record(b"k", X), 0);
    locks.release_all(A);
    assert!(writer.is_granted() && !reader.is_granted());
}
