//! Encrypted tables and files, for the views of the server.

use crate::base::TableId;
use crate::db::Db;
use crate::format::catalog::TableEncryption;

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableEncryptionStatus {
    /// Its name.
    pub name: String,
    /// Its number.
    pub table: TableId,
    /// The encryption in its definition.
    pub encryption: TableEncryption,
    /// Whether pages that are written now are encrypted.
    pub is_encrypted: bool,
    /// How often the key service was asked for its key, since the startup.
    pub key_requests: u64,
    /// The oldest version of its key that anything of the database is encrypted with; 0 when
    /// nothing is.
    pub min_key_version: u32,
    /// The version that pages are encrypted with now; 0 when the key is not in use.
    pub current_key_version: u32,
    /// While the background looks at all pages: the page that it looks at next, and how many there
    /// are.
    pub rotation: Option<(u64, u64)>,
}

impl Db {
    /// Every table, with what is known of its encryption, by name.
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
