//! Rows of tables whose columns were added or dropped ([`crate::format::row_format_versions`]).
//! Trees, undo records and row operations keep them as stored. A row is converted to the newest
//! row-format version before it is returned to the caller.

use super::handle::Table;
use crate::base::{reach, sound, Error, Result};
use crate::format::catalog::TableDef;
use crate::format::page::max_payload_bytes;
use crate::format::row::{RowFormatVersion, LOCATOR_BYTES};
use crate::format::row_format_versions::{
    format_of, put_in_newest, FormatChange, OlderFormatVersion, FORMAT_MARK_BYTES, FORMAT_VERSIONS_MAX,
};
use crate::format::varint;
use crate::table::rows::stored_row::{find_values, Value};

/// Columns of a new definition.
#[derive(Clone, Debug)]
pub struct NewRows {
    /// The format of rows stored from now on.
    pub row_format: RowFormatVersion,
    /// The conversion of existing rows, done when they are read.
    pub change: FormatChange,
}

impl Table {
    /// The row-format versions that its rows may have besides the newest one.
    pub(crate) fn older_formats(&self) -> &[OlderFormatVersion] {
        &self.def().older_formats
    }

    pub(crate) fn has_older_formats(&self) -> bool {
        !self.older_formats().is_empty()
    }

    pub(crate) fn make_current(&self, row: &mut Vec<u8>) -> Result<()> {
        if !self.has_older_formats() {
            return Ok(());
        }
        let mut current = Vec::new();
        self.put_current(row, &mut current)?;
        *row = current;
        Ok(())
    }

    /// Uses `room` for the converted row if the stored row is older.
    pub(crate) fn current_row<'r>(&self, stored: &'r [u8], room: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        if !self.has_older_formats() {
            return Ok(stored);
        }
        room.clear();
        if !sound!(true, "row-format version: hand out rows of older ones") {
            return self.format_and_row(stored).map(|(_, row)| row);
        }
        let found = put_in_newest(self.older_formats(), self.row_format(), stored, room);
        match found.map_err(|defect| defect.in_place(self.place_of_rows()))? {
            Some(at) => Ok(stored.get(at).unwrap_or_default()),
            None => {
                reach::mark("row of an older row-format version");
                Ok(room)
            }
        }
    }

    pub(crate) fn put_current(&self, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (older, row) = self.format_and_row(stored)?;
        self.put_in_format(older, row, out)
    }

    /// Appends a row of the version `older`, or `None` for the newest, converted to the newest.
    pub(crate) fn put_in_format(
        &self,
        older: Option<&OlderFormatVersion>,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(older) = older.filter(|_| sound!(true, "row-format version: hand out rows of older ones"))
        else {
            out.extend_from_slice(row);
            return Ok(());
        };
        reach::mark("row of an older row-format version");
        let changed = older.change.apply(&older.row_format, self.row_format(), row, out);
        changed.map_err(|defect| defect.in_place(self.place_of_rows()))
    }

    /// The row-format version of a stored row, `None` for the newest, and the row without its mark.
    pub(crate) fn format_and_row<'r>(
        &self,
        stored: &'r [u8],
    ) -> Result<(Option<&OlderFormatVersion>, &'r [u8])> {
        let found = format_of(self.older_formats(), self.row_format(), stored);
        let (number, at) = found.map_err(|defect| defect.in_place(self.place_of_rows()))?;
        let older = number.and_then(|number| self.older_formats().get(number));
        Ok((older, stored.get(at).unwrap_or_default()))
    }

    /// Finds the values of variable length of a stored row, in the order of the newest version's
    /// columns; then the external values of dropped columns.
    pub(crate) fn find_stored_values(&self, stored: &[u8], values: &mut Vec<Value>) -> Result<()> {
        if !self.has_older_formats() {
            return find_values(self.row_format(), stored, values);
        }
        let (older, row) = self.format_and_row(stored)?;
        find_values(older.map_or(self.row_format(), |older| &older.row_format), row, values)?;
        let skipped = usize::from(row.len() < stored.len());
        for value in values.iter_mut() {
            value.at = value.at.start + skipped..value.at.end + skipped;
        }
        let Some(older) = older else { return Ok(()) };
        let mut left: Vec<Option<Value>> = values.drain(..).map(Some).collect();
        for was in &older.change.vars {
            let kept = was.and_then(|was| left.get_mut(usize::from(was))?.take());
            values.push(kept.unwrap_or(Value { at: 0..0, external: false, moves: false }));
        }
        let gone = left.into_iter().flatten().filter(|value| value.external);
        values.extend(
            gone.filter(|_| {
                sound!(true, "row-format version: forget large values of columns that have gone")
            }),
        );
        Ok(())
    }

    /// Checks that the columns of the table can change without rewriting its rows. Returns `Limit`
    /// for too many row-format versions, or if rows in the new one might not fit.
    pub fn check_new_rows(&self, rows: &NewRows) -> Result<()> {
        self.definition_with(rows).map(drop)
    }

    /// Makes the current columns an older row-format version. Changing the definition
    /// ([`super::ddl`]) removes that version if the table was never written.
    pub(crate) fn definition_with(&self, rows: &NewRows) -> Result<TableDef> {
        let defect = |defect: crate::format::Defect| defect.in_place(self.place_of_rows());
        let row_format = &rows.row_format;
        let now = self.row_format();
        rows.change.check(now, row_format).map_err(defect)?;
        let change = rows.change.clone().joined();
        let mut def = self.definition();
        for older in &mut def.older_formats {
            older.change = older.change.then(&change, now, row_format).map_err(defect)?;
        }
        def.older_formats.push(OlderFormatVersion { row_format: now.clone(), change });
        if let Some(clustered) = def.indexes.first_mut() {
            clustered.row_format = row_format.clone();
        }
        check("row-format versions of a table", def.older_formats.len() + 1, FORMAT_VERSIONS_MAX)?;
        let head = FORMAT_MARK_BYTES + usize::from(row_format.null_bytes) + row_format.fixed_bytes();
        let smallest = head + usize::from(row_format.var_count) * VALUE_BYTES;
        let tree = self.clustered();
        let inline_bytes_max = max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max);
        check("row length without its large values (bytes)", smallest, inline_bytes_max)?;
        let mut bytes = Vec::new();
        def.older_formats.iter().for_each(|older| older.encode(&mut bytes));
        check(
            "row-format versions in a table definition (bytes)",
            bytes.len(),
            self.clustered().page_bytes(),
        )?;
        Ok(def)
    }

    fn place_of_rows(&self) -> String {
        format!("rows of table '{}' (CHECK TABLE finds which)", self.name())
    }
}

const VALUE_BYTES: usize = LOCATOR_BYTES + 1;
const _: () =
    assert!(varint::len((LOCATOR_BYTES as u64) << 1 | 1) == 1, "the length of a locator takes a byte");

fn check(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    match actual <= limit {
        true => Ok(()),
        false => Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 }),
    }
}
