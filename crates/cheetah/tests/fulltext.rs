//! Full-text indexes. A search finds words exactly when their rows are visible, whatever happens to
//! transactions, definitions and power (docs/developers/decisions/0047-full-text.md).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Error, Result};
use cheetah::testing::db::{Db, Found, OnLocked, Read, RowWords, Transaction};
use cheetah::testing::table::{
    Alteration, AlteredFulltext, AlteredIndex, FulltextFrom, IndexFrom, NewRow, SecondaryEntry, Table,
};
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::steps::{self, survives};
use support::words::*;
use support::*;

/// A table with three rows.
fn some_rows() -> (Db, Arc<Table>) {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&with_words("db/a", &["one"])).unwrap();
    let mut txn = db.begin();
    for (key, text) in [(1, "ant bee"), (2, "ant"), (3, "cat")] {
        put(&db, &mut txn, &table, key, text);
    }
    txn.commit().unwrap();
    (db, table)
}

/// Loads rows and their words into an empty table in one transaction. Returns `false` if another
/// transaction has already written the table.
fn load(db: &Db, table: &Arc<Table>, rows: &BTreeMap<u64, String>) -> bool {
    let (mut txn, indexes) = (db.begin(), postings(db, table));
    let Some(mut to) = txn.begin_load_to_commit(table).unwrap() else { return false };
    let mut of_words: Vec<_> =
        indexes.iter().map(|index| txn.begin_load_to_commit(index).unwrap().unwrap()).collect();
    for (key, text) in rows {
        let row = row_of(*key, text);
        let [name, number] = row.keys();
        let secondary = [(1, &name, &b"p"[..]), (2, &number, b"")]
            .map(|(index_no, key, payload)| SecondaryEntry { index_no, key, payload, check_unique: true });
        let (key, stored) = (key.to_be_bytes(), row.stored());
        txn.load(&mut to, &NewRow { key: &key, row: &stored, secondary: &secondary }).unwrap();
        for load in &mut of_words {
            let words = &mut list_of(text.as_bytes());
            txn.load_words(load, RowWords { key: &key, words }).unwrap();
        }
    }
    of_words.iter_mut().for_each(|load| drop(txn.finish_load(load).unwrap()));
    txn.finish_load(&mut to).unwrap();
    txn.commit().unwrap();
    true
}

/// Keeps the table's full-text indexes at these positions, and adds new ones.
fn alter(db: &Db, name: &str, kept: &[usize], new: &[String], rows: &BTreeMap<u64, String>) {
    let table = db.table(name).unwrap();
    let mut fulltext: Vec<_> =
        kept.iter().map(|&no| altered(&table.fulltext()[no].name, FulltextFrom::Kept(no))).collect();
    let mut built = Vec::new();
    for name in new {
        let (made, mut txn) = (db.new_postings(&table, 12).unwrap(), db.begin());
        let mut load = txn.begin_load(&made.table()).unwrap().unwrap();
        for (key, text) in rows {
            let words = &mut list_of(text.as_bytes());
            txn.load_words(&mut load, RowWords { key: &key.to_be_bytes(), words }).unwrap();
        }
        txn.finish_load(&mut load).unwrap();
        txn.commit().unwrap();
        fulltext.push(altered(name, FulltextFrom::Built(made.table())));
        built.push(made);
    }
    let index =
        |no: usize| AlteredIndex { name: table.indexes()[no].name.clone(), from: IndexFrom::Kept(no) };
    let indexes = (0..table.indexes().len()).map(index).collect();
    let alteration = Alteration { fulltext: Some(fulltext), ..Alteration::of_indexes(table, indexes) };
    db.alter_tables(&[alteration]).unwrap();
}

fn altered(name: &str, from: FulltextFrom) -> AlteredFulltext {
    AlteredFulltext { name: name.into(), extra: b"rules".to_vec(), from }
}

/// The tables by name, with the names of their indexes and the texts of their rows.
#[derive(Clone, Default, Debug)]
struct Model {
    tables: BTreeMap<String, (Vec<String>, BTreeMap<u64, String>)>,
    names_made: u64,
}

impl Model {
    fn alter(&mut self, db: &Db, name: &str, rng: &mut Rng) {
        let (indexes, rows) = self.tables.get_mut(name).unwrap();
        let kept: Vec<usize> = (0..indexes.len()).filter(|_| rng.chance(0.6)).collect();
        let mut new = Vec::new();
        if rng.chance(0.6) && kept.len() < 3 {
            self.names_made += 1;
            new.push(format!("new{}", self.names_made));
        }
        alter(db, name, &kept, &new, rows);
        *indexes = kept.iter().map(|&no| indexes[no].clone()).chain(new).collect();
    }

    fn write(&mut self, db: &Db, name: &str, rng: &mut Rng) {
        let (table, mut txn) = (db.table(name).unwrap(), db.begin());
        let rows = &mut self.tables.get_mut(name).unwrap().1;
        let before = rows.clone();
        for _ in 0..rng.below(6) {
            let (key, text) = (rng.below(8), some_text(rng));
            match rows.get(&key).cloned() {
                None => {
                    put(db, &mut txn, &table, key, &text);
                    rows.insert(key, text);
                }
                Some(old) if rng.chance(0.5) => {
                    change(db, &mut txn, &table, key, (&old, &text));
                    rows.insert(key, text);
                }
                Some(old) => {
                    take(db, &mut txn, &table, key, &old);
                    rows.remove(&key);
                }
            }
        }
        // The transaction finds its own words before other transactions do.
        let all = WORDS.join(" ");
        if !table.fulltext().is_empty() {
            assert_eq!(found(&mut txn, &table, 0, &all).unwrap(), keys_with(rows, &all));
        }
        if rng.chance(0.3) {
            txn.rollback().unwrap();
            *rows = before;
        } else {
            txn.commit().unwrap();
        }
    }
}

impl steps::Model for Model {
    fn step(&mut self, db: &Db, rng: &mut Rng) {
        let name = ["db/a", "db/b", "db/c"][rng.below(3) as usize];
        if !self.tables.contains_key(name) {
            let indexes = ["one", "two"];
            let indexes = &indexes[..rng.below(3) as usize];
            db.create_table(&with_words(name, indexes)).unwrap();
            let names = indexes.iter().map(|name| (*name).to_owned()).collect();
            self.tables.insert(name.into(), (names, BTreeMap::new()));
            return;
        }
        match rng.below(12) {
            0 => {
                db.drop_table(name).unwrap();
                self.tables.remove(name);
            }
            1..=2 => {
                let rows = &mut self.tables.get_mut(name).unwrap().1;
                let loaded = (0..40).map(|key| (key, some_text(rng))).collect();
                if rows.is_empty() && load(db, &db.table(name).unwrap(), &loaded) {
                    *rows = loaded;
                } else {
                    db.truncate_table(name).unwrap();
                    rows.clear();
                }
            }
            3 => {
                let free = ["db/a", "db/b", "db/c"].into_iter().find(|name| !self.tables.contains_key(*name));
                if let Some(free) = free {
                    db.rename_table(name, free).unwrap();
                    let table = self.tables.remove(name).unwrap();
                    self.tables.insert(free.into(), table);
                }
            }
            4..=6 => self.alter(db, name, rng),
            _ => self.write(db, name, rng),
        }
    }

    /// Checks that the database has these indexes and words, and no other postings.
    fn check(&self, db: &Db) -> std::result::Result<(), String> {
        let names = db.table_names();
        let (hidden, seen): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.starts_with('#'));
        let hidden: Vec<_> = hidden.into_iter().filter(|name| name.starts_with("#fulltext/")).collect();
        if !seen.iter().copied().eq(self.tables.keys()) {
            return Err(format!("tables {seen:?}, expected {:?}", self.tables.keys()));
        }
        let indexes_count: usize = self.tables.values().map(|table| table.0.len()).sum();
        if hidden.len() != indexes_count {
            return Err(format!("postings {hidden:?} of {indexes_count} indexes"));
        }
        for (name, (indexes, rows)) in &self.tables {
            let table = db.table(name).map_err(|error| error.to_string())?;
            let known: Vec<_> = table.fulltext().iter().map(|index| index.name.clone()).collect();
            if known != *indexes {
                return Err(format!("'{name}' has indexes {known:?}, expected {indexes:?}"));
            }
            for (index_no, word) in (0..indexes.len()).flat_map(|no| WORDS.map(|word| (no, word))) {
                let mut txn = db.begin();
                let now = found(&mut txn, &table, index_no, word).map_err(|error| error.to_string())?;
                if now != keys_with(rows, word) {
                    return Err(format!(
                        "'{word}' of '{name}' in {now:?}, expected {:?}",
                        keys_with(rows, word)
                    ));
                }
            }
            for index_no in 0..indexes.len() {
                let checked = db.begin().check_words(&table, index_no, END, &mut Spaces);
                if let Some(difference) = checked.map_err(|error| error.to_string())? {
                    return Err(difference);
                }
            }
            for index in postings(db, &table) {
                let report = db.check_table(&index, true).map_err(|error| error.to_string())?;
                if !report.findings.is_empty() {
                    return Err(format!("{:?}", report.findings));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn x2_postings_come_and_go_with_their_definition_whenever_power_is_cut() {
    (1..=12).try_for_each(|seed| survives::<Model>(seed, 14)).unwrap();
    assert!(reach::count("lost postings are dropped at open") > 0 || !cfg!(debug_assertions));
    for bug in [
        "full text: drop postings before the definition",
        "full text: keep postings that nobody names",
        "load: return before the checkpoint",
    ] {
        let planted = plant(bug);
        let caught = (1..=12).any(|seed| survives::<Model>(seed, 14).is_err());
        assert!(caught && planted.reached_count() > 0, "{bug}");
    }
}

#[test]
fn x3_an_emptied_table_has_no_words() {
    let emptied = || {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let table = db.create_table(&with_words("db/a", &["one", "two"])).unwrap();
        let mut txn = db.begin();
        put(&db, &mut txn, &table, 1, "ant bee");
        txn.commit().unwrap();
        let table = db.truncate_table("db/a").unwrap();
        found(&mut db.begin(), &table, 1, "ant").map(|keys| keys.is_empty()).unwrap_or(false)
    };
    assert!(emptied());
    let bug = plant("full text: keep the postings of an emptied table");
    assert!(!emptied() && bug.reached_count() > 0);
}

#[test]
fn words_that_do_not_fit_their_rows_are_told_of() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&with_words("db/a", &["one"])).unwrap();
    let checked = |db: &Db| db.begin().check_words(&table, 0, END, &mut Spaces).unwrap();
    let mut txn = db.begin();
    put(&db, &mut txn, &table, 1, "ant bee ant");
    put(&db, &mut txn, &table, 2, "cat");
    txn.commit().unwrap();
    assert_eq!(checked(&db), None);
    {
        let bug = plant("full text: keep the words of a row that goes");
        let mut txn = db.begin();
        take(&db, &mut txn, &table, 2, "cat");
        txn.commit().unwrap();
        assert!(bug.reached_count() > 0);
    }
    assert!(checked(&db).is_some_and(|text| text.contains("'one' has 3 words of rows, 2 are expected")));
}

#[test]
fn a_snapshot_finds_the_words_of_its_rows() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&with_words("db/a", &["one"])).unwrap();
    let mut txn = db.begin();
    put(&db, &mut txn, &table, 1, "ant bee");
    txn.commit().unwrap();
    let mut reader = db.begin();
    assert_eq!(found(&mut reader, &table, 0, "ant").unwrap(), [1]);
    change(&db, &mut txn, &table, 1, ("ant bee", "cat"));
    put(&db, &mut txn, &table, 2, "ant");
    assert_eq!(found(&mut txn, &table, 0, "ant cat").unwrap(), [1, 2]);
    assert_eq!(found(&mut reader, &table, 0, "ant cat").unwrap(), [1]);
    txn.commit().unwrap();
    while db.run_background().unwrap() {}
    assert_eq!(found(&mut reader, &table, 0, "bee").unwrap(), [1]);
    assert_eq!(found(&mut reader, &table, 0, "cat").unwrap(), []);
    assert_eq!(found(&mut db.begin(), &table, 0, "ant cat").unwrap(), [1, 2]);
}

/// After a snapshot was taken, another transaction changes the words of a row and inserts a row.
/// Then the snapshot's transaction changes both rows, but not their words. This transaction sees
/// the current content of both rows, so its searches must match that content.
#[test]
fn a_snapshot_finds_rows_that_it_has_changed_as_they_are_now() {
    let (db, table) = some_rows();
    let (mut first, mut other) = (db.begin(), db.begin());
    let has = |txn: &mut Transaction, word: &str| found(txn, &table, 0, word).unwrap();
    assert_eq!(has(&mut first, "ant"), [1, 2]);
    change(&db, &mut other, &table, 1, ("ant bee", "bee cat"));
    put(&db, &mut other, &table, 4, "ant");
    put(&db, &mut other, &table, 5, "ant bee cat");
    other.commit().unwrap();
    assert_eq!(has(&mut first, "ant cat"), [1, 2, 3]);
    for (key, text) in [(1, "bee cat"), (4, "ant")] {
        let row = row_of(key, text);
        update(&mut first, &table, key, &row, key, &Row { number: 100 + key, ..row.clone() }).unwrap();
    }
    for (word, expected) in [("ant", [2, 4].as_slice()), ("bee", &[1]), ("cat", &[1, 3])] {
        assert_eq!(has(&mut first, word), expected, "{word}");
    }
    let bug = plant("full text: look for its own rows in the snapshot");
    assert_eq!(has(&mut first, "ant"), [1, 2]);
    assert!(bug.reached_count() > 0);
}

#[test]
fn a_search_for_rows_to_be_locked_finds_what_is_committed_now() {
    let (db, table) = some_rows();
    let mut old = db.begin();
    old.take_snapshot().unwrap();
    let mut txn = db.begin();
    change(&db, &mut txn, &table, 1, ("ant bee", "bee"));
    change(&db, &mut txn, &table, 3, ("cat", "ant cat"));
    put(&db, &mut txn, &table, 4, "ant");
    txn.commit().unwrap();
    assert_eq!(found(&mut old, &table, 0, "ant").unwrap(), [1, 2]);
    for read in [Read::Shared, Read::Exclusive] {
        assert_eq!(found_as(&mut old, &table, (0, read), "ant").unwrap(), [2, 3, 4]);
        let bug = plant("full text: look for rows to lock in the snapshot");
        assert_eq!(found_as(&mut old, &table, (0, read), "ant").unwrap(), [1, 2]);
        assert!(bug.reached_count() > 0);
    }
    put(&db, &mut old, &table, 5, "ant");
    assert_eq!(found_as(&mut old, &table, (0, Read::Exclusive), "ant").unwrap(), [2, 3, 4, 5]);
    assert_eq!(found(&mut old, &table, 0, "ant").unwrap(), [1, 2, 5]);
}

#[test]
fn a_row_that_has_changed_since_the_search_is_looked_at_again() {
    let (db, table) = some_rows();
    let (mut first, mut other) = (db.begin(), db.begin());
    let search = search_for("ant", 0, Read::Exclusive);
    let key = |number: u64| number.to_be_bytes();
    let mut before = first.search(&table, &search, &mut Spaces).unwrap();
    let rank = |txn: &mut Transaction, found: &mut Found, number| {
        txn.rank_now(&table, &search, &mut Spaces, found, &key(number)).unwrap()
    };
    let old_rank = before.matches.rank(&key(1));
    change(&db, &mut other, &table, 1, ("ant bee", "bee"));
    other.commit().unwrap();
    let mut row = Vec::new();
    assert!(first.get(&table, &key(1), Read::Exclusive, &mut row).unwrap());
    {
        let bug = plant("full text: lock what has changed");
        let stale = rank(&mut first, &mut before, 1);
        assert!(stale.is_some() && stale == old_rank && bug.reached_count() > 0);
    }
    assert!(rank(&mut first, &mut before, 2).is_some());
    assert_eq!(rank(&mut first, &mut before, 1), None);
    // The result of the second search remains valid after the transaction's own changes.
    change(&db, &mut first, &table, 2, ("ant", "cat"));
    assert!(rank(&mut first, &mut before, 2).is_some());
}

/// Reads the rows that a search found. Meanwhile another transaction changes row 1 and deletes row
/// 2.
#[test]
fn rows_that_match_no_more_are_passed_over() {
    let (db, table) = some_rows();
    let (mut first, mut other, mut row) = (db.begin(), db.begin(), Vec::new());
    put(&db, &mut other, &table, 4, "ant");
    other.commit().unwrap();
    for (read, expected) in [(Read::Consistent, [1, 2, 4].as_slice()), (Read::Exclusive, &[4])] {
        let search = search_for("ant", 0, read);
        let mut found = first.search(&table, &search, &mut Spaces).unwrap();
        if read == Read::Exclusive {
            let mut other = db.begin();
            change(&db, &mut other, &table, 1, ("ant bee", "bee"));
            take(&db, &mut other, &table, 2, "ant");
            other.commit().unwrap();
        }
        for _ in 0..2 {
            let mut keys = Vec::new();
            let mut next = || {
                let into = (OnLocked::Wait, &mut row);
                let next = first.next_match(&table, &search, &mut Spaces, &mut found, into).unwrap();
                next.map(|(key, _)| u64::from_be_bytes(key.try_into().unwrap()))
            };
            keys.extend(std::iter::from_fn(&mut next));
            keys.sort_unstable();
            assert_eq!(keys, expected, "{read:?}");
            found.rewind();
        }
    }
}

#[test]
fn a_locked_row_is_passed_where_nobody_waits() {
    let (db, table) = some_rows();
    let (mut first, mut other, mut row) = (db.begin(), db.begin(), Vec::new());
    other.set_lock_wait(0);
    assert!(first.get(&table, &1u64.to_be_bytes(), Read::Exclusive, &mut row).unwrap());
    for (key, is_free) in [(1u64, false), (2, true), (9, false)] {
        let found = other.get_unless_locked(&table, &key.to_be_bytes(), Read::Exclusive, &mut row).unwrap();
        assert_eq!(found, is_free, "row {key}");
    }
}

#[test]
fn m2_words_are_refused_to_snapshots_that_are_older() {
    let (db, table) = some_rows();
    let rows = BTreeMap::from([(1, "ant bee".to_string()), (2, "ant".into()), (3, "cat".into())]);
    let mut old = db.begin();
    old.take_snapshot().unwrap();
    alter(&db, "db/a", &[0], &["more".into()], &rows);
    let altered = db.table("db/a").unwrap();
    let changed = |found: Result<Vec<u64>>| assert!(matches!(found, Err(Error::TableChanged(_))));
    assert_eq!(found(&mut old, &altered, 0, "ant").unwrap(), [1, 2]);
    changed(found(&mut old, &altered, 1, "ant"));
    assert_eq!(found_as(&mut old, &altered, (1, Read::Shared), "ant").unwrap(), [1, 2]);
    assert_eq!(found(&mut db.begin(), &altered, 1, "ant").unwrap(), [1, 2]);
    {
        let bug = plant("full text: show words to older snapshots");
        // The table of the postings is also newer than the snapshot.
        let _table_is_shown = plant("create: show the table to older snapshots");
        alter(&db, "db/a", &[0, 1], &["third".into()], &rows);
        let altered = db.table("db/a").unwrap();
        assert_eq!(found(&mut old, &altered, 2, "ant").unwrap(), [0; 0]);
        assert!(bug.reached_count() > 0);
    }
    drop(table);
    let emptied = db.truncate_table("db/a").unwrap();
    changed(found(&mut old, &emptied, 0, "ant"));
    assert_eq!(found(&mut db.begin(), &emptied, 0, "ant").unwrap(), [0; 0]);
}

#[test]
fn writing_the_words_of_a_row_is_interrupted() {
    let (db, table) = some_rows();
    let mut txn = db.begin();
    txn.interrupt_when(|| true);
    let text = (0..2000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    let before = txn.savepoint();
    let (mut words, postings) = (list_of(text.as_bytes()), db.postings(&table, 0).unwrap());
    let row = RowWords { key: &7u64.to_be_bytes(), words: &mut words };
    assert!(matches!(txn.insert_words(&postings, row), Err(Error::Interrupted)));
    txn.rollback_to(before).unwrap();
    txn.commit().unwrap();
    assert_eq!(found(&mut db.begin(), &table, 0, "w1 ant").unwrap(), [1, 2]);
    assert_eq!(db.begin().check_words(&table, 0, END, &mut Spaces).unwrap(), None);
}
