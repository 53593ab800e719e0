// SPDX-License-Identifier: GPL-2.0-only
// Table options of the engine, and the treatment of those it does not honour.
#pragma once

#include "server.h"
#include "cheetah.h"

// The name is the server's: it looks for the definition of this struct under this name.
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

// Encryption left out, which is the other's.
bool same_format_options(const ha_table_option_struct *mine, const ha_table_option_struct *theirs);
bool same_encryption(const ha_table_option_struct *mine, const ha_table_option_struct *theirs);

// The compression of a table with this definition; warns of words that make no sense or have no
// effect, or refuses them. 0 or an error of the handler.
int choose_format(THD *thd, const TABLE *form, const HA_CREATE_INFO *info, CheetahFormat *format);

// How a table with this definition is encrypted; as above.
int choose_encryption(THD *thd, const TABLE *form, CheetahEncryption *encryption);

// Says by a warning of every other option that it has no effect.
void warn_of_ignored_options(THD *thd, const HA_CREATE_INFO *info);

}  // namespace cheetah
