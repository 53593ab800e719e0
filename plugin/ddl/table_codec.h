// SPDX-License-Identifier: GPL-2.0-only
// How one table of the server lies in the engine: its row, its indexes, and which index is which.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/key_codec.h"
#include "codec/row_codec.h"
#include "codec/words.h"

#include <deque>
#include <vector>

namespace cheetah {

// A secondary index: its key, and the column values that reading only the index needs besides.
class SecondaryCodec {
 public:
  // `clustered`: nullptr for a table with a hidden key.
  void init(TABLE *table, const KEY &key, const KeyCodec *clustered, const KEY *clustered_key);
  const KeyCodec &key() const { return key_; }

  // [1][value]..., a value being [varint length][bytes], one for each column that is not NULL;
  // nothing at all when that would be longer than an index entry should be.
  void append_payload(const uchar *record, Buffer *out) const;
  // Fills the columns that the entry's keys do not tell. False when the payload has been left out,
  // or when nothing in an entry tells a column whole: of those the key has the beginning.
  bool decode_payload(CheetahBytes payload, uchar *record) const;
  // Whether `columns` holds a column that is stored in key or payload.
  bool touches(const MY_BITMAP *columns) const { return key_.touches(columns); }

 private:
  void add_irreversible(const KeyCodec &codec);

  KeyCodec key_;
  std::vector<const KeyPart *> kept_;
  bool has_beginnings_ = false;
  size_t payload_bytes_max_ = 0;
};

// How keys of indexes are encoded, for the engine: the parts of each, then those of the clustered
// key behind it.
class KeyEncodings {
 public:
  // `behind`: nullptr for the clustered key, and for a table with a hidden one.
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
  // Full-text indexes as they are created now.
  void init_fulltext(TABLE *table, const WordRules &rules);
  // As the engine's table has them; false when it has others.
  bool init_fulltext(TABLE *table, const CheetahTable *engine_table);

  bool hidden_key() const { return clustered_no_ == MAX_KEY; }
  uint clustered_no() const { return clustered_no_; }
  const KeyCodec &clustered() const { return clustered_; }
  RowCodec &row() { return row_; }
  const RowCodec &row() const { return row_; }
  const std::vector<SecondaryCodec> &secondaries() const { return secondaries_; }

  // Index 0 of the engine is the clustered one; the others follow in the server's order, but for
  // full-text indexes, which are not indexes of the engine.
  uint engine_index(uint key_no) const { return engine_indexes_[key_no]; }
  uint key_number(uint engine_index) const { return engine_index == 0 ? clustered_no_ : key_numbers_[engine_index - 1]; }
  // Full-text indexes, which the engine counts from 0, in the server's order.
  std::vector<WordCodec> &fulltext() { return fulltext_; }
  const std::vector<WordCodec> &fulltext() const { return fulltext_; }
  size_t fulltext_index(uint key_no) const { return engine_indexes_[key_no]; }
  const SecondaryCodec &secondary_of(uint engine_index) const { return secondaries_[engine_index - 1]; }
  const KeyCodec &key_of(uint key_no) const;
  // As `key_of`, by the engine's number.
  const KeyCodec &key_at(uint engine_index) const {
    return engine_index == 0 ? clustered_ : secondary_of(engine_index).key();
  }

  // How the engine's indexes are encoded; the texts are those of the codec.
  KeyEncodings key_encodings() const;
  // Bytes of the clustered key, at most.
  uint clustered_key_bytes_max() const;
  // The indexes of the table, the clustered one first, for the engine. Their names are the table's.
  std::vector<CheetahIndexSpec> index_specs(const TABLE *table) const;
  // Bytes that differ whenever rows or keys would be encoded differently.
  void append_fingerprint(Buffer *out) const;
  // The columns by name. A table whose columns have come, gone or moved in place has them behind
  // its fingerprint, which may stay the same when columns change places.
  static void append_names(const TABLE *table, Buffer *out);
  // Whether the engine's table, which has kept these bytes, is that of the definition.
  bool describes(const TABLE *table, CheetahBytes kept) const;
  // Whether there are names in them.
  bool has_names(CheetahBytes kept) const;

 private:
  uint clustered_no_ = MAX_KEY;
  // By the server's number of the key: its place in the engine, among indexes or full-text indexes.
  std::vector<uint> engine_indexes_;
  // The server's numbers of secondary indexes, and of full-text indexes.
  std::vector<uint> key_numbers_;
  std::vector<uint> fulltext_numbers_;
  KeyCodec clustered_;
  std::vector<SecondaryCodec> secondaries_;
  std::vector<WordCodec> fulltext_;
  RowCodec row_;
};

// The description of full-text indexes for the engine when they are created.
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

// Tells the client why there can be no such key; the handler's error.
int refuse_fulltext(const char *index, const char *why);

}  // namespace cheetah
