//! Locking scans that skip deleted records. No transaction can reinsert a row there, and deadlock
//! detection overlooks no wait for a skipped record.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Error, Result};
use cheetah::testing::db::{Db, Isolation, Read, SeekEnd, SeekMode, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::SimDisk;
use std::sync::Arc;
use support::*;

fn row(number: u64) -> Row {
    Row { number, name: b"name".to_vec(), text: Vec::new() }
}

/// A table with rows. The rows in `gone` are deleted, but the snapshot of the returned transaction
/// keeps their delete-marked records from purge.
fn with_deleted(rows: &[u64], gone: &[u64]) -> (Db, Arc<Table>, Transaction) {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let (mut txn, mut old) = (db.begin(), db.begin());
    rows.iter().for_each(|key| insert(&mut txn, &table, *key, &row(*key)).unwrap());
    txn.commit().unwrap();
    assert_eq!(all_rows(&mut old, &table).unwrap().len(), rows.len());
    gone.iter().for_each(|key| delete(&mut txn, &table, *key, &row(*key)).unwrap());
    txn.commit().unwrap();
    while db.run_background().unwrap() {}
    (db, table, old)
}

/// Most rows of a table are deleted while an old snapshot is open. A scan from either end of an
/// index skips them. Returns whether other transactions can reinsert some of these rows while the
/// scan's transaction is open, for each index, forward and backward.
fn inserts_into_what_is_passed(isolation: Isolation) -> Vec<bool> {
    const ROWS: u64 = 300;
    let mut done = Vec::new();
    for (index_no, forward) in [(0, true), (0, false), (2, true), (2, false)] {
        let (gone, left) = if forward { (0..ROWS - 10, ROWS - 10) } else { (10..ROWS, 9) };
        let (rows, marked) = ((0..ROWS).collect::<Vec<_>>(), gone.clone().collect::<Vec<_>>());
        let (db, table, _old) = with_deleted(&rows, &marked);
        let (mut reader, mut other) = (db.begin(), db.begin());
        reader.set_isolation(isolation);
        let mut cursor = reader.cursor(&table, index_no, Read::Exclusive).unwrap();
        assert!(cursor.seek(if forward { SeekMode::First } else { SeekMode::Last }, b"").unwrap());
        assert_eq!(cursor.clustered_key(), left.to_be_bytes());
        other.set_lock_wait(0);
        let steps = gone.step_by(37);
        let inserts = steps.map(|key| match insert(&mut other, &table, key, &row(key)) {
            Ok(()) => true,
            Err(Error::LockTimeout) => false,
            Err(error) => panic!("{error}"),
        });
        done.extend(inserts.collect::<Vec<_>>());
        // The rows that the scan did not reach are not locked.
        let key = if forward { ROWS - 1 } else { 0 };
        delete(&mut other, &table, key, &row(key)).unwrap();
    }
    done
}

#[test]
fn nobody_puts_rows_back_among_deleted_ones_that_a_scan_has_passed() {
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        assert!(inserts_into_what_is_passed(isolation).iter().all(|done| !done));
    }
    assert!(inserts_into_what_is_passed(Isolation::ReadCommitted).iter().all(|done| *done));
}

/// Breaks I5 of `db/reading/locking_scan.rs`: no other transaction may reinsert a row among the
/// records that a scan skipped.
#[test]
fn a_scan_that_leaves_out_what_it_passes_is_caught() {
    let bug = plant("scan: leave the records that it passes out");
    assert!(inserts_into_what_is_passed(Isolation::RepeatableRead).iter().any(|done| *done));
    assert!(bug.reached_count() > 0);
}

fn waits_count(db: &Db) -> u64 {
    db.status().iter().find(|entry| entry.0 == "lock_waits_current").unwrap().1
}

/// An insert waits for a gap, and its transaction holds a row lock. A scan skips deleted records
/// around the insert position and waits for that row. Then the gap is released, and the insert
/// finds the scan's queued request for the skipped records: a deadlock. Returns the results of the
/// insert and of the scan. With a `bug` of the scan, both wait for only half a second.
fn insert_among_what_a_waiting_scan_passes(bug: Option<&'static str>) -> (Result<()>, Result<bool>) {
    let (db, table, _old) = with_deleted(&[10, 20, 30, 40, 50], &[20, 30, 40]);
    let [mut keeper, mut writer, mut scanner] = [db.begin(), db.begin(), db.begin()];
    let wait_ns = if bug.is_some() { 500_000_000 } else { 60_000_000_000 };
    [&mut writer, &mut scanner].into_iter().for_each(|txn| txn.set_lock_wait(wait_ns));
    let key = |key: u64| key.to_be_bytes();
    let mut stored = Vec::new();
    assert!(!keeper.get(&table, &key(25), Read::Exclusive, &mut stored).unwrap());
    assert!(writer.get(&table, &key(50), Read::Exclusive, &mut stored).unwrap());
    std::thread::scope(|scope| {
        let inserted = scope.spawn(|| {
            let inserted = insert(&mut writer, &table, 25, &row(25));
            writer.commit().unwrap();
            inserted
        });
        until("the insert waits", || waits_count(&db) == 1);
        let stopped = scope.spawn(|| {
            let _planted = bug.map(plant);
            let mut cursor = scanner.cursor(&table, 0, Read::Exclusive)?;
            cursor.seek_to(SeekMode::AtLeast, &key(15), SeekEnd::None)
        });
        until("the scan waits", || waits_count(&db) == 2);
        keeper.commit().unwrap();
        (inserted.join().unwrap(), stopped.join().unwrap())
    })
}

#[test]
fn a_deadlock_with_a_scan_that_has_passed_deleted_records_is_seen() {
    let (inserted, stopped) = insert_among_what_a_waiting_scan_passes(None);
    inserted.unwrap();
    assert!(matches!(stopped, Err(Error::Deadlock)), "{stopped:?}");
}

/// Breaks I6 of `db/reading/locking_scan.rs`: a scan whose request is queued must make no further
/// request. Otherwise a deadlock may go undetected.
#[test]
fn a_scan_that_locks_what_it_passes_while_it_waits_is_caught() {
    let bug = Some("scan: lock what it passed while it waits");
    let (inserted, _) = insert_among_what_a_waiting_scan_passes(bug);
    assert!(matches!(inserted, Err(Error::LockTimeout)), "an undetected deadlock: {inserted:?}");
}

/// Locks the position of a key exclusively. No row with the key may exist.
fn lock_place(txn: &mut Transaction, table: &Arc<Table>, key: u64) {
    let deleted = delete(txn, table, key, &row(key));
    assert!(matches!(deleted, Err(Error::RowNotFound)), "{deleted:?}");
}

fn waits<T: std::fmt::Debug>(result: Result<T>) -> bool {
    match result {
        Ok(_) | Err(Error::RowNotFound) => false,
        Err(Error::LockTimeout) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_place_of_a_deleted_record_stays_with_whoever_has_locked_it_before_the_scan() {
    let (db, table, _old) = with_deleted(&[10, 20, 30, 40, 50], &[20, 30, 40]);
    let (mut scanner, mut other) = (db.begin(), db.begin());
    [&mut scanner, &mut other].into_iter().for_each(|txn| txn.set_lock_wait(0));
    lock_place(&mut other, &table, 30);
    let mut cursor = scanner.cursor(&table, 0, Read::Exclusive).unwrap();
    assert!(cursor.seek(SeekMode::AtLeast, &15u64.to_be_bytes()).unwrap());
    assert_eq!(cursor.clustered_key(), 50u64.to_be_bytes());
    drop(cursor);
    assert!(waits(insert(&mut other, &table, 30, &row(30))), "the scan has locked the range");
    assert!(
        waits(insert(&mut scanner, &table, 30, &row(30))),
        "the other transaction has locked the position"
    );
    other.commit().unwrap();
    insert(&mut scanner, &table, 30, &row(30)).unwrap();
}

#[test]
fn places_behind_the_last_deleted_record_are_free_and_nobody_puts_rows_there() {
    let rows = (1..=10).map(|key| 10 * key).collect::<Vec<_>>();
    for (gone, mode, beyond) in [([80, 90, 100], SeekMode::First, 999), ([10, 20, 30], SeekMode::Last, 5)] {
        let (db, table, _old) = with_deleted(&rows, &gone);
        let (mut scanner, mut other) = (db.begin(), db.begin());
        other.set_lock_wait(0);
        let mut cursor = scanner.cursor(&table, 0, Read::Exclusive).unwrap();
        let mut found = cursor.seek(mode, b"").unwrap();
        while found {
            found = if mode == SeekMode::First { cursor.next() } else { cursor.prev() }.unwrap();
        }
        assert!(waits(delete(&mut other, &table, gone[1], &row(gone[1]))), "{mode:?}");
        assert!(!waits(delete(&mut other, &table, beyond, &row(beyond))), "{mode:?}");
        assert!(waits(insert(&mut other, &table, beyond, &row(beyond))), "{mode:?}");
    }
}

#[test]
fn a_scan_over_rows_and_deleted_records_by_turns_takes_the_memory_of_one_range() {
    let (rows, gone) = ((0..3000).collect::<Vec<_>>(), (0..3000).step_by(2).collect::<Vec<_>>());
    let (db, table, _old) = with_deleted(&rows, &gone);
    let mut scanner = db.begin();
    let mut cursor = scanner.cursor(&table, 0, Read::Exclusive).unwrap();
    let mut found = cursor.seek(SeekMode::First, b"").unwrap();
    let mut count = 0;
    while found {
        count += 1;
        found = cursor.next().unwrap();
    }
    let used = db.status().iter().find(|(name, _)| *name == "memory_locks_bytes").unwrap().1;
    assert!(count == 1500 && used < 2_000, "{count} rows took {used} bytes");
}
