// SPDX-License-Identifier: GPL-2.0-only
// Converts records of the server to stored rows, and back. A stored row is:
//
//   [NULL bytes of the record][fixed-width columns in record format]
//   [varint of each value: length << 1 | external][bytes of the values]
//
// Invariants
//   R1  Virtual columns, and columns that can be decoded exactly from the clustered key, are not
//       stored.
//   R2  A NULL in a fixed-width column is stored with the bytes of the column after `reset`. The
//       bytes compress well. Also, the server compares whole records: if it sets a NULL column to
//       NULL again, the record is unchanged.
//   R3  CHAR is stored without its padding if that can save space.
//   R4  An external value (a locator that replaces a large value in the row) is fetched only if its
//       column is read. The new row reuses the external value if its column is not written, or
//       written with the same value.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/columns.h"
#include "codec/key_codec.h"

#include <vector>

namespace cheetah {

// Reads large values. Each column has its own `slot`: a value is valid until its slot is fetched
// again.
class LargeValues {
 public:
  virtual ~LargeValues() = default;
  // Returns 0 or a handler error.
  virtual int fetch(unsigned slot, CheetahBytes locator, CheetahBytes *value) = 0;
};

class RowCodec {
 public:
  // `clustered`: nullptr for a table with a hidden key.
  void init(TABLE *table, const KeyCodec *clustered);

  // Appends the stored row of `record`. `old`: the row that it replaces, if any. Columns outside
  // `write_set`, and columns with the same value, keep their external values from the old row.
  struct Old {
    CheetahBytes row{nullptr, 0};
    const uchar *record = nullptr;
  };
  bool encode(const uchar *record, const Old &old, const MY_BITMAP *write_set, Buffer *out);
  // The columns to decode.
  enum class Columns {
    all,   // all columns; large values only if the statement reads them, or compares them with new values
    read,  // columns in the table's read set; the content of other columns is undefined but valid
    complete,  // all columns with all large values
  };
  // Decodes a stored row into the record, without the columns of the clustered key. Returns 0 or a
  // handler error.
  int decode(CheetahBytes row, uchar *record, const TABLE *table, Columns columns, LargeValues *large) const;

  // Returns whether `encode` needs the old row for an update to `record` that writes these columns.
  bool needs_old_row(const uchar *record, const MY_BITMAP *write_set) const;
  // Returns whether the engine may store a value of the column out of line: possible for columns of
  // variable length in a table whose rows can become too long.
  bool may_be_large(const Field *field) const { return may_have_large_ && is_var(field); }
  // Older rows may have been stored with different columns, so they may have out-of-line values
  // where the present columns would not.
  void expect_large_if(bool has_older_rows) { may_have_large_ |= has_older_rows; }
  CheetahRowFormatVersion row_format() const;
  // Returns whether the other definition stores columns alike. Columns of variable length may have
  // different maximum lengths.
  bool same_columns(const RowCodec &other) const;
  // How rows of another definition become rows of this one, column by column. -1 for an added
  // column.
  struct Moves {
    std::vector<CheetahBitRun> bits;
    std::vector<int32_t> fixed, vars;
  };
  // `was`: for each column, its number in the other definition, or `no_column`. Returns false if
  // the stored format of a remaining column changes.
  bool moves_from(const RowCodec &other, const std::vector<uint> &was, Moves *moves) const;
  static constexpr uint no_column = ~0U;
  // Appends the description of the columns in the table's fingerprint.
  void describe(Buffer *out) const;

 private:
  struct Fixed {
    Field *field;
    uint offset, width;
    uint null_offset;
    uchar null_bit;  // 0: cannot be NULL
  };
  struct NullBits {
    uint null_offset;
    uchar null_bit;
    uint offset, first, count;  // the column's bits among the NULL bits
    bool operator==(const NullBits &other) const {
      return null_offset == other.null_offset && null_bit == other.null_bit && offset == other.offset &&
             first == other.first && count == other.count;
    }
  };
  // A bit of a virtual column that is stored among the NULL bits.
  struct UnstoredNull {
    uint offset;
    uchar bit;
    bool is_set;  // as in the defaults
  };
  // The stored format of a column.
  struct Stored {
    uint no, type, width;  // width 0: variable
    uint null_offset;
    uchar null_bit;
    int slot;  // index among the columns of fixed or of variable width; -1: the column has no bytes
    uint odd_bit, odd_bits;  // of a BIT column, among the NULL bits
    bool operator==(const Stored &other) const {
      return no == other.no && type == other.type && width == other.width && null_offset == other.null_offset &&
             null_bit == other.null_bit;
    }
  };
  // Columns that are adjacent both in the record and in the row.
  struct Run {
    uint offset, width;
  };
  struct Var {
    Field *field;
    uint offset;
    uint null_offset;
    uchar null_bit;
    uint no;  // of the column in its table
    ColumnPlace place;
  };

  ulonglong longest_row() const;
  CheetahBytes value_of(const Var &var, const uchar *record) const;
  void add(Field *field, TABLE *table);
  bool is_wanted(const Field *field, const TABLE *table) const;
  void add_unstored(const Field *field, const TABLE *table);
  void reset_unstored(uchar *nulls) const;
  void add_fixed(const Fixed &column);
  void add_null_bits(const Field_bit *field, const TABLE *table);
  static bool is_var(const Field *field);
  void append_nulls(const uchar *record, Buffer *out) const;
  void append_fixed(const uchar *record, Buffer *out) const;

  const KeyCodec *clustered_ = nullptr;
  std::vector<Fixed> nullable_fixed_;
  std::vector<uint> nullable_places_;  // the offsets of nullable_fixed_ in the fixed part
  // The content of these columns while they are NULL (R2).
  std::vector<uchar> null_images_;
  std::vector<NullBits> null_bits_;
  std::vector<UnstoredNull> unstored_nulls_;
  std::vector<Run> runs_;
  std::vector<uint16_t> widths_;
  std::vector<Var> vars_;
  std::vector<uint> described_;
  std::vector<Stored> stored_;
  uint null_bytes_ = 0;
  bool may_have_large_ = false;
  uint fixed_bytes_ = 0;

  // A value of the current row, one for each var column.
  struct Value {
    CheetahBytes bytes;
    bool external;
  };
  bool locate(CheetahBytes row, std::vector<Value> *values) const;
  std::vector<Value> values_;
  std::vector<Value> old_values_;
  mutable std::vector<Value> read_values_;
};

}  // namespace cheetah
