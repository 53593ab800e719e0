//! Descriptions of tables and rows, given by the caller.

use crate::base::Result;
use crate::format::catalog::TableEncryption;
use crate::format::image::Compression;
use crate::format::row::RowFormatVersion;

/// A table to create.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// Its name, unique among tables.
    pub name: String,
    /// The format of its stored rows.
    pub row_format: RowFormatVersion,
    /// Its indexes; the first is the clustered one, whose `row_format` is ignored.
    pub indexes: Vec<IndexSpec>,
    /// How images of its pages are compressed.
    pub compression: Compression,
    /// Whether clustered keys come from
    /// [`Table::next_hidden_key`](crate::table::Table::next_hidden_key).
    pub hidden_key: bool,
    /// The first auto-increment value; 0 counts as 1.
    pub auto_increment: u64,
    /// The caller's own bytes, kept and returned as they are.
    pub extra: Vec<u8>,
    /// Its full-text indexes.
    pub fulltext: Vec<FulltextSpec>,
    /// Whether it is temporary: nothing of it is logged, and it does not exist after a restart.
    pub is_temporary: bool,
    /// Whether its pages are encrypted. Creating an encrypted table makes its encryption key a
    /// current key.
    pub encryption: TableEncryption,
}

impl TableSpec {
    /// Describes a table whose rows are bytes without columns, with only a clustered index of keys
    /// of at most [`KEY_BYTES_MAX`] bytes.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            row_format: RowFormatVersion::opaque(),
            indexes: vec![IndexSpec::new("primary").unique()],
            compression: Compression::default(),
            hidden_key: false,
            auto_increment: 1,
            extra: Vec::new(),
            fulltext: Vec::new(),
            is_temporary: false,
            encryption: TableEncryption::default(),
        }
    }

    /// Adds a secondary index; the first one is number 1.
    pub fn index(mut self, index: IndexSpec) -> Self {
        self.indexes.push(index);
        self
    }

    /// Sets the maximum length of clustered keys.
    pub fn max_key_bytes(mut self, bytes: u32) -> Self {
        self.indexes.iter_mut().take(1).for_each(|clustered| clustered.max_key_bytes = bytes);
        self
    }

    /// Sets a row format with columns, so that pages can be compressed column by column.
    pub fn row_format(mut self, format: RowFormatVersion) -> Self {
        self.row_format = format;
        self
    }

    /// Sets the compression of its pages.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Makes it temporary: it is not logged, and does not exist after a restart.
    pub fn temporary(mut self) -> Self {
        self.is_temporary = true;
        self
    }
}

/// A full-text index to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FulltextSpec {
    /// Its name; the engine gives it no meaning.
    pub name: String,
    /// The maximum length of a word, in bytes.
    pub max_word_bytes: u32,
    /// The caller's own bytes: how text is split into words.
    pub extra: Vec<u8>,
}

/// An index to create.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// Its name; the engine gives it no meaning.
    pub name: String,
    /// Whether keys are unique.
    pub unique: bool,
    /// Maximum key length in bytes, without the clustered key that follows a secondary key.
    pub max_key_bytes: u32,
    /// The format of the caller's payload of a secondary entry.
    pub row_format: RowFormatVersion,
}

/// Default maximum key length of an index, in bytes.
pub const KEY_BYTES_MAX: u32 = 255;

impl IndexSpec {
    /// Describes a non-unique index with keys of at most [`KEY_BYTES_MAX`] bytes.
    pub fn new(name: impl Into<String>) -> Self {
        let row_format = RowFormatVersion::opaque();
        Self { name: name.into(), unique: false, max_key_bytes: KEY_BYTES_MAX, row_format }
    }

    /// Makes it unique.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Sets the maximum key length.
    pub fn max_key_bytes(mut self, bytes: u32) -> Self {
        self.max_key_bytes = bytes;
        self
    }
}

/// A row to store.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// Its clustered key.
    pub key: &'a [u8],
    /// The stored row, see [`RowFormatVersion`]. An update keeps a value marked external unchanged.
    pub row: &'a [u8],
    /// Its secondary entries, ascending by index: all for an insert and for an update that changes
    /// the clustered key, otherwise only those that change.
    pub secondary: &'a [SecondaryEntry<'a>],
}

/// An entry of a secondary index.
#[derive(Clone, Copy, Debug)]
pub struct SecondaryEntry<'a> {
    /// Position of the index in its table, from 1.
    pub index_no: usize,
    /// The key. No encoded key of the index is a prefix of another one.
    pub key: &'a [u8],
    /// The caller's own bytes.
    pub payload: &'a [u8],
    /// Whether a unique index refuses a second row with this key; false if a key part is NULL.
    pub check_unique: bool,
}

impl<'a> SecondaryEntry<'a> {
    /// Describes an entry without a payload, whose key a unique index refuses to a second row.
    pub fn new(index_no: usize, key: &'a [u8]) -> Self {
        Self { index_no, key, payload: b"", check_unique: true }
    }
}

/// An old entry of a secondary index, to be removed.
#[derive(Clone, Copy, Debug)]
pub struct OldEntry<'a> {
    /// Position of the index in its table, from 1.
    pub index_no: usize,
    /// Its key.
    pub key: &'a [u8],
    /// The caller's own bytes, as given when the entry was inserted.
    pub payload: &'a [u8],
}

impl<'a> OldEntry<'a> {
    /// Describes an entry without a payload.
    pub fn new(index_no: usize, key: &'a [u8]) -> Self {
        Self { index_no, key, payload: b"" }
    }
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

/// Computes the secondary entries of a row, from its key and the row with its large values inline.
pub type ExpectedEntries<'a> = dyn FnMut(&[u8], &[u8], &mut Vec<ExpectedEntry>) -> Result<()> + 'a;
