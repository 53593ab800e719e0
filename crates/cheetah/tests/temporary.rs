//! Temporary tables. Their changes are not logged, and commits do not wait for them. Their changes
//! are rolled back to savepoints and with the transaction. No temporary table exists after a power
//! cut (Y1 to Y5 of docs/developers/durability.md).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Config, Error, Xid};
use cheetah::testing::db::{Db, Read, Transaction};
use cheetah::testing::table::{Table, TableSpec};
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use support::*;

const NAME: &str = "#tmp/x";

fn create(db: &Db) -> Arc<Table> {
    db.create_table(&TableSpec { is_temporary: true, ..spec(NAME) }).unwrap()
}

fn row(key: u64) -> Row {
    Row::new(key, if key % 4 == 3 { 6000 } else { 40 })
}

fn rows(keys: &[u64]) -> Rows {
    keys.iter().map(|key| (*key, row(*key))).collect()
}

fn put(txn: &mut Transaction, table: &Arc<Table>, keys: &[u64]) {
    keys.iter().for_each(|key| insert(txn, table, *key, &row(*key)).unwrap());
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|(found, _)| *found == name).unwrap().1
}

fn log_of(db: &Db) -> [u64; 2] {
    ["log_records", "log_syncs"].map(|name| status(db, name))
}

/// A database with table `t`, which has row 1.
fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    put(&mut txn, &table, &[1]);
    txn.commit().unwrap();
    db.close().unwrap();
    disk
}

/// All operations on a temporary table, in and between transactions.
fn live(db: &Db) {
    let table = create(db);
    let mut txn = db.begin();
    put(&mut txn, &table, &[1, 2, 3, 7]);
    txn.commit().unwrap();
    update(&mut txn, &table, 3, &row(3), 3, &Row::new(3, 7000)).unwrap();
    delete(&mut txn, &table, 1, &row(1)).unwrap();
    let savepoint = txn.savepoint();
    put(&mut txn, &table, &[1, 4, 11]);
    assert!(matches!(insert(&mut txn, &table, 2, &row(9)), Err(Error::DuplicateKey { .. })));
    txn.rollback_to(savepoint).unwrap();
    txn.commit().unwrap();
    assert_eq!(all_rows(&mut txn, &table).unwrap().keys().copied().collect::<Vec<_>>(), [2, 3, 7]);
    txn.rollback().unwrap();
    put(&mut txn, &table, &[5]);
    txn.rollback().unwrap();
    assert_eq!(all_rows(&mut txn, &table).unwrap().len(), 3);
    txn.rollback().unwrap();
    db.set_auto_increment(&table, 77).unwrap();
    drop(table);
    let table = db.truncate_table(NAME).unwrap();
    put(&mut txn, &table, &[2, 3]);
    txn.commit().unwrap();
    db.rename_table(NAME, "#tmp/y").unwrap();
    assert!(check(db, &table).unwrap().is_ok());
    db.drop_table("#tmp/y").unwrap();
}

fn live_unlogged() {
    let db = open(&start()).unwrap();
    let before = log_of(&db);
    live(&db);
    assert_eq!(log_of(&db), before);
    while db.run_background().unwrap() {}
    assert_eq!(
        ["dropped_trees", "transactions_listed", "transactions_to_purge"].map(|name| status(&db, name)),
        [0; 3]
    );
    assert_eq!(db.pages_without_owner(), 0);
}

#[test]
fn nothing_of_them_is_logged_or_synced() {
    live_unlogged();
}

/// In one transaction, changes of both kinds of tables are rolled back together and committed
/// together.
fn mix() {
    let db = open(&start()).unwrap();
    let (t, x) = (db.table("t").unwrap(), create(&db));
    let mut txn = db.begin();
    let found = |txn: &mut Transaction| [&t, &x].map(|table| all_rows(txn, table).unwrap());
    put(&mut txn, &x, &[2]);
    put(&mut txn, &t, &[2]);
    let savepoint = txn.savepoint();
    put(&mut txn, &t, &[3, 4]);
    put(&mut txn, &x, &[3, 4, 5]);
    assert_eq!(found(&mut txn), [rows(&[1, 2, 3, 4]), rows(&[2, 3, 4, 5])]);
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(found(&mut txn), [rows(&[1, 2]), rows(&[2])]);
    txn.commit().unwrap();
    put(&mut txn, &x, &[6]);
    put(&mut txn, &t, &[6]);
    txn.rollback().unwrap();
    assert_eq!(found(&mut txn), [rows(&[1, 2]), rows(&[2])]);
    txn.rollback().unwrap();

    let xid = Xid::new(1, b"x", b"").unwrap();
    put(&mut txn, &x, &[7]);
    put(&mut txn, &t, &[7]);
    txn.prepare(xid).unwrap();
    txn.commit_ordered();
    txn.commit().unwrap();
    assert_eq!(found(&mut txn), [rows(&[1, 2, 7]), rows(&[2, 7])]);
    txn.rollback().unwrap();
    put(&mut txn, &x, &[8]);
    put(&mut txn, &t, &[8]);
    txn.prepare(xid).unwrap();
    drop(txn);
    db.wait_for_prepared(NAME, 0, &|| false).unwrap();
    db.commit_prepared(&xid).unwrap();
    assert_eq!(found(&mut db.begin()), [rows(&[1, 2, 7, 8]), rows(&[2, 7])]);
    assert_eq!(status(&db, "transactions_listed"), 0);
}

#[test]
fn both_kinds_go_back_and_end_together() {
    mix();
}

#[test]
fn others_wait_for_their_rows_and_the_owner_does_not() {
    let db = open(&start()).unwrap();
    let x = create(&db);
    let (mut txn, mut other) = (db.begin(), db.begin());
    put(&mut txn, &x, &[2]);
    other.set_lock_wait(0);
    assert!(matches!(insert(&mut other, &x, 2, &row(2)), Err(Error::LockTimeout)));
    assert_eq!(read_as(&mut txn, &x, 2, Read::Shared).unwrap(), Some(row(2)));
    update(&mut txn, &x, 2, &row(2), 2, &row(5)).unwrap();
    txn.commit().unwrap();
    other.rollback().unwrap();
    assert_eq!(read(&mut other, &x, 2).unwrap(), Some(row(5)));
}

/// The number of trees left for the background after a temporary table with `keys` was dropped,
/// with or without an open handle.
fn left_behind(keys: &[u64], has_handle: bool) -> u64 {
    let db = open(&SimDisk::new()).unwrap();
    let table = create(&db);
    let mut txn = db.begin();
    put(&mut txn, &table, keys);
    txn.commit().unwrap();
    let handle = has_handle.then(|| Arc::clone(&table));
    drop((txn, table));
    db.drop_table(NAME).unwrap();
    let left = status(&db, "dropped_trees");
    drop(handle);
    while db.run_background().unwrap() {}
    assert_eq!(status(&db, "dropped_trees"), 0);
    left
}

#[test]
fn a_small_one_gives_its_pages_back_as_it_goes_and_others_in_the_background() {
    assert_eq!(left_behind(&[1, 2], false), 0);
    assert_eq!(left_behind(&[1, 2], true), 3);
    assert_eq!(left_behind(&(0..40).collect::<Vec<_>>(), false), 3);
}

/// Changes both kinds of tables, with checkpoints in the middle of transactions. Each commit is
/// acknowledged.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let (t, x) = (db.table("t").unwrap(), create(&db));
    let mut txn = db.begin();
    put(&mut txn, &x, &[2, 3]);
    txn.commit().unwrap();
    for key in 2..8 {
        put(&mut txn, &x, &[key * 10, key * 10 + 3]);
        put(&mut txn, &t, &[key]);
        let savepoint = txn.savepoint();
        put(&mut txn, &t, &[key + 100]);
        put(&mut txn, &x, &[key + 100]);
        if key % 2 == 0 {
            db.checkpoint().unwrap();
        }
        txn.rollback_to(savepoint).unwrap();
        delete(&mut txn, &x, key * 10, &row(key * 10)).unwrap();
        txn.commit().unwrap();
        disk.acknowledge(key);
    }
    put(&mut txn, &x, &[1000, 1003]);
    db.checkpoint().unwrap();
    std::mem::forget(txn);
}

fn judge(image: &SimDisk, acknowledged: u64) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let db = Db::open_early(env(image), Config::tiny());
    let db = db.map_err(|error| format!("the database does not open: {error}"))?;
    if db.table_names() != ["t"] {
        return Err(format!("leftover tables: {:?}", db.table_names()));
    }
    // Changes that a startup must roll back must not touch new temporary tables.
    let x = create(&db);
    let mut txn = db.begin();
    put(&mut txn, &x, &[2, 3, 1000]);
    txn.commit().map_err(text)?;
    while db.run_background().map_err(text)? {}
    if all_rows(&mut txn, &x).map_err(text)? != rows(&[2, 3, 1000]) {
        return Err("rows of a temporary table are missing".into());
    }
    txn.rollback().map_err(text)?;
    let found = all_rows(&mut txn, &db.table("t").map_err(text)?).map_err(text)?;
    txn.rollback().map_err(text)?;
    let keys = found.keys().copied().collect::<Vec<_>>();
    let last = keys.last().copied().unwrap_or(0);
    if keys != (1..=last).collect::<Vec<_>>()
        || !(acknowledged.max(1)..=acknowledged.max(1) + 1).contains(&last)
    {
        return Err(format!("rows {keys:?}, and {acknowledged} was acknowledged"));
    }
    drop(x);
    db.drop_table(NAME).map_err(text)?;
    while db.run_background().map_err(text)? {}
    let left =
        ["dropped_trees", "transactions_listed", "transactions_to_purge"].map(|name| status(&db, name));
    match (left, db.pages_without_owner()) {
        ([0, 0, 0], 0) => Ok(()),
        left => Err(format!("leftover trees, transactions or pages: {left:?}")),
    }
}

fn explore_power_cuts() -> Result<(), String> {
    let report = explore(&Plan::quick(1, 160), &start(), workload, |image: &Image| {
        judge(&image.disk.snapshot(), image.acknowledged)
    });
    report
        .map(|report| assert!(report.images_count > 60, "{report:?}"))
        .map_err(|failure| failure.to_string())
}

#[test]
fn after_every_power_cut_nothing_is_left_of_them() {
    explore_power_cuts().unwrap();
}

#[test]
fn a_database_that_is_closed_with_some_opens_without_them() {
    let disk = start();
    let db = open(&disk).unwrap();
    put(&mut db.begin(), &create(&db), &[1]);
    db.close().unwrap();
    drop(db);
    judge(&disk.crash(CrashPolicy::SyncedOnly, 1), 0).unwrap();
}

fn caught(name: &'static str, test: fn()) {
    let bug = plant(name);
    let found = catch_unwind(AssertUnwindSafe(test));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    assert!(found.is_err(), "'{name}' was not caught");
}

fn explored() {
    explore_power_cuts().unwrap();
}

/// Breaks Y3: an epoch must list the trees of temporary tables as dropped.
#[test]
fn trees_that_an_epoch_forgets_are_caught() {
    caught("temporary: forget their trees", explored);
}

/// Breaks Y1: IDs must not be assigned again while an epoch has them.
#[test]
fn numbers_that_an_epoch_forgets_are_caught() {
    caught("temporary: forget their numbers", explored);
}

/// Breaks Y2: definitions must be in memory only.
#[test]
fn definitions_that_are_written_are_caught() {
    caught("temporary: write their definitions", explored);
}

/// Breaks Y1: the log must name no temporary table.
#[test]
fn changes_that_are_logged_are_caught() {
    caught("temporary: log their rows", explored);
}

/// Breaks Y5: both parts of a transaction must roll back to a savepoint together.
#[test]
fn rows_that_stay_behind_a_savepoint_are_caught() {
    caught("temporary: come back to no savepoint", mix);
}
