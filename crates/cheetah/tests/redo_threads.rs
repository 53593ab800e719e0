//! Redo on several threads gives the same result as redo on one thread. Several threads write
//! random transactions on few keys, with rollbacks, large values, changes of the catalog, and
//! transactions that are open or prepared at the power cut.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error, Result, Xid};
use cheetah::testing::db::{Db, Isolation, Read, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{CrashPolicy, SimDisk};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::*;

/// The number of databases in `make test`; `CHEETAH_REDO_SEEDS` sets another number.
const SEEDS: u64 = 4;
const WRITERS: u64 = 3;
const TXNS: u64 = 120;
const KEYS: u64 = 30;

/// The state that a startup finds: rows, counts and next numbers of all tables, and the prepared
/// transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Found {
    tables: BTreeMap<String, (Rows, Option<u64>, u64)>,
    prepared: Vec<Xid>,
    records: u64,
}

fn config(redo_threads: u32, pool_bytes: u64) -> Config {
    let (log_file_bytes, log_bytes_max) = (1 << 20, 64 << 20);
    Config { redo_threads, buffer_pool_bytes: pool_bytes, log_file_bytes, log_bytes_max, ..Config::tiny() }
}

fn random_row(rng: &mut Rng) -> Row {
    let text_bytes = if rng.below(8) == 0 { 2500 } else { rng.below(60) };
    Row::new(rng.below(4 * KEYS), text_bytes as usize)
}

/// Runs one random operation on a row, as a separate statement.
fn operate(txn: &mut Transaction, table: &Arc<Table>, rng: &mut Rng) -> Result<()> {
    let (key, new) = (rng.below(KEYS), random_row(rng));
    let how = Read::Exclusive;
    let mut stored = Vec::new();
    if !txn.get(table, &key.to_be_bytes(), how, &mut stored)? {
        return insert(txn, table, key, &new);
    }
    let old = complete(txn, table, &stored)?;
    match rng.below(10) {
        0..=1 => delete(txn, table, key, &old),
        2..=3 => update(txn, table, key, &old, rng.below(KEYS), &new),
        4..=5 => {
            let (present, is_large) = Row::parse(&stored);
            let kept = Row { text: old.text.clone(), ..new };
            let stored = if is_large { kept.stored_keeping_text(&present.text) } else { kept.stored() };
            update_stored(txn, table, key, &old, key, &kept, &stored)
        }
        _ => update(txn, table, key, &old, key, &new),
    }
}

/// Runs one random transaction to its end.
fn transaction(txn: &mut Transaction, tables: &[Arc<Table>], rng: &mut Rng) -> Result<()> {
    for _ in 0..1 + rng.below(6) {
        let savepoint = txn.savepoint();
        let table = &tables[rng.below(tables.len() as u64) as usize];
        match operate(txn, table, rng) {
            Err(Error::DuplicateKey { .. }) => {}
            done => done?,
        }
        txn.end_statement();
        if rng.below(12) == 0 {
            txn.rollback_to(savepoint)?;
        }
    }
    Ok(())
}

fn write(db: &Db, tables: &[Arc<Table>], seed: u64, bug: Option<&'static str>) {
    let _bug = bug.map(plant);
    let (mut txn, mut rng) = (db.begin(), Rng::new(seed));
    txn.set_isolation(Isolation::ReadCommitted);
    txn.set_lock_wait(1_000_000);
    for no in 0..TXNS {
        match transaction(&mut txn, tables, &mut rng) {
            Ok(()) if rng.below(6) > 0 => txn.commit().unwrap(),
            Ok(()) | Err(Error::Deadlock | Error::LockTimeout) => txn.rollback().unwrap(),
            Err(error) => panic!("transaction {no}: {error}"),
        }
    }
}

fn write_with_threads(db: &Db, names: &[&str], seed: u64, bug: Option<&'static str>) {
    let tables = names.iter().map(|name| db.table(name).unwrap()).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let tables = &tables;
            scope.spawn(move || write(db, tables, seed << 8 | writer, bug));
        }
    });
}

/// Begins a transaction and leaves it open.
fn begin_some(db: &Db, name: &str, rng: &mut Rng) -> Transaction {
    let mut txn = db.begin();
    txn.set_lock_wait(0);
    let table = db.table(name).unwrap();
    for _ in 0..4 {
        let savepoint = txn.savepoint();
        if operate(&mut txn, &table, rng).is_err() {
            txn.rollback_to(savepoint).unwrap();
        }
    }
    txn
}

/// The disk after a power cut in the middle of random work.
fn crashed(seed: u64) -> SimDisk {
    crashed_with(seed, None)
}

/// Like [`crashed`], with a bug planted in the writers.
fn crashed_with(seed: u64, bug: Option<&'static str>) -> SimDisk {
    let disk = SimDisk::new();
    let db = Db::open(env(&disk), config(1, 4 << 20)).unwrap();
    let mut rng = Rng::new(seed);
    ["a", "b"].iter().for_each(|name| drop(db.create_table(&spec(name)).unwrap()));
    write_with_threads(&db, &["a", "b"], 4 * seed, bug);
    if seed % 2 == 0 {
        db.checkpoint().unwrap();
    }
    let before = begin_some(&db, "a", &mut rng);
    if seed % 3 == 0 {
        db.checkpoint().unwrap();
    }
    write_with_threads(&db, &["b", "a"], 4 * seed + 1, bug);
    drop(db.truncate_table("b").unwrap());
    db.create_table(&spec("c")).unwrap();
    write_with_threads(&db, &["a", "b", "c"], 4 * seed + 2, bug);
    db.rename_table("c", "d").unwrap();
    db.set_auto_increment(&db.table("d").unwrap(), 1000 + seed).unwrap();
    db.create_table(&spec("e")).unwrap();
    write_with_threads(&db, &["e", "d", "a"], 4 * seed + 3, bug);
    db.drop_table("e").unwrap();
    let after = ["a", "b", "d"].map(|name| begin_some(&db, name, &mut rng));
    let mut promised = begin_some(&db, "d", &mut rng);
    promised.prepare(Xid::new(7, &seed.to_be_bytes(), b"").unwrap()).unwrap();
    write_with_threads(&db, &["a"], 4 * seed + 4, bug);
    drop(db.create_table(&spec("last")).unwrap());
    // The open transactions are not rolled back, because the power is cut.
    std::mem::forget((before, after, promised));
    let left = disk.crash(CrashPolicy::SyncedOnly, seed);
    std::mem::forget(db);
    left
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

fn find(db: &Db) -> Result<Found> {
    let mut tables = BTreeMap::new();
    for name in db.table_names() {
        let (mut txn, table) = (db.begin(), db.table(&name)?);
        let (rows, count) = (all_rows(&mut txn, &table)?, txn.count(&table)?);
        tables.insert(name, (rows, count, table.auto_increment()));
    }
    Ok(Found { tables, prepared: db.prepared(), records: status(db, "recovery_log_records") })
}

/// Opens an image with `threads` threads. The rows that are visible at once must be the same as the
/// rows that are visible after the background has finished its work.
fn opened(disk: &SimDisk, threads: u32, pool_bytes: u64) -> std::result::Result<Found, String> {
    let disk = disk.snapshot();
    let db = Db::open_early(env(&disk), config(threads, pool_bytes)).map_err(|error| error.to_string())?;
    let steps = || -> Result<_> {
        let at_once = find(&db)?;
        while db.run_background()? {}
        Ok((at_once, find(&db)?))
    };
    let (at_once, later) = steps().map_err(|error| error.to_string())?;
    if at_once != later || !db.quarantined_tables().is_empty() {
        return Err(format!("quarantined: {:?}; the background has changed rows", db.quarantined_tables()));
    }
    for xid in db.prepared() {
        db.commit_prepared(&xid).map_err(|error| error.to_string())?;
    }
    while db.run_background().map_err(|error| error.to_string())? {}
    let errors = db.background_errors();
    if !errors.is_empty() {
        return Err(format!("errors in the background: {errors:?}"));
    }
    for name in db.table_names() {
        let checked = db.table(&name).and_then(|table| check(&db, &table));
        checked.map_err(|error| error.to_string())?.map_err(|findings| format!("{name}: {findings:?}"))?;
    }
    match ["transactions_listed", "transactions_to_purge", "memory_redo_bytes"].map(|name| status(&db, name))
    {
        [0, 0, 0] => Ok(later),
        left => Err(format!("listed, to purge, bytes of redo: {left:?}")),
    }
}

fn seeds() -> u64 {
    std::env::var("CHEETAH_REDO_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn redo_on_several_threads_leaves_what_redo_on_one_leaves() {
    for seed in 1..=seeds() {
        let disk = crashed(seed);
        let expected = opened(&disk, 1, 4 << 20).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        for (threads, pool_bytes) in [(2, 4 << 20), (3, 64 << 10), (7, 128 << 10)] {
            let found = opened(&disk, threads, pool_bytes);
            let found = found.unwrap_or_else(|failure| panic!("seed {seed}, {threads} threads: {failure}"));
            assert!(found == expected, "seed {seed}, {threads} threads: {found:?} instead of {expected:?}");
        }
    }
    for mark in [
        "redo waited for another worker",
        "redo purges",
        "row operation redone for good",
        "entry removed unseen",
        "undo redone",
        "loser rolled back",
        "row operation taken apart",
        "what redo has sorted is applied",
        "redo applies what is sorted before an operation",
        "large value freed in redo",
    ] {
        assert!(reach::count(mark) > 0 || !cfg!(debug_assertions), "'{mark}' was never reached");
    }
}

/// Plants a bug and opens images until a check fails. With several threads, a check fails only if a
/// worker runs too early.
fn caught(name: &'static str, threads: u32) {
    caught_with(name, threads, 4 << 20);
}

/// Like `caught`, with `pool_bytes` of memory.
fn caught_with(name: &'static str, threads: u32, pool_bytes: u64) {
    let found = (1..=100).find(|&seed| {
        let disk = crashed(seed);
        let expected = opened(&disk, 1, 4 << 20).unwrap();
        let bug = plant(name);
        let found = opened(&disk, threads, pool_bytes);
        assert!(bug.reached_count() > 0, "'{name}' was never reached");
        found.as_ref() != Ok(&expected)
    });
    assert!(found.is_some(), "'{name}' was not caught");
}

#[test]
fn changes_of_a_key_out_of_order_are_caught() {
    caught("redo: forget the order of a key's changes", 4);
}

#[test]
fn operations_applied_for_good_that_are_rolled_back_are_caught() {
    caught("redo: apply for good what is rolled back", 1);
}

/// Breaks B17: redo must read the entries of a transaction unless the transaction certainly
/// commits.
#[test]
fn entries_left_unseen_of_what_may_be_rolled_back_are_caught() {
    caught_with("redo: leave entries unseen of what may be rolled back", 1, 64 << 10);
}

#[test]
fn operations_applied_before_what_is_sorted_of_their_rows_are_caught() {
    caught_with("redo: apply an operation before what is sorted of its row", 1, 64 << 10);
}

#[test]
fn what_is_sorted_and_applied_before_operations_that_were_handed_out_is_caught() {
    caught_with("redo: apply what is sorted before what was handed out", 4, 64 << 10);
}

#[test]
fn records_that_keep_the_first_of_their_changes_are_caught() {
    caught_with("redo: keep the first of a record's changes", 1, 64 << 10);
}

#[test]
fn a_catalog_that_changes_before_what_is_sorted_is_caught() {
    caught_with("redo: change the catalog before what is sorted", 1, 64 << 10);
}

/// Opens the database on a disk with only `bytes` bytes of free space.
fn opened_with_room(disk: &SimDisk, bytes: u64) -> std::result::Result<Found, String> {
    let disk = disk.snapshot();
    disk.set_space(Some(disk.used_bytes() + bytes));
    let db = Db::open_early(env(&disk), config(1, 64 << 10)).map_err(|error| error.to_string())?;
    disk.set_space(None);
    find(&db).map_err(|error| error.to_string())
}

#[test]
fn a_startup_on_a_disk_that_is_nearly_full_sorts_nothing() {
    let disk = crashed(1);
    let expected = opened(&disk, 1, 4 << 20).unwrap();
    // Above some size, the disk has room for the writes of redo. Sorting should need more space.
    let rooms = (8..=32).map(|eighth| eighth << 17);
    let found = rooms.filter_map(|bytes| opened_with_room(&disk, bytes).ok()).collect::<Vec<_>>();
    assert!(!found.is_empty() && found.iter().all(|found| *found == expected));
    assert!(reach::count("redo sorts nothing on a full disk") > 0 || !cfg!(debug_assertions));
}

/// A row is unlocked once it is rolled back, even while its transaction continues to roll back.
/// With the bug, a transaction that waited for the row logs its change before UNDO is logged. The
/// startup after a crash then finds unexpected rows and quarantines the table.
#[test]
fn c5_rows_that_are_free_before_undo_is_logged_are_caught() {
    let bug = "rollback: log when the row is free already";
    let is_quarantined = |seed| {
        opened(&crashed_with(seed, Some(bug)), 1, 4 << 20)
            .is_err_and(|failure| failure.contains("quarantined"))
    };
    assert!((1..=60).any(is_quarantined), "'{bug}' was not caught");
}
