//! Scenarios named after the rules of the design (C4, C5, C10, H1, H2, H3, H5, H9, M10) that the
//! transactional part must keep. Each scenario once lost data or stopped the engine. The planted
//! bugs that break the rules are here or in `planted.rs`.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{planted, Config, Error};
use cheetah::testing::db::{Db, LockMode, Read, SeekMode, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{explore, CrashPolicy, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use support::*;

/// Returns whether a scenario fails with a planted bug, which must be reached.
fn is_caught(name: &'static str, scenario: impl FnOnce() -> Result<(), String>) -> bool {
    let bug = planted::plant(name);
    let done = catch_unwind(AssertUnwindSafe(scenario));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    !matches!(done, Ok(Ok(())))
}

/// Runs `workload` on a database with one table and cuts power at every moment. The table must have
/// the rows of one of `states`, from the last acknowledged number on.
fn at_every_power_cut(before: &Rows, workload: impl FnOnce(&SimDisk), states: &[Rows]) -> Result<(), String> {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    before.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    drop((txn, table));
    db.close().unwrap();
    drop(db);
    let report = explore(&Plan::quick(1, 400), &disk, workload, |image| {
        let db = open(&image.disk).map_err(|error| error.to_string())?;
        let table = db.table("t").map_err(|error| error.to_string())?;
        let rows = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
        check(&db, &table).map_err(|error| error.to_string())?.map_err(|findings| format!("{findings:?}"))?;
        let allowed = states.iter().skip(image.acknowledged as usize).any(|state| *state == rows);
        if allowed {
            Ok(())
        } else {
            Err(format!("keys {:?}", rows.keys().collect::<Vec<_>>()))
        }
    });
    let report = report.map_err(|failure| failure.to_string())?;
    assert!(report.images_count > 20, "{report:?}");
    Ok(())
}

/// After FLUSH ENGINE LOGS, commits that did not wait for the disk survive a power cut without a
/// checkpoint.
#[test]
fn a_sync_of_the_log_makes_all_commits_durable_and_writes_no_page() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    db.set_flush_log_at_commit(0);
    let count = |name: &str| db.status().into_iter().find(|(found, _)| *found == name).unwrap().1;
    let commit = |key: u64| {
        let mut txn = db.begin();
        insert(&mut txn, &table, key, &Row::new(key, 10)).unwrap();
        txn.commit().unwrap();
    };
    let rows_after_power_cut = || {
        let disk = disk.crash(CrashPolicy::SyncedOnly, 1);
        let db = Db::open_early(env(&disk), Config::tiny()).unwrap();
        let table = db.table("t").unwrap();
        let rows = all_rows(&mut db.begin(), &table).unwrap();
        rows.into_keys().collect::<Vec<_>>()
    };
    let (checkpoints, writes) = (count("pool_checkpoints"), count("pool_writes"));
    commit(1);
    assert_eq!(rows_after_power_cut(), []);
    db.sync_log().unwrap();
    commit(2);
    assert_eq!(rows_after_power_cut(), [1]);
    db.sync_log().unwrap();
    assert_eq!(rows_after_power_cut(), [1, 2]);
    assert_eq!((count("pool_checkpoints"), count("pool_writes")), (checkpoints, writes));
}

/// A transaction receives its number before its first statement is known to succeed. Other
/// transactions may begin and end before its first change. Redo then finds this change when all
/// transactions with smaller numbers seem to have ended. In an earlier version, redo dropped the
/// versions of the transaction's rows when a page was full. The rows then looked like old rows that
/// all transactions see, until the background had rolled them back.
#[test]
fn c2_rows_of_a_transaction_that_changes_something_late_are_not_seen_after_a_crash() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 0, &Row::new(0, 10)).unwrap();
    txn.commit().unwrap();
    let mut late = db.begin();
    let refused = insert(&mut late, &table, 0, &Row::new(1, 10));
    assert!(matches!(refused, Err(Error::DuplicateKey { .. })));
    for key in 1..=40 {
        insert(&mut txn, &table, key, &Row::new(key, 10)).unwrap();
        txn.commit().unwrap();
    }
    (1000..1040).for_each(|key| insert(&mut late, &table, key, &Row::new(key, 10)).unwrap());
    insert(&mut txn, &table, 41, &Row::new(41, 10)).unwrap();
    txn.commit().unwrap();
    std::mem::forget(late);
    let db = Db::open_early(env(&disk.crash(CrashPolicy::SyncedOnly, 1)), Config::tiny()).unwrap();
    let table = db.table("t").unwrap();
    let seen = || all_rows(&mut db.begin(), &table).unwrap().into_keys().collect::<Vec<_>>();
    assert_eq!(seen(), (0..=41).collect::<Vec<_>>());
    while db.run_background().unwrap() {}
    assert_eq!(seen(), (0..=41).collect::<Vec<_>>());
    assert_eq!(check(&db, &table).unwrap(), Ok(42));
}

#[test]
fn c4_a_large_value_left_behind_is_freed_once_though_its_pages_are_used_again() {
    let before = Rows::from([(1, Row::new(1, 5000))]);
    let replaced = Rows::from([(1, Row::new(2, 4000))]);
    let mut after = replaced.clone();
    after.insert(2, Row::new(3, 6000));
    let workload = |disk: &SimDisk| {
        let db = open(disk).unwrap();
        let table = db.table("t").unwrap();
        let mut txn = db.begin();
        update(&mut txn, &table, 1, &Row::new(1, 5000), 1, &Row::new(2, 4000)).unwrap();
        db.checkpoint().unwrap();
        txn.commit().unwrap();
        disk.acknowledge(1);
        db.checkpoint().unwrap();
        insert(&mut txn, &table, 2, &Row::new(3, 6000)).unwrap();
        txn.commit().unwrap();
        disk.acknowledge(2);
        db.checkpoint().unwrap();
    };
    at_every_power_cut(&before.clone(), workload, &[before, replaced, after]).unwrap();
}

/// C5: a transaction that is open in the epoch is rolled back, and another transaction inserts one
/// of its keys.
fn use_a_key_that_was_rolled_back() -> Result<(), String> {
    let taken = Rows::from([(7, Row::new(70, 900))]);
    let workload = |disk: &SimDisk| {
        let db = open(disk).unwrap();
        let table = db.table("t").unwrap();
        let mut first = db.begin();
        (0..20).for_each(|key| insert(&mut first, &table, key, &Row::new(key, 900)).unwrap());
        db.checkpoint().unwrap();
        first.rollback().unwrap();
        let mut second = db.begin();
        insert(&mut second, &table, 7, &Row::new(70, 900)).unwrap();
        second.commit().unwrap();
        disk.acknowledge(1);
        db.checkpoint().unwrap();
    };
    at_every_power_cut(&Rows::new(), workload, &[Rows::new(), taken])
}

#[test]
fn c5_a_key_that_was_rolled_back_and_used_by_another_stays_the_others() {
    assert_eq!(use_a_key_that_was_rolled_back(), Ok(()));
    assert!(is_caught("txn: roll back without logging it", use_a_key_that_was_rolled_back));
}

/// C5: a transaction continues after some of its steps were rolled back, while epochs end.
fn roll_back_to_savepoints_between_epoch_switches() -> Result<(), String> {
    let kept = (0..5).map(|key| (key, Row::new(key, 50))).collect::<Rows>();
    let workload = |disk: &SimDisk| {
        let db = open(disk).unwrap();
        let table = db.table("t").unwrap();
        let mut txn = db.begin();
        (0..5).for_each(|key| insert(&mut txn, &table, key, &Row::new(key, 50)).unwrap());
        for _ in 0..3 {
            let savepoint = txn.savepoint();
            (10..30).for_each(|key| insert(&mut txn, &table, key, &Row::new(key, 600)).unwrap());
            db.checkpoint().unwrap();
            txn.rollback_to(savepoint).unwrap();
        }
        txn.commit().unwrap();
        disk.acknowledge(1);
    };
    at_every_power_cut(&Rows::new(), workload, &[Rows::new(), kept])
}

#[test]
fn c5_an_epoch_switch_in_the_middle_of_rolling_back_to_a_savepoint_is_exact() {
    assert_eq!(roll_back_to_savepoints_between_epoch_switches(), Ok(()));
    assert!(is_caught("txn: roll back without logging it", roll_back_to_savepoints_between_epoch_switches));
}

/// A row with this name.
fn named(name: &str) -> Row {
    Row { number: 1, name: name.into(), text: Vec::new() }
}

/// A database whose table has row 1, named "a".
fn one_named_row() -> (Db, Arc<Table>) {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 1, &named("a")).unwrap();
    txn.commit().unwrap();
    (db, table)
}

/// Gives row 1 another name, uncommitted.
fn rename(txn: &mut Transaction, table: &Arc<Table>, from: &str, to: &str) {
    update(txn, table, 1, &named(from), 1, &named(to)).unwrap();
}

/// Checks that a snapshot finds row 1 by this name, and by no other.
fn is_found_by(txn: &mut Transaction, table: &Arc<Table>, name: &str) -> Result<(), String> {
    let mut found = Vec::new();
    let mut cursor = txn.cursor(table, 1, Read::Consistent).map_err(|error| error.to_string())?;
    let mut is_on_entry = cursor.seek(SeekMode::First, b"").map_err(|error| error.to_string())?;
    while is_on_entry {
        found.push(cursor.secondary_key().to_vec());
        is_on_entry = cursor.next().map_err(|error| error.to_string())?;
    }
    match found.as_slice() {
        [key] if key.strip_suffix(&[0]) == Some(name.as_bytes()) => Ok(()),
        _ => Err(format!("'{name}' is expected, the index has {found:?}")),
    }
}

/// Purges everything that no snapshot sees, and checks the table.
fn purge_and_check(db: &Db, table: &Arc<Table>) -> Result<(), String> {
    while db.run_background().map_err(|error| error.to_string())? {}
    let checked = check(db, table).map_err(|error| error.to_string())?;
    checked.map(drop).map_err(|findings| format!("{findings:?}"))
}

/// C10 (a): an entry is marked as deleted, and revived before purge reaches the mark.
fn purge_what_lives_again() -> Result<(), String> {
    let (db, table) = one_named_row();
    let (mut txn, mut keeps) = (db.begin(), db.begin());
    keeps.take_snapshot().unwrap();
    for (from, to) in [("a", "b"), ("b", "a")] {
        rename(&mut txn, &table, from, to);
        txn.commit().unwrap();
    }
    keeps.commit().unwrap();
    purge_and_check(&db, &table)?;
    is_found_by(&mut txn, &table, "a")
}

#[test]
fn c10_purge_leaves_an_entry_alone_that_lives_again() {
    assert_eq!(purge_what_lives_again(), Ok(()));
    assert!(is_caught("purge: remove what lives again", purge_what_lives_again));
}

/// C10 (a): the entry is revived, and a snapshot sees the revived entry. Another transaction marks
/// the entry again before purge reaches the first mark.
fn purge_what_others_have_marked() -> Result<(), String> {
    let (db, table) = one_named_row();
    let [mut txn, mut keeps, mut old] = [(); 3].map(|()| db.begin());
    keeps.take_snapshot().unwrap();
    for (from, to) in [("a", "b"), ("b", "a")] {
        rename(&mut txn, &table, from, to);
        txn.commit().unwrap();
    }
    old.take_snapshot().unwrap();
    rename(&mut txn, &table, "a", "c");
    txn.commit().unwrap();
    keeps.commit().unwrap();
    purge_and_check(&db, &table)?;
    is_found_by(&mut old, &table, "a")?;
    is_found_by(&mut txn, &table, "c")?;
    old.commit().unwrap();
    purge_and_check(&db, &table)
}

#[test]
fn c10_purge_leaves_a_mark_alone_that_is_anothers() {
    assert_eq!(purge_what_others_have_marked(), Ok(()));
    assert!(is_caught("purge: remove others' marks", purge_what_others_have_marked));
}

/// C10 (b): an entry is marked as deleted, but a snapshot does not see the mark. A transaction
/// revives the entry and is rolled back.
fn roll_back_what_had_revived_an_entry() -> Result<(), String> {
    let (db, table) = one_named_row();
    let (mut txn, mut old) = (db.begin(), db.begin());
    old.take_snapshot().unwrap();
    rename(&mut txn, &table, "a", "b");
    txn.commit().unwrap();
    rename(&mut txn, &table, "b", "a");
    txn.rollback().unwrap();
    is_found_by(&mut old, &table, "a")?;
    is_found_by(&mut txn, &table, "b")?;
    [&mut old, &mut txn].into_iter().for_each(|reader| reader.commit().unwrap());
    purge_and_check(&db, &table)
}

#[test]
fn c10_a_rollback_puts_the_mark_back_that_was_there() {
    assert_eq!(roll_back_what_had_revived_an_entry(), Ok(()));
    assert!(is_caught("rollback: forget the mark that was there", roll_back_what_had_revived_an_entry));
}

#[test]
fn h1_keys_that_nobody_can_compute_from_the_row_are_right_after_redo() {
    use cheetah::testing::table::{NewRow, SecondaryEntry};
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let row = Row::new(1, 10).stored();
    for key in 0..20u64 {
        let weights = format!("weights of {}", key % 3);
        let secondary = [
            SecondaryEntry { index_no: 1, key: weights.as_bytes(), payload: b"", check_unique: false },
            SecondaryEntry {
                index_no: 2,
                key: &(1000 + key).to_be_bytes(),
                payload: b"x",
                check_unique: true,
            },
        ];
        txn.insert(&table, &NewRow { key: &key.to_be_bytes(), row: &row, secondary: &secondary }).unwrap();
    }
    txn.commit().unwrap();
    drop((txn, table, db));
    let db = open(&disk).unwrap();
    let table = db.table("t").unwrap();
    let mut cursor = db.begin().cursor(&table, 1, Read::Consistent).unwrap();
    assert!(cursor.seek(SeekMode::AtLeast, b"weights of 1").unwrap());
    assert_eq!(
        (cursor.secondary_key(), cursor.clustered_key()),
        (&b"weights of 1"[..], &1u64.to_be_bytes()[..])
    );
    assert!(db.check_table(&table, true).unwrap().is_ok());
}

/// H2: rows are inserted before the epoch switch. Some are committed after the switch, and some are
/// never committed. Returns the row count after a power cut.
fn count_rows_across_an_epoch_switch() -> u64 {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let (mut winner, mut loser) = (db.begin(), db.begin());
    (0..100).for_each(|key| insert(&mut winner, &table, key, &Row::new(key, 5)).unwrap());
    db.checkpoint().unwrap();
    winner.commit().unwrap();
    (200..250).for_each(|key| insert(&mut loser, &table, key, &Row::new(key, 5)).unwrap());
    db.checkpoint().unwrap();
    std::mem::forget(loser);
    drop((winner, table, db));
    let db = open(&disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 1)).unwrap();
    db.table("t").unwrap().row_count()
}

#[test]
fn h2_counters_of_rows_that_were_not_committed_at_the_epoch_switch_are_exact() {
    assert_eq!(count_rows_across_an_epoch_switch(), 100);
    let bug = planted::plant("checkpoint: forget the row counters");
    assert!(count_rows_across_an_epoch_switch() != 100 && bug.reached_count() > 0);
}

#[test]
fn h3_a_rollback_succeeds_on_a_full_disk_and_the_engine_goes_on() {
    support::full_disk::rollback_on_a_full_disk().unwrap();
}

/// The bytes of log that are kept while a transaction with a change is open and another transaction
/// waits for its lock.
fn log_kept_beside_an_open_transaction() -> u64 {
    let db = open(&SimDisk::new()).unwrap();
    let [held, own, busy] = ["held", "own", "busy"].map(|name| db.create_table(&spec(name)).unwrap());
    let (mut holder, mut waiter, mut writer) = (db.begin(), db.begin(), db.begin());
    insert(&mut holder, &held, 1, &Row::new(1, 900)).unwrap();
    insert(&mut waiter, &own, 1, &Row::new(1, 50)).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    waiter.set_lock_wait(u64::MAX);
    waiter.interrupt_when({
        let is_done = Arc::clone(&is_done);
        move || is_done.load(SeqCst)
    });
    let gauge = |name: &str| db.status().into_iter().find(|(other, _)| *other == name).unwrap().1;
    let kept = std::thread::scope(|scope| {
        scope.spawn(|| {
            let refused = waiter.lock_table(&held, LockMode::Exclusive);
            assert!(matches!(refused, Err(Error::Interrupted)), "{refused:?}");
        });
        for round in 0..4u64 {
            let keys = round * 20..(round + 1) * 20;
            keys.for_each(|key| insert(&mut writer, &busy, key, &Row::new(key, 300)).unwrap());
            writer.commit().unwrap();
            db.checkpoint().unwrap();
        }
        is_done.store(true, SeqCst);
        gauge("log_position") - gauge("log_oldest_position")
    });
    holder.rollback().unwrap();
    waiter.rollback().unwrap();
    assert_eq!(check(&db, &busy).unwrap(), Ok(80));
    kept
}

#[test]
fn h5_neither_an_open_transaction_nor_one_that_waits_keeps_the_log() {
    let file_bytes = cheetah::testing::base::Config::tiny().log_file_bytes;
    assert!(log_kept_beside_an_open_transaction() <= file_bytes);
    let bug = planted::plant("checkpoint: keep the log of open transactions");
    assert!(log_kept_beside_an_open_transaction() > 2 * file_bytes && bug.reached_count() > 0);
}

#[test]
fn h9_a_root_stays_where_it_is_whatever_grows_above_it() {
    let disk = SimDisk::new();
    let mut db = open(&disk).unwrap();
    db.create_table(&spec("t")).unwrap();
    let root = |db: &cheetah::testing::db::Db| db.table("t").unwrap().indexes()[0].root;
    let first = root(&db);
    for life in 0..4u64 {
        let table = db.table("t").unwrap();
        let mut txn = db.begin();
        let keys = life * 150..(life + 1) * 150;
        keys.for_each(|key| insert(&mut txn, &table, key, &Row::new(key, 60)).unwrap());
        txn.commit().unwrap();
        if life % 2 == 0 {
            db.checkpoint().unwrap();
        }
        drop((txn, table, db));
        db = open(&disk).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!(check(&db, &table).unwrap(), Ok((life + 1) * 150));
        assert_eq!(root(&db), first);
    }
    assert!(db.table("t").unwrap().stats().unwrap()[0].depth >= 3);
}

#[test]
fn m10_pages_of_a_dropped_table_are_freed_though_power_is_cut_in_between() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    (0..200).for_each(|key| insert(&mut txn, &table, key, &Row::new(key, 900)).unwrap());
    txn.commit().unwrap();
    drop((txn, table));
    db.drop_table("t").unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let disk = disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 1);
    let segment_bytes = |disk: &SimDisk| -> usize {
        let segments = disk.paths().into_iter().filter(|path| path.starts_with("seg"));
        segments.map(|path| disk.contents(&path).unwrap().len()).sum()
    };
    let db = open(&disk).unwrap();
    let gauge = |name: &str| db.status().into_iter().find(|(other, _)| *other == name).unwrap().1;
    assert!(gauge("dropped_trees") > 0);
    let before = segment_bytes(&disk);
    db.close().unwrap();
    assert_eq!(gauge("dropped_trees"), 0);
    let after = segment_bytes(&disk);
    assert!(after < before / 2, "{before} bytes of segments before the pages were freed, {after} after");
}

#[test]
fn a_transaction_larger_than_memory_commits_and_rolls_back() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    for commit in [false, true] {
        for key in 0..3000u64 {
            insert(&mut txn, &table, key, &Row::new(key, 100)).unwrap();
        }
        if commit {
            txn.commit().unwrap();
        } else {
            txn.rollback().unwrap();
        }
        assert_eq!(check(&db, &table).unwrap(), Ok(if commit { 3000 } else { 0 }));
    }
}

#[test]
fn threads_of_the_background_and_of_statements_work_side_by_side() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.start_background_threads().unwrap();
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| drop(db.create_table(&spec(name)).unwrap()));
    std::thread::scope(|scope| {
        for name in names {
            let db = db.clone();
            scope.spawn(move || {
                let table = db.table(name).unwrap();
                let mut txn = db.begin();
                for round in 0..40u64 {
                    let key = round * 10;
                    (key..key + 10)
                        .for_each(|key| insert(&mut txn, &table, key, &Row::new(key, 700)).unwrap());
                    if round % 4 == 3 {
                        txn.rollback().unwrap();
                    } else {
                        txn.commit().unwrap();
                    }
                }
            });
        }
    });
    for name in names {
        assert_eq!(check(&db, &db.table(name).unwrap()).unwrap(), Ok(300));
    }
    db.close().unwrap();
    drop(db);
    let db = open(&disk).unwrap();
    for name in names {
        assert_eq!(db.table(name).unwrap().row_count(), 300);
    }
}
