//! Loads of any size and order produce the same tables as inserts.

mod of_a_transaction;

use crate::base::{Config, Error, Result};
use crate::db::{Db, Env, Load, Read, SeekMode, Transaction};
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::format::varint;
use crate::table::{
    Alteration, AlteredIndex, BuiltEntries, ExpectedEntry, IndexFrom, IndexSpec, NewRow, SecondaryEntry,
    Table, TableSpec,
};
use cheetah_io::sim::{SimClock, SimDisk};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME_KEY_BYTES: u32 = 24;

struct Row {
    number: u64,
    name: Vec<u8>,
    text_bytes: usize,
}

impl Row {
    fn new(seed: u64, text_bytes: usize) -> Self {
        Self { number: seed, name: format!("name{}", seed % 97).into_bytes(), text_bytes }
    }

    fn stored(&self) -> Vec<u8> {
        let mut row = self.number.to_le_bytes().to_vec();
        varint::put(&mut row, (self.name.len() as u64) << 1);
        varint::put(&mut row, (self.text_bytes as u64) << 1);
        row.extend_from_slice(&self.name);
        row.extend((0..self.text_bytes).map(|at| (self.number as usize + at / 5) as u8));
        row
    }
}

fn open(disk: &SimDisk) -> Db {
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(SimClock::default()) };
    Db::open(env, Config::tiny()).unwrap()
}

fn spec(name: &str) -> TableSpec {
    let index = |name: &str, unique, max_key_bytes| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes,
        row_format: RowFormatVersion::opaque(),
    };
    TableSpec {
        name: name.into(),
        row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 2 },
        indexes: vec![
            index("PRIMARY", true, 8),
            index("name", false, NAME_KEY_BYTES),
            index("number", true, 8),
        ],
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: Default::default(),
    }
}

fn with_row<T>(key: u64, row: &Row, f: impl FnOnce(&NewRow<'_>) -> T) -> T {
    let mut name = row.name.clone();
    name.push(0);
    let number = row.number.to_be_bytes();
    let secondary = [
        SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
        SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
    ];
    f(&NewRow { key: &key.to_be_bytes(), row: &row.stored(), secondary: &secondary })
}

fn load(txn: &mut Transaction, load: &mut Load, key: u64, row: &Row) -> Result<()> {
    with_row(key, row, |row| txn.load(load, row))
}

fn load_all(db: &Db, txn: &mut Transaction, rows: &[(u64, Row)]) -> Result<Arc<Table>> {
    let table = db.create_table(&spec("t"))?;
    let mut to = txn.begin_load(&table)?.unwrap();
    rows.iter().try_for_each(|(key, row)| load(txn, &mut to, *key, row))?;
    txn.finish_load(&mut to)
}

fn contents(db: &Db, table: &Arc<Table>) -> BTreeMap<u64, Vec<u8>> {
    let report = db.check_table(table, true).unwrap();
    assert!(report.is_ok(), "{:?}", report.findings);
    let mut txn = db.begin();
    let mut found = BTreeMap::new();
    let mut cursor = txn.cursor(table, 0, Read::Consistent).unwrap();
    let mut more = cursor.seek(SeekMode::First, b"").unwrap();
    while more {
        let (mut row, mut large) = (cursor.row().to_vec(), Vec::new());
        let (text_word, used) = varint::get(&row[9..]).unwrap();
        if text_word & 1 != 0 {
            let at = row.len() - (text_word >> 1) as usize;
            txn.fetch_large(table, &row[at..], &mut large).unwrap();
            let name = row[9 + used..at].to_vec();
            row.truncate(9);
            varint::put(&mut row, (large.len() as u64) << 1);
            row.extend_from_slice(&name);
            row.extend_from_slice(&large);
        }
        found.insert(u64::from_be_bytes(cursor.key().try_into().unwrap()), row);
        more = cursor.next().unwrap();
    }
    assert_eq!(db.begin().count(table).unwrap(), Some(found.len() as u64));
    assert_eq!(table.row_count(), found.len() as u64);
    found
}

/// Rows in an order given by `key`, which maps a row's number to its key.
fn rows(count: u64, key: impl Fn(u64) -> u64) -> Vec<(u64, Row)> {
    let text_bytes = |no: u64| if no % 50 == 7 { 5000 } else { 30 };
    (0..count).map(|no| (key(no), Row::new(no, text_bytes(no)))).collect()
}

/// Maps the number of a row to its key.
type Order = fn(u64) -> u64;

fn ascending(no: u64) -> u64 {
    no
}

fn descending(no: u64) -> u64 {
    u64::MAX - no
}

fn mixed(no: u64) -> u64 {
    no.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Mostly ascending, with some keys out of order.
fn late(no: u64) -> u64 {
    if no > 500 && no % 10 == 3 {
        no % 7 * 100_000 + no
    } else {
        1_000_000 + no
    }
}

#[test]
fn a_load_of_any_size_and_order_is_the_table_that_was_given() {
    for (count, is_built) in [(0, false), (5, false), (40, true), (900, true), (4000, true)] {
        for key in [ascending, descending, mixed, late] {
            let disk = SimDisk::new();
            let db = open(&disk);
            let expected = rows(count, key);
            let mut txn = db.begin();
            let table = load_all(&db, &mut txn, &expected).unwrap();
            txn.commit().unwrap();
            let loads = db.status().into_iter().find(|(name, _)| *name == "loads").unwrap().1;
            assert_eq!(loads, u64::from(is_built), "{count} rows");
            let expected: BTreeMap<_, _> = expected.iter().map(|(key, row)| (*key, row.stored())).collect();
            assert!(contents(&db, &table) == expected, "{count} rows");
            assert!(contents(&db, &db.table("t").unwrap()) == expected);
            db.close().unwrap();
            drop((txn, table, db));
            let db = open(&disk);
            let table = db.table("t").unwrap();
            assert!(contents(&db, &table) == expected, "{count} rows, opened again");
        }
    }
}

#[test]
fn a_loaded_table_goes_on_as_any_other() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let mut txn = db.begin();
    let table = load_all(&db, &mut txn, &rows(2000, mixed)).unwrap();
    for no in 5000..5200 {
        with_row(no, &Row::new(no, 20), |row| txn.insert(&table, row)).unwrap();
    }
    let taken = with_row(7777, &Row::new(12, 20), |row| txn.insert(&table, row));
    assert!(matches!(taken, Err(Error::DuplicateKey { index_no: 2, .. })), "{taken:?}");
    txn.commit().unwrap();
    assert_eq!(contents(&db, &table).len(), 2200);
    drop((txn, table, db));
    let db = open(&disk);
    assert_eq!(contents(&db, &db.table("t").unwrap()).len(), 2200, "after a crash");
}

#[test]
fn pages_of_a_load_that_does_not_end_are_given_back() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    rows(1500, ascending).iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
    db.checkpoint().unwrap();
    let dropped_trees = || db.status().into_iter().find(|(name, _)| *name == "dropped_trees").unwrap().1;
    assert_eq!(dropped_trees(), 3);
    while db.run_background().unwrap() {}
    assert_eq!(dropped_trees(), 3, "the load is in progress");
    drop(to);
    txn.rollback().unwrap();
    while db.run_background().unwrap() {}
    assert_eq!(dropped_trees(), 0);
    assert_eq!(contents(&db, &table).len(), 0);
    // The table is unchanged, and may be loaded again.
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    rows(1500, ascending).iter().for_each(|(key, row)| load(&mut txn, &mut to, *key, row).unwrap());
    let table = txn.finish_load(&mut to).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&db, &table).len(), 1500);
}

#[test]
fn a_key_that_comes_twice_is_told_with_its_row() {
    // The order of the keys; the key and the number of the duplicate row; the index that refuses
    // the row.
    let cases: [(Order, u64, u64, usize); 4] = [
        (ascending, 600, 5000, 0),
        (mixed, mixed(600), 5000, 0),
        (late, late(603), 5000, 0),
        (mixed, 3, 600, 2),
    ];
    for (key, again_key, again_number, index_no) in cases {
        for count in [700, 3000] {
            let db = open(&SimDisk::new());
            let mut all = rows(count, key);
            all.push((again_key, Row::new(again_number, 6000)));
            let table = db.create_table(&spec("t")).unwrap();
            let mut txn = db.begin();
            let mut to = txn.begin_load(&table).unwrap().unwrap();
            let loaded = all.iter().try_for_each(|(key, row)| load(&mut txn, &mut to, *key, row));
            let ended = loaded.and_then(|()| txn.finish_load(&mut to).map(drop));
            let Err(Error::DuplicateKey { index_no: found, .. }) = ended else { panic!("{ended:?}") };
            assert_eq!(found, index_no);
            let (refused_key, refused_row) = to.refused().unwrap();
            let refused_key = u64::from_be_bytes(refused_key.try_into().unwrap());
            let is_it = |(key, row): &(u64, Row)| *key == refused_key && row.stored() == refused_row;
            assert!(all.iter().any(is_it), "the refused row is one of the loaded rows");
            assert!(txn
                .load(&mut to, &NewRow { key: &[0; 8], row: &all[0].1.stored(), secondary: &[] })
                .is_err());
            assert!(txn.finish_load(&mut to).is_err());
            drop(to);
            txn.rollback().unwrap();
            assert_eq!(contents(&db, &table).len(), 0);
        }
    }
}

#[test]
fn keys_that_need_not_be_unique_may_come_twice() {
    let db = open(&SimDisk::new());
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    for no in 0..1000u64 {
        let row = Row::new(no, 10).stored();
        let secondary = [
            SecondaryEntry { index_no: 1, key: b"same\0", payload: b"p", check_unique: true },
            SecondaryEntry { index_no: 2, key: &[0], payload: b"", check_unique: false },
        ];
        txn.load(&mut to, &NewRow { key: &no.to_be_bytes(), row: &row, secondary: &secondary }).unwrap();
    }
    let table = txn.finish_load(&mut to).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&db, &table).len(), 1000);
}

#[test]
fn only_a_table_that_nobody_has_written_is_loaded() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    with_row(1, &Row::new(1, 5), |row| txn.insert(&table, row)).unwrap();
    txn.rollback().unwrap();
    assert!(txn.begin_load(&table).unwrap().is_none());
    let table = db.truncate_table("t").unwrap();
    assert!(txn.begin_load(&table).unwrap().is_some());
    db.create_table(&spec("u")).unwrap();
    txn.rollback().unwrap();
    drop((txn, table, db));
    let db = open(&disk);
    assert!(db.begin().begin_load(&db.table("u").unwrap()).unwrap().is_none());
}

#[test]
fn older_snapshots_are_refused_a_loaded_table() {
    let db = open(&SimDisk::new());
    let mut old = db.begin();
    old.take_snapshot().unwrap();
    let mut txn = db.begin();
    let table = load_all(&db, &mut txn, &rows(1000, ascending)).unwrap();
    txn.commit().unwrap();
    assert!(matches!(old.count(&table), Err(Error::TableChanged(_))));
    old.commit().unwrap();
    assert_eq!(old.count(&table).unwrap(), Some(1000));
}

#[test]
fn counters_of_a_table_go_on_after_a_load() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    for (key, row) in rows(1000, ascending) {
        table.advance_auto_increment(key + 1);
        load(&mut txn, &mut to, key, &row).unwrap();
    }
    let table = txn.finish_load(&mut to).unwrap();
    assert_eq!(table.auto_increment(), 1000);
    txn.commit().unwrap();
    drop((txn, table, to, db));
    assert_eq!(open(&disk).table("t").unwrap().auto_increment(), 1000);
}

#[test]
fn a_load_can_be_interrupted_while_it_is_sorted() {
    let db = open(&SimDisk::new());
    let mut txn = db.begin();
    txn.interrupt_when(|| true);
    let ended = load_all(&db, &mut txn, &rows(2000, mixed));
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    txn.rollback().unwrap();
    assert_eq!(contents(&db, &db.table("t").unwrap()).len(), 0);
}

#[test]
fn a_load_on_a_full_disk_fails_and_the_disk_is_free_again() {
    let disk = SimDisk::new();
    let db = open(&disk);
    let used = disk.used_bytes();
    disk.set_space(Some(used + (400 << 10)));
    let mut rng = Rng::new(4);
    let mut txn = db.begin();
    let table = db.create_table(&spec("t")).unwrap();
    let mut to = txn.begin_load(&table).unwrap().unwrap();
    let refused = (0..100_000).find_map(|_| {
        let no = rng.below(u64::MAX);
        load(&mut txn, &mut to, no, &Row::new(no, rng.below(60) as usize)).err()
    });
    assert!(matches!(refused, Some(Error::DiskFull(_))), "{refused:?}");
    drop(to);
    txn.rollback().unwrap();
    db.drop_table("t").unwrap();
    drop(table);
    while db.run_background().unwrap() {}
    db.checkpoint().unwrap();
    disk.set_space(None);
    let table = load_all(&db, &mut txn, &rows(1000, mixed)).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&db, &table).len(), 1000);
}
