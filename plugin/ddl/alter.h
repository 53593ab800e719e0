// SPDX-License-Identifier: GPL-2.0-only
// The parts of ALTER TABLE in place that the handlerton needs.
#pragma once

#include "server.h"

namespace cheetah {

// After a crash: 0 if the table has the definition of the .frm file with that number.
int check_version(handlerton *hton, const char *path, const LEX_CUSTRING *version, ulonglong created);

}  // namespace cheetah
