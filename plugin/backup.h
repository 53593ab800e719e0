// SPDX-License-Identifier: GPL-2.0-only
// Backups: the state that is pinned when BACKUP STAGE ends, and writing it.
#pragma once

#include "server.h"

#include <string>

namespace cheetah {

// Fills in the functions of the handlerton that a backup calls.
void set_backup(handlerton *hton);

// Writes the snapshot that is pinned, or one of now, into the directory `path`. True, with an error
// in `thd`, when it could not.
bool create_snapshot(THD *thd, const std::string &path);

}  // namespace cheetah
