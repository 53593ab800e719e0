//! Snapshots of the database. Each contains the data that was committed when the snapshot was
//! pinned. Later changes of the database do not affect the snapshot, before or after it is written.
//! Changes of a snapshot do not affect the database (Z1 to Z10 of docs/developers/durability.md).

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod opening;
#[path = "../support/mod.rs"]
mod support;
mod waiting;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error, Xid};
use cheetah::testing::db::{Db, Env, Pace, Snapshot, SnapshotOrder, Written};
use cheetah::testing::format::control::COPY_BYTES;
use cheetah::testing::format::manifest::{Made, Manifest};
use cheetah_io::sim::{explore, CrashPolicy, Effect, Fault, Image, Op, Plan, SimClock, SimDisk};
use cheetah_io::{Disk, Rng};
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;
use support::exploration::start;
use support::workload::{self, Shape, Version, Workload};
use support::*;

/// The number of seeds after which a bug counts as not caught.
const SEEDS_MAX: u64 = 40;

/// Returns whether a snapshot rolls back this prepared transaction of the workload.
fn is_withdrawn(no: u64) -> bool {
    no % 3 != 0
}

fn is_own(xid: &Xid) -> bool {
    is_withdrawn(workload::number(xid))
}

fn write(snapshot: &Snapshot, path: &str) -> cheetah::testing::base::Result<Written> {
    let clock = SimClock::default();
    let pace = Pace { clock: &clock, bytes_per_second: 1 << 30, interrupted: &|| false };
    snapshot.write_to(Path::new(path), Path::new(""), pace, &is_own, &[])
}

/// Opens the snapshot in `path` on a copy of the disk, and compares the snapshot with a version.
fn compare(disk: &SimDisk, path: &str, version: &Version, early: bool) -> Result<(), String> {
    let expected = [version.without(is_withdrawn)];
    workload::verify(&disk.snapshot().at(path), &expected, 0, early).map(drop)
}

/// A snapshot of a workload, with the version at the time of the pin.
struct Pinned {
    snapshot: Snapshot,
    version: usize,
    path: String,
}

/// Pins snapshots during a workload, and writes them later in any order. Checks each snapshot after
/// its write, after a power cut at that moment, and at the end.
fn pin_and_write(seed: u64) -> Result<(), String> {
    let (disk, contents) = start();
    let mut rng = Rng::new(seed);
    let shape = Shape { seed, steps: 12, sessions: 1 + seed as usize % 3, ddl: seed % 2 == 0 };
    let mut workload = Workload::open(&disk, &shape, contents).map_err(|error| error.to_string())?;
    let (mut pinned, mut written): (Vec<Pinned>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
    for round in 0..10 {
        workload.run(&shape).map_err(|error| error.to_string())?;
        if pinned.len() < 3 {
            let snapshot = workload.db().pin_snapshot().map_err(|error| error.to_string())?;
            let version = workload.versions.len() - 1;
            pinned.push(Pinned { snapshot, version, path: format!("snap-{round}") });
        }
        if rng.chance(0.4) {
            let Pinned { snapshot, version, path } = pinned.remove(rng.below(pinned.len() as u64) as usize);
            write(&snapshot, &path).map_err(|error| error.to_string())?;
            drop(snapshot);
            compare(&disk, &path, &workload.versions[version], seed % 2 == 1)?;
            let left = disk.crash(CrashPolicy::SyncedOnly, seed);
            compare(&left, &path, &workload.versions[version], false)?;
            written.push((path, version));
        }
    }
    for (path, version) in written {
        compare(&disk, &path, &workload.versions[version], false)
            .map_err(|error| format!("{path}: {error}"))?;
    }
    // The open transactions are not rolled back, because the power is cut.
    std::mem::forget((workload, pinned));
    Ok(())
}

#[test]
fn z1_a_snapshot_has_what_was_committed_when_it_was_pinned() {
    for seed in 1..=SEEDS_MAX {
        pin_and_write(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// Damages the page map of an open database, in one file or in the copy of that file.
#[test]
fn a_snapshot_of_a_damaged_map_is_whole() {
    for end in ["", ".copy"] {
        let (disk, contents) = start();
        let shape = Shape { seed: 5, steps: 40, sessions: 1, ddl: false };
        let mut workload = Workload::open(&disk, &shape, contents).unwrap();
        workload.run(&shape).unwrap();
        workload.db().checkpoint().unwrap();
        let is_one = |path: &&String| path.starts_with("map-") && path.ends_with(".copy");
        let files: Vec<_> = disk.paths().iter().filter(is_one).cloned().collect();
        for copy in &files {
            disk.flip(&format!("{}{end}", copy.trim_end_matches(".copy")), 90, 2).unwrap();
        }
        let snapshot = workload.db().pin_snapshot().unwrap();
        write(&snapshot, "snap").unwrap();
        compare(&disk, "snap", workload.versions.last().unwrap(), false).unwrap();
        assert!(!files.is_empty());
        std::mem::forget(workload);
    }
}

/// The number of accounts of a bank. The row after the accounts counts the transfers.
const ACCOUNTS: u64 = 40;
const TRANSFERS: u64 = ACCOUNTS;

/// Moves money from one account to another, and counts the transfer.
fn transfer(db: &Db, rng: &mut Rng) {
    let table = db.table("bank").unwrap();
    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    let mut txn = db.begin();
    let mut add = |key, amount: u64| {
        let old = read(&mut txn, &table, key).unwrap().unwrap();
        let mut new = old.clone();
        let sum = u64::from_le_bytes(old.text[..8].try_into().unwrap()).wrapping_add(amount);
        new.text[..8].copy_from_slice(&sum.to_le_bytes());
        update(&mut txn, &table, key, &old, key, &new).unwrap();
    };
    if from != to {
        add(from, 1u64.wrapping_neg());
        add(to, 1);
    }
    add(TRANSFERS, 1);
    txn.commit().unwrap();
}

/// The sum of all accounts, and the number of transfers.
fn bank(db: &Db) -> (u64, u64) {
    let rows = all_rows(&mut db.begin(), &db.table("bank").unwrap()).unwrap();
    let number = |row: &Row| u64::from_le_bytes(row.text[..8].try_into().unwrap());
    let sum = rows.range(..ACCOUNTS).fold(0u64, |sum, (_, row)| sum.wrapping_add(number(row)));
    (sum, number(&rows[&TRANSFERS]))
}

/// Threads write, make checkpoints and collect garbage while snapshots are pinned and written. Each
/// snapshot contains all transfers that returned before the pin, and no partial transfer.
#[test]
fn z1_snapshots_are_whole_while_threads_write_and_make_checkpoints() {
    let disk = SimDisk::new();
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(SimClock::default()) };
    let db = Db::open(env, config()).unwrap();
    let table = db.create_table(&spec("bank")).unwrap();
    let mut txn = db.begin();
    for key in 0..=ACCOUNTS {
        let text = [&0u64.to_le_bytes()[..], &[7; 200]].concat();
        let row = Row { number: key, name: b"account".to_vec(), text };
        insert(&mut txn, &table, key, &row).unwrap();
    }
    txn.commit().unwrap();
    drop((txn, table));
    let (done, returned) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = RaisedAtEnd(&done);
        scope.spawn(|| {
            let mut rng = Rng::new(1);
            while !done.load(Relaxed) {
                transfer(&db, &mut rng);
                returned.fetch_add(1, SeqCst);
            }
        });
        scope.spawn(|| {
            while !done.load(Relaxed) {
                db.checkpoint().unwrap();
                db.run_background().unwrap();
            }
        });
        for round in 0..60 {
            let before = returned.load(SeqCst);
            let snapshot = db.pin_snapshot().unwrap();
            let after = returned.load(SeqCst) + 1;
            until("a few more transfers have returned", || returned.load(SeqCst) > after + 3);
            let path = format!("snap-{round}");
            write(&snapshot, &path).unwrap();
            drop(snapshot);
            let (sum, transfers) = bank(&open_large(&disk.snapshot().at(&path)).unwrap());
            assert_eq!(sum, 0, "snapshot {round}");
            assert!((before..=after).contains(&transfers), "{before}..={after}: {transfers}");
        }
    });
}

/// Plants a bug and repeats `play` until a check fails.
fn caught(name: &'static str, play: impl Fn(u64) -> Result<(), String>) {
    let bug = plant(name);
    let found = (1..=SEEDS_MAX).find_map(|seed| {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed)));
        played.unwrap_or_else(|_| Err("a contradiction".into())).err()
    });
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    println!("'{name}' was caught: {}", found.unwrap_or_else(|| panic!("'{name}' was not caught")));
}

#[test]
fn z1_a_log_that_is_cut_at_the_checkpoint_is_caught() {
    caught("backup: cut the log at the checkpoint", pin_and_write);
}

#[test]
fn z1_a_log_that_is_not_synced_before_is_caught() {
    caught("backup: pin what is not synced", pin_and_write);
}

#[test]
fn z2_pinned_files_that_are_unlinked_are_caught() {
    caught("backup: unlink what is pinned", pin_and_write);
}

#[test]
fn z2_pinned_log_files_that_are_recycled_are_caught() {
    caught("backup: recycle a pinned log file", pin_and_write);
}

#[test]
fn z2_files_that_another_pin_names_and_that_are_released_are_caught() {
    caught("backup: release what another pin names", pin_and_write);
}

#[test]
fn z4_links_to_files_that_are_still_written_are_caught() {
    caught("backup: link what is still written", pin_and_write);
}

#[test]
fn z5_a_control_file_that_is_written_too_early_is_caught() {
    caught("backup: write CONTROL before its files are durable", pin_and_write);
}

#[test]
fn z5_a_manifest_that_is_written_too_early_is_caught() {
    caught("backup: write MANIFEST before CONTROL is durable", pin_and_write);
}

#[test]
fn z6_promises_of_the_server_that_stay_are_caught() {
    caught("backup: keep the promises of the server", pin_and_write);
}

/// Cuts power while a snapshot is pinned, written and released. The database must be the same as
/// without a snapshot, and a snapshot that opens must have the pinned contents.
fn explore_writing(seed: u64) -> Result<(), String> {
    let (disk, contents) = start();
    let shape = Shape { seed, steps: 25, sessions: 2, ddl: seed % 2 == 0 };
    let versions = RefCell::new(Vec::new());
    let (pinned_version, written_at) = (Cell::new(0), Cell::new(u64::MAX));
    let run = |disk: &SimDisk| {
        let mut workload = Workload::open(disk, &shape, contents).unwrap();
        workload.run(&shape).unwrap();
        let snapshot = workload.db().pin_snapshot().unwrap();
        pinned_version.set(workload.versions.len() - 1);
        workload.run(&shape).unwrap();
        write(&snapshot, "snap").unwrap();
        written_at.set(disk.operations());
        drop(snapshot);
        workload.run(&shape).unwrap();
        *versions.borrow_mut() = std::mem::take(&mut workload.versions);
        std::mem::forget(workload);
    };
    let check = |image: &Image| {
        let versions = versions.borrow();
        workload::verify(&image.disk.snapshot(), &versions, image.acknowledged, image.seed % 2 == 1)?;
        let snap = image.disk.snapshot().at("snap");
        if image.operation < written_at.get() {
            let has_control = snap.paths().iter().any(|path| path == "CONTROL");
            if !has_control || open(&snap).is_err() {
                return Ok(());
            }
        }
        compare(&image.disk, "snap", &versions[pinned_version.get()], image.seed % 2 == 0)
    };
    explore(&Plan::quick(seed, 60), &disk, run, check).map(drop).map_err(|failure| failure.to_string())
}

#[test]
fn z5_a_power_cut_at_any_moment_leaves_the_database_and_a_whole_snapshot_or_none() {
    for seed in 1..=6 {
        explore_writing(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// The rows do not fit in memory, so that changes become pending.
const ROWS: u64 = 1500;

fn config() -> Config {
    Config { log_file_bytes: 64 << 10, log_bytes_max: 1 << 20, ..Config::tiny() }
}

fn open_large(disk: &SimDisk) -> Result<Db, String> {
    Db::open(env(disk), config()).map_err(|error| error.to_string())
}

/// A table that is mostly on disk.
fn large(disk: &SimDisk) -> (Db, Rows) {
    let db = open_large(disk).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    let rows: Rows = (0..ROWS).map(|key| (key, Row::new(key, 40))).collect();
    rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    (db, rows)
}

/// Changes rows all over the table. Changes none if one change fails.
fn try_change(db: &Db, rows: &mut Rows, rng: &mut Rng) -> cheetah::testing::base::Result<()> {
    let table = db.table("t")?;
    let (mut txn, mut changed) = (db.begin(), rows.clone());
    for _ in 0..40 {
        let (key, number) = (rng.below(ROWS), 1_000_000 + rng.below(1 << 40));
        let new = Row::new(number, 40);
        update(&mut txn, &table, key, &changed[&key], key, &new).or_else(|error| {
            txn.rollback()?;
            Err(error)
        })?;
        changed.insert(key, new);
    }
    txn.commit()?;
    *rows = changed;
    Ok(())
}

fn change(db: &Db, rows: &mut Rows, rng: &mut Rng) {
    try_change(db, rows, rng).unwrap();
}

fn rows_of(disk: &SimDisk, path: &str) -> Result<Rows, String> {
    let db = open_large(&disk.snapshot().at(path))?;
    let table = db.table("t").map_err(|error| error.to_string())?;
    let checked = check(&db, &table).map_err(|error| error.to_string())?;
    checked.map_err(|findings| format!("{findings:?}"))?;
    if !db.quarantined_tables().is_empty() {
        return Err("the table is quarantined".into());
    }
    all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())
}

/// Pins snapshots of a table larger than memory, while its images are moved and its segments
/// deleted.
fn pin_and_collect(seed: u64) -> Result<(), String> {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let mut rng = Rng::new(seed);
    for round in 0..3 {
        (0..3).for_each(|_| change(&db, &mut rows, &mut rng));
        db.checkpoint().unwrap();
        change(&db, &mut rows, &mut rng);
        let (snapshot, then) = (db.pin_snapshot().unwrap(), rows.clone());
        for _ in 0..3 {
            change(&db, &mut rows, &mut rng);
            db.checkpoint().unwrap();
            (0..4).for_each(|_| assert!(db.run_background().is_ok()));
        }
        let path = format!("snap-{round}");
        write(&snapshot, &path).map_err(|error| error.to_string())?;
        drop(snapshot);
        match rows_of(&disk, &path)? {
            found if found == then => {}
            _ => return Err(format!("snapshot {round} has other rows")),
        }
    }
    Ok(())
}

#[test]
fn z3_a_snapshot_has_the_change_files_and_segments_that_its_epoch_needs() {
    for seed in 1..=4 {
        pin_and_collect(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    assert!(reach::count("changes saved") > 0 || !cfg!(debug_assertions), "nothing was saved");
}

#[test]
fn z3_change_files_that_are_forgotten_are_caught() {
    caught("backup: forget the change files", pin_and_collect);
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

/// Returns the number of the database's files before and after the release of a pin that held some
/// of these files.
fn held_and_released(bug: Option<&'static str>) -> (usize, usize) {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let _planted = bug.map(plant);
    let snapshot = db.pin_snapshot().unwrap();
    let mut rng = Rng::new(1);
    for _ in 0..8 {
        change(&db, &mut rows, &mut rng);
        db.checkpoint().unwrap();
        while db.run_background().unwrap() {}
    }
    let (held_bytes, before) = (status(&db, "backup_held_bytes"), disk.paths().len());
    assert!(held_bytes > 0 && status(&db, "backup_pins") == 1, "{held_bytes} bytes are held");
    drop(snapshot);
    assert_eq!((status(&db, "backup_held_bytes"), status(&db, "backup_pins")), (0, 0));
    (before, disk.paths().len())
}

#[test]
fn z2_files_that_were_held_go_with_their_pin() {
    let (before, after) = held_and_released(None);
    assert!(after < before, "{before} files, and then {after}");
    let (before, after) = held_and_released(Some("backup: keep what was released"));
    assert!(after >= before, "the files that remain reveal the bug");
}

#[test]
fn z9_a_startup_removes_what_a_pin_held() {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let snapshot = db.pin_snapshot().unwrap();
    let mut rng = Rng::new(1);
    for _ in 0..8 {
        change(&db, &mut rows, &mut rng);
        db.checkpoint().unwrap();
    }
    assert!(status(&db, "backup_held_bytes") > 0);
    let with_pin = disk.crash(CrashPolicy::Everything, 1);
    drop(snapshot);
    let without = disk.crash(CrashPolicy::Everything, 1);
    assert!(with_pin.paths().len() > without.paths().len());
    for disk in [&with_pin, &without] {
        let db = open_large(disk).unwrap();
        assert_eq!(all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap(), rows);
    }
    let segments = |disk: &SimDisk| disk.paths().iter().filter(|path| path.starts_with("seg/")).count();
    assert_eq!(segments(&with_pin), segments(&without));
}

/// Returns whether a startup removes the unfinished snapshots that a crash left in the database's
/// own folder, and nothing else.
fn removes_unfinished() -> bool {
    let disk = SimDisk::new();
    let (db, rows) = large(&disk);
    disk.create_dir("snapshots").unwrap();
    for path in ["snapshots/crashed", "snapshots/whole", "snapshots/others"] {
        write(&db.pin_snapshot().unwrap(), path).unwrap();
    }
    disk.put("snapshots/others/seg/notes.txt", b"mine").unwrap();
    for path in ["snapshots/crashed", "snapshots/others"] {
        ["CONTROL", "MANIFEST"].iter().for_each(|name| disk.remove(&format!("{path}/{name}")).unwrap());
    }
    drop(db);
    drop(open_large(&disk).unwrap());
    assert_eq!(rows_of(&disk, "snapshots/whole").unwrap(), rows);
    assert!(
        disk.contents("snapshots/others/seg/notes.txt").is_ok(),
        "files that belong to no snapshot are kept"
    );
    disk.list("snapshots/crashed").is_err()
}

#[test]
fn z9_a_startup_removes_a_snapshot_of_its_own_that_was_not_finished() {
    assert!(removes_unfinished());
    let _bug = plant("backup: leave what was not finished");
    assert!(!removes_unfinished(), "the remaining files reveal the bug");
}

#[test]
fn a_snapshot_is_linked_where_it_can_be_and_copied_otherwise() {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    change(&db, &mut rows, &mut Rng::new(1));
    let snapshot = db.pin_snapshot().unwrap();
    let linked = write(&snapshot, "linked").unwrap();
    disk.inject(Fault::on(Op::Link).effect(Effect::Fail(ErrorKind::CrossesDevices)).forever());
    let copied = write(&snapshot, "copied").unwrap();
    disk.clear_faults();
    assert_eq!(copied.copied_bytes, copied.bytes);
    assert!(linked.copied_bytes < linked.bytes && linked.bytes == copied.bytes);
    for path in ["linked", "copied"] {
        let manifest = Manifest::decode(&disk.contents(&format!("{path}/MANIFEST")).unwrap()).unwrap();
        let links = manifest.files.iter().filter(|file| file.made == Made::Linked).count();
        assert_eq!(links > 0, path == "linked");
        assert!(manifest.files.iter().all(|file| file.crc.is_some() == (file.made == Made::Copied)));
        assert_eq!(rows_of(&disk, path).unwrap(), rows);
    }
}

#[test]
fn a_snapshot_that_is_opened_and_changed_leaves_the_database_alone() {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let then = rows.clone();
    write(&db.pin_snapshot().unwrap(), "snap").unwrap();
    let other = open_large(&disk.at("snap")).unwrap();
    let mut others = then.clone();
    let mut rng = Rng::new(7);
    for _ in 0..6 {
        change(&db, &mut rows, &mut rng);
        change(&other, &mut others, &mut rng);
        db.checkpoint().unwrap();
        other.checkpoint().unwrap();
        while db.run_background().unwrap() | other.run_background().unwrap() {}
    }
    drop((db, other));
    assert_eq!(rows_of(&disk, "").unwrap(), rows);
    assert_eq!(rows_of(&disk, "snap").unwrap(), others);
}

/// Injects a fault and writes a snapshot. Returns the error if the write fails.
fn failing(disk: &SimDisk, db: &Db, fault: Fault) -> Option<Error> {
    let snapshot = db.pin_snapshot().unwrap();
    disk.inject(fault);
    let failed = write(&snapshot, "snap").err();
    disk.clear_faults();
    failed
}

#[test]
fn z7_a_snapshot_that_fails_leaves_nothing_and_stops_nothing() {
    let disk = SimDisk::new();
    let (db, mut rows) = large(&disk);
    let mut rng = Rng::new(3);
    let mut failures = 0;
    for op in [Op::CreateDisk, Op::CreateDir, Op::Create, Op::Write, Op::SyncData, Op::SyncDir] {
        for no in 0..200 {
            let Some(error) = failing(&disk, &db, Fault::on(op).path("snap").after(no)) else { break };
            assert!(!matches!(error, Error::Fatal(_)), "{op:?} {no}: {error}");
            assert!(disk.at("snap").paths().is_empty(), "{op:?} {no}: {:?}", disk.at("snap").paths());
            change(&db, &mut rows, &mut rng);
            failures += 1;
        }
        let manifest = disk.at("snap").paths().iter().any(|path| path == "MANIFEST");
        assert!(manifest, "the snapshot is written without the fault: {op:?}");
        disk.at("snap").paths().iter().for_each(|path| disk.at("snap").remove(path).unwrap());
        ["snap/seg", "snap/chg", "snap/wal", "snap"].iter().for_each(|dir| {
            disk.remove_dir(dir).unwrap();
        });
    }
    assert!(failures > 30, "{failures} failures");
    assert_eq!(status(&db, "backup_pins"), 0);
    drop(db);
    assert_eq!(rows_of(&disk, "").unwrap(), rows);
}

#[test]
fn z7_a_failed_snapshot_that_stops_the_engine_is_caught() {
    let disk = SimDisk::new();
    let (db, _) = large(&disk);
    let bug = plant("backup: stop for a failed snapshot");
    assert!(failing(&disk, &db, Fault::on(Op::SyncData).path("snap")).is_some());
    assert!(bug.reached_count() > 0 && db.stopped().is_some());
}

#[test]
fn z7_a_snapshot_can_be_interrupted_and_its_disk_can_be_full() {
    let disk = SimDisk::new();
    let (db, rows) = large(&disk);
    let snapshot = db.pin_snapshot().unwrap();
    let (clock, looks) = (SimClock::default(), Cell::new(0));
    let interrupted = || looks.replace(looks.get() + 1) > 5;
    let pace = Pace { clock: &clock, bytes_per_second: 1, interrupted: &interrupted };
    let refused = snapshot.write_to(Path::new("snap"), Path::new(""), pace, &is_own, &[]);
    assert!(matches!(refused, Err(Error::Interrupted)), "{refused:?}");
    disk.set_space(Some(disk.used_bytes() + 8192));
    let refused = write(&snapshot, "snap");
    assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
    disk.set_space(None);
    assert!(disk.at("snap").paths().is_empty());
    write(&snapshot, "snap").unwrap();
    let exists = write(&snapshot, "snap").unwrap_err().to_string();
    assert!(exists.contains("exists already; name a directory that does not"), "{exists}");
    assert_eq!(rows_of(&disk, "snap").unwrap(), rows);
}
