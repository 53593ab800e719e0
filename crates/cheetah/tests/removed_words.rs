//! The deletion of a row with words inserts one row into the table of removed words, and the
//! background deletes the postings later. No search and no check may see a difference (W1 to W8 of
//! `db/fulltext/removed/mod.rs`, docs/developers/decisions/0058-removed-words.md).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error, Xid};
use cheetah::testing::db::{Db, Isolation, Read, RowWords, Savepoint, Transaction};
use cheetah::testing::salvage::{salvage, Disks};
use cheetah::testing::table::Table;
use cheetah_io::sim::{CrashPolicy, SimClock, SimDisk};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::steps::{self, survives};
use support::words::*;
use support::*;

const REMOVED: &str = "#removed_words";
/// A text with several words.
const LONG: &str = "ant bee cat dog eel";

type Texts = BTreeMap<u64, String>;

/// A table `db/a` with one full-text index, and rows of long texts under `keys`.
fn with_rows(disk: &SimDisk, keys: &[u64]) -> (Db, Arc<Table>) {
    let db = open(disk).unwrap();
    let table = db.create_table(&with_words("db/a", &["one"])).unwrap();
    let mut txn = db.begin();
    keys.iter().for_each(|key| put(&db, &mut txn, &table, *key, LONG));
    txn.commit().unwrap();
    (db, table)
}

fn removals(db: &Db) -> u64 {
    db.table(REMOVED).map_or(0, |removed| removed.row_count())
}

fn postings_count(db: &Db, table: &Table) -> u64 {
    db.postings(table, 0).unwrap().row_count()
}

fn all_background(db: &Db) {
    while db.run_background().unwrap() {}
}

fn now(db: &Db, table: &Arc<Table>, word: &str) -> Vec<u64> {
    found(&mut db.begin(), table, 0, word).unwrap()
}

fn differs(db: &Db, table: &Arc<Table>) -> Option<String> {
    db.begin().check_words(table, 0, END, &mut Spaces).unwrap()
}

/// The key of a row's removal in the table of removed words.
fn removal_key(db: &Db, table: &Table, key: u64) -> Vec<u8> {
    let postings = db.postings(table, 0).unwrap();
    [&postings.id().0.to_be_bytes()[..], &key.to_be_bytes()].concat()
}

fn xid() -> Xid {
    Xid::new(1, b"p", b"branch").unwrap()
}

#[test]
fn w1_a_removed_row_is_found_by_older_snapshots_alone() {
    let (db, table) = with_rows(&SimDisk::new(), &[1, 2, 3]);
    let (mut before, mut between) = (db.begin(), db.begin());
    before.take_snapshot().unwrap();
    let mut txn = db.begin();
    take(&db, &mut txn, &table, 2, LONG);
    assert_eq!(found(&mut txn, &table, 0, "ant").unwrap(), [1, 3]);
    assert_eq!(now(&db, &table, "ant"), [1, 2, 3]);
    txn.commit().unwrap();
    assert_eq!((removals(&db), postings_count(&db, &table)), (1, 15));
    between.take_snapshot().unwrap();
    for _ in 0..2 {
        // The snapshot is older than the table of removed words, but still finds the rows (W8).
        assert_eq!(found(&mut before, &table, 0, "eel").unwrap(), [1, 2, 3]);
        assert_eq!(found(&mut between, &table, 0, "eel").unwrap(), [1, 3]);
        assert_eq!(found_as(&mut before, &table, (0, Read::Exclusive), "bee").unwrap(), [1, 3]);
        assert_eq!((now(&db, &table, "cat"), differs(&db, &table)), (vec![1, 3], None));
        if removals(&db) > 0 {
            let bug = plant("full text: find the words of removed rows");
            assert_eq!(now(&db, &table, "ant"), [1, 2, 3]);
            assert!(differs(&db, &table).is_some() && bug.reached_count() > 0);
        }
        all_background(&db);
        assert_eq!((removals(&db), postings_count(&db, &table)), (0, 10));
    }
    assert!(reach::count("removal worked off") > 0 || !cfg!(debug_assertions));
}

#[test]
fn a_row_with_one_word_takes_it_along() {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&with_words("db/a", &["one"])).unwrap();
    let mut txn = db.begin();
    put(&db, &mut txn, &table, 1, "ant ant");
    take(&db, &mut txn, &table, 1, "ant ant");
    txn.commit().unwrap();
    assert!(db.table(REMOVED).is_err());
    assert_eq!((postings_count(&db, &table), differs(&db, &table)), (0, None));
}

#[test]
fn the_words_of_a_long_text_go_too() {
    let (db, table) = with_rows(&SimDisk::new(), &[1]);
    let text = (0..3000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    let mut txn = db.begin();
    put(&db, &mut txn, &table, 2, &text);
    txn.commit().unwrap();
    take(&db, &mut txn, &table, 2, &text);
    txn.commit().unwrap();
    assert_eq!((now(&db, &table, "w7 w2999"), differs(&db, &table)), (vec![], None));
    all_background(&db);
    assert_eq!((removals(&db), postings_count(&db, &table), differs(&db, &table)), (0, 5, None));
}

/// A writer of the rows with even keys, or of the rows with odd keys.
#[derive(Default)]
struct Writer {
    open: Option<Open>,
}

struct Open {
    txn: Transaction,
    /// The rows that the writer must see.
    seen: Texts,
    saved: Vec<(Savepoint, Texts)>,
}

/// Two writers and some readers of random rows, with concurrent background work.
struct Play {
    db: Db,
    table: Arc<Table>,
    committed: Texts,
    writers: [Writer; 2],
    readers: Vec<(Transaction, Texts)>,
}

impl Play {
    fn new() -> Self {
        let (db, table) = with_rows(&SimDisk::new(), &[]);
        let writers = Default::default();
        Self { db, table, committed: Texts::new(), writers, readers: Vec::new() }
    }

    fn step(&mut self, rng: &mut Rng) -> Result<(), String> {
        match rng.below(12) {
            0 => {
                let mut txn = self.db.begin();
                txn.take_snapshot().unwrap();
                self.readers.push((txn, self.committed.clone()));
                if self.readers.len() > 3 {
                    self.readers.remove(rng.below(3) as usize);
                }
            }
            1..=2 => drop(self.db.run_background().map_err(|error| error.to_string())?),
            3 => all_background(&self.db),
            _ => self.write(rng.below(2), rng).map_err(|error| error.to_string())?,
        }
        self.check()
    }

    fn write(&mut self, parity: u64, rng: &mut Rng) -> cheetah::testing::base::Result<()> {
        let Self { db, table, committed, writers, .. } = self;
        let writer = &mut writers[parity as usize];
        if writer.open.is_none() {
            let mut txn = db.begin();
            txn.take_snapshot()?;
            writer.open = Some(Open { txn, seen: committed.clone(), saved: Vec::new() });
        }
        let Some(Open { txn, seen, saved }) = &mut writer.open else { return Ok(()) };
        match rng.below(12) {
            0 => saved.push((txn.savepoint(), seen.clone())),
            1 => {
                if let Some((savepoint, then)) = saved.pop() {
                    txn.rollback_to(savepoint)?;
                    *seen = then;
                }
            }
            2 => {
                txn.rollback()?;
                writer.open = None;
            }
            3..=4 => {
                txn.commit()?;
                committed.retain(|key, _| key % 2 != parity);
                committed
                    .extend(seen.iter().filter(|(key, _)| *key % 2 == parity).map(|(k, t)| (*k, t.clone())));
                writer.open = None;
            }
            _ => change_one(db, txn, table, seen, (rng.below(4) * 2 + parity, rng))?,
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let Self { table, committed, writers, readers, db } = self;
        let writers = writers.iter_mut().filter_map(|writer| writer.open.as_mut());
        let writers = writers.map(|open| ("a writer", &mut open.txn, &open.seen));
        let readers = readers.iter_mut().map(|(txn, seen)| ("a reader", txn, &*seen));
        let mut newest = db.begin();
        for (who, txn, seen) in writers.chain(readers).chain([("anybody", &mut newest, &*committed)]) {
            for word in WORDS {
                let keys = found(txn, table, 0, word).map_err(|error| error.to_string())?;
                if keys != keys_with(seen, word) {
                    return Err(format!(
                        "{who} finds '{word}' in {keys:?}, not in {:?}",
                        keys_with(seen, word)
                    ));
                }
            }
        }
        differs(db, table).map_or(Ok(()), Err)
    }
}

fn change_one(
    db: &Db,
    txn: &mut Transaction,
    table: &Arc<Table>,
    seen: &mut Texts,
    (key, rng): (u64, &mut Rng),
) -> cheetah::testing::base::Result<()> {
    let text = some_text(rng);
    match seen.get(&key).cloned() {
        None => {
            put(db, txn, table, key, &text);
            seen.insert(key, text);
        }
        Some(old) if rng.chance(0.3) => {
            change(db, txn, table, key, (&old, &text));
            seen.insert(key, text);
        }
        Some(old) => {
            take(db, txn, table, key, &old);
            seen.remove(&key);
            if rng.chance(0.4) {
                put(db, txn, table, key, &text);
                seen.insert(key, text);
            }
        }
    }
    Ok(())
}

fn play(seed: u64) -> Result<(), String> {
    let (mut play, mut rng) = (Play::new(), Rng::new(seed));
    (0..100).try_for_each(|step| {
        play.step(&mut rng).map_err(|difference| format!("seed {seed}, step {step}: {difference}"))
    })
}

fn played(mut seeds: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    let caught = |seed| std::panic::catch_unwind(|| play(seed)).unwrap_or_else(|_| Err("a panic".into()));
    seeds.try_for_each(caught)
}

/// Breaks W3: a transaction that reinserts a row must first take back the removal of its key.
#[test]
fn w1_everybody_finds_what_is_theirs_whatever_comes_back_or_is_rolled_back() {
    (1..=20).try_for_each(play).unwrap();
    assert!(reach::count("removal taken back") > 0 || !cfg!(debug_assertions));
    for bug in [
        "full text: find the words of removed rows",
        "full text: bring a row back without looking for its removal",
        "full text: keep the removal of a row that comes again",
        "full text: work a removal off without its words",
    ] {
        let planted = plant(bug);
        let caught = played(1..=20);
        assert!(caught.is_err() && planted.reached_count() > 0, "{bug}");
        println!("'{bug}' was caught: {}", caught.unwrap_err());
    }
}

/// Inserts and deletes of rows, and background work, step by step.
#[derive(Clone, Default)]
struct Model {
    rows: Option<Texts>,
}

impl steps::Model for Model {
    fn step(&mut self, db: &Db, rng: &mut Rng) {
        let Some(rows) = &mut self.rows else {
            db.create_table(&with_words("db/a", &["one"])).unwrap();
            self.rows = Some(Texts::new());
            return;
        };
        let table = db.table("db/a").unwrap();
        match rng.below(10) {
            0 => {
                db.truncate_table("db/a").unwrap();
                rows.clear();
            }
            1 => {
                db.drop_table("db/a").unwrap();
                self.rows = None;
            }
            2..=4 => all_background(db),
            _ => {
                let mut txn = db.begin();
                for _ in 0..=rng.below(4) {
                    change_one(db, &mut txn, &table, rows, (rng.below(6), &mut *rng)).unwrap();
                }
                txn.commit().unwrap();
            }
        }
    }

    fn check(&self, db: &Db) -> Result<(), String> {
        let Some(rows) = &self.rows else {
            return db.table("db/a").map_or(Ok(()), |_| Err("there is a table".into()));
        };
        let table = db.table("db/a").map_err(|error| error.to_string())?;
        for word in WORDS {
            let keys = found(&mut db.begin(), &table, 0, word).map_err(|error| error.to_string())?;
            if keys != keys_with(rows, word) {
                return Err(format!("'{word}' in {keys:?}, not in {:?}", keys_with(rows, word)));
            }
        }
        db.begin()
            .check_words(&table, 0, END, &mut Spaces)
            .map_err(|error| error.to_string())?
            .map_or(Ok(()), Err)
    }
}

#[test]
fn w1_removals_and_their_postings_go_together_whenever_power_is_cut() {
    (1..=10).try_for_each(|seed| survives::<Model>(seed, 16)).unwrap();
    let bug = plant("full text: work a removal off without its words");
    // A word that remains may also conflict with the next row.
    let is_caught = |seed| !matches!(std::panic::catch_unwind(|| survives::<Model>(seed, 16)), Ok(Ok(())));
    assert!((1..=10).any(is_caught) && bug.reached_count() > 0);
}

#[test]
fn w3_who_brings_a_row_back_waits_for_whoever_has_its_removal() {
    let (db, table) = with_rows(&SimDisk::new(), &[1, 2]);
    let mut txn = db.begin();
    take(&db, &mut txn, &table, 1, LONG);
    txn.commit().unwrap();
    // Takes the lock that the background would take.
    let mut other = db.begin();
    let (removed, key) = (db.table(REMOVED).unwrap(), removal_key(&db, &table, 1));
    assert!(other.get(&removed, &key, Read::Exclusive, &mut Vec::new()).unwrap());
    txn.set_lock_wait(0);
    insert(&mut txn, &table, 1, &row_of(1, LONG)).unwrap();
    let postings = db.postings(&table, 0).unwrap();
    let write = |txn: &mut Transaction| {
        let words = &mut list_of(b"fox");
        txn.insert_words(&postings, RowWords { key: &1u64.to_be_bytes(), words })
    };
    assert!(matches!(write(&mut txn), Err(Error::LockTimeout)));
    // W4: the background never waits for a lock.
    all_background(&db);
    assert_eq!(removals(&db), 1);
    other.rollback().unwrap();
    write(&mut txn).unwrap();
    assert_eq!(found(&mut txn, &table, 0, "ant fox").unwrap(), [1, 2]);
    all_background(&db);
    txn.rollback().unwrap();
    assert_eq!((removals(&db), now(&db, &table, "ant fox")), (1, vec![2]));
    all_background(&db);
    assert_eq!((removals(&db), postings_count(&db, &table), differs(&db, &table)), (0, 5, None));
}

/// Two connections delete rows and insert them again, with concurrent background threads.
#[test]
fn w4_rows_come_and_go_beside_the_background() {
    let (db, table) = with_rows(&SimDisk::new(), &[]);
    db.start_background_threads().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut rng = Rng::new(writer + 1);
                let mut rows = Texts::new();
                let mut txn = db.begin();
                for _ in 0..150 {
                    let key = rng.below(6) * 2 + writer;
                    change_one(db, &mut txn, table, &mut rows, (key, &mut rng)).unwrap();
                    txn.commit().unwrap();
                    let keys = found(&mut txn, table, 0, "ant").unwrap();
                    let mine: Vec<_> = keys.into_iter().filter(|key| key % 2 == writer).collect();
                    assert_eq!(mine, keys_with(&rows, "ant"));
                    txn.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(differs(&db, &table), None);
    until("all removals are worked off", || removals(&db) == 0);
    assert_eq!((differs(&db, &table), db.background_errors()), (None, vec![]));
    db.close().unwrap();
}

#[test]
fn w5_a_search_with_locks_keeps_what_it_has_found() {
    let (db, table) = with_rows(&SimDisk::new(), &[1, 2]);
    let begin = || {
        let mut txn = db.begin();
        txn.set_isolation(Isolation::Serializable);
        txn.set_lock_wait(0);
        txn
    };
    let postings = db.postings(&table, 0).unwrap();
    let (mut first, mut other) = (begin(), begin());
    assert_eq!(found(&mut first, &table, 0, "ant").unwrap(), [1, 2]);
    let try_to_take = |txn: &mut Transaction, key: u64| {
        delete(txn, &table, key, &row_of(key, LONG)).unwrap();
        let words = &mut list_of(LONG.as_bytes());
        txn.delete_words(&postings, RowWords { key: &key.to_be_bytes(), words })
    };
    assert!(matches!(try_to_take(&mut other, 1), Err(Error::LockTimeout)));
    other.rollback().unwrap();
    first.commit().unwrap();
    try_to_take(&mut other, 1).unwrap();
    assert!(matches!(found(&mut first, &table, 0, "ant"), Err(Error::LockTimeout)));
    first.rollback().unwrap();
    other.commit().unwrap();
    assert_eq!(found(&mut first, &table, 0, "ant").unwrap(), [2]);
    // The search also locked a posting of the deleted row, so the background skips the removal of
    // this row.
    all_background(&db);
    assert_eq!((removals(&db), postings_count(&db, &table)), (1, 10));
    first.commit().unwrap();
    all_background(&db);
    assert_eq!((removals(&db), postings_count(&db, &table)), (0, 5));
    let bug = plant("full text: lock postings without their removals");
    assert_eq!(found(&mut first, &table, 0, "ant").unwrap(), [2]);
    try_to_take(&mut other, 2).unwrap();
    assert!(bug.reached_count() > 0);
    drop((first, other));
}

#[test]
fn w7_removals_of_a_table_that_has_gone_go_too() {
    for drops in [true, false] {
        let (db, table) = with_rows(&SimDisk::new(), &[1, 2]);
        let mut txn = db.begin();
        take(&db, &mut txn, &table, 1, LONG);
        txn.commit().unwrap();
        match drops {
            true => db.drop_table("db/a").unwrap(),
            false => drop(db.truncate_table("db/a").unwrap()),
        }
        assert_eq!(removals(&db), 1);
        all_background(&db);
        assert_eq!((removals(&db), db.background_errors()), (0, vec![]));
    }
}

#[test]
fn a_prepared_removal_is_as_the_decision_is() {
    for commits in [true, false] {
        let disk = SimDisk::new();
        let (db, table) = with_rows(&disk, &[1, 2]);
        let mut txn = db.begin();
        take(&db, &mut txn, &table, 1, LONG);
        txn.prepare(xid()).unwrap();
        drop((txn, table, db));
        let db = open(&disk.crash(CrashPolicy::SyncedOnly, 1)).unwrap();
        let table = db.table("db/a").unwrap();
        all_background(&db);
        assert_eq!((now(&db, &table, "ant"), removals(&db)), (vec![1, 2], 1));
        let expected = match commits {
            true => {
                db.commit_prepared(&xid()).unwrap();
                vec![2]
            }
            false => {
                db.rollback_prepared(&xid()).unwrap();
                vec![1, 2]
            }
        };
        assert_eq!(now(&db, &table, "ant"), expected);
        all_background(&db);
        assert_eq!((now(&db, &table, "ant"), removals(&db), differs(&db, &table)), (expected, 0, None));
    }
}

#[test]
fn a_row_that_comes_back_is_not_refused_because_of_the_background() {
    let (db, table) = with_rows(&SimDisk::new(), &[1, 2]);
    let mut txn = db.begin();
    take(&db, &mut txn, &table, 1, LONG);
    txn.commit().unwrap();
    txn.set_snapshot_isolation(true);
    txn.take_snapshot().unwrap();
    all_background(&db);
    put(&db, &mut txn, &table, 1, LONG);
    // Changes by other transactions are detected.
    let mut other = db.begin();
    change(&db, &mut other, &table, 2, (LONG, "fox"));
    other.commit().unwrap();
    assert!(matches!(delete(&mut txn, &table, 2, &row_of(2, "fox")), Err(Error::RecordChanged)));
    txn.commit().unwrap();
    assert_eq!((now(&db, &table, "ant fox"), differs(&db, &table)), (vec![1, 2], None));
}

/// A database that was closed after row 1 of two was deleted, before the background worked.
fn closed_with_a_removal() -> SimDisk {
    let disk = SimDisk::new();
    let (db, table) = with_rows(&disk, &[1, 2]);
    let mut txn = db.begin();
    take(&db, &mut txn, &table, 1, LONG);
    txn.commit().unwrap();
    drop((txn, table));
    db.close().unwrap();
    drop(db);
    disk
}

#[test]
fn a_database_that_is_closed_without_removals_opens_with_older_versions() {
    let disk = closed_with_a_removal();
    let db = open(&disk).unwrap();
    assert_eq!(removals(&db), 1);
    all_background(&db);
    assert_eq!(removals(&db), 0);
    db.close().unwrap();
    drop(db);
    let db = open(&disk).unwrap();
    assert!(db.table(REMOVED).is_err());
    let table = db.table("db/a").unwrap();
    assert_eq!((now(&db, &table, "ant"), differs(&db, &table)), (vec![2], None));
}

#[test]
fn a_salvage_leaves_out_the_words_of_removed_rows() {
    let salvaged = |disk: &SimDisk| {
        let new = SimDisk::new();
        let scratch = Arc::new(SimDisk::new());
        let disks = Disks { damaged: Arc::new(disk.clone()), scratch, new: Arc::new(new.clone()) };
        let clock: Arc<dyn cheetah_io::Clock> = Arc::new(SimClock::default());
        assert!(salvage(&disks, &clock, &Config::tiny(), &mut |_| {}).unwrap().is_whole());
        let db = open(&new).unwrap();
        let table = db.table("db/a").unwrap();
        (differs(&db, &table), removals(&db))
    };
    let disk = closed_with_a_removal();
    assert_eq!(salvaged(&disk), (None, 0));
    let bug = plant("salvage: copy words of removed rows");
    assert!(salvaged(&disk).0.is_some() && bug.reached_count() > 0);
}
