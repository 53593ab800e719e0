//! Salvage. With any damage, the copy has only committed rows, and all committed rows that no
//! damage touches. The report describes the rest.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Config, Error, Result, TreeId, Xid};
use cheetah::testing::db::{Db, Pace};
use cheetah::testing::format::image::HEADER_BYTES;
use cheetah::testing::salvage::{salvage, Disks, Report, TableReport};
use cheetah::testing::table::FulltextSpec;
use cheetah_io::sim::{CrashPolicy, SimClock, SimDisk};
use cheetah_io::{Clock, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use support::*;

const NAMES: [&str; 3] = ["a", "b", "c"];
const KEYS: u64 = 160;

/// The committed rows: the current rows, and all earlier versions of each row.
#[derive(Clone, Default)]
struct Committed {
    now: BTreeMap<String, Rows>,
    ever: BTreeMap<String, BTreeMap<u64, Vec<Row>>>,
}

impl Committed {
    fn put(&mut self, name: &str, key: u64, row: Option<Row>) {
        let now = self.now.entry(name.into()).or_default();
        match row {
            Some(row) => {
                now.insert(key, row.clone());
                self.ever.entry(name.into()).or_default().entry(key).or_default().push(row);
            }
            None => drop(now.remove(&key)),
        }
    }
}

/// A database with tables whose pages are in segments. Only the log has the last changes: of every
/// fourth row, deletes, a large value that replaces another, a transaction that was rolled back,
/// and a transaction that never ended.
fn written() -> (SimDisk, Committed) {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let mut committed = Committed::default();
    let mut txn = db.begin();
    for name in NAMES {
        let table = db.create_table(&spec(name)).unwrap();
        for key in 0..KEYS {
            let row = Row::new(key, if [0, 7].contains(&(key % 20)) { 3000 } else { 25 });
            insert(&mut txn, &table, key, &row).unwrap();
            committed.put(name, key, Some(row));
        }
        txn.commit().unwrap();
    }
    let mut early = db.begin();
    for name in NAMES {
        let table = db.table(name).unwrap();
        for key in (2..KEYS).step_by(32) {
            let new = Row::new(key + 4000, 30);
            update(&mut early, &table, key, &committed.now[name][&key], key, &new).unwrap();
        }
    }
    // The epoch contains changes of the transaction that never ends.
    db.close().unwrap();
    std::mem::forget(early);
    drop((txn, db));
    let db = open(&disk).unwrap();
    let mut txn = db.begin();
    for name in NAMES {
        let table = db.table(name).unwrap();
        for key in (0..KEYS).filter(|key| key % 4 == 0) {
            let old = committed.now[name][&key].clone();
            if key % 16 == 4 {
                delete(&mut txn, &table, key, &old).unwrap();
                committed.put(name, key, None);
            } else {
                let new = Row::new(key + 500, if key % 40 == 0 { 2000 } else { 25 });
                update(&mut txn, &table, key, &old, key, &new).unwrap();
                committed.put(name, key, Some(new));
            }
        }
        txn.commit().unwrap();
        for key in (1..KEYS).step_by(14) {
            let old = &committed.now[name][&key];
            update(&mut txn, &table, key, old, key, &Row::new(key + 9000, 40)).unwrap();
        }
        txn.rollback().unwrap();
    }
    let mut loser = db.begin();
    for name in NAMES {
        let table = db.table(name).unwrap();
        (3..KEYS).step_by(28).for_each(|key| {
            delete(&mut loser, &table, key, &committed.now[name][&key]).unwrap();
        });
        insert(&mut loser, &table, 1000, &Row::new(1000, 2500)).unwrap();
    }
    db.create_table(&spec("last")).unwrap();
    committed.now.insert("last".into(), Rows::new());
    std::mem::forget(loser);
    (disk.crash(CrashPolicy::SyncedOnly, 1), committed)
}

fn disks(damaged: &SimDisk) -> (Disks, SimDisk) {
    let new = SimDisk::new();
    let scratch = Arc::new(SimDisk::new());
    (Disks { damaged: Arc::new(damaged.clone()), scratch, new: Arc::new(new.clone()) }, new)
}

/// The report, and the new database.
fn salvaged(damaged: &SimDisk) -> Result<(Report, Db)> {
    let (disks, new) = disks(damaged);
    let (before, operations) = (contents_of(damaged), damaged.operations());
    let clock: Arc<dyn Clock> = Arc::new(SimClock::default());
    let mut heard = 0;
    let report = salvage(&disks, &clock, &Config::tiny(), &mut |_| heard += 1);
    assert_eq!(damaged.operations(), operations, "S1: the damaged database is not written");
    assert!(contents_of(damaged) == before, "S1");
    assert!(disks.scratch.list("").unwrap().is_empty(), "leftover files of the salvage");
    let report = report?;
    assert_eq!(heard, report.tables.len());
    Ok((report, open(&new)?))
}

fn contents_of(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.contents(&path).unwrap())).collect()
}

fn rows_of(db: &Db, name: &str) -> Rows {
    all_rows(&mut db.begin(), &db.table(name).unwrap()).unwrap()
}

fn is_in_gap(report: &TableReport, key: u64) -> bool {
    let key = key.to_be_bytes();
    report.gaps.iter().any(|gap| {
        gap.low.as_slice() <= &key[..] && gap.high.as_ref().is_none_or(|high| &key[..] < high.as_slice())
    })
}

/// Compares the copy with the committed rows. `Err` describes a difference.
fn judge(report: &Report, db: &Db, committed: &Committed) -> std::result::Result<(), String> {
    judge_as_of(report, db, committed, report.notes.is_empty())
}

/// Like [`judge`]. Unless `is_newest`, the copy may lack the last changes.
fn judge_as_of(
    report: &Report,
    db: &Db,
    committed: &Committed,
    is_newest: bool,
) -> std::result::Result<(), String> {
    for of_table in &report.tables {
        let name = &of_table.name;
        let Some(now) = committed.now.get(name) else { return Err(format!("unknown table {name}")) };
        let found = rows_of(db, name);
        if found.len() as u64 != of_table.rows {
            return Err(format!("{name} has {} rows, the report says {}", found.len(), of_table.rows));
        }
        for (key, row) in &found {
            let is_one = committed.ever.get(name).and_then(|rows| rows.get(key));
            if !is_one.is_some_and(|rows| rows.contains(row)) {
                return Err(format!("S2: row {key} of {name} was never committed"));
            }
        }
        if is_newest && of_table.is_whole() && found != *now {
            return Err(format!("S4: {name} differs, but the report calls it complete"));
        }
        let is_lost = |key: &&u64| !found.contains_key(key) && !is_in_gap(of_table, **key);
        let lost = now.keys().filter(is_lost).count() as u64;
        if is_newest && lost > of_table.rows_lost + of_table.changes_lost {
            return Err(format!("S3: {lost} undamaged rows of {name} are lost: {of_table:?}"));
        }
    }
    let names: BTreeSet<_> = report.tables.iter().map(|table| &table.name).collect();
    match is_newest && names != committed.now.keys().collect() {
        true => Err(format!("S4: the copy has {names:?}")),
        false => Ok(()),
    }
}

/// Images of user tables: path, offset, length, and the kind of page.
fn images(disk: &SimDisk) -> Vec<(String, u64, u64, u8)> {
    let mut images = Vec::new();
    for path in disk.paths().into_iter().filter(|path| path.starts_with("seg/")) {
        let bytes = disk.contents(&path).unwrap();
        for at in (0..bytes.len().saturating_sub(HEADER_BYTES)).step_by(64) {
            let word = |from: usize| u32::from_le_bytes(bytes[at + from..at + from + 4].try_into().unwrap());
            if bytes[at..].starts_with(b"IMG1") && word(40) >= TreeId::FIRST_USER.0 {
                images.push((path.clone(), at as u64, u64::from(word(4)), bytes[at + 25]));
            }
        }
    }
    images
}

/// Damages one image after the other, and judges each salvage. `Ok` has the number of reports that
/// describe an incomplete copy.
fn salvage_beside_damaged_images(
    disk: &SimDisk,
    committed: &Committed,
    is_wanted: impl Fn(u8) -> bool,
) -> std::result::Result<u64, String> {
    let mut damaged_count = 0;
    for (path, offset, length, _) in images(disk).into_iter().filter(|(.., kind)| is_wanted(*kind)) {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 3).unwrap();
        let (report, db) = salvaged(&damaged).map_err(|error| error.to_string())?;
        judge(&report, &db, committed).map_err(|what| format!("{path} at {offset}: {what}"))?;
        damaged_count += u64::from(!report.is_whole());
    }
    Ok(damaged_count)
}

const LEAF: u8 = 1;
const INNER: u8 = 2;
const BLOB: u8 = 3;

#[test]
fn an_undamaged_database_comes_out_whole_and_its_keys_can_be_enabled() {
    let (disk, committed) = written();
    let (report, db) = salvaged(&disk).unwrap();
    assert!(report.is_whole(), "{report:?}");
    judge(&report, &db, &committed).unwrap();
    for name in NAMES {
        let table = db.table(name).unwrap();
        assert!(table.is_disabled(1) && table.is_disabled(2));
        assert_eq!(table.extra(), b"extra");
        let mut txn = db.begin();
        let table = txn
            .enable_indexes(&table, &mut |_, stored, entries| {
                add_entries_of(stored, entries);
                Ok(())
            })
            .unwrap();
        txn.commit().unwrap();
        assert_eq!(check(&db, &table).unwrap(), Ok(committed.now[name].len() as u64));
        insert(&mut txn, &table, 5000, &Row::new(5000, 3000)).unwrap();
        txn.commit().unwrap();
    }
}

#[test]
fn all_rows_beside_a_damaged_page_come_out() {
    let (disk, committed) = written();
    let damaged = salvage_beside_damaged_images(&disk, &committed, |_| true).unwrap();
    assert!(damaged > 10, "{damaged} reports describe damage");
}

/// Breaks S3 of `salvage/mod.rs`: readable leaves must be salvaged, whatever is damaged above them.
#[test]
fn leaves_under_a_damaged_page_are_passed_by_is_caught() {
    let (disk, committed) = written();
    let bug = plant("salvage: pass by what hangs on a damaged page");
    let caught = salvage_beside_damaged_images(&disk, &committed, |kind| kind == INNER).is_err();
    assert!(caught && bug.reached_count() > 0);
}

#[test]
fn values_that_are_not_whole_are_caught() {
    let (disk, committed) = written();
    let bug = plant("salvage: copy a value that is not whole");
    let caught = salvage_beside_damaged_images(&disk, &committed, |kind| kind == BLOB).is_err();
    assert!(caught && bug.reached_count() > 0);
}

/// Breaks S2 of `salvage/mod.rs`: every salvaged row must have been committed.
#[test]
fn rows_that_were_not_committed_are_caught() {
    let (disk, committed) = written();
    let bug = plant("salvage: copy what was not committed");
    let (report, db) = salvaged(&disk).unwrap();
    assert!(judge(&report, &db, &committed).is_err() && bug.reached_count() > 0);
}

/// Breaks S4 of `salvage/mod.rs`: the report must describe every loss.
#[test]
fn a_log_that_is_passed_by_is_caught() {
    let (disk, committed) = written();
    let bug = plant("salvage: pass by the log");
    let (report, db) = salvaged(&disk).unwrap();
    assert!(judge(&report, &db, &committed).is_err() && bug.reached_count() > 0);
}

#[test]
fn all_leaves_damaged_leave_what_the_log_has() {
    let (disk, committed) = written();
    for (path, offset, length, _) in images(&disk).into_iter().filter(|(.., kind)| *kind == LEAF) {
        disk.flip(&path, offset + length / 2, 1).unwrap();
    }
    let (report, db) = salvaged(&disk).unwrap();
    judge(&report, &db, &committed).unwrap();
    assert!(report.tables.iter().filter(|table| !table.gaps.is_empty()).count() == NAMES.len());
}

/// Salvages a disk with arbitrary damage. The result must be correct, or an error.
fn try_salvage(damaged: &SimDisk, committed: &Committed, what: &str) -> bool {
    let tried = catch_unwind(AssertUnwindSafe(|| salvaged(damaged)));
    match tried.unwrap_or_else(|_| panic!("{what}: a panic")) {
        Ok((report, db)) => {
            // Damage to the last log records cannot be distinguished from the end of the log.
            let is_newest = report.notes.is_empty() && !what.contains("wal/");
            let judged = judge_as_of(&report, &db, committed, is_newest);
            judged.unwrap_or_else(|wrong| panic!("{what}: {wrong}\n{report:?}"));
            true
        }
        Err(error) => {
            assert!(!matches!(error, Error::Fatal(_)), "{what}: {error}");
            false
        }
    }
}

#[test]
fn a_flipped_bit_in_any_file_costs_no_more_than_what_it_hits() {
    let (disk, committed) = written();
    let (mut saved, mut tries) = (0, 0);
    for path in disk.paths() {
        let bytes = disk.contents(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for number in 0..24.min(used) {
            let damaged = disk.snapshot();
            let at = (number * used / 24).min(used - 1);
            damaged.flip(&path, at as u64, number as u8 % 8).unwrap();
            tries += 1;
            saved += u64::from(try_salvage(&damaged, &committed, &format!("{path} at {at}")));
        }
    }
    assert!(saved * 10 > tries * 8, "{saved} of {tries} salvages have rows");
}

/// The bytes of a sector.
const SECTOR_BYTES: usize = 4096;

/// Salvages a disk. Returns the numbers of salvaged rows and tables.
fn saved_of(damaged: &SimDisk, committed: &Committed, what: &str) -> (u64, usize) {
    assert!(try_salvage(damaged, committed, what), "{what}: nothing is salvaged");
    let (report, _) = salvaged(damaged).unwrap();
    (report.tables.iter().map(|table| table.rows).sum(), report.tables.len())
}

#[test]
fn a_sector_that_cannot_be_read_costs_no_more_than_one_that_is_damaged() {
    let (disk, committed) = written();
    let paths = disk.paths();
    // The simulated disk matches paths by prefix.
    let is_alone =
        |path: &&String| !paths.iter().any(|other| other != *path && other.contains(path.as_str()));
    for path in paths.iter().filter(is_alone) {
        let bytes = disk.contents(path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (0..used).step_by(SECTOR_BYTES) {
            let end = bytes.len().min(at + SECTOR_BYTES);
            let (damaged, unreadable) = (disk.snapshot(), disk.snapshot());
            damaged.overwrite(path, at as u64, &Rng::new(1).bytes(end - at)).unwrap();
            unreadable.make_unreadable(path, at as u64..end as u64);
            let what = format!("{path} at {at}");
            let of_damaged = saved_of(&damaged, &committed, &what);
            let of_unreadable = saved_of(&unreadable, &committed, &format!("{what}, unreadable"));
            assert_eq!(of_unreadable, of_damaged, "{what}");
        }
    }
}

#[test]
fn many_damaged_places_cost_no_more_than_what_they_hit() {
    let (disk, committed) = written();
    // Each file of the map has a copy, so damage to one of the two is harmless.
    let is_data = |path: &String| !path.ends_with(".copy") && path != "CONTROL";
    let paths: Vec<String> = disk.paths().into_iter().filter(is_data).collect();
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let damaged = disk.snapshot();
        let mut what = format!("seed {seed}:");
        for _ in 0..1 + rng.below(12) {
            let path = &paths[rng.below(paths.len() as u64) as usize];
            let bytes = disk.contents(path).unwrap().len() as u64;
            if bytes > 0 {
                damaged.flip(path, rng.below(bytes), rng.below(8) as u8).unwrap();
                what += &format!(" {path}");
            }
        }
        assert!(try_salvage(&damaged, &committed, &what), "{what}: nothing is salvaged");
    }
}

#[test]
fn a_lost_file_costs_no_more_than_what_it_has() {
    let (disk, committed) = written();
    for path in disk.paths() {
        let damaged = disk.snapshot();
        damaged.remove(&path).unwrap();
        let saved = try_salvage(&damaged, &committed, &format!("without {path}"));
        assert!(saved || path == "CONTROL", "nothing is salvaged without {path}");
        let cut = disk.snapshot();
        let bytes = disk.contents(&path).unwrap();
        cut.put(&path, &bytes[..bytes.len() / 2]).unwrap();
        try_salvage(&cut, &committed, &format!("half of {path}"));
    }
}

/// The manifest of a snapshot that was never opened shows what the snapshot lacks, including the
/// end of the log.
#[test]
fn a_snapshot_that_is_not_whole_gives_what_it_has() {
    let (disk, committed) = written();
    let db = open(&disk).unwrap();
    let clock = SimClock::default();
    let pace = Pace { clock: &clock, bytes_per_second: 1 << 30, interrupted: &|| false };
    let snapshot = db.pin_snapshot().unwrap();
    snapshot.write_to(Path::new("snap"), Path::new(""), pace, &|_| true, &[]).unwrap();
    let of_snapshot = || disk.snapshot().at("snap");
    let (report, new) = salvaged(&of_snapshot()).unwrap();
    assert!(report.is_whole(), "{report:?}");
    judge(&report, &new, &committed).unwrap();
    for path in of_snapshot().paths().iter().filter(|path| !["CONTROL", "MANIFEST"].contains(&path.as_str()))
    {
        let damaged = of_snapshot();
        damaged.remove(path).unwrap();
        let saved = try_salvage(&damaged, &committed, &format!("a snapshot without {path}"));
        assert!(saved || path.starts_with("map-"), "nothing is salvaged from a snapshot without {path}");
        if let Ok((report, _)) = salvaged(&damaged) {
            assert!(report.notes[0].contains("incomplete snapshot"), "{path}: {report:?}");
        }
    }
    // Damages the start of a log file. The manifest has a checksum of the entire file.
    let unreadable = of_snapshot();
    let log = unreadable.paths().into_iter().rfind(|path| path.starts_with("wal/")).unwrap();
    unreadable.make_unreadable(&log, 0..1);
    let (report, _) = salvaged(&unreadable).unwrap();
    assert!(report.notes[0].contains("incomplete snapshot") && report.notes[0].contains(&log), "{report:?}");
}

#[test]
fn a_table_that_was_quarantined_gives_what_it_has() {
    let (disk, _) = written();
    let quarantined = images(&disk).into_iter().find_map(|(path, offset, length, kind)| {
        let damaged = disk.snapshot();
        damaged.flip(&path, offset + length / 2, 1).unwrap();
        let db = open(&damaged).unwrap();
        let (name, _) = db.quarantined_tables().into_iter().next().filter(|_| kind == LEAF)?;
        db.close().unwrap();
        drop(db);
        Some((damaged, name))
    });
    let (damaged, name) = quarantined.expect("some leaf matters");
    let (report, db) = salvaged(&damaged).unwrap();
    let of_table = report.tables.iter().find(|table| table.name == name).unwrap();
    assert!(of_table.quarantine.is_some() && !of_table.is_whole() && !report.is_whole());
    assert!(rows_of(&db, &name).len() as u64 > KEYS / 2);
    assert!(report.tables.iter().filter(|table| table.name != name).all(TableReport::is_whole));
}

#[test]
fn definitions_counters_and_postings_come_along() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let fulltext = vec![FulltextSpec { name: "words".into(), max_word_bytes: 20, extra: b"how".to_vec() }];
    let with_words = cheetah::testing::table::TableSpec { fulltext, hidden_key: true, ..spec("texts") };
    let table = db.create_table(&with_words).unwrap();
    let key = u64::from_be_bytes(table.next_hidden_key());
    let mut txn = db.begin();
    insert(&mut txn, &table, key, &Row::new(1, 10)).unwrap();
    table.advance_auto_increment(77);
    txn.commit().unwrap();
    drop((txn, table));
    db.close().unwrap();
    drop(db);
    let (report, new) = salvaged(&disk).unwrap();
    assert!(report.is_whole() && report.tables.len() == 1, "{report:?}");
    let table = new.table("texts").unwrap();
    assert!(u64::from_be_bytes(table.next_hidden_key()) > key);
    assert_eq!((table.auto_increment(), table.fulltext().len()), (77, 1));
    assert_eq!(table.fulltext()[0].extra, b"how");
    new.postings(&table, 0).unwrap();
}

#[test]
fn a_prepared_transaction_is_left_out_and_told_of() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let table = db.create_table(&spec("a")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, 1, &Row::new(1, 10)).unwrap();
    txn.prepare(Xid::new(1, b"promised", b"branch").unwrap()).unwrap();
    std::mem::forget(txn);
    let disk = disk.crash(CrashPolicy::SyncedOnly, 1);
    let (report, new) = salvaged(&disk).unwrap();
    assert!(!report.is_whole() && report.notes[0].contains("prepared"), "{report:?}");
    assert!(rows_of(&new, "a").is_empty());
}

#[test]
fn what_must_not_be_salvaged_is_refused() {
    let (disk, _) = written();
    let clock: Arc<dyn Clock> = Arc::new(SimClock::default());
    let tell = |disks: &Disks| salvage(disks, &clock, &Config::tiny(), &mut |_| ()).unwrap_err().to_string();
    let (in_use, new) = disks(&disk);
    new.put("something", b"is here").unwrap();
    assert!(tell(&in_use).contains("not empty"));
    let (open_elsewhere, _) = disks(&disk);
    let db = open(&disk).unwrap();
    assert!(tell(&open_elsewhere).contains("another process"));
    drop(db);
    let (nothing, _) = disks(&SimDisk::new());
    assert!(tell(&nothing).contains("holds no"));
}
