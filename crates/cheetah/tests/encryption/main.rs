//! Encryption at rest. Whatever happens, no file contains a row in plain text. All rows are
//! readable with the keys, and no row without them.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod lacking;
mod rotation;
#[path = "../support/mod.rs"]
mod support;

use cheetah::testing::base::planted::plant;
use cheetah::testing::base::{reach, Config, Error, KeyService, KeySource};
use cheetah::testing::db::{Db, Env, Pace};
use cheetah::testing::format::catalog::{Encryption, TableEncryption};
use cheetah::testing::format::control::ControlBlock;
use cheetah::testing::format::encryption::KeyName;
use cheetah::testing::format::image::{glance, ImageHeader};
use cheetah::testing::format::log_frame::FileHeader;
use cheetah::testing::keys::Zeroizing;
use cheetah::testing::salvage::{salvage, Disks};
use cheetah_io::sim::{CrashPolicy, Fault, Op, SimClock, SimDisk};
use cheetah_io::{Clock, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use support::*;

/// The string that every row contains.
const MARK: &[u8] = b"in plain text";
/// The key of the tables with explicit encryption.
const TABLE_KEY: u32 = 5;
const ROWS: u64 = 900;
const LIVES: u64 = 4;

/// Whether the key service delays its answers.
#[derive(Default, PartialEq, Eq, Clone, Copy)]
enum Stall {
    #[default]
    Off,
    On,
    /// A request waits for an answer.
    Asked,
}

/// A key service. It has keys by ID, each with its newest version. Older versions may be lost.
#[derive(Default)]
struct Service {
    newest: Mutex<BTreeMap<u32, u32>>,
    lost: Mutex<BTreeSet<(u32, u32)>>,
    /// The requested key versions.
    asked: Mutex<Vec<(u32, u32)>>,
    /// Distinguishes the keys of different services with the same IDs.
    salt: u8,
    /// Answers are delayed while this is not `Off`.
    stall: Mutex<Stall>,
    is_over: Condvar,
}

impl Service {
    fn new() -> Arc<Self> {
        let service = Self::default();
        service.newest.lock().unwrap().extend([(1, 1), (TABLE_KEY, 3)]);
        Arc::new(service)
    }

    fn add_version(&self, id: u32) {
        *self.newest.lock().unwrap().get_mut(&id).unwrap() += 1;
    }

    fn lose(&self, id: u32, version: u32) {
        self.lost.lock().unwrap().insert((id, version));
    }
}

impl KeyService for Service {
    fn newest_version(&self, id: u32) -> Option<u32> {
        self.newest.lock().unwrap().get(&id).copied()
    }

    fn key(&self, id: u32, version: u32) -> Option<Zeroizing<Vec<u8>>> {
        self.asked.lock().unwrap().push((id, version));
        let mut stall = self.stall.lock().unwrap();
        if *stall == Stall::On {
            *stall = Stall::Asked;
        }
        drop(self.is_over.wait_while(stall, |stall| *stall != Stall::Off).unwrap());
        let is_there =
            version <= self.newest_version(id)? && !self.lost.lock().unwrap().contains(&(id, version));
        is_there.then(|| {
            Zeroizing::new([vec![self.salt; 24], (id ^ version << 8).to_le_bytes().to_vec()].concat())
        })
    }
}

/// A database on a simulated disk, with a clock.
struct World {
    disk: SimDisk,
    clock: SimClock,
    service: Arc<Service>,
    config: Config,
}

impl World {
    fn new(seed: u64) -> Self {
        let service = Service::new();
        let keys = KeySource::new(Arc::clone(&service) as Arc<dyn KeyService>);
        let buffer_pool_bytes = [64 << 10, 96 << 10, 256 << 10][seed as usize % 3];
        let (log_file_bytes, log_bytes_max) = (32 << 10, 512 << 10);
        let config = Config {
            buffer_pool_bytes,
            log_file_bytes,
            log_bytes_max,
            keys,
            encrypts_log: true,
            ..Config::tiny()
        };
        Self { disk: SimDisk::new(), clock: SimClock::default(), service, config }
    }

    fn with_plain_log(seed: u64) -> Self {
        let mut world = Self::new(seed);
        world.config.encrypts_log = false;
        world
    }

    fn open(&self) -> Result<Db, Error> {
        self.clock.advance_ns(1_000_000_000_000);
        let env = Env { disk: Arc::new(self.disk.clone()), clock: Arc::new(self.clock.clone()) };
        Db::open(env, self.config.clone())
    }

    /// Runs the background work, and advances the clock.
    fn work(&self, db: &Db, steps: usize) -> Result<(), String> {
        self.work_for(db, steps, 2_000_000_000)
    }

    fn work_for(&self, db: &Db, steps: usize, step_ns: u64) -> Result<(), String> {
        for _ in 0..steps {
            self.clock.advance_ns(step_ns);
            db.run_background().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Runs the background work until all images are encrypted as required.
    fn rotate(&self, db: &Db) -> Result<(), String> {
        self.rotate_while(db, &mut |_| Ok(()))
    }

    /// Like `rotate`, but calls `each` in every step.
    fn rotate_while(&self, db: &Db, each: &mut dyn FnMut(usize) -> Result<(), String>) -> Result<(), String> {
        db.rotate_keys();
        for step in 0..200_000 {
            each(step)?;
            // At first the time is too short for the database to become idle.
            self.work_for(db, 1, if step < 400 { 1_000_000 } else { 2_000_000_000 })?;
            if !db.is_rotating() {
                return Ok(());
            }
        }
        Err("rotation does not end".into())
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let paths = self.disk.paths().into_iter();
        paths.map(|path| (path.clone(), self.disk.contents(&path).unwrap_or_default())).collect()
    }

    /// The files that contain a row in plain text.
    fn plain_files(&self) -> Vec<String> {
        let has_mark = |bytes: &[u8]| bytes.windows(MARK.len()).any(|window| window == MARK);
        self.files().into_iter().filter(|(_, bytes)| has_mark(bytes)).map(|(path, _)| path).collect()
    }

    /// The keys that CONTROL names.
    fn named(&self) -> Vec<KeyName> {
        let control = self.disk.contents("CONTROL").unwrap();
        ControlBlock::decode(control[..4096].try_into().unwrap(), 0).unwrap().keys
    }

    /// The headers of all images in the segments.
    fn images(&self) -> Vec<ImageHeader> {
        let segments = self.files().into_iter().filter(|(path, _)| path.starts_with("seg/"));
        let mut headers = Vec::new();
        for (_, bytes) in segments {
            let mut at = 64;
            while at + 48 <= bytes.len() {
                let length = glance(&bytes[at..]).map_or(64, |(length, ..)| length.max(64));
                let image = bytes.get(at..at + length).unwrap_or_default();
                headers.extend(ImageHeader::read(image).ok());
                at += length;
            }
        }
        headers
    }

    fn log_headers(&self) -> Vec<FileHeader> {
        let files =
            self.files().into_iter().filter(|(path, _)| path.starts_with("wal") && path.ends_with(".log"));
        let header = |bytes: Vec<u8>| FileHeader::decode(bytes[..512].try_into().unwrap(), "log").unwrap();
        files.map(|(_, bytes)| header(bytes)).collect()
    }
}

fn encrypted(name: &str, wish: Encryption) -> cheetah::testing::table::TableSpec {
    let compression = cheetah::testing::format::image::Compression {
        codec: cheetah::testing::format::image::Codec::None,
        level: 0,
    };
    cheetah::testing::table::TableSpec {
        compression,
        encryption: TableEncryption { wish, key_id: TABLE_KEY },
        ..spec(name)
    }
}

/// A row with the mark in a column and in the key of an entry; some rows have large values.
fn row(number: u64, rng: &mut Rng) -> Row {
    let name = [MARK, &[b'a' + (number % 9) as u8][..]].concat();
    let filler = if rng.below(12) == 0 { 3000 } else { rng.below(60) as usize };
    Row { number, name, text: [MARK, &vec![b'x'; filler][..]].concat() }
}

#[derive(Default)]
struct Model {
    rows: BTreeMap<&'static str, Rows>,
    next: u64,
}

impl Model {
    /// Commits a transaction in one of the tables.
    fn change(&mut self, db: &Db, rng: &mut Rng) -> Result<(), String> {
        let names: Vec<_> = self.rows.keys().copied().collect();
        let name = names[rng.below(names.len() as u64) as usize];
        let table = db.table(name).unwrap();
        let rows = self.rows.get_mut(name).unwrap();
        let mut txn = db.begin();
        for _ in 0..1 + rng.below(30) {
            let key = rng.below(ROWS);
            self.next += 1;
            let new = row(self.next, rng);
            let done = match (rows.get(&key).cloned(), rng.below(8)) {
                (None, _) => insert(&mut txn, &table, key, &new),
                (Some(old), 0) => {
                    rows.remove(&key);
                    delete(&mut txn, &table, key, &old).map_err(|error| error.to_string())?;
                    continue;
                }
                (Some(old), _) => update(&mut txn, &table, key, &old, key, &new),
            };
            done.map_err(|error| format!("key {key}: {error}"))?;
            rows.insert(key, new);
        }
        txn.commit().map_err(|error| error.to_string())
    }

    fn verify(&self, db: &Db) -> Result<(), String> {
        for (name, rows) in &self.rows {
            let table = db.table(name).map_err(|error| error.to_string())?;
            let found = all_rows(&mut db.begin(), &table).map_err(|error| error.to_string())?;
            if found != *rows {
                return Err(format!("{name}: {} rows instead of {}", found.len(), rows.len()));
            }
            let checked = check(db, &table).map_err(|error| error.to_string())?;
            checked.map_err(|findings| format!("{findings:?}"))?;
        }
        match db.background_errors() {
            errors if errors.is_empty() => Ok(()),
            errors => Err(format!("{errors:?}")),
        }
    }
}

/// Plays several lives of a database, each from a startup to a power cut. One table has explicit
/// encryption, the other the default. Keys receive newer versions, and an old version is lost once
/// CONTROL no longer names it.
fn play(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut world = World::new(seed);
    let mut model = Model::default();
    let _planted = bug.map(plant);
    world.config.encrypts_tables = true;
    {
        let db = world.open().map_err(|error| error.to_string())?;
        for (name, wish) in [("yes", Encryption::Yes), ("default", Encryption::Default)] {
            db.create_table(&encrypted(name, wish)).map_err(|error| error.to_string())?;
            model.rows.insert(name, Rows::new());
        }
    }
    for life in 0..LIVES {
        let at = |found: String| format!("life {life}: {found}");
        let db = world.open().map_err(|error| at(error.to_string()))?;
        model.verify(&db).map_err(|found| at(format!("at its start: {found}")))?;
        for _ in 0..10 + rng.below(20) {
            model.change(&db, &mut rng).map_err(at)?;
            match rng.below(12) {
                0..=2 => db.checkpoint().map_err(|error| at(error.to_string()))?,
                3 => world.service.add_version([1, TABLE_KEY][rng.below(2) as usize]),
                4..=6 => world.work(&db, 1 + rng.below(200) as usize).map_err(at)?,
                7 => {
                    let mut change = |step| match step % 8 {
                        0 if step < 400 => model.change(&db, &mut rng),
                        _ => Ok(()),
                    };
                    world.rotate_while(&db, &mut change).map_err(at)?;
                    for id in [1, TABLE_KEY] {
                        let newest = world.service.newest_version(id).unwrap();
                        let named = world.named();
                        let is_named =
                            |version| named.iter().any(|name| (name.id, name.version) == (id, version));
                        (1..newest).filter(|v| !is_named(*v)).for_each(|v| world.service.lose(id, v));
                    }
                }
                _ => {}
            }
            let plain = world.plain_files();
            if !plain.is_empty() {
                return Err(at(format!("rows in plain text in {plain:?}")));
            }
        }
        let policy = if rng.below(2) == 0 { CrashPolicy::SyncedOnly } else { CrashPolicy::Random(0.5) };
        world.disk = world.disk.crash(policy, seed);
        std::mem::forget(db);
        let plain = world.plain_files();
        if !plain.is_empty() {
            return Err(at(format!("after the power cut rows in plain text in {plain:?}")));
        }
    }
    let db = world.open().map_err(|error| error.to_string())?;
    model.verify(&db)
}

fn caught(bug: &'static str) {
    let is_wrong = |seed| {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed, Some(bug))));
        !matches!(played, Ok(Ok(())))
    };
    assert!((1..=40).any(is_wrong), "'{bug}' was not caught");
}

/// The number of databases in `make test`; `CHEETAH_ENCRYPTION_SEEDS` sets another number.
fn seeds() -> u64 {
    std::env::var("CHEETAH_ENCRYPTION_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(6)
}

#[test]
fn no_row_stands_in_any_file_and_none_is_lost_whatever_happens_to_keys() {
    for seed in 1..=seeds() {
        play(seed, None).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
    for mark in ["changed page left to the checkpoint by rotation", "key forgotten", "changes saved"] {
        assert!(reach::count(mark) > 0 || !cfg!(debug_assertions), "'{mark}' was never reached");
    }
}

#[test]
fn rows_that_are_not_encrypted_are_found_by_the_same_search() {
    let world = World::with_plain_log(2);
    let (db, ..) = filled(&world, Encryption::No, 20);
    db.checkpoint().unwrap();
    let plain = world.plain_files();
    assert!(["seg", "wal"].iter().all(|dir| plain.iter().any(|path| path.starts_with(dir))), "{plain:?}");
    assert!(world.named().is_empty(), "CONTROL names a key although nothing is encrypted");
}

/// A database with a table, after `transactions` transactions, with its model and the random
/// numbers for further transactions.
fn filled(world: &World, wish: Encryption, transactions: usize) -> (Db, Model, Rng) {
    let db = world.open().unwrap();
    let (mut model, mut rng) = (Model::default(), Rng::new(3));
    db.create_table(&encrypted("t", wish)).unwrap();
    model.rows.insert("t", Rows::new());
    (0..transactions).for_each(|_| model.change(&db, &mut rng).unwrap());
    (db, model, rng)
}

/// Creates and closes a database with a few rows. Returns its model.
fn small(world: &World, wish: Encryption) -> Model {
    let (db, model, _) = filled(world, wish, 10);
    db.close().unwrap();
    model
}

#[test]
fn e12_without_its_keys_or_with_others_nothing_is_opened_and_nothing_changed() {
    let mut world = World::new(1);
    let model = small(&world, Encryption::Yes);
    let before = world.files();
    let with_keys = world.config.keys.clone();
    let other = Arc::new(Service { salt: 9, ..Service::default() });
    other.newest.lock().unwrap().extend([(1, 1), (TABLE_KEY, 3)]);
    for keys in [KeySource::default(), KeySource::new(other)] {
        world.config.keys = keys;
        let error = world.open().unwrap_err();
        assert!(matches!(&error, Error::Key { id: 1, version: 1, .. }), "{error}");
        assert!(world.files() == before, "the refused startup has written to a file");
    }
    world.config.keys = with_keys;
    world.service.lose(TABLE_KEY, 3);
    let error = world.open().unwrap_err();
    assert!(matches!(&error, Error::Key { id: TABLE_KEY, version: 3, .. }), "{error}");
    assert!(world.files() == before, "the refused startup has written to a file");
    world.service.lost.lock().unwrap().clear();
    model.verify(&world.open().unwrap()).unwrap();
}

#[test]
fn z10_a_start_without_the_keys_leaves_a_snapshot_as_it_is() {
    let mut world = World::new(1);
    let (db, model, _) = filled(&world, Encryption::Yes, 10);
    let clock = SimClock::default();
    let pace = Pace { clock: &clock, bytes_per_second: 1 << 30, interrupted: &|| false };
    let snapshot = db.pin_snapshot().unwrap();
    snapshot.write_to(Path::new("snap"), Path::new(""), pace, &|_| true, &[]).unwrap();
    world.disk = world.disk.at("snap");
    // A startup creates the lock file.
    let files = |world: &World| world.files().into_iter().filter(|file| file.0 != "LOCK").collect::<Vec<_>>();
    let before = files(&world);
    let keys = std::mem::take(&mut world.config.keys);
    assert!(matches!(world.open().unwrap_err(), Error::Key { .. }));
    assert!(files(&world) == before, "no file is written, and MANIFEST is kept");
    world.config.keys = keys;
    model.verify(&world.open().unwrap()).unwrap();
}

#[test]
fn e13_the_control_file_names_a_key_before_anything_is_closed_with_it() {
    let world = World::with_plain_log(1);
    let db = world.open().unwrap();
    db.create_table(&encrypted("plain", Encryption::Default)).unwrap();
    assert!(world.named().is_empty());
    world.disk.set_trace(true);
    db.create_table(&encrypted("t", Encryption::Yes)).unwrap();
    let named: Vec<_> = world.named().iter().map(|name| name.id).collect();
    assert_eq!(named, [1, TABLE_KEY]);
    let trace = world.disk.take_trace();
    let first = |part: &str| trace.iter().position(|line| line.contains(part));
    let (control, log) = (first("CONTROL").unwrap(), first("wal").unwrap());
    assert!(control < log, "{trace:?}");
}

#[test]
fn tables_that_do_not_say_follow_the_setting() {
    let world = World::new(1);
    let mut model = small(&world, Encryption::Default);
    let db = world.open().unwrap();
    db.checkpoint().unwrap();
    assert!(!world.plain_files().is_empty(), "the table is not encrypted at first");
    let table = db.table("t").unwrap();
    let trees: BTreeSet<_> = table.indexes().iter().map(|index| index.tree).collect();
    let closed = |world: &World| {
        let images = world.images();
        let own = images.iter().filter(|image| trees.contains(&image.tree));
        own.fold((0, 0), |(closed, plain), image| match image.closed {
            Some(head) => {
                assert_eq!(head.key.id, TABLE_KEY);
                (closed + 1, plain)
            }
            None => (closed, plain + 1),
        })
    };
    db.set_encrypt_tables(true).unwrap();
    world.rotate(&db).unwrap();
    model.verify(&db).unwrap();
    // Dead images remain in their segment until garbage collection.
    assert!(closed(&world).0 > 0);
    db.set_encrypt_tables(false).unwrap();
    world.rotate(&db).unwrap();
    let (_, plain) = closed(&world);
    assert!(plain > 0);
    model.change(&db, &mut Rng::new(9)).unwrap();
    model.verify(&db).unwrap();
}

#[test]
fn e1_every_box_has_a_nonce_of_its_own() {
    let nonces = || {
        let world = World::new(1);
        small(&world, Encryption::Yes);
        let images = world.images();
        let all: Vec<_> = images.iter().filter_map(|image| image.closed).map(|head| head.nonce).collect();
        assert!(all.len() > 50, "{}", all.len());
        (all.len(), all.into_iter().collect::<BTreeSet<_>>().len())
    };
    let (all, different) = nonces();
    assert_eq!(all, different);
    let _bug = plant("encryption: take the time for a nonce");
    let (all, different) = nonces();
    assert!(different < all);
}

#[test]
fn e4_every_log_file_has_a_key_of_its_own() {
    let salts = || {
        let world = World::new(1);
        let _open = filled(&world, Encryption::Yes, 60);
        let salts: Vec<_> = world.log_headers().iter().map(|header| header.closed.unwrap().bytes).collect();
        assert!(salts.len() > 2, "{}", salts.len());
        (salts.len(), salts.into_iter().collect::<BTreeSet<_>>().len())
    };
    let (all, different) = salts();
    assert_eq!(all, different);
    let _bug = plant("encryption: one key for all log files");
    assert_eq!(salts().1, 1);
}

#[test]
fn e6_what_was_logged_in_plain_text_goes_when_the_log_is_encrypted() {
    let plain_in_log = || {
        let world = World::with_plain_log(1);
        let (db, mut model, mut rng) = filled(&world, Encryption::Yes, 60);
        assert!(world.plain_files().iter().any(|path| path.starts_with("wal")));
        db.set_encrypt_log(true).unwrap();
        db.checkpoint().unwrap();
        (0..3).for_each(|_| model.change(&db, &mut rng).unwrap());
        db.checkpoint().unwrap();
        model.verify(&db).unwrap();
        world.plain_files()
    };
    assert_eq!(plain_in_log(), Vec::<String>::new());
    let _bug = plant("encryption: recycle a plain log file");
    assert_ne!(plain_in_log(), Vec::<String>::new());
}

/// Opens the database like `cheetah-cli --keys check`, which must not make an unencrypted database
/// need keys.
#[test]
fn who_only_looks_encrypts_nothing_where_nothing_is_encrypted() {
    for is_encrypted in [false, true] {
        let mut world = World::with_plain_log(1);
        let (db, mut model, mut rng) =
            filled(&world, if is_encrypted { Encryption::Yes } else { Encryption::No }, 10);
        drop(db);
        let named = world.named();
        assert_eq!(named.is_empty(), !is_encrypted);
        let ours = world.config.clone();
        (world.config.encrypts_tables, world.config.encrypts_log) = (true, true);
        world.config.stays_plain = true;
        let db = world.open().unwrap();
        (0..3).for_each(|_| model.change(&db, &mut rng).unwrap());
        drop(db);
        assert_eq!(world.named(), named);
        assert_eq!(world.log_headers().iter().any(|header| header.closed.is_some()), is_encrypted);
        world.config = ours;
        model.verify(&world.open().unwrap()).unwrap();
    }
}

#[test]
fn a_log_that_could_not_be_encrypted_stays_as_it_was() {
    let world = World::with_plain_log(1);
    let (db, mut model, mut rng) = filled(&world, Encryption::Yes, 10);
    for op in [Op::Create, Op::Allocate] {
        world.disk.inject(Fault::on(op).path("wal/").forever());
        assert!(db.set_encrypt_log(true).is_err(), "{op:?}");
        world.disk.clear_faults();
    }
    (0..3).for_each(|_| model.change(&db, &mut rng).unwrap());
    world.work(&db, 20).unwrap();
    model.verify(&db).unwrap();
    assert!(world.log_headers().iter().all(|header| header.closed.is_none()));
}

#[test]
fn e7_tables_that_do_not_say_have_their_own_key_when_the_setting_is_one_of_the_startup() {
    let versions = || {
        let mut world = World::new(1);
        let model = small(&world, Encryption::Default);
        world.config.encrypts_tables = true;
        let db = world.open().unwrap();
        world.rotate(&db).unwrap();
        model.verify(&db).unwrap();
        let status = db.encryption().into_iter().find(|table| table.name == "t").unwrap();
        (status.min_key_version, status.current_key_version)
    };
    assert_eq!(versions(), (3, 3));
    let _bug = plant("encryption: leave tables to the system's key");
    assert_eq!(versions(), (0, 0));
}

#[test]
fn a_missing_key_of_a_table_that_does_not_say_is_told_of_until_it_is_there() {
    let mut world = World::new(1);
    let mut model = small(&world, Encryption::Default);
    world.config.encrypts_tables = true;
    world.service.lose(TABLE_KEY, 3);
    let db = world.open().unwrap();
    let mut rng = Rng::new(4);
    for _ in 0..20 {
        model.change(&db, &mut rng).unwrap();
        world.work(&db, 1).unwrap();
    }
    let errors = format!("{:?}", db.background_errors());
    assert!(errors.contains("encryption key 5"), "{errors}");
    world.service.lost.lock().unwrap().clear();
    world.rotate(&db).unwrap();
    assert!(world.named().iter().any(|name| name.id == TABLE_KEY));
    model.verify(&db).unwrap();
}

/// A database with an encrypted table and a change file, after a power cut.
fn with_change_file(seed: u64) -> Option<(World, Model, String)> {
    let world = World::new(seed);
    let (db, mut model, mut rng) = filled(&world, Encryption::Yes, 40);
    db.checkpoint().unwrap();
    (0..4).for_each(|_| model.change(&db, &mut rng).unwrap());
    db.checkpoint().unwrap();
    let disk = world.disk.crash(CrashPolicy::SyncedOnly, seed);
    std::mem::forget(db);
    let file = disk.paths().into_iter().find(|path| path.starts_with("chg/"))?;
    Some((World { disk, ..world }, model, file))
}

#[test]
fn v8_parity_mends_a_closed_change_file() {
    let (world, model, file) = (1..30).find_map(with_change_file).unwrap();
    let bytes = world.disk.contents(&file).unwrap();
    assert_eq!(bytes[8], 2, "the file is encrypted");
    for at in [20, 70, 90] {
        let world = World { disk: world.disk.snapshot(), clock: world.clock.clone(), ..World::new(1) };
        world.disk.flip(&file, at, 4).unwrap();
        let db = world.open().unwrap();
        db.checkpoint().unwrap();
        model.verify(&db).unwrap();
    }
}

/// The table was created while tables were not encrypted, so its key was not checked.
#[test]
fn e16_a_plain_table_whose_key_never_existed_is_salvaged_and_closed() {
    let mut world = World::with_plain_log(1);
    let never = TableEncryption { wish: Encryption::Default, key_id: 77 };
    let db = world.open().unwrap();
    let spec = cheetah::testing::table::TableSpec {
        is_temporary: false,
        encryption: never,
        ..encrypted("t", Encryption::Default)
    };
    let (table, mut txn, mut rng) = (db.create_table(&spec).unwrap(), db.begin(), Rng::new(1));
    let rows: Rows = (0..20).map(|key| (key, row(key, &mut rng))).collect();
    rows.iter().for_each(|(key, row)| insert(&mut txn, &table, *key, row).unwrap());
    txn.commit().unwrap();
    db.close().unwrap();
    drop((txn, table, db));
    let new = SimDisk::new();
    let scratch = Arc::new(SimDisk::new());
    let disks = Disks { damaged: Arc::new(world.disk.clone()), scratch, new: Arc::new(new.clone()) };
    let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
    let report = salvage(&disks, &clock, &world.config, &mut |_| ()).unwrap();
    assert!(report.is_whole() && report.tables.len() == 1, "{report:?}");
    assert!(!world.plain_files().is_empty());
    world.disk = new;
    assert_eq!(world.plain_files(), Vec::<String>::new());
    let db = world.open().unwrap();
    assert_eq!(all_rows(&mut db.begin(), &db.table("t").unwrap()).unwrap(), rows);
}
