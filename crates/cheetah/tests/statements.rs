//! Reports about statements: the times at which tables were changed, and the work of a thread on
//! pages.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{page_work, Error, Xid};
use cheetah_io::sim::SimDisk;
use support::*;

#[test]
fn tables_know_when_a_committed_transaction_changed_them() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let (t, other) = (db.create_table(&spec("t")).unwrap(), db.create_table(&spec("other")).unwrap());
    let mut txn = db.begin();
    insert(&mut txn, &t, 1, &Row::new(1, 40)).unwrap();
    txn.commit().unwrap();
    assert_eq!(t.changed_at(), 0, "no time was set");

    txn.set_time(100);
    insert(&mut txn, &t, 2, &Row::new(2, 40)).unwrap();
    txn.rollback().unwrap();
    assert_eq!(t.changed_at(), 0, "a rolled-back change counts");

    insert(&mut txn, &t, 2, &Row::new(2, 40)).unwrap();
    let savepoint = txn.savepoint();
    txn.set_time(110);
    insert(&mut txn, &other, 1, &Row::new(1, 40)).unwrap();
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(t.changed_at(), 0, "a change counts before its commit");
    txn.commit().unwrap();
    assert_eq!((t.changed_at(), other.changed_at()), (100, 0));

    let taken = insert(&mut txn, &t, 2, &Row::new(2, 40));
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })));
    txn.commit().unwrap();
    assert_eq!(t.changed_at(), 100, "a refused change counts");

    let emptied = db.truncate_table("t").unwrap();
    assert_eq!(emptied.changed_at(), 100);
    txn.set_time(0);
    insert(&mut txn, &emptied, 3, &Row::new(3, 40)).unwrap();
    txn.commit().unwrap();
    assert_eq!(emptied.changed_at(), 100);

    txn.set_time(120);
    insert(&mut txn, &other, 5, &Row::new(5, 40)).unwrap();
    let xid = Xid::new(1, b"other", b"").unwrap();
    txn.prepare(xid).unwrap();
    drop(txn);
    assert_eq!(other.changed_at(), 0, "the transaction is not decided");
    db.commit_prepared(&xid).unwrap();
    assert_eq!(other.changed_at(), 120);
}

#[test]
fn a_thread_counts_its_work_with_pages() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let since = page_work::begin();
    insert(&mut txn, &table, 1, &Row::new(1, 40)).unwrap();
    let work = page_work::end(since);
    assert!(work.pages_accessed > 0 && work.pages_updated > 0, "{work:?}");
    assert_eq!((work.pages_read, work.versions_read), (0, 0));
    txn.commit().unwrap();

    let mut reader = db.begin();
    reader.take_snapshot().unwrap();
    update(&mut txn, &table, 1, &Row::new(1, 40), 1, &Row::new(1, 50)).unwrap();
    txn.commit().unwrap();
    let since = page_work::begin();
    assert!(read(&mut reader, &table, 1).unwrap().is_some());
    let work = page_work::end(since);
    assert_eq!(work.versions_read, 1, "{work:?}");
    assert!(work.pages_updated == 0 && work.pages_accessed > 0, "{work:?}");
    reader.rollback().unwrap();
    drop((reader, txn, table));
    db.close().unwrap();
    drop(db);

    let db = open(&disk).unwrap();
    let table = db.table("t").unwrap();
    let mut reader = db.begin();
    let since = page_work::begin();
    assert!(read(&mut reader, &table, 1).unwrap().is_some());
    assert!(page_work::end(since).pages_read > 0, "the page is read from disk");
}
