// SPDX-License-Identifier: GPL-2.0-only
// Checks that the classes of the running server have the layout of the headers that this plugin was
// built with. The server itself only compares a version number.
#pragma once

#include "server.h"

namespace cheetah {

// Returns a description of the first difference; null if none was found. The plugin's init must
// call this before it uses anything of the server, with the handlerton as the server initialised
// it.
const char *layout_difference(const handlerton *hton);

}  // namespace cheetah
