// SPDX-License-Identifier: GPL-2.0-only
// What kind of column a Field is, and where its bytes are.
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

// The bytes of a CHAR, VARCHAR or BLOB whose place in the record is `place`, without padding or length.
CheetahBytes column_bytes(const Field *field, const uchar *place);
// Puts such bytes back; a BLOB refers to `value` from then on.
void set_column_bytes(const Field *field, uchar *place, CheetahBytes value);

}  // namespace cheetah
