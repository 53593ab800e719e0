//! The table of removals.

use crate::base::Result;
use crate::db::own_tables;
use crate::format::page::max_key_bytes;
use crate::format::removed_words::{row_format, REMOVED_WORDS};
use crate::pool::PageClass;
use crate::table::definitions::ddl;
use crate::table::shared::parts::Core;
use crate::table::{Referenced, Table};
use crate::tree::SeekMode;
use std::sync::Arc;

pub(in crate::db) fn is_removed_words(table: &Table) -> bool {
    table.name() == REMOVED_WORDS
}

pub(super) fn existing(core: &Core) -> Option<Arc<Table>> {
    own_tables::existing(core, REMOVED_WORDS)
}

/// Creates the table if it does not exist, which blocks for I/O.
pub(super) fn existing_or_new(core: &Core) -> Result<Arc<Table>> {
    let page_bytes = PageClass::Base.bytes(core.pool.page_bytes());
    // Keys fit pages of the base class. Words of rows with longer keys are deleted at once.
    let max_key_bytes = max_key_bytes(page_bytes).min(page_bytes / 8) as u32;
    own_tables::existing_or_new(core, REMOVED_WORDS, row_format(), max_key_bytes)
}

/// Drops the table if its tree has no row, not even a delete-marked one, so that older versions of
/// the engine can open the database again. The caller must ensure that no thread uses the table.
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
