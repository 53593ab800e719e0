//! Dictionaries in a database: power cuts, damaged dictionaries, and the threads that make
//! dictionaries.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{planted, Config, Result};
use cheetah::testing::db::{Db, Transaction};
use cheetah::testing::format::image::{glance, is_intact, ImageHeader, Primer};
use cheetah::testing::format::page::PageKind;
use cheetah::testing::format::segment_header::HEADER_BYTES;
use cheetah::testing::table::{NewRow, SecondaryEntry, Table};
use cheetah_io::sim::{explore, CrashPolicy, Image, Plan, SimDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use support::*;

/// The number of rows in a table.
const ROWS: u64 = 120;
/// The number of rows in a transaction.
const PART: u64 = 20;

/// A row of words that many rows share, but that seldom occur twice in one row.
fn row(no: u64) -> Row {
    let word = |i: u64| (no.wrapping_mul(31) + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 63;
    let mut text =
        (0..16).map(|i| format!("{:x} ", word(i).wrapping_mul(0xd6e8_feb8_6659_fd93))).collect::<String>();
    if no % 24 == 5 {
        text = text.repeat(4);
    }
    Row { text: text.into_bytes(), ..Row::new(no, 0) }
}

fn rows(from: u64, to: u64) -> Rows {
    (from..to).map(|no| (no, row(no))).collect()
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|(known, _)| *known == name).unwrap().1
}

fn insert_part(db: &Db, table: &Arc<Table>, from: u64) -> Result<()> {
    let mut txn = db.begin();
    (from..from + PART).try_for_each(|no| insert(&mut txn, table, no, &row(no)))?;
    txn.commit()
}

/// Inserts rows while the background makes a dictionary, makes a checkpoint, and inserts more rows.
/// Then drops the table and loads another one.
fn workload(disk: &SimDisk) {
    let db = open(disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    disk.acknowledge(1);
    for part in 0..ROWS / PART {
        insert_part(&db, &table, part * PART).unwrap();
        disk.acknowledge(2 + part);
        db.run_background().unwrap();
    }
    db.checkpoint().unwrap();
    assert!(status(&db, "pool_dictionaries") > 0, "no dictionary was made");
    insert_part(&db, &table, ROWS).unwrap();
    disk.acknowledge(2 + ROWS / PART);
    db.checkpoint().unwrap();
    drop(table);
    db.drop_table("t").unwrap();
    disk.acknowledge(3 + ROWS / PART);
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
    assert!(named_count(disk) > 10, "no image names a dictionary: the test proves nothing");
    let loaded = db.create_table(&spec("loaded")).unwrap();
    load(&db, &loaded, 0..ROWS, || ());
    disk.acknowledge(4 + ROWS / PART);
    db.checkpoint().unwrap();
}

/// The number of power cuts after which images of the table name a dictionary and all rows are
/// readable.
static READ_BESIDE: AtomicU64 = AtomicU64::new(0);

fn judge(image: &Image) -> std::result::Result<(), String> {
    let db = open(&image.disk.snapshot()).map_err(|error| format!("the database does not open: {error}"))?;
    while db.run_background().map_err(|error| error.to_string())? {}
    if db.pages_without_owner() > 0 {
        return Err("pages have no owner".into());
    }
    let dropped = 3 + ROWS / PART;
    judge_load(&db, image.acknowledged > dropped)?;
    let Ok(table) = db.table("t") else {
        let may_be_gone = image.acknowledged == 0 || image.acknowledged + 1 >= dropped;
        let left = db.table("loaded").map_or(status(&db, "pool_dictionaries"), |_| 0);
        return if may_be_gone && left == 0 { Ok(()) } else { Err(format!("no table, {left} dictionaries")) };
    };
    let found = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    check(&db, &table).map_err(|error| error.to_string())?.map_err(|findings| format!("{findings:?}"))?;
    let parts = found.len() as u64 / PART;
    let is_allowed = parts + 2 > image.acknowledged.min(dropped - 1) && parts <= image.acknowledged;
    if found != rows(0, parts * PART) || !is_allowed {
        return Err(format!("{} rows, and {} had been acknowledged", found.len(), image.acknowledged));
    }
    READ_BESIDE.fetch_add(u64::from(named_count(&image.disk.snapshot()) > 0), Relaxed);
    // The table must be usable.
    insert_part(&db, &table, 1000).map_err(|error| error.to_string())?;
    db.checkpoint().map_err(|error| error.to_string())
}

/// The loaded table must be complete or not exist.
fn judge_load(db: &Db, is_acknowledged: bool) -> std::result::Result<(), String> {
    let Ok(table) = db.table("loaded") else {
        return if is_acknowledged { Err("the loaded table is missing".into()) } else { Ok(()) };
    };
    let found = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    check(db, &table).map_err(|error| error.to_string())?.map_err(|findings| format!("{findings:?}"))?;
    let is_whole = found == rows(0, ROWS) || (found.is_empty() && !is_acknowledged);
    if is_whole {
        Ok(())
    } else {
        Err(format!("{} loaded rows", found.len()))
    }
}

#[test]
fn every_power_cut_around_a_dictionary_leaves_all_rows_readable() {
    let report = explore(&Plan::quick(1, 120), &SimDisk::new(), workload, judge);
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.images_count > 200, "{}", report.images_count);
    assert!(READ_BESIDE.load(Relaxed) > 20, "{READ_BESIDE:?}");
}

/// If the epoch state lists no dictionaries, their pages have no owner, and CHECK reports them.
/// Breaks H2: the epoch state must list the dictionaries of trees.
#[test]
fn an_epoch_lists_the_dictionaries() {
    let is_right = || {
        let db = open(&closed()).unwrap();
        let table = db.table("t").unwrap();
        check(&db, &table).unwrap().is_ok()
    };
    assert!(is_right());
    let bug = planted::plant("checkpoint: forget the dictionaries");
    assert!(!is_right());
    assert!(bug.reached_count() > 0);
}

/// A closed database with a table that has a dictionary.
fn closed() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    (0..ROWS / PART).for_each(|part| insert_part(&db, &table, part * PART).unwrap());
    db.run_background().unwrap();
    assert!(status(&db, "pool_dictionaries") > 0);
    db.close().unwrap();
    drop(table);
    drop(db);
    disk
}

/// The images in a segment file with their offsets.
fn images(bytes: &[u8], segment: u64) -> Vec<(usize, ImageHeader)> {
    let mut found = Vec::new();
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        let image =
            glance(&bytes[at..]).and_then(|(length, _, crc)| Some((bytes.get(at..at + length)?, crc)));
        match image.filter(|(image, crc)| is_intact(image, segment << 32 | at as u64, *crc)) {
            Some((image, _)) => {
                found.push((at, ImageHeader::read(image).unwrap()));
                at += image.len();
            }
            None => at += 64,
        }
    }
    found
}

/// A segment file: its path, its bytes, and its images with their offsets.
type Segment = (String, Vec<u8>, Vec<(usize, ImageHeader)>);

fn segments(disk: &SimDisk) -> Vec<Segment> {
    let paths = disk.paths().into_iter().filter(|path| path.starts_with("seg/"));
    let segment = |path: String| {
        let number = path["seg/".len()..].trim_end_matches(".seg").parse().unwrap();
        let bytes = disk.contents(&path).unwrap();
        let images = images(&bytes, number);
        (path, bytes, images)
    };
    paths.map(segment).collect()
}

/// The number of images that name a dictionary.
fn named_count(disk: &SimDisk) -> usize {
    let images = segments(disk).into_iter().flat_map(|(_, _, images)| images);
    images.filter(|(_, header)| header.dictionary.is_some()).count()
}

/// Damages all dictionaries on the disk.
fn damage_dictionaries(disk: &SimDisk) {
    let mut count = 0;
    for (path, mut bytes, images) in segments(disk) {
        for (at, _) in images.iter().filter(|(_, header)| header.kind == PageKind::Dictionary) {
            bytes[at + 100] ^= 1;
            count += 1;
        }
        disk.put(&path, &bytes).unwrap();
    }
    assert!(count > 0);
}

#[test]
fn a_damaged_dictionary_is_found_and_told_of_and_is_its_tables_trouble() {
    let disk = closed();
    let db = open(&disk).unwrap();
    let other = db.create_table(&spec("other")).unwrap();
    insert_part(&db, &other, 0).unwrap();
    db.close().unwrap();
    drop((other, db));
    assert!(named_count(&disk) > 2);
    damage_dictionaries(&disk);
    let db = open(&disk).unwrap();
    let table = db.table("t").unwrap();
    let refused = all_rows(&mut db.begin(), &table).unwrap_err().to_string();
    assert!(refused.contains("dictionary in page"), "{refused}");
    let found = check(&db, &table).map_or_else(|error| vec![error.to_string()], |found| found.unwrap_err());
    assert!(found.iter().any(|finding| finding.contains("dictionary")), "{found:?}");
    let other = db.table("other").unwrap();
    assert_eq!(check(&db, &other).unwrap(), Ok(PART));
    drop(table);
    db.drop_table("t").unwrap_or_else(|error| panic!("{error}"));
    while db.run_background().unwrap() {}
    assert_eq!((status(&db, "pool_dictionaries"), db.pages_without_owner()), (0, 0));
    db.checkpoint().unwrap();
}

/// Redo finds a page that cannot be read without the damaged dictionary. The table is quarantined,
/// and all other tables remain usable.
#[test]
fn redo_over_a_damaged_dictionary_quarantines_the_table() {
    let disk = closed();
    let db = open(&disk).unwrap();
    let other = db.create_table(&spec("other")).unwrap();
    let mut txn = db.begin();
    delete(&mut txn, &db.table("t").unwrap(), 3, &row(3)).unwrap();
    txn.commit().unwrap();
    insert_part(&db, &other, 0).unwrap();
    let disk = disk.crash(CrashPolicy::SyncedOnly, 1);
    drop((txn, other, db));
    damage_dictionaries(&disk);
    let db = open(&disk).unwrap();
    let quarantined = db.table("t").unwrap();
    let refused = all_rows(&mut db.begin(), &quarantined).unwrap_err().to_string();
    assert!(refused.contains("dictionary in page"), "{refused}");
    assert_eq!(check(&db, &db.table("other").unwrap()).unwrap(), Ok(PART));
    drop(quarantined);
    db.truncate_table("t").unwrap();
    while db.run_background().unwrap() {}
    assert_eq!((status(&db, "pool_dictionaries"), db.pages_without_owner()), (0, 0));
    insert_part(&db, &db.table("t").unwrap(), 0).unwrap();
}

#[test]
fn a_dictionary_stays_in_use_after_a_startup_and_goes_with_truncation() {
    let disk = closed();
    let db = open(&disk).unwrap();
    let table = db.table("t").unwrap();
    let made = status(&db, "pool_dictionaries");
    assert_eq!(all_rows(&mut db.begin(), &table).unwrap(), rows(0, ROWS));
    insert_part(&db, &table, ROWS).unwrap();
    db.close().unwrap();
    drop((table, db));
    let db = open(&disk).unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(all_rows(&mut db.begin(), &table).unwrap(), rows(0, ROWS + PART));
    assert_eq!(check(&db, &table).unwrap(), Ok(ROWS + PART));
    assert!(status(&db, "pool_dictionaries") >= made);
    drop(table);
    db.truncate_table("t").unwrap();
    while db.run_background().unwrap() {}
    assert_eq!(status(&db, "pool_dictionaries"), 0);
}

fn load_row(txn: &mut Transaction, load: &mut cheetah::testing::db::Load, no: u64) -> Result<()> {
    let row = row(no);
    let [name, number] = row.keys();
    let secondary = [
        SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
        SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
    ];
    txn.load(load, &NewRow { key: &no.to_be_bytes(), row: &row.stored(), secondary: &secondary })
}

/// Loads rows, and calls `look` before the load ends.
fn load(db: &Db, table: &Arc<Table>, keys: impl Iterator<Item = u64>, look: impl FnOnce()) {
    let mut txn = db.begin();
    let mut load = txn.begin_load(table).unwrap().unwrap();
    for no in keys {
        load_row(&mut txn, &mut load, no).unwrap();
        // Does the work of the background threads.
        db.run_background().unwrap();
    }
    look();
    txn.finish_load(&mut load).unwrap();
    txn.commit().unwrap();
}

/// Returns two numbers, for trees with a dictionary: the leaves and large values on disk that name
/// a dictionary, and those that name none.
fn counts(disk: &SimDisk) -> [usize; 2] {
    let mut newest = BTreeMap::new();
    for (_, header) in segments(disk).into_iter().flat_map(|(_, _, images)| images) {
        newest.insert(header.pid, header);
    }
    let trees: BTreeSet<_> =
        newest.values().filter(|header| header.dictionary.is_some()).map(|header| header.tree).collect();
    let serves = |header: &&ImageHeader| Primer::serves(header.kind) && trees.contains(&header.tree);
    let (named, plain): (Vec<&ImageHeader>, Vec<&ImageHeader>) =
        newest.values().filter(serves).partition(|header| header.dictionary.is_some());
    [named.len(), plain.len()]
}

/// The first pages are written only after their dictionary exists. This is also true of pages of
/// large values, which are built long before the rows if the rows must be sorted.
#[test]
fn a_load_makes_a_dictionary_for_all_pages_of_the_tree_that_it_builds() {
    for is_sorted in [true, false] {
        let disk = SimDisk::new();
        let db = Db::open(env(&disk), Config { buffer_pool_bytes: 512 << 10, ..Config::tiny() }).unwrap();
        let table = db.create_table(&spec("t")).unwrap();
        let order = (0..3 * ROWS).map(|no| if is_sorted { no } else { 3 * ROWS - 1 - no });
        load(&db, &table, order, || {
            // A trial was already made for the large values, and leaves are written before all rows
            // are read.
            let written = status(&db, "pool_writes");
            assert!(!is_sorted || written > 15, "{written}");
        });
        let table = db.table("t").unwrap();
        assert!(status(&db, "pool_dictionaries") > 0);
        assert_eq!(check(&db, &table).unwrap(), Ok(3 * ROWS));
        drop(table);
        db.close().unwrap();
        drop(db);
        let [named, plain] = counts(&disk);
        assert!(named > 20 * plain, "{named} {plain}");
        let db = open(&disk).unwrap();
        assert_eq!(all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap(), rows(0, 3 * ROWS));
    }
}
