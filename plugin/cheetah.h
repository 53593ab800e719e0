/* SPDX-License-Identifier: GPL-2.0-only */
/* The C ABI of the Cheetah engine, made from crates/cheetah-ffi/src by
   `UPDATE=1 cargo test -p cheetah-ffi --test header`: change the declarations and comments there.

   Every function that returns int32_t returns a CheetahCode. cheetah_last_error has the message of
   the last failure of the calling thread. A panic never crosses: it becomes CHEETAH_CODE_PANIC.
   Bytes that a function returns stay valid until the next call with the same handle. */


#ifndef CHEETAH_H
#define CHEETAH_H

#include <stddef.h>
#include <stdint.h>

// What a call came to.
typedef enum {
  // It succeeded.
  CHEETAH_CODE_OK = 0,
  // There is no (further) entry.
  CHEETAH_CODE_END = 1,
  // A unique key exists already.
  CHEETAH_CODE_DUPLICATE_KEY = 2,
  // A table of that name exists already.
  CHEETAH_CODE_TABLE_EXISTS = 3,
  // There is no such table.
  CHEETAH_CODE_NO_SUCH_TABLE = 4,
  // There is no such row.
  CHEETAH_CODE_ROW_NOT_FOUND = 5,
  // A lock was not to be had in time.
  CHEETAH_CODE_LOCK_TIMEOUT = 6,
  // Waiting would have been for ever.
  CHEETAH_CODE_DEADLOCK = 7,
  // The caller asked to stop.
  CHEETAH_CODE_INTERRUPTED = 8,
  // A bound was exceeded.
  CHEETAH_CODE_LIMIT = 9,
  // No space.
  CHEETAH_CODE_DISK_FULL = 10,
  // A format of another version.
  CHEETAH_CODE_UNSUPPORTED = 11,
  // Damaged bytes.
  CHEETAH_CODE_CORRUPTION = 12,
  // The operating system refused.
  CHEETAH_CODE_IO = 13,
  // The engine has stopped.
  CHEETAH_CODE_FATAL = 14,
  // A defect of the engine: it panicked.
  CHEETAH_CODE_PANIC = 15,
  // A commit was refused and rolled back, or a rollback goes on in the background.
  CHEETAH_CODE_ROLLBACK = 16,
  // The row has changed since the transaction's snapshot.
  CHEETAH_CODE_RECORD_CHANGED = 17,
  // Locks take all the memory they may.
  CHEETAH_CODE_LOCK_TABLE_FULL = 18,
  // Somebody else holds a lock, and the caller does not wait.
  CHEETAH_CODE_LOCKED = 19,
  // The table has been emptied or rebuilt since the transaction's snapshot.
  CHEETAH_CODE_TABLE_CHANGED = 20,
  // No prepared transaction of that name waits.
  CHEETAH_CODE_UNKNOWN_XID = 21,
  // A constraint between tables cannot be.
  CHEETAH_CODE_CANNOT_ADD_CONSTRAINT = 22,
  // Its name is another one's.
  CHEETAH_CODE_CONSTRAINT_EXISTS = 23,
  // The table is the parent of others.
  CHEETAH_CODE_IS_REFERENCED = 24,
  // The index that the message names serves a constraint.
  CHEETAH_CODE_INDEX_IS_NEEDED = 25,
  // A full-text query cannot be understood.
  CHEETAH_CODE_SEARCH_SYNTAX = 26,
  // A phrase of a full-text query has too many words.
  CHEETAH_CODE_SEARCH_PHRASE = 27,
  // A full-text query takes too much memory, or is nested too deeply.
  CHEETAH_CODE_SEARCH_MEMORY = 28,
  // A key of the server's key service is missing, or is another one.
  CHEETAH_CODE_KEY = 29,
} CheetahCode;

// The codec of a table's pages.
typedef enum {
  // Pages are stored as they are.
  CHEETAH_COMPRESSION_NONE = 0,
  // LZ4.
  CHEETAH_COMPRESSION_LZ4 = 1,
  // Zstandard, at a level.
  CHEETAH_COMPRESSION_ZSTD = 2,
} CheetahCompression;

// The word behind ENCRYPTED.
typedef enum {
  // There is none: the server's variable decides.
  CHEETAH_ENCRYPTED_DEFAULT = 0,
  // YES.
  CHEETAH_ENCRYPTED_YES = 1,
  // NO.
  CHEETAH_ENCRYPTED_NO = 2,
} CheetahEncrypted;

// The word behind ROW_FORMAT; the numbers are the server's.
typedef enum {
  // There is none, or DEFAULT.
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

// Where a seek puts a cursor, for a prefix p of stored keys.
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

// Where a cursor that locks goes no further. Those with a key of their own: forward only.
typedef enum {
  // There is no end.
  CHEETAH_END_NONE = 0,
  // With the keys that begin with the one that is sought.
  CHEETAH_END_PREFIX = 1,
  // Before the key.
  CHEETAH_END_BELOW = 2,
  // With the keys that begin with the key.
  CHEETAH_END_UP_TO = 3,
  // As `Prefix`, for a whole key of the clustered index.
  CHEETAH_END_ROW = 4,
} CheetahEnd;

// The isolation level of a transaction.
typedef enum {
  // Each statement has a snapshot.
  CHEETAH_ISOLATION_READ_COMMITTED = 0,
  // The transaction has one.
  CHEETAH_ISOLATION_REPEATABLE_READ = 1,
  // As if transactions ran one after the other.
  CHEETAH_ISOLATION_SERIALIZABLE = 2,
} CheetahIsolation;

// How a row or an index is read.
typedef enum {
  // As the isolation level says.
  CHEETAH_READ_CONSISTENT = 0,
  // The newest committed rows, locked against changes.
  CHEETAH_READ_SHARED = 1,
  // The newest committed rows, locked to be changed.
  CHEETAH_READ_EXCLUSIVE = 2,
} CheetahRead;

// What a cursor that locks does with a row that another transaction has locked.
typedef enum {
  // It waits.
  CHEETAH_ON_LOCKED_WAIT = 0,
  // It passes over it: SKIP LOCKED.
  CHEETAH_ON_LOCKED_SKIP = 1,
  // It stops at the row as it was committed last: semi-consistent reads, under READ COMMITTED.
  CHEETAH_ON_LOCKED_LOOK = 2,
} CheetahOnLocked;

// What becomes of child rows.
typedef enum {
  // RESTRICT: the change of the parent is refused.
  CHEETAH_FOREIGN_KEY_ACTION_RESTRICT = 0,
  // NO ACTION: the same.
  CHEETAH_FOREIGN_KEY_ACTION_NO_ACTION = 1,
  // CASCADE: they change, too.
  CHEETAH_FOREIGN_KEY_ACTION_CASCADE = 2,
  // SET NULL: their columns become NULL.
  CHEETAH_FOREIGN_KEY_ACTION_SET_NULL = 3,
} CheetahForeignKeyAction;

// What a table is to a constraint.
typedef enum {
  // Its rows refer to others.
  CHEETAH_ROLE_CHILD = 0,
  // Its rows are referred to.
  CHEETAH_ROLE_PARENT = 1,
} CheetahRole;

// Which children keep a table from being dropped.
typedef enum {
  // None: constraints wait for a table of that name.
  CHEETAH_REFERENCED_IGNORED = 0,
  // Children in whatever database.
  CHEETAH_REFERENCED_REFUSED = 1,
  // Children in other databases: those of its own go with it.
  CHEETAH_REFERENCED_REFUSED_ELSEWHERE = 2,
} CheetahReferenced;

// Why a thread is held up, or what it does that takes long.
typedef enum {
  // It waits for the lock of a row.
  CHEETAH_STAGE_ROW_LOCK = 0,
  // It waits for the lock of a table.
  CHEETAH_STAGE_TABLE_LOCK = 1,
  // It waits for space in the log.
  CHEETAH_STAGE_LOG_SPACE = 2,
  // It waits for memory of the buffer pool.
  CHEETAH_STAGE_MEMORY = 3,
  // It rolls back.
  CHEETAH_STAGE_ROLLING_BACK = 4,
} CheetahStage;

// Whether statistics of a table are taken by themselves; the numbers are the server's.
typedef enum {
  // As the database says.
  CHEETAH_RECALC_AS_DATABASE = 0,
  // They are.
  CHEETAH_RECALC_ON = 1,
  // They are not.
  CHEETAH_RECALC_OFF = 2,
} CheetahRecalc;

// What a full-text index does with a word.
typedef enum {
  // It has it.
  CHEETAH_WORD_KIND_INDEXED = 0,
  // It leaves it out: a stop word.
  CHEETAH_WORD_KIND_STOP = 1,
  // It leaves it out: too short.
  CHEETAH_WORD_KIND_TOO_SHORT = 2,
  // It leaves it out: too long.
  CHEETAH_WORD_KIND_TOO_LONG = 3,
} CheetahWordKind;

// How the text of a full-text search is read.
typedef enum {
  // As words.
  CHEETAH_SEARCH_MODE_NATURAL_LANGUAGE = 0,
  // As words with operators.
  CHEETAH_SEARCH_MODE_BOOLEAN = 1,
  // As words, to which those of the best rows are added.
  CHEETAH_SEARCH_MODE_QUERY_EXPANSION = 2,
} CheetahSearchMode;

// Bytes that the engine fills and the caller reads; keeps its memory.
typedef struct CheetahBuffer CheetahBuffer;

// Indexes that are being built for a table.
typedef struct CheetahBuild CheetahBuild;

// Where the entries of one row in the indexes that are built go.
typedef struct CheetahBuiltEntries CheetahBuiltEntries;

// A cursor and whether its index is the clustered one.
typedef struct CheetahCursor CheetahCursor;

// An open database.
typedef struct CheetahDb CheetahDb;

// Where the entries expected for one row go.
typedef struct CheetahEntrySink CheetahEntrySink;

// An estimate for one table.
typedef struct CheetahEstimate CheetahEstimate;

// The constraints of a table, as its child and as its parent.
typedef struct CheetahForeignKeys CheetahForeignKeys;

// A load of one table.
typedef struct CheetahLoad CheetahLoad;

// The finds of a search.
typedef struct CheetahMatches CheetahMatches;

// Postings of an index that is being built.
typedef struct CheetahPostings CheetahPostings;

// An open table.
typedef struct CheetahTable CheetahTable;

// A transaction, or the place for the next one: after commit or rollback it is used again.
typedef struct CheetahTxn CheetahTxn;

// Takes the words of a text during a search.
typedef struct CheetahWordSink CheetahWordSink;

// The words of a row.
typedef struct CheetahWords CheetahWords;

// Borrowed bytes.
typedef struct {
  // Their start; may be null when there are none.
  const uint8_t *data;
  // Their number.
  size_t len;
} CheetahBytes;

// An index of a new definition: its position so far, or its number among those that were built.
typedef struct {
  // Its name from now on.
  CheetahBytes name;
  // Its position so far.
  uint32_t from;
  // Its number among those that were built, from 1; 0 if the table has it already.
  uint32_t built;
} CheetahAlteredIndex;

// How a stored row is built.
typedef struct {
  // Bytes of the NULL bitmap.
  uint16_t null_bytes;
  // Number of values of variable length.
  uint16_t var_count;
  // Widths of the fixed columns.
  const uint16_t *fixed;
  // Their number.
  size_t fixed_count;
} CheetahRowFormatVersion;

// Neighbouring bits of the NULL bytes, and where they get. Bit 0 is the lowest one of the first
// byte.
typedef struct {
  // The first bit; bit 0 is the lowest one of the first byte.
  uint32_t from;
  // Where it gets.
  uint32_t to;
  // How many follow each other.
  uint32_t count;
} CheetahBitRun;

// Columns of a new definition: how rows are stored from now on, and what becomes of the stored
// ones when they are read.
typedef struct {
  // How rows are stored from now on.
  CheetahRowFormatVersion row_format;
  // Bits of the NULL bytes that are kept.
  const CheetahBitRun *bits;
  // Their number.
  size_t bit_count;
  // For each fixed column of the row-format version the one that it was; -1 for one that has
  // come.
  const int32_t *fixed;
  // For each column of variable length of the row-format version the one that it was; -1 for one
  // that has come.
  const int32_t *vars;
  // A row of the row-format version: columns that are not kept have its values.
  CheetahBytes defaults;
} CheetahNewRows;

// A column of a definition. Columns of the same kind have equal keys for equal values, but for the
// flag of NULL and the direction.
typedef struct {
  // Its name.
  CheetahBytes name;
  // Equal for columns that have equal keys for equal values.
  CheetahBytes kind;
  // Whether it may be NULL.
  uint8_t nullable;
} CheetahColumnDef;

// A part of a key.
typedef struct {
  // The column, by its position.
  uint32_t column;
  // Whether it sorts the other way round.
  uint8_t descending;
  // Whether it holds only the beginning of the value.
  uint8_t is_prefix;
} CheetahKeyPartDef;

// The key of an index.
typedef struct {
  // Its parts.
  const CheetahKeyPartDef *parts;
  // Their number.
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
  // The number of each.
  size_t column_count;
  // A `CheetahForeignKeyAction`.
  uint8_t on_delete;
  // A `CheetahForeignKeyAction`.
  uint8_t on_update;
  // Whether the table is a copy of one that has it.
  uint8_t inherited;
} CheetahForeignKeyDef;

// A column that a table keeps under another name.
typedef struct {
  // Its name so far.
  CheetahBytes from;
  // Its name from now on.
  CheetahBytes to;
} CheetahRenamedColumn;

// Columns, keys and constraints of a definition.
typedef struct {
  // The columns.
  const CheetahColumnDef *columns;
  // Their number.
  size_t column_count;
  // The keys, that of the clustered index first.
  const CheetahKeyDef *keys;
  // Their number.
  size_t key_count;
  // The constraints whose child the table is, those that it has had first.
  const CheetahForeignKeyDef *foreign_keys;
  // Their number.
  size_t foreign_key_count;
  // How many of them it has had.
  size_t kept_count;
  // The table whose copy it is; empty if it is not a copy.
  CheetahBytes copy_of;
  // Columns that the table keeps under other names.
  const CheetahRenamedColumn *renamed;
  // Their number.
  size_t renamed_count;
  // Whether parents have to be there.
  uint8_t are_checked;
} CheetahConstraints;

// A full-text index to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The caller's own bytes: how texts become words.
  CheetahBytes extra;
} CheetahFulltextSpec;

// A full-text index of a new definition.
typedef struct {
  // Its name and the caller's bytes from now on.
  CheetahFulltextSpec index;
  // Its position so far, from 0.
  size_t from;
  // Its postings, if it has been built; null if the table has it already.
  const CheetahPostings *built;
} CheetahAlteredFulltext;

// A new definition of a table, whose rows stay as they are stored.
typedef struct {
  // The table.
  const CheetahTable *table;
  // Its indexes from now on, the clustered one first. Those that are not named are dropped.
  const CheetahAlteredIndex *indexes;
  // Their number.
  size_t index_count;
  // Indexes that were built for it; may be null.
  const CheetahBuild *build;
  // Its columns from now on; null if they stay.
  const CheetahNewRows *rows;
  // Its columns, keys and constraints from now on; null: it keeps its constraints, and nobody
  // has described it.
  const CheetahConstraints *constraints;
  // Its full-text indexes from now on. Those that are not named are dropped.
  const CheetahAlteredFulltext *fulltext;
  // Their number.
  size_t fulltext_count;
  // The caller's own bytes.
  CheetahBytes extra;
  // The caller's mark of the change.
  CheetahBytes mark;
  // Level of the codec for images that are written from now on; 0: its default.
  int32_t compression_level;
  // 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether compression stays as it is: the two above then mean nothing.
  uint8_t keeps_compression;
} CheetahAlteration;

// An index to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // Bytes of its longest key.
  uint32_t max_key_bytes;
  // Whether keys are unique.
  uint8_t unique;
} CheetahIndexSpec;

// Computes the entries of a row in the indexes that are built. `Corruption`: the row does not fit
// the definition; any other code but `Ok`: the statement is to end.
typedef int32_t (*CheetahEntriesOf)(void *context,
                                    CheetahBytes key,
                                    CheetahBytes row,
                                    CheetahBuiltEntries *entries);

// Is told how much is done, of how much.
typedef void (*CheetahProgress)(void *context, uint64_t done, uint64_t total);

// How a part of a stored key is encoded, as far as it takes to find its end.
typedef struct {
  // Of each level of a text the weight of the space, or nothing where it is not padded.
  const CheetahBytes *levels;
  // Their number; 0 for what is no text.
  size_t level_count;
  // Length of what is no text.
  uint32_t bytes;
  // Whether a byte comes first that is 0 for NULL.
  uint8_t nullable;
  // Whether all bytes are inverted.
  uint8_t descending;
  // Whether the index has its column in no part before.
  uint8_t is_counted;
  // A number by which the caller knows how to show its values (`CheetahShowValue`).
  uint32_t shown_as;
} CheetahKeyPartEncoding;

// How stored keys of an index are encoded: the parts of the index, and those of the clustered key
// behind them.
typedef struct {
  // Its parts, and those of the clustered key behind them.
  const CheetahKeyPartEncoding *parts;
  // Their number.
  size_t part_count;
} CheetahKeyEncoding;

// Where a cursor that locks goes no further.
typedef struct {
  // A `CheetahEnd`.
  uint8_t kind;
  // The key that the kind speaks of.
  CheetahBytes key;
} CheetahSeekEnd;

// The entry that a cursor is on.
typedef struct {
  // Clustered index: the row's key; secondary index: the caller's part of the key.
  CheetahBytes key;
  // The row's key.
  CheetahBytes clustered;
  // Clustered index: the stored row; secondary index: the payload.
  CheetahBytes value;
} CheetahFound;

// The newest version of a key of the server's key service; 0: there is no such key. Called from
// any thread.
typedef uint32_t (*CheetahNewestKeyVersion)(uint32_t id);

// Puts the bytes of a version of a key into a buffer, which the engine wipes; returns their
// number, 0: they cannot be had. Called from any thread.
typedef size_t (*CheetahKeyBytes)(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes);

// What a database is opened with.
typedef struct {
  // Its directory.
  CheetahBytes directory;
  // Memory for pages, write buffers and the log buffer.
  uint64_t buffer_pool_bytes;
  // Size of one log file.
  uint64_t log_file_bytes;
  // Size of the log.
  uint64_t log_bytes_max;
  // I/O operations a second for background work.
  uint32_t io_capacity;
  // 0, 1 or 2.
  uint8_t flush_log_at_commit;
  // Whether changes may wait in memory for a leaf that is not there.
  uint8_t buffers_changes;
  // Whether data files are read through the page cache of the system.
  uint8_t buffers_data_files;
  // Whether tables are encrypted that do not say whether they are.
  uint8_t encrypts_tables;
  // Whether the log is encrypted.
  uint8_t encrypts_log;
  // Where keys come from.
  CheetahNewestKeyVersion newest_key_version;
  // As above.
  CheetahKeyBytes key_bytes;
} CheetahConfig;

// Variables of the server that depend on each other.
typedef struct {
  // Bytes that one file of the log has at most.
  uint64_t log_file_bytes;
  // Bytes that the log has at most.
  uint64_t log_bytes_max;
  // Characters of the shortest word of full-text indexes.
  uint32_t word_chars_min;
  // Characters of the longest one.
  uint32_t word_chars_max;
} CheetahSettings;

// Takes one text.
typedef void (*CheetahTextSink)(void *context, CheetahBytes text);

// Takes one counter.
typedef void (*CheetahCounterSink)(void *context, CheetahBytes name, uint64_t value);

// The words of a definition about encryption, and the server's setting.
typedef struct {
  // ENCRYPTION_KEY_ID.
  uint32_t key_id;
  // ENCRYPTED: a `CheetahEncrypted`.
  uint8_t encrypted;
  // `cheetah_encrypt_tables`: 0 OFF, 1 ON, 2 FORCE.
  uint8_t encrypt_tables;
  // Tells whether a key is there.
  CheetahNewestKeyVersion newest_key_version;
} CheetahEncryptionWords;

// Whether a table is encrypted, and how.
typedef struct {
  // The number of its key; 0 stands for 1.
  uint32_t key_id;
  // A `CheetahEncrypted`.
  uint8_t encrypted;
  // Whether what was asked for is refused.
  uint8_t refused;
} CheetahEncryption;

// How a table is encrypted. Texts are there during the call only.
typedef struct {
  // Its name.
  CheetahBytes name;
  // The engine's number of it.
  uint64_t table;
  // While it rotates: the page that is looked at next.
  uint64_t rotation_page;
  // And how many there are; 0 while the pass has not begun.
  uint64_t rotation_pages;
  // How often the key service was asked for its key, since the startup.
  uint64_t key_requests;
  // Its key.
  uint32_t key_id;
  // The oldest version that is in use; 0 when pages may be plain.
  uint32_t min_key_version;
  // The version that pages are encrypted with now.
  uint32_t current_key_version;
  // Whether pages that are written now are.
  uint8_t is_encrypted;
  // Whether the background has still to look at its pages.
  uint8_t is_rotating;
} CheetahTableEncryption;

// Takes one table.
typedef void (*CheetahTableEncryptionSink)(void *context, const CheetahTableEncryption *table);

// A table to create.
typedef struct {
  // Its name.
  CheetahBytes name;
  // Its stored rows.
  CheetahRowFormatVersion row_format;
  // Its indexes, the clustered one first.
  const CheetahIndexSpec *indexes;
  // Their number.
  size_t index_count;
  // Its full-text indexes.
  const CheetahFulltextSpec *fulltext;
  // Their number.
  size_t fulltext_count;
  // The caller's own bytes.
  CheetahBytes extra;
  // The first auto-increment value.
  uint64_t auto_increment;
  // Level of the codec; 0: its default.
  int32_t compression_level;
  // 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether the engine numbers the rows.
  uint8_t hidden_key;
  // Whether it goes with the process.
  uint8_t is_temporary;
  // Whether it is encrypted, and how.
  CheetahEncryption encryption;
} CheetahTableSpec;

// The weight of the table in one format.
typedef struct {
  // KEY_BLOCK_SIZE that asks for the format, in KiB; 0: none does.
  uint64_t key_block_size;
  // Rows of the table.
  uint64_t rows;
  // Rows in the sample.
  uint64_t sampled_rows;
  // Bytes of the table.
  uint64_t bytes;
  // By how much of `bytes` they may be wrong, in millionths: in 95 of 100 cases by no more, if
  // `rows` is right.
  uint64_t error_ppm;
  // Time to compress a page.
  uint64_t encode_ns;
  // Time to read it again.
  uint64_t decode_ns;
  // Level of the codec.
  int32_t compression_level;
  // 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether the sample tells the error.
  uint8_t has_error;
} CheetahWeight;

// Gets a weight.
typedef void (*CheetahWeightSink)(void *context, const CheetahWeight *weight);

// Tells a sink what people call the table of a name.
typedef void (*CheetahShowName)(void *context, CheetahBytes name, CheetahTextSink sink, void *sink_context);

// A column of a constraint in an index.
typedef struct {
  // Its position in the table.
  uint32_t column;
  // Whether it may be NULL.
  uint8_t nullable;
  // Whether the key part sorts the other way round.
  uint8_t descending;
} CheetahKeyColumn;

// The index that serves one side of a constraint.
typedef struct {
  // The columns, in the order of the constraint; null if no index serves it.
  const CheetahKeyColumn *columns;
  // The position of the index.
  uint32_t index_no;
  // Its name.
  CheetahBytes index_name;
} CheetahKeySide;

// A constraint, and the indexes that serve it.
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
  // The number of each.
  size_t column_count;
  // The child's index.
  CheetahKeySide child_key;
  // The parent's index.
  CheetahKeySide parent_key;
  // A `CheetahForeignKeyAction`.
  uint8_t on_delete;
  // A `CheetahForeignKeyAction`.
  uint8_t on_update;
  // Whether rows of the child are checked: not in a copy of a table that has it.
  uint8_t is_checked;
} CheetahForeignKey;

// Takes one constraint.
typedef void (*CheetahForeignKeySink)(void *context, const CheetahForeignKey *constraint);

// What a definition says about the format of its table; 0 stands for a word that is not there.
typedef struct {
  // KEY_BLOCK_SIZE of the table.
  uint64_t key_block_size;
  // That of each index.
  const uint32_t *index_key_block_sizes;
  // Their number.
  size_t index_count;
  // COMPRESSION_LEVEL.
  uint32_t compression_level;
  // PAGE_COMPRESSION_LEVEL.
  uint32_t page_compression_level;
  // Level of what the session has chosen for tables that do not say.
  int32_t default_level;
  // Its codec.
  uint8_t default_compression;
  // The codec that COMPRESSION names, if `names_compression`.
  uint8_t compression;
  // Whether there is a word COMPRESSION.
  uint8_t names_compression;
  // Whether PAGE_COMPRESSED is set.
  uint8_t page_compressed;
  // ROW_FORMAT: a `CheetahRowFormat`.
  uint8_t row_format;
} CheetahFormatWords;

// What the words of a definition come to.
typedef struct {
  // Level of the codec; 0: its default.
  int32_t compression_level;
  // 0 none, 1 lz4, 2 zstd.
  uint8_t compression;
  // Whether the words are refused.
  uint8_t refused;
} CheetahFormat;

// Tells the sink each word of a query's text; returns `Ok`, or what the sink has answered.
typedef int32_t (*CheetahSplitText)(void *context, CheetahBytes text, CheetahWordSink *sink);

// Tells the sink each word of a row; returns `Ok`, or what the sink has answered.
typedef int32_t (*CheetahWordsOfRow)(void *context, CheetahBytes key, CheetahBytes row, CheetahWordSink *sink);

// A full-text search.
typedef struct {
  // In the character set of the index.
  CheetahBytes text;
  // Stands behind the weights of each word of the index.
  CheetahBytes end;
  // Bytes of memory that it may take.
  uint64_t limit_bytes;
  // Finds the words of texts of the query.
  CheetahSplitText split;
  // Finds those of rows.
  CheetahWordsOfRow words_of_row;
  // Handed to both.
  void *context;
  // A `CheetahSearchMode`.
  uint8_t mode;
  // A `CheetahRead`: how the rows found will be read.
  uint8_t read;
} CheetahSearch;

// Computes the entries that a stored row should have and gives them to the sink.
typedef int32_t (*CheetahExpectedEntries)(void *context,
                                          CheetahBytes key,
                                          CheetahBytes row,
                                          CheetahEntrySink *sink);

// An open transaction. Texts are there during the call only.
typedef struct {
  // Its number.
  uint64_t id;
  // The number of its connection; 0 when nobody holds it.
  uint64_t connection;
  // For how long it has been open.
  uint64_t age_ns;
  // For how long it has waited for `requested_lock`.
  uint64_t wait_ns;
  // Its undo records.
  uint64_t changes;
  // Tables that its statement uses.
  uint64_t tables_in_use;
  // Tables that it has locked.
  uint64_t tables_locked;
  // Records that it has locked.
  uint64_t records_locked;
  // Its locks.
  uint64_t locks;
  // About how much memory they take.
  uint64_t lock_bytes;
  // Transactions that its snapshot keeps from purge.
  uint64_t kept_from_purge;
  // Bytes of the undo log that stay because of its changes.
  uint64_t undo_bytes;
  // Its activity.
  CheetahBytes state;
  // The lock that it waits for; empty when it does not.
  CheetahBytes requested_lock;
  // Its XID; empty when it is not prepared.
  CheetahBytes xid;
  // A `CheetahIsolation`.
  uint8_t isolation;
} CheetahTxnInfo;

// Takes one transaction.
typedef void (*CheetahTxnInfoSink)(void *context, const CheetahTxnInfo *txn);

// A lock, or a request that waits. Texts are there during the call only.
typedef struct {
  // Its name.
  CheetahBytes id;
  // Its transaction.
  uint64_t txn;
  // Its mode.
  CheetahBytes mode;
  // The table.
  CheetahBytes table;
  // The index; empty for the table as a whole.
  CheetahBytes index;
  // The record that it is on; empty for a table.
  CheetahBytes data;
} CheetahLockInfo;

// Takes one lock.
typedef void (*CheetahLockInfoSink)(void *context, const CheetahLockInfo *lock);

// The transactions that wait, and those for which they wait. Texts are there during the call only.
typedef struct {
  // The waiting transaction.
  uint64_t requesting;
  // For which lock.
  CheetahBytes requested_lock;
  // Because of whom.
  uint64_t blocking;
  // Because of which lock.
  CheetahBytes blocking_lock;
} CheetahLockWait;

// Takes one wait.
typedef void (*CheetahLockWaitSink)(void *context, const CheetahLockWait *wait);

// Tells a sink a value of a key part; nothing where it cannot. `shown_as`: the encoding in the
// part's `CheetahKeyPartEncoding`; `value`: its bytes there in ascending order, without that for
// NULL.
typedef void (*CheetahShowValue)(void *context,
                                 uint32_t shown_as,
                                 CheetahBytes value,
                                 CheetahTextSink sink,
                                 void *sink_context);

// Tells a sink date and time of day, as people read them.
typedef void (*CheetahTellTime)(void *context, CheetahTextSink sink, void *sink_context);

// Tells the sink for people what the connection of that number does.
typedef void (*CheetahDescribe)(void *context, uint64_t connection, CheetahTextSink sink, void *sink_context);

// An entry of a secondary index.
typedef struct {
  // Position of the index in its table, from 1.
  uint32_t index_no;
  // Whether another row with this key is refused.
  uint8_t check_unique;
  // The caller's key.
  CheetahBytes key;
  // The caller's bytes.
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
  // Their number.
  size_t secondary_count;
  // Whether the caller will change the row that has a unique key already.
  uint8_t changes_duplicate;
} CheetahRow;

// A word without blanks, and a text on one line, for the manifest of a snapshot.
typedef struct {
  // Without blanks.
  CheetahBytes word;
  // The text behind it.
  CheetahBytes text;
} CheetahNote;

// A transaction's name, as X/Open defines it.
typedef struct {
  // Its format.
  uint64_t format;
  // The name of the global transaction; at most 64 bytes, as the other.
  CheetahBytes global;
  // The name of the branch.
  CheetahBytes branch;
} CheetahXid;

// Whether the caller coordinates the prepared transaction of that name by itself, so that it is
// rolled back in a snapshot.
typedef uint8_t (*CheetahIsOwnXid)(const CheetahXid *xid);

// Whether the caller wants a wait to end.
typedef uint8_t (*CheetahInterrupted)(void *context);

// The order for a snapshot.
typedef struct {
  // The absolute path of the directory; it must not exist.
  CheetahBytes path;
  // A directory in which it may not be, but for the engine's own `snapshots`.
  CheetahBytes outside_of;
  // For the manifest, unless a snapshot waits.
  const CheetahNote *notes;
  // Their number.
  size_t notes_count;
  // Which prepared transactions are rolled back in it.
  CheetahIsOwnXid is_own;
  // Whether to give up.
  CheetahInterrupted interrupted;
  // Its argument.
  void *context;
} CheetahSnapshotOrder;

// The files that were written.
typedef struct {
  // Files, without the manifest.
  uint64_t files_count;
  // Their bytes.
  uint64_t bytes;
  // Of these, the bytes that were copied, neither linked nor cloned.
  uint64_t copied_bytes;
} CheetahSnapshot;

// The caller's state before a stage; its words mean nothing here.
typedef struct {
  // The caller's.
  uint64_t first;
  // The caller's.
  uint64_t second;
  // The caller's.
  uint64_t third;
} CheetahStageBefore;

// Is told that the calling thread begins a stage (a `CheetahStage`); it gets the content of
// `before` back at the end. Returns the number of the connection whose thread it is, or 0.
typedef uint64_t (*CheetahStageBegins)(uint8_t stage, CheetahStageBefore *before);

// Is told that the stage has ended.
typedef void (*CheetahStageEnds)(uint8_t stage, const CheetahStageBefore *before);

// Returns the number of the connection whose thread calls, or 0.
typedef uint64_t (*CheetahConnection)(void);

// Work of a thread with pages.
typedef struct {
  // Pages asked for, in memory or not.
  uint64_t pages_accessed;
  // Pages changed.
  uint64_t pages_updated;
  // Images read from disk.
  uint64_t pages_read;
  // Time that this took.
  uint64_t read_ns;
  // Pages that other threads were asked to read ahead.
  uint64_t pages_prefetched;
  // Older versions of rows that were read back.
  uint64_t versions_read;
} CheetahPageWork;

// Images made of pages, and read back. Texts are there during the call only.
typedef struct {
  // The bytes that these images have at most; 0: those of an index.
  uint64_t image_bytes_max;
  // The table of the index.
  CheetahBytes table;
  // The index.
  CheetahBytes index;
  // Images made.
  uint64_t encodes;
  // Time that it took.
  uint64_t encode_ns;
  // Images read back.
  uint64_t decodes;
  // Time that it took.
  uint64_t decode_ns;
} CheetahImageWork;

// Takes one of them.
typedef void (*CheetahImageWorkSink)(void *context, const CheetahImageWork *work);

// The buffer pool. Memory is counted in pages of the smallest size, pages one by one.
typedef struct {
  // Pages that the memory for frames has room for.
  uint64_t size_pages;
  // Pages that still fit before others have to leave.
  uint64_t free_pages;
  // Pages in memory.
  uint64_t pages;
  // Of them those that leave first, unless they are used again.
  uint64_t leaving_pages;
  // Of them those that have changed and are not written.
  uint64_t dirty_pages;
  // Pages asked for since the startup.
  uint64_t gets;
  // Pages read.
  uint64_t reads;
  // New pages.
  uint64_t creates;
  // Pages written.
  uint64_t writes;
  // Pages read before anybody asked for them.
  uint64_t reads_ahead;
  // Of them those that left memory without anybody asking.
  uint64_t ahead_wasted;
  // `reads` since the last output of the status, in a thousand seconds.
  uint64_t reads_per_1000_s;
  // Likewise.
  uint64_t creates_per_1000_s;
  // Likewise.
  uint64_t writes_per_1000_s;
  // Likewise.
  uint64_t reads_ahead_per_1000_s;
  // Likewise.
  uint64_t ahead_wasted_per_1000_s;
  // Of a thousand pages asked for since then, how many were in memory.
  uint64_t hits_per_1000;
  // 1 when `hits_per_1000` means something: somebody has asked.
  uint8_t has_hits;
} CheetahPoolStats;

// The misses of the cache with a size of memory.
typedef struct {
  // The memory, in percent of what there is.
  uint64_t percent;
  // The same in bytes.
  uint64_t memory_bytes;
  // Of a million pages asked for, how many would be read.
  uint64_t misses_per_million;
  // Pages read in a thousand seconds.
  uint64_t reads_per_1000_s;
} CheetahCurvePoint;

// Takes one point.
typedef void (*CheetahCurvePointSink)(void *context, const CheetahCurvePoint *point);

// Sizes of one index or of several.
typedef struct {
  // Pages.
  uint64_t pages;
  // Of them leaves, about.
  uint64_t leaf_pages;
  // Levels of the deepest tree.
  uint64_t depth;
  // Bytes of all pages before compression.
  uint64_t logical_bytes;
  // Of those that are on disk.
  uint64_t stored_logical_bytes;
  // Their bytes on disk.
  uint64_t stored_bytes;
  // The share of what in the files will be given back.
  uint64_t free_bytes;
  // The share of the files, without what still waits in tails.
  uint64_t allocated_bytes;
  // Bytes of pages in memory.
  uint64_t cached_bytes;
  // Of them those of leaves.
  uint64_t leaf_bytes;
  // Of these, those in use.
  uint64_t leaf_used_bytes;
} CheetahSizes;

// A table and its sizes. Texts are there during the call only.
typedef struct {
  // Its name.
  CheetahBytes name;
  // Its rows.
  uint64_t rows;
  // Its indexes, the clustered one included.
  uint64_t index_count;
  // The next auto-increment value.
  uint64_t auto_increment;
  // The clustered index, with the large values.
  CheetahSizes data;
  // The others together.
  CheetahSizes secondary;
  // The level that its codec works at.
  int32_t compression_level;
  // A `CheetahCompression`.
  uint8_t compression;
  // The version of the format in which its pages are written.
  uint8_t format_version;
} CheetahTableSizes;

// Takes one table.
typedef void (*CheetahTableSizesSink)(void *context, const CheetahTableSizes *table);

// An index and its sizes. Texts are there during the call only.
typedef struct {
  // The name of its table.
  CheetahBytes table;
  // Its name.
  CheetahBytes index;
  // Its sizes.
  CheetahSizes sizes;
  // The level that its codec works at.
  int32_t compression_level;
  // A `CheetahCompression`.
  uint8_t compression;
} CheetahIndexSizes;

// Takes one index.
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
  // Its share of what in the files will be given back.
  uint64_t free_bytes;
  // Levels.
  uint32_t depth;
} CheetahIndexStats;

// Is told that the transaction of one session waits for that of another one.
typedef void (*CheetahWaitReport)(void *waiter, void *blocker);

// Of two sessions the one whose transaction must commit after the other one's; null if there is no
// such order.
typedef void *(*CheetahLaterSession)(void *first, void *second);

// Auto-increment values: what is wanted, and what was reserved.
typedef struct {
  // Distance of two values.
  uint64_t increment;
  // The value that the first one is, or is a multiple of the increment away from.
  uint64_t offset;
  // The largest that the column can hold.
  uint64_t largest;
  // How many.
  uint64_t count;
  // The first one.
  uint64_t first;
  // The counter behind them.
  uint64_t next;
} CheetahNumbers;

// A point in a transaction; its words mean nothing outside.
typedef struct {
  // Room for the engine's value.
  uint64_t words[4];
} CheetahSavepoint;

// Takes one XID.
typedef void (*CheetahXidSink)(void *context, const CheetahXid *xid);

// Operations of one kind that took about equally long: one bucket of its histogram. The text is
// there during the call only.
typedef struct {
  // The kind.
  CheetahBytes operation;
  // At least this time.
  uint64_t from_us;
  // Less than this time; 0: no bound.
  uint64_t below_us;
  // The number of operations.
  uint64_t count;
} CheetahLatency;

// Takes one of them.
typedef void (*CheetahLatencySink)(void *context, const CheetahLatency *latency);

// Stalls of one reason. The text is there during the call only.
typedef struct {
  // The reason of the wait, or the work.
  CheetahBytes reason;
  // Those that last.
  uint64_t current;
  // How long the longest of these has lasted.
  uint64_t current_us_max;
  // Those that have ended.
  uint64_t count;
  // Time of these together.
  uint64_t sum_us;
  // The longest of them.
  uint64_t max_us;
  // How long ago the last one ended.
  uint64_t last_age_ns;
  // The connection that stalled last; 0: a thread of the engine.
  uint64_t last_connection;
} CheetahStall;

// Takes one of them.
typedef void (*CheetahStallSink)(void *context, const CheetahStall *stall);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Gives tables new definitions, all of them or none. Their handles are of no more use afterwards.
int32_t cheetah_alter_tables(CheetahDb *db, const CheetahAlteration *alterations, size_t count);

// Whether the stored rows of a table are just what a definition with that row-format version has.
uint8_t cheetah_table_fits(const CheetahTable *table, const CheetahRowFormatVersion *row_format);

// Whether rows may have been stored with other columns than the table has now.
uint8_t cheetah_has_older_rows(const CheetahTable *table);

// Whether rows of a table can get those columns without being written anew.
uint8_t cheetah_can_change_rows(const CheetahTable *table, const CheetahNewRows *rows);

// Whether the last change of the table's definition has that mark.
uint8_t cheetah_has_mark(CheetahDb *db, CheetahBytes name, CheetahBytes mark);

// The message of this thread's last failure, until its next call.
CheetahBytes cheetah_last_error(void);

// Index and clustered key of this thread's last duplicate key.
void cheetah_last_duplicate(uint32_t *index_no, CheetahBytes *existing);

// Whether keys of `max_key_bytes` bytes have room in an index that is built for the table. A copy
// of the table might have more: it shares anew.
uint8_t cheetah_has_room_for_keys(const CheetahTable *table, uint32_t max_key_bytes);

// Keeps loads from a table whose definition is to change, to the end of the transaction, and waits
// for one that is under way, after which the table may have to be opened again.
int32_t cheetah_keep_loads_off(CheetahTxn *txn, const CheetahTable *table);

// Begins to build indexes for a table while others read and write it. `with_values`: entries need
// large values. `cheetah_run_build` builds them and `cheetah_finish_build` brings them up to date.
// After `DuplicateKey` of either the number of the index is one among the new ones, from 1, and
// `cheetah_row_refused_by_build` tells the row. A build that is freed leaves nothing behind.
int32_t cheetah_begin_build(CheetahTxn *txn,
                            const CheetahTable *table,
                            const CheetahIndexSpec *specs,
                            size_t count,
                            uint8_t with_values,
                            CheetahBuild **build);

// Builds them while others use the table; `progress` is told now and then how far it is.
int32_t cheetah_run_build(CheetahTxn *txn,
                          CheetahBuild *build,
                          CheetahEntriesOf entries,
                          void *context,
                          CheetahProgress progress,
                          void *progress_context);

// Locks the table against writers and brings the indexes up to date: until the transaction ends
// `cheetah_alter_tables` takes them.
int32_t cheetah_finish_build(CheetahTxn *txn, CheetahBuild *build, CheetahEntriesOf entries, void *context);

// Adds an entry of the row at hand, in the index of that number among those that are built, from
// 1.
void cheetah_add_built_entry(CheetahBuiltEntries *entries,
                             uint32_t index_no,
                             uint8_t check_unique,
                             CheetahBytes key,
                             CheetahBytes payload);

// Key and row, with its large values in it, of the row that was refused as a duplicate.
void cheetah_row_refused_by_build(const CheetahBuild *build, CheetahBytes *key, CheetahBytes *row);

// Frees a build; trees that no definition has taken go.
void cheetah_free_build(CheetahBuild *build);

// Tells how keys of a table that was opened are encoded, one encoding for each index, and the
// statistics options of its definition: places of an index to look at (0: as many as the database
// says), a `CheetahRecalc`, and whether the table is temporary.
int32_t cheetah_describe_keys(CheetahDb *db,
                              const CheetahTable *table,
                              const CheetahKeyEncoding *keys,
                              size_t key_count,
                              uint32_t places,
                              uint8_t recalc,
                              uint8_t is_temporary);

// Sets whether statistics are taken by themselves, and from how many places of each index, where a
// definition does not say.
void cheetah_set_statistics(CheetahDb *db, uint8_t by_themselves, uint32_t places);

// Takes statistics of all indexes and keeps them.
int32_t cheetah_analyze_table(CheetahDb *db, const CheetahTable *table);

// A number that changes with the table's statistics.
uint64_t cheetah_statistics_version(const CheetahTable *table);

// About how many rows have the same values in the first `parts` parts of an index; 0 when that is
// not known.
uint64_t cheetah_rows_per_value(const CheetahTable *table, uint32_t index_no, uint32_t parts);

// A cursor over an index, on no entry yet. `read`: a `CheetahRead`; `on_locked`: a
// `CheetahOnLocked`. It is good until the end of its transaction.
int32_t cheetah_open_cursor(CheetahTxn *txn,
                            const CheetahTable *table,
                            uint32_t index_no,
                            uint8_t read,
                            uint8_t on_locked,
                            CheetahCursor **cursor);

// Frees a cursor.
void cheetah_close_cursor(CheetahCursor *cursor);

// Places the cursor. A cursor that locks goes no further than `end` says.
int32_t cheetah_seek(CheetahCursor *cursor,
                     uint8_t mode,
                     CheetahBytes key,
                     CheetahSeekEnd end,
                     CheetahFound *found);

// Whether the current row is as it was committed last, and not locked, as somebody else has it.
uint8_t cheetah_is_unlocked(const CheetahCursor *cursor);

// Goes once more to a row that is not locked, and waits for its lock; to the next one if it has
// gone.
int32_t cheetah_read_again(CheetahCursor *cursor, CheetahFound *found);

// Gives the lock of the current row back, which does not match: under READ COMMITTED, if nothing
// else has locked it.
void cheetah_unlock_row(CheetahCursor *cursor);

// Removes the end of the range of the last seek.
void cheetah_forget_end(CheetahCursor *cursor);

// Moves to the next entry.
int32_t cheetah_next(CheetahCursor *cursor, CheetahFound *found);

// Moves to the next row of the clustered index, and on to those behind it that can be told at once
// (none, unless a snapshot is read): `room` in all, which is at least 1. The cursor is on the last
// one.
int32_t cheetah_next_rows(CheetahCursor *cursor, CheetahFound *found, size_t room, size_t *count);

// Moves to the entry before.
int32_t cheetah_prev(CheetahCursor *cursor, CheetahFound *found);

// Reads the stored row of the current entry.
int32_t cheetah_current_row(CheetahCursor *cursor, CheetahBuffer *row);

// Opens (or creates) a database, recovers it, and starts its background threads.
int32_t cheetah_open(const CheetahConfig *config, CheetahDb **db);

// Changes settings that do not fit each other to values that do, and tells the sink of each that
// has changed.
void cheetah_adjust_settings(CheetahSettings *settings, CheetahTextSink sink, void *context);

// Stops the background threads, checkpoints, and closes. The handle is gone in any case.
int32_t cheetah_close(CheetahDb *db);

// Writes everything changed so far to its place on disk.
int32_t cheetah_checkpoint(CheetahDb *db);

// Sets when a commit is durable: 1 at once, 0 and 2 within a second.
void cheetah_set_flush_log_at_commit(CheetahDb *db, uint8_t mode);

// Sets the memory of the engine to `bytes`, or to the minimum that it needs, and returns the new
// size.
uint64_t cheetah_set_buffer_pool_size(CheetahDb *db, uint64_t bytes);

// Sets the I/O operations a second of background work.
void cheetah_set_io_capacity(CheetahDb *db, uint32_t operations_per_second);

// Sets how many bytes of images a second are read to find damage; 0: none. Begins a pass over all
// images.
void cheetah_set_scrub_rate(CheetahDb *db, uint64_t bytes_per_second);

// Sets whether entries of new rows may wait in memory for their leaf.
void cheetah_set_change_buffering(CheetahDb *db, uint8_t is_on);

// Tells all counters.
int32_t cheetah_status(CheetahDb *db, CheetahCounterSink sink, void *context);

// Tells the state of the engine for people to read.
int32_t cheetah_status_text(CheetahDb *db, CheetahTextSink sink, void *context);

// Tells from now on what goes wrong where no call could be told. The sink is called from any
// thread, until the database is closed.
void cheetah_announce_background_errors(CheetahDb *db, CheetahTextSink sink, void *context);

// Tells the names of all tables.
int32_t cheetah_table_names(CheetahDb *db, CheetahTextSink sink, void *context);

// Chooses how a table is encrypted; tells the sink, as texts for people, the faults of the words.
int32_t cheetah_choose_encryption(const CheetahEncryptionWords *words,
                                  CheetahTextSink sink,
                                  void *context,
                                  CheetahEncryption *encryption);

// Sets whether tables are encrypted that do not say whether they are. `Key`: a key is missing, and
// nothing has changed.
int32_t cheetah_set_encrypt_tables(CheetahDb *db, uint8_t is_on);

// Sets whether the log is encrypted, which goes on in a new file. `Key`: a key is missing, and
// nothing has changed.
int32_t cheetah_set_encrypt_log(CheetahDb *db, uint8_t is_on);

// Sets by how many versions a page's key may be older than the newest before the page is written
// anew; 0: none is.
void cheetah_set_rotate_key_age(CheetahDb *db, uint32_t versions);

// Tells how all tables are encrypted.
int32_t cheetah_list_encryption(CheetahDb *db, CheetahTableEncryptionSink sink, void *context);

// Begins an estimate of what a table like that would weigh. The caller brings runs of neighbours
// in key order, from places all over each index, the first from its start. Rows have their large
// values in them.
int32_t cheetah_new_estimate(const CheetahDb *db, const CheetahTableSpec *spec, CheetahEstimate **estimate);

// Runs that are wanted of each index.
uint32_t cheetah_estimate_runs(const CheetahEstimate *estimate);

// Rows or entries of an index from another place follow.
int32_t cheetah_estimate_run(CheetahEstimate *estimate, uint32_t index_no, uint8_t from_start);

// The run has reached the end of its index.
int32_t cheetah_estimate_end(CheetahEstimate *estimate, uint32_t index_no);

// Takes a row; tells whether the run wants more.
int32_t cheetah_estimate_row(CheetahEstimate *estimate, CheetahBytes key, CheetahBytes row, uint8_t *more);

// Takes an entry of a secondary index; tells whether the run wants more.
int32_t cheetah_estimate_entry(CheetahEstimate *estimate,
                               uint32_t index_no,
                               CheetahBytes key,
                               CheetahBytes clustered,
                               CheetahBytes payload,
                               uint8_t *more);

// Tells the sink what a table of that many rows would weigh in each format, the least dense first.
int32_t cheetah_weigh(CheetahEstimate *estimate, uint64_t rows, CheetahWeightSink sink, void *context);

// Frees an estimate.
void cheetah_free_estimate(CheetahEstimate *estimate);

// How often definitions have changed since the startup.
uint64_t cheetah_definition_changes(const CheetahDb *db);

// Has `show` tell, from any thread until the database is closed, the name of a table for people,
// by the part of it that follows the database.
void cheetah_show_names_with(const CheetahDb *db, CheetahShowName show, void *context);

// Notes, for the status of the engine, the refusal by a constraint; the beginning of a long text
// counts.
void cheetah_note_refused_by_constraint(const CheetahDb *db, CheetahBytes text);

// The constraints of a table, and the indexes that serve them now; null if it has no constraints,
// or no memory is left.
CheetahForeignKeys *cheetah_foreign_keys(const CheetahDb *db, const CheetahTable *table);

// The constraints that a new definition would add to a table, as its child; null if it would add
// none.
int32_t cheetah_foreign_keys_to_add(const CheetahDb *db,
                                    const CheetahTable *table,
                                    const CheetahConstraints *constraints,
                                    CheetahForeignKeys **list);

// Frees a list of constraints.
void cheetah_free_foreign_keys(CheetahForeignKeys *list);

// How many constraints the table has in a `CheetahRole`.
size_t cheetah_foreign_key_count(const CheetahForeignKeys *list, uint8_t role);

// Tells one of them. Its pointers are good as long as the list.
void cheetah_foreign_key(const CheetahForeignKeys *list,
                         uint8_t role,
                         size_t no,
                         CheetahForeignKey *constraint);

// Tells the sink all constraints, by child and name.
int32_t cheetah_list_foreign_keys(const CheetahDb *db, CheetahForeignKeySink sink, void *context);

// Looks for a row of the other table: of the parent for a child, of the child for a parent. `key`:
// the columns of the constraint as they are in that one's index. The row is locked shared. `End`
// when it does not exist; `NoSuchTable` when the constraints are to be asked for again.
int32_t cheetah_find_reference(CheetahTxn *txn,
                               const CheetahForeignKeys *list,
                               uint8_t role,
                               size_t no,
                               CheetahBytes key);

// Opens a cursor over the parent's index of a constraint whose child the table is. It reads a
// snapshot. `NoSuchTable` when the constraints are to be asked for again.
int32_t cheetah_open_parents(CheetahTxn *txn,
                             const CheetahForeignKeys *list,
                             size_t no,
                             CheetahCursor **cursor);

// Opens a cursor over the child's index of a constraint whose parent the table is. It locks the
// rows that it meets to be changed.
int32_t cheetah_open_children(CheetahTxn *txn,
                              const CheetahForeignKeys *list,
                              size_t no,
                              CheetahCursor **cursor);

// Chooses codec and level for a table; tells the sink, as texts for people, the faults of the
// words. `strict`: words that make no sense are refused, not just ignored.
int32_t cheetah_choose_format(const CheetahFormatWords *words,
                              uint8_t strict,
                              CheetahTextSink sink,
                              void *context,
                              CheetahFormat *format);

// The `CheetahRowFormat` that is shown for a table with this word behind ROW_FORMAT and this
// KEY_BLOCK_SIZE.
uint8_t cheetah_shown_row_format(uint8_t row_format, uint64_t key_block_size);

// Longest word in bytes.
uint32_t cheetah_word_bytes_max(void);

// How many full-text indexes a table has.
size_t cheetah_fulltext_count(const CheetahTable *table);

// Name and the caller's bytes of the index at that position, from 0; they are the table's.
int32_t cheetah_fulltext_index(const CheetahTable *table, size_t no, CheetahFulltextSpec *index);

// An empty list of words.
CheetahWords *cheetah_new_words(void);

// Frees a list of words.
void cheetah_free_words(CheetahWords *words);

// Forgets all words; the memory is kept.
void cheetah_clear_words(CheetahWords *words);

// Adds a word of a row with its ordinal and its column. A word is its weights and the index's end;
// no word may be the beginning of another one, or longer than `cheetah_word_bytes_max`. Its
// ordinal is that among all words of the row, and `column` that of the index.
void cheetah_add_word(CheetahWords *words, CheetahBytes word, uint32_t ordinal, uint8_t column);

// Writes the words of a new row into the index at that position. Called behind the row, by the
// same transaction, even if the row has no words: its lock keeps others out.
int32_t cheetah_insert_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes key,
                             CheetahWords *words);

// Takes the words of a row back that goes.
int32_t cheetah_delete_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes key,
                             CheetahWords *words);

// Writes what a changed row has other than before.
int32_t cheetah_change_words(CheetahTxn *txn,
                             const CheetahTable *table,
                             size_t no,
                             CheetahBytes old_key,
                             CheetahWords *old_words,
                             CheetahBytes key,
                             CheetahWords *words);

// Begins to load the words of rows that are loaded; see `cheetah_begin_load`.
int32_t cheetah_begin_load_of_words(CheetahTxn *txn,
                                    const CheetahTable *table,
                                    size_t no,
                                    uint8_t to_commit,
                                    CheetahLoad **load);

// Loads the words of a row.
int32_t cheetah_load_words(CheetahTxn *txn, CheetahLoad *load, CheetahBytes key, CheetahWords *words);

// Room for the postings of an index that a change of the definition is to bring; postings that it
// does not take are dropped with the handle.
int32_t cheetah_new_postings(CheetahDb *db, const CheetahTable *table, CheetahPostings **made);

// Begins to load them, for a caller who has the only handle.
int32_t cheetah_begin_load_of_postings(CheetahTxn *txn, const CheetahPostings *made, CheetahLoad **load);

// Frees the handle.
void cheetah_free_postings(CheetahPostings *made);

// Finds and ranks the rows that match; see `Transaction::search`.
int32_t cheetah_search(CheetahTxn *txn,
                       const CheetahTable *table,
                       size_t no,
                       const CheetahSearch *search,
                       CheetahMatches **matches);

// Tells a word. The answer is to be passed on if it is not `Ok`.
int32_t cheetah_tell_word(CheetahWordSink *sink,
                          CheetahBytes weights,
                          uint8_t kind,
                          uint32_t ordinal,
                          uint8_t column);

// How many rows match.
uint64_t cheetah_match_count(const CheetahMatches *matches);

// Reads the next row that was found, the best first, and locks it if the search says so; key and
// rank. `End` behind the last one. `skips_locked`: rows that have to be waited for are passed
// over. The key is readable until the next call. See `Transaction::next_match`. Rows that have
// gone, or match no more, are passed over.
int32_t cheetah_next_match(CheetahTxn *txn,
                           const CheetahTable *table,
                           size_t no,
                           const CheetahSearch *search,
                           CheetahMatches *matches,
                           uint8_t skips_locked,
                           CheetahBuffer *row,
                           CheetahBytes *key,
                           float *rank);

// The best row is read next again.
void cheetah_rewind_matches(CheetahMatches *matches);

// The rank of a row, which is judged as it is now if it is locked; `RowNotFound`, and 0, if it
// does not match. See `Transaction::rank_now`.
int32_t cheetah_rank_now(CheetahTxn *txn,
                         const CheetahTable *table,
                         size_t no,
                         const CheetahSearch *search,
                         CheetahMatches *matches,
                         CheetahBytes key,
                         float *rank);

// Frees what a search has found.
void cheetah_free_matches(CheetahMatches *matches);

// Tells what is wrong with the postings of a full-text index: of the search only `end` and the
// function for rows count.
int32_t cheetah_check_words(CheetahTxn *txn,
                            const CheetahTable *table,
                            size_t no,
                            const CheetahSearch *search,
                            CheetahTextSink sink,
                            void *sink_context);

// Bytes of the postings of all full-text indexes on disk; in memory while nothing is there.
int32_t cheetah_fulltext_bytes(const CheetahTable *table, uint64_t *bytes);

// Whether an index is disabled: then no entries of it are wanted, and it cannot be read.
uint8_t cheetah_index_is_disabled(const CheetahTable *table, uint32_t index_no);

// Disables indexes, but for unique ones; see `Transaction::disable_indexes`. Afterwards the table
// is to be opened again. `only_if_empty`: 1 for `End`, and no change, when the table has rows.
// Locks the table as a whole, and is durable on return.
int32_t cheetah_disable_indexes(CheetahTxn *txn,
                                const CheetahTable *table,
                                const uint32_t *indexes,
                                size_t count,
                                uint8_t only_if_empty);

// Builds the disabled indexes and enables them, see `Transaction::enable_indexes`; `entries`
// computes those of a row, `progress` is told now and then how far it is. Afterwards the table is
// to be opened again. Locks the table as a whole, and is durable on return.
int32_t cheetah_enable_indexes(CheetahTxn *txn,
                               const CheetahTable *table,
                               CheetahExpectedEntries entries,
                               void *context,
                               CheetahProgress progress,
                               void *progress_context);

// Sets the number of the connection whose transaction this is.
void cheetah_set_connection(CheetahTxn *txn, uint64_t connection);

// Sets how many tables the connection's current statement uses.
void cheetah_set_tables_in_use(CheetahTxn *txn, uint32_t count);

// Tells all open transactions.
int32_t cheetah_list_transactions(CheetahDb *db, CheetahTxnInfoSink sink, void *context);

// Tells the locks that somebody has or waits for.
int32_t cheetah_list_locks(CheetahDb *db, CheetahLockInfoSink sink, void *context);

// Tells who waits for whom.
int32_t cheetah_list_lock_waits(CheetahDb *db, CheetahLockWaitSink sink, void *context);

// Has reports and views show values of keys as `show` tells them. It is called from any thread
// until the database is closed. Values of which it tells nothing are in hexadecimal digits.
void cheetah_show_values_with(const CheetahDb *db, CheetahShowValue show, void *context);

// Has reports ask `tell` for date and time of day. It is called from any thread until the database
// is closed.
void cheetah_tell_time_with(const CheetahDb *db, CheetahTellTime tell, void *context);

// From now on the sink gets a report of every deadlock, in the thread of the victim, until the
// database is closed.
void cheetah_announce_deadlocks(const CheetahDb *db, CheetahTextSink sink, void *context);

// Has reports ask `describe`, from any thread until the database is closed, for the activity of a
// connection.
void cheetah_describe_connections(CheetahDb *db, CheetahDescribe describe, void *context);

// Begins to load a table: that only the caller sees, see `Transaction::begin_load`, or with the
// commit of the transaction, see `Transaction::begin_load_to_commit`. `load` becomes null when the
// table cannot be loaded. A load that is freed before it has ended leaves the table empty. After
// `DuplicateKey` of `cheetah_load` or `cheetah_finish_load`, `cheetah_refused_row` tells the row.
int32_t cheetah_begin_load(CheetahTxn *txn, const CheetahTable *table, uint8_t to_commit, CheetahLoad **load);

// Loads a row with all its secondary entries.
int32_t cheetah_load(CheetahTxn *txn, CheetahLoad *load, const CheetahRow *row);

// Ends a load; `progress` is told now and then how far it is. Afterwards a table that only the
// caller sees is to be opened again.
int32_t cheetah_finish_load(CheetahTxn *txn, CheetahLoad *load, CheetahProgress progress, void *context);

// Key and row, with its large values in it, of the row that was refused as a duplicate.
void cheetah_refused_row(const CheetahLoad *load, CheetahBytes *key, CheetahBytes *row);

// Frees a load. One that has not ended leaves the table empty.
void cheetah_free_load(CheetahLoad *load);

// Inserts a row with all its secondary entries.
int32_t cheetah_insert(CheetahTxn *txn, const CheetahTable *table, const CheetahRow *row);

// Replaces the row at `old_key`; see `Transaction::update` for which entries to name.
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

// How many rows a consistent read of the table finds; `End` when only a scan can tell.
int32_t cheetah_count(CheetahTxn *txn, const CheetahTable *table, uint64_t *count);

// Reads the large value that a stored row's locator stands for.
int32_t cheetah_fetch_large(CheetahTxn *txn,
                            const CheetahTable *table,
                            CheetahBytes locator,
                            CheetahBuffer *value);

// An empty buffer.
CheetahBuffer *cheetah_new_buffer(void);

// Frees a buffer.
void cheetah_free_buffer(CheetahBuffer *buffer);

// The bytes that the engine put there last.
CheetahBytes cheetah_buffer_bytes(const CheetahBuffer *buffer);

// Pins the state of the database for the next `cheetah_create_snapshot`; `End` when none may wait.
// Takes milliseconds, and one sync of the log.
int32_t cheetah_pin_snapshot(CheetahDb *db, const CheetahNote *notes, size_t notes_count);

// Writes the snapshot that waits, or one of now, into a new directory. Blocks for I/O, as long as
// copying takes.
int32_t cheetah_create_snapshot(CheetahDb *db, const CheetahSnapshotOrder *order, CheetahSnapshot *snapshot);

// Sets the seconds after which a snapshot that waits is given up; with 0 none will wait.
void cheetah_set_snapshot_max_age(CheetahDb *db, uint64_t seconds);

// Has these functions called, in the threads of all databases of the process, as long as it runs.
// If it is called again, the first functions stay.
void cheetah_observe_stages(CheetahStageBegins begins, CheetahStageEnds ends, CheetahConnection connection);

// The calling thread counts what it does with pages until `cheetah_end_page_work`, which gets what
// is put into `since`. Counts may be nested.
void cheetah_begin_page_work(CheetahPageWork *since);

// Puts what the thread has done since `since` into `done`, and ends that count.
void cheetah_end_page_work(const CheetahPageWork *since, CheetahPageWork *done);

// Tells the images made and read back, by their length. The counters start at zero again if
// `restart` is 1.
int32_t cheetah_list_image_work(CheetahDb *db, uint8_t restart, CheetahImageWorkSink sink, void *context);

// As `cheetah_list_image_work`, by index.
int32_t cheetah_list_index_image_work(CheetahDb *db,
                                      uint8_t restart,
                                      CheetahImageWorkSink sink,
                                      void *context);

// Tells the buffer pool in numbers.
int32_t cheetah_pool_stats(CheetahDb *db, CheetahPoolStats *stats);

// Tells what the cache would miss with more or less memory; nothing when too little was asked for.
int32_t cheetah_list_cache_curve(CheetahDb *db, CheetahCurvePointSink sink, void *context);

// Tells all tables that can be used, with their sizes.
int32_t cheetah_list_table_sizes(CheetahDb *db, CheetahTableSizesSink sink, void *context);

// Tells all their indexes.
int32_t cheetah_list_index_sizes(CheetahDb *db, CheetahIndexSizesSink sink, void *context);

// Creates a table.
int32_t cheetah_create_table(CheetahDb *db,
                             const CheetahTableSpec *spec,
                             const CheetahConstraints *constraints);

// Longest stored row that never has a value out of line, in tables whose clustered keys have at
// most `max_key_bytes` bytes.
uint64_t cheetah_inline_row_bytes(uint32_t max_key_bytes);

// Drops a table, unless others keep it that refer to it: a `CheetahReferenced`.
int32_t cheetah_drop_table(CheetahDb *db, CheetahBytes name, uint8_t referenced);

// Gives a table another name. `again`: a crash has interrupted it, and it may be done already.
int32_t cheetah_rename_table(CheetahDb *db, CheetahBytes source, CheetahBytes target, uint8_t again);

// Notes that a table has gone of a larger one, of which those whose names begin so are left; see
// `Db::note_remainders`.
void cheetah_note_remainders(CheetahDb *db, CheetahBytes prefix);

// Empties a table, unless others keep its rows that refer to it: a `CheetahReferenced`. Open
// handles of it no longer work.
int32_t cheetah_truncate_table(CheetahDb *db, CheetahBytes name, uint8_t referenced);

// Opens a table.
int32_t cheetah_open_table(CheetahDb *db, CheetahBytes name, CheetahTable **table);

// Whether the table has been dropped or emptied since it was opened, or a load has taken its
// place: then it is to be opened again.
uint8_t cheetah_is_dropped(const CheetahTable *table);

// Closes a table.
void cheetah_close_table(CheetahTable *table);

// The caller's own bytes, as they were given at creation.
CheetahBytes cheetah_table_extra(const CheetahTable *table);

// Exact number of rows.
uint64_t cheetah_row_count(const CheetahTable *table);

// When a transaction that has been committed changed the table last, in the seconds of
// `cheetah_set_time`; 0 if none has since the database was opened.
uint64_t cheetah_changed_at(const CheetahTable *table);

// The next auto-increment value.
uint64_t cheetah_auto_increment(const CheetahTable *table);

// Sets the next auto-increment value, durably.
int32_t cheetah_set_auto_increment(CheetahDb *db, const CheetahTable *table, uint64_t next);

// The key of the next row of a table with a hidden key; stored big-endian.
uint64_t cheetah_next_hidden_key(const CheetahTable *table);

// Sizes of the first `count` indexes.
int32_t cheetah_index_stats(const CheetahTable *table, CheetahIndexStats *stats, size_t count);

// About how many entries have stored keys in `low..high`; null stands for no bound.
int32_t cheetah_records_in_range(const CheetahTable *table,
                                 uint32_t index_no,
                                 const CheetahBytes *low,
                                 const CheetahBytes *high,
                                 uint64_t *count);

// Walks the whole table as it is now, compares every index with the entries that `expected`
// computes, and tells the sink of each fault. Locks nothing. Blocks for I/O.
int32_t cheetah_check_table(CheetahTxn *txn,
                            const CheetahTable *table,
                            CheetahExpectedEntries expected,
                            void *context,
                            CheetahTextSink sink,
                            void *sink_context);

// As `cheetah_check_table`, of the pages above the leaves alone.
int32_t cheetah_check_inner_pages(CheetahTxn *txn,
                                  const CheetahTable *table,
                                  CheetahTextSink sink,
                                  void *sink_context);

// Adds an expected entry of the row at hand.
void cheetah_expect_entry(CheetahEntrySink *sink, uint32_t index_no, CheetahBytes key, CheetahBytes payload);

// Tells when the statement runs that changes something from now on, in seconds; 0: its changes are
// not noted. See `cheetah_changed_at`.
void cheetah_set_time(CheetahTxn *txn, uint64_t seconds);

// Says that the transaction's statement has created the table and fills it now: snapshots see the
// table from the commit on.
void cheetah_fill_new_table(CheetahTxn *txn, const CheetahTable *table);

// Names the caller's session for other transactions, and has `report` called with it and with
// those sessions for which the transaction waits: see `Transaction::report_waits`. The session
// keeps that name until the transaction is freed or prepared; the report must not wait, nor use
// the engine.
void cheetah_report_waits(CheetahTxn *txn, void *session, CheetahWaitReport report);

// Has `later` asked which of two sessions in a deadlock must commit after the other one, from any
// thread until the database is closed: see `Db::set_victim_choice`.
void cheetah_set_victim_choice(CheetahDb *db, CheetahLaterSession later);

// A transaction; null after a panic. `interrupted` is asked, as long as the transaction is there:
// see `Transaction::interrupt_when`.
CheetahTxn *cheetah_begin(CheetahDb *db, CheetahInterrupted interrupted, void *context);

// Rolls back what is not committed and frees the handle.
void cheetah_free_txn(CheetahTxn *txn);

// Sets the isolation level (`CheetahIsolation`) of this transaction and later ones of the handle;
// before the first read or write.
int32_t cheetah_set_isolation(CheetahTxn *txn, uint8_t level);

// Sets whether rows that have changed since the transaction's snapshot are refused to those who
// lock or change them; as `cheetah_set_isolation`.
void cheetah_set_snapshot_isolation(CheetahTxn *txn, uint8_t is_on);

// Sets how long a lock is waited for from now on.
void cheetah_set_lock_wait(CheetahTxn *txn, uint64_t timeout_ns);

// Fixes now what consistent reads see, where the isolation level fixes it for the whole
// transaction.
int32_t cheetah_take_snapshot(CheetahTxn *txn);

// Ends a statement: lets go of what it alone needed. Its cursors are used no more.
void cheetah_end_statement(CheetahTxn *txn);

// Takes numbers from the table's auto-increment counter, of those that increment and offset allow.
// `numbers` says how many, and which they are then; its `count` is 0 when there are none up to
// `largest`. Waits for statements that take numbers one after the other; `bulk` makes the
// transaction one of these until the statement ends.
int32_t cheetah_reserve_auto_increment(CheetahTxn *txn,
                                       const CheetahTable *table,
                                       uint8_t bulk,
                                       CheetahNumbers *numbers);

// Moves the auto-increment counter past `used`, to the next number that increment and offset
// allow, unless it is there already; logged with the table's next change. The counter may go
// beyond the column's largest number: so the server learns that all are used up. `bulk` as in
// `cheetah_reserve_auto_increment`.
int32_t cheetah_advance_auto_increment(CheetahTxn *txn,
                                       const CheetahTable *table,
                                       uint64_t used,
                                       uint64_t increment,
                                       uint64_t offset,
                                       uint8_t bulk);

// Commits; releases all locks.
int32_t cheetah_commit(CheetahTxn *txn);

// Rolls back; releases all locks.
int32_t cheetah_rollback(CheetahTxn *txn);

// Here, to roll back to.
CheetahSavepoint cheetah_savepoint(CheetahTxn *txn);

// Undoes what came after the savepoint; locks stay.
int32_t cheetah_rollback_to(CheetahTxn *txn, const CheetahSavepoint *savepoint);

// Whether the transaction holds a lock that others may wait for.
uint8_t cheetah_holds_locks(const CheetahTxn *txn);

// Locks a table until the end of the transaction. `NoSuchTable` when the handle is of a table that
// has been dropped or truncated since.
int32_t cheetah_lock_table(CheetahTxn *txn, const CheetahTable *table, uint8_t exclusive);

// Locks a table exclusively until the end of the transaction, unless somebody has to be waited
// for.
int32_t cheetah_try_lock_table(CheetahTxn *txn, const CheetahTable *table);

// Promises to commit or roll back as will be decided. Afterwards the transaction takes
// `cheetah_commit_ordered`, `cheetah_commit`, `cheetah_rollback`, and `cheetah_free_txn`, which
// leaves it waiting for `cheetah_commit_prepared` or `cheetah_rollback_prepared`.
int32_t cheetah_prepare(CheetahTxn *txn, const CheetahXid *xid);

// Commits a prepared transaction in this place of the order of commits, without I/O, from any
// thread; `cheetah_commit` must follow, and tells whether it went well.
void cheetah_commit_ordered(CheetahTxn *txn);

// Tells the XIDs of at most `count` transactions that were prepared before the database was
// opened, each only once; returns how many.
uint32_t cheetah_recover(CheetahDb *db, uint32_t count, CheetahXidSink sink, void *context);

// Commits a prepared transaction that no handle has; `UnknownXid` when none has that name.
int32_t cheetah_commit_prepared(CheetahDb *db, const CheetahXid *xid);

// Rolls a prepared transaction back that no handle has; `UnknownXid` when none has that name.
int32_t cheetah_rollback_prepared(CheetahDb *db, const CheetahXid *xid);

// Waits until no prepared transaction without a handle keeps the table of that name locked. To be
// called before a table is dropped or emptied.
int32_t cheetah_wait_for_prepared(CheetahDb *db,
                                  CheetahBytes name,
                                  uint64_t timeout_ns,
                                  CheetahInterrupted interrupted,
                                  void *context);

// Makes durable what has been committed so far, in any flush mode.
int32_t cheetah_sync_log(CheetahDb *db);

// Tells how long operations have taken: those of each kind that took about equally long, the
// shortest first; nothing of those that have none.
int32_t cheetah_list_latencies(CheetahDb *db, CheetahLatencySink sink, void *context);

// Tells the stalls of each reason, also where there were none.
int32_t cheetah_list_stalls(CheetahDb *db, CheetahStallSink sink, void *context);

// Sets from which time on stalls are reported; 0: none are. See `Db::set_stall_warning_ns`.
void cheetah_set_stall_warning(CheetahDb *db, uint64_t warning_ns);

// From now on the sink gets lines about stalls that take too long, one a second at most, in a
// thread of the engine, until the database is closed.
void cheetah_announce_stalls(CheetahDb *db, CheetahTextSink sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CHEETAH_H */
