//! The values that cross the ABI, with C's layouts.

use cheetah::server::ServerSettings;
use cheetah::{LockMode, RowFormatVersion};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahBytes {
    /// Their start; may be null when there are none.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
}

impl CheetahBytes {
    /// No bytes.
    pub const EMPTY: CheetahBytes = CheetahBytes { data: std::ptr::null(), len: 0 };

    /// Lends out `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes, for as long as their owner keeps them.
    pub unsafe fn get<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: by the contract of the crate the range is readable.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// The bytes as text; what is not UTF-8 is replaced.
    pub unsafe fn text(self) -> String {
        // SAFETY: passed on.
        String::from_utf8_lossy(unsafe { self.get() }).into_owned()
    }
}

/// `count` values starting at `data`; a null pointer stands for none.
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: by the contract of the crate the values are initialised.
    unsafe { std::slice::from_raw_parts(data, count) }
}

/// What a database is opened with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahConfig {
    /// Its directory.
    pub directory: CheetahBytes,
    /// Memory for pages, write buffers and the log buffer.
    pub buffer_pool_bytes: u64,
    /// Size of one log file.
    pub log_file_bytes: u64,
    /// Size of the log.
    pub log_bytes_max: u64,
    /// I/O operations a second for background work.
    pub io_capacity: u32,
    /// 0, 1 or 2.
    pub flush_log_at_commit: u8,
    /// Whether changes may wait in memory for a leaf that is not there.
    pub buffers_changes: u8,
    /// Whether data files are read through the page cache of the system.
    pub buffers_data_files: u8,
    /// Whether tables are encrypted that do not say whether they are.
    pub encrypts_tables: u8,
    /// Whether the log is encrypted.
    pub encrypts_log: u8,
    /// Where keys come from.
    pub newest_key_version: crate::CheetahNewestKeyVersion,
    /// As above.
    pub key_bytes: crate::CheetahKeyBytes,
}

/// Variables of the server that depend on each other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSettings {
    /// Bytes that one file of the log has at most.
    pub log_file_bytes: u64,
    /// Bytes that the log has at most.
    pub log_bytes_max: u64,
    /// Characters of the shortest word of full-text indexes.
    pub word_chars_min: u32,
    /// Characters of the longest one.
    pub word_chars_max: u32,
}

impl CheetahSettings {
    pub(crate) fn get(self) -> ServerSettings {
        let Self { log_file_bytes, log_bytes_max, word_chars_min, word_chars_max } = self;
        ServerSettings { log_file_bytes, log_bytes_max, word_chars_min, word_chars_max }
    }

    pub(crate) fn of(settings: ServerSettings) -> Self {
        let ServerSettings { log_file_bytes, log_bytes_max, word_chars_min, word_chars_max } = settings;
        Self { log_file_bytes, log_bytes_max, word_chars_min, word_chars_max }
    }
}

/// How a stored row is built.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahRowFormatVersion {
    /// Bytes of the NULL bitmap.
    pub null_bytes: u16,
    /// Number of values of variable length.
    pub var_count: u16,
    /// Widths of the fixed columns.
    pub fixed: *const u16,
    /// Their number.
    pub fixed_count: usize,
}

impl CheetahRowFormatVersion {
    pub(crate) unsafe fn get(&self) -> RowFormatVersion {
        // SAFETY: passed on.
        let fixed = unsafe { slice(self.fixed, self.fixed_count) }.to_vec();
        RowFormatVersion { null_bytes: self.null_bytes, fixed, var_count: self.var_count }
    }
}

/// An index to create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahIndexSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// Bytes of its longest key.
    pub max_key_bytes: u32,
    /// Whether keys are unique.
    pub unique: u8,
}

/// A table to create.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahTableSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// Its stored rows.
    pub row_format: CheetahRowFormatVersion,
    /// Its indexes, the clustered one first.
    pub indexes: *const CheetahIndexSpec,
    /// Their number.
    pub index_count: usize,
    /// Its full-text indexes.
    pub fulltext: *const crate::CheetahFulltextSpec,
    /// Their number.
    pub fulltext_count: usize,
    /// The caller's own bytes.
    pub extra: CheetahBytes,
    /// The first auto-increment value.
    pub auto_increment: u64,
    /// Level of the codec; 0: its default.
    pub compression_level: i32,
    /// 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether the engine numbers the rows.
    pub hidden_key: u8,
    /// Whether it goes with the process.
    pub is_temporary: u8,
    /// Whether it is encrypted, and how.
    pub encryption: crate::CheetahEncryption,
}

/// What a definition says about the format of its table; 0 stands for a word that is not there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahFormatWords {
    /// KEY_BLOCK_SIZE of the table.
    pub key_block_size: u64,
    /// That of each index.
    pub index_key_block_sizes: *const u32,
    /// Their number.
    pub index_count: usize,
    /// COMPRESSION_LEVEL.
    pub compression_level: u32,
    /// PAGE_COMPRESSION_LEVEL.
    pub page_compression_level: u32,
    /// Level of what the session has chosen for tables that do not say.
    pub default_level: i32,
    /// Its codec.
    pub default_compression: u8,
    /// The codec that COMPRESSION names, if `names_compression`.
    pub compression: u8,
    /// Whether there is a word COMPRESSION.
    pub names_compression: u8,
    /// Whether PAGE_COMPRESSED is set.
    pub page_compressed: u8,
    /// ROW_FORMAT: a `CheetahRowFormat`.
    pub row_format: u8,
}

/// What the words of a definition come to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahFormat {
    /// Level of the codec; 0: its default.
    pub compression_level: i32,
    /// 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether the words are refused.
    pub refused: u8,
}

/// An entry of a secondary index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahEntry {
    /// Position of the index in its table, from 1.
    pub index_no: u32,
    /// Whether another row with this key is refused.
    pub check_unique: u8,
    /// The caller's key.
    pub key: CheetahBytes,
    /// The caller's bytes.
    pub payload: CheetahBytes,
}

/// A row to store.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahRow {
    /// Its clustered key.
    pub key: CheetahBytes,
    /// The stored row.
    pub row: CheetahBytes,
    /// Its entries in secondary indexes.
    pub secondary: *const CheetahEntry,
    /// Their number.
    pub secondary_count: usize,
    /// Whether the caller will change the row that has a unique key already.
    pub changes_duplicate: u8,
}

impl CheetahRow {
    /// How the row is to be locked that has a unique key already.
    pub(crate) fn duplicate_lock(&self) -> LockMode {
        match self.changes_duplicate {
            0 => LockMode::Shared,
            _ => LockMode::Exclusive,
        }
    }
}

/// Where a cursor that locks goes no further.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSeekEnd {
    /// A `CheetahEnd`.
    pub kind: u8,
    /// The key that the kind speaks of.
    pub key: CheetahBytes,
}

/// The entry that a cursor is on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahFound {
    /// Clustered index: the row's key; secondary index: the caller's part of the key.
    pub key: CheetahBytes,
    /// The row's key.
    pub clustered: CheetahBytes,
    /// Clustered index: the stored row; secondary index: the payload.
    pub value: CheetahBytes,
}

/// A point in a transaction; its words mean nothing outside.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSavepoint {
    /// Room for the engine's value.
    pub words: [MaybeUninit<u64>; 4],
}

/// Auto-increment values: what is wanted, and what was reserved.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahNumbers {
    /// Distance of two values.
    pub increment: u64,
    /// The value that the first one is, or is a multiple of the increment away from.
    pub offset: u64,
    /// The largest that the column can hold.
    pub largest: u64,
    /// How many.
    pub count: u64,
    /// The first one.
    pub first: u64,
    /// The counter behind them.
    pub next: u64,
}

/// Sizes of an index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahIndexStats {
    /// Pages of all levels.
    pub pages: u64,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Bytes on disk.
    pub stored_bytes: u64,
    /// Bytes before compression.
    pub logical_bytes: u64,
    /// Its share of what in the files will be given back.
    pub free_bytes: u64,
    /// Levels.
    pub depth: u32,
}

/// Whether the caller wants a wait to end.
pub type CheetahInterrupted = unsafe extern "C" fn(context: *mut c_void) -> u8;
/// Is told that the transaction of one session waits for that of another one.
pub type CheetahWaitReport = unsafe extern "C" fn(waiter: *mut c_void, blocker: *mut c_void);
/// Of two sessions the one whose transaction must commit after the other one's; null if there is no
/// such order.
pub type CheetahLaterSession = unsafe extern "C" fn(first: *mut c_void, second: *mut c_void) -> *mut c_void;
/// Is told how much is done, of how much.
pub type CheetahProgress = unsafe extern "C" fn(context: *mut c_void, done: u64, total: u64);
/// Takes one text.
pub type CheetahTextSink = unsafe extern "C" fn(context: *mut c_void, text: CheetahBytes);
/// Takes one counter.
pub type CheetahCounterSink = unsafe extern "C" fn(context: *mut c_void, name: CheetahBytes, value: u64);
/// Computes the entries that a stored row should have and gives them to the sink.
pub type CheetahExpectedEntries = unsafe extern "C" fn(
    context: *mut c_void,
    key: CheetahBytes,
    row: CheetahBytes,
    sink: *mut crate::CheetahEntrySink,
) -> i32;
