//! The engine's own tables, which are created when they are first needed. No database of the server
//! can have such a name, so no user can create or drop such a table.

use crate::base::{Error, Result};
use crate::format::row::RowFormatVersion;
use crate::table::definitions::ddl;
use crate::table::shared::parts::Core;
use crate::table::{Constraints, IndexSpec, Table, TableSpec};
use std::sync::Arc;

pub(in crate::db) fn existing(core: &Core, name: &str) -> Option<Arc<Table>> {
    core.catalog.by_name(name).ok()
}

/// Creates the table, which blocks for I/O, if it does not exist.
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
        // Another connection created it first.
        Err(Error::TableExists(_)) => core.catalog.by_name(name),
        created => created,
    }
}
