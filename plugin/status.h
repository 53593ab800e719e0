// SPDX-License-Identifier: GPL-2.0-only
// SHOW STATUS LIKE 'cheetah%'.
#pragma once

#include "server.h"

namespace cheetah {

extern st_mysql_show_var status_variables[];

}  // namespace cheetah
