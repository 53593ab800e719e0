/* SPDX-License-Identifier: GPL-2.0-only */
/* The C ABI of the Cheetah engine, generated from crates/cheetah-ffi/src by
   `UPDATE=1 cargo test -p cheetah-ffi --test header`: change the declarations and comments there.

   Every function that returns int32_t returns a CheetahCode. cheetah_last_error returns the message
   of the last failure in the calling thread. A panic in the engine becomes CHEETAH_CODE_PANIC.
   Bytes that a function returns stay valid until the next call with the same handle. */


#ifndef CHEETAH_H
#define CHEETAH_H

#include <stddef.h>
#include <stdint.h>

// The result of a call.
typedef enum {
  // The call succeeded.
  CHEETAH_CODE_OK = 0,
  // There is no further entry.
  CHEETAH_CODE_END = 1,
  // A unique key already exists.
  CHEETAH_CODE_DUPLICATE_KEY = 2,
  // A table with this name already exists.
  CHEETAH_CODE_TABLE_EXISTS = 3,
  // There is no such table.
  CHEETAH_CODE_NO_SUCH_TABLE = 4,
  // There is no such row.
  CHEETAH_CODE_ROW_NOT_FOUND = 5,
  // A lock wait timed out.
  CHEETAH_CODE_LOCK_TIMEOUT = 6,
  // The transaction is the victim of a deadlock.
  CHEETAH_CODE_DEADLOCK = 7,
  // The caller requested to stop.
  CHEETAH_CODE_INTERRUPTED = 8,
  // A limit was exceeded.
  CHEETAH_CODE_LIMIT = 9,
  // No space is left on the disk.
  CHEETAH_CODE_DISK_FULL = 10,
  // The data has the format of another version.
  CHEETAH_CODE_UNSUPPORTED = 11,
  // Data is damaged.
  CHEETAH_CODE_CORRUPTION = 12,
  // The operating system reported an I/O error.
  CHEETAH_CODE_IO = 13,
  // The engine has stopped.
  CHEETAH_CODE_FATAL = 14,
  // The engine panicked because of a defect.
  CHEETAH_CODE_PANIC = 15,
  // A commit was refused and rolled back, or a rollback continues in the background.
  CHEETAH_CODE_ROLLBACK = 16,
  // The row has changed since the transaction's snapshot.
  CHEETAH_CODE_RECORD_CHANGED = 17,
  // The memory limit for locks is reached.
  CHEETAH_CODE_LOCK_TABLE_FULL = 18,
  // Another transaction holds a lock, and the caller did not want to wait.
  CHEETAH_CODE_LOCKED = 19,
  // The table was truncated or rebuilt since the transaction's snapshot.
  CHEETAH_CODE_TABLE_CHANGED = 20,
  // No prepared transaction has this name.
  CHEETAH_CODE_UNKNOWN_XID = 21,
  // A foreign key constraint is not possible.
  CHEETAH_CODE_CANNOT_ADD_CONSTRAINT = 22,
  // Another constraint has the same name.
  CHEETAH_CODE_CONSTRAINT_EXISTS = 23,
  // Other tables refer to the table.
  CHEETAH_CODE_IS_REFERENCED = 24,
  // A constraint needs the index that the message names.
  CHEETAH_CODE_INDEX_IS_NEEDED = 25,
  // A full-text query has a syntax error.
  CHEETAH_CODE_SEARCH_SYNTAX = 26,
  // A phrase in a full-text query has too many words.
  CHEETAH_CODE_SEARCH_PHRASE = 27,
  // A full-text query needs too much memory, or is nested too deeply.
  CHEETAH_CODE_SEARCH_MEMORY = 28,
  // A key of the server's key service is missing, or is the wrong key.
  CHEETAH_CODE_KEY = 29,
} CheetahCode;

// The codec of a table's pages.
typedef enum {
  // Pages are stored uncompressed.
  CHEETAH_COMPRESSION_NONE = 0,
  // LZ4.
  CHEETAH_COMPRESSION_LZ4 = 1,
  // Zstandard, at a level.
  CHEETAH_COMPRESSION_ZSTD = 2,
} CheetahCompression;

// The value of the option ENCRYPTED.
typedef enum {
  // The option is missing or DEFAULT: the server's variable decides.
  CHEETAH_ENCRYPTED_DEFAULT = 0,
  // YES.
  CHEETAH_ENCRYPTED_YES = 1,
  // NO.
  CHEETAH_ENCRYPTED_NO = 2,
} CheetahEncrypted;

// The value of the option ROW_FORMAT. The numbers are the server's.
typedef enum {
  // The option is missing or DEFAULT.
  CHEETAH_ROW_FORMAT_DEFAULT = 0,
  // FIXED.
  CHEETAH_ROW_FORMAT_FIXED = 1,
  // DYNAMIC.
  CHEETAH_ROW_FORMAT_DYNAMIC = 2,
  // COMPRESSED.
  CHEETAH_ROW_FORMAT_COMPRESSED = 3,
  // REDUNDANT.
  CHEETAH_ROW_FORMAT_REDUNDANT = 4,
  // COMPACT.
  CHEETAH_ROW_FORMAT_COMPACT = 5,
  // PAGE.
  CHEETAH_ROW_FORMAT_PAGE = 6,
} CheetahRowFormat;

// Where a seek places a cursor, for a prefix p of stored keys.
typedef enum {
  // The first entry >= p.
  CHEETAH_SEEK_AT_LEAST = 0,
  // The first entry > p that does not start with p.
  CHEETAH_SEEK_AFTER = 1,
  // The last entry that starts with p or is < p.
  CHEETAH_SEEK_AT_MOST = 2,
  // The last entry < p.
  CHEETAH_SEEK_BEFORE = 3,
  // The first entry.
  CHEETAH_SEEK_FIRST = 4,
  // The last entry.
  CHEETAH_SEEK_LAST = 5,
} CheetahSeek;

// The end that a locking cursor does not pass. Ends with their own key only limit forward moves.
typedef enum {
  // There is no end.
  CHEETAH_END_NONE = 0,
  // After the entries that start with the sought key.
  CHEETAH_END_PREFIX = 1,
  // Before the end's key.
  CHEETAH_END_BELOW = 2,
  // After the entries that start with the end's key.
  CHEETAH_END_UP_TO = 3,
  // Like `Prefix`, for a complete key of the clustered index.
  CHEETAH_END_ROW = 4,
} CheetahEnd;

// The isolation level of a transaction.
typedef enum {
  // Each statement has its own snapshot.
  CHEETAH_ISOLATION_READ_COMMITTED = 0,
  // The transaction has one snapshot.
  CHEETAH_ISOLATION_REPEATABLE_READ = 1,
  // Transactions have the same effect as if they ran one after another.
  CHEETAH_ISOLATION_SERIALIZABLE = 2,
} CheetahIsolation;

// How a row or an index is read.
typedef enum {
  // As the isolation level requires.
  CHEETAH_READ_CONSISTENT = 0,
  // The latest committed rows, with shared locks.
  CHEETAH_READ_SHARED = 1,
  // The latest committed rows, with exclusive locks.
  CHEETAH_READ_EXCLUSIVE = 2,
} CheetahRead;

// How a locking cursor treats a row that another transaction has locked.
typedef enum {
  // It waits.
  CHEETAH_ON_LOCKED_WAIT = 0,
  // It skips the row: SKIP LOCKED.
  CHEETAH_ON_LOCKED_SKIP = 1,
  // It reads the last committed version of the row: semi-consistent reads, under READ COMMITTED.
  CHEETAH_ON_LOCKED_LOOK = 2,
} CheetahOnLocked;

// The action of a constraint on child rows.
typedef enum {
  // RESTRICT: the change of the parent is refused.
  CHEETAH_FOREIGN_KEY_ACTION_RESTRICT = 0,
  // NO ACTION: the same as RESTRICT.
  CHEETAH_FOREIGN_KEY_ACTION_NO_ACTION = 1,
  // CASCADE: child rows are deleted or changed, too.
  CHEETAH_FOREIGN_KEY_ACTION_CASCADE = 2,
  // SET NULL: the columns of child rows become NULL.
  CHEETAH_FOREIGN_KEY_ACTION_SET_NULL = 3,
} CheetahForeignKeyAction;

// The role of a table in a constraint.
typedef enum {
  // Its rows refer to rows of the parent.
  CHEETAH_ROLE_CHILD = 0,
  // Rows of the child refer to its rows.
  CHEETAH_ROLE_PARENT = 1,
} CheetahRole;

// The children that prevent a table from being dropped.
typedef enum {
  // None: constraints stay, without a parent, until a table with this name is created.
  CHEETAH_REFERENCED_IGNORED = 0,
  // Children in any database.
  CHEETAH_REFERENCED_REFUSED = 1,
  // Children in other databases: children in the same database are dropped with the table.
  CHEETAH_REFERENCED_REFUSED_ELSEWHERE = 2,
} CheetahReferenced;

// The reason why a thread waits, or its long operation.
typedef enum {
  // It waits for a row lock.
  CHEETAH_STAGE_ROW_LOCK = 0,
  // It waits for a table lock.
  CHEETAH_STAGE_TABLE_LOCK = 1,
  // It waits for space in the log.
  CHEETAH_STAGE_LOG_SPACE = 2,
  // It waits for memory of the buffer pool.
  CHEETAH_STAGE_MEMORY = 3,
  // It rolls back.
  CHEETAH_STAGE_ROLLING_BACK = 4,
} CheetahStage;

// Whether statistics of a table are collected automatically. The numbers are the server's.
typedef enum {
  // The setting of the database decides.
  CHEETAH_RECALC_AS_DATABASE = 0,
  // Statistics are collected automatically.
  CHEETAH_RECALC_ON = 1,
  // Statistics are not collected automatically.
  CHEETAH_RECALC_OFF = 2,
} CheetahRecalc;

// How a full-text index treats a word.
typedef enum {
  // The index contains the word.
  CHEETAH_WORD_KIND_INDEXED = 0,
  // Omitted as a stop word.
  CHEETAH_WORD_KIND_STOP = 1,
  // Omitted as too short.
  CHEETAH_WORD_KIND_TOO_SHORT = 2,
  // Omitted as too long.
  CHEETAH_WORD_KIND_TOO_LONG = 3,
} CheetahWordKind;

// How the text of a full-text search is interpreted.
typedef enum {
  // As words.
  CHEETAH_SEARCH_MODE_NATURAL_LANGUAGE = 0,
  // As words with operators.
  CHEETAH_SEARCH_MODE_BOOLEAN = 1,
  // As words, to which the words of the best rows are added.
  CHEETAH_SEARCH_MODE_QUERY_EXPANSION = 2,
} CheetahSearchMode;

// A buffer that the engine fills and the caller reads. It keeps its memory between calls.
typedef struct CheetahBuffer CheetahBuffer;

// Indexes that are being built for a table.
typedef struct CheetahBuild CheetahBuild;

// Receives the entries of one row in the indexes that are being built.
typedef struct CheetahBuiltEntries CheetahBuiltEntries;

// A cursor, and whether its index is the clustered index.
typedef struct CheetahCursor CheetahCursor;

// An open database.
typedef struct CheetahDb CheetahDb;

// Receives the entries expected for one row.
typedef struct CheetahEntrySink CheetahEntrySink;

// An estimate for one table.
typedef struct CheetahEstimate CheetahEstimate;

// The constraints of a table, as its child and as its parent.
typedef struct CheetahForeignKeys CheetahForeignKeys;

// A load of one table.
typedef struct CheetahLoad CheetahLoad;

// The rows that a search found.
typedef struct CheetahMatches CheetahMatches;

// Postings of an index that is being built.
typedef struct CheetahPostings CheetahPostings;

// An open table.
typedef struct CheetahTable CheetahTable;

// A handle of a transaction. After a commit or rollback it is reused for the next transaction.
typedef struct CheetahTxn CheetahTxn;

// Receives the words of a text during a search.
typedef struct CheetahWordSink CheetahWordSink;

// The words of a row.
typedef struct CheetahWords CheetahWords;

// Borrowed bytes.
typedef struct {
  // The first byte; may be null if `len` is 0.
  const uint8_t *data;
  // The number of bytes.
  size_t len;
} CheetahBytes;

// An index of a new definition: an existing index of the table, or one that was built.
typedef struct {
  // Its new name.
  CheetahBytes name;
  // Its position in the old definition.
  uint32_t from;
  // Its number among the built indexes, from 1; 0 if the table already has it.
  uint32_t built;
} CheetahAlteredIndex;

// The layout of stored rows.
typedef struct {
  // Bytes of the NULL bitmap.
  uint16_t null_bytes;
  // Number of values of variable length.
  uint16_t var_count;
  // Widths of the fixed columns.
  const uint16_t *fixed;
  // The number of fixed columns.
  size_t fixed_count;
} CheetahRowFormatVersion;

// A run of bits in the NULL bytes, and its new position. Bit 0 is the lowest bit of the first
// byte.
typedef struct {
  // The old position of the first bit.
  uint32_t from;
  // The new position of the first bit.
  uint32_t to;
  // The number of bits.
  uint32_t count;
} CheetahBitRun;

// The columns of a new definition: the format of new rows, and the conversion of existing rows
// when they are read.
typedef struct {
  // The format of new rows.
  CheetahRowFormatVersion row_format;
  // The bits of the NULL bytes that are kept.
  const CheetahBitRun *bits;
  // The number of runs of bits.
  size_t bit_count;
  // For each fixed column of the new format, its old number; -1 for an added column.
  const int32_t *fixed;
  // For each variable-length column of the new format, its old number; -1 for an added column.
  const int32_t *vars;
  // A row of the new format, with the values of added columns.
  CheetahBytes defaults;
} CheetahNewRows;

// A column of a definition. Columns of the same kind have equal keys for equal values, apart from
// the NULL flag and the direction.
typedef struct {
  // Its name.
  CheetahBytes name;
  // Its kind: equal for columns that have equal keys for equal values.
  CheetahBytes kind;
  // Whether it may be NULL.
  uint8_t nullable;
} CheetahColumnDef;

// A part of a key.
typedef struct {
  // The position of its column.
  uint32_t column;
  // Whether it sorts in descending order.
  uint8_t descending;
  // Whether it contains only a prefix of the value.
  uint8_t is_prefix;
} CheetahKeyPartDef;

// The key of an index.
typedef struct {
  // Its parts.
  const CheetahKeyPartDef *parts;
  // The number of parts.
  size_t part_count;
} CheetahKeyDef;

// A constraint of a definition.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The name of the parent.
  CheetahBytes parent;
  // The child's columns.
  const CheetahBytes *columns;
  // The parent's columns.
  const CheetahBytes *parent_columns;
  // The number of columns on each side.
  size_t column_count;
  // A `CheetahForeignKeyAction`.
  uint8_t on_delete;
  // A `CheetahForeignKeyAction`.
  uint8_t on_update;
  // Whether the table is a copy of a table that has the constraint.
  uint8_t inherited;
} CheetahForeignKeyDef;

// A renamed column.
typedef struct {
  // Its old name.
  CheetahBytes from;
  // Its new name.
  CheetahBytes to;
} CheetahRenamedColumn;

// Columns, keys and constraints of a definition.
typedef struct {
  // The columns.
  const CheetahColumnDef *columns;
  // The number of columns.
  size_t column_count;
  // The keys, the key of the clustered index first.
  const CheetahKeyDef *keys;
  // The number of keys.
  size_t key_count;
  // The constraints in which the table is the child. Existing constraints come first.
  const CheetahForeignKeyDef *foreign_keys;
  // The number of constraints.
  size_t foreign_key_count;
  // The number of existing constraints.
  size_t kept_count;
  // If the table is a copy, the table that it will replace; otherwise empty.
  CheetahBytes copy_of;
  // Renamed columns.
  const CheetahRenamedColumn *renamed;
  // The number of renamed columns.
  size_t renamed_count;
  // Whether parents must exist.
  uint8_t are_checked;
} CheetahConstraints;

// A full-text index to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The caller's own bytes: the rules that split texts into words.
  CheetahBytes extra;
} CheetahFulltextSpec;

// A full-text index of a new definition.
typedef struct {
  // Its new name and the caller's bytes.
  CheetahFulltextSpec index;
  // Its position in the old definition, from 0.
  size_t from;
  // Its postings, if it was built; null if the table already has the index.
  const CheetahPostings *built;
} CheetahAlteredFulltext;

// A new definition of a table whose stored rows are not rewritten.
typedef struct {
  // The table.
  const CheetahTable *table;
  // Its new indexes, the clustered index first. Indexes that are not listed are dropped.
  const CheetahAlteredIndex *indexes;
  // The number of indexes.
  size_t index_count;
  // The build of its new indexes; may be null.
  const CheetahBuild *build;
  // Its new columns; null if they do not change.
  const CheetahNewRows *rows;
  // Its new columns, keys and constraints; if null, the table keeps its constraints, and its
  // columns and keys are not described.
  const CheetahConstraints *constraints;
  // Its new full-text indexes. Indexes that are not listed are dropped.
  const CheetahAlteredFulltext *fulltext;
  // The number of full-text indexes.
  size_t fulltext_count;
  // The caller's own bytes.
  CheetahBytes extra;
  // Bytes by which the caller identifies the change (`cheetah_has_mark`).
  CheetahBytes mark;
  // Level of the codec for newly written images; 0: the codec's default.
  int32_t compression_level;
  // The codec: 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether compression stays as it is. If so, the two previous fields are ignored.
  uint8_t keeps_compression;
} CheetahAlteration;

// An index to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The maximum size of its keys.
  uint32_t max_key_bytes;
  // Whether keys are unique.
  uint8_t unique;
} CheetahIndexSpec;

// Computes the entries of a row in the indexes that are being built. Returns `Ok`, `Interrupted`
// if the statement must end, or `Corruption` if the row does not fit the definition.
typedef int32_t (*CheetahEntriesOf)(void *context,
                                    CheetahBytes key,
                                    CheetahBytes row,
                                    CheetahBuiltEntries *entries);

// Called from time to time with the work done and the total work.
typedef void (*CheetahProgress)(void *context, uint64_t done, uint64_t total);

// The encoding of a part of a stored key, as far as it is needed to find the part's end.
typedef struct {
  // For each level of a string, the weight of the space; empty if the level is not padded.
  const CheetahBytes *levels;
  // The number of levels; 0 if the part is not a string.
  size_t level_count;
  // The length of a part that is not a string.
  uint32_t bytes;
  // Whether the part begins with a byte that is 0 for NULL.
  uint8_t nullable;
  // Whether all bytes are inverted.
  uint8_t descending;
  // Whether no earlier part of the index has the same column.
  uint8_t is_counted;
  // A number that describes to the caller how to show values of the part (`CheetahShowValue`).
  uint32_t shown_as;
} CheetahKeyPartEncoding;

// The encoding of the stored keys of an index.
typedef struct {
  // The parts of the index, followed by the parts of the clustered key.
  const CheetahKeyPartEncoding *parts;
  // The number of parts.
  size_t part_count;
} CheetahKeyEncoding;

// The end that a locking cursor does not pass.
typedef struct {
  // A `CheetahEnd`.
  uint8_t kind;
  // The key, if the kind uses one.
  CheetahBytes key;
} CheetahSeekEnd;

// The current entry of a cursor.
typedef struct {
  // Clustered index: the row's key; secondary index: the caller's part of the key.
  CheetahBytes key;
  // The row's key.
  CheetahBytes clustered;
  // Clustered index: the stored row; secondary index: the payload.
  CheetahBytes value;
} CheetahFound;

// Returns the newest version of a key in the server's key service; 0 if the key does not exist.
// Called from any thread.
typedef uint32_t (*CheetahNewestKeyVersion)(uint32_t id);

// Puts the bytes of a key version into a buffer, which the engine wipes. Returns their number; 0
// if the key is not available. Called from any thread.
typedef size_t (*CheetahKeyBytes)(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes);

// The configuration with which a database is opened.
typedef struct {
  // Its directory.
  CheetahBytes directory;
  // Memory for pages, write buffers and the log buffer.
  uint64_t buffer_pool_bytes;
  // Size of one log file.
  uint64_t log_file_bytes;
  // Size of the log.
  uint64_t log_bytes_max;
  // I/O operations per second for background work.
  uint32_t io_capacity;
  // 0, 1 or 2: see `cheetah_set_flush_log_at_commit`.
  uint8_t flush_log_at_commit;
  // Whether changes may be buffered while their leaf is not in memory.
  uint8_t buffers_changes;
  // Whether data files are read through the operating system's page cache.
  uint8_t buffers_data_files;
  // Whether tables without ENCRYPTED in their definition are encrypted.
  uint8_t encrypts_tables;
  // Whether the log is encrypted.
  uint8_t encrypts_log;
  // Returns versions of encryption keys.
  CheetahNewestKeyVersion newest_key_version;
  // Returns encryption keys.
  CheetahKeyBytes key_bytes;
} CheetahConfig;

// Variables of the server that depend on each other.
typedef struct {
  // Maximum size of one log file.
  uint64_t log_file_bytes;
  // Maximum size of the log.
  uint64_t log_bytes_max;
  // Minimum characters of a word in full-text indexes.
  uint32_t word_chars_min;
  // Maximum characters of a word in full-text indexes.
  uint32_t word_chars_max;
} CheetahSettings;

// Receives one string.
typedef void (*CheetahTextSink)(void *context, CheetahBytes text);

// Receives one counter.
typedef void (*CheetahCounterSink)(void *context, CheetahBytes name, uint64_t value);

// The encryption options of a definition, and the server's setting.
typedef struct {
  // ENCRYPTION_KEY_ID.
  uint32_t key_id;
  // ENCRYPTED: a `CheetahEncrypted`.
  uint8_t encrypted;
  // `cheetah_encrypt_tables`: 0 OFF, 1 ON, 2 FORCE.
  uint8_t encrypt_tables;
  // Used to check that a key exists.
  CheetahNewestKeyVersion newest_key_version;
} CheetahEncryptionWords;

// The encryption of a table.
typedef struct {
  // The ID of its key; 0 means key 1.
  uint32_t key_id;
  // A `CheetahEncrypted`.
  uint8_t encrypted;
  // Whether the options are refused.
  uint8_t refused;
} CheetahEncryption;

// The encryption of a table. Its strings are valid only during the call.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The engine's ID of the table.
  uint64_t table;
  // During key rotation: the next page to check.
  uint64_t rotation_page;
  // During key rotation: the number of pages to check; 0 before the pass begins.
  uint64_t rotation_pages;
  // The number of requests to the key service for its key since the startup.
  uint64_t key_requests;
  // The ID of its key.
  uint32_t key_id;
  // The oldest version in use; 0 if pages may be unencrypted.
  uint32_t min_key_version;
  // The version that pages are now encrypted with.
  uint32_t current_key_version;
  // Whether newly written pages are encrypted.
  uint8_t is_encrypted;
  // Whether background threads have still to check some of its pages.
  uint8_t is_rotating;
} CheetahTableEncryption;

// Receives one table.
typedef void (*CheetahTableEncryptionSink)(void *context, const CheetahTableEncryption *table);

// A table to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The layout of its stored rows.
  CheetahRowFormatVersion row_format;
  // Its indexes, the clustered index first.
  const CheetahIndexSpec *indexes;
  // The number of indexes.
  size_t index_count;
  // Its full-text indexes.
  const CheetahFulltextSpec *fulltext;
  // The number of full-text indexes.
  size_t fulltext_count;
  // The caller's own bytes.
  CheetahBytes extra;
  // The first auto-increment value.
  uint64_t auto_increment;
  // Level of the codec; 0: its default.
  int32_t compression_level;
  // The codec: 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether the engine assigns a hidden key to each row.
  uint8_t hidden_key;
  // Whether it is dropped when the process ends.
  uint8_t is_temporary;
  // Its encryption.
  CheetahEncryption encryption;
} CheetahTableSpec;

// The estimated size of the table in one format.
typedef struct {
  // The KEY_BLOCK_SIZE in KiB that selects the format; 0 if none does.
  uint64_t key_block_size;
  // The number of rows of the table.
  uint64_t rows;
  // The number of rows in the sample.
  uint64_t sampled_rows;
  // Estimated bytes of the table.
  uint64_t bytes;
  // The error bound of `bytes`, in millionths of `bytes`. In 95 of 100 cases the error is
  // smaller, if `rows` is exact.
  uint64_t error_ppm;
  // Time to compress a page.
  uint64_t encode_ns;
  // Time to decompress a page.
  uint64_t decode_ns;
  // Level of the codec.
  int32_t compression_level;
  // The codec: 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether `error_ppm` is valid: the sample suffices to estimate the error.
  uint8_t has_error;
} CheetahWeight;

// Receives the estimate for one format.
typedef void (*CheetahWeightSink)(void *context, const CheetahWeight *weight);

// Passes the readable form of a table name to a sink.
typedef void (*CheetahShowName)(void *context, CheetahBytes name, CheetahTextSink sink, void *sink_context);

// A column of a constraint in an index.
typedef struct {
  // Its position in the table.
  uint32_t column;
  // Whether it may be NULL.
  uint8_t nullable;
  // Whether the key part sorts in descending order.
  uint8_t descending;
} CheetahKeyColumn;

// The index that a constraint uses on one side.
typedef struct {
  // The columns, in the order of the constraint; null if there is no such index.
  const CheetahKeyColumn *columns;
  // The position of the index.
  uint32_t index_no;
  // Its name.
  CheetahBytes index_name;
} CheetahKeySide;

// A constraint, and the indexes that it uses.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The name of the child.
  CheetahBytes child;
  // The name of the parent.
  CheetahBytes parent;
  // The child's columns.
  const CheetahBytes *columns;
  // The parent's columns.
  const CheetahBytes *parent_columns;
  // The number of columns on each side.
  size_t column_count;
  // The child's index.
  CheetahKeySide child_key;
  // The parent's index.
  CheetahKeySide parent_key;
  // A `CheetahForeignKeyAction`.
  uint8_t on_delete;
  // A `CheetahForeignKeyAction`.
  uint8_t on_update;
  // Whether rows of the child are checked: not if it is a copy of a table with the constraint.
  uint8_t is_checked;
} CheetahForeignKey;

// Receives one constraint.
typedef void (*CheetahForeignKeySink)(void *context, const CheetahForeignKey *constraint);

// The options of a definition about the format of its table. 0 means that the option is missing.
typedef struct {
  // KEY_BLOCK_SIZE of the table.
  uint64_t key_block_size;
  // KEY_BLOCK_SIZE of each index.
  const uint32_t *index_key_block_sizes;
  // The number of indexes.
  size_t index_count;
  // COMPRESSION_LEVEL.
  uint32_t compression_level;
  // PAGE_COMPRESSION_LEVEL.
  uint32_t page_compression_level;
  // The session's default compression level.
  int32_t default_level;
  // The session's default codec.
  uint8_t default_compression;
  // The codec in COMPRESSION, if `names_compression` is set.
  uint8_t compression;
  // Whether COMPRESSION is set.
  uint8_t names_compression;
  // Whether PAGE_COMPRESSED is set.
  uint8_t page_compressed;
  // ROW_FORMAT: a `CheetahRowFormat`.
  uint8_t row_format;
} CheetahFormatWords;

// The format that the options of a definition result in.
typedef struct {
  // Level of the codec; 0: its default.
  int32_t compression_level;
  // The codec: 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether the options are refused.
  uint8_t refused;
} CheetahFormat;

// Passes each word of a query's text to the sink. Returns `Ok`, or the first other code that the
// sink returned.
typedef int32_t (*CheetahSplitText)(void *context, CheetahBytes text, CheetahWordSink *sink);

// Passes each word of a row to the sink. Returns `Ok`, or the first other code that the sink
// returned.
typedef int32_t (*CheetahWordsOfRow)(void *context, CheetahBytes key, CheetahBytes row, CheetahWordSink *sink);

// A full-text search.
typedef struct {
  // The query, in a character set that contains ASCII as single bytes.
  CheetahBytes text;
  // The bytes that follow the weights of each word in the index.
  CheetahBytes end;
  // The maximum memory of the search in bytes.
  uint64_t limit_bytes;
  // Finds the words of texts in the query.
  CheetahSplitText split;
  // Finds the words of rows.
  CheetahWordsOfRow words_of_row;
  // The argument of both functions.
  void *context;
  // A `CheetahSearchMode`.
  uint8_t mode;
  // A `CheetahRead`: how the statement will read the rows that are found.
  uint8_t read;
} CheetahSearch;

// Computes the entries that a stored row should have, and passes them to the sink.
typedef int32_t (*CheetahExpectedEntries)(void *context,
                                          CheetahBytes key,
                                          CheetahBytes row,
                                          CheetahEntrySink *sink);

// An open transaction. Its strings are valid only during the call.
typedef struct {
  // Its ID.
  uint64_t id;
  // The ID of its connection; 0 if it has none.
  uint64_t connection;
  // The time since it began.
  uint64_t age_ns;
  // The time that it has waited for `requested_lock`.
  uint64_t wait_ns;
  // The number of its undo records.
  uint64_t changes;
  // The number of tables that its statement uses.
  uint64_t tables_in_use;
  // The number of tables that it has locked.
  uint64_t tables_locked;
  // The number of records that it has locked.
  uint64_t records_locked;
  // The number of its locks.
  uint64_t locks;
  // The approximate memory of its locks.
  uint64_t lock_bytes;
  // The number of transactions that cannot be purged because of its snapshot.
  uint64_t kept_from_purge;
  // Bytes of the undo log that cannot be freed because of its changes.
  uint64_t undo_bytes;
  // Its state.
  CheetahBytes state;
  // The ID of the lock that it waits for; empty if it does not wait.
  CheetahBytes requested_lock;
  // Its XID; empty if it is not prepared.
  CheetahBytes xid;
  // A `CheetahIsolation`.
  uint8_t isolation;
} CheetahTxnInfo;

// Receives one transaction.
typedef void (*CheetahTxnInfoSink)(void *context, const CheetahTxnInfo *txn);

// A lock or a waiting lock request. Its strings are valid only during the call.
typedef struct {
  // Its ID.
  CheetahBytes id;
  // The ID of its transaction.
  uint64_t txn;
  // Its mode.
  CheetahBytes mode;
  // The table.
  CheetahBytes table;
  // The index; empty for a table lock.
  CheetahBytes index;
  // The locked record; empty for a table lock.
  CheetahBytes data;
} CheetahLockInfo;

// Receives one lock.
typedef void (*CheetahLockInfoSink)(void *context, const CheetahLockInfo *lock);

// A transaction that waits, and one that blocks it. Its strings are valid only during the call.
typedef struct {
  // The ID of the waiting transaction.
  uint64_t requesting;
  // The lock that it waits for.
  CheetahBytes requested_lock;
  // The ID of the blocking transaction.
  uint64_t blocking;
  // The lock that blocks it.
  CheetahBytes blocking_lock;
} CheetahLockWait;

// Receives one wait.
typedef void (*CheetahLockWaitSink)(void *context, const CheetahLockWait *wait);

// Passes the readable form of a key part's value to a sink; nothing if there is none. `shown_as`:
// from the part's `CheetahKeyPartEncoding`. `value`: the encoded value in ascending order, without
// the byte for NULL.
typedef void (*CheetahShowValue)(void *context,
                                 uint32_t shown_as,
                                 CheetahBytes value,
                                 CheetahTextSink sink,
                                 void *sink_context);

// Passes the current date and time in readable form to a sink.
typedef void (*CheetahTellTime)(void *context, CheetahTextSink sink, void *sink_context);

// Passes a readable description of a connection's activity to the sink.
typedef void (*CheetahDescribe)(void *context, uint64_t connection, CheetahTextSink sink, void *sink_context);

// An entry of a secondary index.
typedef struct {
  // Position of the index in its table, from 1.
  uint32_t index_no;
  // Whether a second row with this key is refused.
  uint8_t check_unique;
  // The key, as encoded by the caller.
  CheetahBytes key;
  // The payload: the caller's own bytes.
  CheetahBytes payload;
} CheetahEntry;

// A row to store.
typedef struct {
  // Its clustered key.
  CheetahBytes key;
  // The stored row.
  CheetahBytes row;
  // Its entries in secondary indexes.
  const CheetahEntry *secondary;
  // The number of secondary entries.
  size_t secondary_count;
  // Whether the caller will change an existing row with the same unique key.
  uint8_t changes_duplicate;
} CheetahRow;

// A line for the manifest of a snapshot.
typedef struct {
  // The first word of the line, without blanks.
  CheetahBytes word;
  // The rest of the line.
  CheetahBytes text;
} CheetahNote;

// A transaction's name, as X/Open defines it.
typedef struct {
  // Its format.
  uint64_t format;
  // The name of the global transaction; at most 64 bytes.
  CheetahBytes global;
  // The name of the branch; at most 64 bytes.
  CheetahBytes branch;
} CheetahXid;

// Returns whether the caller itself coordinates the prepared transaction with this name. Such a
// transaction is rolled back in a snapshot.
typedef uint8_t (*CheetahIsOwnXid)(const CheetahXid *xid);

// Returns whether the engine must end a wait or operation.
typedef uint8_t (*CheetahInterrupted)(void *context);

// The parameters of a snapshot.
typedef struct {
  // The absolute path of the directory; it must not exist.
  CheetahBytes path;
  // A directory that must not contain `path`, except in the engine's own `snapshots` directory.
  CheetahBytes outside_of;
  // For the manifest, unless a pinned snapshot is written.
  const CheetahNote *notes;
  // The number of notes.
  size_t notes_count;
  // Decides which prepared transactions are rolled back in the snapshot.
  CheetahIsOwnXid is_own;
  // Returns whether to abandon the snapshot.
  CheetahInterrupted interrupted;
  // The argument of `interrupted`.
  void *context;
} CheetahSnapshotOrder;

// The files that were written.
typedef struct {
  // The number of files, without the manifest.
  uint64_t files_count;
  // The bytes in these files.
  uint64_t bytes;
  // The bytes that were copied rather than linked or cloned.
  uint64_t copied_bytes;
} CheetahSnapshot;

// The caller's state before a stage. The engine does not interpret its words.
typedef struct {
  // Set by the caller.
  uint64_t first;
  // Set by the caller.
  uint64_t second;
  // Set by the caller.
  uint64_t third;
} CheetahStageBefore;

// Called when the calling thread begins a stage (a `CheetahStage`). The function for the end of
// the stage gets the content of `before`. Returns the ID of the thread's connection, or 0.
typedef uint64_t (*CheetahStageBegins)(uint8_t stage, CheetahStageBefore *before);

// Called when the stage ends.
typedef void (*CheetahStageEnds)(uint8_t stage, const CheetahStageBefore *before);

// Returns the ID of the calling thread's connection, or 0.
typedef uint64_t (*CheetahConnection)(void);

// The work of a thread on pages.
typedef struct {
  // Pages requested, in memory or not.
  uint64_t pages_accessed;
  // Pages changed.
  uint64_t pages_updated;
  // Images read from disk.
  uint64_t pages_read;
  // Time spent reading images.
  uint64_t read_ns;
  // Pages that the thread requested other threads to read ahead.
  uint64_t pages_prefetched;
  // Older versions of rows that were read.
  uint64_t versions_read;
} CheetahPageWork;

// Encoding and decoding of images of pages. Its strings are valid only during the call.
typedef struct {
  // The maximum size of these images; 0: all images of an index.
  uint64_t image_bytes_max;
  // The table of the index.
  CheetahBytes table;
  // The index.
  CheetahBytes index;
  // The number of images encoded.
  uint64_t encodes;
  // Time spent encoding.
  uint64_t encode_ns;
  // The number of images decoded.
  uint64_t decodes;
  // Time spent decoding.
  uint64_t decode_ns;
} CheetahImageWork;

// Receives one item.
typedef void (*CheetahImageWorkSink)(void *context, const CheetahImageWork *work);

// Statistics of the buffer pool. `size_pages` and `free_pages` count memory in pages of the
// smallest size.
typedef struct {
  // Pages that fit into the memory for frames.
  uint64_t size_pages;
  // Pages that still fit before others must be evicted.
  uint64_t free_pages;
  // Pages in memory.
  uint64_t pages;
  // Pages in memory that are evicted first, unless they are used again.
  uint64_t leaving_pages;
  // Pages in memory that were changed and not yet written.
  uint64_t dirty_pages;
  // Pages requested since the startup.
  uint64_t gets;
  // Pages read.
  uint64_t reads;
  // New pages.
  uint64_t creates;
  // Pages written.
  uint64_t writes;
  // Pages read ahead, before they were requested.
  uint64_t reads_ahead;
  // Pages read ahead that were evicted without being requested.
  uint64_t ahead_wasted;
  // `reads` per thousand seconds, since the last output of the status.
  uint64_t reads_per_1000_s;
  // `creates` per thousand seconds, since the last output of the status.
  uint64_t creates_per_1000_s;
  // `writes` per thousand seconds, since the last output of the status.
  uint64_t writes_per_1000_s;
  // `reads_ahead` per thousand seconds, since the last output of the status.
  uint64_t reads_ahead_per_1000_s;
  // `ahead_wasted` per thousand seconds, since the last output of the status.
  uint64_t ahead_wasted_per_1000_s;
  // Requests per thousand that found their page in memory, since the last output of the status.
  uint64_t hits_per_1000;
  // 1 if `hits_per_1000` is valid: at least one page was requested.
  uint8_t has_hits;
} CheetahPoolStats;

// The predicted cache misses with a given amount of memory.
typedef struct {
  // The memory, in percent of the present memory.
  uint64_t percent;
  // The memory in bytes.
  uint64_t memory_bytes;
  // Page reads per million requests.
  uint64_t misses_per_million;
  // Page reads per thousand seconds.
  uint64_t reads_per_1000_s;
} CheetahCurvePoint;

// Receives one point.
typedef void (*CheetahCurvePointSink)(void *context, const CheetahCurvePoint *point);

// Sizes of one or more indexes.
typedef struct {
  // The number of pages.
  uint64_t pages;
  // The approximate number of leaves.
  uint64_t leaf_pages;
  // Levels of the deepest tree.
  uint64_t depth;
  // Bytes of all pages before compression.
  uint64_t logical_bytes;
  // Bytes before compression of the pages on disk.
  uint64_t stored_logical_bytes;
  // Bytes of these pages on disk.
  uint64_t stored_bytes;
  // The share of the space in the files that will be freed.
  uint64_t free_bytes;
  // The share of the files, without data that is still in tails.
  uint64_t allocated_bytes;
  // Bytes of pages in memory.
  uint64_t cached_bytes;
  // Bytes of leaves in memory.
  uint64_t leaf_bytes;
  // Bytes in use in these leaves.
  uint64_t leaf_used_bytes;
} CheetahSizes;

// A table and its sizes. Its strings are valid only during the call.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The number of rows.
  uint64_t rows;
  // The number of indexes, including the clustered index.
  uint64_t index_count;
  // The next auto-increment value.
  uint64_t auto_increment;
  // Sizes of the clustered index, including the large values.
  CheetahSizes data;
  // Total sizes of the secondary indexes.
  CheetahSizes secondary;
  // The level of its codec.
  int32_t compression_level;
  // A `CheetahCompression`.
  uint8_t compression;
  // The format version of its pages.
  uint8_t format_version;
} CheetahTableSizes;

// Receives one table.
typedef void (*CheetahTableSizesSink)(void *context, const CheetahTableSizes *table);

// An index and its sizes. Its strings are valid only during the call.
typedef struct {
  // The name of its table.
  CheetahBytes table;
  // Its name.
  CheetahBytes index;
  // Its sizes.
  CheetahSizes sizes;
  // The level of its codec.
  int32_t compression_level;
  // A `CheetahCompression`.
  uint8_t compression;
} CheetahIndexSizes;

// Receives one index.
typedef void (*CheetahIndexSizesSink)(void *context, const CheetahIndexSizes *index);

// Sizes of an index.
typedef struct {
  // Pages of all levels.
  uint64_t pages;
  // Pages with entries.
  uint64_t leaf_pages;
  // Bytes on disk.
  uint64_t stored_bytes;
  // Bytes before compression.
  uint64_t logical_bytes;
  // Its share of the space in the files that will be freed.
  uint64_t free_bytes;
  // The number of levels.
  uint32_t depth;
} CheetahIndexStats;

// Returns whether (1 or 0) a payload of a secondary index repeats what its entry's key states.
typedef uint8_t (*CheetahPayloadTest)(void *context, uint32_t index_no, CheetahBytes payload);

// Called when the transaction of one session waits for the transaction of another session.
typedef void (*CheetahWaitReport)(void *waiter, void *blocker);

// Returns the one of two sessions whose transaction must commit after the other; null if their
// order is free.
typedef void *(*CheetahLaterSession)(void *first, void *second);

// A request for auto-increment values, and the reserved values.
typedef struct {
  // The distance between two values.
  uint64_t increment;
  // Allowed values are `offset` plus a multiple of `increment`.
  uint64_t offset;
  // The largest value that the column can hold.
  uint64_t largest;
  // The number of requested values, and then of reserved values.
  uint64_t count;
  // The first reserved value.
  uint64_t first;
  // The counter after the reserved values.
  uint64_t next;
} CheetahNumbers;

// A savepoint of a transaction. The caller must not interpret its words.
typedef struct {
  // The engine's value.
  uint64_t words[4];
} CheetahSavepoint;

// Receives one XID.
typedef void (*CheetahXidSink)(void *context, const CheetahXid *xid);

// A bucket of an operation's latency histogram. Its string is valid only during the call.
typedef struct {
  // The kind of operation.
  CheetahBytes operation;
  // The lower bound of the bucket, inclusive.
  uint64_t from_us;
  // The upper bound of the bucket, exclusive; 0: no bound.
  uint64_t below_us;
  // The number of operations in the bucket.
  uint64_t count;
} CheetahLatency;

// Receives one bucket.
typedef void (*CheetahLatencySink)(void *context, const CheetahLatency *latency);

// Stalls with the same reason. Its string is valid only during the call.
typedef struct {
  // The reason of the wait, or the kind of work.
  CheetahBytes reason;
  // The number of current stalls.
  uint64_t current;
  // The time that the longest current stall has lasted.
  uint64_t current_us_max;
  // The number of ended stalls.
  uint64_t count;
  // Total time of the ended stalls.
  uint64_t sum_us;
  // Time of the longest ended stall.
  uint64_t max_us;
  // Time since the last stall ended.
  uint64_t last_age_ns;
  // The ID of the connection of the last ended stall; 0: a thread of the engine.
  uint64_t last_connection;
} CheetahStall;

// Receives the stalls with one reason.
typedef void (*CheetahStallSink)(void *context, const CheetahStall *stall);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Changes the definitions of all these tables, or of none. Afterwards the open handles of these
// tables must not be used.
int32_t cheetah_alter_tables(const CheetahDb *db, const CheetahAlteration *alterations, size_t count);

// Returns whether the stored rows of a table have exactly this row-format version.
uint8_t cheetah_table_fits(const CheetahTable *table, const CheetahRowFormatVersion *row_format);

// Returns whether the table may have rows that were stored with a different set of columns.
uint8_t cheetah_has_older_rows(const CheetahTable *table);

// Returns whether the columns of a table can change to `rows` without rewriting its rows.
uint8_t cheetah_can_change_rows(const CheetahTable *table, const CheetahNewRows *rows);

// Returns whether the last change of the table's definition has this mark.
uint8_t cheetah_has_mark(const CheetahDb *db, CheetahBytes name, CheetahBytes mark);

// Returns the message of this thread's last failure. It is valid until the thread's next call.
CheetahBytes cheetah_last_error(void);

// Gets the index and the existing row's clustered key of this thread's last duplicate key.
void cheetah_last_duplicate(uint32_t *index_no, CheetahBytes *existing);

// Returns whether keys of `max_key_bytes` bytes fit into an index built for the table. If not,
// they may still fit into an index of a copy, which divides the space between its keys again.
uint8_t cheetah_has_room_for_keys(const CheetahTable *table, uint32_t max_key_bytes);

// Prevents loads of a table whose definition will change, until the end of the transaction. Waits
// for a running load, after which the table may have to be opened again.
int32_t cheetah_keep_loads_off(CheetahTxn *txn, const CheetahTable *table);

// Begins a build of indexes for a table that other transactions may read and write. `with_values`:
// entries need large values. `cheetah_run_build` builds the indexes, and `cheetah_finish_build`
// brings them up to date. If one of them returns `DuplicateKey`, the number of the index counts
// the new indexes from 1, and `cheetah_row_refused_by_build` returns the row.
int32_t cheetah_begin_build(CheetahTxn *txn,
                            const CheetahTable *table,
                            const CheetahIndexSpec *specs,
                            size_t count,
                            uint8_t with_values,
                            CheetahBuild **build);

// Builds the indexes while other transactions use the table, with calls of `progress`.
int32_t cheetah_run_build(CheetahTxn *txn,
                          CheetahBuild *build,
                          CheetahEntriesOf entries,
                          void *context,
                          CheetahProgress progress,
                          void *progress_context);

// Locks the table against writers, and brings the indexes up to date. `cheetah_alter_tables` must
// take over the indexes before the transaction ends.
int32_t cheetah_finish_build(CheetahTxn *txn, CheetahBuild *build, CheetahEntriesOf entries, void *context);

// Adds an entry of the current row. `index_no` counts the indexes that are being built from 1.
void cheetah_add_built_entry(CheetahBuiltEntries *entries,
                             uint32_t index_no,
                             uint8_t check_unique,
                             CheetahBytes key,
                             CheetahBytes payload);

// Gets the key and the bytes, including large values, of the row that was refused as a duplicate.
void cheetah_row_refused_by_build(const CheetahBuild *build, CheetahBytes *key, CheetahBytes *row);

// Frees a build. Indexes that no definition has taken over are dropped.
void cheetah_free_build(CheetahBuild *build);

// Describes the keys of an open table, with one encoding for each index, and the statistics
// options of its definition. `places`: the number of places to sample in an index; 0: the setting
// of the database. `recalc`: a `CheetahRecalc`.
int32_t cheetah_describe_keys(const CheetahDb *db,
                              const CheetahTable *table,
                              const CheetahKeyEncoding *keys,
                              size_t key_count,
                              uint32_t places,
                              uint8_t recalc,
                              uint8_t is_temporary);

// Sets whether statistics are collected automatically, and the number of places that are sampled
// in each index. Options in the definition of a table override these settings.
void cheetah_set_statistics(const CheetahDb *db, uint8_t by_themselves, uint32_t places);

// Collects statistics of all indexes and stores them.
int32_t cheetah_analyze_table(const CheetahDb *db, const CheetahTable *table);

// Returns a number that changes whenever the table's statistics change.
uint64_t cheetah_statistics_version(const CheetahTable *table);

// Returns the approximate number of rows that have the same values in the first `parts` parts of
// an index; 0 if it is unknown.
uint64_t cheetah_rows_per_value(const CheetahTable *table, uint32_t index_no, uint32_t parts);

// Opens a cursor over an index. It is not on an entry yet. `read`: a `CheetahRead`; `on_locked`: a
// `CheetahOnLocked`. The cursor is valid until the end of its transaction.
int32_t cheetah_open_cursor(CheetahTxn *txn,
                            const CheetahTable *table,
                            uint32_t index_no,
                            uint8_t read,
                            uint8_t on_locked,
                            CheetahCursor **cursor);

// Frees a cursor.
void cheetah_close_cursor(CheetahCursor *cursor);

// Places the cursor. A locking cursor does not move past `end`.
int32_t cheetah_seek(CheetahCursor *cursor,
                     uint8_t mode,
                     CheetahBytes key,
                     CheetahSeekEnd end,
                     CheetahFound *found);

// Returns whether the current row was read without a lock, in its last committed version, because
// another transaction has locked it.
uint8_t cheetah_is_unlocked(const CheetahCursor *cursor);

// Waits for the lock of the current row, which was read without a lock, and reads the row again.
// Moves to the next row if it was deleted.
int32_t cheetah_read_again(CheetahCursor *cursor, CheetahFound *found);

// Releases the lock of the current row, which does not match the statement. Has an effect only
// under READ COMMITTED, and only if the transaction had not locked the row before.
void cheetah_unlock_row(CheetahCursor *cursor);

// Removes the `end` that the last seek set.
void cheetah_forget_end(CheetahCursor *cursor);

// Moves to the next entry.
int32_t cheetah_next(CheetahCursor *cursor, CheetahFound *found);

// Moves forward over at most `room` rows of the clustered index, and returns them. `room` must not
// be 0. Returns more than one row only if the cursor reads a snapshot. The cursor is then on the
// last of these rows.
int32_t cheetah_next_rows(CheetahCursor *cursor, CheetahFound *found, size_t room, size_t *count);

// Moves to the previous entry.
int32_t cheetah_prev(CheetahCursor *cursor, CheetahFound *found);

// Reads the stored row of the current entry.
int32_t cheetah_current_row(CheetahCursor *cursor, CheetahBuffer *row);

// Opens (or creates) a database, recovers it, and starts its background threads.
int32_t cheetah_open(const CheetahConfig *config, CheetahDb **db);

// Adjusts settings that contradict each other, and passes each adjustment as text to the sink.
void cheetah_adjust_settings(CheetahSettings *settings, CheetahTextSink sink, void *context);

// Stops the background threads, makes a checkpoint, and closes the database. Always frees the
// handle.
int32_t cheetah_close(CheetahDb *db);

// Makes a checkpoint: writes all changes so far to their places on disk.
int32_t cheetah_checkpoint(const CheetahDb *db);

// Sets when a commit is durable: with `mode` 1 before it returns, with 0 or 2 within a second.
void cheetah_set_flush_log_at_commit(const CheetahDb *db, uint8_t mode);

// Sets the memory of the engine to `bytes`, or to the minimum that it needs. Returns the new size.
uint64_t cheetah_set_buffer_pool_size(const CheetahDb *db, uint64_t bytes);

// Sets the I/O operations per second of background work.
void cheetah_set_io_capacity(const CheetahDb *db, uint32_t operations_per_second);

// Sets the bytes of images per second that background threads read to find damage; 0: none. Starts
// a new pass over all images.
void cheetah_set_scrub_rate(const CheetahDb *db, uint64_t bytes_per_second);

// Sets whether changes may be buffered while their leaf is not in memory.
void cheetah_set_change_buffering(const CheetahDb *db, uint8_t is_on);

// Passes all counters to the sink.
int32_t cheetah_status(const CheetahDb *db, CheetahCounterSink sink, void *context);

// Passes a readable description of the engine's state to the sink.
int32_t cheetah_status_text(const CheetahDb *db, CheetahTextSink sink, void *context);

// Sets the sink for errors that no call can return, such as errors in background threads. It is
// called from any thread until the database is closed.
void cheetah_announce_background_errors(const CheetahDb *db, CheetahTextSink sink, void *context);

// Passes the names of all tables to the sink.
int32_t cheetah_table_names(const CheetahDb *db, CheetahTextSink sink, void *context);

// Chooses how a table is encrypted. Passes each fault of the options as text to the sink.
int32_t cheetah_choose_encryption(const CheetahEncryptionWords *words,
                                  CheetahTextSink sink,
                                  void *context,
                                  CheetahEncryption *encryption);

// Sets whether tables without ENCRYPTED in their definition are encrypted. Returns `Key`, and
// changes nothing, if a key is missing.
int32_t cheetah_set_encrypt_tables(const CheetahDb *db, uint8_t is_on);

// Sets whether the log is encrypted. The log continues in a new file. Returns `Key`, and changes
// nothing, if a key is missing.
int32_t cheetah_set_encrypt_log(const CheetahDb *db, uint8_t is_on);

// Sets the number of versions by which a page's key may be older than the newest version before
// the page is re-encrypted; 0: pages are not re-encrypted.
void cheetah_set_rotate_key_age(const CheetahDb *db, uint32_t versions);

// Passes the encryption of each table to the sink.
int32_t cheetah_list_encryption(const CheetahDb *db, CheetahTableEncryptionSink sink, void *context);

// Begins an estimate of the size of a table with this specification. The caller adds runs of
// adjacent rows or entries in key order, from places spread over each index. The first run starts
// at the start of the index. Rows include their large values.
int32_t cheetah_new_estimate(const CheetahDb *db, const CheetahTableSpec *spec, CheetahEstimate **estimate);

// Returns the number of runs to add for each index.
uint32_t cheetah_estimate_runs(const CheetahEstimate *estimate);

// Begins a run: the next rows or entries of the index come from a new place.
int32_t cheetah_estimate_run(CheetahEstimate *estimate, uint32_t index_no, uint8_t from_start);

// Reports that the run has reached the end of its index.
int32_t cheetah_estimate_end(CheetahEstimate *estimate, uint32_t index_no);

// Adds a row. `more` becomes 1 if the run needs more rows.
int32_t cheetah_estimate_row(CheetahEstimate *estimate, CheetahBytes key, CheetahBytes row, uint8_t *more);

// Adds an entry of a secondary index. `more` becomes 1 if the run needs more entries.
int32_t cheetah_estimate_entry(CheetahEstimate *estimate,
                               uint32_t index_no,
                               CheetahBytes key,
                               CheetahBytes clustered,
                               CheetahBytes payload,
                               uint8_t *more);

// Passes to the sink the estimated size, in each format, of a table with `rows` rows. The format
// that compresses least comes first.
int32_t cheetah_weigh(CheetahEstimate *estimate, uint64_t rows, CheetahWeightSink sink, void *context);

// Frees an estimate.
void cheetah_free_estimate(CheetahEstimate *estimate);

// Returns the number of changes of definitions since the startup.
uint64_t cheetah_definition_changes(const CheetahDb *db);

// Sets the function that converts table names to readable names. It is called from any thread
// until the database is closed. It gets the part of the name that follows the database.
void cheetah_show_names_with(const CheetahDb *db, CheetahShowName show, void *context);

// Records a refusal by a constraint for the status of the engine. A long text is truncated.
void cheetah_note_refused_by_constraint(const CheetahDb *db, CheetahBytes text);

// Returns the constraints of a table, and the indexes that they use; null if there are none, or
// after a panic.
CheetahForeignKeys *cheetah_foreign_keys(const CheetahDb *db, const CheetahTable *table);

// Lists the constraints that a new definition adds to the child table; null if there are none.
int32_t cheetah_foreign_keys_to_add(const CheetahDb *db,
                                    const CheetahTable *table,
                                    const CheetahConstraints *constraints,
                                    CheetahForeignKeys **list);

// Frees a list of constraints.
void cheetah_free_foreign_keys(CheetahForeignKeys *list);

// Returns the number of constraints in which the table has this `CheetahRole`.
size_t cheetah_foreign_key_count(const CheetahForeignKeys *list, uint8_t role);

// Gets one constraint of the list. Its pointers are valid until the list is freed.
void cheetah_foreign_key(const CheetahForeignKeys *list,
                         uint8_t role,
                         size_t no,
                         CheetahForeignKey *constraint);

// Passes all constraints to the sink, ordered by child and name.
int32_t cheetah_list_foreign_keys(const CheetahDb *db, CheetahForeignKeySink sink, void *context);

// Searches for a row of the other table: the parent for a child, the child for a parent. `key`:
// the columns of the constraint, encoded as in the other table's index. Locks the row shared.
// Returns `End` if no row exists, and `NoSuchTable` if the constraints must be loaded again.
int32_t cheetah_find_reference(CheetahTxn *txn,
                               const CheetahForeignKeys *list,
                               uint8_t role,
                               size_t no,
                               CheetahBytes key);

// Opens a cursor over the parent's index of a constraint in which the table is the child. The
// cursor reads a snapshot. Returns `NoSuchTable` if the constraints must be loaded again.
int32_t cheetah_open_parents(CheetahTxn *txn,
                             const CheetahForeignKeys *list,
                             size_t no,
                             CheetahCursor **cursor);

// Opens a cursor over the child's index of a constraint in which the table is the parent. The
// cursor takes exclusive locks on the rows that it reads.
int32_t cheetah_open_children(CheetahTxn *txn,
                              const CheetahForeignKeys *list,
                              size_t no,
                              CheetahCursor **cursor);

// Chooses the codec of a table and its level. Passes the faults of the options to the sink as
// readable messages. `strict`: invalid options are refused instead of ignored.
int32_t cheetah_choose_format(const CheetahFormatWords *words,
                              uint8_t strict,
                              CheetahTextSink sink,
                              void *context,
                              CheetahFormat *format);

// Returns the `CheetahRowFormat` to show for a table with this ROW_FORMAT and KEY_BLOCK_SIZE.
uint8_t cheetah_shown_row_format(uint8_t row_format, uint64_t key_block_size);

// Returns the maximum size of a word in bytes.
uint32_t cheetah_word_bytes_max(void);

// Returns the number of full-text indexes of a table.
size_t cheetah_fulltext_count(const CheetahTable *table);

// Gets the name and the caller's bytes of the index at position `no`, from 0. They stay valid
// until the table is closed.
int32_t cheetah_fulltext_index(const CheetahTable *table, size_t no, CheetahFulltextSpec *index);

// Returns an empty list of words.
CheetahWords *cheetah_new_words(void);

// Frees a list of words.
void cheetah_free_words(CheetahWords *words);

// Removes all words from the list, but keeps its memory.
void cheetah_clear_words(CheetahWords *words);

// Adds a word of a row. `word`: its weights, followed by the ending that all words of the index
// share. No word may be a prefix of another word, or longer than `cheetah_word_bytes_max`.
// `ordinal`: the word's number among all words of the row. `column`: the number of its column in
// the index.
void cheetah_add_word(CheetahWords *words, CheetahBytes word, uint32_t ordinal, uint8_t column);

// Writes the words of a new row into the index at position `no`. Must be called after the insert
// of the row, by the same transaction, even if the row has no words: the row's lock keeps other
// transactions out.
int32_t cheetah_insert_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes key,
                             CheetahWords *words);

// Removes the words of a deleted row.
int32_t cheetah_delete_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes key,
                             CheetahWords *words);

// Writes the differences between the words of a row before and after a change.
int32_t cheetah_change_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes old_key,
                             CheetahWords *old_words,
                             CheetahBytes key,
                             CheetahWords *words);

// Begins a load of the words of loaded rows; see `cheetah_begin_load`.
int32_t cheetah_begin_load_of_words(CheetahTxn *txn,
                                    const CheetahTable *table,
                                    size_t no,
                                    uint8_t to_commit,
                                    CheetahLoad **load);

// Loads the words of a row.
int32_t cheetah_load_words(CheetahTxn *txn, CheetahLoad *load, CheetahBytes key, CheetahWords *words);

// Creates postings for an index that a change of the definition will add. If the change does not
// take them over, they are dropped when the handle is freed.
int32_t cheetah_new_postings(const CheetahDb *db, const CheetahTable *table, CheetahPostings **made);

// Begins a load of new postings. The caller must hold the only handle to them.
int32_t cheetah_begin_load_of_postings(CheetahTxn *txn, const CheetahPostings *made, CheetahLoad **load);

// Frees a handle of postings.
void cheetah_free_postings(CheetahPostings *made);

// Finds and ranks the matching rows; see `Transaction::search`.
int32_t cheetah_search(CheetahTxn *txn,
                       const CheetahTable *table,
                       size_t no,
                       const CheetahSearch *search,
                       CheetahMatches **matches);

// Passes a word to the sink. If the result is not `Ok`, the caller must stop and return it.
int32_t cheetah_tell_word(CheetahWordSink *sink,
                          CheetahBytes weights,
                          uint8_t kind,
                          uint32_t ordinal,
                          uint8_t column);

// Returns the number of matching rows.
uint64_t cheetah_match_count(const CheetahMatches *matches);

// Reads the next row that was found, with its key and rank, the best row first. Locks the row if
// the search is for a locking read. Skips rows that were deleted or no longer match, and with
// `skips_locked` also rows that other transactions have locked. Returns `End` after the last row.
// The key is valid until the next call. See `Transaction::next_match`.
int32_t cheetah_next_match(CheetahTxn *txn,
                           const CheetahTable *table,
                           size_t no,
                           const CheetahSearch *search,
                           CheetahMatches *matches,
                           uint8_t skips_locked,
                           CheetahBuffer *row,
                           CheetahBytes *key,
                           float *rank);

// Makes the next read return the best row again.
void cheetah_rewind_matches(CheetahMatches *matches);

// Gets the rank of a row. In a locking read, its latest version is ranked. Returns `RowNotFound`,
// and rank 0, if the row does not match. See `Transaction::rank_now`.
int32_t cheetah_rank_now(CheetahTxn *txn,
                         const CheetahTable *table,
                         size_t no,
                         const CheetahSearch *search,
                         CheetahMatches *matches,
                         CheetahBytes key,
                         float *rank);

// Frees the result of a search.
void cheetah_free_matches(CheetahMatches *matches);

// Compares the postings of a full-text index with the words of the rows. Passes a description of
// the difference to the sink, if there is one. Uses only `end`, `words_of_row` and `context` of
// `search`.
int32_t cheetah_check_words(CheetahTxn *txn,
                            const CheetahTable *table,
                            size_t no,
                            const CheetahSearch *search,
                            CheetahTextSink sink,
                            void *sink_context);

// Gets the bytes on disk of the postings of all full-text indexes. An index that is not on disk
// yet counts with its bytes in memory.
int32_t cheetah_fulltext_bytes(const CheetahTable *table, uint64_t *bytes);

// Returns whether an index is disabled. A disabled index cannot be read, and rows must not have
// entries for it.
uint8_t cheetah_index_is_disabled(const CheetahTable *table, uint32_t index_no);

// Disables indexes, except unique ones; see `Transaction::disable_indexes`. Afterwards the table
// must be opened again. `only_if_empty`: if 1 and the table has rows, returns `End` and changes
// nothing. Locks the whole table. The change is durable on return.
int32_t cheetah_disable_indexes(CheetahTxn *txn,
                                const CheetahTable *table,
                                const uint32_t *indexes,
                                size_t count,
                                uint8_t only_if_empty);

// Builds the disabled indexes and enables them, see `Transaction::enable_indexes`. `entries`
// computes the entries of a row. `progress` is called from time to time. Afterwards the table must
// be opened again. Locks the whole table. The change is durable on return.
int32_t cheetah_enable_indexes(CheetahTxn *txn,
                               const CheetahTable *table,
                               CheetahExpectedEntries entries,
                               void *context,
                               CheetahProgress progress,
                               void *progress_context);

// Sets the ID of the transaction's connection.
void cheetah_set_connection(CheetahTxn *txn, uint64_t connection);

// Sets the number of tables that the connection's current statement uses.
void cheetah_set_tables_in_use(CheetahTxn *txn, uint32_t count);

// Passes all open transactions to the sink.
int32_t cheetah_list_transactions(const CheetahDb *db, CheetahTxnInfoSink sink, void *context);

// Passes all locks and waiting lock requests to the sink.
int32_t cheetah_list_locks(const CheetahDb *db, CheetahLockInfoSink sink, void *context);

// Passes all lock waits to the sink.
int32_t cheetah_list_lock_waits(const CheetahDb *db, CheetahLockWaitSink sink, void *context);

// Sets the function that shows values of keys in reports and views. It is called from any thread
// until the database is closed. Values without a readable form are shown in hexadecimal.
void cheetah_show_values_with(const CheetahDb *db, CheetahShowValue show, void *context);

// Sets the function that returns the date and time for reports. It is called from any thread until
// the database is closed.
void cheetah_tell_time_with(const CheetahDb *db, CheetahTellTime tell, void *context);

// Sets the sink for reports of deadlocks. It is called in the thread of the victim, until the
// database is closed.
void cheetah_announce_deadlocks(const CheetahDb *db, CheetahTextSink sink, void *context);

// Sets the function that describes connections in reports. It is called from any thread until the
// database is closed.
void cheetah_describe_connections(const CheetahDb *db, CheetahDescribe describe, void *context);

// Begins a load of a table. If `to_commit` is 0, only the caller may use the table (see
// `Transaction::begin_load`). Otherwise the loaded rows become visible when the transaction
// commits (see `Transaction::begin_load_to_commit`). `load` becomes null if the table cannot be
// loaded. If a load is freed before it is finished, the table stays empty. If `cheetah_load` or
// `cheetah_finish_load` returns `DuplicateKey`, `cheetah_refused_row` returns the duplicate row.
int32_t cheetah_begin_load(CheetahTxn *txn, const CheetahTable *table, uint8_t to_commit, CheetahLoad **load);

// Loads a row with all its secondary entries.
int32_t cheetah_load(CheetahTxn *txn, CheetahLoad *load, const CheetahRow *row);

// Finishes a load, and calls `progress` from time to time. If the load began with `to_commit` 0,
// the table must be opened again afterwards.
int32_t cheetah_finish_load(CheetahTxn *txn, CheetahLoad *load, CheetahProgress progress, void *context);

// Gets the key and the bytes, including large values, of the row that was refused as a duplicate.
void cheetah_refused_row(const CheetahLoad *load, CheetahBytes *key, CheetahBytes *row);

// Frees a load. If it was not finished, the table stays empty.
void cheetah_free_load(CheetahLoad *load);

// Inserts a row with all its secondary entries.
int32_t cheetah_insert(CheetahTxn *txn, const CheetahTable *table, const CheetahRow *row);

// Replaces the row at `old_key`. See `Transaction::update` for the entries to pass.
int32_t cheetah_update(CheetahTxn *txn,
                       const CheetahTable *table,
                       CheetahBytes old_key,
                       const CheetahRow *row,
                       const CheetahEntry *old_secondary,
                       size_t old_secondary_count);

// Deletes the row at `key` with all its secondary entries.
int32_t cheetah_delete(CheetahTxn *txn,
                       const CheetahTable *table,
                       CheetahBytes key,
                       const CheetahEntry *old_secondary,
                       size_t old_secondary_count);

// Reads the stored row at `key`. `read`: a `CheetahRead`.
int32_t cheetah_get(CheetahTxn *txn,
                    const CheetahTable *table,
                    CheetahBytes key,
                    uint8_t read,
                    CheetahBuffer *row);

// Gets the number of rows that a consistent read of the table finds. Returns `End` if only a scan
// can count them.
int32_t cheetah_count(CheetahTxn *txn, const CheetahTable *table, uint64_t *count);

// Reads the large value that a locator in a stored row refers to.
int32_t cheetah_fetch_large(CheetahTxn *txn,
                            const CheetahTable *table,
                            CheetahBytes locator,
                            CheetahBuffer *value);

// Returns an empty buffer.
CheetahBuffer *cheetah_new_buffer(void);

// Frees a buffer.
void cheetah_free_buffer(CheetahBuffer *buffer);

// Returns the bytes that the engine last wrote to the buffer.
CheetahBytes cheetah_buffer_bytes(const CheetahBuffer *buffer);

// Pins the state of the database for the next `cheetah_create_snapshot`. Returns `End` if pinning
// is disabled (`cheetah_set_snapshot_max_age`). Takes milliseconds, and one sync of the log.
int32_t cheetah_pin_snapshot(const CheetahDb *db, const CheetahNote *notes, size_t notes_count);

// Writes a snapshot of the pinned state, or of the current state if none is pinned, into a new
// directory. Blocks for I/O until all files are written.
int32_t cheetah_create_snapshot(const CheetahDb *db,
                                const CheetahSnapshotOrder *order,
                                CheetahSnapshot *snapshot);

// Sets the seconds after which a pinned state is released; 0: states are not pinned.
void cheetah_set_snapshot_max_age(const CheetahDb *db, uint64_t seconds);

// Sets the functions to call at stages, in the threads of all databases of the process, until the
// process ends. Later calls have no effect.
void cheetah_observe_stages(CheetahStageBegins begins, CheetahStageEnds ends, CheetahConnection connection);

// Begins counting the calling thread's work on pages, until `cheetah_end_page_work` is called with
// the same `since`. Counts may be nested.
void cheetah_begin_page_work(CheetahPageWork *since);

// Puts the thread's work since `since` into `done`, and ends this count.
void cheetah_end_page_work(const CheetahPageWork *since, CheetahPageWork *done);

// Passes the counters of encoded and decoded images to the sink, one item for each maximum image
// size. If `restart` is 1, resets the counters to zero.
int32_t cheetah_list_image_work(const CheetahDb *db,
                                uint8_t restart,
                                CheetahImageWorkSink sink,
                                void *context);

// Like `cheetah_list_image_work`, with one item for each index.
int32_t cheetah_list_index_image_work(const CheetahDb *db,
                                      uint8_t restart,
                                      CheetahImageWorkSink sink,
                                      void *context);

// Gets the statistics of the buffer pool.
int32_t cheetah_pool_stats(const CheetahDb *db, CheetahPoolStats *stats);

// Passes the predicted misses with more or less memory to the sink. Passes nothing if too few
// pages were requested for a prediction.
int32_t cheetah_list_cache_curve(const CheetahDb *db, CheetahCurvePointSink sink, void *context);

// Passes all usable tables with their sizes to the sink.
int32_t cheetah_list_table_sizes(const CheetahDb *db, CheetahTableSizesSink sink, void *context);

// Passes all indexes of usable tables with their sizes to the sink.
int32_t cheetah_list_index_sizes(const CheetahDb *db, CheetahIndexSizesSink sink, void *context);

// Creates a table.
int32_t cheetah_create_table(const CheetahDb *db,
                             const CheetahTableSpec *spec,
                             const CheetahConstraints *constraints);

// Returns the size up to which stored rows never have values out of line, in tables whose
// clustered keys have at most `max_key_bytes` bytes.
uint64_t cheetah_inline_row_bytes(uint32_t max_key_bytes);

// Drops a table, unless other tables refer to it. `referenced`: a `CheetahReferenced`.
int32_t cheetah_drop_table(const CheetahDb *db, CheetahBytes name, uint8_t referenced);

// Renames a table. `again`: repeats a rename that a crash interrupted and that may be done
// already.
int32_t cheetah_rename_table(const CheetahDb *db, CheetahBytes source, CheetahBytes target, uint8_t again);

// Records that one part of a larger table was removed. The remaining parts are the tables whose
// names begin with `prefix`; see `Db::note_remainders`.
void cheetah_note_remainders(const CheetahDb *db, CheetahBytes prefix);

// Truncates a table, unless other tables refer to it. `referenced`: a `CheetahReferenced`. Open
// handles of the table no longer work afterwards.
int32_t cheetah_truncate_table(const CheetahDb *db, CheetahBytes name, uint8_t referenced);

// Opens a table.
int32_t cheetah_open_table(const CheetahDb *db, CheetahBytes name, CheetahTable **table);

// Returns whether the table must be opened again: it was dropped, truncated, or replaced by a
// load.
uint8_t cheetah_is_dropped(const CheetahTable *table);

// Closes a table.
void cheetah_close_table(CheetahTable *table);

// Returns the caller's own bytes from the table's definition.
CheetahBytes cheetah_table_extra(const CheetahTable *table);

// Returns the exact number of rows.
uint64_t cheetah_row_count(const CheetahTable *table);

// Returns the time of the last committed change of the table, in the seconds of
// `cheetah_set_time`; 0 if there was none since the database was opened.
uint64_t cheetah_changed_at(const CheetahTable *table);

// Returns the next auto-increment value.
uint64_t cheetah_auto_increment(const CheetahTable *table);

// Sets the next auto-increment value, durably.
int32_t cheetah_set_auto_increment(const CheetahDb *db, const CheetahTable *table, uint64_t next);

// Returns the key for the next row of a table with a hidden key. The key is stored big-endian.
uint64_t cheetah_next_hidden_key(const CheetahTable *table);

// Gets the sizes of the first `count` indexes.
int32_t cheetah_index_stats(const CheetahTable *table, CheetahIndexStats *stats, size_t count);

// Estimates the number of entries with stored keys in `low..high`. A null pointer means no bound.
int32_t cheetah_records_in_range(const CheetahTable *table,
                                 uint32_t index_no,
                                 const CheetahBytes *low,
                                 const CheetahBytes *high,
                                 uint64_t *count);

// Walks the whole current table, compares every index with the entries that `expected` computes,
// and passes a description of each fault to the sink. `repeats` returns 1 for a payload that
// repeats what the key of its entry states: it may be missing. Takes no locks. Blocks for I/O.
int32_t cheetah_check_table(CheetahTxn *txn,
                            const CheetahTable *table,
                            CheetahExpectedEntries expected,
                            CheetahPayloadTest repeats,
                            void *context,
                            CheetahTextSink sink,
                            void *sink_context);

// Like `cheetah_check_table`, but checks only the pages above the leaves.
int32_t cheetah_check_inner_pages(CheetahTxn *txn,
                                  const CheetahTable *table,
                                  CheetahTextSink sink,
                                  void *sink_context);

// Adds an expected entry of the current row.
void cheetah_expect_entry(CheetahEntrySink *sink, uint32_t index_no, CheetahBytes key, CheetahBytes payload);

// Sets the time of the statement that makes the next changes, in seconds; 0: its changes do not
// affect `cheetah_changed_at`.
void cheetah_set_time(CheetahTxn *txn, uint64_t seconds);

// Declares that the transaction's statement created the table and now fills it: snapshots see the
// table only after the commit.
void cheetah_fill_new_table(CheetahTxn *txn, const CheetahTable *table);

// Registers the caller's session with the transaction. When the transaction waits, `report` is
// called with this session and each registered session that it waits for: see
// `Transaction::report_waits`. The session stays registered until the transaction is freed or
// prepared. `report` must neither wait nor use the engine.
void cheetah_report_waits(CheetahTxn *txn, void *session, CheetahWaitReport report);

// Sets the function that returns which of two sessions in a deadlock must commit after the other.
// It is called from any thread until the database is closed: see `Db::set_victim_choice`.
void cheetah_set_victim_choice(const CheetahDb *db, CheetahLaterSession later);

// Returns a new transaction; null after a panic. `interrupted` is called until the transaction is
// freed: see `Transaction::interrupt_when`.
CheetahTxn *cheetah_begin(const CheetahDb *db, CheetahInterrupted interrupted, void *context);

// Rolls back uncommitted changes, unless the transaction is prepared, and frees the handle.
void cheetah_free_txn(CheetahTxn *txn);

// Sets the isolation level (`CheetahIsolation`) of this and later transactions of the handle. Must
// be called before the first read or write.
int32_t cheetah_set_isolation(CheetahTxn *txn, uint8_t level);

// Sets whether locking or changing a row that has changed since the transaction's snapshot is an
// error. Must be called before the first read or write, like `cheetah_set_isolation`.
void cheetah_set_snapshot_isolation(CheetahTxn *txn, uint8_t is_on);

// Sets the timeout of lock waits.
void cheetah_set_lock_wait(CheetahTxn *txn, uint64_t timeout_ns);

// Takes the snapshot of the transaction now, if the isolation level uses one snapshot for the
// whole transaction.
int32_t cheetah_take_snapshot(CheetahTxn *txn);

// Ends a statement and releases its resources. Its cursors must not be used afterwards.
void cheetah_end_statement(CheetahTxn *txn);

// Reserves numbers of the table's auto-increment counter that increment and offset allow.
// `numbers` contains the requested count, and receives the reserved numbers; its `count` becomes 0
// if there is none up to `largest`. Waits for statements that reserve the counter exclusively
// (`bulk`). With `bulk` this transaction reserves it exclusively until the statement ends.
int32_t cheetah_reserve_auto_increment(CheetahTxn *txn,
                                       const CheetahTable *table,
                                       uint8_t bulk,
                                       CheetahNumbers *numbers);

// Moves the auto-increment counter past `used`, to the next number that increment and offset
// allow, unless the counter is already higher. The table's next change logs the counter. The
// counter may exceed the column's largest number: this shows the server that all numbers are used.
// `bulk`: see `cheetah_reserve_auto_increment`.
int32_t cheetah_advance_auto_increment(CheetahTxn *txn,
                                       const CheetahTable *table,
                                       uint64_t used,
                                       uint64_t increment,
                                       uint64_t offset,
                                       uint8_t bulk);

// Commits the transaction and releases all its locks.
int32_t cheetah_commit(CheetahTxn *txn);

// Rolls back the transaction and releases all its locks.
int32_t cheetah_rollback(CheetahTxn *txn);

// Returns a savepoint at the current point of the transaction.
CheetahSavepoint cheetah_savepoint(CheetahTxn *txn);

// Rolls back all changes made after the savepoint. Keeps the locks.
int32_t cheetah_rollback_to(CheetahTxn *txn, const CheetahSavepoint *savepoint);

// Returns whether the transaction holds a lock that other transactions may wait for.
uint8_t cheetah_holds_locks(const CheetahTxn *txn);

// Locks a table until the end of the transaction. Returns `NoSuchTable` if the table was dropped
// or truncated since it was opened.
int32_t cheetah_lock_table(CheetahTxn *txn, const CheetahTable *table, uint8_t exclusive);

// Locks a table exclusively until the end of the transaction, but only if that requires no wait.
int32_t cheetah_try_lock_table(CheetahTxn *txn, const CheetahTable *table);

// Prepares the transaction: afterwards it can be committed or rolled back, even after a crash. The
// only calls allowed then are `cheetah_commit_ordered`, `cheetah_commit`, `cheetah_rollback` and
// `cheetah_free_txn`. The last one frees only the handle: the transaction stays prepared until
// `cheetah_commit_prepared` or `cheetah_rollback_prepared`.
int32_t cheetah_prepare(CheetahTxn *txn, const CheetahXid *xid);

// Assigns a prepared transaction its position in the order of commits and commits it, without I/O,
// from any thread. `cheetah_commit` must follow, and returns whether the commit succeeded.
void cheetah_commit_ordered(CheetahTxn *txn);

// Passes to the sink the XIDs of at most `count` transactions that were prepared before the
// database was opened, each XID only once. Returns their number.
uint32_t cheetah_recover(const CheetahDb *db, uint32_t count, CheetahXidSink sink, void *context);

// Commits a prepared transaction without a handle. Returns `UnknownXid` if no prepared transaction
// has this name.
int32_t cheetah_commit_prepared(const CheetahDb *db, const CheetahXid *xid);

// Rolls back a prepared transaction without a handle. Returns `UnknownXid` if no prepared
// transaction has this name.
int32_t cheetah_rollback_prepared(const CheetahDb *db, const CheetahXid *xid);

// Waits until no prepared transaction without a handle has locked the table with this name. Must
// be called before a table is dropped or truncated.
int32_t cheetah_wait_for_prepared(const CheetahDb *db,
                                  CheetahBytes name,
                                  uint64_t timeout_ns,
                                  CheetahInterrupted interrupted,
                                  void *context);

// Makes all commits so far durable, in any flush mode.
int32_t cheetah_sync_log(const CheetahDb *db);

// Passes the latency histograms of all operations to the sink, bucket by bucket, the shortest
// times first. Empty buckets are left out.
int32_t cheetah_list_latencies(const CheetahDb *db, CheetahLatencySink sink, void *context);

// Passes the stalls of each reason to the sink, including reasons without stalls.
int32_t cheetah_list_stalls(const CheetahDb *db, CheetahStallSink sink, void *context);

// Sets the minimum duration of reported stalls; 0: no reports. See `Db::set_stall_warning_ns`.
void cheetah_set_stall_warning(const CheetahDb *db, uint64_t warning_ns);

// Sets the sink for reports of long stalls. It is called at most once per second, in a thread of
// the engine, until the database is closed.
void cheetah_announce_stalls(const CheetahDb *db, CheetahTextSink sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CHEETAH_H */
