//! Makes encryption keys current, by table.

use super::parts::Core;
use crate::base::{sound, Error, Result};
use crate::format::catalog::{Encryption, TableDef};
use crate::format::control::KEYS_MAX;
use crate::format::encryption::{Key, KeyName};
use crate::keys::{Keys, SYSTEM_KEY};
use crate::page_map::MapStore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Makes the newest versions of these keys and of the system key, which encrypts everything that
/// belongs to no table, current. Keys that already have a current version stay as they are. Asks
/// the key service, and writes CONTROL if a key is new (K1). Returns `Key`, and changes nothing, if
/// the service lacks a key.
pub(crate) fn use_keys(keys: &Keys, map: &MapStore, ids: &[u32]) -> Result<()> {
    let all: BTreeSet<u32> = ids.iter().copied().chain([SYSTEM_KEY]).collect();
    let is_new = |id: &&u32| keys.serving(**id).is_none();
    if !all.iter().any(|id| is_new(&id)) {
        return Ok(());
    }
    let new = all.iter().filter(is_new).map(|id| keys.fetch_newest(*id)).collect::<Result<_>>()?;
    name_and_serve(keys, map, new)
}

/// Replaces the current keys with newer versions, if any. If CONTROL lacks room for all of them
/// alongside the older versions, the rest follows once a rotation pass has made these forgotten.
/// Keys that cannot be fetched now are left for the next attempt (durability::E11). Returns `Limit`
/// if CONTROL is full of current keys.
pub(crate) fn use_newest_versions(keys: &Keys, map: &MapStore) -> Result<()> {
    let newer = |name: &KeyName| {
        let newest = keys.newest_version(name.id)?;
        (newest > name.version).then(|| keys.fetch_newest(name.id).ok()).flatten()
    };
    let serving = keys.serving_names();
    let named_count = keys.names().len();
    // At least one key if no version can be forgotten, so that naming it returns `Limit`.
    let least_count = usize::from(named_count <= serving.len());
    let most_count = match sound!(true, "encryption: name all new versions at once") {
        true => KEYS_MAX.saturating_sub(named_count).max(least_count),
        false => serving.len(),
    };
    let new = serving.iter().filter_map(newer).take(most_count).collect();
    name_and_serve(keys, map, new)
}

/// Names in CONTROL, and then makes current, the fetched keys that other threads have not made
/// current meanwhile. Blocks for I/O.
fn name_and_serve(keys: &Keys, map: &MapStore, mut new: Vec<Arc<Key>>) -> Result<()> {
    let _naming = keys.naming();
    let serves = |name: KeyName| keys.serving(name.id).is_some_and(|key| key.name().version >= name.version);
    new.retain(|key| !serves(key.name()));
    if new.is_empty() {
        return Ok(());
    }
    let mut names = keys.names();
    names.extend(new.iter().map(|key| key.name()));
    names.sort_unstable();
    names.dedup();
    map.name_keys(&names)?;
    new.into_iter().for_each(|key| keys.serve(key));
    Ok(())
}

impl Core {
    pub(crate) fn use_keys(&self, ids: &[u32]) -> Result<()> {
        use_keys(self.pool.keys(), self.checkpointer.map(), ids)
    }

    pub(crate) fn use_keys_of(&self, def: &TableDef) -> Result<()> {
        match def.encryption.is_on(self.pool.keys().closes_tables()) {
            true => self.use_keys(&[def.encryption.key_id]),
            false => Ok(()),
        }
    }

    /// Like [`use_keys_of`](Self::use_keys_of), for a definition from another database. A table
    /// without an explicit ENCRYPTED option may name a key that never existed, because tables were
    /// not encrypted. Such a table is encrypted with the system key, as in [`Keys::of`].
    pub(crate) fn use_keys_of_defined(&self, def: &TableDef) -> Result<()> {
        match self.use_keys_of(def) {
            Err(Error::Key { .. }) if def.encryption.wish == Encryption::Default => self.use_keys(&[]),
            used => used,
        }
    }

    /// The keys of all tables that encryption by default would encrypt.
    pub(crate) fn keys_by_default(&self) -> Vec<u32> {
        let tables = self.catalog.names().into_iter().filter_map(|name| self.catalog.by_name(&name).ok());
        let encryption = tables.map(|table| table.def().encryption);
        let ids = encryption.filter(|encryption| encryption.is_on(true)).map(|encryption| encryption.key_id);
        ids.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Makes the keys of all tables current, if tables are encrypted by default. Startup requests
    /// only the keys named in CONTROL, so until now pages of other tables are encrypted with the
    /// system key. A missing key does not keep other keys from becoming current; returns the first
    /// such error.
    pub(crate) fn use_keys_by_default(&self) -> Result<()> {
        let closes_tables = self.pool.keys().closes_tables();
        if !sound!(closes_tables, "encryption: leave tables to the system's key") {
            return Ok(());
        }
        let used = self.keys_by_default().into_iter().map(|id| self.use_keys(&[id]));
        used.fold(Ok(()), Result::and)
    }
}
