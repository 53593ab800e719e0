//! The encryption keys of an open database: the keys that exist, and those that encrypt new data.
//!
//! CONTROL names every key with which anything in the files is encrypted. A key is *named* if
//! CONTROL names it, and *current* if new images and files are encrypted with it.
//!
//! Invariants
//!   K1  A key is current only while CONTROL names it, in both copies. So older engines refuse the
//!       database before it has anything that they cannot read, and a startup knows the keys that
//!       it will need before it writes anything (durability::E12, durability::E13).
//!   K2  Every key that CONTROL names is in memory from the startup until it is no longer named. So
//!       the key service is never called in a mini-transaction, under a latch, or while other
//!       threads wait (durability::E11), and no key can turn out to be missing later
//!       (durability::E9).
//!   K3  Versions of a key become current in ascending order.
//!   K4  Key 1 encrypts what belongs to no table. If any key is current, key 1 is.
//! Locks     `naming`, then `ring`. `ring`, `requests` and `change_files` are held only briefly,
//!           never while the service is called.

use crate::base::{opaque, sound, Epoch, Error, KeySource, Result};
use crate::format::encryption::{Key, KeyName, NONCE_BYTES};
use cheetah_io::Clock;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

pub use zeroize::Zeroizing;

/// The server's ID of the key for what belongs to no table.
pub const SYSTEM_KEY: u32 = 1;

/// How pages of a tree are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// Not at all.
    Never,
    /// With the key that has this ID.
    With(u32),
    /// With the key that has this ID, while tables are encrypted by default.
    ByDefault(u32),
    /// With the key for what belongs to no table, if it is current.
    AsSystem,
}

/// See the module documentation.
pub struct Keys {
    source: KeySource,
    clock: Arc<dyn Clock>,
    database: [u8; 16],
    /// Held while the key names in CONTROL change.
    naming: Mutex<()>,
    ring: RwLock<Ring>,
    closes_tables: AtomicBool,
    closes_log: AtomicBool,
    /// An image whose key is this many versions old must be re-encrypted; 0: never.
    rotate_age: AtomicU32,
    change_files: Mutex<BTreeMap<Epoch, KeyName>>,
    /// Grows when images may have to be re-encrypted.
    changes: AtomicU64,
    requests: Mutex<BTreeMap<u32, u64>>,
}

#[derive(Default)]
struct Ring {
    /// By ID and version.
    named: BTreeMap<(u32, u32), Arc<Key>>,
    serving: BTreeMap<u32, Arc<Key>>,
}

opaque!(Keys);

impl Keys {
    /// Requests the keys that CONTROL names from the service; the newest versions become current.
    /// Fails with `Key` if the service lacks a key, or returns a different key than the named one.
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
                let detail = "the key service gave another key for this ID and version than the \
                              one that encrypts the database; configure the old key there";
                return Err(refused(name.id, name.version, detail));
            }
            keys.serve(key);
        }
        Ok(keys)
    }

    /// The keys of a database without keys and key service.
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

    /// The UUID of the database that the keys are for.
    pub fn database(&self) -> &[u8; 16] {
        &self.database
    }

    fn fetch(&self, id: u32, version: u32) -> Result<Key> {
        let missing = "the key service does not have it, but data is encrypted with it; load the \
                       plugin for key management that has this key";
        let secret = self.asked(id).key(id, version).ok_or_else(|| refused(id, version, missing))?;
        Ok(Key::new(id, version, secret, &self.database))
    }

    /// Asks the service for the newest version of a key.
    pub fn newest_version(&self, id: u32) -> Option<u32> {
        self.asked(id).newest_version(id)
    }

    /// Counts a request for a key.
    fn asked(&self, id: u32) -> &KeySource {
        *self.requests.lock().entry(id).or_default() += 1;
        &self.source
    }

    /// The number of requests for a key since startup.
    pub fn requests(&self, id: u32) -> u64 {
        self.requests.lock().get(&id).copied().unwrap_or(0)
    }

    /// Requests the newest version of a key from the service; fails with `Key` if it has none.
    pub fn fetch_newest(&self, id: u32) -> Result<Arc<Key>> {
        let none = "the key service does not have this key; load a plugin for key management that has it";
        let version = self.newest_version(id).ok_or_else(|| refused(id, 0, none))?;
        self.fetch(id, version).map(Arc::new)
    }

    /// Must be held while changing the names in CONTROL, and during the following
    /// [`serve`](Self::serve) or [`retire`](Self::retire).
    pub fn naming(&self) -> MutexGuard<'_, ()> {
        self.naming.lock()
    }

    /// Makes a key a named key, and the current key unless a newer version is current.
    pub fn serve(&self, key: Arc<Key>) {
        let (mut ring, name) = (self.ring.write(), key.name());
        ring.named.insert((name.id, name.version), Arc::clone(&key));
        let newest = ring.serving.get(&name.id).map_or(0, |serving| serving.name().version);
        if name.version >= newest {
            ring.serving.insert(name.id, key);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Removes keys from the named keys, except current keys.
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

    /// The names of all named keys.
    pub fn names(&self) -> Vec<KeyName> {
        self.ring.read().named.values().map(|key| key.name()).collect()
    }

    /// The names of the current keys.
    pub fn serving_names(&self) -> Vec<KeyName> {
        self.ring.read().serving.values().map(|key| key.name()).collect()
    }

    /// Returns the key with this name. Fails with `Key` if it is not named.
    pub fn find(&self, name: &KeyName) -> Result<Arc<Key>> {
        let found = self.ring.read().named.get(&(name.id, name.version)).cloned();
        found.filter(|key| key.name() == *name).ok_or_else(|| {
            refused(name.id, name.version, "the data to be read names it, but the control file does not")
        })
    }

    /// The current version of a key.
    pub fn serving(&self, id: u32) -> Option<Arc<Key>> {
        self.ring.read().serving.get(&id).cloned()
    }

    /// The key for encrypting a page now. Fails with `Fatal` if the page's key is not current: the
    /// page is never written unencrypted (durability::E7). If tables are encrypted by default and
    /// the table's key is not in use yet, the page gets the key for what belongs to no table.
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
            None => Err(Error::Fatal(format!("a page must be encrypted, but key {id} is not in use"))),
        }
    }

    /// The key for data that belongs to no table.
    pub fn system(&self) -> Option<Arc<Key>> {
        self.serving(SYSTEM_KEY)
    }

    /// The key for new log files.
    pub fn of_log(&self) -> Option<Arc<Key>> {
        self.closes_log.load(Relaxed).then(|| self.system()).flatten()
    }

    /// Whether tables without an ENCRYPTED option in their definition are encrypted.
    pub fn closes_tables(&self) -> bool {
        self.closes_tables.load(Relaxed)
    }

    /// Sets [`closes_tables`](Self::closes_tables). To set it, the tables' keys must be current.
    pub fn set_closes_tables(&self, is_so: bool) {
        if self.closes_tables.swap(is_so, Relaxed) != is_so {
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Records the key of an epoch's change file.
    pub fn note_change_file(&self, epoch: Epoch, key: Option<KeyName>) {
        let mut all = self.change_files.lock();
        match key {
            Some(key) => drop(all.insert(epoch, key)),
            None => drop(all.remove(&epoch)),
        }
    }

    /// The keys of the change files of these epochs; forgets those of other epochs.
    pub fn of_change_files(&self, epochs: &[Epoch]) -> Vec<KeyName> {
        let mut all = self.change_files.lock();
        all.retain(|epoch, _| epochs.contains(epoch));
        all.values().copied().collect()
    }

    /// Sets how many versions old the key of an image must be for re-encryption; 0: never.
    pub fn set_rotate_age(&self, versions: u32) {
        if self.rotate_age.swap(versions, Relaxed) != versions {
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Whether data encrypted with `key` must be re-encrypted with `serving`, its current version.
    pub fn is_too_old(&self, key: &KeyName, serving: &KeyName) -> bool {
        let age = self.rotate_age.load(Relaxed);
        age > 0 && serving.version.saturating_sub(key.version) >= age
    }

    /// A counter that grows when images may have to be re-encrypted.
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Sets whether new log files are encrypted, for which key 1 must be current; returns the
    /// previous setting.
    pub fn set_closes_log(&self, is_so: bool) -> bool {
        self.closes_log.swap(is_so, Relaxed)
    }

    /// Returns a random nonce for one encrypted block or log file (durability::E1). Fails with `Io`
    /// if the system has no random bytes (durability::E2).
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
