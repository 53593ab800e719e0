//! Bits that flip at rest, anywhere in any file of a database: each is detected or proven harmless.
//! The rows read are never other than those written, an untouched table stays readable, and nothing
//! panics.
//!
//! `CHEETAH_FLIPS` says how many flips to try (4,000 unless set), `CHEETAH_FLIP_SEED` which one to
//! start with.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise, in its helpers too")]

mod support;

use cheetah::base::{Config, Error};
use cheetah::db::{Db, Env};
use cheetah_io::sim::{SimClock, SimDisk};
use cheetah_io::{Disk, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::workload::Contents;
use support::*;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A database with three tables; half of the last changes are only in the log, which a mark ends:
/// damage to what was synced last of all looks like a torn end without it (see log/read.rs).
fn written() -> (SimDisk, Contents) {
    let (disk, clock) = (SimDisk::new(), SimClock::default());
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    let mut contents = Contents::new();
    for name in ["a", "b", "c"] {
        let table = db.create_table(&spec(name)).unwrap();
        let mut txn = db.begin();
        let rows =
            (0..60).map(|key| (key, Row::new(key, if key % 9 == 0 { 3000 } else { 25 }))).collect::<Rows>();
        for (key, row) in &rows {
            insert(&mut txn, &table, *key, row).unwrap();
            if *key == 40 && name != "c" {
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

/// What became of one flip.
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
            Ok(_) => return Err(format!("table {name} has other rows, and nobody noticed")),
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

/// Errors that may answer damage.
fn expected(error: Error) -> Result<(), String> {
    match error {
        Error::Corruption { .. } | Error::Unsupported { .. } => Ok(()),
        other => Err(format!("an error of the wrong kind: {other}")),
    }
}

#[test]
fn a_flipped_bit_is_detected_or_harmless() {
    let (disk, contents) = written();
    let lengths = disk.paths().into_iter().filter_map(|path| {
        let length = disk.open(&path).ok()?.len().ok()?;
        (length > 0).then_some((path, length))
    });
    let files = lengths.collect::<Vec<_>>();
    let (first, count) = (setting("CHEETAH_FLIP_SEED", 1), setting("CHEETAH_FLIPS", 4000));
    let mut outcomes: BTreeMap<(String, Outcome), u64> = BTreeMap::new();
    for seed in first..first + count {
        let mut rng = Rng::new(seed);
        let (path, length) = &files[rng.below(files.len() as u64) as usize];
        let (offset, bit) = (rng.below(*length), rng.below(8) as u8);
        let damaged = disk.snapshot();
        damaged.flip(path, offset, bit).unwrap();
        let found = outcome(&damaged, &contents).unwrap_or_else(|what| {
            panic!(
                "bit {bit} of byte {offset} of {path}: {what}\nrepeat with: CHEETAH_FLIP_SEED={seed} CHEETAH_FLIPS=1 \
                 cargo test -p cheetah --test bit_flips"
            )
        });
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
