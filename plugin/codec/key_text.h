// SPDX-License-Identifier: GPL-2.0-only
// Values of keys as people read them, from their encoded bytes alone: where a deadlock is reported
// there is no table at hand.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// The number by which `show_value` knows how values of a column are encoded.
uint32_t shown_as(const Field *field);

// Tells the sink a value of such a column, which is as KeyPart has encoded it in ascending order,
// without its byte for NULL. Tells nothing of binary values, and of texts of collations whose
// weights do not lead back to characters. A CheetahShowValue.
void show_value(void *, uint32_t shown_as, CheetahBytes value, CheetahTextSink sink, void *sink_context);

}  // namespace cheetah
