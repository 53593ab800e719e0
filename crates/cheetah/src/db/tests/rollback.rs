//! Tests rollbacks that are left to the background. The caller continues at once, no transaction
//! sees or changes rows that are half rolled back, and a crash in the middle does no harm.

use crate::base::planted::plant;
use crate::base::{Config, Error, Result, Xid};
use crate::db::*;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::table::{IndexSpec, NewRow, Table, TableSpec};
use crate::txn::{Answer, Lock, Wait};
use cheetah_io::sim::{CrashPolicy, SimClock, SimDisk};
use std::ops::Bound::Unbounded;
use std::sync::Arc;

/// The number of committed rows.
const ROWS: u64 = 400;
/// The number of rows that a long transaction adds.
const MORE: u64 = 2500;

pub(in crate::db) struct World {
    pub(in crate::db) disk: SimDisk,
    pub(in crate::db) db: Db,
    pub(in crate::db) table: Arc<Table>,
}

pub(in crate::db) fn env(disk: &SimDisk) -> Env {
    Env { disk: Arc::new(disk.clone()), clock: Arc::new(SimClock::default()) }
}

pub(in crate::db) fn row_of(key: u64, number: u64) -> [u8; 8] {
    (key ^ number << 32).to_be_bytes()
}

impl World {
    /// The table `t`.
    pub(in crate::db) fn spec() -> TableSpec {
        let index = IndexSpec {
            name: "PRIMARY".into(),
            unique: true,
            max_key_bytes: 8,
            row_format: RowFormatVersion::opaque(),
        };
        TableSpec {
            name: "t".into(),
            row_format: RowFormatVersion { null_bytes: 0, fixed: vec![8], var_count: 0 },
            indexes: vec![index],
            compression: Compression::default(),
            hidden_key: false,
            auto_increment: 1,
            extra: Vec::new(),
            fulltext: Vec::new(),
            is_temporary: false,
            encryption: Default::default(),
        }
    }

    pub(in crate::db) fn new() -> Self {
        let disk = SimDisk::new();
        let db = Db::open(env(&disk), Config::tiny()).unwrap();
        let table = db.create_table(&Self::spec()).unwrap();
        let world = Self { disk, db, table };
        let mut txn = world.db.begin();
        (0..ROWS).for_each(|key| world.insert(&mut txn, key, 1).unwrap());
        txn.commit().unwrap();
        world
    }

    pub(in crate::db) fn insert(&self, txn: &mut Transaction, key: u64, number: u64) -> Result<()> {
        let row = row_of(key, number);
        txn.insert(&self.table, &NewRow { key: &key.to_be_bytes(), row: &row, secondary: &[] })
    }

    pub(in crate::db) fn update(&self, txn: &mut Transaction, key: u64, number: u64) -> Result<()> {
        let (row, key) = (row_of(key, number), key.to_be_bytes());
        txn.update(&self.table, &key, &NewRow { key: &key, row: &row, secondary: &[] }, &[])
    }

    /// A transaction that has updated all rows and inserted more.
    fn long(&self) -> Transaction {
        let mut txn = self.db.begin();
        (0..ROWS).for_each(|key| self.update(&mut txn, key, 2).unwrap());
        (ROWS..ROWS + MORE).for_each(|key| self.insert(&mut txn, key, 2).unwrap());
        txn
    }

    /// Runs `end` as if background threads existed to finish its work.
    fn with_threads<T>(&self, end: impl FnOnce() -> T) -> T {
        self.db.0.core.pace.set_has_threads(true);
        let result = end();
        self.db.0.core.pace.set_has_threads(false);
        result
    }

    fn status(&self, name: &str) -> u64 {
        status(&self.db, name)
    }

    /// Returns whether consistent reads see the committed rows and nothing else.
    fn sees_what_was_committed(&self) -> bool {
        is_as_committed(&self.db, &self.table)
    }

    fn is_locked(&self) -> bool {
        let mut other = self.db.begin();
        other.set_lock_wait(0);
        let changed = self.update(&mut other, 7, 3);
        other.rollback().unwrap();
        matches!(changed, Err(Error::LockTimeout))
    }

    /// Returns whether no other transaction can lock the table. Besides this lock, the changed rows
    /// are locked by their versions.
    fn keeps_table(&self) -> bool {
        let mut other = self.db.begin();
        other.set_lock_wait(0);
        let locked = other.lock_table(&self.table, LockMode::Shared);
        matches!(locked, Err(Error::LockTimeout))
    }

    /// Runs background work until the rollback is done. Calls `look` after each step.
    fn finish(&self, mut look: impl FnMut(&Self)) {
        while self.status("rollbacks_unfinished") > 0 {
            assert!(self.db.run_background().unwrap());
            look(self);
        }
        while self.db.run_background().unwrap() {}
        assert_eq!((self.db.transactions().len(), self.db.locks().len()), (0, 0));
        assert!(self.sees_what_was_committed() && !self.is_locked());
        assert_eq!(self.db.check_table(&self.table, true).unwrap().findings, [] as [String; 0]);
    }
}

fn status(db: &Db, name: &str) -> u64 {
    db.status().into_iter().find(|entry| entry.0 == name).unwrap().1
}

pub(in crate::db) fn is_as_committed(db: &Db, table: &Arc<Table>) -> bool {
    let mut txn = db.begin();
    let mut cursor = txn.cursor(table, 0, Read::Consistent).unwrap();
    let mut found = cursor.seek(SeekMode::First, b"").unwrap();
    let mut key = 0u64;
    while found && cursor.key() == key.to_be_bytes() && cursor.row() == row_of(key, 1) {
        key += 1;
        found = cursor.next().unwrap();
    }
    !found && key == ROWS && txn.count(table).unwrap() == Some(ROWS)
}

/// Checks that a power cut leaves no change of the transaction, regardless of how the database is
/// opened.
fn is_gone_after_a_power_cut(disk: &SimDisk) {
    let left = disk.crash(CrashPolicy::SyncedOnly, 1);
    for early in [false, true] {
        let left = left.snapshot();
        let db = match early {
            true => Db::open_early(env(&left), Config::tiny()).unwrap(),
            false => Db::open(env(&left), Config::tiny()).unwrap(),
        };
        let table = db.table("t").unwrap();
        assert!(is_as_committed(&db, &table) && db.prepared().is_empty());
        while db.run_background().unwrap() {}
        assert_eq!((status(&db, "rollbacks_unfinished"), status(&db, "transactions_to_purge")), (0, 0));
        assert!(is_as_committed(&db, &table));
        assert_eq!(db.check_table(&table, true).unwrap().findings, [] as [String; 0]);
    }
}

#[test]
fn whoever_is_killed_in_a_long_transaction_goes_on_at_once_and_the_background_takes_it_back() {
    let world = World::new();
    let mut txn = world.long();
    txn.interrupt_when(|| true);
    world.with_threads(|| txn.rollback()).unwrap();
    assert_eq!((world.status("rollbacks_unfinished"), world.status("rows_rolled_back")), (1, 0));
    let [told] = &world.db.transactions()[..] else { panic!("the transaction is listed") };
    assert_eq!((told.state, told.changes), (TransactionState::RollingBack, ROWS + MORE));
    txn.interrupt_when(|| false);
    let mut row = Vec::new();
    assert!(txn.get(&world.table, &7u64.to_be_bytes(), Read::Consistent, &mut row).unwrap());
    assert_eq!(row, row_of(7, 1));
    txn.commit().unwrap();
    world.db.checkpoint().unwrap();
    let mut steps = 0;
    world.finish(|world| {
        steps += 1;
        assert!(world.sees_what_was_committed());
        assert_eq!(world.is_locked(), world.status("rollbacks_unfinished") > 0);
        is_gone_after_a_power_cut(&world.disk);
    });
    assert!(steps > 5, "{steps}");
}

#[test]
fn a_client_that_vanishes_leaves_its_long_rollback_and_a_short_one_is_done_at_once() {
    let world = World::new();
    let txn = world.long();
    world.with_threads(|| drop(txn));
    assert_eq!(world.status("rollbacks_unfinished"), 1);
    world.finish(|_| ());
    let mut short = world.db.begin();
    world.update(&mut short, 1, 2).unwrap();
    world.with_threads(|| drop(short));
    assert_eq!(world.status("rollbacks_unfinished"), 0);
    assert!(world.sees_what_was_committed());
}

#[test]
fn whoever_is_not_killed_waits_for_the_end_of_a_rollback() {
    let world = World::new();
    let mut txn = world.long();
    world.with_threads(|| txn.rollback()).unwrap();
    assert_eq!(world.status("rollbacks_unfinished"), 0);
    assert!(world.sees_what_was_committed() && !world.is_locked());
}

#[test]
fn a_long_prepared_transaction_is_no_longer_promised_when_its_rollback_is_left_to_the_background() {
    for has_client in [true, false] {
        let world = World::new();
        let mut txn = world.long();
        let xid = Xid::new(1, b"x", b"").unwrap();
        txn.prepare(xid).unwrap();
        match has_client {
            true => world.with_threads(|| drop(txn)),
            false => drop(txn),
        }
        assert_eq!(world.db.prepared(), [xid], "a handle that is dropped decides nothing");
        world.with_threads(|| world.db.rollback_prepared(&xid)).unwrap();
        assert_eq!((world.status("rollbacks_unfinished"), world.status("rows_rolled_back")), (1, 0));
        assert!(matches!(world.db.commit_prepared(&xid), Err(Error::UnknownXid(_))));
        is_gone_after_a_power_cut(&world.disk);
        world.finish(|world| is_gone_after_a_power_cut(&world.disk));
    }
}

#[test]
fn closing_does_not_wait_for_ever_and_an_early_startup_serves_before_the_rollback_is_done() {
    let world = World::new();
    let txn = world.long();
    world.db.checkpoint().unwrap();
    std::mem::forget(txn);
    let left = world.disk.crash(CrashPolicy::SyncedOnly, 1);
    let db = Db::open_early(env(&left), Config::tiny()).unwrap();
    let world = World { table: db.table("t").unwrap(), disk: left, db };
    assert_eq!(
        (world.status("rollbacks_unfinished"), world.status("recovery_transactions_rolled_back")),
        (1, 0)
    );
    assert!(world.sees_what_was_committed() && world.is_locked() && world.keeps_table());
    let steps = std::cell::Cell::new(0);
    world.finish(|world| {
        steps.set(steps.get() + 1);
        assert!(world.sees_what_was_committed());
        if steps.get() % 3 == 0 {
            world.db.checkpoint().unwrap();
        }
        is_gone_after_a_power_cut(&world.disk);
    });
    assert!(steps.get() > 5);
    assert_eq!(world.status("recovery_transactions_rolled_back"), 1);
}

#[test]
fn what_a_long_transaction_has_scanned_is_free_before_its_rollback_is_done() {
    let world = World::new();
    let txn = world.long();
    let (tree, owner) = (world.table.indexes()[0].tree, txn.listed.owner());
    let locks = &world.db.0.core.locks;
    let gap = Lock::Gap { tree, range: (Unbounded, Unbounded), mode: LockMode::Exclusive };
    locks.request(owner, gap, Wait::Never).unwrap();
    let other = world.db.begin().listed.owner();
    let insert = Lock::InsertIntention { tree, key: b"x" };
    let Ok(Answer::Wait(ticket)) = locks.request(other, insert, Wait::Queue { undo_records_count: 0 }) else {
        panic!("an insert waits for the range")
    };
    world.with_threads(|| drop(txn));
    assert!(ticket.is_granted() && world.is_locked() && world.status("rollbacks_unfinished") == 1);
    world.finish(|_| ());
}

/// Changed rows are locked by their versions, as after a restart. Other rows are free.
#[test]
fn a_table_that_was_locked_as_a_whole_is_free_but_for_its_changed_rows_before_the_rollback_is_done() {
    let world = World::new();
    let mut txn = world.db.begin();
    assert!(txn.try_lock_table(&world.table).unwrap());
    (ROWS..ROWS + MORE).for_each(|key| world.insert(&mut txn, key, 2).unwrap());
    world.update(&mut txn, 7, 2).unwrap();
    world.with_threads(|| drop(txn));
    assert!(world.is_locked() && world.keeps_table() && world.status("rollbacks_unfinished") == 1);
    let mut other = world.db.begin();
    other.set_lock_wait(0);
    world.update(&mut other, 8, 3).unwrap();
    assert!(matches!(world.insert(&mut other, ROWS + MORE / 2, 3), Err(Error::LockTimeout)));
    other.rollback().unwrap();
    world.finish(|world| assert!(world.sees_what_was_committed()));
}

#[test]
fn a_table_can_be_dropped_while_its_changes_are_rolled_back() {
    let world = World::new();
    let txn = world.long();
    world.with_threads(|| drop(txn));
    world.db.run_background().unwrap();
    world.db.drop_table("t").unwrap();
    while world.db.run_background().unwrap() {}
    assert_eq!((world.status("rollbacks_unfinished"), world.status("transactions_listed")), (0, 0));
}

#[test]
fn a_rollback_that_is_left_without_its_locks_is_caught() {
    let bug = plant("rollback: leave it without its locks");
    let world = World::new();
    let txn = world.long();
    world.with_threads(|| drop(txn));
    assert!(bug.reached_count() > 0 && !world.keeps_table());
}

/// Breaks S7: startup must lock the tables of the transactions that it finds open.
#[test]
fn an_early_startup_without_the_locks_is_caught() {
    let world = World::new();
    let txn = world.long();
    world.db.checkpoint().unwrap();
    std::mem::forget(txn);
    let left = world.disk.crash(CrashPolicy::SyncedOnly, 1);
    let bug = plant("recovery: serve without the locks");
    let db = Db::open_early(env(&left), Config::tiny()).unwrap();
    let world = World { table: db.table("t").unwrap(), disk: left, db };
    assert!(bug.reached_count() > 0 && !world.keeps_table());
}

#[test]
fn a_prepared_transaction_that_is_rolled_back_while_it_is_promised_is_caught() {
    let bug = plant("two-phase: roll back what is still promised");
    let world = World::new();
    let mut txn = world.long();
    let xid = Xid::new(1, b"x", b"").unwrap();
    txn.prepare(xid).unwrap();
    drop(txn);
    world.with_threads(|| world.db.rollback_prepared(&xid)).unwrap();
    world.db.run_background().unwrap();
    world.db.sync_log().unwrap();
    let left = world.disk.crash(CrashPolicy::SyncedOnly, 1);
    let opened = Db::open(env(&left), Config::tiny());
    let is_promised = opened.map_or(true, |db| !db.prepared().is_empty());
    assert!(
        bug.reached_count() > 0 && is_promised,
        "the transaction is half rolled back and may still be committed"
    );
}
