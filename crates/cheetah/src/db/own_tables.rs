//! Tables of the engine's own, which are made when they are needed first. No database of the server
//! can be called as they are, so nobody else can make or drop one.

use crate::base::{Error, Result};
use crate::format::row::RowFormatVersion;
use crate::table::definitions::ddl;
use crate::table::shared::parts::Core;
use crate::table::{Constraints, IndexSpec, Table, TableSpec};
use std::sync::Arc;

/// The table of that name, if there is one.
pub(in crate::db) fn existing(core: &Core, name: &str) -> Option<Arc<Table>> {
    core.catalog.by_name(name).ok()
}

/// The table of that name, created with such rows and keys of at most `max_key_bytes` if it does
/// not exist: blocks for I/O then.
pub(in crate::db) fn existing_or_new(
    core: &Core,
    name: &str,
    row_format: RowFormatVersion,
    max_key_bytes: u32,
) -> Result<Arc<Table>> {
    if let Some(table) = existing(core, name) {
        return Ok(table);
    }
    let clustered = IndexSpec::new("PRIMARY").unique().max_key_bytes(max_key_bytes);
    let spec = TableSpec { indexes: vec![clustered], ..TableSpec::new(name).row_format(row_format) };
    match ddl::create_table(core, &spec, &Constraints::default()) {
        // Another connection was faster.
        Err(Error::TableExists(_)) => core.catalog.by_name(name),
        created => created,
    }
}
