//! The rows of a table of a damaged database.

use super::TableReport;
use crate::base::{sound, Error, ErrorKind, Result};
use crate::format::page::RecordRef;
use crate::table::history::visible::{Found, View};
use crate::table::rows::large;
use crate::table::rows::stored_row::{find_values, inline_row, Value};
use crate::table::shared::parts::Core;
use crate::table::Table;

/// Reads rows as a new snapshot sees them, in the newest row-format version, large values inlined.
struct RowReader<'a> {
    view: View<'a>,
    older: Vec<u8>,
    values: Vec<Value>,
    whole: Vec<u8>,
    row: Vec<u8>,
}

/// Takes a row: its clustered key, and the row with its large values inlined.
pub(super) type TakeRow<'t> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 't;

/// Passes every readable row to `take`, and records in `report` what cannot be read. Fails only
/// if `take` fails or the engine has stopped.
pub(super) fn each_row(
    core: &Core,
    table: &Table,
    report: &mut TableReport,
    take: &mut TakeRow<'_>,
) -> Result<()> {
    let reader = core.transactions.versions.reader();
    reader.open();
    let view = View { core, table, reader: &reader, own: None };
    let (older, values, whole, row) = Default::default();
    let mut rows = RowReader { view, older, values, whole, row };
    let mut key = Vec::new();
    let gaps = table.clustered().readable_leaves(&mut |leaf| {
        for slot in 0..leaf.count() {
            leaf.key_into(slot, &mut key);
            let read = match core.losses.as_ref().is_some_and(|losses| losses.is_doubtful(table.id(), &key)) {
                true => Err(Error::corrupt("rollback", "it may never have been committed")),
                false => rows.read(&key, leaf.record(slot)),
            };
            match read {
                Ok(true) => take(&key, &rows.row)?,
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
                Err(error) => {
                    report.rows_lost += 1;
                    if report.row_lost_why.is_empty() {
                        report.row_lost_why = error.to_string();
                    }
                }
            }
        }
        Ok(())
    })?;
    report.gaps.extend(gaps);
    Ok(())
}

impl RowReader<'_> {
    /// Sets `self.row` to the row with the key `key` and returns whether the snapshot sees it.
    /// `record` is the newest version.
    fn read(&mut self, key: &[u8], record: RecordRef<'_>) -> Result<bool> {
        let table = self.view.table;
        self.older.clear();
        let stored = match record.version {
            None if record.is_marked() => return Ok(false),
            None => record.payload,
            Some(_) if !sound!(true, "salvage: copy what was not committed") => record.payload,
            Some(_) => match self.view.row_version(key, record, &mut self.older)? {
                Found::AsIs => record.payload,
                Found::Older => &self.older,
                Found::Absent => return Ok(false),
            },
        };
        let (older, stored) = table.format_and_row(stored)?;
        let row_format = older.map_or(table.row_format(), |older| &older.row_format);
        find_values(row_format, stored, &mut self.values)?;
        self.whole.clear();
        let pool = &self.view.core.pool;
        inline_row(row_format, stored, &self.values, &mut self.whole, |locator, value| {
            match large::read_value(pool, table.blob_owner(), locator, value) {
                Err(error) if error.kind() != ErrorKind::Stopped => {
                    // An incomplete value must not be copied as if it were complete.
                    match sound!(true, "salvage: copy a value that is not whole") {
                        true => Err(error),
                        false => Ok(()),
                    }
                }
                read => read,
            }
        })?;
        self.row.clear();
        table.put_in_format(older, &self.whole, &mut self.row)?;
        Ok(true)
    }
}
