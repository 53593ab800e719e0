//! Errors of the device, once or for a while, in a rollback, a commit or a statement: the engine
//! continues. No transaction ever sees a partial rollback. Every table is usable once the device
//! works again. The next startup finds all acknowledged changes.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::{Config, Error};
use cheetah::testing::db::{Db, Env, LockMode, Read, Transaction};
use cheetah::testing::table::Table;
use cheetah_io::sim::{Fault, Op, SimClock, SimDisk};
use std::sync::Arc;
use support::*;

/// The number of rows in the table. The pool holds fewer rows, so a rollback reads pages.
const ROWS: u64 = 900;
/// A time longer than the engine's wait before a retry.
const A_WHILE_NS: u64 = 2_000_000_000;

struct World {
    disk: SimDisk,
    clock: SimClock,
    db: Db,
    table: Arc<Table>,
    rows: Rows,
}

impl World {
    /// A table with rows. Every sixtieth row has a large value.
    fn new() -> Self {
        Self::with(&Config::tiny())
    }

    fn with(config: &Config) -> Self {
        let (disk, clock) = (SimDisk::new(), SimClock::default());
        let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
        let db = Db::open(env, config.clone()).unwrap();
        let table = db.create_table(&spec("t")).unwrap();
        let text_bytes = |key| if key % 60 == 0 { 20_000 } else { 150 };
        let rows = (0..ROWS).map(|key| (key, Row::new(key, text_bytes(key)))).collect::<Rows>();
        let mut txn = db.begin();
        rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        Self { disk, clock, db, table, rows }
    }

    /// Changes numbers, texts or keys of rows, or deletes rows. Returns the resulting rows of the
    /// table.
    fn change(&self, txn: &mut Transaction, keys: impl Iterator<Item = u64>) -> Rows {
        let mut rows = self.rows.clone();
        for key in keys {
            let old = rows.remove(&key).unwrap();
            if key % 7 == 3 {
                delete(txn, &self.table, key, &old).unwrap();
                continue;
            }
            let new_key = if key % 7 == 5 { key + 10_000 } else { key };
            let new = Row::new(key + 5000, if key % 50 == 0 { 15_000 } else { 100 });
            update(txn, &self.table, key, &old, new_key, &new).unwrap();
            rows.insert(new_key, new);
        }
        rows
    }

    fn locks_at_once(&self, mode: LockMode) -> cheetah::testing::base::Result<Transaction> {
        let mut txn = self.db.begin();
        txn.set_lock_wait(0);
        txn.lock_table(&self.table, mode).map(|()| txn)
    }

    /// Clears the faults of the device and lets the background finish the remaining work.
    fn recover(&self) {
        self.disk.clear_faults();
        self.clock.advance_ns(A_WHILE_NS);
        while self.db.run_background().unwrap() {}
    }

    fn status(&self, name: &str) -> u64 {
        self.db.status().into_iter().find(|(other, _)| *other == name).unwrap().1
    }

    /// Checks that the table has these rows and that other transactions can change it. Checks this
    /// before and after the database is closed and reopened.
    fn expect(self, rows: &Rows, what: &str) {
        assert_eq!(self.db.stopped(), None, "{what}");
        let mut txn =
            self.locks_at_once(LockMode::Exclusive).unwrap_or_else(|error| panic!("{what}: {error}"));
        compare(&self.db, &mut txn, &self.table, rows, what);
        let mut rows = rows.clone();
        let (key, row) = rows.pop_first().unwrap();
        delete(&mut txn, &self.table, key, &row).unwrap();
        txn.commit().unwrap();
        drop(txn);
        self.db.close().unwrap();
        let Self { disk, db, table, .. } = self;
        drop((db, table));
        reopened(&disk, &rows, what);
    }
}

fn compare(db: &Db, txn: &mut Transaction, table: &Arc<Table>, rows: &Rows, what: &str) {
    let there = all_rows(txn, table).unwrap();
    let differ = rows.iter().filter(|(key, row)| there.get(key) != Some(row)).count();
    assert!(there == *rows, "{what}: {} rows, of which {differ} differ", there.len());
    assert_eq!(check(db, table).unwrap(), Ok(rows.len() as u64), "{what}");
}

fn reopened(disk: &SimDisk, rows: &Rows, what: &str) {
    let db = open(disk).unwrap_or_else(|error| panic!("{what}: the database does not open: {error}"));
    let table = db.table("t").unwrap();
    compare(&db, &mut db.begin(), &table, rows, what);
    for left in ["transactions_listed", "transactions_to_purge"] {
        assert_eq!(db.status().into_iter().find(|(name, _)| *name == left).unwrap().1, 0, "{what}: {left}");
    }
}

#[test]
fn a_rollback_that_fails_keeps_its_tables_locked_until_the_background_has_finished_it() {
    let world = World::new();
    let mut txn = world.db.begin();
    world.change(&mut txn, 0..ROWS);
    world.disk.inject(Fault::on(Op::Read).forever());
    let error = txn.rollback().unwrap_err();
    assert!(matches!(error, Error::RollbackUnfinished { .. }), "{error}");
    txn.rollback().unwrap();
    txn.commit().unwrap();
    drop(txn);
    let error = world.locks_at_once(LockMode::Shared).unwrap_err();
    assert!(
        matches!(error, Error::RollbackUnfinished { .. }),
        "a waiting transaction gets the reason: {error}"
    );
    assert_eq!(world.status("rollbacks_unfinished"), 1);
    world.clock.advance_ns(A_WHILE_NS);
    assert!(world.db.run_background().is_err());
    assert!(!world.db.background_errors().is_empty());
    assert!(world.locks_at_once(LockMode::Shared).is_err());
    world.recover();
    assert_eq!((world.status("rollbacks_unfinished"), world.status("transactions_listed")), (0, 0));
    let rows = world.rows.clone();
    world.expect(&rows, "after the rollback");
}

#[test]
fn whoever_waits_for_somebody_else_is_not_told_of_a_rollback_that_fails() {
    let world = World::new();
    let mut txn = world.db.begin();
    world.change(&mut txn, 0..ROWS);
    world.disk.inject(Fault::on(Op::Read).forever());
    assert!(txn.rollback().is_err());
    world.disk.clear_faults();
    let mut other = world.db.begin();
    insert(&mut other, &world.table, 50_000, &Row::new(50_000, 10)).unwrap();
    txn.set_lock_wait(1_000_000);
    let error = read_as(&mut txn, &world.table, 50_000, Read::Exclusive).unwrap_err();
    assert!(matches!(error, Error::LockTimeout), "{error}");
    let error = read_as(&mut txn, &world.table, 0, Read::Exclusive).unwrap_err();
    assert!(matches!(error, Error::RollbackUnfinished { .. }), "{error}");
}

#[test]
fn a_rollback_that_fails_until_the_end_is_finished_by_the_next_startup() {
    for closes in [false, true] {
        // If changes were pending, closing would have to read pages.
        let world = World::with(&Config { buffers_changes: !closes, ..Config::tiny() });
        let mut txn = world.db.begin();
        world.change(&mut txn, 0..ROWS);
        // Only reads of segments fail, because closing may have to read and merge the page map.
        world.disk.inject(Fault::on(Op::Read).path("seg/").after(20).forever());
        assert!(txn.rollback().is_err());
        drop(txn);
        if closes {
            world.db.close().unwrap();
        }
        world.disk.clear_faults();
        let World { disk, db, table, rows, .. } = world;
        drop((db, table));
        reopened(&disk, &rows, if closes { "closed" } else { "crashed" });
    }
}

#[test]
fn a_rollback_that_cannot_be_finished_lets_its_table_be_dropped() {
    let world = World::new();
    let mut txn = world.db.begin();
    world.change(&mut txn, 0..ROWS);
    world.disk.inject(Fault::on(Op::Read).forever());
    assert!(txn.rollback().is_err());
    world.disk.clear_faults();
    let emptied = world.db.truncate_table("t").unwrap();
    world.disk.inject(Fault::on(Op::Read).forever());
    world.clock.advance_ns(A_WHILE_NS);
    let _ = world.db.run_background();
    world.recover();
    assert_eq!(world.status("rollbacks_unfinished"), 0);
    let mut other = world.db.begin();
    insert(&mut other, &emptied, 1, &Row::new(1, 10)).unwrap();
    other.commit().unwrap();
}

#[test]
fn a_statement_that_cannot_be_rolled_back_at_once_is_rolled_back_before_anything_else() {
    for reads in [0, 3, 40] {
        let world = World::new();
        let mut txn = world.db.begin();
        let kept = world.change(&mut txn, 0..100);
        let savepoint = txn.savepoint();
        world.change(&mut txn, 100..ROWS);
        world.disk.inject(Fault::on(Op::Read).after(reads).forever());
        let error = txn.rollback_to(savepoint).unwrap_err();
        assert!(matches!(error, Error::RollbackUnfinished { .. }), "{error}");
        let error = insert(&mut txn, &world.table, 50_000, &Row::new(50_000, 10)).unwrap_err();
        assert!(matches!(error, Error::RollbackUnfinished { .. }), "{error}");
        assert!(read(&mut txn, &world.table, 200).is_err());
        assert!(world.locks_at_once(LockMode::Shared).is_err());
        world.disk.clear_faults();
        if reads == 3 {
            assert!(read(&mut txn, &world.table, 200).unwrap() == Some(world.rows[&200].clone()));
        }
        txn.commit().unwrap();
        world.expect(&kept, "the first statement only");
    }
}

#[test]
fn a_commit_whose_statement_cannot_be_rolled_back_is_a_rollback() {
    let world = World::new();
    let mut txn = world.db.begin();
    world.change(&mut txn, 0..100);
    let savepoint = txn.savepoint();
    world.change(&mut txn, 100..ROWS);
    world.disk.inject(Fault::on(Op::Read).forever());
    assert!(txn.rollback_to(savepoint).is_err());
    assert!(txn.commit().is_err());
    assert!(world.locks_at_once(LockMode::Shared).is_err());
    world.recover();
    let rows = world.rows.clone();
    world.expect(&rows, "nothing of the transaction");
}

#[test]
fn a_commit_that_meets_an_error_while_tidying_up_is_a_commit() {
    let world = World::new();
    let mut txn = world.db.begin();
    let rows = world.change(&mut txn, 0..ROWS);
    world.db.create_table(&spec("u")).unwrap();
    world.db.checkpoint().unwrap();
    world.db.drop_table("u").unwrap();
    world.disk.inject(Fault::on(Op::Read).forever());
    txn.commit().unwrap();
    for _ in 0..10 {
        world.clock.advance_ns(A_WHILE_NS);
        let _ = world.db.run_background();
    }
    assert_eq!(world.status("transactions_to_purge"), 1, "large values still have to be freed");
    assert_eq!(world.status("dropped_trees"), 0, "other space is freed nevertheless");
    world.recover();
    assert_eq!(world.status("transactions_to_purge"), 0);
    world.expect(&rows, "committed");
}

#[test]
fn a_delete_that_fills_the_disk_is_refused_and_is_rolled_back_when_there_is_space_at_the_latest() {
    let mut refused = 0;
    for free_kib in (0..240).step_by(40) {
        let world = World::new();
        world.disk.set_space(Some(world.disk.used_bytes() + (free_kib << 10)));
        let mut txn = world.db.begin();
        let what = format!("{free_kib} KiB free");
        let error = world.rows.iter().find_map(|(key, row)| delete(&mut txn, &world.table, *key, row).err());
        if let Some(error) = error {
            assert!(matches!(error, Error::DiskFull(_)), "{what}: {error}");
            refused += 1;
        }
        let rolled_back = txn.rollback();
        assert_eq!(world.locks_at_once(LockMode::Shared).is_ok(), rolled_back.is_ok(), "{what}");
        world.disk.set_space(None);
        world.recover();
        let rows = world.rows.clone();
        world.expect(&rows, &what);
    }
    assert!(refused > 0);
}

/// Frees are not logged, so only a checkpoint after the last free returns the space of a dropped
/// table.
#[test]
fn an_idle_database_gives_the_space_of_a_dropped_table_back() {
    let World { disk, clock, db: idle, table, .. } = World::new();
    drop(table);
    idle.drop_table("t").unwrap();
    let wait = |rounds| {
        for _ in 0..rounds {
            clock.advance_ns(6_000_000_000);
            idle.run_background().unwrap();
        }
    };
    wait(20);
    let left = disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, 1);
    let db = open(&left).unwrap();
    let dropped = db.status().into_iter().find(|(name, _)| *name == "dropped_trees").unwrap().1;
    assert_eq!(dropped, 0);
    let before = disk.calls();
    wait(5);
    assert!(disk.calls() - before < 20, "an idle database stays idle: {}", disk.calls() - before);
}

/// A single read or write fails, at every moment of a rollback, of a statement's rollback, of a
/// commit, and of the statements themselves.
#[test]
fn after_any_single_failure_the_engine_goes_on_with_what_was_promised() {
    let mut unfinished = 0;
    for op in [Op::Read, Op::Write] {
        for at in (0..).map(|no| no * 29) {
            let what = format!("{op:?} {at}");
            let world = World::new();
            let mut txn = world.db.begin();
            let kept = world.change(&mut txn, 0..150);
            let savepoint = txn.savepoint();
            world.change(&mut txn, 150..600);
            world.disk.inject(Fault::on(op).after(at));
            let rolled_back = txn.rollback_to(savepoint);
            let end = if at % 2 == 0 { txn.commit() } else { txn.rollback() };
            let expected = match (&end, at % 2) {
                (Ok(()), 0) => kept,
                _ => world.rows.clone(),
            };
            if world.db.stopped().is_some() {
                continue;
            }
            if world.disk.faults_met() == 0 {
                assert!(rolled_back.is_ok() && end.is_ok(), "{what}");
                break;
            }
            unfinished += u64::from(rolled_back.is_err() || end.is_err());
            drop(txn);
            world.recover();
            world.expect(&expected, &what);
        }
    }
    assert!(unfinished > 5, "{unfinished} rollbacks met their error");
}

#[test]
fn a_row_operation_that_fails_at_any_moment_has_changed_nothing() {
    let mut failed = 0;
    for at in (0..160).step_by(13) {
        let what = format!("read {at}");
        let world = World::new();
        let mut txn = world.db.begin();
        let mut rows = world.rows.clone();
        world.disk.inject(Fault::on(Op::Read).after(at));
        for key in (0..ROWS).step_by(11) {
            let old = rows[&key].clone();
            let new = Row::new(key + 5000, if key % 2 == 0 { 15_000 } else { 10 });
            let done = match key % 3 {
                0 => delete(&mut txn, &world.table, key, &old).map(|()| None),
                1 => update(&mut txn, &world.table, key, &old, key, &new).map(|()| Some((key, new))),
                _ => update(&mut txn, &world.table, key, &old, key + 10_000, &new)
                    .map(|()| Some((key + 10_000, new))),
            };
            match done {
                Ok(comes) => {
                    rows.remove(&key);
                    rows.extend(comes);
                }
                Err(_) => failed += 1,
            }
        }
        txn.commit().unwrap();
        world.disk.clear_faults();
        // Redo of the log must give the same rows.
        let left = world.disk.crash(cheetah_io::sim::CrashPolicy::SyncedOnly, at);
        reopened(&left, &rows, &what);
        world.expect(&rows, &what);
    }
    assert!(failed > 5, "{failed}");
}
