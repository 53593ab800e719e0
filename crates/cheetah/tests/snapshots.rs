//! Snapshots see the data that was committed when they were taken, whatever happens afterwards. The
//! tests use random histories with a model, and readers and writers in separate threads.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{planted::plant, reach};
use cheetah::testing::db::{Db, Isolation, Read};
use cheetah_io::sim::SimDisk;
use cheetah_io::Rng;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use support::history::{look_at, History, Plan};
use support::*;

/// The number of histories in `make test`; `CHEETAH_HISTORIES` sets another number.
const HISTORIES: u64 = 40;
/// The number of seeds after which a bug counts as not caught.
const SEEDS_MAX: u64 = 100;

fn plan(seed: u64) -> Plan {
    let (writers, readers) = (1 + seed as usize % 3, 1 + seed as usize % 6);
    // Some tables are larger than the memory.
    let (keys, steps) = if seed % 10 == 9 { (300, 2000) } else { (24, 600) };
    Plan { seed, steps, writers, readers, keys, keeps_first: false }
}

/// Few rows that change often. A snapshot is open nearly all the time.
fn dense_plan(seed: u64) -> Plan {
    Plan { seed, steps: 800, writers: 1, readers: 6, keys: 5, keeps_first: false }
}

/// An old snapshot, and newer, short-lived snapshots between it and the current state.
fn old_plan(seed: u64) -> Plan {
    Plan { keeps_first: true, ..if seed % 2 == 0 { dense_plan(seed) } else { plan(seed) } }
}

/// Tables much larger than memory, so that entries of new rows become pending.
fn large_plan(seed: u64) -> Plan {
    Plan { steps: 6000, keys: 2000, keeps_first: seed % 2 == 0, ..plan(seed) }
}

fn histories() -> u64 {
    std::env::var("CHEETAH_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(HISTORIES)
}

#[test]
fn every_read_of_every_snapshot_equals_the_model() {
    for plan in (1..=histories()).flat_map(|seed| [plan(seed), dense_plan(seed), old_plan(seed)]) {
        let done = catch_unwind(AssertUnwindSafe(|| History::new(plan).unwrap().run().unwrap()));
        assert!(done.is_ok(), "{plan:?}");
    }
    for plan in (1..=histories().div_ceil(8)).map(large_plan) {
        let done = catch_unwind(AssertUnwindSafe(|| History::new(plan).unwrap().run().unwrap()));
        assert!(done.is_ok(), "{plan:?}");
    }
    for mark in [
        "change buffered",
        "entry marked unseen",
        "record found among what waits",
        "record seen without its leaf",
        "page folded",
        "older version looked for",
        "several rows at once",
        "rows of a leaf end at an older version",
        "entry asks its row",
        "outcome looked up",
        "marked records purged",
        "purge held up by a snapshot",
        "marked records purged between snapshots",
        "kept for a snapshot in the middle",
        "looked between snapshots again",
        "undo page freed",
        "large value left behind freed",
        "row rolled back",
        "split_leaf",
        "merge_leaf",
    ] {
        assert!(reach::count(mark) > 0, "'{mark}' was never reached");
    }
}

/// Plants a bug and runs histories until a check fails.
fn caught(name: &'static str) {
    caught_in(name, |seed| if seed % 2 == 0 { dense_plan(seed) } else { plan(seed) });
}

fn caught_in(name: &'static str, plan: impl Fn(u64) -> Plan) {
    let bug = plant(name);
    let found = (1..=SEEDS_MAX).find(|&seed| {
        let plan = plan(seed);
        let run = || History::new(plan).and_then(History::run);
        !matches!(catch_unwind(AssertUnwindSafe(run)), Ok(Ok(())))
    });
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    assert!(found.is_some(), "'{name}' was reached {} times, but not caught", bug.reached_count());
}

#[test]
fn b17_an_entry_put_unseen_beside_what_not_everybody_sees_is_caught() {
    caught_in("blind: put beside what not everybody sees", large_plan);
}

#[test]
fn b17_an_entry_marked_unseen_that_not_everybody_sees_is_caught() {
    caught_in("blind: mark what not everybody sees", large_plan);
}

#[test]
fn a_purge_that_does_not_look_at_snapshots_is_caught() {
    caught("purge: do not look at snapshots");
}

#[test]
fn c10_a_purge_that_removes_what_others_have_marked_is_caught() {
    caught("purge: remove others' marks");
}

#[test]
fn a_purge_that_overlooks_snapshots_in_the_middle_is_caught() {
    caught_in("purge: overlook snapshots in the middle", old_plan);
}

#[test]
fn an_interval_garbage_collection_that_removes_the_work_of_a_later_writer_is_caught() {
    caught_in("purge: take a later mark for its own", old_plan);
}

#[test]
fn an_interval_garbage_collection_that_looks_at_one_older_version_only_is_caught() {
    caught_in("purge: look under the mark at one version only", old_plan);
}

#[test]
fn a_reader_that_sees_open_transactions_is_caught() {
    caught("visible: see open transactions");
}

#[test]
fn a_reader_that_sees_later_commits_is_caught() {
    caught("visible: see later commits");
}

#[test]
fn a_reader_that_does_not_look_at_its_own_changes_is_caught() {
    caught("visible: forget the own transaction");
}

#[test]
fn a_row_that_stops_at_the_first_older_version_is_caught() {
    caught("visible: go back one version only");
}

#[test]
fn a_deleted_version_taken_for_a_row_is_caught() {
    caught("visible: take a deleted version for a row");
}

#[test]
fn an_entry_judged_by_its_delete_mark_alone_is_caught() {
    caught("visible: do not ask the row of an entry");
}

#[test]
fn an_entry_judged_by_the_newest_shadow_operation_is_caught() {
    caught("visible: ask the newest operation on an index");
}

/// The row with the number of previously committed transactions.
const VERSION_KEY: u64 = u64::MAX;
const KEYS: u64 = 40;

/// The state that the threads share: the rows after each commit, recorded before the commit.
struct Shared {
    db: Db,
    states: Mutex<Vec<Rows>>,
    stop: AtomicBool,
    looks: AtomicU64,
}

fn version_row(version: u64) -> Row {
    Row { number: (1 << 32) + version, name: b"version".to_vec(), text: Vec::new() }
}

/// Changes a few rows at random.
fn change_some(txn: &mut cheetah::testing::db::Transaction, shared: &Shared, rows: &mut Rows, rng: &mut Rng) {
    let table = shared.db.table("t").unwrap();
    for _ in 0..1 + rng.below(6) {
        let (key, new_key) = (rng.below(KEYS), rng.below(KEYS));
        let row = Row::new(rng.below(1 << 30), if rng.chance(0.1) { 900 } else { 20 });
        match rows.get(&key).cloned() {
            None => {
                insert(txn, &table, key, &row).unwrap();
                rows.insert(key, row);
            }
            Some(old) if rng.chance(0.3) => {
                delete(txn, &table, key, &old).unwrap();
                rows.remove(&key);
            }
            Some(old) => {
                let to = if rows.contains_key(&new_key) { key } else { new_key };
                let row = if rng.chance(0.5) { Row { name: old.name.clone(), ..row } } else { row };
                update(txn, &table, key, &old, to, &row).unwrap();
                rows.remove(&key);
                rows.insert(to, row);
            }
        }
    }
}

/// The writer stops after these numbers of commits and of concurrent checks by readers.
const TRANSACTIONS: u64 = 400;
const LOOKS: u64 = 20;

/// Commits and rolls back until there were enough commits and enough checks by readers. (A busy
/// machine may delay the checks.) Once there are enough commits, the writer waits for a check
/// before each further transaction. Otherwise the test might not end, because a check takes longer
/// as the history under its snapshot grows.
fn write(shared: &Shared, readers_look: impl Fn() -> bool) {
    let table = shared.db.table("t").unwrap();
    let mut rng = Rng::new(1);
    let mut txn = shared.db.begin();
    let mut rows = shared.states.lock().unwrap()[0].clone();
    let (mut version, mut seen) = (0, 0);
    let looks = || shared.looks.load(Ordering::Relaxed);
    while version < TRANSACTIONS || looks() < LOOKS && readers_look() {
        if version >= TRANSACTIONS {
            until("a reader has looked", || looks() > seen || !readers_look());
            seen = looks();
        }
        version += 1;
        while rng.chance(0.3) {
            change_some(&mut txn, shared, &mut rows.clone(), &mut rng);
            txn.rollback().unwrap();
        }
        change_some(&mut txn, shared, &mut rows, &mut rng);
        let savepoint = txn.savepoint();
        change_some(&mut txn, shared, &mut rows.clone(), &mut rng);
        txn.rollback_to(savepoint).unwrap();
        let (old, new) = (version_row(version - 1), version_row(version));
        update(&mut txn, &table, VERSION_KEY, &old, VERSION_KEY, &new).unwrap();
        rows.insert(VERSION_KEY, new);
        shared.states.lock().unwrap().push(rows.clone());
        txn.commit().unwrap();
    }
}

/// Checks snapshots. Each must have the rows of the version in its version row, by every index.
fn look(shared: &Shared, seed: u64) {
    let table = shared.db.table("t").unwrap();
    let mut rng = Rng::new(seed);
    let mut txn = shared.db.begin();
    let mut last = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        txn.set_isolation(Isolation::RepeatableRead);
        let mut stored = Vec::new();
        assert!(txn.get(&table, &VERSION_KEY.to_be_bytes(), Read::Consistent, &mut stored).unwrap());
        let version = Row::parse(&stored).0.number - (1 << 32);
        assert!(version >= last, "time goes back from {last} to {version}");
        last = version;
        let rows = shared.states.lock().unwrap()[version as usize].clone();
        for _ in 0..3 {
            look_at(&mut txn, &table, &rows, KEYS, &mut rng).unwrap();
            txn.end_statement();
        }
        txn.commit().unwrap();
        shared.looks.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_beside_a_writer_see_whole_transactions() {
    read_beside_a_writer(false);
}

#[test]
fn readers_see_whole_transactions_while_purge_goes_ahead_of_an_old_snapshot() {
    read_beside_a_writer(true);
}

/// Runs readers alongside a writer, with or without a snapshot that stays open.
fn read_beside_a_writer(has_old: bool) {
    let db = open(&SimDisk::new()).unwrap();
    let table = db.create_table(&spec("t")).unwrap();
    let mut txn = db.begin();
    insert(&mut txn, &table, VERSION_KEY, &version_row(0)).unwrap();
    txn.commit().unwrap();
    let first = Rows::from([(VERSION_KEY, version_row(0))]);
    let mut old = has_old.then(|| db.begin());
    old.iter_mut().for_each(|old| old.take_snapshot().unwrap());
    let states = Mutex::new(vec![first.clone()]);
    let shared = Shared { db, states, stop: AtomicBool::new(false), looks: AtomicU64::new(0) };
    std::thread::scope(|scope| {
        let looking = [1, 2].map(|seed| {
            scope.spawn({
                let shared = &shared;
                move || look(shared, seed)
            })
        });
        let background = scope.spawn(|| {
            while !shared.stop.load(Ordering::Relaxed) {
                shared.db.run_background().unwrap();
                shared.db.checkpoint().unwrap();
            }
        });
        let written = catch_unwind(AssertUnwindSafe(|| {
            write(&shared, || looking.iter().all(|reader| !reader.is_finished()))
        }));
        shared.stop.store(true, Ordering::Relaxed);
        background.join().unwrap();
        looking.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(written.is_ok());
    });
    assert!(shared.looks.load(Ordering::Relaxed) >= LOOKS);
    if let Some(mut old) = old {
        // The background thread may hardly have run.
        while shared.db.run_background().unwrap() {}
        let status: std::collections::BTreeMap<_, _> = shared.db.status().into_iter().collect();
        assert!(status["purged_between_snapshots"] > 0, "purge did not go ahead");
        look_at(&mut old, &table, &first, KEYS, &mut Rng::new(1)).unwrap();
        old.commit().unwrap();
    }
    let rows = shared.states.lock().unwrap().last().unwrap().len() as u64;
    assert_eq!(check(&shared.db, &table).unwrap(), Ok(rows));
}
