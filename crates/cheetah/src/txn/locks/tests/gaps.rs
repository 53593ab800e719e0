//! Tests gap locks and next-key locks: the examples in InnoDB's manual, with precise ranges.

use super::*;

#[test]
fn an_insert_into_a_gap_that_another_has_waits() {
    let locks = LockTable::default();
    locks.grants(A, gap(b"10", b"20"));
    let waiting = locks.waits(B, insert(b"15"));
    locks.grants(C, insert(b"25"));
    locks.grants(C, insert(b"09"));
    locks.release_all(A);
    assert!(waiting.is_granted());
    locks.grants(B, insert(b"15"));
}

#[test]
fn gap_locks_of_two_owners_coexist_and_both_keep_inserts_out() {
    let locks = LockTable::default();
    locks.grants(A, gap(b"10", b"20"));
    locks.grants(B, gap(b"10", b"20"));
    let waiting = locks.waits(C, insert(b"15"));
    locks.release_all(A);
    assert!(!waiting.is_granted());
    locks.release_all(B);
    assert!(waiting.is_granted());
}

#[test]
fn two_inserts_into_one_gap_do_not_wait_for_each_other() {
    let locks = LockTable::default();
    locks.grants(A, insert(b"15"));
    locks.grants(B, insert(b"16"));
    locks.grants(C, gap(b"10", b"20"));
    assert_eq!(locks.list_waits(), []);
}

#[test]
fn two_owners_of_a_gap_that_both_insert_are_a_deadlock() {
    let locks = LockTable::default();
    locks.grants(A, gap(b"10", b"20"));
    locks.grants(B, gap(b"10", b"20"));
    let first = locks.queues(A, insert(b"15"), 5);
    locks.deadlocks_with(B, insert(b"16"), 1);
    locks.release_all(B);
    assert!(first.is_granted());
}

#[test]
fn an_owner_inserts_into_its_own_range() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"10", b"20", X));
    locks.grants(A, insert(b"15"));
    locks.grants(A, supremum(b"90"));
    locks.grants(A, insert(b"95"));
}

#[test]
fn a_gap_lock_leaves_the_records_to_others() {
    let locks = LockTable::default();
    locks.grants(A, gap(b"10", b"20"));
    for key in [b"10", b"15", b"20"] {
        locks.grants(B, record(key, X));
    }
    locks.grants(B, next_key(b"10", b"20", X));
}

#[test]
fn a_next_key_lock_keeps_off_changes_inside_and_not_outside() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"10", b"20", S));
    locks.grants(B, record(b"10", X));
    locks.grants(B, record(b"21", X));
    locks.grants(B, record(b"20", S));
    locks.refuses(B, record(b"20", X));
    locks.refuses(C, record(b"15", X));
    locks.refuses(B, insert(b"15"));
    locks.grants(B, insert(b"21"));
}

#[test]
fn the_end_of_the_index_is_locked_up_to_the_supremum() {
    let locks = LockTable::default();
    locks.grants(A, supremum(b"90"));
    locks.refuses(B, insert(b"91"));
    locks.refuses(B, insert(&[0xff; 40]));
    locks.grants(B, insert(b"89"));
    locks.grants(B, record(b"90", X));
    locks.grants(B, supremum(b"90"));
}

#[test]
fn an_empty_index_is_locked_as_a_whole() {
    let locks = LockTable::default();
    locks.grants(A, Lock::Gap { tree: I, range: (Unbounded, Unbounded), mode: S });
    locks.refuses(B, insert(b""));
    locks.refuses(B, insert(b"anything"));
}

/// SELECT ... WHERE id > 100 FOR UPDATE with rows 90 and 102. InnoDB locks the gap from 90 on; here
/// the gap begins at 100.
#[test]
fn a_range_begins_where_the_search_began() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"100", b"102", X));
    locks.grants(A, supremum(b"102"));
    locks.grants(B, insert(b"095"));
    locks.refuses(B, insert(b"101"));
    locks.refuses(B, insert(b"103"));
}

#[test]
fn a_next_key_request_that_waits_keeps_later_inserts_out_of_its_range() {
    let locks = LockTable::default();
    locks.grants(A, record(b"20", X));
    let scan = locks.waits(B, next_key(b"10", b"20", S));
    let inserted = locks.waits(C, insert(b"15"));
    assert_eq!(locks.cancel(&scan), None);
    assert!(inserted.is_granted());
}

/// DELETE and INSERT of a row for which another transaction's scan waits.
#[test]
fn who_has_a_record_inserts_there_though_others_wait_for_it() {
    let locks = LockTable::default();
    locks.grants(A, record(b"20", X));
    let scan = locks.waits(B, next_key(b"10", b"20", S));
    locks.grants(A, insert(b"20"));
    locks.refuses(A, insert(b"15"));
    locks.refuses(C, insert(b"20"));
    locks.grants(D, gap(b"10", b"30"));
    locks.refuses(A, insert(b"20"));
    locks.release_all(A);
    assert!(scan.is_granted());
}

#[test]
fn a_scan_of_any_length_is_one_range() {
    let locks = LockTable::default();
    let key = |n: u32| n.to_be_bytes();
    locks.grants(A, Lock::NextKey { tree: I, range: (Unbounded, Included(&key(0))), key: &key(0), mode: X });
    let bytes = locks.memory_bytes().0;
    for n in 1..2000 {
        locks.grants(A, next_key(&key(n - 1), &key(n), X));
    }
    assert_eq!(locks.memory_bytes().0, bytes);
    assert_eq!(locks.all_locks().len(), 1);
    locks.has(A, record(&key(777), X));
    locks.refuses(B, record(&key(777), S));
    locks.release_all(A);
    locks.is_clean();
}

#[test]
fn a_backward_scan_is_one_range_too() {
    let locks = LockTable::default();
    let key = |n: u32| n.to_be_bytes();
    locks.grants(A, supremum(&key(1000)));
    for n in (1..1000).rev() {
        let (low, high) = (key(n), key(n + 1));
        let range = (Included(&low[..]), if n == 999 { Included(&high[..]) } else { Excluded(&high[..]) });
        locks.grants(A, Lock::NextKey { tree: I, range, key: &low, mode: X });
    }
    assert_eq!(locks.all_locks().len(), 2, "the supremum's gap has no records");
    locks.release_all(A);
    locks.is_clean();
}

#[test]
fn overlapping_ranges_of_an_owner_become_one() {
    let locks = LockTable::default();
    locks.grants(A, gap(b"10", b"20"));
    locks.grants(A, gap(b"40", b"50"));
    assert_eq!(locks.all_locks().len(), 2);
    locks.grants(A, gap(b"15", b"45"));
    locks.has(A, gap(b"11", b"49"));
    let on = LockedOn::Range {
        tree: I,
        low: Excluded(b"10".to_vec()),
        high: Excluded(b"50".to_vec()),
        has_records: false,
    };
    assert_eq!(locks.all_locks(), [LockInfo { owner: A, on, mode: TableMode::Exclusive, is_waiting: false }]);
    locks.release_all(A);
    locks.is_clean();
}

#[test]
fn ranges_of_two_owners_are_released_apart() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"10", b"30", S));
    locks.grants(B, next_key(b"20", b"40", S));
    locks.release_all(A);
    locks.grants(C, insert(b"15"));
    locks.refuses(C, insert(b"25"));
    locks.refuses(C, record(b"40", X));
    locks.release_all(B);
    locks.is_clean();
}

#[test]
fn a_record_that_another_has_inside_a_range_is_still_his() {
    let locks = LockTable::default();
    locks.grants(B, record(b"15", S));
    locks.grants(A, next_key(b"10", b"20", X));
    locks.has(B, record(b"15", S));
    locks.refuses(A, record(b"15", X));
    locks.release_all(B);
    locks.has(A, record(b"15", X));
}

#[test]
fn ranges_of_two_writers_share_gaps_and_not_records() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"10", b"20", X));
    locks.grants(B, next_key(b"10", b"30", X));
    locks.has(A, record(b"20", X));
    locks.refuses(B, record(b"20", X));
    locks.refuses(C, insert(b"15"));
    locks.has(B, record(b"30", X));
}

#[test]
fn a_plain_bound_is_written_as_in_mathematics() {
    let locks = LockTable::default();
    locks.grants(A, next_key(&[1], &[0x2a], X));
    let text = locks.all_locks().iter().map(|lock| lock.on.to_string()).collect::<Vec<_>>();
    assert_eq!(text, ["records and gaps of index 16 from (01, 2a]"]);
}

#[test]
fn whole_tables_are_released_before_a_long_rollback_but_for_those_that_are_kept() {
    let locks = LockTable::default();
    let [written, read, kept] = [1, 2, 3].map(TableId);
    locks.grants(A, Lock::Table(written, TableMode::Exclusive));
    locks.grants(A, Lock::Table(read, TableMode::Shared));
    locks.grants(A, Lock::Table(kept, TableMode::Exclusive));
    let waits = [(B, written), (D, read)]
        .map(|(owner, table)| locks.waits(owner, Lock::Table(table, TableMode::IntentExclusive)));
    locks.release_whole_tables(A, &[kept]);
    assert!(waits.iter().all(PendingLock::is_granted));
    locks.refuses(C, Lock::Table(written, TableMode::Shared));
    locks.refuses(C, Lock::Table(kept, TableMode::IntentShared));
    [B, D].into_iter().for_each(|owner| locks.release_all(owner));
    locks.grants(C, Lock::Table(read, TableMode::Exclusive));
    [A, C].into_iter().for_each(|owner| locks.release_all(owner));
    locks.is_clean();
}

#[test]
fn ranges_are_released_before_a_rollback_and_records_are_not() {
    let locks = LockTable::default();
    locks.grants(A, table(TableMode::IntentExclusive));
    locks.grants(A, record(b"a", X));
    locks.grants(A, next_key(b"a", b"c", X));
    locks.grants(A, supremum(b"c"));
    let inserts = [locks.waits(B, insert(b"b")), locks.waits(C, insert(b"d"))];
    let reads = locks.waits(D, record(b"c", S));
    locks.release_ranges(A);
    assert!(inserts.iter().chain([&reads]).all(PendingLock::is_granted));
    locks.refuses(B, record(b"a", S));
    locks.refuses(B, table(TableMode::Exclusive));
    assert!(locks.all_locks().iter().all(|lock| !matches!(lock.on, LockedOn::Range { .. })));
    locks.grants(A, next_key(b"a", b"b", S));
    [A, D].into_iter().for_each(|owner| locks.release_all(owner));
    locks.is_clean();
}
