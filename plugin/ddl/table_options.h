// SPDX-License-Identifier: GPL-2.0-only
// The engine's table options, and warnings about options that it ignores.
#pragma once

#include "server.h"
#include "cheetah.h"

// The server requires this name for the struct of table options.
struct ha_table_option_struct {
  uint compression;
  ulonglong compression_level;
  bool page_compressed;
  ulonglong page_compression_level;
  uint encrypted;
  ulonglong encryption_key_id;
};

namespace cheetah {

extern ha_create_table_option table_option_list[];

// Returns whether both have the same compression options.
bool same_format_options(const ha_table_option_struct *mine, const ha_table_option_struct *theirs);
// Returns whether both have the same encryption options.
bool same_encryption(const ha_table_option_struct *mine, const ha_table_option_struct *theirs);

// Chooses the compression of a table with this definition. Warns of options that are invalid or
// have no effect, or refuses them. Returns 0 or a handler error.
int choose_format(THD *thd, const TABLE *form, const HA_CREATE_INFO *info, CheetahFormat *format);

// Chooses the encryption of a table with this definition, with warnings and errors like
// `choose_format`.
int choose_encryption(THD *thd, const TABLE *form, CheetahEncryption *encryption);

// Warns of each other option, which has no effect.
void warn_of_ignored_options(THD *thd, const HA_CREATE_INFO *info);

}  // namespace cheetah
