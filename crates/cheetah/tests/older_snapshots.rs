//! Snapshots that are older than the table to which a name now refers (M2,
//! `table/definitions/known_since.rs`).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::Error;
use cheetah::testing::db::{Db, Read, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::SimDisk;
use std::sync::Arc;
use support::*;

/// The number of rows that every kind of consistent read finds, or `None` if the table is refused.
/// All kinds of reads must agree.
fn rows_of(old: &mut Transaction, db: &Db, name: &str) -> Option<u64> {
    let table = db.table(name).unwrap();
    let rows = unless_refused(all_rows(old, &table)).map(|rows| rows.len() as u64);
    assert_eq!(unless_refused(old.count(&table)).flatten(), rows, "{name}: counted");
    assert_eq!(unless_refused(read(old, &table, 1)).is_some(), rows.is_some(), "{name}: by key");
    for index_no in 0..table.indexes().len() {
        let cursor = unless_refused(old.cursor(&table, index_no, Read::Consistent));
        assert_eq!(cursor.is_some(), rows.is_some(), "{name}: by index {index_no}");
    }
    rows
}

fn unless_refused<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Err(Error::TableChanged(_)) => None,
        other => Some(other.unwrap()),
    }
}

fn create(db: &Db, name: &str, keys: std::ops::Range<u64>) -> Arc<Table> {
    let table = db.create_table(&spec(name)).unwrap();
    put_rows(db, &table, keys);
    table
}

fn put_rows(db: &Db, table: &Arc<Table>, keys: std::ops::Range<u64>) {
    let mut txn = db.begin();
    keys.for_each(|key| insert(&mut txn, table, key, &Row::new(key, 10)).unwrap());
    txn.commit().unwrap();
}

fn key(no: u64) -> [u8; 8] {
    no.to_be_bytes()
}

fn snapshot(db: &Db) -> Transaction {
    let mut txn = db.begin();
    txn.take_snapshot().unwrap();
    txn
}

#[test]
fn m2_a_table_that_was_created_later_is_refused_whether_it_has_rows_or_not() {
    let db = open(&SimDisk::new()).unwrap();
    let mut old = snapshot(&db);
    create(&db, "filled", 1..5);
    create(&db, "empty", 0..0);
    let mut newer = snapshot(&db);
    assert_eq!([rows_of(&mut old, &db, "filled"), rows_of(&mut old, &db, "empty")], [None, None]);
    put_rows(&db, &db.table("empty").unwrap(), 1..3);
    assert_eq!([rows_of(&mut newer, &db, "filled"), rows_of(&mut newer, &db, "empty")], [Some(4), Some(0)]);
    // Locking reads return the newest rows.
    assert!(old.get(&db.table("filled").unwrap(), &key(1), Read::Shared, &mut Vec::new()).unwrap());
    {
        let bug = plant("create: show the table to older snapshots");
        db.create_table(&spec("shown")).unwrap();
        put_rows(&db, &db.table("shown").unwrap(), 1..3);
        assert_eq!(rows_of(&mut old, &db, "shown"), Some(0), "rows are missing");
        assert!(bug.reached_count() > 0);
    }
    old.rollback().unwrap();
    assert_eq!(rows_of(&mut old, &db, "filled"), Some(4));
}

#[test]
fn m2_a_table_that_has_got_its_name_later_is_refused_under_it() {
    let db = open(&SimDisk::new()).unwrap();
    create(&db, "t", 1..10);
    let copy = create(&db, "copy", 0..0);
    // The snapshot is newer than the copy, but older than the copy's rows.
    let mut old = snapshot(&db);
    put_rows(&db, &copy, 1..10);
    let swap = || {
        db.rename_table("t", "gone").unwrap();
        db.rename_table("copy", "t").unwrap();
    };
    swap();
    assert_eq!([rows_of(&mut old, &db, "t"), rows_of(&mut old, &db, "gone")], [None, None]);
    assert_eq!(rows_of(&mut snapshot(&db), &db, "t"), Some(9));
    let mut between = snapshot(&db);
    db.rename_table("t", "copy").unwrap();
    db.rename_table("gone", "t").unwrap();
    assert_eq!(
        [rows_of(&mut old, &db, "t"), rows_of(&mut old, &db, "copy")],
        [Some(9), Some(0)],
        "the old names are valid again"
    );
    assert_eq!([rows_of(&mut between, &db, "t"), rows_of(&mut between, &db, "copy")], [None, None]);
    let bug = plant("rename: show the table to older snapshots");
    swap();
    assert_eq!(rows_of(&mut old, &db, "t"), Some(0), "rows are missing");
    assert!(bug.reached_count() > 0);
}

#[test]
fn m2_what_is_left_of_a_table_is_refused_to_those_who_have_all_of_it() {
    let db = open(&SimDisk::new()).unwrap();
    for name in ["t#P#p0", "t#P#p1", "t#P#p2", "tt#P#p0"] {
        create(&db, name, 1..4);
    }
    let mut old = snapshot(&db);
    let drop_one = |name: &str| {
        db.drop_table(name).unwrap();
        db.note_remainders("t#P#");
    };
    {
        let bug = plant("partitions: show what is left to older snapshots");
        drop_one("t#P#p1");
        assert_eq!(
            rows_of(&mut old, &db, "t#P#p0"),
            Some(3),
            "the rows of the dropped partition are missing"
        );
        assert!(bug.reached_count() > 0);
    }
    drop_one("t#P#p2");
    assert_eq!([rows_of(&mut old, &db, "t#P#p0"), rows_of(&mut old, &db, "tt#P#p0")], [None, Some(3)]);
    assert_eq!(rows_of(&mut snapshot(&db), &db, "t#P#p0"), Some(3));
}

/// The number of rows that a snapshot sees if it was taken while the statement that created the
/// table filled it. `None` if the table is refused.
fn read_while_filled(rows: u64) -> Option<u64> {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut statement = db.begin();
    statement.fill_new_table(&table);
    let mut old = snapshot(&db);
    (0..rows).for_each(|key| insert(&mut statement, &table, key, &Row::new(key, 10)).unwrap());
    statement.commit().unwrap();
    assert_eq!(rows_of(&mut snapshot(&db), &db, "t"), Some(rows));
    // The rows of the next statement are ordinary rows.
    let mut newer = snapshot(&db);
    put_rows(&db, &table, rows..rows + 3);
    assert_eq!(rows_of(&mut newer, &db, "t"), Some(rows));
    rows_of(&mut old, &db, "t")
}

#[test]
fn m2_a_table_that_a_statement_creates_and_fills_is_there_from_its_commit_on() {
    assert_eq!([read_while_filled(0), read_while_filled(5)], [None, None]);
    let bug = plant("create: show a table before all its rows");
    assert_eq!(read_while_filled(5), Some(0), "rows are missing");
    assert!(bug.reached_count() > 0);
}

#[test]
fn m2_a_statement_that_is_rolled_back_shows_nothing() {
    let db = open(&SimDisk::new()).unwrap();
    let table = create(&db, "t", 1..4);
    let mut old = snapshot(&db);
    let mut statement = db.begin();
    statement.fill_new_table(&table);
    statement.rollback().unwrap();
    statement.commit().unwrap();
    assert_eq!(rows_of(&mut old, &db, "t"), Some(3));
}

#[test]
fn m2_after_a_startup_all_is_known() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    create(&db, "t", 1..4);
    db.checkpoint().unwrap();
    // Redo repeats the create and the rename.
    create(&db, "u", 1..3);
    db.rename_table("u", "v").unwrap();
    let mut open_then = db.begin();
    insert(&mut open_then, &db.table("t").unwrap(), 9, &Row::new(9, 10)).unwrap();
    std::mem::forget(open_then);
    drop(db);
    let db = open(&disk).unwrap();
    let mut first = snapshot(&db);
    assert_eq!([rows_of(&mut first, &db, "t"), rows_of(&mut first, &db, "v")], [Some(3), Some(2)]);
}
