//! The public interface of the crate: a program opens a directory, uses tables and keys, and opens
//! the directory again.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use cheetah::{
    Cursor, Database, Error, ErrorKind, IndexSpec, Key, NewRow, OldEntry, Read, Result, SecondaryEntry,
    SeekMode, Table, TableSpec, Transaction,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A folder that is deleted at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cheetah-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn towns(db: &Database) -> Result<Arc<Table>> {
    let spec = TableSpec::new("towns").index(IndexSpec::new("name")).index(IndexSpec::new("code").unique());
    db.create_table(&spec)
}

fn add(txn: &mut Transaction, towns: &Arc<Table>, number: u64, name: &str, code: i64) -> Result<()> {
    let (key, by_name, by_code) = (Key::from(number), Key::from(name), Key::from(code));
    let secondary = &[SecondaryEntry::new(1, &by_name), SecondaryEntry::new(2, &by_code)];
    txn.insert(towns, &NewRow { key: &key, row: name.as_bytes(), secondary })
}

fn names(cursor: &mut Cursor, from: &Key) -> Result<Vec<String>> {
    let (mut names, mut row) = (Vec::new(), Vec::new());
    let mut found = cursor.seek(SeekMode::AtLeast, from)?;
    while found {
        cursor.get_row(&mut row)?;
        names.push(String::from_utf8_lossy(&row).into_owned());
        found = cursor.next()?;
    }
    Ok(names)
}

#[test]
fn a_row_without_all_its_entries_is_refused() {
    let folder = Folder::new("entries");
    let db = Database::open(&folder.0).unwrap();
    let table = towns(&db).unwrap();
    let mut txn = db.begin();
    let (key, other_key) = (Key::from(1_u64), Key::from(2_u64));
    let (by_name, by_code) = (Key::from("Ulm"), Key::from(89_i64));
    let new = [SecondaryEntry::new(1, &by_name), SecondaryEntry::new(2, &by_code)];
    let old = [
        OldEntry { index_no: 1, key: &by_name, payload: b"" },
        OldEntry { index_no: 2, key: &by_code, payload: b"" },
    ];
    let row = |key, secondary| NewRow { key, row: b"Ulm", secondary };
    let is_refused = |done: Result<()>| matches!(done, Err(error @ Error::Entries(_)) if error.kind() == ErrorKind::Caller);
    let (swapped, twice) = ([new[1], new[0]], [new[0], new[0]]);
    for secondary in [&new[..1], &new[1..], &swapped, &twice, &[]] {
        assert!(is_refused(txn.insert(&table, &row(&key, secondary))));
    }
    txn.insert(&table, &row(&key, &new)).unwrap();
    assert!(is_refused(txn.update(&table, &key, &row(&other_key, &new[..1]), &old[..1])));
    assert!(is_refused(txn.update(&table, &key, &row(&key, &new[..1]), &old[1..])));
    for old_entries in [&old[..1], &old[1..], &[]] {
        assert!(is_refused(txn.delete(&table, &key, old_entries)));
    }
    txn.update(&table, &key, &row(&key, &new[..1]), &old[..1]).unwrap();
    txn.update(&table, &key, &row(&other_key, &new), &old).unwrap();
    txn.delete(&table, &other_key, &old).unwrap();
    txn.commit().unwrap();
}

#[test]
fn what_is_committed_is_there_when_the_database_is_opened_again_closed_or_dropped() {
    let folder = Folder::new("front-door");
    {
        let db = Database::open(&folder.0).unwrap();
        let table = towns(&db).unwrap();
        let mut txn = db.begin();
        for (number, name, code) in [(1, "Ulm", 89), (2, "Aalen", -7), (3, "Ulm", 5), (4, "Ulmen", 6)] {
            add(&mut txn, &table, number, name, code).unwrap();
        }
        txn.commit().unwrap();
        add(&mut txn, &table, 5, "Bonn", 1).unwrap();
        // The transaction is not committed, and the database is not closed.
    }
    let db = Database::open(&folder.0).unwrap();
    let table = db.table("towns").unwrap();
    let mut txn = db.begin();
    let mut by_name = txn.cursor(&table, 1, Read::Consistent).unwrap();
    assert_eq!(names(&mut by_name, &Key::new()).unwrap(), ["Aalen", "Ulm", "Ulm", "Ulmen"]);
    let mut by_code = txn.cursor(&table, 2, Read::Consistent).unwrap();
    assert_eq!(names(&mut by_code, &Key::from(5_i64)).unwrap(), ["Ulm", "Ulmen", "Ulm"]);
    drop((by_name, by_code));

    let refused = add(&mut txn, &table, 9, "Rom", 89).unwrap_err();
    assert!(
        matches!(refused, Error::DuplicateKey { index_no: 2, .. }) && refused.kind() == ErrorKind::Caller
    );
    let (key, name, code) = (Key::from(2_u64), Key::from("Aalen"), Key::from(-7_i64));
    txn.delete(&table, &key, &[OldEntry::new(1, &name), OldEntry::new(2, &code)]).unwrap();
    txn.commit().unwrap();
    drop(txn);
    db.rename_table("towns", "places").unwrap();
    assert_eq!(db.table_names(), ["places"]);
    db.close().unwrap();

    let db = Database::open(&folder.0).unwrap();
    assert_eq!(db.table("places").unwrap().row_count(), 3);
    db.drop_table("places").unwrap();
    assert_eq!(db.table("places").unwrap_err().kind(), ErrorKind::Caller);
}

#[test]
fn a_directory_is_open_once() {
    let folder = Folder::new("front-door-twice");
    let db = Database::open(&folder.0).unwrap();
    let refused = Database::open(&folder.0).unwrap_err();
    assert!(refused.to_string().contains("has this database open"), "{refused}");
    db.close().unwrap();
    Database::open(&folder.0).unwrap();
}
