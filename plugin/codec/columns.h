// SPDX-License-Identifier: GPL-2.0-only
// The kinds of columns, and access to their bytes in records.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Returns whether the column is a CHAR(n) or BINARY(n), which are padded to their full width in the
// record.
bool is_char(const Field *field);
// Returns whether the column is a VARCHAR or VARBINARY, COMPRESSED or not.
bool is_varchar(const Field *field);
// Returns whether the column has fixed-width bytes that compare by memcmp: INET4, INET6, UUID.
bool is_fixed_binary(const Field *field);
// Returns whether the engine stores the column: all columns are stored except virtual ones.
bool is_stored(const Field *field);

// Returns the bytes of a CHAR, VARCHAR or BLOB at `place` in the record, without padding or length.
CheetahBytes column_bytes(const Field *field, const uchar *place);
// Writes the bytes of a CHAR, VARCHAR or BLOB. A BLOB points to `value` afterwards.
void set_column_bytes(const Field *field, uchar *place, CheetahBytes value);

// A CHAR, VARCHAR or BLOB column. Caches the properties that `set_column_bytes` determines for
// every row.
class ColumnPlace {
 public:
  explicit ColumnPlace(const Field *field);
  // Like `set_column_bytes`. Returns false if the value is longer than the column.
  bool set(uchar *place, CheetahBytes value) const;
  // Prepares a column that is not read: empties a BLOB, and leaves other columns unchanged.
  void leave(uchar *place) const;

 private:
  enum class Kind : uchar { blob, varchar, padded, filled };
  const Field *field_;
  CHARSET_INFO *charset_ = nullptr;
  size_t width_;
  Kind kind_;
  uchar length_bytes_ = 0;  // of a VARCHAR
  uchar padding_ = 0;       // of a CHAR that is padded with single bytes
};

}  // namespace cheetah
