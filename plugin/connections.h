// SPDX-License-Identifier: GPL-2.0-only
// Other connections of the server, by their numbers: they may end at any moment.
#pragma once

#include "server.h"
#include "cheetah.h"

#include <string>

namespace cheetah {

// What a connection executes.
struct Statement {
  std::string text;
  CHARSET_INFO *charset = nullptr;
};

// At most `bytes_max` of it; false when the connection is gone, or between statements.
bool statement_of(uint64_t connection, size_t bytes_max, Statement *statement);

// Tells `sink` for people who a connection is and what it does (CheetahDescribe).
void describe_connection(void *, uint64_t connection, CheetahTextSink sink, void *context);

}  // namespace cheetah
