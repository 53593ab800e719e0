// SPDX-License-Identifier: GPL-2.0-only
// Maps a table of the server to the engine: the encoding of rows and keys, and the index numbers.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/key_codec.h"
#include "codec/row_codec.h"
#include "codec/words.h"

#include <deque>
#include <vector>

namespace cheetah {

// A secondary index: its key, and the payload, which holds the column values that an index-only
// read cannot decode from the key.
class SecondaryCodec {
 public:
  // `clustered`: nullptr for a table with a hidden key.
  void init(TABLE *table, const KEY &key, const KeyCodec *clustered, const KEY *clustered_key);
  const KeyCodec &key() const { return key_; }

  // Appends [1][value]..., with one value [varint length][bytes] for each column that is not NULL.
  // Appends nothing if the keys state all columns, if no read would use the payload, or if it would
  // be too long.
  void append_payload(const uchar *record, Buffer *out) const;
  // Fills in the columns of an entry from its key, the clustered key behind it and its payload.
  // Returns false if they do not state all columns: the payload was omitted, or the index has a key
  // part that is only a prefix of a column.
  bool decode_entry(CheetahBytes key, CheetahBytes clustered, CheetahBytes payload, uchar *record) const;
  // Returns whether a payload repeats what the keys state, or is not used. Older builds stored
  // such payloads.
  bool repeats(CheetahBytes payload) const;
  // Returns whether `columns` contains a column of the key or payload.
  bool touches(const MY_BITMAP *columns) const { return key_.touches(columns); }

 private:
  void add_irreversible(const KeyCodec &codec);
  bool decode_payload(CheetahBytes payload, uchar *record) const;

  KeyCodec key_;
  const KeyCodec *clustered_ = nullptr;
  std::vector<const KeyPart *> kept_;
  // Whether each column of the payload is a FLOAT or DOUBLE; true if there is none.
  bool keeps_only_reals_ = true;
  bool has_beginnings_ = false;
  size_t payload_bytes_max_ = 0;
};

// Describes the encoding of index keys to the engine: the parts of each key, followed by the parts
// of the clustered key.
class KeyEncodings {
 public:
  // `behind`: the clustered key; nullptr if `key` is the clustered key, or if that is hidden.
  void add(const KeyCodec *key, const KeyCodec *behind);
  const std::vector<CheetahKeyEncoding> &for_engine() const { return keys_; }

 private:
  void add_part(const KeyPart &part, bool is_counted);

  std::deque<std::vector<CheetahBytes>> levels_;
  std::deque<std::vector<CheetahKeyPartEncoding>> parts_;
  std::vector<CheetahKeyEncoding> keys_;
};

class TableCodec {
 public:
  void init(TABLE *table);
  // Initialises the full-text indexes of a new table with the current rules.
  void init_fulltext(TABLE *table, const WordRules &rules);
  // Initialises the full-text indexes with the rules in the engine's table. Returns false if the
  // indexes do not match.
  bool init_fulltext(TABLE *table, const CheetahTable *engine_table);

  bool hidden_key() const { return clustered_no_ == MAX_KEY; }
  uint clustered_no() const { return clustered_no_; }
  const KeyCodec &clustered() const { return clustered_; }
  RowCodec &row() { return row_; }
  const RowCodec &row() const { return row_; }
  const std::vector<SecondaryCodec> &secondaries() const { return secondaries_; }

  // Returns the engine's number of an index. Index 0 of the engine is the clustered index. The
  // secondary indexes follow in the server's order. Full-text indexes are counted separately.
  uint engine_index(uint key_no) const { return engine_indexes_[key_no]; }
  uint key_number(uint engine_index) const { return engine_index == 0 ? clustered_no_ : key_numbers_[engine_index - 1]; }
  // Returns the full-text indexes in the server's order. The engine numbers them from 0.
  std::vector<WordCodec> &fulltext() { return fulltext_; }
  const std::vector<WordCodec> &fulltext() const { return fulltext_; }
  size_t fulltext_index(uint key_no) const { return engine_indexes_[key_no]; }
  const SecondaryCodec &secondary_of(uint engine_index) const { return secondaries_[engine_index - 1]; }
  const KeyCodec &key_of(uint key_no) const;
  // Like `key_of`, but takes the engine's index number.
  const KeyCodec &key_at(uint engine_index) const {
    return engine_index == 0 ? clustered_ : secondary_of(engine_index).key();
  }

  // Returns the encodings of the engine's indexes. They point into this codec.
  KeyEncodings key_encodings() const;
  // Returns the maximum size of the clustered key.
  uint clustered_key_bytes_max() const;
  // Describes the indexes to the engine, the clustered index first. Their names point into `table`.
  std::vector<CheetahIndexSpec> index_specs(const TABLE *table) const;
  // Appends the fingerprint: bytes that differ whenever rows or keys are encoded differently.
  void append_fingerprint(Buffer *out) const;
  // Appends the names of columns. If columns were added, dropped or reordered in place, the table
  // stores the names after its fingerprint, because the fingerprint may not change when columns are
  // reordered.
  static void append_names(const TABLE *table, Buffer *out);
  // Returns whether `kept`, the bytes stored with the engine's table, match the definition.
  bool describes(const TABLE *table, CheetahBytes kept) const;
  // Returns whether `kept` contains names of columns.
  bool has_names(CheetahBytes kept) const;

 private:
  uint clustered_no_ = MAX_KEY;
  // By the server's key number: the number among the engine's indexes or full-text indexes.
  std::vector<uint> engine_indexes_;
  // The server's numbers of secondary indexes, and of full-text indexes.
  std::vector<uint> key_numbers_;
  std::vector<uint> fulltext_numbers_;
  KeyCodec clustered_;
  std::vector<SecondaryCodec> secondaries_;
  std::vector<WordCodec> fulltext_;
  RowCodec row_;
};

// Describes full-text indexes to the engine when they are created.
class FulltextSpecs {
 public:
  explicit FulltextSpecs(const TableCodec &codec);
  const CheetahFulltextSpec *data() const { return specs_.data(); }
  size_t size() const { return specs_.size(); }
  const CheetahFulltextSpec &operator[](size_t no) const { return specs_[no]; }

 private:
  std::vector<Buffer> rules_;
  std::vector<CheetahFulltextSpec> specs_;
};

// Reports to the client why the key is not supported, and returns the handler error.
int refuse_fulltext(const char *index, const char *why);

}  // namespace cheetah
