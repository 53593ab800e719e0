//! Which keys of the server close what: bringing them into use.

use super::parts::Core;
use crate::base::Result;
use crate::format::catalog::TableDef;
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
    let _naming = keys.naming();
    let new = all.iter().filter(is_new).map(|id| keys.fetch_newest(*id)).collect::<Result<_>>()?;
    name_and_serve(keys, map, new)
}

/// Has newer versions serve of the keys that do, if there are any. What cannot be fetched now is
/// left for the next time (E11).
pub(crate) fn use_newest_versions(keys: &Keys, map: &MapStore) -> Result<()> {
    let _naming = keys.naming();
    let newer = |name: &KeyName| {
        let newest = keys.newest_version(name.id)?;
        (newest > name.version).then(|| keys.fetch_newest(name.id).ok()).flatten()
    };
    let new = keys.serving_names().iter().filter_map(newer).collect();
    name_and_serve(keys, map, new)
}

/// The caller holds `naming`.
fn name_and_serve(keys: &Keys, map: &MapStore, new: Vec<Arc<Key>>) -> Result<()> {
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

/// The keys that pages of these tables are closed with, now or once tables are encrypted by
/// default.
pub(crate) fn keys_of<'a>(defs: impl Iterator<Item = &'a TableDef>, by_default: bool) -> Vec<u32> {
    let needs_key = |def: &&TableDef| def.encryption.is_on(by_default);
    defs.filter(needs_key).map(|def| def.encryption.key_id).collect()
}

impl Core {
    /// As [`use_keys`].
    pub(crate) fn use_keys(&self, ids: &[u32]) -> Result<()> {
        use_keys(self.pool.keys(), self.checkpointer.map(), ids)
    }

    /// Has the keys serve that a new table needs.
    pub(crate) fn use_keys_of(&self, def: &TableDef) -> Result<()> {
        match keys_of([def].into_iter(), self.pool.keys().closes_tables()).as_slice() {
            [] => Ok(()),
            ids => self.use_keys(ids),
        }
    }
}
