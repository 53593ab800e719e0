//! Power cuts during changes of definitions. Afterwards a table has its old or its new definition,
//! acknowledged changes are kept, and rows and indexes match the definition. Operations that were
//! logged before a change, including undo and purge, are still applied correctly.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{reach, Config, Error, Result};
use cheetah::testing::db::{Db, Env, Read, SeekMode};
use cheetah::testing::table::{Alteration, AlteredIndex, IndexFrom, Table};
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use cheetah_io::time::RealClock;
use std::sync::Arc;
use support::altering::{contents, put};
use support::*;

const ROWS: u64 = 60;

fn row(no: u64) -> Row {
    Row::new(no, if no % 20 == 7 { 2000 } else { 30 })
}

fn index(name: &str, from: usize) -> AlteredIndex {
    AlteredIndex { name: name.into(), from: IndexFrom::Kept(from) }
}

/// Sets the table's mark and its indexes. The list of indexes includes the clustered index.
fn alter(db: &Db, name: &str, indexes: &[(&str, usize)], mark: u8) -> Result<()> {
    let table = db.table(name)?;
    let indexes = indexes.iter().map(|&(name, from)| index(name, from)).collect();
    let (extra, mark) = (vec![mark; 5], vec![mark]);
    db.alter_tables(&[Alteration { extra, mark, ..Alteration::of_indexes(table, indexes) }])
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
    filled(&db, "u");
    db.close().unwrap();
    disk
}

/// The rows of "t" after `steps` steps of the workload.
fn rows_after(steps: u64) -> Rows {
    let mut rows: Rows = (0..ROWS).map(|no| (no, row(no))).collect();
    if steps >= 1 {
        rows.insert(3, row(103));
        rows.remove(&4);
    }
    if steps >= 3 {
        rows.insert(5, row(105));
        rows.insert(200, row(200));
        rows.remove(&6);
    }
    if steps >= 5 {
        rows.insert(201, row(201));
        rows.remove(&3);
    }
    rows
}

/// Steps 1, 3 and 5 change rows of "t". Steps 2 and 4 change definitions. An earlier transaction
/// remains open during steps 1 to 3.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let (mut txn, mut open_one) = (db.begin(), db.begin());
    let t = db.table("t").unwrap();
    put(&mut open_one, &t, 30, Some(&row(30)), Some(&row(130))).unwrap();
    put(&mut open_one, &t, 31, Some(&row(31)), None).unwrap();
    put(&mut txn, &t, 3, Some(&row(3)), Some(&row(103))).unwrap();
    put(&mut txn, &t, 4, Some(&row(4)), None).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(1);
    drop(t);
    // One call alters both tables.
    let of = |name: &str, indexes: &[(&str, usize)]| Alteration {
        extra: b"new".to_vec(),
        mark: vec![1],
        ..Alteration::of_indexes(
            db.table(name).unwrap(),
            indexes.iter().map(|&(name, from)| index(name, from)).collect(),
        )
    };
    db.alter_tables(&[
        of("t", &[("PRIMARY", 0), ("number", 2)]),
        of("u", &[("PRIMARY", 0), ("No", 2), ("name", 1)]),
    ])
    .unwrap();
    disk.acknowledge(2);
    let t = db.table("t").unwrap();
    put(&mut txn, &t, 5, Some(&row(5)), Some(&row(105))).unwrap();
    put(&mut txn, &t, 6, Some(&row(6)), None).unwrap();
    put(&mut txn, &t, 200, None, Some(&row(200))).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(3);
    db.checkpoint().unwrap();
    while db.run_background().unwrap() {}
    open_one.rollback().unwrap();
    drop(t);
    alter(&db, "t", &[("PRIMARY", 0), ("No", 1)], 2).unwrap();
    disk.acknowledge(4);
    let t = db.table("t").unwrap();
    put(&mut txn, &t, 3, Some(&row(103)), None).unwrap();
    put(&mut txn, &t, 201, None, Some(&row(201))).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(5);
    std::mem::forget(txn);
}

fn names(table: &Table) -> Vec<&str> {
    table.indexes().iter().map(|index| index.name.as_str()).collect()
}

fn judge(image: &SimDisk, acknowledged: u64) -> std::result::Result<(), String> {
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    while db.run_background().map_err(|error| error.to_string())? {}
    let (t, u) = (db.table("t").unwrap(), db.table("u").unwrap());
    let (of_t, of_u) = (names(&t), names(&u));
    let step = match (t.mark(), of_t.as_slice(), of_u.as_slice()) {
        ([], ["PRIMARY", "name", "number"], ["PRIMARY", "name", "number"]) => 0..=1,
        ([1], ["PRIMARY", "number"], ["PRIMARY", "No", "name"]) => 2..=3,
        ([2], ["PRIMARY", "No"], ["PRIMARY", "No", "name"]) => 4..=5,
        other => return Err(format!("definitions of different steps: {other:?}")),
    };
    if *step.end() < acknowledged {
        return Err(format!("step {acknowledged} was acknowledged, but the definitions are of {step:?}"));
    }
    let rows = contents(&db, &t)?;
    if !step.clone().any(|step| step >= acknowledged && rows == rows_after(step)) {
        return Err(format!("rows of another step than {step:?}, and {acknowledged} was acknowledged"));
    }
    if contents(&db, &u)?.len() as u64 != ROWS {
        return Err("wrong rows in the other table".into());
    }
    // Existing tables are usable, and no trees or pages of dropped tables remain.
    let mut txn = db.begin();
    put(&mut txn, &t, 300, None, Some(&row(300))).map_err(|error| error.to_string())?;
    txn.commit().map_err(|error| error.to_string())?;
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees");
    match (dropped, db.pages_without_owner()) {
        (Some((_, 0)), 0) => Ok(()),
        left => Err(format!("leftover trees or pages: {left:?}")),
    }
}

#[test]
fn definitions_are_old_or_new_after_every_power_cut() {
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
    let report = report.unwrap();
    assert!(report.images_count > 60 && deeper_count > 10, "{report:?}, {deeper_count} in recoveries");
}

/// Undo records from before the definition change refer to indexes that the change dropped or
/// moved.
#[test]
fn what_came_before_a_change_is_rolled_back_and_purged_after_it() {
    let db = open(&SimDisk::new()).unwrap();
    let t = filled(&db, "t");
    let (mut old, mut writer, mut loser) = (db.begin(), db.begin(), db.begin());
    assert_eq!(all_rows(&mut old, &t).unwrap().len() as u64, ROWS);
    put(&mut writer, &t, 1, Some(&row(1)), Some(&row(101))).unwrap();
    put(&mut writer, &t, 2, Some(&row(2)), None).unwrap();
    writer.commit().unwrap();
    put(&mut loser, &t, 10, Some(&row(10)), Some(&row(110))).unwrap();
    put(&mut loser, &t, 11, Some(&row(11)), None).unwrap();
    put(&mut loser, &t, 500, None, Some(&row(500))).unwrap();
    alter(&db, "t", &[("PRIMARY", 0), ("number", 2)], 1).unwrap();
    assert!(matches!(db.begin().cursor(&t, 0, Read::Consistent).map(drop), Err(Error::NoSuchTable(_))));
    let t = db.table("t").unwrap();
    loser.rollback().unwrap();
    // The old snapshot still counts and finds its rows, also by the remaining secondary index.
    assert_eq!(old.count(&t).unwrap(), Some(ROWS));
    assert_eq!(all_rows(&mut old, &t).unwrap().get(&2), Some(&row(2)));
    let mut cursor = old.cursor(&t, 1, Read::Consistent).unwrap();
    let mut found = cursor.seek(SeekMode::First, b"").unwrap();
    let mut count = 0;
    while found {
        count += 1;
        found = cursor.next().unwrap();
    }
    assert_eq!(count, ROWS);
    drop(cursor);
    old.commit().unwrap();
    while db.run_background().unwrap() {}
    let mut rows: Rows = (0..ROWS).map(|no| (no, row(no))).collect();
    rows.insert(1, row(101));
    rows.remove(&2);
    assert_eq!(contents(&db, &t).unwrap(), rows);
    // The table accepts new changes.
    put(&mut writer, &t, 2, None, Some(&row(2))).unwrap();
    writer.commit().unwrap();
    assert_eq!(contents(&db, &t).unwrap().len() as u64, ROWS);
}

/// If an unlogged operation has used pages in the meantime, redo gives the trees of a new table
/// other pages than before the crash. Redo must ignore the root pages that the log names.
#[test]
fn a_table_that_is_new_and_changed_is_there_after_a_crash() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let other = filled(&db, "other");
    let specs = &spec("other").indexes[1..];
    let build = db.begin().begin_build(&other, specs, false).unwrap();
    filled(&db, "t");
    drop(build);
    alter(&db, "t", &[("PRIMARY", 0), ("No", 2)], 1).unwrap();
    let disk = disk.crash(CrashPolicy::Everything, 1);
    // The second startup reads the result of the first.
    for _ in 0..2 {
        let db = open(&disk).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!((names(&table), table.mark()), (vec!["PRIMARY", "No"], &[1][..]));
        assert_eq!(contents(&db, &table).unwrap().len() as u64, ROWS);
        db.close().unwrap();
    }
}

#[test]
fn a_change_names_indexes_that_there_are_once_and_the_rows_first() {
    let db = open(&SimDisk::new()).unwrap();
    filled(&db, "t");
    for indexes in [
        &[][..],
        &[("number", 2)],
        &[("a", 0), ("b", 0)],
        &[("a", 0), ("b", 3)],
        &[("a", 0), ("b", 1), ("c", 1)],
    ] {
        assert!(alter(&db, "t", indexes, 1).is_err(), "{indexes:?}");
    }
    let table = db.table("t").unwrap();
    assert_eq!((names(&table), table.mark()), (vec!["PRIMARY", "name", "number"], &b""[..]));
    alter(&db, "t", &[("PRIMARY", 0)], 1).unwrap();
    let table = db.table("t").unwrap();
    assert_eq!((names(&table), table.mark(), table.extra()), (vec!["PRIMARY"], &[1][..], &[1; 5][..]));
    assert!(contents(&db, &table).unwrap().len() as u64 == ROWS);
}

/// Purge runs in another thread while definitions change. Purge skips no record, so the trees are
/// empty at the end.
#[test]
fn purge_misses_nothing_while_definitions_change() {
    let env = Env { clock: Arc::new(RealClock::default()), ..env(&SimDisk::new()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    db.create_table(&spec("t")).unwrap();
    db.start_background_threads().unwrap();
    let purged = reach::count("marked records purged");
    let mut txn = db.begin();
    for round in 0..60u64 {
        let t = db.table("t").unwrap();
        let keys = round * ROWS..(round + 1) * ROWS;
        keys.clone().for_each(|no| put(&mut txn, &t, no, None, Some(&Row::new(no, 20))).unwrap());
        txn.commit().unwrap();
        keys.for_each(|no| put(&mut txn, &t, no, Some(&Row::new(no, 20)), None).unwrap());
        txn.commit().unwrap();
        drop(t);
        let number = db.table("t").unwrap().indexes().len() - 1;
        alter(&db, "t", &[("PRIMARY", 0), ("number", number)], round as u8).unwrap();
    }
    drop(txn);
    db.close().unwrap();
    while db.run_background().unwrap() {}
    assert!(reach::count("marked records purged") > purged);
    let t = db.table("t").unwrap();
    assert_eq!(contents(&db, &t).unwrap(), Rows::new());
    let leaves = t.stats().unwrap().iter().map(|index| index.leaf_pages).collect::<Vec<_>>();
    assert_eq!(leaves, [1, 1]);
}
