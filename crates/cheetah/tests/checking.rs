//! CHECK concurrent with writers. CHECK reads a snapshot, so it reports no fault, whatever other
//! transactions do meanwhile. CHECK and writers never wait for each other.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::reach;
use cheetah::testing::db::{Db, Expected, ExpectedEntry, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use support::*;

const ROWS: u64 = 600;

fn row(key: u64, letter: u8) -> Row {
    let mut name = format!("{:08x}", (key as u32).wrapping_mul(2_654_435_761)).into_bytes();
    name.push(letter);
    Row { number: key, name, text: vec![b'x'; if key % 50 == 7 { 2000 } else { 30 }] }
}

/// A table with a row at every third key.
fn filled() -> (Db, Arc<Table>) {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    (0..ROWS).for_each(|key| insert(&mut txn, &table, 3 * key, &row(3 * key, b'a')).unwrap());
    txn.commit().unwrap();
    (db, table)
}

/// Makes changes of each kind all over the table.
fn change_much(txn: &mut Transaction, table: &Arc<Table>) {
    for key in (0..ROWS).map(|key| 3 * key) {
        match key % 4 {
            0 => delete(txn, table, key, &row(key, b'a')).unwrap(),
            1 => update(txn, table, key, &row(key, b'a'), key, &row(key, b'b')).unwrap(),
            2 => update(txn, table, key, &row(key, b'a'), key + 1, &row(key + 1, b'b')).unwrap(),
            _ => {}
        }
        insert(txn, table, key + 2, &row(key + 2, b'n')).unwrap();
    }
}

/// Returns the number of faults that CHECK finds, and the number of rows. `meanwhile` runs when
/// CHECK reads its first row.
fn findings_beside(db: &Db, table: &Arc<Table>, meanwhile: impl FnOnce()) -> (usize, u64) {
    let mut meanwhile = Some(meanwhile);
    let report = db.check_table_with(table, &mut |_, stored, entries| {
        meanwhile.take().into_iter().for_each(|meanwhile| meanwhile());
        add_entries_of(stored, entries);
        Ok(())
    });
    let report = report.unwrap();
    (report.findings.len(), report.rows)
}

/// Runs CHECK with changes that are committed, rolled back, or stay open while CHECK reads, and
/// with changes that were open when CHECK began.
fn findings_beside_changes() -> Vec<(usize, u64)> {
    let of = |end: fn(&mut Transaction)| {
        let (db, table) = filled();
        let mut txn = db.begin();
        let found = findings_beside(&db, &table, || {
            change_much(&mut txn, &table);
            end(&mut txn);
            while db.run_background().unwrap() {}
        });
        txn.commit().unwrap();
        assert!(check(&db, &table).unwrap().is_ok());
        found
    };
    let before = || {
        let (db, table) = filled();
        let mut txn = db.begin();
        change_much(&mut txn, &table);
        findings_beside(&db, &table, || ())
    };
    vec![of(|txn| txn.commit().unwrap()), of(|txn| txn.rollback().unwrap()), of(|_| ()), before()]
}

#[test]
fn changes_of_others_meanwhile_are_neither_seen_nor_missed() {
    assert_eq!(findings_beside_changes(), [(0, ROWS); 4]);
}

/// Breaks I1 of `check/mod.rs`: CHECK must compare only data that one snapshot sees.
#[test]
fn bugs_of_what_check_reads_are_caught() {
    for name in [
        "check: read what is newest",
        "check: count what is newest",
        "tree: take what a split moves for damage",
    ] {
        let bug = plant(name);
        let found = findings_beside_changes();
        assert!(found.iter().any(|found| found.0 > 0), "'{name}' was not caught");
        assert!(bug.reached_count() > 0);
    }
}

#[test]
fn pages_that_split_and_merge_under_the_walk_are_looked_at_again() {
    let before = reach::count("check looks again");
    assert_eq!(findings_beside_changes(), [(0, ROWS); 4]);
    assert!(reach::count("check looks again") > before);
}

#[test]
fn it_waits_for_nobody_and_sees_its_own_changes() {
    let (db, table) = filled();
    let (mut writer, mut own) = (db.begin(), db.begin());
    change_much(&mut writer, &table);
    own.set_lock_wait(0);
    insert(&mut own, &table, 5000, &row(5000, b'o')).unwrap();
    let report = own.check_table(&table, &mut |_, stored, entries| {
        add_entries_of(stored, entries);
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.is_ok() && report.rows == ROWS + 1, "{report:?}");
    assert!(own.check_inner_pages(&table).unwrap().is_ok());
    writer.rollback().unwrap();
}

/// Runs a transaction with a few random changes and a random end.
fn change_some(db: &Db, table: &Arc<Table>, rng: &mut Rng) {
    let mut txn = db.begin();
    for _ in 0..rng.below(20) {
        let key = rng.below(3 * ROWS);
        let old = match get(&mut txn, table, key) {
            Ok(old) => old,
            Err(_) => break,
        };
        let letter = b'a' + rng.below(20) as u8;
        let done = match old {
            None => insert(&mut txn, table, key, &row(key, letter)),
            Some(old) if rng.below(2) == 0 => delete(&mut txn, table, key, &old),
            Some(old) => update(&mut txn, table, key, &old, key, &row(key, letter)),
        };
        if done.is_err() {
            break;
        }
    }
    match rng.below(3) {
        0 => txn.rollback().unwrap(),
        _ => txn.commit().unwrap(),
    }
}

/// Reads and locks the row of a key.
fn get(txn: &mut Transaction, table: &Arc<Table>, key: u64) -> cheetah::testing::base::Result<Option<Row>> {
    read_as(txn, table, key, cheetah::testing::db::Read::Exclusive)
}

#[test]
fn check_in_a_loop_beside_writers_of_all_kinds_finds_nothing() {
    const CHECKS: usize = 60;
    let (db, table) = filled();
    let (is_over, ended) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, table, is_over, ended) = (&db, &table, &is_over, &ended);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                while !is_over.load(Ordering::Relaxed) {
                    change_some(db, table, &mut rng);
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if !db.run_background().unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        let found = (0..CHECKS).map(|_| check(&db, &table)).find(|found| !matches!(found, Ok(Ok(_))));
        is_over.store(true, Ordering::Relaxed);
        assert!(found.is_none(), "{found:?}");
    });
    assert!(ended.into_inner() > 0 && check(&db, &table).unwrap().is_ok());
}

/// Payloads that an older build stored may repeat what keys state, and newer entries lack them.
#[test]
fn a_payload_that_repeats_its_key_may_be_missing() {
    let (db, table) = filled();
    let findings = |repeats: &dyn Fn(usize, &[u8]) -> bool| {
        let entries = &mut |_: &[u8], stored: &[u8], entries: &mut Vec<_>| {
            add_entries_of(stored, entries);
            entries.iter_mut().for_each(|entry: &mut ExpectedEntry| entry.payload.clear());
            Ok(())
        };
        let report = db.begin().check_table_expecting(&table, Expected { entries, repeats });
        report.unwrap().findings.len()
    };
    assert_eq!(findings(&|_, payload| !payload.is_empty()), 0);
    assert!(findings(&|_, _| false) > 0);
}
