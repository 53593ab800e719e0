//! Tests that the reported sizes of tables and indexes agree with their contents, in memory and in
//! the files.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::Config;
use cheetah::testing::db::{Db, Sizes, TableSizes};
use cheetah::testing::table::Table;
use cheetah_io::sim::SimDisk;
use cheetah_io::Disk;
use std::sync::Arc;
use support::*;

const ROWS: u64 = 60;
const TEXT_BYTES: usize = 3000;

/// A table with a large value in each row, on disk.
fn filled(disk: &SimDisk) -> (Db, Arc<Table>) {
    let db = open(disk).unwrap();
    let table = db.create_table(&spec("d/t")).unwrap();
    let mut txn = db.begin();
    for key in 0..ROWS {
        insert(&mut txn, &table, key, &Row::new(key, TEXT_BYTES)).unwrap();
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    (db, table)
}

fn sizes(db: &Db) -> TableSizes {
    db.sizes().into_iter().find(|table| table.name == "d/t").unwrap()
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|(known, _)| *known == name).unwrap().1
}

/// Bytes of the files of images and of the page map.
fn file_bytes(disk: &SimDisk) -> u64 {
    let segments = disk.list("seg").unwrap().into_iter().map(|name| format!("seg/{name}"));
    let map = disk.list("").unwrap().into_iter().filter(|name| name.starts_with("map-"));
    let changes = disk.list("chg").unwrap().into_iter().map(|name| format!("chg/{name}"));
    segments.chain(map).chain(changes).map(|path| disk.open(&path).unwrap().len().unwrap()).sum()
}

/// In an earlier version the pages of large values were counted with the smallest page size: 512
/// bytes here, instead of up to 2048.
#[test]
fn large_values_count_with_the_size_of_their_pages() {
    let disk = SimDisk::new();
    let (db, table) = filled(&disk);
    let stats = table.stats().unwrap();
    assert!(stats[0].logical_bytes >= ROWS * TEXT_BYTES as u64, "{:?}", stats[0]);
    assert!(stats[0].logical_bytes < 2 * ROWS * TEXT_BYTES as u64, "{:?}", stats[0]);
    assert_eq!(stats[0].stored_logical_bytes, stats[0].logical_bytes, "all is on disk");
    assert!(stats[0].leaf_pages < stats[0].pages / 2, "large pages are no leaves: {:?}", stats[0]);
    assert_eq!(stats[1].logical_bytes, stats[1].pages * 512);
    db.close().unwrap();
    drop((db, table));
    let db = open(&disk).unwrap();
    let table = db.table("d/t").unwrap();
    all_rows(&mut db.begin(), &table).unwrap();
    assert_eq!(
        table.stats().unwrap()[0].logical_bytes,
        stats[0].logical_bytes,
        "the size differs after a restart"
    );
}

fn allocated(db: &Db) -> u64 {
    let all = db.sizes().into_iter().flat_map(|table| table.indexes);
    all.map(|(_, sizes)| sizes.stats.allocated_bytes).sum()
}

#[test]
fn what_tables_occupy_and_what_is_free_adds_up_to_the_files() {
    let disk = SimDisk::new();
    let (db, table) = filled(&disk);
    assert_eq!(allocated(&db), file_bytes(&disk));
    let mut txn = db.begin();
    for key in 0..ROWS {
        if key % 4 != 0 {
            delete(&mut txn, &table, key, &Row::new(key, TEXT_BYTES)).unwrap();
        }
    }
    txn.commit().unwrap();
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
    assert_eq!(allocated(&db), file_bytes(&disk));
    let files = status(&db, "segment_bytes");
    let (live, free) = (status(&db, "segment_live_bytes"), sizes(&db).indexes[0].1.stats.free_bytes);
    assert!(free > 0 && free <= files - live, "{free} free, {live} of {files} bytes live");
}

/// The bytes of images in tails are live, but not in the files yet.
#[test]
fn images_that_wait_in_tails_are_not_in_the_files() {
    let disk = SimDisk::new();
    let config = Config {
        buffer_pool_bytes: 1 << 20,
        segment_bytes: 4 << 20,
        log_bytes_max: 16 << 20,
        ..Config::tiny()
    };
    let db = Db::open(env(&disk), config).unwrap();
    let table = db.create_table(&spec("d/t")).unwrap();
    let mut waited = 0;
    for key in 0..20 * ROWS {
        let mut txn = db.begin();
        insert(&mut txn, &table, key, &Row::new(key, TEXT_BYTES)).unwrap();
        txn.commit().unwrap();
        assert_eq!(allocated(&db), file_bytes(&disk));
        waited += u64::from(status(&db, "segment_live_bytes") > file_bytes(&disk));
    }
    assert!(waited > 0);
}

#[test]
fn what_is_in_memory_is_told_by_index_with_how_full_its_leaves_are() {
    let disk = SimDisk::new();
    drop(filled(&disk));
    let db = open(&disk).unwrap();
    let table = db.table("d/t").unwrap();
    let mut sum = Sizes::default();
    sizes(&db).indexes.into_iter().for_each(|(_, sizes)| sum += sizes);
    let before = sum.cached.bytes;
    all_rows(&mut db.begin(), &table).unwrap();
    let after = sizes(&db);
    assert_eq!((after.rows, after.indexes.len()), (ROWS, 3));
    let clustered = after.indexes[0].1.cached;
    assert!(clustered.bytes > before && clustered.bytes <= status(&db, "pool_frame_bytes"), "{clustered:?}");
    assert!(clustered.leaf_bytes > 0 && clustered.leaf_bytes < clustered.bytes, "{clustered:?}");
    assert!(clustered.leaf_used_bytes * 4 > clustered.leaf_bytes, "{clustered:?}");
    assert!(clustered.leaf_used_bytes <= clustered.leaf_bytes, "{clustered:?}");
}
