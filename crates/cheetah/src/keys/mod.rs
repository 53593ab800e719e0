//! The keys of an open database: which there are, and which closes what is written now.
//!
//! CONTROL names every key that anything in the files is closed with. A key is *named* when it
//! stands there, and *serves* when new images and files are closed with it.
//!
//! Invariants
//!   K1  A key serves only while CONTROL names it, in both copies. So older engines refuse the
//!       database before it has anything that they cannot read, and the keys that a startup will
//!       need are known before it writes anything (E12, E13).
//!   K2  Every key that CONTROL names is in memory from the startup on, until it is named no more.
//!       So nobody asks the key service in a mini-transaction, under a latch, or while others wait
//!       (E11), and none can be missing later (E9).
//!   K3  Versions of a key serve in ascending order.
//!   K4  Key number 1 closes what belongs to no table. Where any key serves, that one does.
//! Locks     `naming`, then `ring`. `ring`, `requests` and `change_files` are held for instants,
//!           never while the service is asked.

use crate::base::{sound, Epoch, Error, KeySource, Result};
use crate::format::encryption::{Key, KeyName, NONCE_BYTES};
use cheetah_io::Clock;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

pub use zeroize::Zeroizing;

/// The server's number of the key for what belongs to no table.
pub const SYSTEM_KEY: u32 = 1;

/// How pages of a tree are closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// Not at all.
    Never,
    /// With that key.
    With(u32),
    /// With that key, while tables are encrypted by default.
    ByDefault(u32),
    /// With the key of what belongs to no table, if that serves.
    AsSystem,
}

/// See the module.
pub struct Keys {
    source: KeySource,
    clock: Arc<dyn Clock>,
    database: [u8; 16],
    /// Held while CONTROL is given other names.
    naming: Mutex<()>,
    ring: RwLock<Ring>,
    closes_tables: AtomicBool,
    closes_log: AtomicBool,
    /// Versions by which an image may be behind, and one more; 0: any number.
    rotate_age: AtomicU32,
    /// Of change files.
    change_files: Mutex<BTreeMap<Epoch, KeyName>>,
    /// Grows when images may have to be closed otherwise.
    changes: AtomicU64,
    /// The requests to the service for each key, since the startup.
    requests: Mutex<BTreeMap<u32, u64>>,
}

#[derive(Default)]
struct Ring {
    /// All that are named, by number and version.
    named: BTreeMap<(u32, u32), Arc<Key>>,
    /// By number.
    serving: BTreeMap<u32, Arc<Key>>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("named", &self.names()).finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys that CONTROL names, of which the newest versions serve. Asks the service. `Key`
    /// when one is missing, or is not the one that is meant.
    pub fn open(
        source: KeySource,
        clock: Arc<dyn Clock>,
        database: [u8; 16],
        named: &[KeyName],
    ) -> Result<Self> {
        let keys = Self { source, ..Self::without_service(clock, database) };
        for name in named {
            let key = Arc::new(keys.fetch(name.id, name.version)?);
            if key.name() != *name {
                let detail = "the key service gave another key for this number and version than \
                              the one that encrypts the database; give it the old key";
                return Err(refused(name.id, name.version, detail));
            }
            keys.serve(key);
        }
        Ok(keys)
    }

    /// Those of a database that has none, and no service.
    pub fn none(clock: Arc<dyn Clock>, database: [u8; 16]) -> Arc<Self> {
        Arc::new(Self::without_service(clock, database))
    }

    fn without_service(clock: Arc<dyn Clock>, database: [u8; 16]) -> Self {
        Self {
            source: KeySource::default(),
            clock,
            database,
            naming: Mutex::default(),
            ring: RwLock::default(),
            closes_tables: AtomicBool::new(false),
            closes_log: AtomicBool::new(false),
            rotate_age: AtomicU32::new(1),
            change_files: Mutex::default(),
            changes: AtomicU64::new(0),
            requests: Mutex::default(),
        }
    }

    /// The database that they are for.
    pub fn database(&self) -> &[u8; 16] {
        &self.database
    }

    /// Asks the service for a version of a key.
    fn fetch(&self, id: u32, version: u32) -> Result<Key> {
        let missing = "the key service does not have it, and there is data that is encrypted with \
                       it; load the plugin for key management with this key";
        let secret = self.asked(id).key(id, version).ok_or_else(|| refused(id, version, missing))?;
        Ok(Key::new(id, version, secret, &self.database))
    }

    /// Asks the service which version of a key is the newest.
    pub fn newest_version(&self, id: u32) -> Option<u32> {
        self.asked(id).newest_version(id)
    }

    /// The service, which is going to be asked for a key.
    fn asked(&self, id: u32) -> &KeySource {
        *self.requests.lock().entry(id).or_default() += 1;
        &self.source
    }

    /// How often the service was asked for a key, since the startup.
    pub fn requests(&self, id: u32) -> u64 {
        self.requests.lock().get(&id).copied().unwrap_or(0)
    }

    /// Asks the service for the newest version of a key. `Key` when the service does not have it.
    pub fn fetch_newest(&self, id: u32) -> Result<Arc<Key>> {
        let none = "the key service does not have this key; load a plugin for key management that has it";
        let version = self.newest_version(id).ok_or_else(|| refused(id, 0, none))?;
        self.fetch(id, version).map(Arc::new)
    }

    /// To be held by who changes what CONTROL names, and then [`serve`](Self::serve)s or
    /// [`retire`](Self::retire)s.
    pub fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock()
    }

    /// From now on this key is named, and serves unless a newer version does.
    pub fn serve(&self, key: Arc<Key>) {
        let (mut ring, name) = (self.ring.write(), key.name());
        ring.named.insert((name.id, name.version), Arc::clone(&key));
        let newest = ring.serving.get(&name.id).map_or(0, |serving| serving.name().version);
        if name.version >= newest {
            ring.serving.insert(name.id, key);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// These are named no more. Those that serve stay.
    pub fn retire(&self, names: &[KeyName]) {
        let mut ring = self.ring.write();
        let is_serving = |name: &KeyName, ring: &Ring| {
            ring.serving.get(&name.id).is_some_and(|serving| serving.name() == *name)
        };
        for name in names {
            if !is_serving(name, &ring) {
                ring.named.remove(&(name.id, name.version));
            }
        }
    }

    /// All that are named.
    pub fn names(&self) -> Vec<KeyName> {
        self.ring.read().named.values().map(|key| key.name()).collect()
    }

    /// Those that serve.
    pub fn serving_names(&self) -> Vec<KeyName> {
        self.ring.read().serving.values().map(|key| key.name()).collect()
    }

    /// The key of that name. `Key` when it is not named.
    pub fn find(&self, name: &KeyName) -> Result<Arc<Key>> {
        let found = self.ring.read().named.get(&(name.id, name.version)).cloned();
        found.filter(|key| key.name() == *name).ok_or_else(|| {
            refused(name.id, name.version, "what is to be read names it, and the control file does not")
        })
    }

    /// The version of a key that serves, if any does.
    pub fn serving(&self, id: u32) -> Option<Arc<Key>> {
        self.ring.read().serving.get(&id).cloned()
    }

    /// The key that closes a page now. `Fatal`, never plain, when its key does not serve (E7).
    /// Where tables are encrypted by default, one whose key is not in use yet is closed as what
    /// belongs to none.
    pub fn of(&self, closing: Closing) -> Result<Option<Arc<Key>>> {
        let id = match closing {
            Closing::Never => return Ok(None),
            Closing::AsSystem => return Ok(self.system()),
            Closing::ByDefault(_) if !self.closes_tables() => return Ok(None),
            Closing::ByDefault(id) | Closing::With(id) => id,
        };
        let by_default = matches!(closing, Closing::ByDefault(_));
        let stand_in = || self.system().filter(|_| by_default);
        match self.serving(id).or_else(stand_in) {
            Some(key) => Ok(Some(key)),
            None => Err(Error::Fatal(format!("a page is to be encrypted, and key {id} is not in use"))),
        }
    }

    /// The key that closes data which belongs to no table.
    pub fn system(&self) -> Option<Arc<Key>> {
        self.serving(SYSTEM_KEY)
    }

    /// The key that closes log files that are begun now.
    pub fn of_log(&self) -> Option<Arc<Key>> {
        self.closes_log.load(Relaxed).then(|| self.system()).flatten()
    }

    /// Whether tables are closed that do not say whether they are.
    pub fn closes_tables(&self) -> bool {
        self.closes_tables.load(Relaxed)
    }

    /// Sets that. The keys of such tables serve already if it is so.
    pub fn set_closes_tables(&self, is_so: bool) {
        if self.closes_tables.swap(is_so, Relaxed) != is_so {
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// The change file of an epoch is closed with that key.
    pub fn note_change_file(&self, epoch: Epoch, key: Option<KeyName>) {
        let mut all = self.change_files.lock();
        match key {
            Some(key) => drop(all.insert(epoch, key)),
            None => drop(all.remove(&epoch)),
        }
    }

    /// The keys of the change files of these epochs; keys of others are forgotten.
    pub fn of_change_files(&self, epochs: &[Epoch]) -> Vec<KeyName> {
        let mut all = self.change_files.lock();
        all.retain(|epoch, _| epochs.contains(epoch));
        all.values().copied().collect()
    }

    /// Sets by how many versions the key of an image may be behind, and one more; 0: any number.
    pub fn set_rotate_age(&self, versions: u32) {
        if self.rotate_age.swap(versions, Relaxed) != versions {
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Whether what is closed with `key` is to be closed anew with `serving`, a version of it.
    pub fn is_too_old(&self, key: &KeyName, serving: &KeyName) -> bool {
        let age = self.rotate_age.load(Relaxed);
        age > 0 && serving.version.saturating_sub(key.version) >= age
    }

    /// A number that grows when images may have to be closed otherwise.
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Sets whether log files that are begun from now on are closed, and returns whether they were
    /// until now. Key 1 serves already if so.
    pub fn set_closes_log(&self, is_so: bool) -> bool {
        self.closes_log.swap(is_so, Relaxed)
    }

    /// Random bytes for one box, or one log file (E1). `Io` where the system has none (E2).
    pub fn nonce(&self) -> Result<[u8; NONCE_BYTES]> {
        if !sound!(true, "encryption: take the time for a nonce") {
            return Ok(u128::from(self.clock.now_ns()).to_le_bytes());
        }
        self.clock.random().map_err(|error| Error::io("ask for random bytes", "the operating system", error))
    }
}

fn refused(id: u32, version: u32, detail: &str) -> Error {
    Error::Key { id, version, detail: detail.into() }
}
