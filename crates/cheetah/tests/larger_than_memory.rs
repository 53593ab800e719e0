//! Tables larger than memory. Tests the guarantees and the costs of a statement whose leaves are
//! not in memory, with planted bugs that break them.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::Config;
use cheetah::testing::db::{Db, Read, SeekEnd, SeekMode};
use cheetah::testing::table::Table;
use cheetah_io::sim::{Fault, Op, SimDisk};
use std::panic::catch_unwind;
use std::sync::Arc;
use support::*;

const ROWS: u64 = 3000;
const POOL_BYTES: u64 = 192 << 10;
/// The number of rows in tests where writers keep only a small part of all frames free.
const MANY_ROWS: u64 = 10_000;
/// The memory in these tests.
const LARGE_POOL_BYTES: u64 = 512 << 10;
const BATCH: u64 = 200;

/// The row of a key. Its name is unique, and ends with `letter`.
fn row_of(key: u64, letter: u8) -> Row {
    let mut name = format!("{:08x}", (key as u32).wrapping_mul(2_654_435_761)).into_bytes();
    name.push(letter);
    Row { number: key, name, text: vec![b'x'; 30] }
}

/// An idle database that is several times as large as its memory.
fn filled(rows: u64, buffer_pool_bytes: u64) -> (Db, Arc<Table>) {
    filled_on(&SimDisk::new(), rows, buffer_pool_bytes)
}

fn filled_on(disk: &SimDisk, rows: u64, buffer_pool_bytes: u64) -> (Db, Arc<Table>) {
    let (log_file_bytes, log_bytes_max) = (128 << 10, 4 << 20);
    let config = Config { buffer_pool_bytes, log_file_bytes, log_bytes_max, ..Config::tiny() };
    let db = Db::open(env(disk), config).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    for key in 0..rows {
        insert(&mut txn, &table, key, &row_of(key, b'a')).unwrap();
        if key % BATCH == 0 {
            txn.commit().unwrap();
            rest(&db);
        }
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    rest(&db);
    (db, table)
}

/// Runs background work until none is left.
fn rest(db: &Db) {
    while db.run_background().unwrap() {}
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

/// Keys all over the table, a few in each leaf.
fn keys(count: u64, rows: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 1009 % rows)
}

/// Renames rows, with a wrong old name. Returns the number of missing entries that the background
/// reports, and the number of findings of CHECK.
fn wrong_old_entries() -> (usize, usize) {
    let (db, table) = filled(ROWS, POOL_BYTES);
    let mut accepted = 0;
    for key in keys(200, ROWS) {
        let mut txn = db.begin();
        let (wrong, new) = (row_of(key, b'q'), row_of(key, b'b'));
        match update(&mut txn, &table, key, &wrong, key, &new) {
            // The leaf was in memory, so the entry was looked up.
            Err(error) => assert!(error.to_string().contains("is missing"), "{error}"),
            Ok(()) => accepted += 1,
        }
        txn.commit().unwrap();
    }
    assert!(accepted > 20, "{accepted} marks were accepted without a lookup");
    assert_eq!(db.stopped(), None);
    let findings = check(&db, &table).unwrap().map_or_else(|findings| findings.len(), |_| 0);
    (db.background_errors().len(), findings)
}

#[test]
fn b8_an_entry_that_is_missing_is_told_of_when_its_mark_meets_the_leaf() {
    let (told, findings) = wrong_old_entries();
    assert!(told > 0 && findings > 0, "{told}, {findings}");
    let bug = plant("buffering: say nothing of what is missing");
    assert_eq!(wrong_old_entries().0, 0);
    assert!(bug.reached_count() > 0);
}

/// The number of image lookups per update of a name, while an idle transaction is older than all
/// other transactions.
fn looks_beside_an_idle_writer() -> f64 {
    const UPDATES: u64 = 300;
    let (db, table) = filled(MANY_ROWS, LARGE_POOL_BYTES);
    let mut idle = db.begin();
    insert(&mut idle, &table, MANY_ROWS, &row_of(MANY_ROWS, b'a')).unwrap();
    let rename = |from, to| {
        for key in keys(UPDATES, MANY_ROWS) {
            let mut txn = db.begin();
            update(&mut txn, &table, key, &row_of(key, from), key, &row_of(key, to)).unwrap();
            txn.commit().unwrap();
        }
        rest(&db);
    };
    rename(b'a', b'b');
    let before = status(&db, "pool_looks");
    rename(b'b', b'c');
    let looks = (status(&db, "pool_looks") - before) as f64 / UPDATES as f64;
    idle.rollback().unwrap();
    rest(&db);
    assert_eq!(check(&db, &table).unwrap(), Ok(MANY_ROWS));
    looks
}

#[test]
fn b17_an_idle_writer_keeps_nobody_from_leaving_entries_unseen() {
    let looks = looks_beside_an_idle_writer();
    let bug = plant("blind: wait for all older transactions");
    let others = looks_beside_an_idle_writer();
    assert!(bug.reached_count() > 0 && others > looks + 0.3, "{looks}, {others} lookups per update");
}

/// The number of images decoded into pages per row, while rows are locked by their keys.
fn pages_decoded_for_locked_rows() -> f64 {
    const LOCKED: u64 = 300;
    let (db, table) = filled(MANY_ROWS, LARGE_POOL_BYTES);
    let lock = |key: u64| {
        let mut txn = db.begin();
        let mut cursor = txn.cursor(&table, 0, Read::Exclusive).unwrap();
        let found = cursor.seek_to(SeekMode::AtLeast, &key.to_be_bytes(), SeekEnd::Row).unwrap();
        assert!(found && Row::parse(cursor.row()).0 == row_of(key, b'a'));
        drop(cursor);
        txn.commit().unwrap();
    };
    // Reads the pages above the leaves into memory.
    keys(2 * LOCKED, MANY_ROWS).for_each(lock);
    let decodes = || db.image_work(false).iter().map(|(_, work)| work.decodes).sum::<u64>();
    let before = decodes();
    keys(3 * LOCKED, MANY_ROWS).skip(2 * LOCKED as usize).for_each(lock);
    (decodes() - before) as f64 / LOCKED as f64
}

#[test]
fn b18_a_row_that_is_locked_by_its_key_is_judged_without_its_leaf() {
    let decoded = pages_decoded_for_locked_rows();
    let bug = plant("scan: read the leaf of a row that is sought by its key");
    let more = pages_decoded_for_locked_rows();
    // With little memory, many leaves are soon requested again, and then receive a frame.
    let is_read_for_each = more > 0.9 && more > decoded + 0.2;
    assert!(bug.reached_count() > 0 && is_read_for_each, "{decoded}, {more} pages per row");
}

/// Gives rows longer names while reads of the device fail. If a leaf of the index has both the old
/// and the new name, two changes for this leaf must become pending at once. Returns whether the
/// engine stops.
fn is_stopped_by_the_device() -> bool {
    let disk = SimDisk::new();
    let (db, table) = filled_on(&disk, MANY_ROWS, 2 * LARGE_POOL_BYTES);
    let mut renamed = 0;
    for (number, key) in keys(1000, MANY_ROWS).enumerate() {
        let (old, mut new) = (row_of(key, b'a'), row_of(key, b'b'));
        new.name.resize(10 + number % 13, b'b');
        let mut txn = db.begin();
        // The leaf of the row is read into memory when the row is requested again.
        for _ in 0..2 {
            assert_eq!(read(&mut txn, &table, key).unwrap().as_ref(), Some(&old));
        }
        disk.inject(Fault::on(Op::Read).path("seg").forever());
        let done = update(&mut txn, &table, key, &old, key, &new);
        disk.clear_faults();
        if db.stopped().is_some() {
            return true;
        }
        match done {
            Ok(()) => txn.commit().unwrap(),
            Err(_) => txn.rollback().unwrap(),
        }
        renamed += usize::from(done.is_ok());
        if number % 50 == 0 {
            rest(&db);
        }
    }
    assert!(renamed > 300, "{renamed} rows have other names");
    rest(&db);
    assert_eq!(check(&db, &table).unwrap(), Ok(MANY_ROWS));
    false
}

#[test]
fn b10_changes_of_one_leaf_find_room_together_before_anything_is_changed() {
    assert!(!is_stopped_by_the_device());
    let bug = plant("buffering: ask for room before, and not again");
    assert!(is_stopped_by_the_device() && bug.reached_count() > 0);
}

/// Breaks B10: if one reservation is refused, the operation must release its other reservations.
#[test]
fn b19_what_is_reserved_when_another_place_is_refused_is_given_back() {
    let bug = plant("leaves: keep what was reserved when another place is refused");
    // A thread that reserves a leaf and then reads it would wait forever.
    let found = catch_unwind(is_stopped_by_the_device).is_err();
    assert!(found && bug.reached_count() > 0);
}

/// Runs CHECK on a table with mostly deleted rows. Purge runs in the middle of CHECK. Returns the
/// number of findings.
fn findings_beside_purge() -> usize {
    const KEPT: u64 = 40;
    let (db, table) = filled(ROWS, POOL_BYTES);
    let mut txn = db.begin();
    for key in KEPT..ROWS {
        delete(&mut txn, &table, key, &row_of(key, b'a')).unwrap();
    }
    txn.commit().unwrap();
    let mut is_first = true;
    let report = db.check_table_with(&table, &mut |_, stored, entries| {
        if std::mem::take(&mut is_first) {
            rest(&db);
        }
        add_entries_of(stored, entries);
        Ok(())
    });
    let report = report.unwrap();
    assert!(!is_first);
    rest(&db);
    assert_eq!(check(&db, &table).unwrap(), Ok(KEPT));
    report.findings.len()
}

/// Breaks I1 of `tree/check.rs`: a difference between two pages must count as damage only if it
/// persists after both pages are copied again.
#[test]
fn check_table_finds_nothing_of_what_purge_is_about_to_change() {
    assert_eq!(findings_beside_purge(), 0);
    let bug = plant("tree: take what a split moves for damage");
    assert!(findings_beside_purge() > 0 && bug.reached_count() > 0);
}
