//! Full-text indexes: the postings of each are in a table of its own, with a row for each word of
//! each row. Transactions write and read these tables
//! (docs/developers/decisions/0047-full-text.md).
//!
//! Invariants
//!   X1  A posting table keeps a name that no caller gives to a table until it is dropped. Exactly
//!       one definition names it, apart from that of a shadow table which will replace the table.
//!   X2  A posting table is created, and filled, before the definition that names it is logged, and
//!       dropped after a definition without it is logged. So no definition ever names a missing or
//!       incomplete posting table. The next startup drops posting tables that no definition names,
//!       because of a crash in between.
//!   X3  Emptying a table gives it new posting tables: the old ones belong to the old rows.

use super::ddl::{self, Ddl};
use super::handle::{class_of, stored_key_bytes_max, Table};
use super::shadow_name;
use super::spec::FulltextSpec;
use crate::base::{reach, sound, PageId, Result, TableId, TreeId};
use crate::format::catalog::{FulltextDef, IndexDef, TableDef};
use crate::format::foreign_key::Description;
use crate::format::row::{RowFormatVersion, RowView};
use crate::table::shared::parts::Core;
use std::collections::HashSet;
use std::sync::Arc;

const PREFIX: &str = "#fulltext/";

pub(crate) fn is_posting_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

pub(super) fn posting_name(table: TableId) -> String {
    format!("{PREFIX}{}", table.0)
}

/// The format of a stored posting: the length of its word, because the key is the word followed by
/// the clustered key; and the word's positions.
pub(crate) fn posting_format() -> RowFormatVersion {
    RowFormatVersion { null_bytes: 0, fixed: vec![2], var_count: 1 }
}

/// The clustered key of a posting's row; `None` if the posting is damaged.
pub(crate) fn row_key_of<'k>(postings: &Table, key: &'k [u8], row: &[u8]) -> Option<&'k [u8]> {
    let fixed = RowView::parse(postings.row_format(), row).ok()?.fixed();
    key.get(usize::from(u16::from_be_bytes(fixed.try_into().ok()?))..)
}

/// Creates empty posting tables. The caller holds the DDL lock. After an error none exists.
pub(super) fn create(core: &Core, base: &TableDef, indexes: &[FulltextSpec]) -> Result<Vec<FulltextDef>> {
    let mut made = Vec::with_capacity(indexes.len());
    for index in indexes {
        match create_postings(core, base, index.max_word_bytes) {
            Ok(table) => {
                let (name, extra) = (index.name.clone(), index.extra.clone());
                made.push(FulltextDef { name, postings: table.name(), extra });
            }
            Err(error) => {
                drop_postings(core, &made);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// No definition names the posting table yet (X2).
pub(crate) fn create_unnamed(core: &Core, of: &Table, max_word_bytes: u32) -> Result<Arc<Table>> {
    let _ddl = core.catalog.lock_ddl();
    create_postings(core, of.def(), max_word_bytes)
}

pub(super) fn specs_of(core: &Core, table: &Table) -> Result<Vec<FulltextSpec>> {
    let row_bytes = table.clustered_def().max_key_bytes;
    let spec = |index: &FulltextDef| {
        let postings = core.catalog.by_name(&index.postings)?;
        let max_word_bytes = postings.clustered_def().max_key_bytes.saturating_sub(row_bytes);
        Ok(FulltextSpec { name: index.name.clone(), max_word_bytes, extra: index.extra.clone() })
    };
    table.fulltext().iter().map(spec).collect()
}

/// Like [`create_unnamed`]; the caller holds the DDL lock.
fn create_postings(core: &Core, base: &TableDef, max_word_bytes: u32) -> Result<Arc<Table>> {
    let row_bytes = base.indexes.first().map_or(0, |index| index.max_key_bytes);
    let index = IndexDef {
        name: "PRIMARY".into(),
        number: 0,
        unique: true,
        disabled: false,
        max_key_bytes: max_word_bytes + row_bytes,
        row_format: posting_format(),
        tree: TreeId::default(),
        root: PageId::NONE,
    };
    let mut def = TableDef {
        id: base.id,
        name: String::new(),
        compression: base.compression,
        encryption: base.encryption,
        hidden_key: false,
        auto_increment: 1,
        extra: Vec::new(),
        mark: Vec::new(),
        changes: 0,
        next_number: 1,
        indexes: vec![index],
        older_formats: Vec::new(),
        description: Description::default(),
        foreign_keys: Vec::new(),
        copy_of: String::new(),
        fulltext: Vec::new(),
    };
    class_of(&core.pool, stored_key_bytes_max(&def, 0))?;
    core.catalog.number(&mut def)?;
    def.name = posting_name(def.id);
    let name = def.name.clone();
    ddl::change(core, Ddl::Create(def))?;
    core.catalog.by_name(&name)
}

/// Makes a catalog change that leaves these posting tables unnamed, then drops them (X2).
pub(super) fn drop_behind(
    core: &Core,
    indexes: &[FulltextDef],
    change: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !sound!(true, "full text: drop postings before the definition") {
        drop_postings(core, indexes);
        return change();
    }
    change()?;
    drop_postings(core, indexes);
    Ok(())
}

/// Drops posting tables that no definition names any more, or leaves that to the next startup. The
/// caller holds the DDL lock.
pub(super) fn drop_postings(core: &Core, indexes: &[FulltextDef]) {
    for index in indexes {
        let drop_one = || ddl::change(core, Ddl::Drop(core.catalog.by_name(&index.postings)?));
        core.note_cleanup("dropping postings", drop_one());
    }
}

/// The posting tables to drop with a table: none for a shadow table, whose posting tables belong to
/// the table that it would have replaced (X1).
pub(super) fn postings_of(table: &Table) -> Vec<FulltextDef> {
    match shadow_name::parse(&table.name()) {
        Some(_) => Vec::new(),
        None => table.fulltext().to_vec(),
    }
}

/// Drops a posting table whose index was never added, unless a definition names it.
pub(crate) fn drop_unnamed(core: &Core, postings: &Table) {
    let _ddl = core.catalog.lock_ddl();
    let name = postings.name();
    if !names_in_use(core).contains(&name) {
        let index = FulltextDef { name: String::new(), postings: name, extra: Vec::new() };
        drop_postings(core, &[index]);
    }
}

/// Drops the posting tables found at startup that no definition names (X2). The log is open.
pub(crate) fn drop_lost(core: &Core) -> Result<()> {
    if !sound!(true, "full text: keep postings that nobody names") {
        return Ok(());
    }
    let used = names_in_use(core);
    let is_lost = |name: &String| is_posting_name(name) && !used.contains(name);
    for name in core.catalog.names().into_iter().filter(is_lost) {
        reach::mark("lost postings are dropped at open");
        ddl::change(core, Ddl::Drop(core.catalog.by_name(&name)?))?;
    }
    Ok(())
}

fn names_in_use(core: &Core) -> HashSet<String> {
    let tables = core.catalog.ids().into_iter().filter_map(|id| core.catalog.by_id(id));
    tables.flat_map(|table| table.fulltext().to_vec()).map(|index| index.postings).collect()
}
