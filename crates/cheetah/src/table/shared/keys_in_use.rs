//! Which keys of the server close what: bringing them into use.

use super::parts::Core;
use crate::base::{sound, Error, Result};
use crate::format::catalog::{Encryption, TableDef};
use crate::format::control::KEYS_MAX;
use crate::format::encryption::{Key, KeyName};
use crate::keys::{Keys, SYSTEM_KEY};
use crate::page_map::MapStore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Has these keys serve from now on, in their newest versions, and with them the one for what
/// belongs to no table. Those that serve already stay. Asks the key service, and writes CONTROL if
/// any is new (K1). `Key` when the service lacks one; then nothing has changed.
pub(crate) fn use_keys(keys: &Keys, map: &MapStore, ids: &[u32]) -> Result<()> {
    let all: BTreeSet<u32> = ids.iter().copied().chain([SYSTEM_KEY]).collect();
    let is_new = |id: &&u32| keys.serving(**id).is_none();
    if !all.iter().any(|id| is_new(&id)) {
        return Ok(());
    }
    let new = all.iter().filter(is_new).map(|id| keys.fetch_newest(*id)).collect::<Result<_>>()?;
    name_and_serve(keys, map, new)
}

/// Has newer versions serve of the keys that do, if there are any: as many as CONTROL has room for
/// beside the older ones, and the others when a pass has ended and these are forgotten. Keys that
/// cannot be fetched now are left for the next time (E11). `Limit` when it is full of keys that
/// serve.
pub(crate) fn use_newest_versions(keys: &Keys, map: &MapStore) -> Result<()> {
    let newer = |name: &KeyName| {
        let newest = keys.newest_version(name.id)?;
        (newest > name.version).then(|| keys.fetch_newest(name.id).ok()).flatten()
    };
    let serving = keys.serving_names();
    let named_count = keys.names().len();
    // At least one where none can be forgotten: to name it answers `Limit`.
    let least_count = usize::from(named_count <= serving.len());
    let most_count = match sound!(true, "encryption: name all new versions at once") {
        true => KEYS_MAX.saturating_sub(named_count).max(least_count),
        false => serving.len(),
    };
    let new = serving.iter().filter_map(newer).take(most_count).collect();
    name_and_serve(keys, map, new)
}

/// Has CONTROL name, and then serve, those of the fetched keys that do not serve yet: others may
/// have fetched the same meanwhile. Blocks for I/O.
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
    /// As [`use_keys`].
    pub(crate) fn use_keys(&self, ids: &[u32]) -> Result<()> {
        use_keys(self.pool.keys(), self.checkpointer.map(), ids)
    }

    /// Has the key serve that a new table needs, if it does.
    pub(crate) fn use_keys_of(&self, def: &TableDef) -> Result<()> {
        match def.encryption.is_on(self.pool.keys().closes_tables()) {
            true => self.use_keys(&[def.encryption.key_id]),
            false => Ok(()),
        }
    }

    /// As [`use_keys_of`](Self::use_keys_of), for a definition from another database. A table that
    /// does not say ENCRYPTED may name a key that never existed: nobody asked for it while tables
    /// were plain. The system's key closes such a table, as in [`Keys::of`].
    pub(crate) fn use_keys_of_defined(&self, def: &TableDef) -> Result<()> {
        match self.use_keys_of(def) {
            Err(Error::Key { .. }) if def.encryption.wish == Encryption::Default => self.use_keys(&[]),
            used => used,
        }
    }

    /// The keys of all tables that are encrypted, where those are that do not say.
    pub(crate) fn keys_by_default(&self) -> Vec<u32> {
        let tables = self.catalog.names().into_iter().filter_map(|name| self.catalog.by_name(&name).ok());
        let encryption = tables.map(|table| table.def().encryption);
        let ids = encryption.filter(|encryption| encryption.is_on(true)).map(|encryption| encryption.key_id);
        ids.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Has the keys of all tables serve, if tables are encrypted that do not say. A startup asks
    /// only for keys that CONTROL names, so until now pages of others are closed with the system's
    /// key. A key that is missing keeps no other from serving; the first such error is answered.
    pub(crate) fn use_keys_by_default(&self) -> Result<()> {
        let closes_tables = self.pool.keys().closes_tables();
        if !sound!(closes_tables, "encryption: leave tables to the system's key") {
            return Ok(());
        }
        let used = self.keys_by_default().into_iter().map(|id| self.use_keys(&[id]));
        used.fold(Ok(()), Result::and)
    }
}
