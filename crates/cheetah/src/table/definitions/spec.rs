//! Descriptions of tables and rows that a caller gives.

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

impl TableSpec {
    /// A table whose rows are bytes without columns, with a clustered index of keys of at most
    /// [`KEY_BYTES_MAX`] bytes and no other one.
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

    /// With a secondary index more; the first one is number 1.
    pub fn index(mut self, index: IndexSpec) -> Self {
        self.indexes.push(index);
        self
    }

    /// With clustered keys of at most `bytes` bytes.
    pub fn max_key_bytes(mut self, bytes: u32) -> Self {
        self.indexes.iter_mut().take(1).for_each(|clustered| clustered.max_key_bytes = bytes);
        self
    }

    /// With rows that have columns, so that pages can be compressed column by column.
    pub fn row_format(mut self, format: RowFormatVersion) -> Self {
        self.row_format = format;
        self
    }

    /// With pages that are compressed in another way.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Gone with this process: nothing of it is logged.
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

/// Length of the longest key of an index, in bytes, unless its definition says otherwise.
pub const KEY_BYTES_MAX: u32 = 255;

impl IndexSpec {
    /// An index in which rows may have the same key, of at most [`KEY_BYTES_MAX`] bytes.
    pub fn new(name: impl Into<String>) -> Self {
        let row_format = RowFormatVersion::opaque();
        Self { name: name.into(), unique: false, max_key_bytes: KEY_BYTES_MAX, row_format }
    }

    /// With a key for each row that no other row has.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// With keys of at most `bytes` bytes.
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
    /// The stored row, see [`RowFormatVersion`]. In an update, a value that is marked external is
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

impl<'a> SecondaryEntry<'a> {
    /// An entry without a payload. If the index is unique, a row is refused whose key another one
    /// has.
    pub fn new(index_no: usize, key: &'a [u8]) -> Self {
        Self { index_no, key, payload: b"", check_unique: true }
    }
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

impl<'a> OldEntry<'a> {
    /// An entry without a payload.
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

/// Computes the secondary entries of a row: from its key and the row with its large values in it.
pub type ExpectedEntries<'a> = dyn FnMut(&[u8], &[u8], &mut Vec<ExpectedEntry>) -> Result<()> + 'a;
