// SPDX-License-Identifier: GPL-2.0-only
// System variables cheetah_*.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

extern st_mysql_sys_var *system_variables[];

// What the engine is opened with.
CheetahConfig open_config();
ulonglong lock_wait_timeout_seconds(THD *thd);
// The session's choice for tables that say nothing: a CheetahCompression and its level (0: the codec's own default).
void default_compression(THD *thd, uint8_t *codec, int32_t *level);

}  // namespace cheetah
