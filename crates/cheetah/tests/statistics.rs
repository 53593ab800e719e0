//! Statistics of indexes, collected by ANALYZE or automatically. Statistics are collected after
//! loads, for tables without statistics, and when a tenth of the rows has changed. Meanwhile tables
//! are dropped, emptied and changed, and power is cut.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error};
use cheetah::testing::db::{Db, Env, ExpectedEntry, Transaction};
use cheetah::testing::table::{
    Alteration, AlteredIndex, IndexFrom, KeyEncoding, KeyPartEncoding, NewRow, SecondaryEntry,
    StatisticsOptions, Table, ValueEncoding,
};
use cheetah_io::sim::{explore, Fault, Image, Op, Plan, SimClock, SimDisk};
use cheetah_io::time::RealClock;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::*;

const SECOND_NS: u64 = 1_000_000_000;
/// Bytes of the key of a [`row`]'s name.
const NAME_BYTES: usize = 7;
/// The number of different names of [`row`]s.
const NAMES: u64 = 10;

/// A row whose name is one of ten names.
fn row(key: u64) -> Row {
    Row { name: format!("name0{}", key % NAMES).into_bytes(), ..Row::new(key, 5) }
}

fn add(txn: &mut Transaction, table: &Arc<Table>, keys: Range<u64>) {
    keys.for_each(|key| insert(txn, table, key, &row(key)).unwrap());
}

/// The key encodings of a table whose names have parts of these lengths in bytes.
fn encodings(name_parts: &[usize]) -> Vec<KeyEncoding> {
    let part = |bytes: &usize| KeyPartEncoding {
        nullable: false,
        descending: false,
        is_counted: true,
        value: ValueEncoding::Fixed(*bytes),
        shown_as: 0,
    };
    let key = |parts: &[usize]| KeyEncoding { parts: parts.iter().map(part).collect() };
    vec![key(&[8]), key(&[name_parts, &[8]].concat()), key(&[8, 8])]
}

fn describe(db: &Db, table: &Arc<Table>) {
    db.describe_keys(table, encodings(&[NAME_BYTES]), StatisticsOptions::default());
}

/// A database with a clock that the test advances.
struct Fixture {
    db: Db,
    clock: SimClock,
}

impl Fixture {
    fn open(disk: &SimDisk) -> Self {
        let clock = SimClock::default();
        clock.advance_ns(SECOND_NS);
        let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
        Self { db: Db::open(env, Config::tiny()).unwrap(), clock }
    }

    fn new() -> Self {
        Self::open(&SimDisk::new())
    }

    /// A table with a description and with rows of these keys.
    fn table(&self, keys: Range<u64>) -> Arc<Table> {
        let table = self.db.create_table(&spec("t")).unwrap();
        describe(&self.db, &table);
        self.add(&table, keys);
        table
    }

    fn add(&self, table: &Arc<Table>, keys: Range<u64>) {
        let mut txn = self.db.begin();
        add(&mut txn, table, keys);
        txn.commit().unwrap();
    }

    /// Advances the clock and runs the background work.
    fn pass(&self, seconds: u64) {
        self.clock.advance_ns(seconds * SECOND_NS);
        self.work();
    }

    fn work(&self) {
        while self.db.run_background().unwrap() {}
    }

    /// The number of rows in the statistics table.
    fn kept(&self) -> u64 {
        self.db.table("#statistics").map_or(0, |kept| kept.row_count())
    }
}

/// The table's numbers of rows per value of the name, and of the name with the key.
fn rows_per_value(table: &Table) -> [Option<u64>; 2] {
    [1, 2].map(|parts| table.rows_per_value(1, parts))
}

/// The table's number of rows per value of the name alone.
fn per_name(table: &Table) -> Option<u64> {
    rows_per_value(table)[0]
}

#[test]
fn statistics_are_exact_in_small_tables_and_outlive_a_crash_a_rename_and_the_table() {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    let table = on.table(0..200);
    assert_eq!(rows_per_value(&table), [None, None]);
    on.db.analyze_table(&table).unwrap();
    assert_eq!(rows_per_value(&table), [Some(200 / NAMES), Some(1)]);
    on.db.rename_table("t", "u").unwrap();
    drop((table, on));
    let on = Fixture::open(&disk);
    let table = on.db.table("u").unwrap();
    assert_eq!(rows_per_value(&table), [Some(200 / NAMES), Some(1)]);
    let table = on.db.truncate_table("u").map(|_| on.db.table("u").unwrap()).unwrap();
    assert_eq!(rows_per_value(&table), [None, None]);
    drop((table, on));
    let on = Fixture::open(&disk);
    assert_eq!(on.kept(), 0, "the statistics of the emptied table remain");
}

#[test]
fn statistics_of_a_large_table_are_sampled_and_few_values_counted() {
    let on = Fixture::new();
    let table = on.db.create_table(&spec("t")).unwrap();
    on.db.describe_keys(&table, encodings(&[3, 4]), StatisticsOptions::default());
    let mut txn = on.db.begin();
    for key in 0..12_000 {
        let row = Row { name: format!("n{:05}", key / 4).into_bytes(), ..Row::new(key, 5) };
        insert(&mut txn, &table, key, &row).unwrap();
    }
    txn.commit().unwrap();
    on.db.analyze_table(&table).unwrap();
    assert_eq!(table.rows_per_value(1, 1), Some(4000), "three prefixes of names, counted exactly");
    // The exact value is four. The estimate is rounded down, so it may be three.
    let by_name = table.rows_per_value(1, 2);
    assert!(matches!(by_name, Some(3 | 4)), "{by_name:?}");
    assert_eq!(table.rows_per_value(1, 3), Some(1));
    assert_eq!(table.rows_per_value(0, 1), Some(1));
}

/// The table has long rows, and its clustered key has two parts. The collection of its statistics
/// must read few images.
#[test]
fn a_place_is_left_after_some_leaves_however_long_its_rows_are() {
    const ROWS: u64 = 1500;
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    let table = on.db.create_table(&spec("t")).unwrap();
    let mut txn = on.db.begin();
    (0..ROWS).for_each(|key| {
        insert(&mut txn, &table, key, &Row { name: row(key).name, ..Row::new(key, 300) }).unwrap()
    });
    txn.commit().unwrap();
    on.db.close().unwrap();
    drop((txn, table, on));
    let on = Fixture::open(&disk);
    let table = on.db.table("t").unwrap();
    let mut keys = encodings(&[NAME_BYTES]);
    let half = KeyPartEncoding { value: ValueEncoding::Fixed(4), ..keys[0].parts[0].clone() };
    keys[0].parts = vec![half.clone(), half];
    on.db.describe_keys(&table, keys, StatisticsOptions { places: 2, ..StatisticsOptions::default() });
    let reads =
        || on.db.status().iter().find(|(name, _)| *name == "pool_reads").map(|found| found.1).unwrap();
    let before = reads();
    on.db.analyze_table(&table).unwrap();
    assert_eq!(table.rows_per_value(0, 1), Some(ROWS), "all keys begin with the same bytes");
    assert_eq!(table.rows_per_value(0, 2), Some(1));
    // A leaf has one row; without the limit, each position would read 256 leaves.
    let read = reads() - before;
    assert!(read < 650, "{read} images");
}

#[test]
fn keys_that_nobody_has_described_are_left_alone() {
    let on = Fixture::new();
    let table = on.db.create_table(&spec("t")).unwrap();
    on.add(&table, 0..100);
    on.pass(20);
    assert_eq!(rows_per_value(&table), [None, None]);
    assert!(matches!(on.db.analyze_table(&table), Err(Error::Unsupported { .. })));
    assert!(on.db.table("#statistics").is_err());
}

#[test]
fn a_table_without_statistics_gets_them_when_it_is_first_used() {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    on.add(&on.db.create_table(&spec("t")).unwrap(), 0..100);
    drop(on);
    let on = Fixture::open(&disk);
    let table = on.db.table("t").unwrap();
    let version = table.statistics_version();
    on.work();
    assert_eq!(per_name(&table), None, "the table was not used yet");
    describe(&on.db, &table);
    assert_eq!(per_name(&table), None, "the opening of a table does not wait");
    on.work();
    assert_eq!(rows_per_value(&table), [Some(10), Some(1)]);
    assert!(table.statistics_version() > version, "open tables keep the old statistics");
    assert_eq!(on.kept(), 3);
}

#[test]
fn an_empty_table_gets_them_once_it_has_rows() {
    let on = Fixture::new();
    let table = on.table(0..0);
    on.pass(20);
    assert!(per_name(&table).is_none() && on.kept() == 0);
    on.add(&table, 0..30);
    on.pass(1);
    assert_eq!(per_name(&table), Some(3));
}

#[test]
fn statistics_are_taken_again_when_a_tenth_has_changed_but_not_at_once_again() {
    let on = Fixture::new();
    let table = on.table(0..400);
    on.pass(1);
    assert_eq!(per_name(&table), Some(40));
    let version = table.statistics_version();
    on.add(&table, 400..440);
    on.pass(60);
    assert_eq!(table.statistics_version(), version, "no more than a tenth of the rows has changed");
    on.add(&table, 440..480);
    on.pass(1);
    assert_eq!(per_name(&table), Some(48));
    on.add(&table, 480..600);
    on.pass(8);
    assert_eq!(per_name(&table), Some(48), "the statistics were just collected");
    on.pass(2);
    assert_eq!(per_name(&table), Some(60));
}

#[test]
fn a_table_that_has_doubled_need_not_wait() {
    let on = Fixture::new();
    let table = on.table(0..100);
    on.pass(1);
    on.add(&table, 100..400);
    on.work();
    assert_eq!(per_name(&table), Some(10), "a second must pass first");
    on.pass(1);
    assert_eq!(per_name(&table), Some(40));
}

#[test]
fn changes_of_indexed_columns_count_and_those_of_others_do_not() {
    let on = Fixture::new();
    let table = on.table(0..100);
    on.pass(1);
    let change = |new: &dyn Fn(u64) -> Row, old: &dyn Fn(u64) -> Row| {
        let mut txn = on.db.begin();
        (0..50).for_each(|key| update(&mut txn, &table, key, &old(key), key, &new(key)).unwrap());
        txn.commit().unwrap();
        on.pass(60);
    };
    let version = table.statistics_version();
    let other_text = |key| Row { text: vec![1; 9], ..row(key) };
    change(&other_text, &row);
    assert_eq!(table.statistics_version(), version);
    let renamed = |key| Row { name: b"other_".to_vec(), ..row(key) };
    change(&renamed, &other_text);
    assert_eq!(per_name(&table), Some(100 / 11));
    let mut txn = on.db.begin();
    (0..50).for_each(|key| delete(&mut txn, &table, key, &renamed(key)).unwrap());
    txn.commit().unwrap();
    on.pass(60);
    assert_eq!(per_name(&table), Some(5));
}

#[test]
fn what_changes_while_they_are_taken_counts_afterwards() {
    let on = Fixture::new();
    let table = on.table(0..1000);
    on.pass(1);
    // Delete some rows and insert the same number of rows.
    let mut txn = on.db.begin();
    (0..120).for_each(|key| delete(&mut txn, &table, key, &row(key)).unwrap());
    add(&mut txn, &table, 1000..1120);
    txn.commit().unwrap();
    let version = table.statistics_version();
    on.pass(60);
    assert!(table.statistics_version() > version, "the rows have changed, but not their number");
    let version = table.statistics_version();
    on.pass(60);
    assert_eq!(table.statistics_version(), version, "nothing has changed since");
}

#[test]
fn settings_turn_them_off_and_a_definition_comes_first() {
    let on = Fixture::new();
    on.db.set_statistics(false, 20);
    let table = on.table(0..100);
    on.pass(60);
    assert!(per_name(&table).is_none() && on.kept() == 0, "statistics are off");
    let say = |by_themselves| {
        let options = StatisticsOptions { by_themselves, ..StatisticsOptions::default() };
        on.db.describe_keys(&table, encodings(&[NAME_BYTES]), options);
        on.pass(60);
    };
    say(Some(true));
    assert_eq!(per_name(&table), Some(10), "the definition turns statistics on");
    on.db.set_statistics(true, 20);
    say(Some(false));
    on.add(&table, 100..900);
    on.pass(60);
    assert_eq!(per_name(&table), Some(10), "the definition turns statistics off");
    on.db.analyze_table(&table).unwrap();
    assert_eq!(per_name(&table), Some(90), "ANALYZE collects statistics");
    on.add(&table, 900..2000);
    say(None);
    assert_eq!(per_name(&table), Some(200), "the definition has no setting");
}

#[test]
fn statistics_of_temporary_tables_are_not_kept() {
    let on = Fixture::new();
    let table = on.db.create_table(&spec("t")).unwrap();
    let options = StatisticsOptions { is_temporary: true, ..StatisticsOptions::default() };
    on.db.describe_keys(&table, encodings(&[NAME_BYTES]), options);
    on.add(&table, 0..100);
    on.pass(1);
    assert!(per_name(&table) == Some(10) && on.kept() == 0);
}

fn load_row(txn: &mut Transaction, load: &mut cheetah::testing::db::Load, key: u64) {
    let row = row(key);
    let [name, number] = row.keys();
    let secondary = [
        SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true },
        SecondaryEntry { index_no: 2, key: &number, payload: b"", check_unique: true },
    ];
    txn.load(load, &NewRow { key: &key.to_be_bytes(), row: &row.stored(), secondary: &secondary }).unwrap();
}

/// Works like ALTER TABLE by copy, and like INSERT .. SELECT into an empty table.
#[test]
fn a_load_is_followed_by_statistics() {
    for comes_with_commit in [false, true] {
        let on = Fixture::new();
        let table = on.table(0..0);
        let mut txn = on.db.begin();
        let mut load = match comes_with_commit {
            true => txn.begin_load_to_commit(&table),
            false => txn.begin_load(&table),
        };
        let load = load.as_mut().unwrap().as_mut().unwrap();
        (0..1000).for_each(|key| load_row(&mut txn, load, key));
        txn.finish_load(load).unwrap();
        txn.commit().unwrap();
        let table = on.db.table("t").unwrap();
        assert!(per_name(&table).is_none(), "with the commit: {comes_with_commit}");
        on.pass(1);
        assert_eq!(rows_per_value(&table), [Some(100), Some(1)], "with the commit: {comes_with_commit}");
    }
}

#[test]
fn an_index_that_comes_later_gets_statistics() {
    let on = Fixture::new();
    let table = on.table(0..100);
    let mut txn = on.db.begin();
    let table = txn.disable_indexes(&table, &[1]).unwrap();
    txn.commit().unwrap();
    describe(&on.db, &table);
    on.pass(1);
    assert!(
        per_name(&table).is_none() && table.rows_per_value(2, 1).is_some(),
        "no statement reads the index"
    );
    let mut entries_of = |_: &[u8], stored: &[u8], entries: &mut Vec<ExpectedEntry>| {
        let [key, _] = Row::parse(stored).0.keys();
        entries.push(ExpectedEntry { index_no: 1, key, payload: Vec::new() });
        Ok(())
    };
    let table = txn.enable_indexes(&table, &mut entries_of).unwrap();
    txn.commit().unwrap();
    describe(&on.db, &table);
    on.pass(1);
    assert_eq!(per_name(&table), Some(10));
    // The statistics kept under the old number of the index were deleted.
    assert_eq!(on.kept(), 3);
}

/// A change of the definition that drops the index by number.
fn without_number(table: &Arc<Table>) -> Alteration {
    let index = |no: usize, name: &str| AlteredIndex { name: name.into(), from: IndexFrom::Kept(no) };
    Alteration::of_indexes(Arc::clone(table), vec![index(0, "PRIMARY"), index(1, "name")])
}

#[test]
fn statistics_go_with_their_table_and_their_index() {
    let on = Fixture::new();
    let table = on.table(0..100);
    on.pass(1);
    assert_eq!(on.kept(), 3);
    on.db.alter_tables(&[without_number(&table)]).unwrap();
    let table = on.db.table("t").unwrap();
    assert_eq!(rows_per_value(&table), [Some(10), Some(1)], "the statistics of the other indexes are kept");
    on.db.describe_keys(&table, encodings(&[NAME_BYTES])[..2].to_vec(), StatisticsOptions::default());
    on.add_without_number(&table, 100..400);
    on.pass(10);
    assert_eq!((per_name(&table), on.kept()), (Some(40), 2));
    on.db.drop_table("t").unwrap();
    on.work();
    assert_eq!(on.kept(), 0);
    let table = on.table(0..100);
    on.pass(1);
    assert_eq!(on.kept(), 3);
    drop(table);
    on.db.truncate_table("t").unwrap();
    on.work();
    assert_eq!(on.kept(), 0);
}

impl Fixture {
    fn add_without_number(&self, table: &Arc<Table>, keys: Range<u64>) {
        let mut txn = self.db.begin();
        for key in keys {
            let row = row(key);
            let [name, _] = row.keys();
            let secondary = [SecondaryEntry { index_no: 1, key: &name, payload: b"p", check_unique: true }];
            let row = row.stored();
            txn.insert(table, &NewRow { key: &key.to_be_bytes(), row: &row, secondary: &secondary }).unwrap();
        }
        txn.commit().unwrap();
    }
}

/// The number of rows that a dropped table leaves in the statistics table.
fn left_by_a_dropped_table() -> u64 {
    let on = Fixture::new();
    drop(on.table(0..100));
    on.pass(1);
    assert_eq!(on.kept(), 3);
    on.db.drop_table("t").unwrap();
    on.work();
    on.kept()
}

#[test]
fn statistics_of_a_dropped_table_that_stay_are_seen() {
    assert_eq!(left_by_a_dropped_table(), 0);
    let bug = plant("statistics: keep those of a dropped table");
    assert!(left_by_a_dropped_table() > 0 && bug.reached_count() > 0);
}

/// The number of syncs while statistics are collected automatically and stored.
fn syncs_of_statistics() -> usize {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    on.table(0..100);
    on.pass(1);
    on.db.rename_table("t", "first").unwrap();
    let table = on.table(0..100);
    on.work();
    disk.set_trace(true);
    describe(&on.db, &table);
    on.work();
    assert!(per_name(&table) == Some(10) && on.kept() == 6);
    disk.take_trace().iter().filter(|line| line.contains("Sync")).count()
}

#[test]
fn statistics_that_are_taken_by_themselves_do_not_sync_the_log() {
    assert_eq!(syncs_of_statistics(), 0);
    let bug = plant("statistics: sync the log for them");
    assert!(syncs_of_statistics() > 0 && bug.reached_count() > 0);
}

#[test]
fn damage_that_they_meet_is_told_and_does_not_keep_others_from_theirs() {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    let damaged = on.db.create_table(&spec("damaged")).unwrap();
    on.add(&damaged, 0..3000);
    let table = on.db.create_table(&spec("t")).unwrap();
    on.add(&table, 0..100);
    on.db.checkpoint().unwrap();
    drop((damaged, table, on));
    let on = Fixture::open(&disk);
    let [damaged, table] = ["damaged", "t"].map(|name| on.db.table(name).unwrap());
    describe(&on.db, &damaged);
    disk.inject(Fault::on(Op::Read).forever());
    let error = std::iter::from_fn(|| Some(on.db.run_background())).take(20).find_map(|step| step.err());
    disk.clear_faults();
    assert!(error.is_some(), "no read has failed");
    let told = on.db.background_errors();
    assert!(told.iter().any(|(place, _)| *place == "taking statistics"), "{told:?}");
    describe(&on.db, &table);
    on.pass(1);
    assert_eq!((per_name(&table), per_name(&damaged)), (Some(10), None));
    assert!(on.db.background_errors().is_empty());
    on.pass(600);
    assert_eq!(per_name(&damaged), Some(300), "the collection is retried after a while");
}

/// A database whose threads work in real time.
fn open_with_threads(disk: &SimDisk) -> Db {
    let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(RealClock::default()) };
    let db = Db::open(env, Config::tiny()).unwrap();
    db.start_background_threads().unwrap();
    db
}

#[test]
fn tables_that_go_and_change_meanwhile_are_left_alone() {
    const ROUNDS: u64 = 40;
    let disk = SimDisk::new();
    let db = open_with_threads(&disk);
    let taken = reach::count("statistics taken by themselves");
    let work = |thread: u64| {
        for round in 0..ROUNDS {
            let name = format!("t{thread}");
            let table = db.create_table(&spec(&name)).unwrap();
            let mut txn = db.begin();
            add(&mut txn, &table, 0..200);
            txn.commit().unwrap();
            describe(&db, &table);
            // The moments are spread over the time in which statistics are collected.
            let moment = Duration::from_micros((round * 7919 + thread * 613) % 20_000);
            let since = Instant::now();
            until("the moment has come", || since.elapsed() >= moment);
            match (round + thread) % 3 {
                0 => {
                    let emptied = db.truncate_table(&name).unwrap();
                    describe(&db, &emptied);
                    add(&mut txn, &emptied, 0..50);
                    txn.commit().unwrap();
                }
                1 => {
                    db.alter_tables(&[without_number(&table)]).unwrap();
                    let altered = db.table(&name).unwrap();
                    let keys = encodings(&[NAME_BYTES])[..2].to_vec();
                    db.describe_keys(&altered, keys, StatisticsOptions::default());
                }
                _ => {}
            }
            db.drop_table(&name).unwrap();
        }
    };
    std::thread::scope(|scope| (0..3).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    assert!(db.stopped().is_none() && db.background_errors().is_empty(), "{:?}", db.background_errors());
    assert!(reach::count("statistics taken by themselves") > taken, "no statistics were collected");
    let kept = || db.table("#statistics").map_or(0, |kept| kept.row_count());
    until("all statistics were deleted", || kept() == 0);
    db.close().unwrap();
    drop(db);
    let on = Fixture::open(&disk);
    assert_eq!(on.kept(), 0);
}

/// Each read of a page waits for minutes. The shutdown must not wait.
#[test]
fn a_shutdown_does_not_wait_for_statistics() {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    on.add(&on.db.create_table(&spec("t")).unwrap(), 0..6000);
    on.db.close().unwrap();
    drop(on);
    let db = open_with_threads(&disk);
    db.set_io_capacity(1);
    let table = db.table("t").unwrap();
    describe(&db, &table);
    let since = Instant::now();
    until("statistics are being collected", || since.elapsed() > Duration::from_millis(200));
    assert_eq!(per_name(&table), None, "the collection has already ended");
    db.close().unwrap();
    assert!(since.elapsed() < Duration::from_secs(20));
}

#[test]
fn nobody_who_drops_a_table_waits_for_its_statistics() {
    let disk = SimDisk::new();
    let on = Fixture::open(&disk);
    on.add(&on.db.create_table(&spec("t")).unwrap(), 0..6000);
    on.db.close().unwrap();
    drop(on);
    let db = open_with_threads(&disk);
    db.set_io_capacity(1);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = RaisedAtEnd(&ended);
        describe(&db, &db.table("t").unwrap());
        let since = Instant::now();
        until("statistics are being collected", || since.elapsed() > Duration::from_millis(200));
        scope.spawn(|| {
            db.drop_table("t").unwrap();
            ended.store(true, Relaxed);
        });
        until("the table was dropped", || ended.load(Relaxed));
        assert!(since.elapsed() < Duration::from_secs(20));
    });
    db.close().unwrap();
}

/// Inserts rows, collects their statistics, and drops a table.
fn workload(disk: &SimDisk) {
    let on = Fixture::open(disk);
    let table = on.table(0..60);
    on.pass(1);
    disk.acknowledge(1);
    on.db.rename_table("t", "u").unwrap();
    on.add(&table, 60..200);
    on.pass(10);
    on.db.checkpoint().unwrap();
    disk.acknowledge(2);
    drop(on.table(0..50));
    on.pass(1);
    on.db.drop_table("t").unwrap();
    on.work();
    disk.acknowledge(3);
}

/// After a power cut the statistics are older or missing, and new statistics are collected
/// automatically.
fn judge(image: &SimDisk, acknowledged: u64) -> Result<(), String> {
    let on = Fixture::open(image);
    for name in on.db.table_names().iter().filter(|name| !name.starts_with('#')) {
        let table = on.db.table(name).unwrap();
        let allowed = [None, Some(6), Some(20), Some(5)];
        if !allowed.contains(&per_name(&table)) {
            return Err(format!("{:?} rows of a name in '{name}'", per_name(&table)));
        }
        check(&on.db, &table)
            .map_err(|error| error.to_string())?
            .map_err(|findings| format!("{findings:?}"))?;
        describe(&on.db, &table);
        on.pass(10);
        let rows = table.row_count();
        let found = per_name(&table).map(|per_name| per_name * NAMES);
        if rows > 0 && found.is_none_or(|found| found.abs_diff(rows) > rows / 10 + NAMES) {
            return Err(format!("{rows} rows, and by statistics {found:?}, in '{name}'"));
        }
    }
    on.work();
    let tables = on.db.table_names().iter().filter(|name| !name.starts_with('#')).count() as u64;
    match on.kept() <= 3 * tables {
        true => Ok(()),
        false => Err(format!("{} rows of statistics after {acknowledged}", on.kept())),
    }
}

#[test]
fn after_a_power_cut_there_are_older_statistics_or_none() {
    let report = explore(&Plan::quick(1, 200), &SimDisk::new(), workload, |image: &Image| {
        judge(&image.disk.snapshot(), image.acknowledged)
    });
    assert!(report.unwrap().images_count > 60);
}
