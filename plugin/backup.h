// SPDX-License-Identifier: GPL-2.0-only
// Backups: pins the state when BACKUP STAGE ends, and writes it as a snapshot.
#pragma once

#include "server.h"

#include <string>

namespace cheetah {

// Sets the functions of the handlerton that a backup calls.
void set_backup(handlerton *hton);

// Writes a snapshot of the pinned state, or of the current state if none is pinned, into the
// directory `path`. Returns true, with an error in `thd`, on failure.
bool create_snapshot(THD *thd, const std::string &path);

}  // namespace cheetah
