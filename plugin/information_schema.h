// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_TABLES and CHEETAH_INDEXES.
#pragma once

#include "server.h"

namespace cheetah {

extern st_maria_plugin information_schema_tables;
extern st_maria_plugin information_schema_indexes;

}  // namespace cheetah
