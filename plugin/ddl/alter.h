// SPDX-License-Identifier: GPL-2.0-only
// Functions of ALTER TABLE in place for the handlerton.
#pragma once

#include "server.h"

namespace cheetah {

// Called after a crash: returns 0 if the table has the definition of the .frm file with this
// version.
int check_version(handlerton *hton, const char *path, const LEX_CUSTRING *version, ulonglong created);

}  // namespace cheetah
