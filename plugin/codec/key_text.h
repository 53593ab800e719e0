// SPDX-License-Identifier: GPL-2.0-only
// Converts encoded key values to readable text. Works without an open table, because the report of
// a deadlock has none.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Returns a number that describes the encoding of a column's values to `show_value`.
uint32_t shown_as(const Field *field);

// Passes the text of a value to the sink. `value` is encoded like a KeyPart in ascending order,
// without the NULL flag. The text is empty for binary values, and for strings whose weights cannot
// be converted back to characters. A CheetahShowValue.
void show_value(void *, uint32_t shown_as, CheetahBytes value, CheetahTextSink sink, void *sink_context);

}  // namespace cheetah
