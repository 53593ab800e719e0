//! Loads and power cuts. After a crash, a load is complete or absent, and an acknowledged load is
//! complete. The remains of a crashed load are removed like other dropped trees.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Error, Result, Xid};
use cheetah::testing::db::{Db, Load, Transaction};
use cheetah::testing::table::{NewRow, SecondaryEntry, Table};
use cheetah_io::sim::{explore, Image, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use support::*;

/// The number of loaded rows, and the key of a row that is inserted after the load.
const LOADED: u64 = 260;
const LATER: u64 = 1 << 40;

/// Keys in random order, so that rows and entries must be sorted.
fn key(no: u64) -> u64 {
    no.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn row(no: u64) -> Row {
    Row::new(no, if no % 40 == 7 { 3000 } else { 40 })
}

fn rows() -> Rows {
    (0..LOADED).map(|no| (key(no), row(no))).collect()
}

fn load_row(txn: &mut Transaction, load: &mut Load, key: u64, row: &Row) -> Result<()> {
    let [name, number] = row.keys();
    let secondary = [
        SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
        SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
    ];
    txn.load(load, &NewRow { key: &key.to_be_bytes(), row: &row.stored(), secondary: &secondary })
}

/// Loads the table, with a checkpoint by another thread in the middle.
fn load(db: &Db, txn: &mut Transaction, name: &str) -> Result<Arc<Table>> {
    let table = db.table(name)?;
    let mut to = txn.begin_load(&table)?.unwrap();
    for no in 0..LOADED {
        load_row(txn, &mut to, key(no), &row(no))?;
        if no == LOADED / 2 {
            db.checkpoint()?;
        }
    }
    txn.finish_load(&mut to)
}

/// Like `load`, for a table that other sessions see. The commit makes the rows visible.
fn load_to_commit(db: &Db, txn: &mut Transaction, name: &str) -> Result<()> {
    let mut to = txn.begin_load_to_commit(&db.table(name)?)?.unwrap();
    for no in 0..LOADED {
        load_row(txn, &mut to, key(no), &row(no))?;
        if no == LOADED / 2 {
            db.checkpoint()?;
        }
    }
    txn.finish_load(&mut to).map(drop)
}

/// A database with a table of one row.
fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("other")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 1, &row(1)).unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
    disk
}

/// Works like ALTER TABLE by copy: loads a new table, renames it, and continues to use it.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    db.create_table(&spec("new")).unwrap();
    disk.acknowledge(1);
    let mut txn = db.begin();
    let table = load(&db, &mut txn, "new").unwrap();
    disk.acknowledge(2);
    txn.commit().unwrap();
    db.rename_table("new", "t").unwrap();
    disk.acknowledge(3);
    insert(&mut txn, &table, LATER, &row(5000)).unwrap();
    update(&mut txn, &table, key(3), &row(3), key(3), &Row::new(9000, 3500)).unwrap();
    delete(&mut txn, &table, key(4), &row(4)).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(4);
    db.checkpoint().unwrap();
    std::mem::forget(txn);
}

fn changed() -> Rows {
    let mut rows = rows();
    rows.insert(LATER, row(5000));
    rows.insert(key(3), Row::new(9000, 3500));
    rows.remove(&key(4));
    rows
}

/// The rows of a table, if CHECK finds no fault.
fn contents(db: &Db, name: &str) -> std::result::Result<Rows, String> {
    let table = db.table(name).map_err(|error| error.to_string())?;
    let rows = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    check(db, &table).map_err(|error| error.to_string())?.map_err(|findings| format!("{findings:?}"))?;
    let counted = db.begin().count(&table).map_err(|error| error.to_string())?;
    match counted == Some(rows.len() as u64) {
        true => Ok(rows),
        false => Err(format!("{} rows, counted as {counted:?}", rows.len())),
    }
}

/// Checks an image, given the last acknowledged number.
fn judge(image: &SimDisk, acknowledged: u64) -> std::result::Result<(), String> {
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    while db.run_background().map_err(|error| error.to_string())? {}
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees");
    if dropped != Some(("dropped_trees", 0)) {
        return Err(format!("leftover trees: {dropped:?}"));
    }
    let names = db.table_names();
    let name = names.iter().find(|name| *name != "other");
    let found = match name {
        None if acknowledged == 0 => return Ok(()),
        None => return Err("the table is missing".into()),
        Some(name) => contents(&db, name)?,
    };
    let (empty, loaded, changed) = (Rows::new(), rows(), changed());
    let allowed = match acknowledged {
        0 | 1 => [&empty, &loaded],
        2 => [&loaded, &loaded],
        3 => [&loaded, &changed],
        _ => [&changed, &changed],
    };
    if !allowed.contains(&&found) {
        return Err(format!("{} rows, and {acknowledged} had been acknowledged", found.len()));
    }
    // The table must be usable, or allow another load.
    let table = db.table(name.map_or("", String::as_str)).map_err(|error| error.to_string())?;
    let mut txn = db.begin();
    insert(&mut txn, &table, LATER + 1, &row(7000)).map_err(|error| error.to_string())?;
    txn.commit().map_err(|error| error.to_string())?;
    owned_pages(&db)
}

/// Every page must belong to an existing table, to the catalog or to the undo log.
fn owned_pages(db: &Db) -> std::result::Result<(), String> {
    let strangers = db.pages_without_owner();
    if strangers == 0 {
        Ok(())
    } else {
        Err(format!("{strangers} pages have no owner"))
    }
}

/// Runs the workload and cuts power at all moments. Also cuts power in some recoveries.
fn explore_loads() -> std::result::Result<(), String> {
    let mut deeper_count = 0;
    let report = explore(&Plan::quick(1, 160), &start(), workload, |image: &Image| {
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
fn m10_a_load_is_whole_or_not_there_after_every_power_cut() {
    explore_loads().unwrap();
}

/// Plants a bug, which the exploration must detect.
fn caught(name: &'static str) {
    let bug = plant(name);
    let found =
        catch_unwind(AssertUnwindSafe(explore_loads)).unwrap_or_else(|_| Err("a contradiction".into()));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.expect_err("not caught"));
}

#[test]
fn a_load_that_is_acknowledged_before_the_checkpoint_is_caught() {
    caught("load: return before the checkpoint");
}

#[test]
fn trees_that_are_shown_before_they_are_whole_are_caught() {
    caught("load: show the trees before they are whole");
}

#[test]
fn m10_trees_of_a_load_that_nobody_remembers_are_caught() {
    caught("load: forget the trees that are being built");
}

/// If the checkpoint fails, the statement fails, and the table can be dropped.
#[test]
fn a_load_whose_checkpoint_fails_leaves_a_table_to_drop() {
    let disk = start();
    let db = open(&disk).unwrap();
    db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let table = db.table("t").unwrap();
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    (0..LOADED).for_each(|no| load_row(&mut txn, &mut to, key(no), &row(no)).unwrap());
    disk.inject(cheetah_io::sim::Fault::on(cheetah_io::sim::Op::Write).path("map-").forever());
    assert!(txn.finish_load(&mut to).is_err());
    disk.clear_faults();
    assert!(db.stopped().is_none());
    let table = db.table("t").unwrap();
    assert!(insert(&mut txn, &table, 1, &row(1)).is_err(), "no record may be logged for the table");
    txn.rollback().unwrap();
    db.drop_table("t").unwrap();
    drop((table, to));
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
    drop((txn, db));
    let db = open(&disk).unwrap();
    assert_eq!(db.table_names(), ["other"]);
    owned_pages(&db).unwrap();
}

fn xid() -> Xid {
    Xid::new(1, b"load", b"branch").unwrap()
}

/// Works like INSERT .. SELECT into an empty table with a binary log: loads, prepares and commits,
/// and continues to use the table.
fn workload_to_commit(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    disk.acknowledge(1);
    let mut txn = db.begin();
    load_to_commit(&db, &mut txn, "t").unwrap();
    txn.prepare(xid()).unwrap();
    disk.acknowledge(2);
    db.checkpoint().unwrap();
    txn.commit_ordered();
    txn.commit().unwrap();
    // The commit of a prepared transaction becomes durable with the next commit.
    insert(&mut txn, &table, LATER, &row(5000)).unwrap();
    update(&mut txn, &table, key(3), &row(3), key(3), &Row::new(9000, 3500)).unwrap();
    delete(&mut txn, &table, key(4), &row(4)).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(3);
    db.checkpoint().unwrap();
    std::mem::forget(txn);
}

/// Checks an image. The table must be empty, or as loaded, or as changed afterwards. If the load is
/// prepared, the table cannot be written, and the load ends as `commits` says.
fn judge_to_commit(image: &SimDisk, acknowledged: u64, commits: bool) -> std::result::Result<(), String> {
    let text = |error: Error| error.to_string();
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    let is_prepared = match db.prepared().as_slice() {
        [] => false,
        [found] if *found == xid() && acknowledged <= 2 => true,
        other => return Err(format!("prepared: {other:?}, and {acknowledged} had been acknowledged")),
    };
    if is_prepared {
        let table = db.table("t").map_err(text)?;
        let mut txn = db.begin();
        txn.set_lock_wait(0);
        if !matches!(insert(&mut txn, &table, 1, &row(1)), Err(Error::LockTimeout)) {
            return Err("the table can be written before the decision".into());
        }
        txn.rollback().map_err(text)?;
        if contents(&db, "t")? != Rows::new() {
            return Err("rows are visible before the decision".into());
        }
        match commits {
            true => db.commit_prepared(&xid()).map_err(text)?,
            false => db.rollback_prepared(&xid()).map_err(text)?,
        }
    }
    while db.run_background().map_err(text)? {}
    let names = db.table_names();
    if let Some(name) = names.iter().find(|name| *name != "other" && *name != "t") {
        return Err(format!("leftover table '{name}'"));
    }
    let found = match names.iter().any(|name| name == "t") {
        true => contents(&db, "t")?,
        false if acknowledged == 0 => return Ok(()),
        false => return Err("the table is missing".into()),
    };
    let (empty, loaded, changed) = (Rows::new(), rows(), changed());
    let allowed = match (is_prepared, acknowledged) {
        (true, _) => [if commits { &loaded } else { &empty }].to_vec(),
        (false, 0 | 1) => vec![&empty],
        (false, 2) => vec![&loaded, &changed],
        _ => vec![&changed],
    };
    if !allowed.contains(&&found) {
        return Err(format!("{} rows, and {acknowledged} had been acknowledged", found.len()));
    }
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees");
    if dropped != Some(("dropped_trees", 0)) {
        return Err(format!("leftover trees: {dropped:?}"));
    }
    let table = db.table("t").map_err(text)?;
    let mut txn = db.begin();
    insert(&mut txn, &table, LATER + 1, &row(7000)).map_err(text)?;
    txn.commit().map_err(text)?;
    owned_pages(&db)
}

fn explore_loads_to_commit() -> std::result::Result<(), String> {
    let mut deeper_count = 0;
    let report = explore(&Plan::quick(2, 160), &start(), workload_to_commit, |image: &Image| {
        let commits = image.seed % 2 == 0;
        if image.seed % 16 < 2 {
            let recover = |disk: &SimDisk| {
                disk.acknowledge(image.acknowledged);
                let Ok(db) = open(disk) else { return };
                while db.run_background().unwrap_or(false) {}
            };
            let judge = |image: &Image| judge_to_commit(&image.disk.snapshot(), image.acknowledged, commits);
            let deeper = explore(&Plan::quick(image.seed, 4), &image.disk, recover, judge);
            deeper_count += deeper.map_err(|failure| format!("in a recovery: {failure}"))?.images_count;
        }
        judge_to_commit(&image.disk.snapshot(), image.acknowledged, commits)
    });
    let report = report.map_err(|failure| failure.to_string())?;
    assert!(report.images_count > 60 && deeper_count > 10, "{report:?}, {deeper_count} in recoveries");
    Ok(())
}

#[test]
fn a_load_of_a_transaction_comes_with_its_commit_after_every_power_cut() {
    explore_loads_to_commit().unwrap();
}

/// Like `caught`, for loads of transactions.
fn caught_to_commit(name: &'static str) {
    let bug = plant(name);
    let found = catch_unwind(AssertUnwindSafe(explore_loads_to_commit))
        .unwrap_or_else(|_| Err("a contradiction".into()));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.expect_err("not caught"));
}

#[test]
fn a_commit_that_forgets_its_loads_is_caught() {
    caught_to_commit("load: forget it at the commit");
}

#[test]
fn a_load_that_counts_as_no_change_is_caught() {
    caught_to_commit("commit: take a load for no change");
}

#[test]
fn what_a_startup_keeps_of_a_lost_load_is_caught() {
    caught_to_commit("load: keep what a startup finds of one");
}

#[test]
fn m3_a_table_that_a_prepared_load_will_replace_is_locked_again() {
    caught_to_commit("recovery: serve without the locks");
}

#[test]
fn a_load_of_a_transaction_that_is_promised_before_its_checkpoint_is_caught() {
    caught_to_commit("load: return before the checkpoint");
}
