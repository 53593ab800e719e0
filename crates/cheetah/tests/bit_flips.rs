//! Bit flips at rest, at any position of any file of a database. Each flip is detected or proven
//! harmless. Reads never return wrong rows, undamaged tables remain readable, and nothing panics.
//! Damage costs only the rows of its page, CHECK and scrubbing report it, and a salvage recovers
//! all other rows.
//!
//! `CHEETAH_FLIPS` sets the number of flips (by default 4,000, and 150 with a salvage after each
//! flip), `CHEETAH_FLIP_SEED` the first seed.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{Config, Error};
use cheetah::testing::db::{Db, Env};
use cheetah::testing::salvage::{salvage, Disks};
use cheetah_io::sim::{Effect, Fault, Op, SimClock, SimDisk};
use cheetah_io::{Clock, Disk, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use support::workload::Contents;
use support::*;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A database with three tables. Half of the last changes are only in the log. The log ends with a
/// sync mark: without the mark, damage to the last synced record looks like a torn end (see
/// log/read.rs).
fn written() -> (SimDisk, Contents) {
    written_with(60, 9)
}

/// Like [`written`], with `count` rows in each table. Every `large_every`-th row is large.
fn written_with(count: u64, large_every: u64) -> (SimDisk, Contents) {
    let (disk, clock) = (SimDisk::new(), SimClock::default());
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    let mut contents = Contents::new();
    for name in ["a", "b", "c"] {
        let table = db.create_table(&spec(name)).unwrap();
        let mut txn = db.begin();
        let row = |key| (key, Row::new(key, if key % large_every == 0 { 3000 } else { 25 }));
        let rows = (0..count).map(row).collect::<Rows>();
        for (key, row) in &rows {
            insert(&mut txn, &table, *key, row).unwrap();
            if *key == count * 2 / 3 && name != "c" {
                txn.commit().unwrap();
                db.checkpoint().unwrap();
            }
        }
        txn.commit().unwrap();
        contents.insert(name.into(), rows);
    }
    clock.advance_ns(2_000_000_000);
    db.run_background().unwrap();
    drop(db);
    (disk, contents)
}

/// The non-empty files with their lengths.
fn files_of(disk: &SimDisk) -> Vec<(String, u64)> {
    let lengths = disk.paths().into_iter().filter_map(|path| {
        let length = disk.open(&path).ok()?.len().ok()?;
        (length > 0).then_some((path, length))
    });
    lengths.collect()
}

struct Flip<'a> {
    seed: u64,
    path: &'a str,
    offset: u64,
    bit: u8,
}

impl Flip<'_> {
    /// A copy of the disk with this flip.
    fn of(&self, disk: &SimDisk) -> SimDisk {
        let damaged = disk.snapshot();
        damaged.flip(self.path, self.offset, self.bit).unwrap();
        damaged
    }

    fn fail(&self, what: &str) -> ! {
        let Self { seed, path, offset, bit } = self;
        panic!(
            "bit {bit} of byte {offset} of {path}: {what}\nrepeat with: CHEETAH_FLIP_SEED={seed} \
             CHEETAH_FLIPS=1 cargo test -p cheetah --test bit_flips"
        )
    }
}

/// The outcome of one flip.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Harmless,
    RefusedAtOpen,
    TableRefused,
}

fn outcome(disk: &SimDisk, contents: &Contents) -> Result<Outcome, String> {
    let db = match open(disk) {
        Err(error) => return expected(error).map(|()| Outcome::RefusedAtOpen),
        Ok(db) => db,
    };
    if db.table_names() != contents.keys().cloned().collect::<Vec<_>>() {
        return Err(format!("tables {:?}", db.table_names()));
    }
    let mut outcome = Outcome::Harmless;
    for (name, wanted) in contents {
        let table = db.table(name).map_err(|error| error.to_string())?;
        match all_rows(&mut db.begin(), &table) {
            Ok(rows) if rows == *wanted => {}
            Ok(_) => return Err(format!("table {name} has wrong rows, and no error was reported")),
            Err(error) => {
                expected(error)?;
                outcome = Outcome::TableRefused;
            }
        }
        match check(&db, &table) {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => outcome = Outcome::TableRefused,
            Err(error) => expected(error)?,
        }
    }
    Ok(outcome)
}

/// Accepts only the errors that damage may cause.
fn expected(error: Error) -> Result<(), String> {
    match error {
        Error::Corruption { .. } | Error::Unsupported { .. } => Ok(()),
        other => Err(format!("an error of the wrong kind: {other}")),
    }
}

#[test]
fn a_flipped_bit_is_detected_or_harmless() {
    let (disk, contents) = written();
    let files = files_of(&disk);
    let (first, count) = (setting("CHEETAH_FLIP_SEED", 1), setting("CHEETAH_FLIPS", 4000));
    let mut outcomes: BTreeMap<(String, Outcome), u64> = BTreeMap::new();
    for seed in first..first + count {
        let mut rng = Rng::new(seed);
        let (path, length) = &files[rng.below(files.len() as u64) as usize];
        let flip = Flip { seed, path, offset: rng.below(*length), bit: rng.below(8) as u8 };
        let found = outcome(&flip.of(&disk), &contents).unwrap_or_else(|what| flip.fail(&what));
        let kind = path.split('/').next().unwrap_or_default().to_owned();
        *outcomes.entry((kind, found)).or_default() += 1;
    }
    println!("{count} flips: {outcomes:?}");
}

#[test]
fn damage_of_one_table_leaves_the_others_readable() {
    let (disk, contents) = written();
    open(&disk).unwrap().close().unwrap();
    let mut refused = 0;
    let segments = disk.paths().into_iter().filter(|path| path.starts_with("seg/")).collect::<Vec<_>>();
    for path in &segments {
        let length = disk.open(path).unwrap().len().unwrap();
        for offset in (600..length).step_by(700) {
            let damaged = disk.snapshot();
            damaged.flip(path, offset, 3).unwrap();
            let Ok(db) = open(&damaged) else { continue };
            let readable = contents.keys().filter(|name| {
                let table = db.table(name).unwrap();
                all_rows(&mut db.begin(), &table).is_ok()
            });
            let readable = readable.count();
            assert!(
                readable >= contents.len() - 1,
                "byte {offset} of {path}: {readable} tables are readable"
            );
            refused += contents.len() - readable;
        }
    }
    assert!(refused > 0, "no flip has hit a table");
}

/// A closed database. None of its changes is only in the log.
fn at_rest() -> (SimDisk, Contents) {
    let (disk, contents) = written_with(600, 30);
    open(&disk).unwrap().close().unwrap();
    (disk, contents)
}

/// The rows that damage to a database affects, by table and key.
#[derive(Default)]
struct Cost {
    /// Rows that a read by key refuses.
    unreadable: BTreeSet<(String, u64)>,
    /// Rows that a salvage does not recover.
    lost: BTreeSet<(String, u64)>,
    is_refused: bool,
}

impl Cost {
    /// Checks that the cost is allowed for damage to this kind of file. Images are not judged here:
    /// damage to an image of the catalog may make the startup fail or cost a table.
    fn judge(&self, path: &str) -> Result<(), String> {
        let kind = path.split(['/', '-']).next().unwrap_or_default();
        let Self { unreadable, lost, is_refused } = self;
        let is_within = match kind {
            "CONTROL" | "map" | "chg" => !is_refused && unreadable.is_empty() && lost.is_empty(),
            "wal" => unreadable.is_empty() && lost.is_empty(),
            "seg" => true,
            _ => false,
        };
        match is_within {
            true => Ok(()),
            false => {
                let (unreadable, lost) = (unreadable.len(), lost.len());
                Err(format!("{unreadable} rows unreadable, {lost} lost, startup refused: {is_refused}"))
            }
        }
    }
}

fn cost(damaged: &SimDisk, contents: &Contents) -> Result<Cost, String> {
    let mut cost = Cost::default();
    let clock = SimClock::default();
    let env = Env { disk: Arc::new(damaged.snapshot()), clock: Arc::new(clock.clone()) };
    match Db::open(env, Config::tiny()) {
        Ok(db) => {
            cost.unreadable = unreadable_rows(&db, contents)?;
            // A startup that needs the damaged part has already reported the damage (N3).
            let is_quarantined = !db.quarantined_tables().is_empty();
            let checked = is_named_by_check(&db, contents)?;
            let scrubbed = is_quarantined || is_named_by_scrubbing(&db, &clock)?;
            let is_named = checked && scrubbed;
            if !is_named && !cost.unreadable.is_empty() {
                return Err(format!("CHECK names it: {checked}, scrubbing: {scrubbed}"));
            }
        }
        Err(error) => {
            expected(error)?;
            cost.is_refused = true;
        }
    }
    cost.lost = lost_rows(damaged, contents)?;
    // A salvage recovers at least the rows that statements can read.
    match cost.is_refused || cost.lost.is_subset(&cost.unreadable) {
        true => Ok(cost),
        false => {
            let lost: Vec<_> = cost.lost.difference(&cost.unreadable).take(9).collect();
            Err(format!("a salvage omits readable rows: {lost:?}"))
        }
    }
}

/// Reads each row by its key. Unreadable rows must be neighbours on one page.
fn unreadable_rows(db: &Db, contents: &Contents) -> Result<BTreeSet<(String, u64)>, String> {
    let mut unreadable = BTreeSet::new();
    for (name, rows) in contents {
        let table = db.table(name).map_err(|error| error.to_string())?;
        let mut txn = db.begin();
        let mut places = Vec::new();
        for (place, (key, row)) in rows.iter().enumerate() {
            match read(&mut txn, &table, *key) {
                Ok(found) if found.as_ref() == Some(row) => {}
                Ok(found) => {
                    return Err(format!("row {key} of {name}: {found:?}, and no error was reported"))
                }
                Err(error) => {
                    expected(error)?;
                    places.push(place);
                    unreadable.insert((name.clone(), *key));
                }
            }
        }
        let is_run = places.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !is_run {
            return Err(format!("rows {places:?} of {name} cannot be read: more than a page"));
        }
    }
    Ok(unreadable)
}

fn is_named_by_check(db: &Db, contents: &Contents) -> Result<bool, String> {
    let mut is_named = false;
    for name in contents.keys() {
        let table = db.table(name).map_err(|error| error.to_string())?;
        match check(db, &table) {
            Ok(found) => is_named |= found.is_err(),
            Err(error) => {
                expected(error)?;
                is_named = true;
            }
        }
    }
    Ok(is_named)
}

/// Returns whether a complete pass of the scrubber finds damage.
fn is_named_by_scrubbing(db: &Db, clock: &SimClock) -> Result<bool, String> {
    const STEPS_MAX: usize = 5000;
    // The change files are read after the images.
    const STEPS_AT_THE_END: usize = 20;
    let count =
        |name| db.status().into_iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count);
    db.set_scrub_rate(1 << 30);
    let (mut before, mut steps) = (None, 0);
    for _ in 0..STEPS_MAX {
        // Other background work may meet the damage, too.
        db.run_background().map_or_else(expected, |_| Ok(()))?;
        clock.advance_ns(1_000_000);
        let read = count("pool_scrubbed_images");
        steps = if before == Some(read) { steps + 1 } else { 0 };
        if steps == STEPS_AT_THE_END {
            return Ok(count("pool_damaged_images") > 0);
        }
        before = Some(read);
    }
    Err("the pass does not end".to_owned())
}

fn lost_rows(damaged: &SimDisk, contents: &Contents) -> Result<BTreeSet<(String, u64)>, String> {
    let new = SimDisk::new();
    let disks = Disks {
        damaged: Arc::new(damaged.clone()),
        scratch: Arc::new(SimDisk::new()),
        new: Arc::new(new.clone()),
    };
    let clock: Arc<dyn Clock> = Arc::new(SimClock::default());
    salvage(&disks, &clock, &Config::tiny(), &mut |_| ()).map_err(|error| format!("salvage: {error}"))?;
    let db = open(&new).map_err(|error| error.to_string())?;
    let mut lost = BTreeSet::new();
    for (name, rows) in contents {
        let found = match db.table(name) {
            Ok(table) => all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?,
            Err(_) => Rows::new(),
        };
        if found.iter().any(|(key, row)| rows.get(key) != Some(row)) {
            return Err(format!("the salvaged table {name} has rows that never existed"));
        }
        lost.extend(rows.keys().filter(|key| !found.contains_key(key)).map(|key| (name.clone(), *key)));
    }
    Ok(lost)
}

#[test]
fn a_flip_at_rest_costs_the_rows_of_its_page_is_named_and_all_others_are_salvaged() {
    let (disk, contents) = at_rest();
    let files = files_of(&disk);
    let bytes: u64 = files.iter().map(|(_, length)| length).sum();
    let (first, count) = (setting("CHEETAH_FLIP_SEED", 1), setting("CHEETAH_FLIPS", 150));
    let mut costs: BTreeMap<&str, Vec<Cost>> = BTreeMap::new();
    for seed in first..first + count {
        let mut rng = Rng::new(seed);
        // Choose any byte of the database.
        let mut offset = rng.below(bytes);
        let (path, _) = files
            .iter()
            .find(|(_, length)| {
                let is_here = offset < *length;
                offset -= if is_here { 0 } else { *length };
                is_here
            })
            .unwrap();
        let flip = Flip { seed, path, offset, bit: rng.below(8) as u8 };
        let cost = cost(&flip.of(&disk), &contents).unwrap_or_else(|what| flip.fail(&what));
        cost.judge(path).unwrap_or_else(|what| flip.fail(&what));
        costs.entry(path.split(['/', '-']).next().unwrap_or_default()).or_default().push(cost);
    }
    let has_cost = |cost: &Cost| !cost.unreadable.is_empty();
    assert!(count < 100 || costs["seg"].iter().any(has_cost), "no flip has hit a row");
    let rows: usize = contents.values().map(BTreeMap::len).sum();
    println!("{count} flips in a database of {bytes} bytes and {rows} rows");
    for (kind, costs) in costs {
        let mut unreadable: Vec<_> = costs.iter().map(|cost| cost.unreadable.len()).collect();
        unreadable.sort_unstable();
        println!(
            "{kind}: {} flips; {} refuse the startup, {} cost rows: {} in the median, {} at most; not \
             salvaged: {}",
            costs.len(),
            costs.iter().filter(|cost| cost.is_refused).count(),
            unreadable.iter().filter(|rows| **rows > 0).count(),
            unreadable[unreadable.len() / 2],
            unreadable[unreadable.len() - 1],
            costs.iter().map(|cost| cost.lost.len()).sum::<usize>(),
        );
    }
}

/// A database at rest. `flaw` flips a bit in one file of the page map, or removes the file's copy.
fn with_flawed_map(flaw: impl Fn(&SimDisk, &str)) -> (SimDisk, Contents, String) {
    let (disk, contents) = at_rest();
    let file = disk.paths().into_iter().find(|path| path.starts_with("map-") && !path.ends_with(".copy"));
    let file = file.unwrap();
    flaw(&disk, &file);
    (disk, contents, file)
}

fn is_there(disk: &SimDisk, path: &str) -> bool {
    disk.paths().iter().any(|known| known == path)
}

#[test]
fn a_map_without_a_copy_is_opened_on_a_full_disk_and_gets_it_later() {
    let (disk, contents, file) = with_flawed_map(|disk, file| disk.remove(&format!("{file}.copy")).unwrap());
    // The next base, an additional file, cannot be created.
    disk.inject(Fault::on(Op::Create).path(".base").effect(Effect::Fail(ErrorKind::StorageFull)).forever());
    let db = open(&disk).unwrap();
    for (name, rows) in &contents {
        assert_eq!(all_rows(&mut db.begin(), &db.table(name).unwrap()).unwrap(), *rows);
    }
    assert!(is_there(&disk, &file) && disk.faults_met() > 0);
    disk.clear_faults();
    db.close().unwrap();
    assert!(!is_there(&disk, &file));
}

#[test]
fn a_map_that_is_damaged_while_nobody_writes_is_mended_by_the_scrubber() {
    let (disk, _) = at_rest();
    let clock = SimClock::default();
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    let file = disk.paths().into_iter().find(|path| path.starts_with("map-")).unwrap();
    disk.flip(&file, 90, 1).unwrap();
    assert!(!is_named_by_scrubbing(&db, &clock).unwrap());
    clock.advance_ns(1_000_000);
    db.run_background().unwrap();
    assert!(!is_there(&disk, &file), "{:?}", db.background_errors());
}
