// SPDX-License-Identifier: GPL-2.0-only
// Other connections of the server, by their numbers: they may end at any moment.
#pragma once

#include "server.h"
#include "cheetah.h"

#include <string>

namespace cheetah {

// The statement that a connection executes, empty between statements, and how.
struct Connection {
  std::string statement;
  CHARSET_INFO *charset = nullptr;
  bool commits_itself = false;  // each statement is a transaction
  bool only_reads = false;      // START TRANSACTION READ ONLY
  bool checks_unique = true;
  bool checks_foreign_keys = true;
};

// At most `bytes_max` of the statement; false when the connection is gone.
bool find_connection(uint64_t number, size_t bytes_max, Connection *connection);

// Tells `sink` for people the user and the activity of a connection (CheetahDescribe).
void describe_connection(void *, uint64_t connection, CheetahTextSink sink, void *context);

}  // namespace cheetah
