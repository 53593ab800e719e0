//! Copies tables of a damaged database into a new one.
//!
//! Invariants
//!   I1  Posting tables are copied before the tables whose full-text indexes name them: a startup
//!       drops posting tables that no definition names. Postings of deleted rows are left out, and
//!       the records of their removal are not copied.
//!   I2  Rows are loaded, which builds full pages without a log. A duplicate key can only be damage
//!       that no checksum detects; then rows are inserted one by one, and the first of the
//!       duplicates is kept.

use super::rows::{each_row, TakeRow};
use super::TableReport;
use crate::base::{sound, Error, PageId, Result};
use crate::db::{Db, Transaction};
use crate::format::catalog::TableDef;
use crate::format::removed_words::{put_key, REMOVED_WORDS};
use crate::table::definitions::fulltext::{is_posting_name, row_key_of};
use crate::table::shared::parts::Core;
use crate::table::{NewRow, Table};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const ROWS_PER_COMMIT: u64 = 1000;
const OWN_PREFIX: char = '#';

pub(super) fn copy_all(
    core: &Core,
    new: &Db,
    heard: &mut dyn FnMut(&TableReport),
) -> Result<Vec<TableReport>> {
    let (mut reports, removals) = (Vec::new(), Removals::read(core)?);
    for name in core.catalog.names() {
        // Shadow tables belong to transactions that did not commit; statistics will be taken again.
        let is_own = name.starts_with(OWN_PREFIX);
        let Ok(table) = core.catalog.by_name(&name) else { continue };
        if !is_own {
            let report = copy_with_postings((core, &removals), &table, new)
                .or_else(|error| give_up(&name, error, new))?;
            heard(&report);
            reports.push(report);
        }
    }
    Ok(reports)
}

/// Leaves out a table that the new database refuses; other errors concern all tables.
fn give_up(name: &str, error: Error, new: &Db) -> Result<TableReport> {
    if matches!(error, Error::Fatal(_) | Error::DiskFull(_) | Error::Io { .. }) {
        return Err(error);
    }
    match new.drop_table(name) {
        Ok(()) | Err(Error::NoSuchTable(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(TableReport { name: name.to_owned(), failure: Some(error.to_string()), ..TableReport::default() })
}

struct Removals {
    keys: HashSet<Vec<u8>>,
    are_lost: bool,
}

impl Removals {
    fn read(core: &Core) -> Result<Self> {
        let mut keys = HashSet::new();
        let Ok(table) = core.catalog.by_name(REMOVED_WORDS) else {
            return Ok(Self { keys, are_lost: false });
        };
        let mut report = TableReport::default();
        each_row(core, &table, &mut report, &mut |key, _| {
            keys.insert(key.to_vec());
            Ok(())
        })?;
        let changes_lost = core.losses.as_ref().and_then(|losses| losses.of_table(table.id())).is_some();
        let are_lost = changes_lost || table.quarantine_reason().is_some() || !report.is_whole();
        Ok(Self { keys, are_lost })
    }

    /// Returns whether the row of a posting table is a posting of a deleted row.
    fn have(&self, postings: &Table, key: &[u8], row: &[u8]) -> bool {
        if !sound!(!self.keys.is_empty(), "salvage: copy words of removed rows") {
            return false;
        }
        let mut removal = Vec::new();
        row_key_of(postings, key, row).is_some_and(|row_key| {
            put_key(postings.id(), row_key, &mut removal);
            self.keys.contains(&removal)
        })
    }
}

/// Calls `take` for the rows that the copy of a table gets: all except postings of deleted rows.
fn each_kept(
    (core, removals): Source<'_>,
    table: &Table,
    report: &mut TableReport,
    take: &mut TakeRow<'_>,
) -> Result<()> {
    if !is_posting_name(&table.name()) {
        return each_row(core, table, report, take);
    }
    each_row(core, table, report, &mut |key, row| match removals.have(table, key, row) {
        true => Ok(()),
        false => take(key, row),
    })
}

type Source<'f> = (&'f Core, &'f Removals);

fn copy_with_postings(from: Source<'_>, table: &Arc<Table>, new: &Db) -> Result<TableReport> {
    let (core, removals) = from;
    let mut def = definition(table);
    let mut names = HashMap::new();
    let mut lacks_postings = false;
    for index in &def.fulltext {
        let Ok(postings) = core.catalog.by_name(&index.postings) else {
            let detail = format!("the postings of full-text index '{}' are not in the catalog", index.name);
            return Ok(TableReport { name: table.name(), failure: Some(detail), ..TableReport::default() });
        };
        let (report, copy) = copy(from, &postings, definition(&postings), new)?;
        lacks_postings |= !report.is_whole() || removals.are_lost;
        names.insert(index.postings.clone(), copy.name());
    }
    for index in &mut def.fulltext {
        if let Some(name) = names.get(&index.postings) {
            index.postings.clone_from(name);
        }
    }
    let (mut report, _) = copy(from, table, def, new)?;
    report.lacks_postings = lacks_postings;
    Ok(report)
}

fn definition(table: &Arc<Table>) -> TableDef {
    let mut def = table.definition();
    def.auto_increment = table.auto_increment();
    def.older_formats.clear();
    for (number, index) in (0u32..).zip(&mut def.indexes) {
        (index.number, index.root, index.disabled) = (number, PageId::NONE, number > 0);
    }
    def.next_number = def.indexes.len() as u32;
    def
}

fn copy(from: Source<'_>, table: &Arc<Table>, def: TableDef, new: &Db) -> Result<(TableReport, Arc<Table>)> {
    let core = from.0;
    let lost = core.losses.as_ref().and_then(|losses| losses.of_table(table.id()));
    let (changes_lost, change_lost_why) = lost.map_or_else(Default::default, |lost| (lost.count, lost.why));
    let fresh = TableReport {
        name: table.name(),
        changes_lost,
        change_lost_why,
        quarantine: table.quarantine_reason().map(str::to_owned),
        disabled_indexes: def.indexes.len().saturating_sub(1),
        ..TableReport::default()
    };
    let mut report = fresh.clone();
    let to = new.create_defined(def.clone())?;
    to.note_hidden_key(&table.next_hidden_key());
    let loaded = load(from, table, &to, new, &mut report);
    let to = match loaded {
        Err(Error::DuplicateKey { .. }) => {
            report = fresh;
            new.drop_table(&to.name())?;
            let to = new.create_defined(def)?;
            to.note_hidden_key(&table.next_hidden_key());
            insert(from, table, &to, new, &mut report)?;
            to
        }
        loaded => loaded?,
    };
    Ok((report, to))
}

fn load(
    from: Source<'_>,
    table: &Arc<Table>,
    to: &Arc<Table>,
    new: &Db,
    report: &mut TableReport,
) -> Result<Arc<Table>> {
    let mut transaction = new.begin();
    let Some(mut load) = transaction.begin_load(to)? else {
        insert(from, table, to, new, report)?;
        return Ok(Arc::clone(to));
    };
    let mut rows = 0;
    each_kept(from, table, report, &mut |key, row| {
        rows += 1;
        transaction.load(&mut load, &NewRow { key, row, secondary: &[] })
    })?;
    let loaded = transaction.finish_load(&mut load)?;
    transaction.commit()?;
    report.rows = rows;
    Ok(loaded)
}

/// A row whose key already exists is lost.
fn insert(
    from: Source<'_>,
    table: &Arc<Table>,
    to: &Arc<Table>,
    new: &Db,
    report: &mut TableReport,
) -> Result<()> {
    let mut transaction: Transaction = new.begin();
    let (mut rows, mut twice) = (0, 0);
    each_kept(from, table, report, &mut |key, row| {
        match transaction.insert(to, &NewRow { key, row, secondary: &[] }) {
            Err(Error::DuplicateKey { .. }) => {
                twice += 1;
                return Ok(());
            }
            inserted => inserted?,
        }
        rows += 1;
        if rows % ROWS_PER_COMMIT == 0 {
            transaction.commit()?;
            transaction = new.begin();
        }
        Ok(())
    })?;
    transaction.commit()?;
    report.rows = rows;
    report.rows_lost += twice;
    if twice > 0 && report.row_lost_why.is_empty() {
        report.row_lost_why = "its key occurs twice".into();
    }
    Ok(())
}
