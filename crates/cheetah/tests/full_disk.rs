//! A disk that fills up, at every size around the limits. Each way to free space works, at once or
//! after some background work. A power cut meanwhile loses no acknowledged change, and the database
//! opens on the full disk.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{Config, Error, Result};
use cheetah::testing::db::{Db, Env, Transaction};
use cheetah_io::sim::{CrashPolicy, SimClock, SimDisk};
use cheetah_io::Rng;
use std::cell::RefCell;
use std::sync::Arc;
use support::workload::{verify, Contents, Version};
use support::{delete, insert, spec, Row, Rows};

const KIB: u64 = 1 << 10;
/// The number of rows in the table that is kept.
const KEPT_ROWS: u64 = 30;
/// The number of rows that a transaction inserts.
const TRANSACTION_ROWS: u64 = 4;
/// The number of refused transactions after which the disk counts as full.
const REFUSALS: u64 = 20;
/// The number of background steps, of 20 ms each, within which space must be freed: ten seconds.
const STEPS_MAX: u64 = 500;
const STEP_NS: u64 = 20_000_000;
/// At least this number of transactions must fit. Otherwise there is no space to free.
const GROWTH_MIN: u64 = 5;

/// A database on a full disk, and its expected contents.
struct World<'d> {
    disk: &'d SimDisk,
    clock: Arc<SimClock>,
    db: Db,
    contents: Contents,
    versions: &'d RefCell<Vec<Version>>,
    rng: Rng,
    next_key: u64,
}

/// The result, or a message that names the failed operation.
type Tried<T> = std::result::Result<T, String>;

impl<'d> World<'d> {
    fn open(disk: &'d SimDisk, contents: Contents, versions: &'d RefCell<Vec<Version>>) -> Result<Self> {
        let clock = Arc::new(SimClock::default());
        let env = Env { disk: Arc::new(disk.clone()), clock: clock.clone() };
        *versions.borrow_mut() = vec![Version::of(contents.clone())];
        let db = Db::open(env, Config::tiny())?;
        disk.acknowledge(0);
        Ok(Self { disk, clock, db, contents, versions, rng: Rng::new(7), next_key: 1000 })
    }

    fn background(&self) -> Result<()> {
        self.clock.advance_ns(STEP_NS);
        self.db.run_background().map(drop)
    }

    /// Repeats an operation until it is no longer refused.
    fn soon(&mut self, what: &str, mut work: impl FnMut(&mut Self) -> Result<()>) -> Tried<()> {
        for _ in 0..STEPS_MAX {
            match work(self) {
                Err(Error::DiskFull(_)) => self.background().map_err(|error| error.to_string())?,
                done => return done.map_err(|error| format!("{what}: {error}")),
            }
        }
        work(self).map_err(|error| format!("{what}: {error}; {:?}", self.db.background_errors()))
    }

    /// Records the contents as the newest version. Call this before the commit: the commit may be
    /// durable before it returns.
    fn note_version(&self, contents: Contents) {
        self.versions.borrow_mut().push(Version::of(contents));
    }

    /// Removes the version of a refused change. A change with another error may still be durable.
    fn take_back(&self, error: Error) -> Result<()> {
        if matches!(error, Error::DiskFull(_)) {
            self.versions.borrow_mut().pop();
        }
        Err(error)
    }

    fn acknowledge(&self) {
        self.disk.acknowledge(self.versions.borrow().len() as u64 - 1);
    }

    /// Commits a transaction that inserts incompressible rows.
    fn insert(&mut self, name: &str) -> Result<()> {
        let table = self.db.table(name)?;
        let mut txn = self.db.begin();
        let mut rows = self.contents[name].clone();
        for key in self.next_key..self.next_key + TRANSACTION_ROWS {
            let bytes = 100 + self.rng.below(900) as usize;
            let row = Row { text: self.rng.bytes(bytes), ..Row::new(key, 0) };
            if let Err(error) = insert(&mut txn, &table, key, &row) {
                must_roll_back(txn)?;
                return Err(error);
            }
            rows.insert(key, row);
        }
        let mut contents = self.contents.clone();
        contents.insert(name.into(), rows);
        self.note_version(contents.clone());
        if let Err(error) = txn.commit() {
            return self.take_back(error);
        }
        self.next_key += TRANSACTION_ROWS;
        self.contents = contents;
        self.acknowledge();
        Ok(())
    }

    /// Commits a transaction that deletes the oldest rows.
    fn delete(&mut self, name: &str, count: usize) -> Result<()> {
        let table = self.db.table(name)?;
        let mut txn = self.db.begin();
        let mut rows = self.contents[name].clone();
        for (key, row) in self.contents[name].iter().take(count) {
            if let Err(error) = delete(&mut txn, &table, *key, row) {
                must_roll_back(txn)?;
                return Err(error);
            }
            rows.remove(key);
        }
        let mut contents = self.contents.clone();
        contents.insert(name.into(), rows);
        self.note_version(contents.clone());
        if let Err(error) = txn.commit() {
            return self.take_back(error);
        }
        self.contents = contents;
        self.acknowledge();
        Ok(())
    }

    /// Inserts until transactions are refused repeatedly. Returns the number of committed
    /// transactions.
    fn fill(&mut self, name: &str) -> Tried<u64> {
        let (mut refused, mut count) = (0, 0);
        let text = |error: Error| format!("INSERT into a full disk: {error}");
        while refused < REFUSALS {
            match self.insert(name) {
                Ok(()) => count += 1,
                Err(Error::DiskFull(_)) => {
                    refused += 1;
                    self.background().map_err(text)?;
                }
                Err(error) => return Err(text(error)),
            }
        }
        (0..REFUSALS).try_for_each(|_| self.background()).map_err(text)?;
        Ok(count)
    }

    fn create(&mut self, name: &str) -> Result<()> {
        let mut contents = self.contents.clone();
        contents.insert(name.into(), Rows::new());
        self.note_version(contents.clone());
        if let Err(error) = self.db.create_table(&spec(name)) {
            return self.take_back(error);
        }
        self.contents = contents;
        self.acknowledge();
        Ok(())
    }

    fn drop_table(&mut self, name: &str) -> Result<()> {
        let mut contents = self.contents.clone();
        contents.remove(name);
        self.note_version(contents.clone());
        self.db.drop_table(name)?;
        self.contents = contents;
        self.acknowledge();
        Ok(())
    }

    /// Fills the disk and frees space in each way.
    fn play(&mut self) -> Tried<()> {
        let filled = self.fill("grows")?;
        if filled < GROWTH_MIN {
            return Ok(());
        }
        self.soon("DELETE of a few rows", |world| world.delete("grows", 3))?;
        while self.contents["grows"].len() as u64 > filled * TRANSACTION_ROWS / 4 {
            self.soon("DELETE of many rows", |world| world.delete("grows", 5))?;
        }
        (0..filled / 2).try_for_each(|_| self.soon("INSERT after DELETE", |world| world.insert("grows")))?;
        self.fill("grows")?;
        self.soon("DROP", |world| world.drop_table("grows"))?;
        self.soon("CREATE after DROP", |world| world.create("again"))?;
        (0..filled * 3 / 4)
            .try_for_each(|_| self.soon("INSERT after DROP", |world| world.insert("again")))?;
        match self.db.stopped() {
            None => Ok(()),
            Some(reason) => Err(format!("the engine has stopped: {reason}")),
        }
    }
}

/// A rollback must work on a full disk (H3).
fn must_roll_back(mut txn: Transaction) -> Result<()> {
    match txn.rollback() {
        Err(full @ Error::DiskFull(_)) => Err(Error::corrupt("a rollback", full.to_string())),
        other => other,
    }
}

/// A disk with two tables, one of which has some rows.
fn start() -> (SimDisk, Contents) {
    let disk = SimDisk::new();
    let db = support::open(&disk).unwrap();
    let mut contents = Contents::new();
    for (name, count) in [("kept", KEPT_ROWS), ("grows", 0)] {
        let table = db.create_table(&spec(name)).unwrap();
        let mut txn = db.begin();
        let rows = (0..count).map(|key| (key, Row::new(key, 300))).collect::<Rows>();
        rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
        txn.commit().unwrap();
        contents.insert(name.into(), rows);
    }
    db.close().unwrap();
    (disk, contents)
}

/// Fills a disk with `free_bytes` of space and frees space in each way. Returns whether rows were
/// inserted.
fn leave(free_bytes: u64) -> Tried<bool> {
    let (disk, contents) = start();
    disk.set_space(Some(disk.used_bytes() + free_bytes));
    let versions = RefCell::default();
    let mut world = World::open(&disk, contents, &versions).map_err(|error| error.to_string())?;
    world.play()?;
    drop(world);
    let versions = versions.take();
    let newest = versions.len() as u64 - 1;
    verify(&disk, &versions, newest, false)?;
    Ok(newest > 0)
}

#[test]
fn h3_every_way_out_of_a_full_disk_of_any_size_works() {
    let mut filled = 0;
    for free_kib in (60..1400).step_by(20) {
        match leave(free_kib * KIB) {
            Ok(is_filled) => filled += u64::from(is_filled),
            Err(trap) => panic!("{free_kib} KiB: {trap}"),
        }
    }
    assert!(filled > 30, "{filled} disks");
}

/// Breaks O1: work may begin only if all promised bytes still fit.
#[test]
fn h3_a_disk_on_which_changed_pages_are_promised_no_space_is_a_trap() {
    let _bug = plant("space: promise changed pages nothing");
    let traps = (300..1400).step_by(40).filter_map(|free_kib| leave(free_kib * KIB).err());
    let is_full = |trap: &String| trap.contains("disk full");
    assert!(traps.filter(is_full).count() > 0);
}

/// Cuts power during [`World::play`], before disk operation `at`. Every image must have the
/// acknowledged changes, open on the full disk, and allow deletes.
fn cut_power(free_bytes: u64, at: u64) -> Tried<()> {
    let (disk, contents) = start();
    let space = disk.used_bytes() + free_bytes;
    disk.set_space(Some(space));
    disk.power_cut_at(disk.operations() + at);
    let versions = RefCell::default();
    if let Ok(mut world) = World::open(&disk, contents, &versions) {
        // The workload ends with the power cut, or completes.
        let _ = world.play();
        std::mem::forget(world);
    }
    let versions = versions.take();
    for policy in [CrashPolicy::SyncedOnly, CrashPolicy::Random(0.5), CrashPolicy::Everything] {
        let image = disk.crash(policy, at);
        image.set_space(Some(space));
        let found = verify(&image, &versions, disk.acknowledged(), at % 2 == 1)?;
        let now = RefCell::default();
        let mut world = World::open(&image, versions[found].settled(|_| true), &now)
            .map_err(|error| format!("once more: {error}"))?;
        let name = ["grows", "again"].into_iter().find(|name| world.contents.contains_key(*name));
        name.map_or(Ok(()), |name| world.soon("DELETE", |world| world.delete(name, 3)))?;
    }
    Ok(())
}

#[test]
fn h3_no_power_cut_on_a_full_disk_takes_anything_or_shuts_the_database() {
    let mut rng = Rng::new(11);
    for cut in 0..60 {
        let free_bytes = (300 + 20 * (cut % 30)) * KIB;
        let at = rng.below(free_bytes / 60);
        let tried = cut_power(free_bytes, at);
        tried.unwrap_or_else(|what| panic!("{free_bytes} free, cut before {at}: {what}"));
    }
}
