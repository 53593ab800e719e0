// SPDX-License-Identifier: GPL-2.0-only
// Access to other connections of the server by their IDs. A connection may end at any moment.
#pragma once

#include "server.h"
#include "cheetah.h"

#include <string>

namespace cheetah {

// The current statement of a connection, empty between statements, and the connection's settings.
struct Connection {
  std::string statement;
  CHARSET_INFO *charset = nullptr;
  bool commits_itself = false;  // each statement is a transaction
  bool only_reads = false;      // START TRANSACTION READ ONLY
  bool checks_unique = true;
  bool checks_foreign_keys = true;
};

// Describes the connection with ID `number`, with at most `bytes_max` bytes of its statement.
// Returns false if the connection has ended.
bool find_connection(uint64_t number, size_t bytes_max, Connection *connection);

// Passes a readable description of a connection's user and activity to `sink` (CheetahDescribe).
void describe_connection(void *, uint64_t connection, CheetahTextSink sink, void *context);

}  // namespace cheetah
