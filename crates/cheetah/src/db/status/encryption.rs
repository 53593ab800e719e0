//! The encryption of tables and files, for the server's views.

use crate::base::TableId;
use crate::db::Db;
use crate::format::catalog::TableEncryption;

/// The encryption of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableEncryptionStatus {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub table: TableId,
    /// The encryption in its definition.
    pub encryption: TableEncryption,
    /// Whether newly written pages are encrypted.
    pub is_encrypted: bool,
    /// Requests for its key to the key service since startup.
    pub key_requests: u64,
    /// The oldest version of its key that encrypts anything in the database; 0 if none does.
    pub min_key_version: u32,
    /// The key version for new pages; 0 if the key is not in use.
    pub current_key_version: u32,
    /// During a rotation pass: the next page to check, and the number of pages.
    pub rotation: Option<(u64, u64)>,
}

impl Db {
    /// The encryption status of every table, by name.
    pub fn encryption(&self) -> Vec<TableEncryptionStatus> {
        let core = &self.0.core;
        let keys = core.pool.keys();
        let named = keys.names();
        let rotation = core.upkeep.rotation_pass().map(|pass| pass.place());
        let names = core.catalog.names();
        let tables = names.iter().filter_map(|name| core.catalog.by_name(name).ok());
        let status = tables.map(|table| {
            let encryption = table.def().encryption;
            let versions = named.iter().filter(|name| name.id == encryption.key_id).map(|name| name.version);
            TableEncryptionStatus {
                name: table.name().to_string(),
                table: table.id(),
                encryption,
                is_encrypted: encryption.is_on(keys.closes_tables()),
                key_requests: keys.requests(encryption.key_id),
                min_key_version: versions.min().unwrap_or(0),
                current_key_version: keys.serving(encryption.key_id).map_or(0, |key| key.name().version),
                rotation,
            }
        });
        status.collect()
    }
}
