//! The table of removals.

use crate::base::{Error, Result};
use crate::format::catalog::TableEncryption;
use crate::format::image::Compression;
use crate::format::page::max_key_bytes;
use crate::format::removed_words::{row_format, REMOVED_WORDS};
use crate::format::row::RowFormatVersion;
use crate::pool::PageClass;
use crate::table::definitions::ddl;
use crate::table::shared::parts::Core;
use crate::table::{Constraints, IndexSpec, Referenced, Table, TableSpec};
use crate::tree::SeekMode;
use std::sync::Arc;

/// Whether it is that table.
pub(in crate::db) fn is_removed_words(table: &Table) -> bool {
    table.name() == REMOVED_WORDS
}

/// The table, if there is one.
pub(super) fn existing(core: &Core) -> Option<Arc<Table>> {
    core.catalog.by_name(REMOVED_WORDS).ok()
}

/// The table, which is created when there is none: blocks for I/O then.
pub(super) fn existing_or_new(core: &Core) -> Result<Arc<Table>> {
    if let Some(table) = existing(core) {
        return Ok(table);
    }
    match ddl::create_table(core, &spec(core), &Constraints::default()) {
        // Another connection was faster.
        Err(Error::TableExists(_)) => core.catalog.by_name(REMOVED_WORDS),
        created => created,
    }
}

/// Drops the table if nothing is in its tree, not even what was deleted: older versions of the
/// engine open the database again. Nobody may be working on it.
pub(in crate::db) fn drop_if_empty(core: &Core) -> Result<()> {
    let Some(table) = existing(core) else { return Ok(()) };
    let is_empty = {
        let _usage = table.use_it()?;
        !table.clustered().cursor().seek(SeekMode::First, b"")?
    };
    match is_empty {
        true => ddl::drop_table(core, REMOVED_WORDS, Referenced::Ignored),
        false => Ok(()),
    }
}

fn spec(core: &Core) -> TableSpec {
    let page_bytes = PageClass::Base.bytes(core.pool.page_bytes());
    let clustered = IndexSpec {
        name: "PRIMARY".to_owned(),
        unique: true,
        // What fits pages of the usual size. Words of rows with longer keys are deleted at once.
        max_key_bytes: max_key_bytes(page_bytes).min(page_bytes / 8) as u32,
        row_format: RowFormatVersion::opaque(),
    };
    TableSpec {
        name: REMOVED_WORDS.to_owned(),
        row_format: row_format(),
        indexes: vec![clustered],
        compression: Compression::default(),
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        fulltext: Vec::new(),
        is_temporary: false,
        encryption: TableEncryption::default(),
    }
}
