// SPDX-License-Identifier: GPL-2.0-only
// Records of the server as stored rows, and back.
//
//   [NULL bytes of the record][fixed-width columns in record format][varints: length << 1 |
//   external][their bytes]
//
// Invariants
//   R1  Virtual columns are not stored; columns that the clustered key gives back exactly are not
//       stored either.
//   R2  A fixed-width column that is NULL is stored as it is after `reset` (it compresses, and the
//       server, which compares whole records, finds a row that it sets to NULL again unchanged).
//   R3  CHAR is stored without its padding when that can save anything.
//   R4  An external value (a locator that the engine put in place of a large value) is fetched only
//       when its column is read, and put back as it is when its column is not written, or written
//       with the same value.
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/columns.h"
#include "codec/key_codec.h"

#include <vector>

namespace cheetah {

// Where large values come from. `slot` tells columns apart: a value stays valid until its slot is
// fetched again.
class LargeValues {
 public:
  virtual ~LargeValues() = default;
  // 0 or an error of the handler.
  virtual int fetch(unsigned slot, CheetahBytes locator, CheetahBytes *value) = 0;
};

class RowCodec {
 public:
  // `clustered`: nullptr for a table with a hidden key.
  void init(TABLE *table, const KeyCodec *clustered);

  // The stored row of `record`. `old`: the row that it replaces, if any; columns outside
  // `write_set`, and those whose value is the same, keep the external values they have there.
  struct Old {
    CheetahBytes row{nullptr, 0};
    const uchar *record = nullptr;
  };
  bool encode(const uchar *record, const Old &old, const MY_BITMAP *write_set, Buffer *out);
  // How much of a row is wanted.
  enum class Columns {
    all,   // of large values only those that the statement reads, or compares with what it writes
    read,  // those in the table's read set; what others hold afterwards says nothing, but is safe to touch
  };
  // The record of a stored row, its key columns apart. 0, or an error of the handler.
  int decode(CheetahBytes row, uchar *record, const TABLE *table, Columns columns, LargeValues *large) const;

  // Whether `encode` needs the old row for an update to `record` that writes these columns.
  bool needs_old_row(const uchar *record, const MY_BITMAP *write_set) const;
  // Whether the engine may have put a value of that column out of line: any of variable length, in
  // a table whose rows can get too long.
  bool may_be_large(const Field *field) const { return may_have_large_ && is_var(field); }
  // Rows of the table may have been stored with other columns than these: a value that would be in
  // line now may be out of line there.
  void expect_large_if(bool has_older_rows) { may_have_large_ |= has_older_rows; }
  CheetahRowFormatVersion row_format() const;
  // Whether the columns of the other definition are stored alike: values of variable length may
  // become longer.
  bool same_columns(const RowCodec &other) const;
  // How rows of another definition become rows of this one, column by column; -1 for a column that
  // has come.
  struct Moves {
    std::vector<CheetahBitRun> bits;
    std::vector<int32_t> fixed, vars;
  };
  // `was`: of each column its number in the other definition, or `no_column`. False when one that
  // stays is stored in another way.
  bool moves_from(const RowCodec &other, const std::vector<uint> &was, Moves *moves) const;
  static constexpr uint no_column = ~0U;
  // The text of the columns in the table's fingerprint.
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
  // A bit of a virtual column that lies among the NULL bits.
  struct UnstoredNull {
    uint offset;
    uchar bit;
    bool is_set;  // as in the defaults
  };
  // A stored column, as far as it says how rows are stored.
  struct Stored {
    uint no, type, width;  // no width: variable
    uint null_offset;
    uchar null_bit;
    int slot;  // among the columns with a width, or those without; -1: of no bytes
    uint odd_bit, odd_bits;  // of a BIT column, among the NULL bits
    bool operator==(const Stored &other) const {
      return no == other.no && type == other.type && width == other.width && null_offset == other.null_offset &&
             null_bit == other.null_bit;
    }
  };
  // Neighbours in the record that are neighbours in the row too.
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
  std::vector<uint> nullable_places_;  // of nullable_fixed_, in the fixed part
  // The content of their columns while NULL: the server compares whole records, and resets a column
  // that it sets to NULL.
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

  // Of the row at hand, one for each var column.
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
