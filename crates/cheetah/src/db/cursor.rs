//! A place in an index of a table.

use crate::base::{Error, Result};
use crate::format::varint;
use crate::table::Table;
use crate::tree::{self, SeekMode};
use std::sync::Arc;

/// A place in an index. It sees the changes of its own transaction; a row that goes under it is skipped.
#[derive(Debug)]
pub struct Cursor {
    table: Arc<Table>,
    index_no: usize,
    inner: tree::Cursor,
}

impl Cursor {
    pub(super) fn new(table: &Arc<Table>, index_no: usize) -> Result<Self> {
        let _usage = table.use_it()?;
        let inner = table.tree(index_no)?.cursor();
        Ok(Self { table: Arc::clone(table), index_no, inner })
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The index.
    pub fn index_no(&self) -> usize {
        self.index_no
    }

    /// Goes to an entry; `false` if there is none such. May do I/O, as may `next` and `prev`.
    pub fn seek(&mut self, mode: SeekMode, key: &[u8]) -> Result<bool> {
        let _usage = self.table.use_it()?;
        self.inner.seek(mode, key)
    }

    /// Goes to the next entry; `false` at the end.
    #[expect(clippy::should_implement_trait, reason = "it fails and lends, which an iterator cannot")]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// Goes to the previous entry; `false` at the start.
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Whether it is on an entry.
    pub fn valid(&self) -> bool {
        self.inner.valid()
    }

    /// The whole stored key; empty when there is no entry.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The caller's part of the key: of a secondary index without the clustered key behind it.
    pub fn secondary_key(&self) -> &[u8] {
        let (secondary, _) = self.parts();
        secondary
    }

    /// The clustered key of the row.
    pub fn clustered_key(&self) -> &[u8] {
        let (_, clustered) = self.parts();
        clustered
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        let key = self.inner.key();
        if self.index_no == 0 {
            return (key, key);
        }
        let stored = self.stored();
        let clustered_len = varint::get(stored).map_or(0, |(len, _)| len as usize);
        key.split_at(key.len().saturating_sub(clustered_len))
    }

    fn stored(&self) -> &[u8] {
        self.inner.record().map_or(&[], |record| record.payload)
    }

    /// The stored row, large values as locators. Of the clustered index only.
    pub fn row(&self) -> &[u8] {
        if self.index_no == 0 {
            self.stored()
        } else {
            &[]
        }
    }

    /// The caller's payload. Of a secondary index only.
    pub fn payload(&self) -> &[u8] {
        if self.index_no == 0 {
            return &[];
        }
        let stored = self.stored();
        let head = varint::get(stored).map_or(0, |(_, used)| used);
        stored.get(head..).unwrap_or_default()
    }

    /// Reads the stored row of the entry into `row`, whatever the index. May do I/O.
    pub fn get_row(&self, row: &mut Vec<u8>) -> Result<()> {
        row.clear();
        if self.index_no == 0 {
            row.extend_from_slice(self.stored());
            return Ok(());
        }
        let copy = |record: crate::format::page::RecordRef<'_>| row.extend_from_slice(record.payload);
        let found = self.table.clustered().get(self.clustered_key(), copy)?;
        found.ok_or_else(|| {
            let place = format!("index {} of table '{}'", self.index_no, self.table.name());
            Error::corrupt(place, "an entry leads to no row; run CHECK TABLE")
        })
    }
}
