// SPDX-License-Identifier: GPL-2.0-only
// Index keys as bytes whose memcmp order is the index's order.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/text_order.h"

#include <vector>

namespace cheetah {

// One part of an index key: [NULL flag: 0 NULL, 1 value; only when nullable][value]; all inverted
// for DESC. The encoding of a part never is a proper prefix of another value's (T3), so parts
// follow each other directly.
class KeyPart {
 public:
  void init(TABLE *table, const KEY_PART_INFO &part);

  void append(const uchar *record, Buffer *scratch, Buffer *out) const;
  // The same as a part of another index, whose column is of the same kind. Not of a NULL.
  void append_as(const uchar *record, bool nullable, bool descending, Buffer *scratch, Buffer *out) const;
  // The same from a key of this index, of which the part begins at `at`. Returns where the next
  // part begins; nullptr where it is NULL, or the bytes are not such a key.
  const uchar *append_from_key(const uchar *at, const uchar *end, bool nullable, bool descending, Buffer *out) const;
  // The same as `append` from the server's key image; the image's next part.
  const uchar *append_image(const uchar *image, Buffer *scratch, Buffer *out) const;
  // End of this part in an encoded key, or nullptr when the bytes are not such a key.
  const uchar *skip(const uchar *at, const uchar *end) const;
  // For the engine, which finds the end of the part in the same way. `levels` gets those of a text.
  CheetahKeyPartEncoding encoding(std::vector<CheetahBytes> *levels) const;
  // As `skip`; sets the column (and its NULL bit) in `record` as far as the key tells it.
  const uchar *decode(const uchar *at, const uchar *end, uchar *record, bool *is_null) const;

  // The column's bytes in the record follow from the key alone.
  bool reversible() const { return kind_ == Kind::integer || kind_ == Kind::raw; }
  bool descending() const { return invert_ != 0; }
  bool is_null(const uchar *record) const { return nullable_ && (record[null_offset_] & null_bit_); }
  bool whole_column() const { return whole_column_; }
  // The column as it is in the record, without padding: the bytes that a key that is not reversible
  // has lost.
  CheetahBytes stored_bytes(const uchar *record) const;
  void set_stored_bytes(uchar *record, CheetahBytes value) const;
  // Give the column that value, or NULL, in the table's record[0]; false if it does not take it.
  bool set_value(uchar *record, CheetahBytes value) const;
  bool set_null(uchar *record) const;
  uint max_bytes() const;
  Field *field() const { return field_; }
  // The text of the part in the table's fingerprint.
  void describe(Buffer *out) const;
  // Whether the other definition of the part encodes columns alike.
  // `was`: of each column of this definition its number in that of the other one.
  bool same_encoding(const KeyPart &other, const std::vector<uint> &was) const;

 private:
  enum class Kind : uchar {
    integer,      // little-endian in the record, sign bit flipped
    raw,          // the record's bytes compare as they are
    sort_string,  // the column's own sort_string
    text,         // through the collation
  };

  void append_value(const uchar *place, Buffer *out) const;
  void append_integer(const uchar *value, Buffer *out) const;
  void append_sort_string(const uchar *value, Buffer *out) const;
  CheetahBytes text_of(const uchar *place) const;
  void decode_value(const uchar *at, uchar *value) const;
  static Kind kind_of(const Field *field, bool whole_column);
  static bool flips_sign(const Field *field, Kind kind);
  void append_text(const uchar *place, Buffer *scratch, Buffer *out) const;
  void invert_from(size_t start, uchar invert, Buffer *out) const;
  friend void describe_kind(Field *field, Buffer *out);

  Field *field_ = nullptr;
  uint offset_ = 0;
  uint width_ = 0;
  uint part_bytes_ = 0;   // of the value in a key image, without NULL byte and length
  uint store_bytes_ = 0;  // of the whole part in a key image
  uint null_offset_ = 0;
  uchar null_bit_ = 0;
  uchar invert_ = 0;
  bool nullable_ = false;
  bool is_signed_ = false;
  bool flips_sign_ = false;  // an integer whose sign bit is turned over in keys
  bool whole_column_ = false;
  Kind kind_ = Kind::raw;
  TextOrder text_;
};

// Bytes that are equal for two columns exactly when equal values have equal keys, but for the flag
// of NULL and the direction; none for one that has no whole keys.
void describe_kind(Field *field, Buffer *out);

// One index of a table. Stored keys of a secondary index are its parts followed by the clustered
// key.
class KeyCodec {
 public:
  // `clustered`: of a secondary index of a table with a primary key, otherwise nullptr.
  void init(TABLE *table, const KEY &key, const KEY *clustered);

  void append(const uchar *record, Buffer *scratch, Buffer *out) const;
  // The parts that `map` names (always a prefix of the key's) of a key image. An extended key goes
  // on with parts of the clustered key that are not its own.
  void append_image(const uchar *image, key_part_map map, Buffer *scratch, Buffer *out) const;
  // Fills the key's columns of `record`; false when the bytes are not such a key.
  bool decode(CheetahBytes key, uchar *record) const;
  bool has_null(const uchar *record) const;
  bool has_column(const Field *field) const;
  bool unique() const { return unique_; }
  uint max_bytes() const;
  const std::vector<KeyPart> &parts() const { return parts_; }
  // Whether keys of the other definition are encoded alike, and unique alike.
  bool same_encoding(const KeyCodec &other, const std::vector<uint> &was) const;
  // Whether a column of the key is in `columns`.
  bool touches(const MY_BITMAP *columns) const;

 private:
  std::vector<KeyPart> parts_;
  // The clustered key's parts, and for each the part of this key with the same column, or none.
  static constexpr uint no_part = ~0U;
  std::vector<KeyPart> behind_;
  std::vector<uint> own_parts_;
  bool unique_ = false;
};

}  // namespace cheetah
