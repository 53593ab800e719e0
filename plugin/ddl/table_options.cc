// SPDX-License-Identifier: GPL-2.0-only
#include "ddl/table_options.h"

#include "encryption/encryption.h"
#include "errors.h"
#include "settings.h"

#include <string>
#include <vector>

namespace cheetah {

// The last four are InnoDB's options, so that its tables can be converted without changes.
ha_create_table_option table_option_list[] = {
    HA_TOPTION_ENUM("COMPRESSION", compression, "default,zstd,lz4,none", 0),
    HA_TOPTION_NUMBER("COMPRESSION_LEVEL", compression_level, 0, 0, 22, 1),
    HA_TOPTION_BOOL("PAGE_COMPRESSED", page_compressed, 0),
    HA_TOPTION_NUMBER("PAGE_COMPRESSION_LEVEL", page_compression_level, 0, 1, 9, 1),
    HA_TOPTION_ENUM("ENCRYPTED", encrypted, "DEFAULT,YES,NO", 0),
    // Like HA_TOPTION_SYSVAR, but for a variable of another file.
    {HA_OPTION_TYPE_SYSVAR, "ENCRYPTION_KEY_ID", sizeof("ENCRYPTION_KEY_ID") - 1,
     offsetof(ha_table_option_struct, encryption_key_id), 0, 0, 0, 0, 0, sysvar_default_encryption_key_id},
    HA_TOPTION_END};

enum CompressionOption { option_default, option_zstd, option_lz4, option_none };
static const uint8_t codec_of_option[] = {0, CHEETAH_COMPRESSION_ZSTD, CHEETAH_COMPRESSION_LZ4,
                                          CHEETAH_COMPRESSION_NONE};

bool same_encryption(const ha_table_option_struct *mine, const ha_table_option_struct *theirs) {
  if (mine == nullptr || theirs == nullptr) return true;
  return mine->encrypted == theirs->encrypted && mine->encryption_key_id == theirs->encryption_key_id;
}

bool same_format_options(const ha_table_option_struct *mine, const ha_table_option_struct *theirs) {
  if (mine == nullptr || theirs == nullptr) return true;
  return mine->compression == theirs->compression && mine->compression_level == theirs->compression_level &&
         mine->page_compressed == theirs->page_compressed &&
         mine->page_compression_level == theirs->page_compression_level;
}

static void warn_of_words(void *thd, CheetahBytes text) {
  push_warning_printf(static_cast<THD *>(thd), Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION, "%.*s",
                      static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

int choose_format(THD *thd, const TABLE *form, const HA_CREATE_INFO *info, CheetahFormat *format) {
  std::vector<uint32_t> sizes;
  for (uint key_no = 0; key_no < form->s->keys; key_no++) sizes.push_back(form->key_info[key_no].block_size);
  CheetahFormatWords words = {};
  words.key_block_size = info->key_block_size;
  words.index_key_block_sizes = sizes.data();
  words.index_count = sizes.size();
  words.row_format = static_cast<uint8_t>(info->row_type == ROW_TYPE_NOT_USED ? ROW_TYPE_DEFAULT : info->row_type);
  default_compression(thd, &words.default_compression, &words.default_level);
  if (const ha_table_option_struct *options = form->s->option_struct) {
    words.names_compression = options->compression != option_default;
    words.compression = codec_of_option[options->compression];
    words.compression_level = static_cast<uint32_t>(options->compression_level);
    words.page_compressed = options->page_compressed;
    words.page_compression_level = static_cast<uint32_t>(options->page_compression_level);
  }
  int32_t code = cheetah_choose_format(&words, strict_mode(thd), warn_of_words, thd, format);
  if (code != CHEETAH_CODE_OK) return handler_error(code, thd);
  return format->refused ? HA_WRONG_CREATE_OPTION : 0;
}

static void warn_ignored(THD *thd, const char *option, const char *reason) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                      "CHEETAH ignores the option %s: %s", option, reason);
}

struct IgnoredOption {
  ulong used;
  const char *name;
  const char *reason;
};

static const IgnoredOption ignored_options[] = {
    {HA_CREATE_USED_DATADIR, "DATA DIRECTORY", "all tables share the files in #cheetah"},
    {HA_CREATE_USED_INDEXDIR, "INDEX DIRECTORY", "all tables share the files in #cheetah"},
    {HA_CREATE_USED_MIN_ROWS, "MIN_ROWS", "row counts are exact"},
    {HA_CREATE_USED_MAX_ROWS, "MAX_ROWS", "row counts are exact"},
    {HA_CREATE_USED_AVG_ROW_LENGTH, "AVG_ROW_LENGTH", "it is measured"},
    {HA_CREATE_USED_PACK_KEYS, "PACK_KEYS", "pages are always compressed; use COMPRESSION"},
    {HA_CREATE_USED_CHECKSUM, "CHECKSUM", "every page has a checksum"},
    {HA_CREATE_USED_DELAY_KEY_WRITE, "DELAY_KEY_WRITE", "indexes are transactional"},
    {HA_CREATE_USED_UNION, "UNION", "this is not a MERGE table"},
    {HA_CREATE_USED_INSERT_METHOD, "INSERT_METHOD", "this is not a MERGE table"},
    {HA_CREATE_USED_PASSWORD, "PASSWORD", "it has no meaning"},
    {HA_CREATE_USED_CONNECTION, "CONNECTION", "the table is local"},
    {HA_CREATE_USED_PAGE_CHECKSUM, "PAGE_CHECKSUM", "every page has a checksum"},
    {HA_CREATE_USED_STATS_PERSISTENT, "STATS_PERSISTENT", "row counts and sizes are exact"},
};

int choose_encryption(THD *thd, const TABLE *form, CheetahEncryption *encryption) {
  const ha_table_option_struct *options = form->s->option_struct;
  return options == nullptr ? 0 : choose_encryption(thd, options->encrypted, options->encryption_key_id, encryption);
}

void warn_of_ignored_options(THD *thd, const HA_CREATE_INFO *info) {
  if (info->transactional == HA_CHOICE_NO) warn_ignored(thd, "TRANSACTIONAL=0", "tables are always transactional");
  for (const IgnoredOption &option : ignored_options) {
    if (info->used_fields & option.used) warn_ignored(thd, option.name, option.reason);
  }
}

}  // namespace cheetah
