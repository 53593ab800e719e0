//! Index builds concurrent with writers. The index has the entries that CHECK computes from the
//! rows, whatever was written, rolled back and purged meanwhile. After a power cut, the index is
//! complete, or does not exist and leaves no pages.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, statement_threads, Config, Error, Result, Xid};
use cheetah::testing::db::{Build, Db, Env, Read, SeekMode, Transaction};
use cheetah::testing::format::row::RowFormatVersion;
use cheetah::testing::table::{Alteration, AlteredIndex, BuiltEntries, IndexFrom, IndexSpec, Table};
use cheetah_io::sim::{explore, Image, Plan, SimDisk};
use cheetah_io::time::RealClock;
use cheetah_io::Rng;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use support::altering::{contents, put};
use support::*;

const ROWS: u64 = 70;

fn row(no: u64) -> Row {
    Row::new(no, if no % 20 == 7 { 2000 } else { 30 })
}

/// The indexes to build: one by name, and one by number. The index by number may be unique.
fn specs(unique: bool) -> [IndexSpec; 2] {
    let index = |name: &str, unique, max_key_bytes| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes,
        row_format: RowFormatVersion::opaque(),
    };
    [index("name2", false, 24), index("number2", unique, 8)]
}

fn entries_of(_: &[u8], stored: &[u8], entries: &mut BuiltEntries) -> Result<()> {
    let [name, number] = Row::parse(stored).0.keys();
    entries.add(1, &name, b"p", true);
    entries.add(2, &number, b"", true);
    Ok(())
}

fn begin(txn: &mut Transaction, table: &Arc<Table>, unique: bool) -> Result<Build> {
    txn.begin_build(table, &specs(unique), false)
}

fn run(txn: &mut Transaction, build: &mut Build) -> Result<()> {
    txn.run_build(build, &mut entries_of, &|_, _| ())
}

/// Runs the last round and installs a definition in which the new indexes precede the existing
/// secondary indexes.
fn finish(db: &Db, txn: &mut Transaction, table: &Arc<Table>, build: &mut Build) -> Result<()> {
    txn.finish_build(build, &mut entries_of)?;
    let built = ["name2", "number2"].into_iter().zip(1..);
    let mut indexes = vec![("PRIMARY", IndexFrom::Kept(0))];
    indexes.extend(built.map(|(name, no)| (name, IndexFrom::Built(no))));
    let kept = table.indexes().iter().enumerate().skip(1);
    indexes.extend(kept.map(|(no, index)| (index.name.as_str(), IndexFrom::Kept(no))));
    alter(db, table, build, &indexes)?;
    txn.commit()
}

/// Installs a definition with these indexes.
fn alter(db: &Db, table: &Arc<Table>, build: &Build, indexes: &[(&str, IndexFrom)]) -> Result<()> {
    let index = |(name, from): &(&str, IndexFrom)| AlteredIndex { name: (*name).into(), from: *from };
    let indexes = indexes.iter().map(index).collect();
    let (table, built) = (Arc::clone(table), build.indexes());
    db.alter_tables(&[Alteration { built, mark: vec![1], ..Alteration::of_indexes(table, indexes) }])
}

/// Drops the secondary indexes of the table.
fn drop_indexes(db: &Db, name: &str) -> Result<()> {
    let indexes = vec![AlteredIndex { name: "PRIMARY".into(), from: IndexFrom::Kept(0) }];
    let table = db.table(name)?;
    db.alter_tables(&[Alteration { mark: vec![2], ..Alteration::of_indexes(table, indexes) }])
}

fn filled(db: &Db, name: &str) -> Arc<Table> {
    let table = db.create_table(&spec(name)).unwrap();
    let mut txn = db.begin();
    (0..ROWS).for_each(|no| put(&mut txn, &table, no, None, Some(&row(no))).unwrap());
    txn.commit().unwrap();
    table
}

fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    filled(&db, "t");
    db.close().unwrap();
    disk
}

/// The rows after the concurrent work. The work is done during the scan, between the rounds, and in
/// a transaction that was open at the start of the build.
fn rows_at_end() -> Rows {
    let mut rows: Rows = (0..ROWS).map(|no| (no, row(no))).collect();
    rows.insert(1, row(1001));
    rows.remove(&2);
    rows.insert(900, row(900));
    rows.insert(3, row(1003));
    rows.remove(&5);
    rows.insert(901, Row::new(901, 2500));
    rows
}

fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let t = db.table("t").unwrap();
    let (mut early, mut late, mut loser, mut ddl) = (db.begin(), db.begin(), db.begin(), db.begin());
    put(&mut early, &t, 1, Some(&row(1)), Some(&row(1001))).unwrap();
    put(&mut loser, &t, 10, Some(&row(10)), Some(&row(1010))).unwrap();
    let mut build = begin(&mut ddl, &t, true).unwrap();
    put(&mut early, &t, 2, Some(&row(2)), None).unwrap();
    put(&mut early, &t, 900, None, Some(&row(900))).unwrap();
    early.commit().unwrap();
    disk.acknowledge(1);
    put(&mut late, &t, 3, Some(&row(3)), Some(&row(1003))).unwrap();
    let mut calls = 0;
    let mut while_reading = |key: &[u8], stored: &[u8], entries: &mut BuiltEntries| {
        calls += 1;
        if calls == 20 {
            put(&mut loser, &t, 11, Some(&row(11)), None)?;
            put(&mut loser, &t, 902, None, Some(&row(902)))?;
        }
        entries_of(key, stored, entries)
    };
    ddl.run_build(&mut build, &mut while_reading, &|_, _| ()).unwrap();
    put(&mut late, &t, 5, Some(&row(5)), None).unwrap();
    put(&mut late, &t, 901, None, Some(&Row::new(901, 2500))).unwrap();
    late.commit().unwrap();
    disk.acknowledge(2);
    loser.rollback().unwrap();
    while db.run_background().unwrap() {}
    finish(&db, &mut ddl, &t, &mut build).unwrap();
    disk.acknowledge(3);
    drop((build, t));
    let t = db.table("t").unwrap();
    put(&mut late, &t, 950, None, Some(&row(950))).unwrap();
    late.commit().unwrap();
    disk.acknowledge(4);
    std::mem::forget(ddl);
}

fn judge(image: &SimDisk, acknowledged: u64) -> std::result::Result<(), String> {
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    while db.run_background().map_err(|error| error.to_string())? {}
    let t = db.table("t").unwrap();
    let is_built = t.indexes().len() == 5;
    if acknowledged >= 3 && !is_built {
        return Err("the index is missing".into());
    }
    let rows = contents(&db, &t)?;
    let mut last = rows_at_end();
    if is_built && acknowledged == 4 {
        last.insert(950, row(950));
    }
    if acknowledged == 3 && rows.contains_key(&950) {
        last.insert(950, row(950));
    }
    if (is_built || acknowledged == 2) && rows != last {
        return Err(format!("{} rows, the index is built: {is_built}", rows.len()));
    }
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees");
    match (dropped, db.pages_without_owner()) {
        (Some((_, 0)), 0) => Ok(()),
        left => Err(format!("leftover trees or pages: {left:?}")),
    }
}

fn explore_builds() -> std::result::Result<(), String> {
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
fn an_index_is_whole_or_not_there_after_every_power_cut() {
    explore_builds().unwrap();
    assert!(reach::count("row changed while an index was built") > 0);
}

/// Plants a bug, which the exploration must detect.
fn caught(name: &'static str) {
    let bug = plant(name);
    let found =
        catch_unwind(AssertUnwindSafe(explore_builds)).unwrap_or_else(|_| Err("a contradiction".into()));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.expect_err("not caught"));
}

#[test]
fn an_index_that_is_taken_before_the_checkpoint_is_caught() {
    caught("build: return before the checkpoint");
}

#[test]
fn m10_trees_of_a_build_that_nobody_remembers_are_caught() {
    caught("build: forget the trees that are being built");
}

#[test]
fn changes_that_nobody_looks_at_are_caught() {
    caught("build: do not look at what has changed");
}

/// Writers, purge and checkpoints run in their own threads. Meanwhile indexes are built and dropped
/// repeatedly.
#[test]
fn an_index_that_is_built_among_writers_equals_one_built_from_the_rows() {
    const KEYS: u64 = 90;
    let env = Env { clock: Arc::new(RealClock::default()), ..env(&SimDisk::new()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    filled(&db, "t");
    drop_indexes(&db, "t").unwrap();
    db.start_background_threads().unwrap();
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = |seed: u64| {
        let mut rng = Rng::new(seed);
        while !is_over.load(Ordering::Relaxed) {
            let mut txn = db.begin();
            let mut done = Ok(());
            for _ in 0..1 + rng.below(6) {
                done = done.and_then(|()| change_one(&db, &mut txn, &mut rng, KEYS));
            }
            let _ = if done.is_ok() && rng.below(3) > 0 { txn.commit() } else { txn.rollback() };
            written.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let write = &write;
        (1..=3).for_each(|seed| drop(scope.spawn(move || write(seed))));
        let over = RaisedAtEnd(&is_over);
        for round in 0..60 {
            let before = written.load(Ordering::Relaxed);
            let table = db.table("t").unwrap();
            let mut txn = db.begin();
            let mut build = begin(&mut txn, &table, false).unwrap();
            until("five more transactions have ended", || written.load(Ordering::Relaxed) >= before + 5);
            run(&mut txn, &mut build).unwrap();
            until("fifteen more transactions have ended", || written.load(Ordering::Relaxed) >= before + 15);
            finish(&db, &mut txn, &table, &mut build)
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
            let table = db.table("t").unwrap();
            txn.lock_table(&table, cheetah::testing::db::LockMode::Shared).unwrap();
            contents_of_locked(&db, &mut txn, &table);
            txn.commit().unwrap();
            drop_indexes(&db, "t").unwrap();
        }
        drop(over);
    });
    assert!(reach::count("row changed while an index was built") > 0);
    db.close().unwrap();
}

/// One thread fills the sorter while another reads rows. One thread merges while another builds the
/// tree.
#[test]
fn an_index_of_many_rows_has_them_all_and_refuses_a_key_that_is_there_twice() {
    const MANY: u64 = 100_000;
    let db = Db::open(env(&SimDisk::new()), Config::default()).unwrap();
    db.create_table(&spec("t")).unwrap();
    drop_indexes(&db, "t").unwrap();
    let t = db.table("t").unwrap();
    let mut txn = db.begin();
    (0..MANY).for_each(|no| put(&mut txn, &t, no, None, Some(&Row::new(no, 9))).unwrap());
    txn.commit().unwrap();
    // The order of the index differs from the order of the rows.
    let key_of = |stored: &[u8], part: u64| (Row::parse(stored).0.number / part).to_le_bytes().repeat(10);
    let index = IndexSpec {
        name: "long".into(),
        unique: true,
        max_key_bytes: 80,
        row_format: RowFormatVersion::opaque(),
    };
    for part in [2, 1] {
        let mut entries_of = |_: &[u8], stored: &[u8], entries: &mut BuiltEntries| {
            entries.add(1, &key_of(stored, part), b"p", true);
            Ok(())
        };
        let mut build = txn.begin_build(&t, std::slice::from_ref(&index), false).unwrap();
        let built = txn.run_build(&mut build, &mut entries_of, &|_, _| ());
        if part == 2 {
            let error = built.unwrap_err();
            assert!(matches!(error, Error::DuplicateKey { index_no: 1, .. }), "{error}");
            txn.rollback().unwrap();
            continue;
        }
        built.unwrap();
        txn.finish_build(&mut build, &mut entries_of).unwrap();
        alter(&db, &t, &build, &[("PRIMARY", IndexFrom::Kept(0)), ("long", IndexFrom::Built(1))]).unwrap();
        txn.commit().unwrap();
    }
    let report = db.check_table_with(&db.table("t").unwrap(), &mut |_, stored, expected| {
        let (key, payload) = (key_of(stored, 1), b"p".to_vec());
        expected.push(cheetah::testing::db::ExpectedEntry { index_no: 1, key, payload });
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.is_ok() && report.rows == MANY, "{} rows, {:?}", report.rows, report.findings);
    let helped = ["a thread fills sorters", "a thread merges ahead"].map(reach::count);
    assert!(statement_threads() == 1 || helped.iter().all(|count| *count > 0), "{helped:?}");
}

/// Runs CHECK with the table locked against writers.
fn contents_of_locked(db: &Db, txn: &mut Transaction, table: &Arc<Table>) {
    let count = all_rows(txn, table).unwrap().len();
    let report = db.check_table_with(table, &mut |_, stored, expected| {
        let all = support::altering::entries(table, &Row::parse(stored).0);
        let entry = |(index_no, key, payload)| cheetah::testing::db::ExpectedEntry { index_no, key, payload };
        expected.extend(all.into_iter().map(entry));
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.is_ok(), "{:?}", report.findings);
    assert_eq!(report.rows, count as u64);
}

fn change_one(db: &Db, txn: &mut Transaction, rng: &mut Rng, keys: u64) -> Result<()> {
    let table = db.table("t")?;
    let key = rng.below(keys);
    let old = read_as(txn, &table, key, Read::Exclusive)?;
    let new =
        (rng.below(3) > 0).then(|| Row::new(rng.below(1000), if rng.below(10) == 0 { 1500 } else { 20 }));
    match (&old, &new) {
        (None, None) => Ok(()),
        _ => put(txn, &table, key, old.as_ref(), new.as_ref()),
    }
}

/// A transaction that is older than the build has changed this table or another table. It ends
/// before the last round, or remains open after that round.
fn builds_beside_a_long_transaction() -> std::result::Result<(), String> {
    for ends in [true, false] {
        let db = open(&SimDisk::new()).unwrap();
        let (t, other) = (filled(&db, "t"), filled(&db, "other"));
        drop_indexes(&db, "t").unwrap();
        let t = db.table("t").unwrap_or(t);
        let (mut long, mut ddl) = (db.begin(), db.begin());
        let written = if ends { &t } else { &other };
        put(&mut long, written, 3, Some(&row(3)), Some(&Row::new(900, 30))).unwrap();
        put(&mut long, written, 4, Some(&row(4)), None).unwrap();
        let mut build = begin(&mut ddl, &t, false).unwrap();
        run(&mut ddl, &mut build).unwrap();
        if ends {
            long.commit().unwrap();
        }
        finish(&db, &mut ddl, &t, &mut build).map_err(|error| error.to_string())?;
        let t = db.table("t").unwrap();
        let report = db
            .check_table_with(&t, &mut |_, stored, expected| {
                let all = support::altering::entries(&t, &Row::parse(stored).0);
                let entry =
                    |(index_no, key, payload)| cheetah::testing::db::ExpectedEntry { index_no, key, payload };
                expected.extend(all.into_iter().map(entry));
                Ok(())
            })
            .unwrap();
        if !report.is_ok() {
            return Err(format!("{:?}", report.findings));
        }
    }
    Ok(())
}

#[test]
fn an_index_has_the_rows_of_a_transaction_that_was_open_when_its_building_began() {
    builds_beside_a_long_transaction().unwrap();
}

#[test]
fn transactions_that_were_open_and_are_forgotten_are_caught() {
    let bug = plant("build: forget who was open");
    let found = builds_beside_a_long_transaction();
    assert!(bug.reached_count() > 0);
    found.expect_err("not caught");
}

#[test]
fn a_transaction_that_has_written_neither_builds_nor_disables_indexes() {
    let db = open(&SimDisk::new()).unwrap();
    let t = filled(&db, "t");
    let mut txn = db.begin();
    put(&mut txn, &t, 3, Some(&row(3)), None).unwrap();
    let refused = |error: Error| assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    refused(begin(&mut txn, &t, false).unwrap_err());
    refused(txn.disable_indexes(&t, &[1]).unwrap_err());
    txn.rollback().unwrap();
    begin(&mut txn, &t, false).unwrap();
}

/// A build must detect the lock of a prepared transaction before it does its work, not afterwards.
#[test]
fn a_build_waits_for_prepared_transactions_first() {
    let db = open(&SimDisk::new()).unwrap();
    let t = filled(&db, "t");
    let xid = Xid::new(1, b"forgotten", b"").unwrap();
    let (mut prepared, mut ddl) = (db.begin(), db.begin());
    put(&mut prepared, &t, 3, Some(&row(3)), None).unwrap();
    prepared.prepare(xid).unwrap();
    drop(prepared);
    ddl.set_lock_wait(0);
    let mut build = begin(&mut ddl, &t, false).unwrap();
    assert!(matches!(run(&mut ddl, &mut build), Err(Error::LockTimeout)));
    db.rollback_prepared(&xid).unwrap();
    let mut build = begin(&mut ddl, &t, false).unwrap();
    run(&mut ddl, &mut build).unwrap();
}

/// The new index has no versions for older snapshots. These snapshots cannot read the index, but
/// they can read the rest of the table.
fn older_snapshot_reads_the_index() -> Result<u64> {
    let db = open(&SimDisk::new()).unwrap();
    let t = filled(&db, "t");
    let (mut old, mut writer, mut ddl) = (db.begin(), db.begin(), db.begin());
    assert_eq!(all_rows(&mut old, &t).unwrap().len() as u64, ROWS);
    put(&mut writer, &t, 1, Some(&row(1)), None).unwrap();
    writer.commit().unwrap();
    let mut build = begin(&mut ddl, &t, false).unwrap();
    run(&mut ddl, &mut build).unwrap();
    finish(&db, &mut ddl, &t, &mut build).unwrap();
    let t = db.table("t").unwrap();
    assert_eq!(all_rows(&mut old, &t).unwrap().len() as u64, ROWS);
    let count = |txn: &mut Transaction, index_no: usize| {
        let mut cursor = txn.cursor(&t, index_no, Read::Consistent)?;
        let (mut found, mut count) = (cursor.seek(SeekMode::First, b"")?, 0);
        while found {
            count += 1;
            found = cursor.next()?;
        }
        Ok(count)
    };
    assert_eq!(count(&mut old, 3).unwrap(), ROWS, "an existing index");
    assert_eq!(count(&mut db.begin(), 1).unwrap(), ROWS - 1);
    count(&mut old, 1)
}

#[test]
fn m2_an_index_is_refused_to_snapshots_that_are_older() {
    assert!(matches!(older_snapshot_reads_the_index(), Err(Error::TableChanged(_))));
    let bug = plant("alter: show an index to older snapshots");
    assert_ne!(older_snapshot_reads_the_index().unwrap(), ROWS);
    assert!(bug.reached_count() > 0);
}

#[test]
fn keys_that_come_twice_are_refused_with_their_row() {
    let db = open(&SimDisk::new()).unwrap();
    filled(&db, "t");
    drop_indexes(&db, "t").unwrap();
    let t = db.table("t").unwrap();
    let (mut writer, mut ddl) = (db.begin(), db.begin());
    // The duplicate is among the rows that the scan reads.
    put(&mut writer, &t, 500, None, Some(&Row::new(7, 2000))).unwrap();
    writer.commit().unwrap();
    let mut build = begin(&mut ddl, &t, true).unwrap();
    let error = run(&mut ddl, &mut build).unwrap_err();
    assert!(
        matches!(&error, Error::DuplicateKey { index_no: 2, existing } if existing == &7u64.to_be_bytes()),
        "{error}"
    );
    let (key, refused) = build.refused().unwrap();
    assert_eq!((key, Row::parse(refused)), (&500u64.to_be_bytes()[..], (Row::new(7, 2000), false)));
    drop(build);
    put(&mut writer, &t, 500, Some(&Row::new(7, 2000)), None).unwrap();
    writer.commit().unwrap();
    // The duplicate is found in a later round. Rows that swap their keys are no duplicates.
    let mut build = begin(&mut ddl, &t, true).unwrap();
    run(&mut ddl, &mut build).unwrap();
    put(&mut writer, &t, 8, Some(&row(8)), Some(&Row::new(9, 10))).unwrap();
    put(&mut writer, &t, 9, Some(&row(9)), Some(&Row::new(8, 10))).unwrap();
    writer.commit().unwrap();
    ddl.finish_build(&mut build, &mut entries_of).unwrap();
    ddl.rollback().unwrap();
    put(&mut writer, &t, 600, None, Some(&Row::new(9, 2000))).unwrap();
    writer.commit().unwrap();
    let error = ddl.finish_build(&mut build, &mut entries_of).unwrap_err();
    assert!(matches!(error, Error::DuplicateKey { index_no: 2, .. }), "{error}");
    assert_eq!(build.refused().unwrap().0, &600u64.to_be_bytes()[..]);
    drop(build);
    ddl.rollback().unwrap();
    while db.run_background().unwrap() {}
    assert_eq!(db.pages_without_owner(), 0);
}

#[test]
fn nothing_but_what_was_built_to_its_end_can_be_taken() {
    let db = open(&SimDisk::new()).unwrap();
    let t = filled(&db, "t");
    let mut ddl = db.begin();
    let mut build = begin(&mut ddl, &t, true).unwrap();
    assert!(build.indexes().is_none());
    run(&mut ddl, &mut build).unwrap();
    assert!(build.indexes().is_none());
    ddl.finish_build(&mut build, &mut entries_of).unwrap();
    let other = filled(&db, "u");
    let indexes = vec![
        AlteredIndex { name: "PRIMARY".into(), from: IndexFrom::Kept(0) },
        AlteredIndex { name: "a".into(), from: IndexFrom::Built(1) },
    ];
    let (extra, mark) = (Vec::new(), Vec::new());
    let alteration =
        Alteration { built: build.indexes(), extra, mark, ..Alteration::of_indexes(other, indexes) };
    assert!(
        db.alter_tables(std::slice::from_ref(&alteration)).is_err(),
        "an index of another table was accepted"
    );
    let refused = AlteredIndex { name: "a".into(), from: IndexFrom::Built(3) };
    let indexes = vec![alteration.indexes[0].clone(), refused];
    assert!(
        db.alter_tables(&[Alteration { table: t, indexes, ..alteration }]).is_err(),
        "an index that was not built was accepted"
    );
}
