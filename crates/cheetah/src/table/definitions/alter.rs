//! Changes table definitions without rewriting rows: adds indexes that were built before
//! ([`crate::table::build`]), drops, reorders and renames indexes, and changes the caller's own
//! bytes and the compression of later images. It also adds and drops columns: stored rows stay as
//! they are, and are converted when they are read ([`super::row_format_versions`]).
//!
//! Invariants
//!   A1  The new definitions of one call take effect together, through one log record, durable on
//!       return: a crash leaves all old ones or all new ones.
//!   A2  A table keeps its ID, rows, counters and clustered index, and each index keeps its number
//!       and tree: earlier undo and log records keep their meaning. Records about a dropped index
//!       are skipped. The postings of a dropped full-text index are dropped after the change (X2 of
//!       [`super::fulltext`]).
//!   A3  Earlier handles return `NoSuchTable`. Open transactions may have changed the table.
//!   A4  If a column is renamed, the foreign keys of child tables that name it change in the same
//!       call, and the handles of these tables stay valid (F13 of
//!       docs/developers/decisions/0046-foreign-keys.md).
//! See docs/developers/durability.md, "Changes of definitions".

use super::ddl::{self, Ddl};
use super::foreign_keys::{self, Constraints};
use super::fulltext;
use super::handle::Table;
use super::row_format_versions::NewRows;
use super::shadow;
use crate::base::{Error, Result};
use crate::format::catalog::{FulltextDef, IndexDef, TableDef, INDEXES_MAX};
use crate::format::foreign_key::Description;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;
use crate::table::shared::parts::Core;
use std::sync::Arc;

/// A new definition of a table.
#[derive(Clone, Debug)]
pub struct Alteration {
    /// The table.
    pub table: Arc<Table>,
    /// Its indexes from now on, the clustered one first, as before. Others are dropped.
    pub indexes: Vec<AlteredIndex>,
    /// Indexes that were built for it.
    pub built: Option<BuiltIndexes>,
    /// Its columns from now on, if these change.
    pub rows: Option<NewRows>,
    /// The compression of new images of its pages, if it changes. Existing images stay as they are.
    pub compression: Option<Compression>,
    /// Its columns, keys and foreign keys from now on. With `None`, it keeps its foreign keys and
    /// loses its description.
    pub constraints: Option<Constraints>,
    /// Its full-text indexes from now on, if these change; the postings of others are dropped.
    pub fulltext: Option<Vec<AlteredFulltext>>,
    /// The caller's own bytes.
    pub extra: Vec<u8>,
    /// The caller's mark of this change, see [`Table::mark`].
    pub mark: Vec<u8>,
}

impl Alteration {
    /// Changes only the indexes; the caller's bytes become empty.
    pub fn of_indexes(table: Arc<Table>, indexes: Vec<AlteredIndex>) -> Self {
        Self {
            table,
            indexes,
            built: None,
            rows: None,
            compression: None,
            constraints: None,
            fulltext: None,
            extra: Vec::new(),
            mark: Vec::new(),
        }
    }
}

/// A full-text index of a new definition.
#[derive(Clone, Debug)]
pub struct AlteredFulltext {
    /// Its name from now on.
    pub name: String,
    /// The caller's own bytes from now on.
    pub extra: Vec<u8>,
    /// Its source.
    pub from: FulltextFrom,
}

/// The source of a full-text index of a new definition.
#[derive(Clone, Debug)]
pub enum FulltextFrom {
    /// An existing index of the table, by position from 0.
    Kept(usize),
    /// A newly built index: its complete postings, in a table that no definition names yet.
    Built(Arc<Table>),
}

/// An index of a new definition.
#[derive(Clone, Debug)]
pub struct AlteredIndex {
    /// Its name from now on.
    pub name: String,
    /// Its source.
    pub from: IndexFrom,
}

/// The source of an index of a new definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexFrom {
    /// An existing index of the table, by position.
    Kept(usize),
    /// A newly built index, by position from 1.
    Built(usize),
}

/// Indexes that are complete and durable, and ready to be added to a table.
#[derive(Clone, Debug)]
pub struct BuiltIndexes(pub(crate) Arc<Table>);

impl Table {
    /// Whether the stored rows of the table have exactly that row-format version.
    pub fn fits(&self, row_format: &RowFormatVersion) -> bool {
        self.row_format() == row_format
    }

    /// The bytes that the caller gave to the last change of the definition.
    pub fn mark(&self) -> &[u8] {
        &self.def().mark
    }
}

/// Gives tables new definitions (A1).
pub(crate) fn alter_tables(core: &Core, alterations: &[Alteration]) -> Result<()> {
    let _ddl = core.catalog.lock_ddl();
    let mut tables = Vec::with_capacity(alterations.len());
    let mut following = Vec::new();
    for alteration in alterations {
        let table = &alteration.table;
        drop(table.use_it()?);
        if !core.catalog.by_id(table.id()).is_some_and(|now| Arc::ptr_eq(&now, table)) {
            return Err(Error::NoSuchTable(table.name()));
        }
        shadow::check_not_awaited(core, table)?;
        let mut def = definition(alteration)?;
        if let Some(constraints) = &alteration.constraints {
            foreign_keys::check(&core.catalog, &mut def, constraints, Some(table))?;
            following.extend(foreign_keys::after_columns(&core.catalog, table, constraints));
        }
        tables.push((Arc::clone(table), def));
    }
    let mut postings = Vec::new();
    for (table, def) in &tables {
        let is_gone = |index: &&FulltextDef| !def.fulltext.iter().any(|kept| kept.postings == index.postings);
        postings.extend(table.fulltext().iter().filter(is_gone).cloned());
    }
    fulltext::drop_behind(core, &postings, || ddl::change(core, Ddl::Alter(tables, following)))
}

fn fulltext_indexes(table: &Table, altered: &[AlteredFulltext]) -> Result<Vec<FulltextDef>> {
    let mut defs: Vec<FulltextDef> = Vec::with_capacity(altered.len());
    for AlteredFulltext { name, extra, from } in altered {
        let postings = match from {
            FulltextFrom::Kept(no) => table.fulltext_index(*no)?.postings.clone(),
            FulltextFrom::Built(postings) => postings.name(),
        };
        if defs.iter().any(|def| def.postings == postings) {
            return Err(Error::Limit { what: "uses of one full-text index", actual: 2, limit: 1 });
        }
        let (name, extra) = (name.clone(), extra.clone());
        defs.push(FulltextDef { name, postings, extra });
    }
    Ok(defs)
}

fn definition(alteration: &Alteration) -> Result<TableDef> {
    let Alteration { table, indexes, built, rows, compression, constraints, fulltext, extra, mark } =
        alteration;
    let built = built.as_ref().map(|built| &built.0).filter(|built| built.id() == table.id());
    if indexes.len() > INDEXES_MAX {
        let (actual, limit) = (indexes.len() as u64, INDEXES_MAX as u64);
        return Err(Error::Limit { what: "number of indexes", actual, limit });
    }
    if indexes.is_empty() {
        return Err(Error::Limit {
            what: "number of indexes (at least the clustered one)",
            actual: 0,
            limit: 1,
        });
    }
    let now = match rows {
        Some(rows) => table.definition_with(rows)?,
        None => table.definition(),
    };
    let (description, foreign_keys) = match constraints {
        Some(constraints) => (constraints.description.clone(), foreign_keys::kept(table, constraints)),
        None => (Description::default(), now.foreign_keys.clone()),
    };
    let fulltext = match fulltext {
        Some(altered) => fulltext_indexes(table, altered)?,
        None => now.fulltext.clone(),
    };
    let mut taken = Vec::new();
    let mut defs = Vec::with_capacity(indexes.len());
    for AlteredIndex { name, from } in indexes {
        let is_first = *from == IndexFrom::Kept(0);
        let of = match *from {
            IndexFrom::Kept(index_no) => now.indexes.get(index_no),
            IndexFrom::Built(no) => built.filter(|_| no > 0).and_then(|built| built.indexes().get(no)),
        };
        let of = of.filter(|_| !taken.contains(from) && is_first == taken.is_empty());
        let (IndexFrom::Kept(no) | IndexFrom::Built(no)) = *from;
        let (what, limit) = ("position of an index", table.indexes().len() as u64 - 1);
        let of = of.ok_or(Error::Limit { what, actual: no as u64, limit })?;
        taken.push(*from);
        defs.push(IndexDef { name: name.clone(), ..of.clone() });
    }
    Ok(TableDef {
        name: table.name(),
        compression: compression.unwrap_or(now.compression),
        encryption: now.encryption,
        extra: extra.clone(),
        mark: mark.clone(),
        changes: now.changes + 1,
        next_number: built.map_or(0, |built| built.def().next_number).max(now.next_number),
        indexes: defs,
        description,
        foreign_keys,
        fulltext,
        ..now
    })
}
