// SPDX-License-Identifier: GPL-2.0-only
// The one open database of the server process.
#pragma once

#include "server.h"
#include "cheetah.h"

#include <string>

namespace cheetah {

// Set by the plugin's init, cleared by its deinit; between them never null.
struct Engine {
  handlerton *hton = nullptr;
  CheetahDb *db = nullptr;
  unsigned long announcer = 0;  // the last session whose announcement of a backup was accepted
  bool ddl_recovered = false;  // the server has completed or rolled back statements that a crash interrupted
};
extern Engine engine;

inline CheetahBytes bytes_of(const char *text) {
  return CheetahBytes{reinterpret_cast<const uint8_t *>(text), strlen(text)};
}
inline CheetahBytes bytes_of(const std::string &text) {
  return CheetahBytes{reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}
inline std::string text_of(CheetahBytes bytes) {
  return std::string(reinterpret_cast<const char *>(bytes.data), bytes.len);
}

// Fills in the functions of the handlerton (handlerton.cc).
void set_handlerton(handlerton *hton);

}  // namespace cheetah
