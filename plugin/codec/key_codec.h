// SPDX-License-Identifier: GPL-2.0-only
// Encodes index keys as bytes whose memcmp order is the index's order.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/text_order.h"

#include <vector>

namespace cheetah {

// One part of an index key: [flag, only if nullable: 0 for NULL, 1 for a value][value]. For DESC
// all bytes are inverted. The encoding of a value is never a proper prefix of the encoding of
// another value (T3), so parts follow each other without separators.
class KeyPart {
 public:
  void init(TABLE *table, const KEY_PART_INFO &part);

  void append(const uchar *record, Buffer *scratch, Buffer *out) const;
  // Appends the value as a part of another index, whose column is of the same kind. The value must
  // not be NULL.
  void append_as(const uchar *record, bool nullable, bool descending, Buffer *scratch, Buffer *out) const;
  // Like `append_as`, but takes the value from a key of this index, in which the part begins at
  // `at`. Returns the start of the next part; nullptr if the part is NULL or the key is invalid.
  const uchar *append_from_key(const uchar *at, const uchar *end, bool nullable, bool descending, Buffer *out) const;
  // Like `append`, but takes the value from the server's key image. Returns the image's next part.
  const uchar *append_image(const uchar *image, Buffer *scratch, Buffer *out) const;
  // Returns the end of this part in an encoded key, or nullptr if the key is invalid.
  const uchar *skip(const uchar *at, const uchar *end) const;
  // Describes the part to the engine, which must find its end like `skip`. Adds the levels of a
  // text to `levels`.
  CheetahKeyPartEncoding encoding(std::vector<CheetahBytes> *levels) const;
  // Like `skip`, but also sets the NULL bit of the column in `record`, and its value if the part is
  // reversible.
  const uchar *decode(const uchar *at, const uchar *end, uchar *record, bool *is_null) const;

  // Returns whether the column's bytes in the record can be decoded from the key.
  bool reversible() const { return kind_ == Kind::integer || kind_ == Kind::raw; }
  // Returns whether the column is a FLOAT or DOUBLE, whose values the key states with a few
  // exceptions: see `states`.
  bool is_real() const { return is_real_; }
  // Returns whether the key of a FLOAT or DOUBLE states this value, which has the form of
  // `stored_bytes`. The key of -0.0 is that of 0.0.
  static bool states(CheetahBytes value);
  // Sets a FLOAT or DOUBLE that is not NULL to the value that its part of a key states. `at`: the
  // beginning of the part.
  void set_stated(const uchar *at, uchar *record) const;
  bool descending() const { return invert_ != 0; }
  bool is_null(const uchar *record) const { return nullable_ && (record[null_offset_] & null_bit_); }
  bool whole_column() const { return whole_column_; }
  // Returns the column's bytes in the record, without padding. A key that is not reversible does
  // not preserve them.
  CheetahBytes stored_bytes(const uchar *record) const;
  void set_stored_bytes(uchar *record, CheetahBytes value) const;
  // Set the column to a value or to NULL in the table's record[0]. Return false if the column
  // cannot hold it.
  bool set_value(uchar *record, CheetahBytes value) const;
  bool set_null(uchar *record) const;
  uint max_bytes() const;
  Field *field() const { return field_; }
  // Appends the description of the part in the table's fingerprint.
  void describe(Buffer *out) const;
  // Returns whether the other definition of the part encodes values alike. `was`: for each column
  // of this definition, its number in the other definition.
  bool same_encoding(const KeyPart &other, const std::vector<uint> &was) const;

 private:
  enum class Kind : uchar {
    integer,      // little-endian in the record, sign bit flipped
    raw,          // the record's bytes, which compare by memcmp
    sort_string,  // the result of Field::sort_string
    text,         // encoded by the collation (TextOrder)
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
  bool flips_sign_ = false;  // an integer whose sign bit is inverted in keys
  bool whole_column_ = false;
  bool is_real_ = false;
  Kind kind_ = Kind::raw;
  TextOrder text_;
};

// Appends a description of the column's kind. Two columns have equal descriptions exactly if equal
// values have equal keys, apart from the NULL flag and the direction. Appends nothing for a BLOB,
// whose keys hold only a prefix.
void describe_kind(Field *field, Buffer *out);

// One index of a table. Stored keys of a secondary index are its parts followed by the clustered
// key.
class KeyCodec {
 public:
  // `clustered`: the primary key, if this is a secondary index of a table with one; otherwise
  // nullptr.
  void init(TABLE *table, const KEY &key, const KEY *clustered);

  void append(const uchar *record, Buffer *scratch, Buffer *out) const;
  // Appends the parts of a key image that `map` selects; they are always the first parts. The image
  // of an extended key continues with the parts of the clustered key whose columns are not in this
  // key.
  void append_image(const uchar *image, key_part_map map, Buffer *scratch, Buffer *out) const;
  // Whether the values of FLOAT and DOUBLE columns are decoded from a key: not if the row is there,
  // which has them exactly.
  enum class Reals { leave, decode };
  // Decodes the key into the columns of `record`. Returns false if the key is invalid.
  bool decode(CheetahBytes key, uchar *record, Reals reals = Reals::leave) const;
  bool has_null(const uchar *record) const;
  bool has_column(const Field *field) const;
  bool unique() const { return unique_; }
  uint max_bytes() const;
  const std::vector<KeyPart> &parts() const { return parts_; }
  // Returns whether the other definition encodes keys alike, and both or neither are unique.
  bool same_encoding(const KeyCodec &other, const std::vector<uint> &was) const;
  // Returns whether a column of the key is in `columns`.
  bool touches(const MY_BITMAP *columns) const;

 private:
  std::vector<KeyPart> parts_;
  // The parts of the clustered key, and for each the part of this key with the same column, or
  // `no_part`.
  static constexpr uint no_part = ~0U;
  std::vector<KeyPart> behind_;
  std::vector<uint> own_parts_;
  bool unique_ = false;
};

}  // namespace cheetah
