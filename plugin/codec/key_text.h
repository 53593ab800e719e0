// SPDX-License-Identifier: GPL-2.0-only
// Values of keys as people read them, from their encoded bytes alone: where a deadlock is reported
// there is no table at hand.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// What `show_value` has to know of a column, as one number.
uint32_t shown_as(const Field *field);

// A value of such a column as KeyPart has encoded it, ascending and without its byte for NULL.
// Tells nothing of what cannot be told: texts of collations whose weights say nothing of
// characters. As the engine calls it.
void show_value(void *, uint32_t shown_as, CheetahBytes value, CheetahTextSink sink, void *sink_context);

}  // namespace cheetah
