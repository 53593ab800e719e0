//! What a caller says about tables and rows.

use crate::base::Result;
use crate::format::catalog::TableEncryption;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;

/// A table to create.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Its name, unique among tables.
    pub name: String,
    /// How its stored rows are built.
    pub row_format: RowFormatVersion,
    /// Its indexes; the first is the clustered one, whose `row_format` is ignored.
    pub indexes: Vec<IndexSpec>,
    /// How images of its pages are compressed.
    pub compression: Compression,
    /// Whether clustered keys are numbers from
    /// [`Table::next_hidden_key`](crate::table::Table::next_hidden_key).
    pub hidden_key: bool,
    /// The first auto-increment value; 0 counts as 1.
    pub auto_increment: u64,
    /// The caller's own bytes, kept and returned as they are.
    pub extra: Vec<u8>,
    /// Its full-text indexes.
    pub fulltext: Vec<FulltextSpec>,
    /// Whether it goes with this process: nothing of it is logged, and a startup finds nothing of
    /// it.
    pub is_temporary: bool,
    /// Whether its pages are encrypted. Its key comes into use with the table.
    pub encryption: TableEncryption,
}

/// A full-text index to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FulltextSpec {
    /// Its name; the engine gives it no meaning.
    pub name: String,
    /// Longest word in bytes.
    pub max_word_bytes: u32,
    /// The caller's own bytes: how texts become words.
    pub extra: Vec<u8>,
}

/// An index to create.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// Its name; the engine gives it no meaning.
    pub name: String,
    /// Whether two rows may not have the same key.
    pub unique: bool,
    /// Longest key in bytes, without the clustered key that is stored behind a secondary one.
    pub max_key_bytes: u32,
    /// How the caller's payload of a secondary entry is built.
    pub row_format: RowFormatVersion,
}

/// A row to store.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// Its clustered key.
    pub key: &'a [u8],
    /// The stored row, see [`crate::format::row`]. In an update, a value that is marked external is
    /// kept as it is.
    pub row: &'a [u8],
    /// Its secondary entries: for an insert and for an update that changes the key those of all
    /// secondary indexes, otherwise those that change; ascending by index.
    pub secondary: &'a [SecondaryEntry<'a>],
}

/// An entry of a secondary index.
#[derive(Clone, Copy, Debug)]
pub struct SecondaryEntry<'a> {
    /// Position of the index in its table, from 1.
    pub index_no: usize,
    /// The key. No key of the index is a prefix of another one's encoding.
    pub key: &'a [u8],
    /// The caller's own bytes.
    pub payload: &'a [u8],
    /// Whether another row with that key is refused, if the index is unique; false when a part is
    /// NULL.
    pub check_unique: bool,
}

/// An entry of a secondary index that goes.
#[derive(Clone, Copy, Debug)]
pub struct OldEntry<'a> {
    /// Position of the index in its table, from 1.
    pub index_no: usize,
    /// Its key.
    pub key: &'a [u8],
    /// The caller's own bytes, as they came with it.
    pub payload: &'a [u8],
}

/// An entry of a secondary index that a row should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedEntry {
    /// The index.
    pub index_no: usize,
    /// The caller's part of the key.
    pub key: Vec<u8>,
    /// The caller's payload.
    pub payload: Vec<u8>,
}

/// Computes the secondary entries of a row: from its key and the row with its large values in it.
pub type ExpectedEntries<'a> = dyn FnMut(&[u8], &[u8], &mut Vec<ExpectedEntry>) -> Result<()> + 'a;
