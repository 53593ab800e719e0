//! The types of the ABI, with C layout.

use cheetah::server::ServerSettings;
use cheetah::{LockMode, RowFormatVersion};
use std::mem::MaybeUninit;

pub(crate) use std::ffi::c_void;

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahBytes {
    /// The first byte; may be null if `len` is 0.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
}

impl CheetahBytes {
    /// No bytes.
    pub const EMPTY: CheetahBytes = CheetahBytes { data: std::ptr::null(), len: 0 };

    /// Returns a value that points to `bytes`.
    pub fn of(bytes: &(impl AsRef<[u8]> + ?Sized)) -> Self {
        let bytes = bytes.as_ref();
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// Returns the bytes, which are valid as long as their owner keeps them.
    pub unsafe fn get<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: by the contract of the crate the range is readable.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Returns the bytes as a string. Invalid UTF-8 is replaced.
    pub unsafe fn text(self) -> String {
        // SAFETY: passed on.
        String::from_utf8_lossy(unsafe { self.get() }).into_owned()
    }
}

/// Returns `count` values starting at `data`, which may be null if `count` is 0.
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: by the contract of the crate the values are initialised.
    unsafe { std::slice::from_raw_parts(data, count) }
}

/// The configuration with which a database is opened.
#[repr(C)]
pub struct CheetahConfig {
    /// Its directory.
    pub directory: CheetahBytes,
    /// Memory for pages, write buffers and the log buffer.
    pub buffer_pool_bytes: u64,
    /// Size of one log file.
    pub log_file_bytes: u64,
    /// Size of the log.
    pub log_bytes_max: u64,
    /// I/O operations per second for background work.
    pub io_capacity: u32,
    /// 0, 1 or 2: see `cheetah_set_flush_log_at_commit`.
    pub flush_log_at_commit: u8,
    /// Whether changes may be buffered while their leaf is not in memory.
    pub buffers_changes: u8,
    /// Whether data files are read through the operating system's page cache.
    pub buffers_data_files: u8,
    /// Whether tables without ENCRYPTED in their definition are encrypted.
    pub encrypts_tables: u8,
    /// Whether the log is encrypted.
    pub encrypts_log: u8,
    /// Returns versions of encryption keys.
    pub newest_key_version: crate::CheetahNewestKeyVersion,
    /// Returns encryption keys.
    pub key_bytes: crate::CheetahKeyBytes,
}

/// Variables of the server that depend on each other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahSettings {
    /// Maximum size of one log file.
    pub log_file_bytes: u64,
    /// Maximum size of the log.
    pub log_bytes_max: u64,
    /// Minimum characters of a word in full-text indexes.
    pub word_chars_min: u32,
    /// Maximum characters of a word in full-text indexes.
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

/// The layout of stored rows.
#[repr(C)]
pub struct CheetahRowFormatVersion {
    /// Bytes of the NULL bitmap.
    pub null_bytes: u16,
    /// Number of values of variable length.
    pub var_count: u16,
    /// Widths of the fixed columns.
    pub fixed: *const u16,
    /// The number of fixed columns.
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
pub struct CheetahIndexSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// The maximum size of its keys.
    pub max_key_bytes: u32,
    /// Whether keys are unique.
    pub unique: u8,
}

/// A table to create.
#[repr(C)]
pub struct CheetahTableSpec {
    /// Its name.
    pub name: CheetahBytes,
    /// The layout of its stored rows.
    pub row_format: CheetahRowFormatVersion,
    /// Its indexes, the clustered index first.
    pub indexes: *const CheetahIndexSpec,
    /// The number of indexes.
    pub index_count: usize,
    /// Its full-text indexes.
    pub fulltext: *const crate::CheetahFulltextSpec,
    /// The number of full-text indexes.
    pub fulltext_count: usize,
    /// The caller's own bytes.
    pub extra: CheetahBytes,
    /// The first auto-increment value.
    pub auto_increment: u64,
    /// Level of the codec; 0: its default.
    pub compression_level: i32,
    /// The codec: 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether the engine assigns a hidden key to each row.
    pub hidden_key: u8,
    /// Whether it is dropped when the process ends.
    pub is_temporary: u8,
    /// Its encryption.
    pub encryption: crate::CheetahEncryption,
}

/// The options of a definition about the format of its table. 0 means that the option is missing.
#[repr(C)]
pub struct CheetahFormatWords {
    /// KEY_BLOCK_SIZE of the table.
    pub key_block_size: u64,
    /// KEY_BLOCK_SIZE of each index.
    pub index_key_block_sizes: *const u32,
    /// The number of indexes.
    pub index_count: usize,
    /// COMPRESSION_LEVEL.
    pub compression_level: u32,
    /// PAGE_COMPRESSION_LEVEL.
    pub page_compression_level: u32,
    /// The session's default compression level.
    pub default_level: i32,
    /// The session's default codec.
    pub default_compression: u8,
    /// The codec in COMPRESSION, if `names_compression` is set.
    pub compression: u8,
    /// Whether COMPRESSION is set.
    pub names_compression: u8,
    /// Whether PAGE_COMPRESSED is set.
    pub page_compressed: u8,
    /// ROW_FORMAT: a `CheetahRowFormat`.
    pub row_format: u8,
}

/// The format that the options of a definition result in.
#[repr(C)]
pub struct CheetahFormat {
    /// Level of the codec; 0: its default.
    pub compression_level: i32,
    /// The codec: 0 none, 1 lz4, 2 zstd.
    pub compression: u8,
    /// Whether the options are refused.
    pub refused: u8,
}

/// An entry of a secondary index.
#[repr(C)]
pub struct CheetahEntry {
    /// Position of the index in its table, from 1.
    pub index_no: u32,
    /// Whether a second row with this key is refused.
    pub check_unique: u8,
    /// The key, as encoded by the caller.
    pub key: CheetahBytes,
    /// The payload: the caller's own bytes.
    pub payload: CheetahBytes,
}

/// A row to store.
#[repr(C)]
pub struct CheetahRow {
    /// Its clustered key.
    pub key: CheetahBytes,
    /// The stored row.
    pub row: CheetahBytes,
    /// Its entries in secondary indexes.
    pub secondary: *const CheetahEntry,
    /// The number of secondary entries.
    pub secondary_count: usize,
    /// Whether the caller will change an existing row with the same unique key.
    pub changes_duplicate: u8,
}

impl CheetahRow {
    pub(crate) fn duplicate_lock(&self) -> LockMode {
        match self.changes_duplicate {
            0 => LockMode::Shared,
            _ => LockMode::Exclusive,
        }
    }
}

/// The end that a locking cursor does not pass.
#[repr(C)]
pub struct CheetahSeekEnd {
    /// A `CheetahEnd`.
    pub kind: u8,
    /// The key, if the kind uses one.
    pub key: CheetahBytes,
}

/// The current entry of a cursor.
#[repr(C)]
pub struct CheetahFound {
    /// Clustered index: the row's key; secondary index: the caller's part of the key.
    pub key: CheetahBytes,
    /// The row's key.
    pub clustered: CheetahBytes,
    /// Clustered index: the stored row; secondary index: the payload.
    pub value: CheetahBytes,
}

/// A savepoint of a transaction. The caller must not interpret its words.
#[repr(C)]
pub struct CheetahSavepoint {
    /// The engine's value.
    pub words: [MaybeUninit<u64>; 4],
}

/// A request for auto-increment values, and the reserved values.
#[repr(C)]
pub struct CheetahNumbers {
    /// The distance between two values.
    pub increment: u64,
    /// Allowed values are `offset` plus a multiple of `increment`.
    pub offset: u64,
    /// The largest value that the column can hold.
    pub largest: u64,
    /// The number of requested values, and then of reserved values.
    pub count: u64,
    /// The first reserved value.
    pub first: u64,
    /// The counter after the reserved values.
    pub next: u64,
}

/// Sizes of an index.
#[repr(C)]
pub struct CheetahIndexStats {
    /// Pages of all levels.
    pub pages: u64,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Bytes on disk.
    pub stored_bytes: u64,
    /// Bytes before compression.
    pub logical_bytes: u64,
    /// Its share of the space in the files that will be freed.
    pub free_bytes: u64,
    /// The number of levels.
    pub depth: u32,
}

/// Returns whether the engine must end a wait or operation.
pub type CheetahInterrupted = unsafe extern "C" fn(context: *mut c_void) -> u8;
/// Called when the transaction of one session waits for the transaction of another session.
pub type CheetahWaitReport = unsafe extern "C" fn(waiter: *mut c_void, blocker: *mut c_void);
/// Returns the one of two sessions whose transaction must commit after the other; null if their
/// order is free.
pub type CheetahLaterSession = unsafe extern "C" fn(first: *mut c_void, second: *mut c_void) -> *mut c_void;
/// Called from time to time with the work done and the total work.
pub type CheetahProgress = unsafe extern "C" fn(context: *mut c_void, done: u64, total: u64);
/// Receives one string.
pub type CheetahTextSink = unsafe extern "C" fn(context: *mut c_void, text: CheetahBytes);
/// Receives one counter.
pub type CheetahCounterSink = unsafe extern "C" fn(context: *mut c_void, name: CheetahBytes, value: u64);
/// Computes the entries that a stored row should have, and passes them to the sink.
pub type CheetahExpectedEntries = unsafe extern "C" fn(
    context: *mut c_void,
    key: CheetahBytes,
    row: CheetahBytes,
    sink: *mut crate::CheetahEntrySink,
) -> i32;
/// Returns whether (1 or 0) a payload of a secondary index repeats what its entry's key states.
pub type CheetahPayloadTest =
    unsafe extern "C" fn(context: *mut c_void, index_no: u32, payload: CheetahBytes) -> u8;
