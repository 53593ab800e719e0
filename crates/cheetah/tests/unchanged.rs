//! A transaction without any remaining change does not wait for the log at its end. A transaction
//! with a change waits for the log (I6 of `db/transaction/handle.rs`).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Error, Xid};
use cheetah::testing::db::{Db, LockMode, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{CrashPolicy, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use support::*;

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|(found, _)| *found == name).unwrap().1
}

/// The numbers of records, syncs and commits of the log so far.
fn log_of(db: &Db) -> [u64; 3] {
    ["log_records", "log_syncs", "commits"].map(|name| status(db, name))
}

fn row(key: u64) -> Row {
    Row::new(key, 40)
}

/// A database with table `t`, which has row 1.
fn start(disk: &SimDisk) -> (Db, Arc<Table>) {
    let db = open(disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 1, &row(1)).unwrap();
    txn.commit().unwrap();
    (db, table)
}

type Statement = fn(&mut Transaction, &Arc<Table>);

/// Statements that change nothing, and log nothing.
const UNCHANGING: &[(&str, Statement)] = &[
    ("a read", |txn, table| drop(all_rows(txn, table).unwrap())),
    ("a refused duplicate", refused_insert),
    ("a duplicate in another index", |txn, table| {
        assert!(matches!(insert(txn, table, 2, &row(1)), Err(Error::DuplicateKey { .. })));
    }),
    ("a row that does not exist", |txn, table| {
        assert!(matches!(delete(txn, table, 5, &row(5)), Err(Error::RowNotFound)));
    }),
    ("a rollback to a savepoint", |txn, _| {
        let savepoint = txn.savepoint();
        txn.rollback_to(savepoint).unwrap();
    }),
    ("a locked table", |txn, table| txn.lock_table(table, LockMode::Exclusive).unwrap()),
];

fn refused_insert(txn: &mut Transaction, table: &Arc<Table>) {
    assert!(matches!(insert(txn, table, 1, &row(9)), Err(Error::DuplicateKey { .. })));
}

/// Inserts a row and rolls back to the savepoint before it.
fn insert_and_take_back(txn: &mut Transaction, table: &Arc<Table>) {
    let savepoint = txn.savepoint();
    insert(txn, table, 2, &Row::new(2, 6000)).unwrap();
    txn.rollback_to(savepoint).unwrap();
}

#[test]
fn what_changes_nothing_logs_and_syncs_nothing() {
    let disk = SimDisk::new();
    let (db, table) = start(&disk);
    for (name, statement) in UNCHANGING {
        for prepares in [false, true] {
            let mut txn = db.begin();
            let before = log_of(&db);
            statement(&mut txn, &table);
            if prepares {
                txn.prepare(Xid::new(1, b"x", b"").unwrap()).unwrap();
                assert!(!txn.is_prepared(), "{name}");
                txn.commit_ordered();
            }
            txn.commit().unwrap();
            assert_eq!(log_of(&db), before, "{name}, prepared: {prepares}");
            statement(&mut txn, &table);
            txn.rollback().unwrap();
            assert_eq!(log_of(&db)[1..], before[1..], "{name}, rolled back");
            assert_eq!(status(&db, "transactions_listed"), 0, "{name}");
        }
    }
    let mut other = db.begin();
    other.lock_table(&table, LockMode::Exclusive).unwrap();
}

#[test]
fn a_prepared_transaction_that_changed_nothing_keeps_its_locks_to_its_end() {
    let (db, table) = start(&SimDisk::new());
    let (mut txn, mut other) = (db.begin(), db.begin());
    refused_insert(&mut txn, &table);
    txn.prepare(Xid::new(1, b"x", b"").unwrap()).unwrap();
    other.set_lock_wait(0);
    let refused = update(&mut other, &table, 1, &row(1), 1, &row(3));
    assert!(matches!(refused, Err(Error::LockTimeout)), "{refused:?}");
    txn.commit().unwrap();
    update(&mut other, &table, 1, &row(1), 1, &row(3)).unwrap();
    other.commit().unwrap();
}

/// Rolled-back changes are in the log, but no commit waits until these changes are durable. Purge
/// skips them, and a startup finds the rows unchanged.
fn take_back() {
    let disk = SimDisk::new();
    let (db, table) = start(&disk);
    let mut txn = db.begin();
    let before = log_of(&db);
    insert_and_take_back(&mut txn, &table);
    refused_insert(&mut txn, &table);
    txn.commit().unwrap();
    assert_eq!(log_of(&db)[1..], before[1..]);
    while db.run_background().unwrap() {}
    assert_eq!((status(&db, "transactions_to_purge"), status(&db, "transactions_listed")), (0, 0));
    for policy in [CrashPolicy::SyncedOnly, CrashPolicy::Everything] {
        let db = open(&disk.crash(policy, 1)).unwrap();
        let found = all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap();
        assert_eq!(found, Rows::from([(1, row(1))]));
        assert_eq!(status(&db, "transactions_listed"), 0);
    }
}

#[test]
fn what_was_taken_back_is_not_waited_for() {
    take_back();
}

/// An acknowledged change is durable, even among statements that change nothing.
fn change_beside() {
    let disk = SimDisk::new();
    let (db, table) = start(&disk);
    let mut txn = db.begin();
    let before = log_of(&db);
    insert(&mut txn, &table, 3, &row(3)).unwrap();
    insert_and_take_back(&mut txn, &table);
    refused_insert(&mut txn, &table);
    txn.commit().unwrap();
    assert_eq!(log_of(&db)[1..], [before[1] + 1, before[2] + 1]);
    let db = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
    let found = all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap();
    assert_eq!(found, Rows::from([(1, row(1)), (3, row(3))]));
}

#[test]
fn a_change_beside_what_changes_nothing_is_durable() {
    change_beside();
}

fn caught(name: &'static str, test: fn()) {
    let bug = plant(name);
    let found = catch_unwind(AssertUnwindSafe(test));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    assert!(found.is_err(), "'{name}' was not caught");
}

#[test]
fn a_commit_that_takes_changes_for_none_is_caught() {
    caught("commit: take changes for none", change_beside);
}

#[test]
fn what_was_taken_back_and_never_ends_is_caught() {
    caught("commit: leave what was taken back unended", take_back);
}
