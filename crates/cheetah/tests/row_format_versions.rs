//! Columns that are added and dropped without rewriting the rows. Tests power cuts, planted bugs,
//! tables without rows, and limits. `row_format_versions_model` tests all other cases.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod columns;
mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Error, PageId};
use cheetah::testing::db::{Db, Read};
use cheetah::testing::format::row::{build_row, Locator, RowFormatVersion, VarValue};
use cheetah::testing::table::{NewRow, NewRows, SecondaryEntry};
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use columns::*;
use std::collections::BTreeMap;
use support::open;

const OLD: [Column; 3] = [NUMBER, Column { no: 1, width: 0 }, Column { no: 2, width: 4 }];
const WIDER: [Column; 4] = [NUMBER, Column { no: 3, width: 2 }, OLD[1], OLD[2]];
const OTHER: [Column; 3] = [OLD[2], NUMBER, WIDER[1]];

fn row(key: u64, columns: &[Column]) -> Row {
    let value = |column: &Column| match column.width {
        0 => (false, vec![key as u8; if key % 10 == 7 { 1500 } else { 20 }]),
        width => (key % 3 == 0, key.to_be_bytes()[..width.into()].to_vec()),
    };
    columns.iter().map(|column| (column.no, value(column))).collect()
}

fn fill(db: &Db, keys: std::ops::Range<u64>, columns: &[Column]) {
    let (mut txn, table) = (db.begin(), db.table("t").unwrap());
    for key in keys {
        let row = row(key, columns);
        put(&mut txn, &table, key, None, Some((&row, stored(columns, &row, &BTreeMap::new())))).unwrap();
    }
    txn.commit().unwrap();
}

fn widen() -> NewRows {
    new_rows(&OLD, &WIDER, &Row::from([(3, (false, b"nw".to_vec()))]))
}

fn start() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.create_table(&spec(&OLD)).unwrap();
    fill(&db, 0..40, &OLD);
    db.close().unwrap();
    disk
}

/// Step 1 adds a column. Step 2 writes rows of the new row-format version. Step 3 drops a column
/// with large values and moves other columns. Step 4 writes again. Step 5 rolls back and purges.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let mut loser = db.begin();
    let before = row(30, &OLD);
    put(&mut loser, &db.table("t").unwrap(), 30, Some(&before), None).unwrap();
    alter(&db, widen(), b"1").unwrap();
    disk.acknowledge(1);
    fill(&db, 100..110, &WIDER);
    disk.acknowledge(2);
    alter(&db, new_rows(&WIDER, &OTHER, &Row::new()), b"2").unwrap();
    disk.acknowledge(3);
    db.checkpoint().unwrap();
    fill(&db, 200..210, &OTHER);
    let (mut txn, table) = (db.begin(), db.table("t").unwrap());
    // A row whose large value is in a dropped column.
    let mut old = row(7, &OLD);
    old.insert(3, (false, b"nw".to_vec()));
    put(&mut txn, &table, 7, Some(&old), None).unwrap();
    txn.commit().unwrap();
    disk.acknowledge(4);
    loser.rollback().unwrap();
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
    disk.acknowledge(5);
}

fn judge(image: &SimDisk, acknowledged: u64) -> std::result::Result<(), String> {
    let db = open(image).map_err(|error| format!("the database does not open: {error}"))?;
    while db.run_background().map_err(|error| error.to_string())? {}
    let table = db.table("t").unwrap();
    let (columns, steps) = match table.mark() {
        b"" => (&OLD[..], 0..=0),
        b"1" => (&WIDER[..], 1..=2),
        _ => (&OTHER[..], 3..=5),
    };
    if *steps.end() < acknowledged {
        return Err(format!("the definition of {steps:?}, but {acknowledged} was acknowledged"));
    }
    let found =
        read_all(&mut db.begin(), &table, columns, Read::Consistent).map_err(|error| error.to_string())?;
    let rows_after = |step: u64| {
        let mut rows: Rows = (0..40).map(|key| (key, row(key, &OLD))).collect();
        rows.values_mut().for_each(|row| drop(row.insert(3, (false, b"nw".to_vec()))));
        if step >= 2 {
            rows.extend((100..110).map(|key| (key, row(key, &WIDER))));
        }
        if step >= 4 {
            rows.remove(&7);
        }
        let mut late =
            if step >= 4 { (200..210).map(|key| (key, row(key, &OTHER))).collect() } else { Rows::new() };
        rows.append(&mut late);
        rows.values_mut().for_each(|row| row.retain(|no, _| columns.iter().any(|column| column.no == *no)));
        rows
    };
    // Step 4 writes its rows in two transactions.
    let mut between = rows_after(4);
    between.insert(7, rows_after(3).remove(&7).unwrap());
    let is_known = steps.clone().any(|step| step >= acknowledged && found == rows_after(step))
        || (*steps.end() == 5 && acknowledged < 4 && found == between);
    if !is_known {
        return Err(format!("rows of another step than {steps:?}, and {acknowledged} was acknowledged"));
    }
    check(&db, &table, columns)?;
    fill(&db, 300..303, columns);
    Ok(())
}

#[test]
fn columns_are_old_or_new_after_every_power_cut() {
    let report = explore(&Plan::quick(3, 160), &start(), workload, |image: &Image| {
        judge(&image.disk.snapshot(), image.acknowledged)
    });
    let report = report.unwrap();
    assert!(report.images_count > 60, "{report:?}");
}

/// Runs the workload and checks the table in the end, in the running engine and after a crash that
/// loses nothing.
fn survives(bug: &'static str) -> bool {
    let bug = plant(bug);
    let disk = start();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let done = explore(&Plan::quick(3, 40), &disk, workload, |image: &Image| {
            judge(&image.disk.snapshot(), image.acknowledged)
        });
        done.is_ok()
    }));
    assert!(bug.reached_count() > 0);
    outcome.unwrap_or(false)
}

#[test]
fn a_row_whose_format_is_not_told_is_noticed() {
    assert!(!survives("row-format version: store rows without its number"));
}

#[test]
fn a_row_that_is_handed_out_in_an_older_format_is_noticed() {
    assert!(!survives("row-format version: hand out rows of older ones"));
}

#[test]
fn a_definition_that_is_logged_without_its_older_formats_is_noticed() {
    assert!(!survives("row-format version: log a definition without its older ones"));
}

#[test]
fn formats_that_are_left_out_though_there_are_rows_are_noticed() {
    assert!(!survives("row-format version: leave out those of tables with rows"));
}

#[test]
fn large_values_that_columns_leave_behind_are_noticed() {
    assert!(!survives("row-format version: forget large values of columns that have gone"));
}

#[test]
fn a_table_that_was_emptied_has_one_format_and_too_many_are_refused() {
    let db = open(&SimDisk::new()).unwrap();
    db.create_table(&spec(&OLD)).unwrap();
    fill(&db, 0..20, &OLD);
    let (mut there, mut count) = (true, 0);
    loop {
        let rows = if there { new_rows(&WIDER, &OLD, &Row::new()) } else { widen() };
        let result = if count == 0 { alter(&db, widen(), b"") } else { alter(&db, rows, b"") };
        if let Err(error) = result {
            assert!(matches!(error, Error::Limit { .. }), "{error}");
            break;
        }
        (there, count) = (count == 0 || !there, count + 1);
    }
    assert!(count > 5 && count < 64, "{count}");
    let columns = if there { &WIDER[..] } else { &OLD[..] };
    let table = db.table("t").unwrap();
    assert_eq!(read_all(&mut db.begin(), &table, columns, Read::Consistent).unwrap().len(), 20);
    drop(table);
    let table = db.truncate_table("t").unwrap();
    assert!(table.def().older_formats.is_empty());
    fill(&db, 0..20, columns);
    check(&db, &table, columns).unwrap();
}

/// In an earlier version, such a table could not be loaded, and its scans returned single rows.
#[test]
fn a_table_that_nobody_has_written_gets_no_format_and_can_be_loaded() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.create_table(&spec(&OLD)).unwrap();
    alter(&db, widen(), b"").unwrap();
    assert!(db.table("t").unwrap().def().older_formats.is_empty());
    let disk = disk.crash(CrashPolicy::Random(0.5), 1);
    let db = open(&disk).unwrap();
    let (before, number) = (db.table("t").unwrap(), NUMBER);
    assert_eq!((before.row_format(), before.def().older_formats.len()), (&row_format(&WIDER), 0));
    fill(&db, 0..20, &WIDER);
    assert_eq!(read_all(&mut db.begin(), &before, &WIDER, Read::Consistent).unwrap().len(), 20);
    drop(before);

    let table = db.truncate_table("t").unwrap();
    alter(&db, new_rows(&WIDER, &[number], &Row::new()), b"").unwrap();
    assert!(table.is_dropped());
    let table = db.table("t").unwrap();
    let mut txn = db.begin();
    let mut load = txn.begin_load(&table).unwrap().unwrap();
    let rows: Rows = (0..30).map(|key| (key, row(key, &[number]))).collect();
    for (key, row) in &rows {
        let (bytes, entry) = (stored(&[number], row, &BTreeMap::new()), index_key(row));
        let entry = SecondaryEntry { index_no: 1, key: &entry, payload: b"", check_unique: false };
        txn.load(&mut load, &NewRow { key: &key.to_be_bytes(), row: &bytes, secondary: &[entry] }).unwrap();
    }
    let table = txn.finish_load(&mut load).unwrap();
    txn.commit().unwrap();
    assert_eq!(read_all(&mut db.begin(), &table, &[number], Read::Consistent).unwrap(), rows);
    check(&db, &table, &[number]).unwrap();
    alter(
        &db,
        new_rows(&[number], &OTHER, &Row::from([(2, (false, vec![1; 4])), (3, (true, vec![2; 2]))])),
        b"",
    )
    .unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(table.def().older_formats.len(), 1);
    assert_eq!(read_all(&mut db.begin(), &table, &OTHER, Read::Consistent).unwrap().len(), 30);
    assert!(db.begin().begin_load(&table).unwrap().is_none());
}

#[test]
fn rows_that_were_rolled_back_count_as_rows_of_an_older_format() {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec(&OLD)).unwrap();
    let mut txn = db.begin();
    let row = row(1, &OLD);
    put(&mut txn, &table, 1, None, Some((&row, stored(&OLD, &row, &BTreeMap::new())))).unwrap();
    txn.rollback().unwrap();
    alter(&db, widen(), b"").unwrap();
    assert_eq!(db.table("t").unwrap().def().older_formats.len(), 1);
}

/// In an earlier version, each column had its own range of bits. After a few changes of a table
/// with many columns, these ranges filled a page.
#[test]
fn bits_of_many_columns_are_told_in_few_runs() {
    let columns: Vec<Column> = (0..24).map(|no| Column { no, width: if no == 0 { 8 } else { 1 } }).collect();
    let db = open(&SimDisk::new()).unwrap();
    db.create_table(&spec(&columns)).unwrap();
    fill(&db, 0..3, &columns);
    let (mut more, mut defaults) = (columns.clone(), Row::new());
    for no in 200..203 {
        more.insert(12, Column { no, width: 1 });
        defaults.insert(no, (true, vec![1]));
        let before = more.iter().copied().filter(|column| column.no != no).collect::<Vec<_>>();
        alter(&db, new_rows(&before, &more, &defaults), b"").unwrap();
    }
    let table = db.table("t").unwrap();
    let runs: Vec<_> = table.def().older_formats.iter().map(|older| older.change.bits.len()).collect();
    assert_eq!(runs, [2, 2, 2]);
    assert_eq!(read_all(&mut db.begin(), &table, &more, Read::Consistent).unwrap().len(), 3);
}

#[test]
fn a_change_that_does_not_suit_the_rows_is_refused() {
    let db = open(&SimDisk::new()).unwrap();
    db.create_table(&spec(&OLD)).unwrap();
    let mut rows = widen();
    rows.change.fixed[0] = Some(1);
    assert!(alter(&db, rows, b"").is_err());
    let mut rows = widen();
    let locator = Locator { value_bytes: 5, first_page: PageId(1) }.encode();
    rows.change.defaults.clear();
    build_row(&[0], &[0; 14], &[VarValue::external(&locator)], &mut rows.change.defaults);
    assert!(alter(&db, rows, b"").is_err());
    let rows = NewRows { row_format: RowFormatVersion::opaque(), change: widen().change };
    assert!(alter(&db, rows, b"").is_err());
    assert!(db.table("t").unwrap().def().older_formats.is_empty());
}
