//! Interval garbage collection. It removes versions that were created and replaced after an old
//! snapshot. It keeps versions that any snapshot sees, and no transaction loses its changes.

use super::rollback::env;
use crate::base::planted::plant;
use crate::base::{reach, Config, Error, Result, Xid};
use crate::db::*;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::format::varint;
use crate::table::{IndexSpec, NewRow, OldEntry, SecondaryEntry, Table, TableSpec};
use cheetah_io::sim::{CrashPolicy, Op, SimDisk};
use cheetah_io::Rng;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

/// The number of rows inserted before all snapshots. The number in each of these rows equals the
/// row's key.
const ROWS: u64 = 20;
/// The key of a row that is inserted and deleted.
const KEY: u64 = 100;

/// The numbers of rows by key.
type Rows = BTreeMap<u64, u64>;

fn first_rows() -> Rows {
    (0..ROWS).map(|key| (key, key)).collect()
}

fn with(mut rows: Rows, more: impl IntoIterator<Item = (u64, u64)>) -> Rows {
    rows.extend(more);
    rows
}

/// A database with one table: numbers with an index, and text columns whose values may be large.
struct World {
    disk: SimDisk,
    db: Db,
    table: Arc<Table>,
}

fn config() -> Config {
    Config {
        page_bytes: 1024,
        segment_bytes: 256 << 10,
        buffer_pool_bytes: 1 << 20,
        log_file_bytes: 256 << 10,
        log_bytes_max: 4 << 20,
        ..Config::tiny()
    }
}

fn spec() -> TableSpec {
    let index = |name: &str, unique| IndexSpec {
        name: name.into(),
        unique,
        max_key_bytes: 8,
        row_format: RowFormatVersion::opaque(),
    };
    TableSpec {
        name: "t".into(),
        row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 1 },
        indexes: vec![index("PRIMARY", true), index("number", false)],
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: Default::default(),
    }
}

impl World {
    fn new() -> Self {
        let world = Self::empty(config());
        world.commit(|txn| (0..ROWS).for_each(|key| world.insert(txn, key, key).unwrap()));
        world.rest();
        world
    }

    fn empty(config: Config) -> Self {
        let disk = SimDisk::new();
        let db = Db::open(env(&disk), config).unwrap();
        let table = db.create_table(&spec()).unwrap();
        Self { disk, db, table }
    }

    /// Cuts power, and opens the resulting disk.
    fn crash(&self) -> Self {
        let disk = self.disk.crash(CrashPolicy::SyncedOnly, 1);
        let db = Db::open(env(&disk), config()).unwrap();
        let table = db.table("t").unwrap();
        Self { disk, db, table }
    }

    fn snapshot(&self) -> Transaction {
        let mut txn = self.db.begin();
        txn.take_snapshot().unwrap();
        txn
    }

    fn commit(&self, f: impl FnOnce(&mut Transaction)) {
        let mut txn = self.db.begin();
        f(&mut txn);
        txn.commit().unwrap();
    }

    fn insert(&self, txn: &mut Transaction, key: u64, number: u64) -> Result<()> {
        self.insert_long(txn, key, number, 3)
    }

    fn insert_long(&self, txn: &mut Transaction, key: u64, number: u64, text_bytes: u64) -> Result<()> {
        let (key, row, entry) = (key.to_be_bytes(), stored(number, text_bytes), number.to_be_bytes());
        let secondary = [SecondaryEntry { index_no: 1, key: &entry, payload: b"", check_unique: false }];
        txn.insert(&self.table, &NewRow { key: &key, row: &row, secondary: &secondary })
    }

    fn update(&self, txn: &mut Transaction, key: u64, from: u64, to: u64) -> Result<()> {
        let (key, row) = (key.to_be_bytes(), stored(to, 3));
        let (old, new) = (from.to_be_bytes(), to.to_be_bytes());
        let secondary = [SecondaryEntry { index_no: 1, key: &new, payload: b"", check_unique: false }];
        let new = NewRow { key: &key, row: &row, secondary: &secondary };
        txn.update(&self.table, &key, &new, &[OldEntry { index_no: 1, key: &old, payload: b"" }])
    }

    fn delete(&self, txn: &mut Transaction, key: u64, number: u64) -> Result<()> {
        let (key, entry) = (key.to_be_bytes(), number.to_be_bytes());
        txn.delete(&self.table, &key, &[OldEntry { index_no: 1, key: &entry, payload: b"" }])
    }

    fn come_and_go(&self, key: u64, number: u64) {
        self.commit(|txn| self.insert(txn, key, number).unwrap());
        self.commit(|txn| self.delete(txn, key, number).unwrap());
    }

    /// Runs background work until none is left.
    fn rest(&self) {
        while self.db.run_background().unwrap() {}
    }

    /// The number of records in the clustered tree and in the index, including delete-marked
    /// records.
    fn records(&self) -> [usize; 2] {
        [0, 1].map(|index_no| {
            let mut count = 0;
            let report = self.table.tree(index_no).unwrap().check(&mut |_, _| count += 1).unwrap();
            assert_eq!(report.problems, [] as [String; 0]);
            count
        })
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.db.status();
        status.iter().find(|(other, _)| *other == name).map(|(_, value)| *value).unwrap()
    }

    /// Ends the open transactions, purges, and checks that the database has exactly these rows.
    fn end(&self, open: Vec<Transaction>, rows: &Rows) {
        drop(open);
        self.rest();
        assert_eq!(self.status("transactions_to_purge"), 0);
        assert_eq!(self.records(), [rows.len(); 2]);
        assert_eq!(self.db.check_table(&self.table, true).unwrap().findings, [] as [String; 0]);
        assert_eq!(&seen(&mut self.db.begin(), &self.table), rows);
    }
}

fn stored(number: u64, text_bytes: u64) -> Vec<u8> {
    let mut row = number.to_le_bytes().to_vec();
    varint::put(&mut row, text_bytes << 1);
    row.extend((0..text_bytes).map(|at| (number * 31 + at * at) as u8));
    row
}

fn number_of(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.first_chunk().unwrap())
}

/// Returns the rows that a transaction sees. The clustered tree, the index and the row count must
/// agree.
fn seen(txn: &mut Transaction, table: &Arc<Table>) -> Rows {
    let [rows, entries] = [0, 1].map(|index_no| {
        let (mut rows, mut row) = (Rows::new(), Vec::new());
        let mut cursor = txn.cursor(table, index_no, Read::Consistent).unwrap();
        let mut found = cursor.seek(SeekMode::First, b"").unwrap();
        while found {
            cursor.get_row(&mut row).unwrap();
            let number = number_of(&row);
            assert!(index_no == 0 || cursor.secondary_key() == number.to_be_bytes());
            rows.insert(u64::from_be_bytes(cursor.clustered_key().try_into().unwrap()), number);
            found = cursor.next().unwrap();
        }
        rows
    });
    assert_eq!(rows, entries);
    if let Some(count) = txn.count(table).unwrap() {
        assert_eq!(count, rows.len() as u64);
    }
    txn.end_statement();
    rows
}

/// Plants a bug, and checks that `look` then fails or returns rows other than `rows`.
fn is_caught(name: &'static str, look: impl FnOnce() -> Rows, rows: &Rows) {
    let bug = plant(name);
    let seen = catch_unwind(AssertUnwindSafe(look));
    assert!(bug.reached_count() > 0, "'{name}' was never reached");
    assert!(!seen.is_ok_and(|seen| seen == *rows), "'{name}' was not caught");
}

#[test]
fn a_queue_leaves_nothing_in_the_trees_though_a_snapshot_is_old() {
    let world = World::new();
    let mut old = world.snapshot();
    for round in 0..10_000 {
        world.come_and_go(KEY + round, round);
        if round % 200 == 199 {
            world.rest();
            assert_eq!(world.records(), [ROWS as usize; 2], "after round {round}");
            assert_eq!(seen(&mut old, &world.table), first_rows());
        }
    }
    assert_eq!(world.status("purged_between_snapshots"), 20_000);
    assert_eq!(world.status("transactions_to_purge"), 20_000);
    world.end(vec![old], &first_rows());
}

/// Inserts rows, takes a snapshot, inserts more rows, and deletes all of them. Returns the old
/// snapshot and the middle snapshot.
fn keep_for_the_middle() -> (World, Transaction, Transaction) {
    let world = World::new();
    let old = world.snapshot();
    world.commit(|txn| (KEY..KEY + 50).for_each(|key| world.insert(txn, key, key).unwrap()));
    let middle = world.snapshot();
    world.commit(|txn| (KEY + 50..KEY + 100).for_each(|key| world.insert(txn, key, key).unwrap()));
    (KEY..KEY + 100).for_each(|key| world.commit(|txn| world.delete(txn, key, key).unwrap()));
    world.rest();
    (world, old, middle)
}

#[test]
fn a_snapshot_in_the_middle_keeps_the_rows_that_it_sees_and_as_long_as_it_is_there() {
    let (world, mut old, mut middle) = keep_for_the_middle();
    assert_eq!(world.records(), [ROWS as usize + 50; 2]);
    let its_rows = with(first_rows(), (KEY..KEY + 50).map(|key| (key, key)));
    assert_eq!(seen(&mut middle, &world.table), its_rows);
    assert_eq!(seen(&mut old, &world.table), first_rows());
    drop(middle);
    world.rest();
    assert_eq!(world.records(), [ROWS as usize; 2], "the garbage collection visits the rows again");
    assert_eq!(seen(&mut old, &world.table), first_rows());
    world.end(vec![old], &first_rows());

    let look = || {
        let (world, _old, mut middle) = keep_for_the_middle();
        seen(&mut middle, &world.table)
    };
    is_caught("purge: overlook snapshots in the middle", look, &its_rows);
}

#[test]
fn an_indexed_column_that_changes_leaves_the_entries_that_somebody_sees() {
    let world = World::new();
    let mut old = world.snapshot();
    let mut middle = None;
    for number in 1..=300 {
        let from = if number == 1 { 0 } else { KEY + number - 1 };
        world.commit(|txn| world.update(txn, 0, from, KEY + number).unwrap());
        if number == 150 {
            middle = Some(world.snapshot());
        }
    }
    world.rest();
    let rows = ROWS as usize;
    assert_eq!(world.records(), [rows, rows + 2]);
    let mut middle = middle.unwrap();
    assert_eq!(seen(&mut middle, &world.table), with(first_rows(), [(0, KEY + 150)]));
    assert_eq!(seen(&mut old, &world.table), first_rows());
    drop(middle);
    world.rest();
    assert_eq!(world.records(), [rows, rows + 1]);
    assert_eq!(seen(&mut old, &world.table), first_rows());
    world.end(vec![old], &with(first_rows(), [(0, KEY + 300)]));
}

/// Inserts, deletes and reinserts a row, and takes a snapshot that sees the row. Then deletes the
/// row again. The first garbage collection runs after these changes. Returns the rows that the
/// snapshot sees.
fn look_after_a_later_writer() -> Rows {
    let world = World::new();
    let old = world.snapshot();
    world.come_and_go(KEY, 1);
    world.commit(|txn| world.insert(txn, KEY, 2).unwrap());
    let mut middle = world.snapshot();
    world.commit(|txn| world.delete(txn, KEY, 2).unwrap());
    world.rest();
    let rows = seen(&mut middle, &world.table);
    drop(middle);
    world.rest();
    assert_eq!(world.records(), [ROWS as usize; 2]);
    world.end(vec![old], &first_rows());
    rows
}

#[test]
fn c10_what_a_later_writer_has_marked_again_stays() {
    let rows = with(first_rows(), [(KEY, 2)]);
    assert_eq!(look_after_a_later_writer(), rows);
    is_caught("purge: take a later mark for its own", look_after_a_later_writer, &rows);
}

#[test]
fn what_an_open_or_prepared_transaction_has_touched_stays() {
    for is_rolled_back in [true, false] {
        let world = World::new();
        let old = world.snapshot();
        world.come_and_go(KEY, 1);
        let mut later = world.db.begin();
        world.insert(&mut later, KEY, 2).unwrap();
        if is_rolled_back {
            world.rest();
            later.rollback().unwrap();
        } else {
            let xid = Xid::new(1, b"x", b"").unwrap();
            later.prepare(xid).unwrap();
            world.rest();
            later.commit().unwrap();
        }
        world.rest();
        let rows = with(first_rows(), (!is_rolled_back).then_some((KEY, 2)));
        assert_eq!(seen(&mut world.db.begin(), &world.table), rows);
        world.end(vec![old, later], &rows);
    }
}

/// Updates and deletes a row that an old snapshot sees. Returns the rows that this snapshot sees.
fn look_under_two_versions() -> Rows {
    let world = World::new();
    let mut old = world.snapshot();
    world.commit(|txn| world.update(txn, 0, 0, KEY).unwrap());
    world.commit(|txn| world.delete(txn, 0, KEY).unwrap());
    world.rest();
    // No snapshot sees the entry that was inserted and deleted.
    assert_eq!(world.records()[1], ROWS as usize);
    seen(&mut old, &world.table)
}

#[test]
fn all_versions_under_a_mark_are_looked_at() {
    assert_eq!(look_under_two_versions(), first_rows());
    is_caught("purge: look under the mark at one version only", look_under_two_versions, &first_rows());
}

#[test]
fn a_row_that_somebody_works_on_is_looked_at_again_later() {
    let world = World::new();
    let old = world.snapshot();
    world.come_and_go(KEY, 1);
    let core = &world.db.0.core;
    let latch = core.purge_latches.of_rows(world.table.id(), Some(&KEY.to_be_bytes()), None);
    world.rest();
    assert_eq!(world.records(), [ROWS as usize + 1; 2]);
    drop(latch);
    world.come_and_go(KEY + 1, 1);
    world.rest();
    assert_eq!(world.records(), [ROWS as usize; 2]);
    world.end(vec![old], &first_rows());
}

/// Inserts a row again after it was deleted. Purge, or interval garbage collection, runs while the
/// writer reads a leaf: after the writer looked up the delete mark and before it changes the
/// record. Returns the result of the insert.
fn insert_while_purge_comes(is_between: bool, bug: Option<&'static str>) -> Result<()> {
    const FAR: u64 = 900;
    let world = World::new();
    world.commit(|txn| (ROWS..FAR).for_each(|key| world.insert(txn, key, key).unwrap()));
    world.db.checkpoint().unwrap();
    let after = world.crash();
    let mut old = Some(after.snapshot());
    (0..2).for_each(|more| after.come_and_go(KEY + FAR + more, 1));
    let inserted = thread::scope(|scope| {
        let hold = after.disk.hold(Op::Read, "seg");
        let after = &after;
        let writer = scope.spawn(move || {
            let _bug = bug.map(plant);
            let mut txn = after.db.begin();
            after.insert(&mut txn, KEY + FAR, FAR - 1)?;
            txn.commit()
        });
        hold.wait_until_reached();
        old = old.take().filter(|_| is_between);
        let core = &after.db.0.core;
        while core.purge.step(core, usize::MAX).unwrap() {}
        while core.purge.step_between(core, usize::MAX).unwrap() {}
        drop(hold);
        writer.join().unwrap()
    });
    inserted?;
    let rows = (0..FAR).map(|key| (key, key)).chain([(KEY + FAR, FAR - 1)]).collect();
    after.end(old.into_iter().collect(), &rows);
    Ok(())
}

#[test]
fn c10_a_mark_that_a_writer_has_looked_at_stays_until_it_is_done() {
    for is_between in [false, true] {
        insert_while_purge_comes(is_between, None).unwrap();
        let bug = Some("rows: look without the purge latch");
        let error = insert_while_purge_comes(is_between, bug).unwrap_err();
        assert!(error.to_string().contains("the record to change is missing"), "{error}");
    }
}

#[test]
fn a_snapshot_that_is_opened_while_a_row_goes_sees_none() {
    let world = World::new();
    let old = world.snapshot();
    world.come_and_go(KEY, 1);
    world.come_and_go(KEY + 1, 2);
    let core = &world.db.0.core;
    let mut young = Vec::new();
    while core.purge.step_between(core, 1).unwrap() {
        young.push(world.snapshot());
        world.commit(|txn| world.update(txn, 0, young.len() as u64 - 1, young.len() as u64).unwrap());
        if young.len() == 30 {
            break;
        }
    }
    assert!(young.len() > 4);
    assert!(world.status("purged_between_snapshots") > 0, "no record was removed while snapshots opened");
    for (mut young, number) in young.into_iter().zip(0..) {
        assert_eq!(seen(&mut young, &world.table), with(first_rows(), [(0, number)]));
    }
    let last = seen(&mut world.db.begin(), &world.table);
    world.end(vec![old], &last);
}

/// The number of pages of the rows and their large values.
fn pages(world: &World) -> u64 {
    world.table.stats().unwrap()[0].pages
}

#[test]
fn c4_a_large_value_of_a_row_that_has_gone_is_freed_once_and_by_purge() {
    for way in 0..4 {
        let world = World::new();
        let before = pages(&world);
        let old = world.snapshot();
        world.commit(|txn| world.insert_long(txn, KEY, 1, 40_000).unwrap());
        world.commit(|txn| world.delete(txn, KEY, 1).unwrap());
        world.rest();
        assert_eq!(world.records(), [ROWS as usize; 2]);
        assert!(pages(&world) > before + 4, "the large value has pages");
        let rows = match way {
            0 => first_rows(),
            _ => {
                if way < 3 {
                    world.db.checkpoint().unwrap();
                }
                if way > 1 {
                    // These pages are freed and reused now, and again after the power cut.
                    world.commit(|txn| world.insert_long(txn, KEY, 2, 40_000).unwrap());
                }
                with(first_rows(), (way > 1).then_some((KEY, 2)))
            }
        };
        if way == 0 {
            world.end(vec![old], &rows);
            assert_eq!(pages(&world), before);
        } else {
            let after = world.crash();
            after.end(Vec::new(), &rows);
            assert!((way > 1) == (pages(&after) > before + 4), "way {way}: {} pages", pages(&after));
        }
    }
}

#[test]
fn what_is_redone_finds_the_marks_that_had_gone() {
    let world = World::new();
    let old = world.snapshot();
    world.come_and_go(KEY, 1);
    world.come_and_go(KEY + 1, 1);
    // The epoch has the delete marks. They are purged before the next operations, but redo finds
    // them.
    world.db.checkpoint().unwrap();
    world.rest();
    assert_eq!(world.records(), [ROWS as usize; 2]);
    world.commit(|txn| world.insert(txn, KEY, 1).unwrap());
    world.commit(|txn| world.update(txn, KEY, 1, 2).unwrap());
    let mut loser = world.db.begin();
    world.insert(&mut loser, KEY + 1, 1).unwrap();
    world.commit(|txn| world.update(txn, 0, 0, 7).unwrap());
    let after = world.crash();
    after.end(Vec::new(), &with(first_rows(), [(KEY, 2), (0, 7)]));
    world.end(vec![old, loser], &with(first_rows(), [(KEY, 2), (0, 7)]));
}

/// A transaction under snapshot isolation inserts a row. Between its snapshot and the insert,
/// another row with the same key is inserted and deleted.
fn insert_where_a_row_has_been() -> Result<()> {
    let world = World::new();
    let _old = world.snapshot();
    world.come_and_go(KEY, 1);
    let mut watches = world.db.begin();
    watches.set_snapshot_isolation(true);
    watches.take_snapshot().unwrap();
    world.come_and_go(KEY + 1, 1);
    world.rest();
    // Records of transactions that ended before the snapshot need not be kept for the snapshot.
    assert!(world.records()[0] <= ROWS as usize + 1);
    world.insert(&mut watches, KEY + 1, 2)
}

#[test]
fn snapshot_isolation_finds_out_about_a_row_that_came_and_went() {
    assert!(matches!(insert_where_a_row_has_been(), Err(Error::RecordChanged)));
    let bug = plant("purge: forget who watches for changes");
    assert!(insert_where_a_row_has_been().is_ok() && bug.reached_count() > 0);
}

#[test]
fn a_younger_lag_is_left_to_purge() {
    let world = World::empty(Config { old_snapshot_lag: 100, ..config() });
    let old = world.snapshot();
    (0..49).for_each(|round| world.come_and_go(KEY + round, round));
    world.rest();
    assert_eq!((world.records(), world.status("purged_between_snapshots")), ([49; 2], 0));
    (49..60).for_each(|round| world.come_and_go(KEY + round, round));
    world.rest();
    assert_eq!(world.records(), [0; 2]);
    world.end(vec![old], &Rows::new());
}

#[test]
fn a_key_that_has_come_and_gone_too_often_is_left_to_purge_as_one_record() {
    let world = World::new();
    let old = world.snapshot();
    (0..100).for_each(|_| world.come_and_go(KEY, 1));
    world.rest();
    assert_eq!(world.records(), [ROWS as usize + 1; 2]);
    world.end(vec![old], &first_rows());
}

/// Inserts, deletes and updates rows in a table larger than its memory. Meanwhile snapshots open
/// and close, and purge runs. In the end each record belongs to a row: no delete mark remains, and
/// no entry is missing.
fn change_to_and_fro(seed: u64) {
    const KEYS: u64 = 2000;
    let (log_file_bytes, log_bytes_max) = (64 << 10, 1 << 20);
    let world = World::empty(Config { log_file_bytes, log_bytes_max, ..Config::tiny() });
    let (mut rng, mut rows) = (Rng::new(seed), Rows::new());
    let mut snapshots = Vec::new();
    for step in 0..8000 {
        let (key, to) = (if step < KEYS { step } else { rng.below(KEYS) }, rng.below(6));
        world.commit(|txn| match rows.get(&key).copied() {
            None => {
                world.insert(txn, key, to).unwrap();
                rows.insert(key, to);
            }
            Some(from) if rng.below(3) == 0 => {
                world.delete(txn, key, from).unwrap();
                rows.remove(&key);
            }
            Some(from) if from != to => {
                world.update(txn, key, from, to).unwrap();
                rows.insert(key, to);
            }
            Some(_) => {}
        });
        match rng.below(60) {
            0 => snapshots.push(world.snapshot()),
            1 if !snapshots.is_empty() => {
                drop(snapshots.swap_remove(rng.below(snapshots.len() as u64) as usize))
            }
            2..6 => drop(world.db.run_background().unwrap()),
            _ => {}
        }
    }
    world.end(snapshots, &rows);
}

/// Breaks B8: changes must be absolute and applied in order.
#[test]
fn no_mark_outlives_purge_in_a_table_larger_than_memory() {
    (0..2).for_each(change_to_and_fro);
    for mark in ["entry marked unseen", "change buffered", "marked records purged between snapshots"] {
        assert!(reach::count(mark) > 0, "'{mark}' was never reached");
    }
    let bug = plant("buffering: leave a mark where an entry comes");
    assert!((0..10).any(|seed| catch_unwind(|| change_to_and_fro(seed)).is_err()));
    assert!(bug.reached_count() > 0);
}
