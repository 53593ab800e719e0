//! Locking scans that pass deleted records: nobody puts a row back there, and no wait for what a
//! scan has passed goes unseen.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise, in its helpers too")]

mod support;

use cheetah::base::planted::plant;
use cheetah::base::{Error, Result};
use cheetah::db::{Db, Isolation, Read, SeekEnd, SeekMode, Transaction};
use cheetah::table::Table;
use cheetah_io::sim::SimDisk;
use std::sync::Arc;
use support::*;

fn row(number: u64) -> Row {
    Row { number, name: b"name".to_vec(), text: Vec::new() }
}

/// A table of rows of which those in `gone` are marked as deleted, as long as the transaction is
/// open.
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

/// Most rows of a table are deleted under an old snapshot, and a scan from either end of an index
/// passes them. Whether others can put each of some of these back while the scan's transaction is
/// open: by index, forward and backward.
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
        // The rows that were not met are free.
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

#[test]
fn a_scan_that_leaves_out_what_it_passes_is_caught() {
    let bug = plant("scan: leave the records that it passes out");
    assert!(inserts_into_what_is_passed(Isolation::RepeatableRead).iter().any(|done| *done));
    assert!(bug.reached_count() > 0);
}

fn waits_count(db: &Db) -> u64 {
    db.status().iter().find(|entry| entry.0 == "lock_waits_current").unwrap().1
}

/// An insert waits for a gap, and holds a row. A scan passes deleted records around the place of
/// the insert and waits for that row. Then the gap is given back, and the insert
/// meets the scan's request for what it has passed, which is queued: a deadlock. Returns the
/// results of the insert and of the scan.
fn insert_among_what_a_waiting_scan_passes(bug: Option<&'static str>) -> (Result<()>, Result<bool>) {
    let (db, table, _old) = with_deleted(&[10, 20, 30, 40, 50], &[20, 30, 40]);
    let [mut keeper, mut writer, mut scanner] = [db.begin(), db.begin(), db.begin()];
    for txn in [&mut writer, &mut scanner] {
        txn.set_lock_wait(500_000_000);
    }
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

#[test]
fn a_scan_that_locks_what_it_passes_while_it_waits_is_caught() {
    let bug = Some("scan: lock what it passed while it waits");
    let (inserted, _) = insert_among_what_a_waiting_scan_passes(bug);
    assert!(matches!(inserted, Err(Error::LockTimeout)), "a deadlock that nobody sees: {inserted:?}");
}
