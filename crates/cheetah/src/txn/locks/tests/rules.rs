//! Tests lock modes, locks that are already held, and early release.

use super::*;
use TableMode::{AutoInc, Exclusive, IntentExclusive, IntentShared, Shared};

#[test]
fn table_modes_get_on_with_each_other_as_in_innodb() {
    let modes = [IntentShared, IntentExclusive, Shared, Exclusive, AutoInc];
    let compatible = ["+++-+", "++--+", "+-+--", "-----", "++---"];
    for (held, row) in modes.into_iter().zip(compatible) {
        for (wanted, sign) in modes.into_iter().zip(row.chars()) {
            let locks = LockTable::default();
            locks.grants(A, table(held));
            match sign {
                '+' => locks.grants(B, table(wanted)),
                _ => locks.refuses(B, table(wanted)),
            }
        }
    }
}

#[test]
fn a_stronger_table_lock_gives_the_weaker_ones() {
    let modes = [IntentShared, IntentExclusive, Shared, Exclusive, AutoInc];
    let gives = ["+----", "++---", "+-+--", "+++++", "----+"];
    for (held, row) in modes.into_iter().zip(gives) {
        for (wanted, sign) in modes.into_iter().zip(row.chars()) {
            let locks = LockTable::default();
            locks.grants(A, table(held));
            match sign {
                '+' => locks.has(A, table(wanted)),
                _ => locks.grants(A, table(wanted)),
            }
        }
    }
}

#[test]
fn an_owner_with_two_modes_keeps_off_what_either_keeps_off() {
    let locks = LockTable::default();
    locks.grants(A, table(IntentExclusive));
    locks.grants(A, table(Shared));
    locks.refuses(B, table(Shared));
    locks.refuses(B, table(IntentExclusive));
    locks.grants(B, table(IntentShared));
    locks.refuses(A, table(Exclusive));
    locks.release_all(B);
    locks.grants(A, table(Exclusive));
}

#[test]
fn a_released_auto_inc_lock_leaves_the_other_modes() {
    let locks = LockTable::default();
    locks.grants(A, table(IntentExclusive));
    locks.grants(A, table(AutoInc));
    let waiting = locks.waits(B, table(AutoInc));
    locks.release_table(A, T, AutoInc);
    assert!(waiting.is_granted());
    locks.has(A, table(IntentExclusive));
    locks.release_table(A, T, IntentExclusive);
    locks.release_all(A);
    locks.release_all(B);
    locks.is_clean();
}

#[test]
fn readers_share_a_record_and_a_writer_has_it_alone() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    locks.grants(B, record(b"k", S));
    locks.refuses(C, record(b"k", X));
    locks.refuses(A, record(b"k", X));
    locks.release_all(B);
    locks.grants(A, record(b"k", X));
    locks.has(A, record(b"k", S));
    locks.refuses(B, record(b"k", S));
    locks.grants(B, record(b"l", X));
    locks.grants(B, Lock::Record { tree: TreeId(17), key: b"k", mode: X });
}

#[test]
fn only_the_last_request_for_a_row_is_rolled_back() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", X));
    assert!(locks.unlock_row(A, I, b"k", X));
    locks.grants(B, record(b"k", X));
    locks.has(B, record(b"k", X));
    assert!(!locks.unlock_row(B, I, b"k", X), "an earlier request keeps the lock");
    locks.refuses(A, record(b"k", S));
    assert!(locks.unlock_row(B, I, b"k", X));
    assert!(!locks.unlock_row(B, I, b"k", X), "B no longer holds the lock");
    locks.is_clean();
}

#[test]
fn an_unlocked_upgrade_leaves_the_shared_lock() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    locks.grants(A, record(b"k", X));
    let (reader, writer) = (locks.waits(B, record(b"k", S)), locks.waits(C, record(b"k", X)));
    assert!(locks.unlock_row(A, I, b"k", X));
    assert!(reader.is_granted() && !writer.is_granted());
    locks.has(A, record(b"k", S));
}

#[test]
fn a_row_that_was_locked_more_often_than_can_be_counted_stays_locked() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", S));
    (0..300).for_each(|_| locks.has(A, record(b"k", S)));
    assert!((0..400).all(|_| !locks.unlock_row(A, I, b"k", S)));
    locks.refuses(B, record(b"k", X));
}

#[test]
fn a_row_in_a_range_is_not_unlocked() {
    let locks = LockTable::default();
    locks.grants(A, next_key(b"a", b"k", X));
    locks.has(A, record(b"k", X));
    assert!(!locks.unlock_row(A, I, b"k", X));
    locks.refuses(B, record(b"k", S));
}

#[test]
fn the_lock_of_a_changed_row_goes_unless_somebody_waits() {
    let locks = LockTable::default();
    locks.grants(A, record(b"k", X));
    locks.forget_changed(A, I, b"k");
    locks.is_clean();
    locks.grants(A, record(b"k", X));
    let waiting = locks.waits(B, record(b"k", X));
    locks.forget_changed(A, I, b"k");
    assert!(!waiting.is_granted());
    locks.release_all(A);
    assert!(waiting.is_granted());
}

#[test]
fn who_waits_for_a_row_goes_on_when_its_insertion_is_rolled_back() {
    let locks = LockTable::default();
    assert!(locks.convert_implicit(A, I, b"k", || true).unwrap());
    let waiting = locks.waits(B, record(b"k", X));
    locks.release_row(A, I, b"k");
    locks.release_row(A, I, b"k");
    assert!(waiting.is_granted());
    locks.release_all(B);
    locks.is_clean();
}

#[test]
fn keys_of_any_length_are_told_apart() {
    let locks = LockTable::default();
    let keys = [vec![], vec![0], vec![0, 0], vec![7; 22], vec![7; 23], vec![7; 3000]];
    keys.iter().for_each(|key| locks.grants(A, record(key, X)));
    keys.iter().for_each(|key| locks.refuses(B, record(key, S)));
    locks.release_all(A);
    locks.is_clean();
}

#[test]
fn hashes_of_neighbouring_keys_differ_in_all_bits_that_matter() {
    let hashes =
        (0..200_000u64).map(|n| crate::base::hash::hash_key(I.0, &n.to_be_bytes())).collect::<Vec<_>>();
    let distinct = hashes.iter().collect::<std::collections::HashSet<_>>();
    assert_eq!(distinct.len(), hashes.len());
    for bits in [0, 8, 32, 40, 56] {
        let mut counts = [0usize; 256];
        hashes.iter().for_each(|hash| counts[(hash >> bits) as usize & 255] += 1);
        assert!(counts.iter().all(|count| (500..1100).contains(count)), "bits from {bits}: {counts:?}");
    }
}
