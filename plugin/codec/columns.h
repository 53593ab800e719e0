// SPDX-License-Identifier: GPL-2.0-only
// The kind of column that a Field is, and the place of its bytes.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// CHAR(n) and BINARY(n): padded to their full width in the record.
bool is_char(const Field *field);
// VARCHAR and VARBINARY, COMPRESSED ones too.
bool is_varchar(const Field *field);
// INET4, INET6, UUID: fixed-width bytes that compare as they are.
bool is_fixed_binary(const Field *field);
// Whether the engine keeps the column at all: everything but virtual columns.
bool is_stored(const Field *field);

// The bytes of a CHAR, VARCHAR or BLOB whose place in the record is `place`, without padding or
// length.
CheetahBytes column_bytes(const Field *field, const uchar *place);
// Puts such bytes back; a BLOB refers to `value` from then on.
void set_column_bytes(const Field *field, uchar *place, CheetahBytes value);

// A CHAR, VARCHAR or BLOB as it is in records: the facts that `set_column_bytes` would find out
// again for every row.
class ColumnPlace {
 public:
  explicit ColumnPlace(const Field *field);
  // As `set_column_bytes`; false when the value is longer than the column.
  bool set(uchar *place, CheetahBytes value) const;
  // For a column that is not read: nothing, but that a BLOB refers to nothing.
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
