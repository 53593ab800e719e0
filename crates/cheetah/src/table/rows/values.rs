//! The large values of a row operation: which ones move out of the new stored row, stay in use, or
//! are freed with the old row.

use super::large;
use super::request::Target;
use super::stored_row::{choose_moves, find_values, rebuild};
use super::writer::Writer;
use crate::base::{sound, Error, Result};
use crate::format::log_record::{LargeSource, RowOp};
use crate::format::page::max_payload_bytes;
use crate::format::row::LOCATOR_BYTES;
use crate::format::row_format_versions::{put_marked, FORMAT_MARK_BYTES};
use crate::table::definitions::handle::Table;
use crate::tree::Tree;

impl Writer {
    pub(in crate::table) fn build_row(&mut self, on: Target<'_>, row: &[u8]) -> Result<()> {
        let table = on.table;
        let row_format = table.row_format();
        find_values(row_format, row, &mut self.values)?;
        choose_moves(row_format, row, &mut self.values, row_bytes_max(table))?;
        for no in 0..self.values.len() {
            let Some(value) = self.values.get(no).filter(|value| value.moves) else { continue };
            let bytes = row.get(value.at.clone()).unwrap_or_default();
            large::write_value(on, &mut self.unclaimed, bytes, &mut self.buffers)?;
        }
        self.large.clear();
        let external = self.values.iter().filter(|value| value.external || value.moves);
        self.large.extend(external.map(|value| match value.moves {
            true => LargeSource::Written,
            false => LargeSource::Kept,
        }));
        self.rebuild_row(table, row)
    }

    /// The large values of a logged row are already written or kept.
    pub(in crate::table) fn build_logged_row(
        &mut self,
        table: &Table,
        row: &[u8],
        large: &[LargeSource],
    ) -> Result<()> {
        find_values(table.row_format(), row, &mut self.values)?;
        self.large.clear();
        self.large.extend_from_slice(large);
        self.rebuild_row(table, row)
    }

    /// Takes the bytes from the caller or the log, and the locators from this operation.
    fn rebuild_row(&mut self, table: &Table, row: &[u8]) -> Result<()> {
        let Writer { change, values, old_values, large, unclaimed, .. } = self;
        let mut sources = large.iter();
        let mut written = unclaimed.finished.iter();
        let missing = |detail| Error::corrupt("large values of a row", detail);
        change.put_row(|out, old_row| {
            let rebuilt = |out: &mut Vec<u8>| {
                rebuild(table.row_format(), row, values, out, |no, _| match sources.next() {
                    Some(LargeSource::Written) => {
                        let locator =
                            written.next().ok_or_else(|| missing("a value that was not written"))?;
                        Ok(locator.as_slice())
                    }
                    Some(LargeSource::Kept) => {
                        let kept = old_values.get(no).filter(|value| value.external);
                        let kept = kept.and_then(|value| old_row.get(value.at.clone()));
                        kept.ok_or_else(|| missing("a value to keep that the old row does not have"))
                    }
                    None => Err(missing("more references than sources")),
                })
            };
            match sound!(true, "row-format version: store rows without its number") {
                true => put_marked(table.older_formats(), out, rebuilt),
                false => put_marked(&[], out, rebuilt),
            }
        })
    }

    pub(in crate::table) fn collect_freed(&mut self, table: &Table) -> Result<()> {
        self.freed.clear();
        let Writer { change, values, old_values, large, freed, .. } = self;
        let old_row = change.held(&change.old);
        if change.op == RowOp::Delete {
            values.clear();
            large.clear();
        }
        let mut sources = large.iter();
        for (no, value) in old_values.iter().enumerate() {
            let is_large = values.get(no).is_some_and(|new| new.external || new.moves);
            let keeps = is_large && sources.next() == Some(&LargeSource::Kept);
            let keeps = sound!(keeps, "rows: leave a kept large value behind");
            if value.external && !keeps {
                freed.extend_from_slice(old_row.get(value.at.clone()).unwrap_or_default());
            }
        }
        debug_assert_eq!(freed.len() % LOCATOR_BYTES, 0, "locators of table {}", table.id());
        Ok(())
    }

    /// Whether no large value was written, and none is left for purge after a commit.
    pub(in crate::table) fn leaves_nothing(&self) -> bool {
        self.freed.is_empty() && !self.large.contains(&LargeSource::Written)
    }
}

/// Longer rows move values out.
pub(in crate::table) fn row_bytes_max(table: &Table) -> usize {
    let tree = table.clustered();
    let mark = if table.has_older_formats() { FORMAT_MARK_BYTES } else { 0 };
    max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max) - mark
}

/// Like `row_bytes_max`, for a table not created yet, with pages of `page_bytes` and clustered keys
/// of at most `key_bytes_max`. A shorter row never has a value out of line, even after columns were
/// added and dropped.
pub fn inline_row_bytes(page_bytes: u32, key_bytes_max: usize) -> usize {
    let class = Tree::class_for(page_bytes, key_bytes_max);
    class.map_or(0, |class| max_payload_bytes(class.bytes(page_bytes), key_bytes_max) - FORMAT_MARK_BYTES)
}
