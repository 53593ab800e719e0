//! Copies tables of a damaged database into a new one.
//!
//! Invariants
//!   I1  Posting tables come before the tables whose full-text indexes name them: a startup drops
//!       those that no definition names.
//!   I2  Rows are loaded, which builds full pages without a log. A key that comes twice can only be
//!       damage that no checksum tells; then rows are inserted one by one, and the first counts.

use super::rows::each_row;
use super::TableReport;
use crate::base::{Error, PageId, Result};
use crate::db::{Db, Transaction};
use crate::format::catalog::TableDef;
use crate::table::shared::parts::Core;
use crate::table::{NewRow, Table};
use std::collections::HashMap;
use std::sync::Arc;

/// Rows inserted in one transaction.
const ROWS_PER_COMMIT: u64 = 1000;
/// How names of tables of the engine's own begin.
const OWN_PREFIX: char = '#';

/// Copies all tables of users, and postings.
pub(super) fn copy_all(
    core: &Core,
    new: &Db,
    heard: &mut dyn FnMut(&TableReport),
) -> Result<Vec<TableReport>> {
    let mut reports = Vec::new();
    for name in core.catalog.names() {
        // Shadow tables are of transactions that have not committed; statistics are taken again.
        let is_own = name.starts_with(OWN_PREFIX);
        let Ok(table) = core.catalog.by_name(&name) else { continue };
        if !is_own {
            let report = copy_with_postings(core, &table, new).or_else(|error| give_up(&name, error, new))?;
            heard(&report);
            reports.push(report);
        }
    }
    Ok(reports)
}

/// Leaves a table out that the new database refuses; other errors are those of all tables.
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

fn copy_with_postings(core: &Core, table: &Arc<Table>, new: &Db) -> Result<TableReport> {
    let mut def = definition(table);
    let mut names = HashMap::new();
    let mut lacks_postings = false;
    for index in &def.fulltext {
        let Ok(postings) = core.catalog.by_name(&index.postings) else {
            let detail = format!("the postings of full-text index '{}' are not in the catalog", index.name);
            return Ok(TableReport { name: table.name(), failure: Some(detail), ..TableReport::default() });
        };
        let (report, copy) = copy(core, &postings, definition(&postings), new)?;
        lacks_postings |= !report.is_whole();
        names.insert(index.postings.clone(), copy.name());
    }
    for index in &mut def.fulltext {
        if let Some(name) = names.get(&index.postings) {
            index.postings.clone_from(name);
        }
    }
    let (mut report, _) = copy(core, table, def, new)?;
    report.lacks_postings = lacks_postings;
    Ok(report)
}

/// The definition that the copy of a table gets.
fn definition(table: &Arc<Table>) -> TableDef {
    let mut def = table.definition();
    def.auto_increment = table.auto_increment();
    // Rows are copied in the newest row-format version.
    def.older_formats.clear();
    for (number, index) in (0u32..).zip(&mut def.indexes) {
        (index.number, index.root, index.disabled) = (number, PageId::NONE, number > 0);
    }
    def.next_number = def.indexes.len() as u32;
    def
}

/// Copies one table; the answer has the new one as it is afterwards.
fn copy(core: &Core, table: &Arc<Table>, def: TableDef, new: &Db) -> Result<(TableReport, Arc<Table>)> {
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
    let loaded = load(core, table, &to, new, &mut report);
    let to = match loaded {
        Err(Error::DuplicateKey { .. }) => {
            report = fresh;
            new.drop_table(&to.name())?;
            let to = new.create_defined(def)?;
            to.note_hidden_key(&table.next_hidden_key());
            insert(core, table, &to, new, &mut report)?;
            to
        }
        loaded => loaded?,
    };
    Ok((report, to))
}

fn load(
    core: &Core,
    table: &Arc<Table>,
    to: &Arc<Table>,
    new: &Db,
    report: &mut TableReport,
) -> Result<Arc<Table>> {
    let mut transaction = new.begin();
    let Some(mut load) = transaction.begin_load(to)? else {
        insert(core, table, to, new, report)?;
        return Ok(Arc::clone(to));
    };
    let mut rows = 0;
    each_row(core, table, report, &mut |key, row| {
        rows += 1;
        transaction.load(&mut load, &NewRow { key, row, secondary: &[] })
    })?;
    let loaded = transaction.finish_load(&mut load)?;
    transaction.commit()?;
    report.rows = rows;
    Ok(loaded)
}

/// Inserts rows one by one; one whose key is there already is lost.
fn insert(
    core: &Core,
    table: &Arc<Table>,
    to: &Arc<Table>,
    new: &Db,
    report: &mut TableReport,
) -> Result<()> {
    let mut transaction: Transaction = new.begin();
    let (mut rows, mut twice) = (0, 0);
    each_row(core, table, report, &mut |key, row| {
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
        report.row_lost_why = "its key comes twice".into();
    }
    Ok(())
}
