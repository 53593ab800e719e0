// SPDX-License-Identifier: GPL-2.0-only
// Whether the running server lays its classes out as the headers did that this plugin was built
// with. The server compares one number of the version only.
#pragma once

#include "server.h"

namespace cheetah {

// The difference, in words; null if none was found. To be called before anything of the server is
// used, by the plugin's init, with the handlerton as the server has made it.
const char *layout_difference(const handlerton *hton);

}  // namespace cheetah
