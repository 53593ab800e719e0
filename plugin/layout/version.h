// SPDX-License-Identifier: GPL-2.0-only
// The engine's version, which the build passes from Cargo.toml.
#pragma once

#define CHEETAH_QUOTED(word) #word
#define CHEETAH_TEXT(macro) CHEETAH_QUOTED(macro)

namespace cheetah {

constexpr const char *version_text =
    CHEETAH_TEXT(CHEETAH_MAJOR) "." CHEETAH_TEXT(CHEETAH_MINOR) "." CHEETAH_TEXT(CHEETAH_PATCH);

// The server stores a plugin's major and minor version in one byte each.
constexpr unsigned version_number = CHEETAH_MAJOR << 8 | CHEETAH_MINOR;

}  // namespace cheetah
