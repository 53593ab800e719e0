//! Damage that a startup finds in redo or in the rollback of losers. The table is quarantined, now
//! and after every later startup, and all other tables work. Dropping the table ends the quarantine
//! (N3).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Config, Error, Result, TreeId};
use cheetah::testing::db::Db;
use cheetah::testing::format::image::HEADER_BYTES;
use cheetah_io::sim::{explore, CrashPolicy, Plan, SimDisk};
use std::panic::{catch_unwind, AssertUnwindSafe};
use support::workload::Contents;
use support::*;

/// The number of steps after which the background has finished all its work.
const STEPS: usize = 50;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A database with three tables whose pages are in segments. Only the log has the last changes: of
/// every row of every table, of a large value that replaces another, and of a transaction that
/// never ended.
fn written() -> (SimDisk, Contents) {
    written_with(|_| ())
}

/// Like [`written`]. `last` runs before the power cut.
fn written_with(last: impl FnOnce(&Db)) -> (SimDisk, Contents) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let mut contents = Contents::new();
    let mut txn = db.begin();
    for name in NAMES {
        let table = db.create_table(&spec(name)).unwrap();
        let rows: Rows =
            (0..60).map(|key| (key, Row::new(key, if key % 20 == 0 { 3000 } else { 25 }))).collect();
        rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
        txn.commit().unwrap();
        contents.insert(name.into(), rows);
    }
    db.close().unwrap();
    drop((txn, db));
    let db = open(&disk).unwrap();
    let mut txn = db.begin();
    for name in NAMES {
        let table = db.table(name).unwrap();
        let rows = contents.get_mut(name).unwrap();
        for (key, row) in rows.iter_mut().filter(|(key, _)| *key % 4 == 0) {
            let new = Row::new(key + 500, if key % 40 == 0 { 2000 } else { 25 });
            update(&mut txn, &table, *key, row, *key, &new).unwrap();
            *row = new;
        }
        txn.commit().unwrap();
    }
    let mut loser = db.begin();
    for name in NAMES {
        let table = db.table(name).unwrap();
        (1..60).step_by(7).filter(|key| key % 4 != 0).for_each(|key| {
            delete(&mut loser, &table, key, &contents[name][&key]).unwrap();
        });
        insert(&mut loser, &table, 1000, &Row::new(1000, 2500)).unwrap();
    }
    db.create_table(&spec("last")).unwrap();
    contents.insert("last".into(), Rows::new());
    last(&db);
    std::mem::forget(loser);
    (disk.crash(CrashPolicy::SyncedOnly, 1), contents)
}

/// The images of user tables in the segments of a disk: path, offset, length.
fn images(disk: &SimDisk) -> Vec<(String, u64, u64)> {
    let mut images = Vec::new();
    for path in disk.paths().into_iter().filter(|path| path.starts_with("seg/")) {
        let bytes = disk.contents(&path).unwrap();
        for at in (0..bytes.len().saturating_sub(HEADER_BYTES)).step_by(64) {
            let word = |from: usize| u32::from_le_bytes(bytes[at + from..at + from + 4].try_into().unwrap());
            if bytes[at..].starts_with(b"IMG1") && word(40) >= TreeId::FIRST_USER.0 {
                images.push((path.clone(), at as u64, u64::from(word(4))));
            }
        }
    }
    images
}

fn rows_of(db: &Db, name: &str) -> Result<Rows> {
    all_rows(&mut db.begin(), &db.table(name)?)
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T>, name: &str) {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Corruption { .. }), "{text}");
    assert!(text.contains(&format!("table '{name}'")) && text.contains("page"), "{text}");
    assert!(text.contains("drop or truncate it"), "{text}");
}

/// Tables that are not quarantined must have the expected rows and be writable. Quarantined tables
/// must be refused.
fn check_all(db: &Db, contents: &Contents) -> std::result::Result<Vec<String>, String> {
    let quarantined: Vec<String> = db.quarantined_tables().into_iter().map(|(name, _)| name).collect();
    for (name, rows) in contents {
        let table = db.table(name).unwrap();
        let mut txn = db.begin();
        if quarantined.contains(name) {
            assert_refused(rows_of(db, name), name);
            assert_refused(insert(&mut txn, &table, 5000, &Row::new(5000, 5)), name);
            assert_refused(db.check_table(&table, false), name);
            assert_refused(table.stats(), name);
            continue;
        }
        match rows_of(db, name) {
            Ok(found) if found == *rows => {}
            Ok(_) => return Err(format!("table {name} has wrong rows, and no error was reported")),
            // The startup did not need the damaged page.
            Err(Error::Corruption { .. }) => continue,
            Err(other) => return Err(other.to_string()),
        }
        match insert(&mut txn, &table, 5000, &Row::new(5000, 5)) {
            Ok(()) => {}
            Err(Error::Corruption { .. }) => continue,
            Err(other) => return Err(other.to_string()),
        }
        txn.rollback().map_err(|error| error.to_string())?;
    }
    Ok(quarantined)
}

/// The time at which the open transactions are rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Losers {
    AtOnce,
    InTheBackground,
}

fn opened(disk: &SimDisk, losers: Losers) -> Result<Db> {
    if losers == Losers::AtOnce {
        return open(disk);
    }
    let db = Db::open_early(env(disk), Config::tiny())?;
    // The steps that free space also meet the damage, repeatedly.
    for _ in 0..STEPS {
        let _ = db.run_background();
    }
    for left in ["rollbacks_unfinished", "transactions_to_purge"] {
        assert_eq!(db.status().into_iter().find(|(name, _)| *name == left).unwrap().1, 0, "{left}");
    }
    Ok(db)
}

/// Opens a damaged database three times, with a power cut after the first time, and drops the
/// quarantined tables.
fn survive(disk: &SimDisk, contents: &Contents, losers: Losers) -> std::result::Result<Vec<String>, String> {
    let db = opened(disk, losers).map_err(|error| format!("the database does not open: {error}"))?;
    let quarantined = check_all(&db, contents)?;
    if losers == Losers::InTheBackground {
        db.checkpoint().map_err(|error| format!("the database makes no checkpoint: {error}"))?;
    }
    drop(db);
    let disk = disk.crash(CrashPolicy::SyncedOnly, 1);
    let db = opened(&disk, losers).map_err(|error| format!("the database does not open again: {error}"))?;
    if check_all(&db, contents)? != quarantined {
        return Err("the second startup quarantines other tables".into());
    }
    let mut contents = contents.clone();
    for (number, name) in quarantined.iter().enumerate() {
        contents.insert(name.clone(), Rows::new());
        match number % 2 {
            0 => {
                db.drop_table(name).unwrap();
                db.create_table(&spec(name)).unwrap();
            }
            _ => drop(db.truncate_table(name).unwrap()),
        }
    }
    db.close().map_err(|error| format!("the database does not close: {error}"))?;
    drop(db);
    let db = open(&disk).map_err(|error| format!("the database does not open a third time: {error}"))?;
    match check_all(&db, &contents)?.as_slice() {
        [] => Ok(quarantined),
        still => Err(format!("{still:?} are still quarantined")),
    }
}

#[test]
fn a_table_whose_page_recovery_needs_is_quarantined_and_the_rest_works() {
    let (disk, contents) = written();
    let mut quarantined_count = 0;
    let images = images(&disk);
    for (number, (path, offset, length)) in images.iter().enumerate() {
        let damaged = disk.snapshot();
        damaged.flip(path, offset + 20 + (number as u64 * 37) % (length - 20), number as u8 % 8).unwrap();
        let losers = if number % 2 == 0 { Losers::AtOnce } else { Losers::InTheBackground };
        let quarantined = survive(&damaged, &contents, losers)
            .unwrap_or_else(|what| panic!("image {number} at {offset} of {path}: {what}"));
        assert!(quarantined.len() <= 1, "one page is damaged, but {quarantined:?} are quarantined");
        quarantined_count += quarantined.len();
    }
    assert!(
        quarantined_count * 10 > images.len(),
        "{quarantined_count} of {} flipped bits quarantine a table",
        images.len()
    );
}

#[test]
fn all_damaged_tables_are_quarantined_at_once() {
    let (disk, contents) = written();
    for (path, offset, length) in images(&disk) {
        disk.flip(&path, offset + length / 2, 1).unwrap();
    }
    for losers in [Losers::AtOnce, Losers::InTheBackground] {
        let quarantined = survive(&disk.snapshot(), &contents, losers);
        assert_eq!(quarantined, Ok(NAMES.map(String::from).to_vec()), "{losers:?}");
    }
}

#[test]
fn power_cuts_while_a_quarantine_is_made_change_nothing() {
    let (disk, contents) = written();
    let quarantines = |(path, offset, length): (String, u64, u64)| {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 1).unwrap();
        let quarantined = open(&damaged.snapshot()).unwrap().quarantined_tables();
        quarantined.into_iter().next().map(|(name, _)| (damaged, name))
    };
    let (disk, name) = images(&disk).into_iter().find_map(quarantines).expect("some image matters");
    let mut images_count = 0;
    let plan = Plan::quick(1, 60);
    let explored = explore(
        &plan,
        &disk,
        |disk| drop(open(disk).unwrap()),
        |image| {
            let quarantined = survive(&image.disk, &contents, Losers::AtOnce)?;
            images_count += 1;
            match quarantined == [name.clone()] {
                true => Ok(()),
                false => Err(format!("{quarantined:?} are quarantined")),
            }
        },
    );
    explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(images_count > 20);
}

/// Breaks N3: the epoch state must record the quarantine.
#[test]
fn a_quarantine_that_is_forgotten_is_caught_n3() {
    let (disk, contents) = written();
    let bug = plant("recovery: forget the quarantine");
    let caught = images(&disk).into_iter().any(|(path, offset, length)| {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 1).unwrap();
        survive(&damaged, &contents, Losers::AtOnce).is_err()
    });
    assert!(caught && bug.reached_count() > 0);
}

/// The last epoch contains the open transaction, so redo does not read the transaction's pages.
#[test]
fn a_table_whose_page_only_a_rollback_in_the_background_needs_is_quarantined() {
    let (disk, contents) = written_with(|db| db.checkpoint().unwrap());
    let mut quarantined_count = 0;
    for (number, (path, offset, length)) in images(&disk).into_iter().enumerate() {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 1).unwrap();
        let quarantined = survive(&damaged, &contents, Losers::InTheBackground)
            .unwrap_or_else(|what| panic!("image {number} at {offset} of {path}: {what}"));
        assert!(quarantined.len() <= 1, "one page is damaged, but {quarantined:?} are quarantined");
        quarantined_count += quarantined.len();
    }
    assert!(quarantined_count > 3, "{quarantined_count} flipped bits quarantine a table");
}

/// Breaks N3: damage found by work that a startup leaves to the background must quarantine the
/// table.
#[test]
fn what_the_background_meets_and_does_not_quarantine_is_caught_n3() {
    let (disk, contents) = written_with(|db| db.checkpoint().unwrap());
    let bug = plant("recovery: quarantine nothing once it serves");
    let caught = images(&disk).into_iter().any(|(path, offset, length)| {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 1).unwrap();
        let survived =
            catch_unwind(AssertUnwindSafe(|| survive(&damaged, &contents, Losers::InTheBackground)));
        survived.map_or(true, |survived| survived.is_err())
    });
    assert!(caught && bug.reached_count() > 0);
}
