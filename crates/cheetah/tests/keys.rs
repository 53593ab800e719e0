//! Disabled indexes and power cuts. At any moment, the table has all its rows, each index is
//! disabled or matches the rows, and disabled indexes can be enabled.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Error, Result};
use cheetah::testing::db::{Db, ExpectedEntry, Read, SeekMode, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{explore, Image, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use support::*;

/// The position of the non-unique index.
const NAME: usize = 1;
/// The position of the unique index.
const NUMBER: usize = 2;
const ROWS: u64 = 60;

fn row(no: u64) -> Row {
    Row::new(no, if no % 20 == 7 { 3000 } else { 40 })
}

fn entries_of(_: &[u8], stored: &[u8], entries: &mut Vec<ExpectedEntry>) -> Result<()> {
    let [name, number] = Row::parse(stored).0.keys();
    entries.push(ExpectedEntry { index_no: NAME, key: name, payload: b"p".to_vec() });
    entries.push(ExpectedEntry { index_no: NUMBER, key: number, payload: Vec::new() });
    Ok(())
}

/// A database with a table of some rows and no records to purge.
fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    (0..ROWS).for_each(|no| insert(&mut txn, &table, no, &row(no)).unwrap());
    txn.commit().unwrap();
    db.close().unwrap();
    disk
}

/// Makes the changes of step `step`: inserts some rows, renames some rows, and deletes some rows.
fn change(txn: &mut Transaction, table: &Arc<Table>, step: u64) {
    let at = step * 5;
    (0..8).for_each(|no| insert(txn, table, 1000 * step + no, &row(1000 * step + no)).unwrap());
    update(txn, table, at, &row(at), at, &row(100_000 + at)).unwrap();
    update(txn, table, at + 1, &row(at + 1), 50_000 + at, &row(at + 1)).unwrap();
    delete(txn, table, at + 2, &row(at + 2)).unwrap();
    txn.commit().unwrap();
}

/// The rows after `steps` steps.
fn rows(steps: u64) -> Rows {
    let mut rows: Rows = (0..ROWS).map(|no| (no, row(no))).collect();
    for step in 1..=steps {
        let at = step * 5;
        rows.extend((0..8).map(|no| (1000 * step + no, row(1000 * step + no))));
        rows.insert(at, row(100_000 + at));
        rows.remove(&(at + 1));
        rows.insert(50_000 + at, row(at + 1));
        rows.remove(&(at + 2));
    }
    rows
}

/// Loads rows like a dump, in the middle of other work. The old rows of a step are not purged yet
/// when the next step begins.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let table = db.table("t").unwrap();
    let mut txn = db.begin();
    change(&mut txn, &table, 1);
    disk.acknowledge(1);
    let table = txn.disable_indexes(&table, &[NAME, NUMBER]).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(2);
    change(&mut txn, &table, 2);
    db.checkpoint().unwrap();
    change(&mut txn, &table, 3);
    disk.acknowledge(3);
    let table = txn.enable_indexes(&table, &mut entries_of).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(4);
    change(&mut txn, &table, 4);
    disk.acknowledge(5);
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
}

/// The rows of the table, if CHECK finds no fault and the index by name has the same rows.
fn contents(db: &Db) -> std::result::Result<Rows, String> {
    let text = |error: Error| error.to_string();
    let table = db.table("t").map_err(text)?;
    let mut txn = db.begin();
    let rows = all_rows(&mut txn, &table).map_err(text)?;
    check(db, &table).map_err(text)?.map_err(|findings| format!("{findings:?}"))?;
    if table.is_disabled(NUMBER) {
        return Err("a unique index is disabled".into());
    }
    let cursor = txn.cursor(&table, NAME, Read::Consistent);
    if table.is_disabled(NAME) {
        return match cursor {
            Err(Error::Unsupported { .. }) => Ok(rows),
            other => Err(format!("a disabled index is read: {other:?}")),
        };
    }
    let mut cursor = cursor.map_err(text)?;
    let (mut entries, mut more) = (0, cursor.seek(SeekMode::First, b"").map_err(text)?);
    while more {
        entries += 1;
        more = cursor.next().map_err(text)?;
    }
    match entries == rows.len() {
        true => Ok(rows),
        false => Err(format!("{entries} entries for {} rows", rows.len())),
    }
}

fn judge(image: &SimDisk, acknowledged: u64) -> std::result::Result<(), String> {
    let text = |error: Error| error.to_string();
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    let found = contents(&db)?;
    let steps = match acknowledged {
        0 => 0..=1,
        1 => 1..=1,
        2 => 1..=3,
        3 => 3..=3,
        4 => 3..=4,
        _ => 4..=4,
    };
    if !steps.clone().any(|steps| found == rows(steps)) {
        return Err(format!("{} rows, not those after {steps:?} steps", found.len()));
    }
    let is_disabled = db.table("t").map_err(text)?.is_disabled(NAME);
    if is_disabled != (2..4).contains(&acknowledged) && acknowledged != 1 && acknowledged != 3 {
        return Err(format!("disabled: {is_disabled}, and {acknowledged} had been acknowledged"));
    }
    let mut txn = db.begin();
    let table = txn.enable_indexes(&db.table("t").map_err(text)?, &mut entries_of).map_err(text)?;
    insert(&mut txn, &table, 1 << 40, &row(1 << 40)).map_err(text)?;
    txn.commit().map_err(text)?;
    drop(table);
    while db.run_background().map_err(text)? {}
    if contents(&db)?.len() != found.len() + 1 {
        return Err("other rows after enabling".into());
    }
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees");
    match (dropped, db.pages_without_owner()) {
        (Some((_, 0)), 0) => Ok(()),
        left => Err(format!("leftover dropped trees and pages without owner: {left:?}")),
    }
}

fn explore_keys() -> std::result::Result<(), String> {
    let mut deeper_count = 0;
    let report = explore(&Plan::quick(3, 160), &start(), workload, |image: &Image| {
        if image.seed % 16 == 0 {
            let recover = |disk: &SimDisk| {
                disk.acknowledge(image.acknowledged);
                let Ok(db) = open(disk) else { return };
                while db.run_background().unwrap_or(false) {}
            };
            let judge = |image: &Image| judge(&image.disk.snapshot(), image.acknowledged);
            let deeper = explore(&Plan::quick(image.seed, 4), &image.disk, recover, judge);
            deeper_count += deeper.map_err(|failure| format!("in a recovery: {failure}"))?.images_count;
        }
        judge(&image.disk.snapshot(), image.acknowledged)
    });
    let report = report.map_err(|failure| failure.to_string())?;
    assert!(report.images_count > 60 && deeper_count > 10, "{report:?}, {deeper_count} in recoveries");
    Ok(())
}

#[test]
fn a_table_with_disabled_indexes_is_right_after_every_power_cut() {
    explore_keys().unwrap();
}

/// Plants a bug, which the exploration must detect.
fn caught(name: &'static str) {
    let bug = plant(name);
    let found =
        catch_unwind(AssertUnwindSafe(explore_keys)).unwrap_or_else(|_| Err("a contradiction".into()));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.expect_err("not caught"));
}

#[test]
fn indexes_that_are_enabled_before_they_are_built_are_caught() {
    caught("keys: enable them before they are built");
}

#[test]
fn indexes_that_are_enabled_before_they_are_durable_are_caught() {
    caught("keys: enable them before a checkpoint");
}

#[test]
fn enabling_that_ends_early_leaves_indexes_disabled() {
    let disk = start();
    let db = open(&disk).unwrap();
    let mut txn = db.begin();
    let table = txn.disable_indexes(&db.table("t").unwrap(), &[NAME]).unwrap();
    txn.commit().unwrap();
    change(&mut txn, &table, 1);
    let failed = txn.enable_indexes(&table, &mut |_, _, _| Err(Error::Interrupted));
    assert!(matches!(failed, Err(Error::Interrupted)));
    txn.rollback().unwrap();
    disk.inject(cheetah_io::sim::Fault::on(cheetah_io::sim::Op::Write).path("map-").forever());
    assert!(txn.enable_indexes(&table, &mut entries_of).is_err());
    txn.rollback().unwrap();
    disk.clear_faults();
    assert!(db.stopped().is_none() && db.table("t").unwrap().is_disabled(NAME));
    assert_eq!(contents(&db).unwrap(), rows(1));
    change(&mut txn, &table, 2);
    while db.run_background().unwrap() {}
    drop(table);
    txn.enable_indexes(&db.table("t").unwrap(), &mut entries_of).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&db).unwrap(), rows(2));
    assert!(reach::count("disabled indexes built") > 0);
}

#[test]
fn indexes_are_disabled_and_enabled_by_who_has_the_table_alone() {
    let db = open(&start()).unwrap();
    let table = db.table("t").unwrap();
    let (mut txn, mut other) = (db.begin(), db.begin());
    insert(&mut other, &table, 5000, &row(5000)).unwrap();
    txn.set_lock_wait(0);
    assert!(matches!(txn.disable_indexes(&table, &[NAME]), Err(Error::LockTimeout)));
    other.commit().unwrap();
    let table = txn.disable_indexes(&table, &[0, NAME, NUMBER]).unwrap();
    txn.commit().unwrap();
    assert_eq!([0, NAME, NUMBER].map(|no| table.is_disabled(no)), [false, true, false]);
    // Duplicates of unique keys are refused as before.
    assert!(matches!(
        insert(&mut txn, &table, 7000, &row(5000)),
        Err(Error::DuplicateKey { index_no: NUMBER, .. })
    ));
    txn.rollback().unwrap();
    assert!(Arc::ptr_eq(&txn.disable_indexes(&table, &[NAME]).unwrap(), &table), "nothing to change");
    txn.commit().unwrap();
    // An older snapshot cannot read the new index, which has only the newest rows.
    other.take_snapshot().unwrap();
    let table = txn.enable_indexes(&table, &mut entries_of).unwrap();
    txn.commit().unwrap();
    assert_eq!(other.count(&table).unwrap(), Some(ROWS + 1));
    assert!(matches!(other.cursor(&table, NAME, Read::Consistent), Err(Error::TableChanged(_))));
    assert!(other.cursor(&table, NUMBER, Read::Consistent).is_ok());
    other.commit().unwrap();
    assert!(other.cursor(&table, NAME, Read::Consistent).is_ok());
    assert_eq!(contents(&db).unwrap().len() as u64, ROWS + 1);
}

/// Checks that the indexes of the table are left unchanged, without a wait. The error names the
/// rows that were overlooked.
fn left_alone(db: &Db, rows: &'static str) -> std::result::Result<(), &'static str> {
    let (table, mut txn) = (db.table("t").unwrap(), db.begin());
    txn.set_lock_wait(0);
    let outcome = txn.disable_indexes_if_empty(&table, &[NAME]);
    txn.rollback().unwrap();
    let untouched = matches!(outcome, Ok(None)) && !db.table("t").unwrap().is_disabled(NAME);
    untouched.then_some(()).ok_or(rows)
}

/// Tests tables whose rows are committed, uncommitted, deleted by an open transaction, or deleted
/// but still visible to a snapshot.
fn only_empty_tables_lose_their_indexes() -> std::result::Result<(), &'static str> {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 1, &row(1)).unwrap();
    left_alone(&db, "an uncommitted row")?;
    txn.commit().unwrap();
    left_alone(&db, "a committed row")?;
    let mut old = db.begin();
    old.take_snapshot().unwrap();
    delete(&mut txn, &table, 1, &row(1)).unwrap();
    left_alone(&db, "a row whose delete may be rolled back")?;
    txn.commit().unwrap();
    while db.run_background().unwrap() {}
    left_alone(&db, "a row of an older snapshot")?;
    assert_eq!(old.count(&table).unwrap(), Some(1));
    old.commit().unwrap();
    while db.run_background().unwrap() {}
    let disabled = txn.disable_indexes_if_empty(&table, &[NAME]).unwrap();
    assert!(disabled.expect("no snapshot sees rows").is_disabled(NAME));
    txn.commit().unwrap();
    Ok(())
}

#[test]
fn indexes_of_a_table_with_rows_for_anybody_are_left_alone() {
    only_empty_tables_lose_their_indexes().unwrap();
}

#[test]
fn indexes_that_are_disabled_because_no_row_counts_are_caught() {
    let name = "keys: count the rows to see whether there are any";
    let bug = plant(name);
    let found = only_empty_tables_lose_their_indexes().expect_err("not caught");
    assert!(bug.reached_count() > 0);
    println!("'{name}' was caught: {found}");
}
