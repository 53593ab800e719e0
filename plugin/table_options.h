// SPDX-License-Identifier: GPL-2.0-only
// Table options of the engine, and what becomes of those it does not honour.
#pragma once

#include "server.h"

// The name is the server's: it looks for the definition of this struct under this name.
struct ha_table_option_struct {
  uint compression;         // CompressionOption
  ulonglong compression_level;
  uint encrypted;
};

namespace cheetah {

enum CompressionOption { option_default, option_zstd, option_lz4, option_none };

extern ha_create_table_option table_option_list[];

// What tables with these options are compressed with: a CheetahCompression and its level (0: the codec's own default).
void choose_compression(THD *thd, const ha_table_option_struct *options, uint8_t *codec, int32_t *level);

// Refuses what cannot be had; says by a warning of every other option that it has no effect.
// 0 or an error of the handler.
int check_table_options(THD *thd, const TABLE *form, const HA_CREATE_INFO *info);

// Refuses foreign keys; with foreign_key_checks=0 accepts each with a warning. 0 or an error of the handler.
int check_foreign_keys(THD *thd);

}  // namespace cheetah
