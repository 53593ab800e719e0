//! Two-phase commit. A prepared transaction remains prepared and keeps its locks until the
//! coordinator decides, even if the server crashes at any moment (C8, H2, M3).
//!
//! The workload acknowledges to the simulated disk the steps that are durable. Each later crash
//! image must contain these steps.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Error, Result, Xid};
use cheetah::testing::db::{Db, LockMode, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use support::*;

/// The number of rows before the transaction, and the first key that the transaction inserts.
const BEFORE: u64 = 8;
/// The number of rows that the transaction inserts. Some of them have a large value.
const INSERTED: u64 = 12;

fn xid(name: &str) -> Xid {
    Xid::new(1, name.as_bytes(), b"branch").unwrap()
}

fn row(key: u64) -> Row {
    Row::new(key, if key % 4 == 0 { 6000 } else { 40 })
}

fn rows(count: u64) -> Rows {
    (0..count).map(|key| (key, row(key))).collect()
}

/// A database with table `t`, which has some rows, and table `other`.
fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    db.create_table(&spec("other")).unwrap();
    let mut txn = db.begin();
    rows(BEFORE).iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    db.close().unwrap();
    disk
}

/// Runs the changes of the prepared transaction: inserts, and a changed large value.
fn change(db: &Db) -> (Transaction, Arc<Table>) {
    let table = db.table("t").unwrap();
    let mut txn = db.begin();
    (BEFORE..BEFORE + INSERTED).for_each(|key| insert(&mut txn, &table, key, &row(key)).unwrap());
    update(&mut txn, &table, 0, &row(0), 0, &Row::new(0, 7000)).unwrap();
    (txn, table)
}

/// All rows of `t` after the transaction's commit.
fn changed() -> Rows {
    let mut changed = rows(BEFORE + INSERTED);
    changed.insert(0, Row::new(0, 7000));
    changed
}

fn prepared(db: &Db) -> (Transaction, Arc<Table>) {
    let (mut txn, table) = change(db);
    txn.prepare(xid("p")).unwrap();
    (txn, table)
}

/// The rows of `t`, if CHECK finds no fault.
fn contents(db: &Db) -> std::result::Result<Rows, String> {
    let table = db.table("t").map_err(|error| error.to_string())?;
    let rows = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    check(db, &table).map_err(|error| error.to_string())?.map_err(|findings| format!("{findings:?}"))?;
    let counted = db.begin().count(&table).map_err(|error| error.to_string())?;
    match counted == Some(rows.len() as u64) {
        true => Ok(rows),
        false => Err(format!("{} rows, counted as {counted:?}", rows.len())),
    }
}

fn is_locked(db: &Db) -> bool {
    let table = db.table("t").unwrap();
    let mut txn = db.begin();
    txn.set_lock_wait(0);
    matches!(txn.lock_table(&table, LockMode::Exclusive), Err(Error::LockTimeout))
}

/// Returns whether other transactions can change only the neighbours of the rows that the prepared
/// transaction changed and inserted (M3).
fn keeps_its_rows(db: &Db) -> bool {
    let table = db.table("t").unwrap();
    let mut txn = db.begin();
    txn.set_lock_wait(0);
    let changed = delete(&mut txn, &table, 0, &row(0));
    let added = insert(&mut txn, &table, BEFORE, &row(BEFORE));
    let beside = delete(&mut txn, &table, 1, &row(1));
    txn.rollback().unwrap();
    matches!((changed, added), (Err(Error::LockTimeout), Err(Error::LockTimeout))) && beside.is_ok()
}

/// The outcome of the transaction in a crash image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// The transaction was rolled back.
    Before,
    /// The transaction waits for a decision.
    Waits,
    /// The transaction was committed.
    After,
}

/// Opens an image. A prepared transaction must have its locks, and must end as `commits` says.
fn outcome(image: &SimDisk, commits: bool) -> std::result::Result<Outcome, String> {
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    let waits = match db.prepared().as_slice() {
        [] => false,
        [found] if *found == xid("p") => true,
        other => return Err(format!("prepared: {other:?}")),
    };
    if waits {
        if !is_locked(&db) {
            return Err("the table of a prepared transaction is not locked".into());
        }
        if !keeps_its_rows(&db) {
            return Err("rows of a prepared transaction are not locked, or their neighbours are".into());
        }
        if contents(&db)? != rows(BEFORE) {
            return Err("a reader sees prepared changes".into());
        }
        let done = if commits { db.commit_prepared(&xid("p")) } else { db.rollback_prepared(&xid("p")) };
        done.map_err(|error| format!("the end of the prepared transaction: {error}"))?;
    }
    if is_locked(&db) {
        return Err("the table is locked without a prepared transaction".into());
    }
    let (before, after) = (rows(BEFORE), changed());
    match contents(&db)? {
        rows if waits && rows == if commits { after.clone() } else { before.clone() } => Ok(Outcome::Waits),
        rows if !waits && rows == before => Ok(Outcome::Before),
        rows if !waits && rows == after => Ok(Outcome::After),
        rows => Err(format!("waits {waits}, keys {:?}", rows.keys().collect::<Vec<_>>())),
    }
}

/// Runs `workload` and cuts power at every moment, and in some recoveries. `allowed` returns the
/// allowed outcomes for the last acknowledged number.
fn explore_all(
    workload: impl FnOnce(&SimDisk),
    allowed: impl Fn(u64) -> &'static [Outcome],
) -> std::result::Result<(), String> {
    let judge = |image: &Image| {
        let found = outcome(&image.disk.snapshot(), image.seed % 2 == 0)?;
        match allowed(image.acknowledged).contains(&found) {
            true => Ok(()),
            false => Err(format!("{found:?}, but {} had been acknowledged", image.acknowledged)),
        }
    };
    let mut images_count = 0;
    let report = explore(&Plan::quick(1, 400), &start(), workload, |image| {
        if image.seed % 16 == 0 {
            let recover = |disk: &SimDisk| {
                disk.acknowledge(image.acknowledged);
                drop(open(disk));
            };
            let deeper = explore(&Plan::quick(image.seed, 6), &image.disk, recover, judge);
            images_count += deeper.map_err(|failure| format!("in a recovery: {failure}"))?.images_count;
        }
        judge(image)
    });
    let report = report.map_err(|failure| failure.to_string())?;
    assert!(report.images_count > 20 && images_count > 20, "{report:?}, {images_count} in recoveries");
    Ok(())
}

/// Prepares the transaction, with or without a checkpoint before and after it, and does not end it.
fn prepare_and_wait(disk: &SimDisk, checkpoints: bool) {
    let db = open(disk).unwrap();
    let (mut txn, _table) = change(&db);
    if checkpoints {
        db.checkpoint().unwrap();
    }
    txn.prepare(xid("p")).unwrap();
    disk.acknowledge(1);
    let mut other = db.begin();
    insert(&mut other, &db.table("other").unwrap(), 1, &row(1)).unwrap();
    other.commit().unwrap();
    if checkpoints {
        db.checkpoint().unwrap();
    }
    std::mem::forget(txn);
}

fn explore_preparing(checkpoints: bool) -> std::result::Result<(), String> {
    let workload = |disk: &SimDisk| prepare_and_wait(disk, checkpoints);
    explore_all(workload, |acknowledged| match acknowledged {
        0 => &[Outcome::Before, Outcome::Waits],
        _ => &[Outcome::Waits],
    })
}

#[test]
fn c8_what_is_prepared_waits_with_its_large_values_after_every_power_cut() {
    explore_preparing(false).unwrap();
}

#[test]
fn h2_what_was_prepared_before_a_checkpoint_waits_after_every_power_cut() {
    explore_preparing(true).unwrap();
}

/// Prepares and commits in two steps. The decision is acknowledged between them.
fn explore_committing() -> std::result::Result<(), String> {
    let workload = |disk: &SimDisk| {
        let db = open(disk).unwrap();
        let (mut txn, _table) = prepared(&db);
        disk.acknowledge(1);
        txn.commit_ordered();
        txn.commit().unwrap();
        disk.acknowledge(2);
        db.checkpoint().unwrap();
        disk.acknowledge(3);
    };
    explore_all(workload, |acknowledged| match acknowledged {
        0 => &[Outcome::Before, Outcome::Waits],
        // The COMMIT is not synced: the coordinator repeats it.
        1 | 2 => &[Outcome::Waits, Outcome::After],
        _ => &[Outcome::After],
    })
}

#[test]
fn a_commit_in_two_halves_is_there_or_waits_after_every_power_cut() {
    explore_committing().unwrap();
}

/// Prepares and rolls back. Power is also cut in the middle of the rollback.
fn explore_rolling_back() -> std::result::Result<(), String> {
    let workload = |disk: &SimDisk| {
        let db = open(disk).unwrap();
        let (mut txn, _table) = prepared(&db);
        disk.acknowledge(1);
        db.checkpoint().unwrap();
        txn.rollback().unwrap();
        disk.acknowledge(2);
        db.checkpoint().unwrap();
    };
    explore_all(workload, |acknowledged| match acknowledged {
        0 => &[Outcome::Before, Outcome::Waits],
        1 => &[Outcome::Waits, Outcome::Before],
        _ => &[Outcome::Before],
    })
}

#[test]
fn a_rollback_of_what_is_prepared_is_whole_after_every_power_cut() {
    explore_rolling_back().unwrap();
}

/// Ends a transaction that a startup found prepared.
fn explore_ending_found(commits: bool) -> std::result::Result<(), String> {
    let workload = |disk: &SimDisk| {
        prepare_and_wait(disk, true);
        let db = open(disk).unwrap();
        match commits {
            true => db.commit_prepared(&xid("p")).unwrap(),
            false => db.rollback_prepared(&xid("p")).unwrap(),
        }
        disk.acknowledge(2);
        db.close().unwrap();
    };
    explore_all(workload, move |acknowledged| match (acknowledged, commits) {
        (0, _) => &[Outcome::Before, Outcome::Waits],
        (1, true) => &[Outcome::Waits, Outcome::After],
        (1, false) => &[Outcome::Waits, Outcome::Before],
        (_, true) => &[Outcome::After],
        (_, false) => &[Outcome::Before],
    })
}

#[test]
fn m3_what_a_startup_finds_prepared_ends_as_decided_after_every_power_cut() {
    explore_ending_found(true).unwrap();
    explore_ending_found(false).unwrap();
}

/// Plants a bug, which the exploration must detect.
fn caught(name: &'static str, explore: impl FnOnce() -> std::result::Result<(), String>) {
    let bug = plant(name);
    let found = catch_unwind(AssertUnwindSafe(explore)).unwrap_or_else(|_| Err("a contradiction".into()));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.expect_err("not caught"));
}

#[test]
fn c8_a_large_value_that_is_durable_later_than_its_prepare_is_caught() {
    caught("large: keep the pieces out of the log", || explore_preparing(false));
}

#[test]
fn c8_a_prepare_that_returns_before_it_is_durable_is_caught() {
    caught("two-phase: return before PREPARE is durable", || explore_preparing(false));
}

#[test]
fn h2_an_epoch_that_forgets_xids_is_caught() {
    caught("checkpoint: forget the XIDs", || explore_preparing(true));
}

#[test]
fn a_recovery_that_rolls_back_what_is_prepared_is_caught() {
    caught("recovery: roll prepared transactions back", || explore_preparing(false));
}

#[test]
fn m3_a_recovery_without_the_locks_is_caught() {
    caught("recovery: serve without the locks", || explore_preparing(true));
    caught("recovery: serve without the locks", || explore_ending_found(true));
}

#[test]
fn m3_a_recovery_that_takes_versions_for_committed_is_caught() {
    caught("recovery: take what is prepared for committed", || explore_preparing(true));
}

#[test]
fn a_rollback_of_what_is_still_promised_is_caught() {
    caught("two-phase: roll back what is still promised", explore_rolling_back);
}

#[test]
fn a_commit_that_was_ordered_needs_no_sync_and_is_visible_at_once() {
    let disk = start();
    let db = open(&disk).unwrap();
    let (mut txn, table) = prepared(&db);
    let syncs = |db: &Db| db.status().into_iter().find(|(name, _)| *name == "log_syncs").unwrap().1;
    let before = syncs(&db);
    let txn = std::thread::spawn(move || {
        txn.commit_ordered();
        txn
    });
    let mut txn = txn.join().unwrap();
    txn.commit().unwrap();
    assert_eq!(syncs(&db), before);
    assert_eq!(all_rows(&mut txn, &table).unwrap(), changed());
    db.sync_log().unwrap();
    drop((txn, table, db));
    let db = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
    assert_eq!((contents(&db).unwrap(), db.prepared()), (changed(), vec![]));
}

#[test]
fn a_transaction_that_has_written_nothing_has_nothing_to_prepare() {
    let disk = start();
    let db = open(&disk).unwrap();
    let mut txn = db.begin();
    all_rows(&mut txn, &db.table("t").unwrap()).unwrap();
    txn.prepare(xid("p")).unwrap();
    assert!(!txn.is_prepared());
    txn.commit_ordered();
    txn.commit().unwrap();
    assert_eq!(db.prepared(), vec![]);
}

#[test]
fn one_that_took_everything_back_before_it_was_prepared_waits_too() {
    let disk = start();
    let db = open(&disk).unwrap();
    let mut txn = db.begin();
    let savepoint = txn.savepoint();
    insert(&mut txn, &db.table("t").unwrap(), 100, &row(100)).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.prepare(xid("p")).unwrap();
    db.checkpoint().unwrap();
    std::mem::forget(txn);
    drop(db);
    for commits in [true, false] {
        let image = disk.crash(CrashPolicy::SyncedOnly, 1);
        let db = open(&image).unwrap();
        assert_eq!(db.prepared(), vec![xid("p")]);
        match commits {
            true => db.commit_prepared(&xid("p")).unwrap(),
            false => db.rollback_prepared(&xid("p")).unwrap(),
        }
        drop(db);
        let db = open(&image).unwrap();
        assert_eq!((contents(&db).unwrap(), db.prepared()), (rows(BEFORE), vec![]));
    }
}

#[test]
fn one_whose_client_has_gone_waits_with_its_locks_in_the_running_database() {
    let db = open(&start()).unwrap();
    let (txn, table) = prepared(&db);
    drop(txn);
    assert_eq!((db.prepared(), db.recover(10)), (vec![xid("p")], vec![]));
    assert!(is_locked(&db));
    let text = db.status_text();
    assert!(text.contains("XA 'p','branch',1 keeps these tables locked: t\n"), "{text}");
    let unknown = db.commit_prepared(&xid("q"));
    assert!(matches!(unknown, Err(Error::UnknownXid(_))), "{unknown:?}");
    db.commit_prepared(&Xid::new(99, b"p", b"branch").unwrap()).unwrap();
    assert_eq!(all_rows(&mut db.begin(), &table).unwrap(), changed());
    assert!(matches!(db.rollback_prepared(&xid("p")), Err(Error::UnknownXid(_))));
    db.run_background().unwrap();
    assert_eq!(contents(&db).unwrap(), changed());
}

#[test]
fn each_found_at_the_startup_is_told_once() {
    let disk = start();
    let db = open(&disk).unwrap();
    let names = ["a", "b", "c"];
    for name in names {
        let table = db.create_table(&spec(name)).unwrap();
        let mut txn = db.begin();
        insert(&mut txn, &table, 1, &row(1)).unwrap();
        txn.prepare(xid(name)).unwrap();
        drop(txn);
    }
    drop(db);
    let db = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
    let told = [db.recover(2), db.recover(2), db.recover(2)];
    assert_eq!(told.each_ref().map(Vec::len), [2, 1, 0]);
    let mut all = told.concat();
    all.sort_by(|a, b| a.global().cmp(b.global()));
    assert_eq!(all, names.map(xid));
    assert_eq!(db.prepared().len(), 3);
}

#[test]
fn who_drops_a_table_waits_for_what_is_prepared_on_it() -> Result<()> {
    let db = open(&start())?;
    drop(prepared(&db));
    let waited = db.wait_for_prepared("t", 1000, &|| false);
    assert!(matches!(waited, Err(Error::LockTimeout)), "{waited:?}");
    let waited = db.wait_for_prepared("t", u64::MAX, &|| true);
    assert!(matches!(waited, Err(Error::Interrupted)), "{waited:?}");
    db.wait_for_prepared("other", 0, &|| false)?;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| db.wait_for_prepared("t", u64::MAX, &|| false));
        db.rollback_prepared(&xid("p"))?;
        waiter.join().unwrap()
    })
}

#[test]
fn a_dropped_table_is_no_obstacle_to_the_end_of_what_was_prepared_on_it() {
    for commits in [true, false] {
        let disk = start();
        let db = open(&disk).unwrap();
        drop(prepared(&db));
        db.drop_table("t").unwrap();
        drop(db);
        let db = open(&disk).unwrap();
        match commits {
            true => db.commit_prepared(&xid("p")).unwrap(),
            false => db.rollback_prepared(&xid("p")).unwrap(),
        }
        db.close().unwrap();
        assert_eq!(db.prepared(), vec![]);
    }
}
