//! A checkpoint saves pending changes in change files. After a crash, each saved change is restored
//! exactly once, whatever happened to its leaf since the checkpoint.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config};
use cheetah::testing::db::{Db, Env};
use cheetah::testing::format::parity::parity_at;
use cheetah::testing::salvage::{salvage, Disks, Report};
use cheetah_io::sim::{CrashPolicy, Effect, Fault, Op, SimClock, SimDisk};
use cheetah_io::{Clock, Rng};
use std::io::ErrorKind;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;
use support::*;

/// The number of rows. The pool holds fewer.
const ROWS: u64 = 1500;
/// The number of lives of a database. Each life ends with a crash.
const LIVES: u64 = 5;
const TRANSACTIONS: u64 = 30;

/// The smallest pool cannot hold all pending changes at a startup.
fn config(seed: u64) -> Config {
    let buffer_pool_bytes = [64 << 10, 96 << 10, 128 << 10][seed as usize % 3];
    let (log_file_bytes, log_bytes_max) = (64 << 10, 1 << 20);
    Config { buffer_pool_bytes, log_file_bytes, log_bytes_max, ..Config::tiny() }
}

fn open(disk: &SimDisk, seed: u64) -> Result<Db, String> {
    Db::open(env(disk), config(seed)).map_err(|error| error.to_string())
}

/// The rows of the table, and the next unique number.
struct Model {
    rows: Rows,
    next: u64,
}

impl Model {
    fn row(&mut self, rng: &mut Rng) -> Row {
        self.next += 1;
        Row::new(self.next, 20 + rng.below(60) as usize)
    }

    /// Commits a transaction with changes all over the table.
    fn change(&mut self, db: &Db, rng: &mut Rng) -> Result<(), String> {
        let table = db.table("t").unwrap();
        let mut txn = db.begin();
        for _ in 0..1 + rng.below(60) {
            let key = rng.below(ROWS);
            let new = self.row(rng);
            let done = match (self.rows.get(&key).cloned(), rng.below(8)) {
                (None, _) => insert(&mut txn, &table, key, &new),
                (Some(old), 0) => {
                    self.rows.remove(&key);
                    delete(&mut txn, &table, key, &old).map_err(|error| error.to_string())?;
                    continue;
                }
                (Some(old), _) => update(&mut txn, &table, key, &old, key, &new),
            };
            done.map_err(|error| format!("key {key}: {error}"))?;
            self.rows.insert(key, new);
        }
        txn.commit().map_err(|error| error.to_string())
    }
}

/// Checks that the table has all rows, and that its indexes agree.
fn verify(db: &Db, rows: &Rows) -> Result<(), String> {
    let table = db.table("t").map_err(|error| error.to_string())?;
    let found = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
    let differ = rows.iter().filter(|(key, row)| found.get(key) != Some(row)).count();
    if found != *rows {
        return Err(format!("{} rows instead of {}, {differ} differ", found.len(), rows.len()));
    }
    let checked = check(db, &table).map_err(|error| error.to_string())?;
    checked.map_err(|findings| format!("{findings:?}"))?;
    match db.background_errors() {
        errors if errors.is_empty() && db.quarantined_tables().is_empty() => Ok(()),
        errors => Err(format!("{errors:?}; quarantined: {:?}", db.quarantined_tables())),
    }
}

/// Makes a checkpoint that is abandoned at some write. Returns whether its commit had begun.
fn checkpoint_in_vain(disk: &SimDisk, db: &Db, rng: &mut Rng) -> bool {
    // CONTROL has two copies. The epoch is durable with the first copy.
    let (path, passed) = [("chg", 0), ("seg", 0), ("map", 0), ("CONTROL", 1)][rng.below(4) as usize];
    let full = Effect::Fail(if rng.below(2) == 0 { ErrorKind::Other } else { ErrorKind::StorageFull });
    disk.inject(Fault::on(Op::Write).path(path).after(passed).effect(full));
    let _ = db.checkpoint();
    disk.clear_faults();
    path == "CONTROL"
}

/// The next step.
enum Next {
    GoOn,
    PowerCut,
}

/// Random events in the database between two transactions.
fn meanwhile(disk: &SimDisk, db: &Db, rng: &mut Rng) -> Result<Next, String> {
    let done = match rng.below(8) {
        0..=2 => db.checkpoint(),
        3 => {
            let is_last = checkpoint_in_vain(disk, db, rng) || rng.below(2) == 0;
            return Ok(if is_last { Next::PowerCut } else { Next::GoOn });
        }
        4 | 5 => (0..4).try_for_each(|_| db.run_background().map(drop)),
        6 => {
            // Reads load leaves into memory.
            let table = db.table("t").unwrap();
            all_rows(&mut db.begin(), &table).map(drop)
        }
        _ => Ok(()),
    };
    done.map(|()| Next::GoOn).map_err(|error| error.to_string())
}

/// Plays several lives of a database. Each life ends with a crash.
fn play(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut disk = SimDisk::new();
    let mut model = Model { rows: Rows::new(), next: 0 };
    {
        let db = open(&disk, seed)?;
        let table = db.create_table(&spec("t")).unwrap();
        let mut txn = db.begin();
        for key in (0..ROWS).step_by(2) {
            let row = model.row(&mut rng);
            insert(&mut txn, &table, key, &row).unwrap();
            model.rows.insert(key, row);
        }
        txn.commit().unwrap();
        db.close().unwrap();
    }
    for life in 0..LIVES {
        let planted = bug.map(plant);
        let db = open(&disk, seed)?;
        verify(&db, &model.rows).map_err(|found| format!("life {life}, at its start: {found}"))?;
        for _ in 0..rng.below(TRANSACTIONS + 1) {
            model.change(&db, &mut rng).map_err(|found| format!("life {life}: {found}"))?;
            match meanwhile(&disk, &db, &mut rng).map_err(|found| format!("life {life}: {found}"))? {
                Next::GoOn => {}
                Next::PowerCut => break,
            }
        }
        let policy = if rng.below(2) == 0 { CrashPolicy::SyncedOnly } else { CrashPolicy::Random(0.5) };
        disk = disk.crash(policy, seed);
        std::mem::forget(db);
        drop(planted);
    }
    let _planted = bug.map(plant);
    let db = open(&disk, seed)?;
    verify(&db, &model.rows).map_err(|found| format!("at the end: {found}"))
}

/// The number of databases in `make test`; `CHEETAH_SAVING_SEEDS` sets another number.
fn seeds() -> u64 {
    std::env::var("CHEETAH_SAVING_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(24)
}

#[test]
fn what_waits_is_there_exactly_once_after_each_crash() {
    for seed in 1..=seeds() {
        play(seed, None).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    for mark in [
        "changes saved",
        "saved changes restored",
        "page folded",
        "change buffered",
        "saved changes restored in several passes",
    ] {
        assert!(reach::count(mark) > 0 || !cfg!(debug_assertions), "'{mark}' was never reached");
    }
}

fn caught(bug: &'static str) {
    let is_wrong = |seed| {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed, Some(bug))));
        !matches!(played, Ok(Ok(())))
    };
    assert!((1..=60).any(is_wrong), "'{bug}' was not caught");
}

#[test]
fn v1_changes_that_are_not_saved_are_missed() {
    caught("saving: forget what waits");
}

#[test]
fn v3_a_file_of_a_checkpoint_that_was_given_up_counts_for_nothing() {
    caught("saving: count what was given up as saved");
}

#[test]
fn v3_the_first_files_of_a_startup_are_listed_on() {
    caught("saving: begin a list anew after a startup");
}

#[test]
fn v4_changes_of_pages_that_were_written_since_are_not_restored() {
    caught("saving: restore what the map does not name");
}

#[test]
fn v5_changes_are_saved_again_when_their_image_has_moved() {
    caught("saving: count for an image that has moved");
}

#[test]
fn v7_a_file_stays_until_an_epoch_is_committed_that_does_not_list_it() {
    caught("saving: unlink before the commit");
}

#[test]
fn v7_a_file_of_a_checkpoint_that_was_given_up_stays_if_its_commit_may_be_durable() {
    caught("saving: unlink what may be durable");
}

#[test]
fn f1_a_file_is_durable_before_it_is_listed() {
    caught("saving: list a file that is not durable");
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

/// Leaves a database idle for a while. Returns the number of pages with pending changes, the number
/// of change files, and the number of checkpoints during the idle time.
fn at_rest(bug: Option<&'static str>) -> (u64, usize, u64) {
    let (disk, rows) = with_waiting_changes();
    let clock = SimClock::default();
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    let db = Db::open(env, config(0)).unwrap();
    assert!(status(&db, "pool_buffered_pages") > 0);
    let _planted = bug.map(plant);
    let steps = || {
        for _ in 0..20 {
            clock.advance_ns(2_000_000_000);
            while db.run_background().unwrap() {}
        }
    };
    steps();
    let checkpoints = status(&db, "pool_checkpoints");
    steps();
    verify(&db, &rows).unwrap();
    let files = disk.paths().into_iter().filter(|path| path.starts_with("chg/")).count();
    (status(&db, "pool_buffered_pages"), files, status(&db, "pool_checkpoints") - checkpoints)
}

/// Breaks K4: an idle database must apply all pending changes, so that it keeps no change files.
#[test]
fn a_database_at_rest_has_nothing_waiting_no_files_and_makes_no_checkpoints() {
    assert_eq!(at_rest(None), (0, 0, 0));
    assert_ne!(at_rest(Some("checkpoint: leave waiting what waits at rest")), (0, 0, 0));
}

/// The number of images that a checkpoint decodes into pages while changes are pending, and the
/// number of leaves with pending changes.
fn decoded_by_a_checkpoint() -> (u64, u64) {
    let (disk, rows) = with_waiting_changes();
    let db = open(&disk, 0).unwrap();
    let mut model = Model { next: 100_000, rows };
    model.change(&db, &mut Rng::new(2)).unwrap();
    let waiting = status(&db, "pool_buffered_pages");
    let decodes = || db.image_work(false).iter().map(|(_, work)| work.decodes).sum::<u64>();
    let before = decodes();
    db.checkpoint().unwrap();
    let decoded = decodes() - before;
    verify(&db, &model.rows).unwrap();
    (decoded, waiting)
}

#[test]
fn v1_a_checkpoint_reads_no_leaf_that_something_waits_for() {
    let (decoded, waiting) = decoded_by_a_checkpoint();
    assert!(decoded == 0 && waiting > 5, "{decoded} pages decoded, {waiting} with waiting changes");
    let bug = plant("checkpoint: read the leaves that something waits for");
    let (decoded, waiting) = decoded_by_a_checkpoint();
    assert!(decoded >= waiting && bug.reached_count() > 0, "{decoded} pages, {waiting}");
}

/// The number of pages with pending changes after many checkpoints.
fn waiting_after_many_checkpoints() -> u64 {
    let (disk, _) = with_waiting_changes();
    let db = open(&disk, 0).unwrap();
    let table = db.create_table(&spec("u")).unwrap();
    assert!(status(&db, "pool_buffered_pages") > 0);
    for key in 0..60 {
        let mut txn = db.begin();
        insert(&mut txn, &table, key, &Row::new(key, 10)).unwrap();
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        while db.run_background().unwrap() {}
    }
    status(&db, "pool_buffered_pages")
}

/// Breaks B9: a leaf must be read after its changes have been pending for 32 epochs.
#[test]
fn what_has_waited_long_is_brought_into_its_leaf() {
    assert_eq!(waiting_after_many_checkpoints(), 0);
    let _bug = plant("buffering: let changes wait for ever");
    assert_ne!(waiting_after_many_checkpoints(), 0);
}

/// The device fails for a while, and checkpoints are tried meanwhile.
#[test]
fn checkpoints_that_are_given_up_leave_no_files() {
    let (disk, rows) = with_waiting_changes();
    let db = open(&disk, 0).unwrap();
    let (mut model, mut rng) = (Model { next: 100_000, rows }, Rng::new(2));
    let files = || disk.paths().into_iter().filter(|path| path.starts_with("chg/")).count();
    for path in ["map", "chg"] {
        let before = files();
        disk.inject(Fault::on(Op::Write).path(path).forever());
        for _ in 0..20 {
            model.change(&db, &mut rng).unwrap();
            assert!(db.checkpoint().is_err());
        }
        assert!(files() <= before, "{path}: {:?}", disk.paths());
        disk.clear_faults();
        db.checkpoint().unwrap();
        assert!(files() <= before + 1, "{path}: {:?}", disk.paths());
    }
    verify(&db, &model.rows).unwrap();
}

/// A database after a power cut, with two tables that have pending changes, and the rows of the
/// first table. The second table is small.
fn with_waiting_changes() -> (SimDisk, Rows) {
    let disk = SimDisk::new();
    let db = open(&disk, 0).unwrap();
    let mut model = Model { rows: Rows::new(), next: 0 };
    let mut rng = Rng::new(1);
    let (table, other) = (db.create_table(&spec("t")).unwrap(), db.create_table(&spec("other")).unwrap());
    let mut txn = db.begin();
    for key in 0..ROWS {
        let row = model.row(&mut rng);
        insert(&mut txn, &table, key, &row).unwrap();
        model.rows.insert(key, row);
    }
    insert(&mut txn, &other, 1, &Row::new(1, 10)).unwrap();
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    model.change(&db, &mut rng).unwrap();
    db.checkpoint().unwrap();
    let left = disk.crash(CrashPolicy::SyncedOnly, 1);
    std::mem::forget(db);
    (left, model.rows)
}

fn change_file(disk: &SimDisk) -> String {
    disk.paths().into_iter().find(|path| path.starts_with("chg/")).unwrap()
}

/// Damages a change file permanently: the byte at `offset`, and the byte of the parity that would
/// repair it.
fn damage_for_good(disk: &SimDisk, path: &str, offset: u64) {
    let parity_at = disk.contents(path).unwrap().len() as u64 - bytes_of(disk, path);
    disk.flip(path, offset, 3).unwrap();
    disk.flip(path, parity_at + offset, 4).unwrap();
}

/// Returns the length of a change file without its parity.
fn bytes_of(disk: &SimDisk, path: &str) -> u64 {
    let whole = disk.contents(path).unwrap().len() as u64;
    (1..whole).find(|bytes| parity_at(*bytes) + bytes == whole).unwrap()
}

#[test]
fn a_damaged_change_file_quarantines_the_tables_whose_changes_it_has_and_no_other() {
    let (disk, _) = with_waiting_changes();
    let path = change_file(&disk);
    let bytes = bytes_of(&disk, &path);
    for offset in [3, 70, bytes - 5] {
        let disk = disk.snapshot();
        damage_for_good(&disk, &path, offset);
        let db = open(&disk, 0).unwrap();
        let quarantined = db.quarantined_tables();
        assert_eq!(quarantined.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["t"]);
        assert!(quarantined[0].1.contains(&path), "the damage is not reported: {quarantined:?}");
        let other = db.table("other").unwrap();
        assert_eq!(all_rows(&mut db.begin(), &other).unwrap().len(), 1);
        db.close().unwrap();
        drop((db, other));
        let db = open(&disk, 0).unwrap();
        assert_eq!(db.quarantined_tables().len(), 1, "the table remains quarantined");
        db.drop_table("t").unwrap();
        drop(db.create_table(&spec("t")).unwrap());
        db.checkpoint().unwrap();
        drop(db);
        assert!(open(&disk, 0).unwrap().quarantined_tables().is_empty());
    }
}

/// A change file is damaged while the server runs. Returns the findings of CHECK for a table whose
/// changes are in this file, before and after a checkpoint.
fn checked_with_a_damaged_change_file() -> (Vec<String>, Vec<String>) {
    let (disk, _) = with_waiting_changes();
    let db = open(&disk, 0).unwrap();
    let table = db.table("t").unwrap();
    let path = change_file(&disk);
    damage_for_good(&disk, &path, bytes_of(&disk, &path) / 2);
    let findings = |db: &Db| check(db, &table).unwrap().err().unwrap_or_default();
    let found = findings(&db);
    assert!(found.is_empty() || db.background_errors()[0].0 == "change files");
    for _ in 0..2 {
        db.checkpoint().unwrap();
    }
    (found, findings(&db))
}

/// Breaks V1: CHECK must read the change files that a startup would need.
#[test]
fn check_table_reads_the_change_files_that_a_startup_would_need() {
    let (found, afterwards) = checked_with_a_damaged_change_file();
    assert!(found.len() == 1 && found[0].contains("chg/"), "{found:?}");
    assert_eq!(afterwards, Vec::<String>::new(), "the checkpoint has left a damaged change file in use");
    let bug = plant("check: leave change files unread");
    assert_eq!(checked_with_a_damaged_change_file().0, Vec::<String>::new());
    assert!(bug.reached_count() > 0);
}

/// Starts with a change file in which one bit is wrong. Returns the reported error, and whether a
/// checkpoint has written the file's changes into another file.
fn started_with_a_flipped_bit(bug: Option<&'static str>) -> (String, bool) {
    let (disk, rows) = with_waiting_changes();
    let path = change_file(&disk);
    disk.flip(&path, bytes_of(&disk, &path) / 2, 3).unwrap();
    let planted = bug.map(plant);
    let db = open(&disk, 0).unwrap();
    let told = Arc::new(Mutex::new(String::new()));
    let listener = Arc::clone(&told);
    db.announce_background_errors_to(move |text| listener.lock().unwrap().push_str(text));
    db.checkpoint().unwrap();
    let is_anew = !disk.paths().contains(&path);
    assert_eq!(is_anew, db.background_errors().is_empty());
    drop(planted);
    db.checkpoint().unwrap();
    verify(&db, &rows).unwrap();
    let told = told.lock().unwrap().clone();
    (told, is_anew)
}

#[test]
fn v8_a_damaged_change_file_is_mended_by_its_parity_and_written_anew() {
    let (told, is_anew) = started_with_a_flipped_bit(None);
    assert!(told.starts_with("change files: ") && told.contains("repaired from its parity"), "{told}");
    assert!(is_anew);
    assert!(!started_with_a_flipped_bit(Some("saving: go on from what is damaged")).1);
}

#[test]
fn v8_without_parity_a_flipped_bit_costs_a_table() {
    let (disk, _) = with_waiting_changes();
    let path = change_file(&disk);
    let bytes = bytes_of(&disk, &path);
    let whole = disk.contents(&path).unwrap();
    disk.put(&path, &whole[..bytes as usize]).unwrap();
    assert!(open(&disk.snapshot(), 0).unwrap().quarantined_tables().is_empty());
    disk.flip(&path, bytes / 2, 3).unwrap();
    assert_eq!(open(&disk, 0).unwrap().quarantined_tables().len(), 1);
}

/// Damages a change file while the database is open. Returns the error that a scrubbing pass
/// reports, if any. The next checkpoint must rewrite the changes in the file.
fn scrubbed_with_damage(is_for_good: bool) -> Option<(&'static str, String)> {
    let (disk, rows) = with_waiting_changes();
    let clock = SimClock::default();
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    let db = Db::open(env, config(0)).unwrap();
    let path = change_file(&disk);
    match is_for_good {
        true => damage_for_good(&disk, &path, 100),
        false => disk.flip(&path, 100, 3).unwrap(),
    }
    db.set_scrub_rate(1 << 30);
    let told = (0..5000).find_map(|_| {
        clock.advance_ns(10_000);
        db.run_background().unwrap();
        db.background_errors().into_iter().next()
    });
    db.checkpoint().unwrap();
    if told.is_some() {
        assert!(!disk.paths().contains(&path));
        verify(&db, &rows).unwrap();
    }
    told
}

#[test]
fn v8_scrubbing_reads_change_files_and_a_checkpoint_writes_them_anew() {
    for is_for_good in [false, true] {
        let (place, error) = scrubbed_with_damage(is_for_good).expect("a pass reads the change files");
        assert!(
            place == "change files" && error.contains("the next checkpoint rewrites its changes"),
            "{error}"
        );
        assert_eq!(error.contains("repaired from its parity"), !is_for_good, "{error}");
        assert_eq!(error.matches("corruption in").count(), 1, "{error}");
    }
    let bug = plant("scrubbing: leave change files unread");
    assert_eq!(scrubbed_with_damage(false), None);
    assert!(bug.reached_count() > 0);
}

/// A checkpoint deletes a damaged file while CHECK TABLE reads it. Returns the findings of CHECK
/// TABLE, and the number of reported errors.
fn told_of_a_file_that_goes() -> (Vec<String>, usize) {
    let (disk, rows) = with_waiting_changes();
    let db = open(&disk, 0).unwrap();
    let path = change_file(&disk);
    damage_for_good(&disk, &path, 100);
    let table = db.table("t").unwrap();
    let hold = disk.hold(Op::Read, &path);
    let found = thread::scope(|scope| {
        scope.spawn(|| {
            hold.wait_until_reached();
            for _ in 0..2 {
                db.checkpoint().unwrap();
            }
            assert!(!disk.paths().contains(&path));
            drop(hold);
        });
        check(&db, &table).unwrap().err().unwrap_or_default()
    });
    let told = db.background_errors().len();
    if found.is_empty() {
        verify(&db, &rows).unwrap();
    }
    (found, told)
}

#[test]
fn v8_nothing_is_told_of_a_file_that_has_gone() {
    assert_eq!(told_of_a_file_that_goes(), (Vec::new(), 0));
    let bug = plant("saving: tell of a file that has gone");
    assert!(!told_of_a_file_that_goes().0.is_empty());
    assert!(bug.reached_count() > 0);
}

#[test]
fn a_startup_without_a_change_file_is_refused_until_it_is_there_again() {
    let (disk, rows) = with_waiting_changes();
    let path = change_file(&disk);
    let contents = disk.contents(&path).unwrap();
    disk.remove(&path).unwrap();
    for _ in 0..2 {
        let refused = open(&disk, 0).map(drop).unwrap_err();
        assert!(refused.contains(&path), "{refused}");
    }
    // A user who has lost the file permanently can create an empty file instead. An empty file
    // counts as damaged.
    let without = disk.snapshot();
    without.put(&path, b"").unwrap();
    let db = open(&without, 0).unwrap();
    assert_eq!(db.quarantined_tables().len(), 1);
    drop(db);
    disk.put(&path, &contents).unwrap();
    let db = open(&disk, 0).unwrap();
    verify(&db, &rows).unwrap();
}

/// Salvages a disk, with the database's memory size and its setting for buffered changes.
fn salvaged(damaged: &SimDisk, buffers_changes: bool) -> Result<Report, String> {
    let damaged = Arc::new(damaged.clone());
    let disks = Disks { damaged, scratch: Arc::new(SimDisk::new()), new: Arc::new(SimDisk::new()) };
    let clock: Arc<dyn Clock> = Arc::new(SimClock::default());
    let config = Config { buffers_changes, ..config(0) };
    salvage(&disks, &clock, &config, &mut |_| ()).map_err(|error| error.to_string())
}

/// The tables of a report, each with the number of its rows and the number of its lost changes.
fn numbers_of(report: &Report) -> Vec<(&str, u64, u64)> {
    report.tables.iter().map(|table| (table.name.as_str(), table.rows, table.changes_lost)).collect()
}

#[test]
fn a_salvage_without_a_change_file_that_cannot_be_read_brings_the_rows_as_they_were_before() {
    let (disk, rows) = with_waiting_changes();
    let path = change_file(&disk);
    assert!(salvaged(&disk, true).unwrap().is_whole());
    let damaged = disk.snapshot();
    damage_for_good(&damaged, &path, 100);
    let of_damaged = salvaged(&damaged, true).unwrap();
    let unreadable = disk.snapshot();
    unreadable.make_unreadable(&path, 0..1 << 20);
    let report = salvaged(&unreadable, true).unwrap();
    assert_eq!(numbers_of(&report), numbers_of(&of_damaged));
    let of_table = report.tables.iter().find(|table| table.name == "t").unwrap();
    assert!(
        of_table.rows > rows.len() as u64 / 2 && of_table.change_lost_why.contains(&path),
        "{of_table:?}"
    );
    assert!(open(&unreadable, 0).is_err(), "a startup waits for a better disk");
}

/// Salvages the database with an unreadable and with a damaged sector, for sectors of all segments.
/// Changes are not buffered, so each saved change is applied to its leaf at once.
#[test]
fn a_salvage_brings_as_much_beside_a_leaf_that_cannot_be_read_as_beside_a_damaged_one() {
    let (disk, _) = with_waiting_changes();
    let mut lost_count = 0;
    for path in disk.paths().iter().filter(|path| path.starts_with("seg/")) {
        let bytes = disk.contents(path).unwrap().len() as u64;
        for at in (0..bytes).step_by(8 * 4096) {
            let end = bytes.min(at + 4096);
            let (damaged, unreadable) = (disk.snapshot(), disk.snapshot());
            damaged.overwrite(path, at, &Rng::new(1).bytes((end - at) as usize)).unwrap();
            unreadable.make_unreadable(path, at..end);
            let report =
                salvaged(&unreadable, false).unwrap_or_else(|error| panic!("{path} at {at}: {error}"));
            assert_eq!(
                numbers_of(&report),
                numbers_of(&salvaged(&damaged, false).unwrap()),
                "{path} at {at}"
            );
            lost_count += u64::from(!report.is_whole());
        }
    }
    assert!(lost_count > 3, "{lost_count} sectors belong to leaves");
}
