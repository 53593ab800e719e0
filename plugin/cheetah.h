/* SPDX-License-Identifier: GPL-2.0-only */
/* The C ABI of the Cheetah engine (crates/cheetah-ffi). A test of that crate compares every
   declaration here with the Rust one.

   Every function that returns int32_t returns a CheetahCode; the message of the last failure of the
   calling thread is in cheetah_last_error. A panic never crosses: it becomes CHEETAH_PANIC. Bytes
   that a function returns stay valid until the next call with the same handle. */
#ifndef CHEETAH_H
#define CHEETAH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum CheetahCode {
  CHEETAH_OK = 0,
  CHEETAH_END = 1, /* no (further) entry */
  CHEETAH_DUPLICATE_KEY = 2,
  CHEETAH_TABLE_EXISTS = 3,
  CHEETAH_NO_SUCH_TABLE = 4,
  CHEETAH_ROW_NOT_FOUND = 5,
  CHEETAH_LOCK_TIMEOUT = 6,
  CHEETAH_DEADLOCK = 7,
  CHEETAH_INTERRUPTED = 8,
  CHEETAH_LIMIT = 9,
  CHEETAH_DISK_FULL = 10,
  CHEETAH_UNSUPPORTED = 11,
  CHEETAH_CORRUPTION = 12,
  CHEETAH_IO = 13,
  CHEETAH_FATAL = 14,
  CHEETAH_PANIC = 15,
  CHEETAH_ROLLBACK = 16, /* a commit was refused and rolled back, or a rollback goes on in the background */
  CHEETAH_RECORD_CHANGED = 17, /* the row has changed since the transaction's snapshot */
  CHEETAH_LOCK_TABLE_FULL = 18, /* locks take all the memory they may */
  CHEETAH_LOCKED = 19,       /* somebody else holds a lock, and the caller does not wait */
  CHEETAH_TABLE_CHANGED = 20, /* the table has been emptied or rebuilt since the transaction's snapshot */
  CHEETAH_UNKNOWN_XID = 21,   /* no prepared transaction of that name waits */
  CHEETAH_CANNOT_ADD_CONSTRAINT = 22, /* a constraint between tables cannot be */
  CHEETAH_CONSTRAINT_EXISTS = 23,     /* its name is another one's */
  CHEETAH_IS_REFERENCED = 24,         /* the table is the parent of others */
  CHEETAH_INDEX_IS_NEEDED = 25,       /* the index that the message names serves a constraint */
  CHEETAH_SEARCH_SYNTAX = 26,         /* a full-text query cannot be understood */
  CHEETAH_SEARCH_PHRASE = 27,         /* a phrase of a full-text query has too many words */
  CHEETAH_SEARCH_MEMORY = 28, /* a full-text query takes too much memory, or is nested too deeply */
  CHEETAH_KEY = 29            /* a key of the server's key service is missing, or is another one */
};

enum CheetahCompression { CHEETAH_COMPRESSION_NONE = 0, CHEETAH_COMPRESSION_LZ4 = 1, CHEETAH_COMPRESSION_ZSTD = 2 };

/* Words behind ENCRYPTED. */
enum CheetahEncrypted { CHEETAH_ENCRYPTED_DEFAULT = 0, CHEETAH_ENCRYPTED_YES = 1, CHEETAH_ENCRYPTED_NO = 2 };

/* Words behind ROW_FORMAT; the server's numbers. */
enum CheetahRowFormat {
  CHEETAH_ROW_DEFAULT = 0,
  CHEETAH_ROW_FIXED = 1,
  CHEETAH_ROW_DYNAMIC = 2,
  CHEETAH_ROW_COMPRESSED = 3,
  CHEETAH_ROW_REDUNDANT = 4,
  CHEETAH_ROW_COMPACT = 5,
  CHEETAH_ROW_PAGE = 6
};

/* Where a seek puts a cursor, for a prefix p of stored keys. */
enum CheetahSeek {
  CHEETAH_AT_LEAST = 0, /* first entry >= p */
  CHEETAH_AFTER = 1,    /* first entry > p that does not start with p */
  CHEETAH_AT_MOST = 2,  /* last entry that starts with p or is < p */
  CHEETAH_BEFORE = 3,   /* last entry < p */
  CHEETAH_FIRST = 4,
  CHEETAH_LAST = 5
};

enum CheetahIsolation {
  CHEETAH_READ_COMMITTED = 0,  /* each statement has a snapshot */
  CHEETAH_REPEATABLE_READ = 1, /* the transaction has one */
  CHEETAH_SERIALIZABLE = 2
};

/* How a row or an index is read. */
enum CheetahRead {
  CHEETAH_READ_CONSISTENT = 0, /* as the isolation level says */
  CHEETAH_READ_SHARED = 1,     /* the newest committed rows, locked against changes */
  CHEETAH_READ_EXCLUSIVE = 2   /* the newest committed rows, locked to be changed */
};

/* What becomes of child rows. */
enum CheetahForeignKeyAction {
  CHEETAH_RESTRICT = 0,
  CHEETAH_NO_ACTION = 1,
  CHEETAH_CASCADE = 2,
  CHEETAH_SET_NULL = 3
};

/* What a table is to a constraint. */
enum CheetahForeignKeyRole { CHEETAH_AS_CHILD = 0, CHEETAH_AS_PARENT = 1 };

/* Which children keep a table from being dropped. */
enum CheetahReferenced {
  CHEETAH_REFERENCES_IGNORED = 0,
  CHEETAH_REFERENCES_REFUSED = 1,
  CHEETAH_REFERENCES_REFUSED_ELSEWHERE = 2 /* but for those of its own database */
};

/* Why a thread is held up, or what it does that takes long. */
enum CheetahStage {
  CHEETAH_WAITS_FOR_ROW_LOCK = 0,
  CHEETAH_WAITS_FOR_TABLE_LOCK = 1,
  CHEETAH_WAITS_FOR_LOG_SPACE = 2,
  CHEETAH_WAITS_FOR_MEMORY = 3,
  CHEETAH_ROLLS_BACK = 4
};

/* Whether statistics of a table are taken by themselves; the server's numbers. */
enum CheetahRecalc { CHEETAH_RECALC_AS_DATABASE = 0, CHEETAH_RECALC_ON = 1, CHEETAH_RECALC_OFF = 2 };

typedef struct CheetahDb CheetahDb;
typedef struct CheetahTable CheetahTable;
typedef struct CheetahTxn CheetahTxn;
typedef struct CheetahCursor CheetahCursor;
typedef struct CheetahBuffer CheetahBuffer;
typedef struct CheetahLoad CheetahLoad;
typedef struct CheetahBuild CheetahBuild;
typedef struct CheetahEstimate CheetahEstimate;
typedef struct CheetahForeignKeys CheetahForeignKeys;
typedef struct CheetahWords CheetahWords;
typedef struct CheetahPostings CheetahPostings;
typedef struct CheetahMatches CheetahMatches;

typedef struct CheetahBytes {
  const uint8_t *data;
  size_t len;
} CheetahBytes;

/* The server's keys, asked for from any thread: the newest version of a key, 0 if there is none;
   the bytes of one, into a buffer that the engine wipes, and their number, 0 if they are not to be
   had. */
typedef uint32_t (*CheetahNewestKeyVersion)(uint32_t id);
typedef size_t (*CheetahKeyBytes)(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes);

typedef struct CheetahConfig {
  CheetahBytes directory;
  uint64_t buffer_pool_bytes;
  uint64_t log_file_bytes;
  uint64_t log_bytes_max;
  uint32_t io_capacity;
  uint8_t flush_log_at_commit;
  uint8_t buffers_changes;
  uint8_t buffers_data_files;
  uint8_t encrypts_tables; /* those that do not say */
  uint8_t encrypts_log;
  CheetahNewestKeyVersion newest_key_version;
  CheetahKeyBytes key_bytes;
} CheetahConfig;

/* Variables of the server that depend on each other. */
typedef struct CheetahSettings {
  uint64_t log_file_bytes;
  uint64_t log_bytes_max;
  uint32_t word_chars_min;
  uint32_t word_chars_max;
} CheetahSettings;

typedef struct CheetahRowFormatVersion {
  uint16_t null_bytes;
  uint16_t var_count;
  const uint16_t *fixed;
  size_t fixed_count;
} CheetahRowFormatVersion;

typedef struct CheetahIndexSpec {
  CheetahBytes name;
  uint32_t max_key_bytes;
  uint8_t unique;
} CheetahIndexSpec;

typedef struct CheetahFulltextSpec {
  CheetahBytes name;
  CheetahBytes extra; /* the caller's own: how texts become words */
} CheetahFulltextSpec;

typedef struct CheetahEncryption {
  uint32_t key_id; /* 0 stands for 1 */
  uint8_t encrypted; /* a CheetahEncrypted */
  uint8_t refused;
} CheetahEncryption;

typedef struct CheetahTableSpec {
  CheetahBytes name;
  CheetahRowFormatVersion row_format;
  const CheetahIndexSpec *indexes; /* [0] is the clustered one */
  size_t index_count;
  const CheetahFulltextSpec *fulltext;
  size_t fulltext_count;
  CheetahBytes extra;
  uint64_t auto_increment;
  int32_t compression_level;
  uint8_t compression;
  uint8_t hidden_key;
  uint8_t is_temporary;
  CheetahEncryption encryption;
} CheetahTableSpec;

/* Columns, keys and constraints of a definition. Columns of the same kind have equal keys for equal
   values, but for the flag of NULL and the direction. */
typedef struct CheetahColumnDef {
  CheetahBytes name;
  CheetahBytes kind;
  uint8_t nullable;
} CheetahColumnDef;

typedef struct CheetahKeyPartDef {
  uint32_t column;
  uint8_t descending;
  uint8_t is_prefix;
} CheetahKeyPartDef;

typedef struct CheetahKeyDef {
  const CheetahKeyPartDef *parts;
  size_t part_count;
} CheetahKeyDef;

/* How a part of a stored key is encoded, as far as it takes to find its end. */
typedef struct CheetahKeyPartEncoding {
  const CheetahBytes *levels; /* of a text: of each level the weight of the space, nothing where it is not padded */
  size_t level_count;         /* 0 for what is no text */
  uint32_t bytes;             /* of what is no text */
  uint8_t nullable;
  uint8_t descending;
  uint8_t is_counted; /* whether the index has its column in no part before */
  uint32_t shown_as;  /* the caller's own number, for CheetahShowValue */
} CheetahKeyPartEncoding;

/* The parts of an index, and those of the clustered key behind them. */
typedef struct CheetahKeyEncoding {
  const CheetahKeyPartEncoding *parts;
  size_t part_count;
} CheetahKeyEncoding;

typedef struct CheetahForeignKeyDef {
  CheetahBytes name;
  CheetahBytes parent;
  const CheetahBytes *columns;
  const CheetahBytes *parent_columns;
  size_t column_count;
  uint8_t on_delete; /* a CheetahForeignKeyAction */
  uint8_t on_update;
  uint8_t inherited; /* whether the table is a copy of one that has it */
} CheetahForeignKeyDef;

/* A column that a table keeps under another name. */
typedef struct CheetahRenamedColumn {
  CheetahBytes from;
  CheetahBytes to;
} CheetahRenamedColumn;

typedef struct CheetahConstraints {
  const CheetahColumnDef *columns;
  size_t column_count;
  const CheetahKeyDef *keys; /* that of the clustered index first */
  size_t key_count;
  const CheetahForeignKeyDef *foreign_keys; /* those whose child the table is; first those that it has had */
  size_t foreign_key_count;
  size_t kept_count; /* of them it has had */
  CheetahBytes copy_of; /* the table whose copy it is; empty if it is none */
  const CheetahRenamedColumn *renamed;
  size_t renamed_count;
  uint8_t are_checked; /* whether parents have to be there */
} CheetahConstraints;

/* A column of a constraint in an index. */
typedef struct CheetahKeyColumn {
  uint32_t column; /* its position in the table */
  uint8_t nullable;
  uint8_t descending;
} CheetahKeyColumn;

/* The index that serves one side of a constraint. */
typedef struct CheetahKeySide {
  const CheetahKeyColumn *columns; /* in the order of the constraint; null if no index serves it */
  uint32_t index_no;
  CheetahBytes index_name;
} CheetahKeySide;

typedef struct CheetahForeignKey {
  CheetahBytes name;
  CheetahBytes child;
  CheetahBytes parent;
  const CheetahBytes *columns;
  const CheetahBytes *parent_columns;
  size_t column_count;
  CheetahKeySide child_key;
  CheetahKeySide parent_key;
  uint8_t on_delete; /* a CheetahForeignKeyAction */
  uint8_t on_update;
  uint8_t is_checked; /* whether rows of the child are: not in a copy of a table that has it */
} CheetahForeignKey;

/* What a definition says about the format of its table; 0 stands for a word that is not there. */
typedef struct CheetahFormatWords {
  uint64_t key_block_size;
  const uint32_t *index_key_block_sizes;
  size_t index_count;
  uint32_t compression_level;
  uint32_t page_compression_level;
  int32_t default_level; /* what the session has chosen for tables that do not say */
  uint8_t default_compression;
  uint8_t compression; /* the codec that COMPRESSION names, if it is there */
  uint8_t names_compression;
  uint8_t page_compressed;
  uint8_t row_format; /* a CheetahRowFormat */
} CheetahFormatWords;

typedef struct CheetahFormat {
  int32_t compression_level; /* 0: the codec's default */
  uint8_t compression;
  uint8_t refused;
} CheetahFormat;

/* What a definition says about encryption. */
typedef struct CheetahEncryptionWords {
  uint32_t key_id;
  uint8_t encrypted; /* a CheetahEncrypted */
  uint8_t encrypt_tables; /* what the server says: 0 OFF, 1 ON, 2 FORCE */
  CheetahNewestKeyVersion newest_key_version;
} CheetahEncryptionWords;

/* An index of a new definition: its position so far, or its number among those that were built,
   from 1. */
typedef struct CheetahAlteredIndex {
  CheetahBytes name;
  uint32_t from;
  uint32_t built; /* 0: the table has it already */
} CheetahAlteredIndex;

/* Neighbouring bits of the NULL bytes, and where they get; bit 0 is the lowest one of the first
   byte. */
typedef struct CheetahBitRun {
  uint32_t from;
  uint32_t to;
  uint32_t count;
} CheetahBitRun;

/* Columns of a new definition: how rows are stored from now on, and what becomes of those that
   there are when they are read. */
typedef struct CheetahNewRows {
  CheetahRowFormatVersion row_format;
  const CheetahBitRun *bits; /* those that are kept */
  size_t bit_count;
  const int32_t *fixed; /* for each fixed column of the row-format version the one that it was; -1: it has come */
  const int32_t *vars;  /* the same for those of variable length */
  CheetahBytes defaults; /* a row of the row-format version: what is not kept is as there */
} CheetahNewRows;

typedef struct CheetahAlteredFulltext {
  CheetahFulltextSpec index;
  size_t from; /* its position so far, from 0 */
  const CheetahPostings *built; /* null: the table has it */
} CheetahAlteredFulltext;

/* A new definition of a table, whose rows stay as they are stored. */
typedef struct CheetahAlteration {
  const CheetahTable *table;
  const CheetahAlteredIndex *indexes; /* [0] is the clustered one; those that are not named go */
  size_t index_count;
  const CheetahBuild *build; /* may be null */
  const CheetahNewRows *rows; /* null: the columns stay */
  const CheetahConstraints *constraints; /* null: the table keeps its constraints, and nobody has described it */
  const CheetahAlteredFulltext *fulltext; /* those that are not named go */
  size_t fulltext_count;
  CheetahBytes extra;
  CheetahBytes mark;
  int32_t compression_level; /* of images that are written from now on */
  uint8_t compression;
  uint8_t keeps_compression; /* whether it stays as it is, and the two above mean nothing */
} CheetahAlteration;

typedef struct CheetahEntry {
  uint32_t index_no;
  uint8_t check_unique;
  CheetahBytes key;
  CheetahBytes payload;
} CheetahEntry;

typedef struct CheetahRow {
  CheetahBytes key;
  CheetahBytes row;
  const CheetahEntry *secondary;
  size_t secondary_count;
  uint8_t changes_duplicate; /* whether the caller will change the row that has a unique key already */
} CheetahRow;

/* What a cursor that locks does with a row that somebody else has locked. */
enum CheetahOnLocked {
  CHEETAH_WAIT = 0,
  CHEETAH_SKIP = 1, /* SKIP LOCKED */
  CHEETAH_LOOK = 2  /* stops at it as it was committed last: semi-consistent reads, under READ COMMITTED */
};

/* Where a cursor that locks goes no further. Those with a key of their own forward only. */
enum CheetahSeekEndKind {
  CHEETAH_NO_END = 0,
  CHEETAH_END_OF_PREFIX = 1, /* with the keys that begin with the one that is sought */
  CHEETAH_END_BELOW = 2,     /* before `key` */
  CHEETAH_END_UP_TO = 3,     /* with the keys that begin with `key` */
  CHEETAH_END_OF_ROW = 4     /* as the first, for a whole key of the clustered index */
};

typedef struct CheetahSeekEnd {
  uint8_t kind;
  CheetahBytes key;
} CheetahSeekEnd;

typedef struct CheetahFound {
  CheetahBytes key;       /* clustered index: the row's key; secondary index: the caller's part of the key */
  CheetahBytes clustered; /* the row's key */
  CheetahBytes value;     /* clustered index: the stored row; secondary index: the payload */
} CheetahFound;

typedef struct CheetahSavepoint {
  uint64_t words[4];
} CheetahSavepoint;

/* Auto-increment values: what is wanted, and what was reserved. */
typedef struct CheetahNumbers {
  uint64_t increment;
  uint64_t offset;
  uint64_t largest; /* that the column can hold */
  uint64_t count;
  uint64_t first;
  uint64_t next; /* the counter behind them */
} CheetahNumbers;

typedef struct CheetahXid {
  uint64_t format;
  CheetahBytes global;
  CheetahBytes branch;
} CheetahXid;

typedef struct CheetahIndexStats {
  uint64_t pages;
  uint64_t leaf_pages;
  uint64_t stored_bytes;
  uint64_t logical_bytes;
  uint64_t free_bytes; /* the share of what in the files will be given back */
  uint32_t depth;
} CheetahIndexStats;

/* Texts of what is listed are there during the call only. */
typedef struct CheetahTxnInfo {
  uint64_t id;
  uint64_t connection; /* 0 when nobody holds it */
  uint64_t age_ns;
  uint64_t wait_ns;
  uint64_t changes;
  uint64_t tables_in_use;
  uint64_t tables_locked;
  uint64_t records_locked;
  uint64_t locks;
  uint64_t lock_bytes;
  uint64_t kept_from_purge;
  uint64_t undo_bytes;
  CheetahBytes state;
  CheetahBytes requested_lock; /* empty when it does not wait */
  CheetahBytes xid;            /* empty when it is not prepared */
  uint8_t isolation;
} CheetahTxnInfo;

typedef struct CheetahLockInfo {
  CheetahBytes id;
  uint64_t txn;
  CheetahBytes mode;
  CheetahBytes table;
  CheetahBytes index; /* empty for the table as a whole */
  CheetahBytes data;
} CheetahLockInfo;

typedef struct CheetahLockWait {
  uint64_t requesting;
  CheetahBytes requested_lock;
  uint64_t blocking;
  CheetahBytes blocking_lock;
} CheetahLockWait;

/* Sizes of one index or of several. */
typedef struct CheetahSizes {
  uint64_t pages;
  uint64_t leaf_pages;
  uint64_t depth;
  uint64_t logical_bytes;        /* of all pages before compression */
  uint64_t stored_logical_bytes; /* of those that are on disk */
  uint64_t stored_bytes;         /* their bytes on disk */
  uint64_t free_bytes;           /* the share of what in the files will be given back */
  uint64_t allocated_bytes;      /* the share of the files */
  uint64_t cached_bytes;         /* of pages in memory */
  uint64_t leaf_bytes;           /* of them those of leaves */
  uint64_t leaf_used_bytes;      /* of these, those in use */
} CheetahSizes;

typedef struct CheetahTableSizes {
  CheetahBytes name;
  uint64_t rows;
  uint64_t index_count; /* the clustered one included */
  uint64_t auto_increment;
  CheetahSizes data;      /* the clustered index, with the large values */
  CheetahSizes secondary; /* the others together */
  int32_t compression_level;
  uint8_t compression;
  uint8_t format_version; /* of pages that are written now */
} CheetahTableSizes;

typedef struct CheetahIndexSizes {
  CheetahBytes table;
  CheetahBytes index;
  CheetahSizes sizes;
  int32_t compression_level;
  uint8_t compression;
} CheetahIndexSizes;

/* How a table is encrypted. */
typedef struct CheetahTableEncryption {
  CheetahBytes name;
  uint64_t table;          /* the engine's number of it */
  uint64_t rotation_page;  /* while it rotates: the page that is looked at next */
  uint64_t rotation_pages; /* of so many; 0 while the pass has not begun */
  uint64_t key_requests;   /* to the key service, since the startup */
  uint32_t key_id;
  uint32_t min_key_version; /* that is in use; 0 when pages may be plain */
  uint32_t current_key_version;
  uint8_t is_encrypted; /* whether pages that are written now are */
  uint8_t is_rotating;
} CheetahTableEncryption;

/* Images made of pages, and read back. */
typedef struct CheetahImageWork {
  uint64_t image_bytes_max; /* of these images; 0: those of an index */
  CheetahBytes table;
  CheetahBytes index;
  uint64_t encodes;
  uint64_t encode_ns;
  uint64_t decodes;
  uint64_t decode_ns;
} CheetahImageWork;

/* The buffer pool. Memory is counted in pages of the smallest size, pages one by one. */
typedef struct CheetahPoolStats {
  uint64_t size_pages;
  uint64_t free_pages; /* that fit before others have to leave */
  uint64_t pages;
  uint64_t leaving_pages; /* that leave first, unless they are used again */
  uint64_t dirty_pages;
  uint64_t gets; /* from here on since the startup */
  uint64_t reads;
  uint64_t creates;
  uint64_t writes;
  uint64_t reads_ahead;
  uint64_t ahead_wasted;
  uint64_t reads_per_1000_s; /* from here on since the last output of the status */
  uint64_t creates_per_1000_s;
  uint64_t writes_per_1000_s;
  uint64_t reads_ahead_per_1000_s;
  uint64_t ahead_wasted_per_1000_s;
  uint64_t hits_per_1000;
  uint8_t has_hits; /* 0: nobody has asked for a page */
} CheetahPoolStats;

/* What the cache would miss with so much memory. */
typedef struct CheetahCurvePoint {
  uint64_t percent;
  uint64_t memory_bytes;
  uint64_t misses_per_million;
  uint64_t reads_per_1000_s;
} CheetahCurvePoint;

/* Operations of one kind that took about equally long: one bucket of its histogram. */
typedef struct CheetahLatency {
  CheetahBytes operation;
  uint64_t from_us;
  uint64_t below_us; /* 0: no bound */
  uint64_t count;
} CheetahLatency;

/* Stalls of one reason. */
typedef struct CheetahStall {
  CheetahBytes reason;
  uint64_t current; /* that last */
  uint64_t current_us_max; /* how long the longest of these has lasted */
  uint64_t count; /* that have ended */
  uint64_t sum_us;
  uint64_t max_us;
  uint64_t last_age_ns; /* since the last one ended */
  uint64_t last_connection; /* 0: a thread of the engine */
} CheetahStall;

/* What a table would weigh in one format. */
typedef struct CheetahWeight {
  uint64_t key_block_size; /* that asks for the format, in KiB; 0: none does */
  uint64_t rows;
  uint64_t sampled_rows; /* of the clustered index */
  uint64_t bytes;
  uint64_t error_ppm; /* of `bytes`, in 95 of 100 cases no more, if `rows` is right */
  uint64_t encode_ns; /* for a page */
  uint64_t decode_ns;
  int32_t compression_level;
  uint8_t compression;
  uint8_t has_error; /* 0: the sample does not tell */
} CheetahWeight;

/* Collects the entries that a row should have, during a check. */
typedef struct CheetahEntrySink CheetahEntrySink;
/* Collects the words of a text, during a search. */
typedef struct CheetahWordSink CheetahWordSink;
typedef struct CheetahBuiltEntries CheetahBuiltEntries;
/* Tell the sink each word of a query's text, or of a row; CHEETAH_OK, or what that has answered. */
typedef int32_t (*CheetahSplitText)(void *context, CheetahBytes text, CheetahWordSink *sink);
typedef int32_t (*CheetahWordsOfRow)(void *context, CheetahBytes key, CheetahBytes row, CheetahWordSink *sink);

/* What an index does with a word. */
enum CheetahWordKind {
  CHEETAH_WORD_INDEXED = 0,
  CHEETAH_WORD_STOP = 1,
  CHEETAH_WORD_TOO_SHORT = 2,
  CHEETAH_WORD_TOO_LONG = 3
};

enum CheetahSearchMode { CHEETAH_NATURAL_LANGUAGE = 0, CHEETAH_BOOLEAN = 1, CHEETAH_QUERY_EXPANSION = 2 };

/* A full-text search. */
typedef struct CheetahSearch {
  CheetahBytes text; /* in the character set of the index */
  CheetahBytes end; /* stands behind the weights of each word of the index */
  uint64_t limit_bytes; /* of memory */
  CheetahSplitText split;
  CheetahWordsOfRow words_of_row;
  void *context;
  uint8_t mode; /* a CheetahSearchMode */
  uint8_t read; /* a CheetahRead: how the rows found will be read */
} CheetahSearch;

typedef uint8_t (*CheetahInterrupted)(void *context);
/* What the caller had before a stage; its words are the caller's. */
typedef struct CheetahStageBefore {
  uint64_t first;
  uint64_t second;
  uint64_t third;
} CheetahStageBefore;

/* Is told that the calling thread begins a stage (a CheetahStage); what it puts into `before` it
   gets back at the end. Returns the number of the connection whose thread it is; 0: nobody's. It
   must not wait, nor use the engine. */
typedef uint64_t (*CheetahStageBegins)(uint8_t stage, CheetahStageBefore *before);
typedef void (*CheetahStageEnds)(uint8_t stage, const CheetahStageBefore *before);
/* Returns the number of the connection whose thread calls; 0: nobody's. */
typedef uint64_t (*CheetahConnection)(void);

/* Work of a thread with pages. */
typedef struct CheetahPageWork {
  uint64_t pages_accessed;
  uint64_t pages_updated;
  uint64_t pages_read; /* from disk */
  uint64_t read_ns;
  uint64_t pages_prefetched;
  uint64_t versions_read; /* older versions of rows */
} CheetahPageWork;

/* Is told that the transaction of one session waits for that of another one. */
typedef void (*CheetahWaitReport)(void *waiter, void *blocker);
/* Of two sessions the one whose transaction must commit after the other one's; nullptr if there is
   no such order. */
typedef void *(*CheetahLaterSession)(void *first, void *second);
typedef void (*CheetahProgress)(void *context, uint64_t done, uint64_t total);
typedef void (*CheetahTextSink)(void *context, CheetahBytes text);
typedef void (*CheetahCounterSink)(void *context, CheetahBytes name, uint64_t value);
typedef void (*CheetahXidSink)(void *context, const CheetahXid *xid);
typedef void (*CheetahTxnInfoSink)(void *context, const CheetahTxnInfo *txn);
typedef void (*CheetahLockInfoSink)(void *context, const CheetahLockInfo *lock);
typedef void (*CheetahLockWaitSink)(void *context, const CheetahLockWait *wait);
typedef void (*CheetahTableSizesSink)(void *context, const CheetahTableSizes *table);
typedef void (*CheetahIndexSizesSink)(void *context, const CheetahIndexSizes *index);
typedef void (*CheetahTableEncryptionSink)(void *context, const CheetahTableEncryption *table);
typedef void (*CheetahWeightSink)(void *context, const CheetahWeight *weight);
typedef void (*CheetahImageWorkSink)(void *context, const CheetahImageWork *work);
typedef void (*CheetahForeignKeySink)(void *context, const CheetahForeignKey *constraint);
typedef void (*CheetahCurvePointSink)(void *context, const CheetahCurvePoint *point);
typedef void (*CheetahLatencySink)(void *context, const CheetahLatency *latency);
typedef void (*CheetahStallSink)(void *context, const CheetahStall *stall);
/* Tells the sink for people what the connection of that number does. */
typedef void (*CheetahDescribe)(void *context, uint64_t connection, CheetahTextSink sink, void *sink_context);
typedef int32_t (*CheetahExpectedEntries)(void *context, CheetahBytes key, CheetahBytes row, CheetahEntrySink *sink);
/* Computes the entries of a row in the indexes that are built; CHEETAH_CORRUPTION when the row does
   not fit. */
typedef int32_t (*CheetahEntriesOf)(void *context, CheetahBytes key, CheetahBytes row, CheetahBuiltEntries *entries);

/* A word without blanks, and a text on one line, for the manifest of a snapshot. */
typedef struct CheetahNote {
  CheetahBytes word;
  CheetahBytes text;
} CheetahNote;
/* Whether the server coordinates the prepared transaction of that name by itself, so that it is
   rolled back in a snapshot. */
typedef uint8_t (*CheetahIsOwnXid)(const CheetahXid *xid);
typedef struct CheetahSnapshotOrder {
  CheetahBytes path;       /* absolute, of a directory that does not exist */
  CheetahBytes outside_of; /* a directory in which it may not be, but for the engine's `snapshots` */
  const CheetahNote *notes; /* unless a snapshot waits, which has notes */
  size_t notes_count;
  CheetahIsOwnXid is_own;
  CheetahInterrupted interrupted;
  void *context; /* of `interrupted` */
} CheetahSnapshotOrder;
typedef struct CheetahSnapshot {
  uint64_t files_count;
  uint64_t bytes;
  uint64_t copied_bytes; /* neither linked nor cloned */
} CheetahSnapshot;

/* Errors. */
CheetahBytes cheetah_last_error(void);
void cheetah_last_duplicate(uint32_t *index_no, CheetahBytes *existing);

/* Database. */
int32_t cheetah_open(const CheetahConfig *config, CheetahDb **db);
/* Changes values that do not fit each other; the sink is told of each that has changed. */
void cheetah_adjust_settings(CheetahSettings *settings, CheetahTextSink sink, void *context);
int32_t cheetah_close(CheetahDb *db);
int32_t cheetah_checkpoint(CheetahDb *db);
void cheetah_set_flush_log_at_commit(CheetahDb *db, uint8_t mode);
uint64_t cheetah_set_buffer_pool_size(CheetahDb *db, uint64_t bytes);
void cheetah_set_io_capacity(CheetahDb *db, uint32_t operations_per_second);
/* Begins a pass over all images; 0: none. */
void cheetah_set_scrub_rate(CheetahDb *db, uint64_t bytes_per_second);
void cheetah_set_change_buffering(CheetahDb *db, uint8_t is_on);
/* CHEETAH_KEY: a key is missing, and nothing has changed. */
int32_t cheetah_set_encrypt_tables(CheetahDb *db, uint8_t is_on);
int32_t cheetah_set_encrypt_log(CheetahDb *db, uint8_t is_on);
/* Pages whose key is so many versions behind the newest are written anew; 0: none is. */
void cheetah_set_rotate_key_age(CheetahDb *db, uint32_t versions);
/* Where a definition does not say. */
void cheetah_set_statistics(CheetahDb *db, uint8_t by_themselves, uint32_t places);
int32_t cheetah_status(CheetahDb *db, CheetahCounterSink sink, void *context);
int32_t cheetah_status_text(CheetahDb *db, CheetahTextSink sink, void *context);
/* The sink hears, from any thread until the database is closed, of what goes wrong where no call
   could be told. */
void cheetah_announce_background_errors(CheetahDb *db, CheetahTextSink sink, void *context);
/* Likewise lines about stalls that take so long or longer, one a second at most; 0, as at first:
   none. */
void cheetah_announce_stalls(CheetahDb *db, CheetahTextSink sink, void *context);
void cheetah_set_stall_warning(CheetahDb *db, uint64_t warning_ns);
int32_t cheetah_table_names(CheetahDb *db, CheetahTextSink sink, void *context);

/* Snapshots of the database. */
/* Pins the state for the next call of the other; CHEETAH_END when none may wait. Milliseconds. */
int32_t cheetah_pin_snapshot(CheetahDb *db, const CheetahNote *notes, size_t notes_count);
/* Writes the one that waits, or one of now. */
int32_t cheetah_create_snapshot(CheetahDb *db, const CheetahSnapshotOrder *order, CheetahSnapshot *snapshot);
/* How long one waits; 0: none does. */
void cheetah_set_snapshot_max_age(CheetahDb *db, uint64_t seconds);

/* Tables. */
/* Tells the sink what is wrong with the words; strict: what cannot be meant is refused, not just
   ignored. */
int32_t cheetah_choose_format(const CheetahFormatWords *words, uint8_t strict, CheetahTextSink sink, void *context,
                              CheetahFormat *format);
/* Likewise; no key comes into use by asking. */
int32_t cheetah_choose_encryption(const CheetahEncryptionWords *words, CheetahTextSink sink, void *context,
                                  CheetahEncryption *encryption);
uint8_t cheetah_shown_row_format(uint8_t row_format, uint64_t key_block_size);
int32_t cheetah_create_table(CheetahDb *db, const CheetahTableSpec *spec, const CheetahConstraints *constraints);
/* Longest stored row that never has a value out of line, in tables whose clustered keys have at
   most so many bytes. */
uint64_t cheetah_inline_row_bytes(uint32_t max_key_bytes);
/* `referenced`: a CheetahReferenced. */
int32_t cheetah_drop_table(CheetahDb *db, CheetahBytes name, uint8_t referenced);
/* New definitions of tables: all of them or none. Handles from before are of no more use. */
int32_t cheetah_alter_tables(CheetahDb *db, const CheetahAlteration *alterations, size_t count);
uint8_t cheetah_table_fits(const CheetahTable *table, const CheetahRowFormatVersion *row_format);
/* Whether rows may have been stored with other columns than the table has now. */
uint8_t cheetah_has_older_rows(const CheetahTable *table);
/* Whether rows can get those columns without being written anew. */
uint8_t cheetah_can_change_rows(const CheetahTable *table, const CheetahNewRows *rows);
/* Whether the last of them has that mark. */
uint8_t cheetah_has_mark(CheetahDb *db, CheetahBytes name, CheetahBytes mark);
int32_t cheetah_rename_table(CheetahDb *db, CheetahBytes source, CheetahBytes target, uint8_t again);
/* A table has gone of a larger one, of which those whose names begin so are left: older snapshots
   must not look at them. */
void cheetah_note_remainders(CheetahDb *db, CheetahBytes prefix);
int32_t cheetah_truncate_table(CheetahDb *db, CheetahBytes name, uint8_t referenced);
int32_t cheetah_open_table(CheetahDb *db, CheetahBytes name, CheetahTable **table);
/* Whether it has been dropped or emptied since, or a load has taken its place: then it is to be
   opened again. */
uint8_t cheetah_is_dropped(const CheetahTable *table);
void cheetah_close_table(CheetahTable *table);
CheetahBytes cheetah_table_extra(const CheetahTable *table);
/* Whether an index with such keys can be built for the table as it is. */
uint8_t cheetah_has_room_for_keys(const CheetahTable *table, uint32_t max_key_bytes);
uint64_t cheetah_row_count(const CheetahTable *table);
/* The time of the last committed change; 0 if there is none since the database was opened. */
uint64_t cheetah_changed_at(const CheetahTable *table);
uint64_t cheetah_auto_increment(const CheetahTable *table);
/* Moves the counter past `used`, to the next number that increment and offset allow. It may go
   beyond the column's largest number: that is how the server learns that all are used up. `bulk` as
   in cheetah_reserve_auto_increment. */
int32_t cheetah_advance_auto_increment(CheetahTxn *txn, const CheetahTable *table, uint64_t used, uint64_t increment,
                                       uint64_t offset, uint8_t bulk);
/* Takes numbers from the counter, of those that increment and offset allow; `count` is 0 when there
   are none up to `largest`. Waits for statements that take numbers one after the other; `bulk`
   makes the transaction one of these until the statement ends. */
int32_t cheetah_reserve_auto_increment(CheetahTxn *txn, const CheetahTable *table, uint8_t bulk,
                                       CheetahNumbers *numbers);
int32_t cheetah_set_auto_increment(CheetahDb *db, const CheetahTable *table, uint64_t next);
uint64_t cheetah_next_hidden_key(const CheetahTable *table);
int32_t cheetah_index_stats(const CheetahTable *table, CheetahIndexStats *stats, size_t count);
int32_t cheetah_records_in_range(const CheetahTable *table, uint32_t index_no, const CheetahBytes *low,
                                 const CheetahBytes *high, uint64_t *count);
/* Tells the sink of each fault of the table as it is now. Locks nothing. */
int32_t cheetah_check_table(CheetahTxn *txn, const CheetahTable *table, CheetahExpectedEntries expected, void *context,
                            CheetahTextSink sink, void *sink_context);
/* The same of the pages above the leaves alone. */
int32_t cheetah_check_inner_pages(CheetahTxn *txn, const CheetahTable *table, CheetahTextSink sink, void *sink_context);
void cheetah_expect_entry(CheetahEntrySink *sink, uint32_t index_no, CheetahBytes key, CheetahBytes payload);
/* Once the table is opened, and when what the definition says has changed: one encoding for each
   index. `places`: 0 for as many as the database says; `recalc`: a CheetahRecalc. */
int32_t cheetah_describe_keys(CheetahDb *db, const CheetahTable *table, const CheetahKeyEncoding *keys,
                              size_t key_count, uint32_t places, uint8_t recalc, uint8_t is_temporary);
int32_t cheetah_analyze_table(CheetahDb *db, const CheetahTable *table);
uint64_t cheetah_statistics_version(const CheetahTable *table);
uint64_t cheetah_rows_per_value(const CheetahTable *table, uint32_t index_no, uint32_t parts);

/* What threads do. The observer is called in the threads of all databases, as long as the process
   runs; of several only the first one is. */
void cheetah_observe_stages(CheetahStageBegins begins, CheetahStageEnds ends, CheetahConnection connection);
/* The calling thread counts what it does until the end, which gets what the begin has put into
   `since`. Counts may be nested. */
void cheetah_begin_page_work(CheetahPageWork *since);
void cheetah_end_page_work(const CheetahPageWork *since, CheetahPageWork *done);

/* Transactions. */
CheetahTxn *cheetah_begin(CheetahDb *db, CheetahInterrupted interrupted, void *context);
void cheetah_free_txn(CheetahTxn *txn);
/* When the statement runs that changes something from now on; 0: its changes are not noted. */
void cheetah_set_time(CheetahTxn *txn, uint64_t seconds);
/* Says that the statement has created the table and fills it now: to snapshots it is there from the
   commit on. */
void cheetah_fill_new_table(CheetahTxn *txn, const CheetahTable *table);
/* A session is named until the transaction is freed or prepared by name; the report must not wait,
   nor use the engine. */
void cheetah_report_waits(CheetahTxn *txn, void *session, CheetahWaitReport report);
/* Of sessions that are named, the earlier one is no victim of a deadlock with the later one. Asked
   from any thread. */
void cheetah_set_victim_choice(CheetahDb *db, CheetahLaterSession later);
/* Before the transaction's first read or write. */
int32_t cheetah_set_isolation(CheetahTxn *txn, uint8_t level);
/* Whether rows that have changed since the snapshot are refused to those who lock or change them.
   */
void cheetah_set_snapshot_isolation(CheetahTxn *txn, uint8_t is_on);
void cheetah_set_lock_wait(CheetahTxn *txn, uint64_t timeout_ns);
int32_t cheetah_take_snapshot(CheetahTxn *txn);
/* Cursors of the statement are used no more. */
void cheetah_end_statement(CheetahTxn *txn);
int32_t cheetah_commit(CheetahTxn *txn);
int32_t cheetah_rollback(CheetahTxn *txn);
CheetahSavepoint cheetah_savepoint(CheetahTxn *txn);
int32_t cheetah_rollback_to(CheetahTxn *txn, const CheetahSavepoint *savepoint);
uint8_t cheetah_holds_locks(const CheetahTxn *txn);
int32_t cheetah_lock_table(CheetahTxn *txn, const CheetahTable *table, uint8_t exclusive);
/* Exclusively, unless somebody would have to be waited for. */
int32_t cheetah_try_lock_table(CheetahTxn *txn, const CheetahTable *table);

/* What there is of transactions and locks. */
void cheetah_set_connection(CheetahTxn *txn, uint64_t connection);
void cheetah_set_tables_in_use(CheetahTxn *txn, uint32_t count);
int32_t cheetah_list_transactions(CheetahDb *db, CheetahTxnInfoSink sink, void *context);
int32_t cheetah_list_locks(CheetahDb *db, CheetahLockInfoSink sink, void *context);
int32_t cheetah_list_lock_waits(CheetahDb *db, CheetahLockWaitSink sink, void *context);
/* Reports ask from any thread, until the database is closed. */
void cheetah_describe_connections(CheetahDb *db, CheetahDescribe describe, void *context);

/* What the engine has done and holds, in numbers. */
int32_t cheetah_list_table_sizes(CheetahDb *db, CheetahTableSizesSink sink, void *context);
int32_t cheetah_list_index_sizes(CheetahDb *db, CheetahIndexSizesSink sink, void *context);
int32_t cheetah_list_encryption(CheetahDb *db, CheetahTableEncryptionSink sink, void *context);
/* By length of the image; the counters start at zero again if `restart` is 1. */
int32_t cheetah_list_image_work(CheetahDb *db, uint8_t restart, CheetahImageWorkSink sink, void *context);
int32_t cheetah_list_index_image_work(CheetahDb *db, uint8_t restart, CheetahImageWorkSink sink, void *context);
int32_t cheetah_pool_stats(CheetahDb *db, CheetahPoolStats *stats);
/* Nothing when too little was asked for. */
int32_t cheetah_list_cache_curve(CheetahDb *db, CheetahCurvePointSink sink, void *context);
/* Of those that took about equally long; none where there are none. */
int32_t cheetah_list_latencies(CheetahDb *db, CheetahLatencySink sink, void *context);
/* Also where there were none. */
int32_t cheetah_list_stalls(CheetahDb *db, CheetahStallSink sink, void *context);

/* Two-phase commit. After cheetah_prepare a transaction takes cheetah_commit_ordered (from any
   thread; cheetah_commit must follow), cheetah_commit, cheetah_rollback, and cheetah_free_txn,
   which leaves it waiting for one of the two that find it by its XID. */
int32_t cheetah_prepare(CheetahTxn *txn, const CheetahXid *xid);
void cheetah_commit_ordered(CheetahTxn *txn);
uint32_t cheetah_recover(CheetahDb *db, uint32_t count, CheetahXidSink sink, void *context);
int32_t cheetah_commit_prepared(CheetahDb *db, const CheetahXid *xid);
int32_t cheetah_rollback_prepared(CheetahDb *db, const CheetahXid *xid);
/* Before a table is dropped or emptied: waits for prepared transactions that keep it locked. */
int32_t cheetah_wait_for_prepared(CheetahDb *db, CheetahBytes name, uint64_t timeout_ns, CheetahInterrupted interrupted,
                                  void *context);
int32_t cheetah_sync_log(CheetahDb *db);

/* Rows. */
int32_t cheetah_insert(CheetahTxn *txn, const CheetahTable *table, const CheetahRow *row);
int32_t cheetah_update(CheetahTxn *txn, const CheetahTable *table, CheetahBytes old_key, const CheetahRow *row,
                       const CheetahEntry *old_secondary, size_t old_secondary_count);
int32_t cheetah_delete(CheetahTxn *txn, const CheetahTable *table, CheetahBytes key, const CheetahEntry *old_secondary,
                       size_t old_secondary_count);
int32_t cheetah_get(CheetahTxn *txn, const CheetahTable *table, CheetahBytes key, uint8_t read, CheetahBuffer *row);
/* Rows that a consistent read finds; CHEETAH_END when only a scan can tell. */
int32_t cheetah_count(CheetahTxn *txn, const CheetahTable *table, uint64_t *count);
int32_t cheetah_fetch_large(CheetahTxn *txn, const CheetahTable *table, CheetahBytes locator, CheetahBuffer *value);
/* Loads: rows of a new table that nobody else sees, or of an empty one that others see, where they
   come with the commit (`to_commit` 1). `load` becomes null when the table cannot be loaded; a load
   that is freed before it has ended leaves it empty. A new table is to be opened again behind
   cheetah_finish_load. After CHEETAH_DUPLICATE_KEY of either cheetah_refused_row tells which row it
   was. */
int32_t cheetah_begin_load(CheetahTxn *txn, const CheetahTable *table, uint8_t to_commit, CheetahLoad **load);
int32_t cheetah_load(CheetahTxn *txn, CheetahLoad *load, const CheetahRow *row);
int32_t cheetah_finish_load(CheetahTxn *txn, CheetahLoad *load, CheetahProgress progress, void *context);
void cheetah_refused_row(const CheetahLoad *load, CheetahBytes *key, CheetahBytes *row);
void cheetah_free_load(CheetahLoad *load);
/* Indexes that are built while others read and write the table. cheetah_keep_loads_off keeps loads
   from it to the end of the transaction, and waits for one that is under way, after which it may
   have to be opened again; cheetah_run_build builds them; cheetah_finish_build locks the table
   against writers and brings them up to date: until the transaction ends cheetah_alter_tables takes
   them. After CHEETAH_DUPLICATE_KEY of either the number of the index is one among the new ones,
   from 1, and cheetah_row_refused_by_build tells which row it was. `with_values`: entries need
   large values. A build that is freed leaves nothing behind. */
int32_t cheetah_keep_loads_off(CheetahTxn *txn, const CheetahTable *table);
int32_t cheetah_begin_build(CheetahTxn *txn, const CheetahTable *table, const CheetahIndexSpec *specs, size_t count,
                            uint8_t with_values, CheetahBuild **build);
int32_t cheetah_run_build(CheetahTxn *txn, CheetahBuild *build, CheetahEntriesOf entries, void *context,
                          CheetahProgress progress, void *progress_context);
int32_t cheetah_finish_build(CheetahTxn *txn, CheetahBuild *build, CheetahEntriesOf entries, void *context);
void cheetah_add_built_entry(CheetahBuiltEntries *entries, uint32_t index_no, uint8_t check_unique, CheetahBytes key,
                             CheetahBytes payload);
void cheetah_row_refused_by_build(const CheetahBuild *build, CheetahBytes *key, CheetahBytes *row);
void cheetah_free_build(CheetahBuild *build);
/* Indexes that are not kept for a while: no entries of them are wanted, and they cannot be read.
   Unique ones stay. Both calls lock the table as a whole, are durable on return, and the table is
   to be opened again. With `only_if_empty`, disabling changes nothing of a table that has rows:
   CHEETAH_END. Enabling builds the indexes from the rows. */
uint8_t cheetah_index_is_disabled(const CheetahTable *table, uint32_t index_no);
int32_t cheetah_disable_indexes(CheetahTxn *txn, const CheetahTable *table, const uint32_t *indexes, size_t count,
                                uint8_t only_if_empty);
int32_t cheetah_enable_indexes(CheetahTxn *txn, const CheetahTable *table, CheetahExpectedEntries entries, void *context,
                               CheetahProgress progress, void *progress_context);

/* Full-text indexes, counted from 0: `index` is the table's name and bytes. A word is its weights
   and the index's end; no word may be the beginning of another one, or longer than
   cheetah_word_bytes_max. Its ordinal is that among all words of the row, and `column` that of the
   index. The words of a row are written behind the row, by the same transaction, even if there are
   none: others are kept out by the row's lock. Words of loaded rows are loaded beside them. */
uint32_t cheetah_word_bytes_max(void);
size_t cheetah_fulltext_count(const CheetahTable *table);
int32_t cheetah_fulltext_index(const CheetahTable *table, size_t no, CheetahFulltextSpec *index);
CheetahWords *cheetah_new_words(void);
void cheetah_free_words(CheetahWords *words);
void cheetah_clear_words(CheetahWords *words);
void cheetah_add_word(CheetahWords *words, CheetahBytes word, uint32_t ordinal, uint8_t column);
int32_t cheetah_insert_words(CheetahTxn *txn, const CheetahTable *table, size_t no, CheetahBytes key, CheetahWords *words);
int32_t cheetah_delete_words(CheetahTxn *txn, const CheetahTable *table, size_t no, CheetahBytes key, CheetahWords *words);
int32_t cheetah_change_words(CheetahTxn *txn, const CheetahTable *table, size_t no, CheetahBytes old_key,
                             CheetahWords *old_words, CheetahBytes key, CheetahWords *words);
int32_t cheetah_begin_load_of_words(CheetahTxn *txn, const CheetahTable *table, size_t no, uint8_t to_commit,
                                    CheetahLoad **load);
int32_t cheetah_load_words(CheetahTxn *txn, CheetahLoad *load, CheetahBytes key, CheetahWords *words);
/* Postings of an index that cheetah_alter_tables is to bring: loaded before. What no definition has
   taken goes with the handle. */
int32_t cheetah_new_postings(CheetahDb *db, const CheetahTable *table, CheetahPostings **made);
int32_t cheetah_begin_load_of_postings(CheetahTxn *txn, const CheetahPostings *made, CheetahLoad **load);
void cheetah_free_postings(CheetahPostings *made);
/* A row that does not match is CHEETAH_ROW_NOT_FOUND, and has rank 0. One that is locked is judged
   as it is now. */
int32_t cheetah_search(CheetahTxn *txn, const CheetahTable *table, size_t no, const CheetahSearch *search,
                       CheetahMatches **matches);
int32_t cheetah_tell_word(CheetahWordSink *sink, CheetahBytes weights, uint8_t kind, uint32_t ordinal, uint8_t column);
uint64_t cheetah_match_count(const CheetahMatches *matches);
int32_t cheetah_rank_now(CheetahTxn *txn, const CheetahTable *table, size_t no, const CheetahSearch *search,
                         CheetahMatches *matches, CheetahBytes key, float *rank);
/* Reads the matches in the order of their ranks, and locks them if the search says so; CHEETAH_END
   behind the last one. Those that have gone, or match no more, are passed over. */
int32_t cheetah_next_match(CheetahTxn *txn, const CheetahTable *table, size_t no, const CheetahSearch *search,
                           CheetahMatches *matches, uint8_t skips_locked, CheetahBuffer *row, CheetahBytes *key,
                           float *rank);
void cheetah_rewind_matches(CheetahMatches *matches);
void cheetah_free_matches(CheetahMatches *matches);
/* Whether postings and rows agree: of the search only `end` and the function for rows count. */
int32_t cheetah_check_words(CheetahTxn *txn, const CheetahTable *table, size_t no, const CheetahSearch *search,
                            CheetahTextSink sink, void *sink_context);
/* Of all postings, on disk; in memory while nothing is there. */
int32_t cheetah_fulltext_bytes(const CheetahTable *table, uint64_t *bytes);

/* Constraints between tables. What was found out may be true no more when definitions have changed
   since. A list is null when the table has no constraint; what it tells points into it. */
uint64_t cheetah_definition_changes(const CheetahDb *db);
CheetahForeignKeys *cheetah_foreign_keys(const CheetahDb *db, const CheetahTable *table);
/* Those that a new definition would add, as the child's; the list is null if there are none. */
int32_t cheetah_foreign_keys_to_add(const CheetahDb *db, const CheetahTable *table,
                                    const CheetahConstraints *constraints, CheetahForeignKeys **list);
void cheetah_free_foreign_keys(CheetahForeignKeys *list);
size_t cheetah_foreign_key_count(const CheetahForeignKeys *list, uint8_t role);
void cheetah_foreign_key(const CheetahForeignKeys *list, uint8_t role, size_t no, CheetahForeignKey *constraint);
int32_t cheetah_list_foreign_keys(const CheetahDb *db, CheetahForeignKeySink sink, void *context);
/* Tells the sink what people call the table that has that name behind its database. */
typedef void (*CheetahShowName)(void *context, CheetahBytes name, CheetahTextSink sink, void *sink_context);
/* Has `show` tell so, from any thread until the database is closed. */
void cheetah_show_names_with(const CheetahDb *db, CheetahShowName show, void *context);
/* Has reports and views show values of key parts as `show` tells the sink, from any thread until
   the database is closed: `shown_as` is what the part's CheetahKeyPartEncoding says. Values of
   which it tells nothing are in hexadecimal digits. */
typedef void (*CheetahShowValue)(void *context, uint32_t shown_as, CheetahBytes value, CheetahTextSink sink,
                                 void *sink_context);
void cheetah_show_values_with(const CheetahDb *db, CheetahShowValue show, void *context);
/* Has reports ask `tell` for date and time of day, from any thread until the database is closed. */
typedef void (*CheetahTellTime)(void *context, CheetahTextSink sink, void *sink_context);
void cheetah_tell_time_with(const CheetahDb *db, CheetahTellTime tell, void *context);
/* The sink gets a report of every deadlock, in the thread of the victim, until the database is
   closed. */
void cheetah_announce_deadlocks(const CheetahDb *db, CheetahTextSink sink, void *context);
/* What a constraint has refused last, for people who look at the status of the engine. */
void cheetah_note_refused_by_constraint(const CheetahDb *db, CheetahBytes text);
/* A cursor over the parent's index of a constraint whose child the table is; it reads a snapshot.
   */
int32_t cheetah_open_parents(CheetahTxn *txn, const CheetahForeignKeys *list, size_t no, CheetahCursor **cursor);
/* Looks for a row of the other table, whose index has `key` for the columns of the constraint, and
   locks it shared. CHEETAH_END: there is none. CHEETAH_NO_SUCH_TABLE: ask for the list again. */
int32_t cheetah_find_reference(CheetahTxn *txn, const CheetahForeignKeys *list, uint8_t role, size_t no,
                               CheetahBytes key);
/* A cursor over the child's index, which locks the rows that it meets to be changed. */
int32_t cheetah_open_children(CheetahTxn *txn, const CheetahForeignKeys *list, size_t no, CheetahCursor **cursor);

/* Estimates: what a table like that would weigh. The caller brings runs of neighbours in key order,
   from places all over each index; the first from its start. `more` becomes 0 when the run is long
   enough. Rows have their large values in them. */
int32_t cheetah_new_estimate(const CheetahDb *db, const CheetahTableSpec *spec, CheetahEstimate **estimate);
uint32_t cheetah_estimate_runs(const CheetahEstimate *estimate);
int32_t cheetah_estimate_run(CheetahEstimate *estimate, uint32_t index_no, uint8_t from_start);
int32_t cheetah_estimate_end(CheetahEstimate *estimate, uint32_t index_no);
int32_t cheetah_estimate_row(CheetahEstimate *estimate, CheetahBytes key, CheetahBytes row, uint8_t *more);
int32_t cheetah_estimate_entry(CheetahEstimate *estimate, uint32_t index_no, CheetahBytes key, CheetahBytes clustered,
                               CheetahBytes payload, uint8_t *more);
int32_t cheetah_weigh(CheetahEstimate *estimate, uint64_t rows, CheetahWeightSink sink, void *context);
void cheetah_free_estimate(CheetahEstimate *estimate);

CheetahBuffer *cheetah_new_buffer(void);
void cheetah_free_buffer(CheetahBuffer *buffer);
CheetahBytes cheetah_buffer_bytes(const CheetahBuffer *buffer);

/* Cursors. A cursor is good until the end of its transaction. */
int32_t cheetah_open_cursor(CheetahTxn *txn, const CheetahTable *table, uint32_t index_no, uint8_t read,
                            uint8_t on_locked, CheetahCursor **cursor);
void cheetah_close_cursor(CheetahCursor *cursor);
int32_t cheetah_seek(CheetahCursor *cursor, uint8_t mode, CheetahBytes key, CheetahSeekEnd end, CheetahFound *found);
/* Whether the current row is as it was committed last, and not locked, as somebody else has it
   (CHEETAH_LOOK). */
uint8_t cheetah_is_unlocked(const CheetahCursor *cursor);
/* Once more to such a row, waiting for its lock; to the next one if it has gone. */
int32_t cheetah_read_again(CheetahCursor *cursor, CheetahFound *found);
/* The row does not match: gives its lock back under READ COMMITTED. */
void cheetah_unlock_row(CheetahCursor *cursor);
/* The calls of next and prev that follow go on behind the end that the last seek was given. */
void cheetah_forget_end(CheetahCursor *cursor);
int32_t cheetah_next(CheetahCursor *cursor, CheetahFound *found);
/* The next row of the clustered index and, when a snapshot is read, rows that follow, at most
   `room`. */
int32_t cheetah_next_rows(CheetahCursor *cursor, CheetahFound *found, size_t room, size_t *count);
int32_t cheetah_prev(CheetahCursor *cursor, CheetahFound *found);
int32_t cheetah_current_row(CheetahCursor *cursor, CheetahBuffer *row);

#ifdef __cplusplus
}
#endif

#endif
