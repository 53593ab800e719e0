// SPDX-License-Identifier: GPL-2.0-only
#include "table_options.h"

#include "errors.h"
#include "settings.h"

#include <string>

namespace cheetah {

ha_create_table_option table_option_list[] = {
    HA_TOPTION_ENUM("COMPRESSION", compression, "default,zstd,lz4,none", 0),
    HA_TOPTION_NUMBER("COMPRESSION_LEVEL", compression_level, 0, 0, 22, 1),
    HA_TOPTION_ENUM("ENCRYPTED", encrypted, "NO,YES", 0),
    HA_TOPTION_END};

void choose_compression(THD *thd, const ha_table_option_struct *options, uint8_t *codec, int32_t *level) {
  default_compression(thd, codec, level);
  if (options == nullptr) return;
  switch (options->compression) {
    case option_zstd: *codec = CHEETAH_COMPRESSION_ZSTD; break;
    case option_lz4: *codec = CHEETAH_COMPRESSION_LZ4; break;
    case option_none: *codec = CHEETAH_COMPRESSION_NONE; break;
    default: break;
  }
  if (options->compression_level != 0) *level = static_cast<int32_t>(options->compression_level);
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
    {HA_CREATE_USED_KEY_BLOCK_SIZE, "KEY_BLOCK_SIZE", "page images have variable length; use COMPRESSION"},
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
    {HA_CREATE_USED_STATS_AUTO_RECALC, "STATS_AUTO_RECALC", "row counts and sizes are exact"},
};

static bool has_level_without_effect(THD *thd, const ha_table_option_struct *options) {
  uint8_t codec;
  int32_t level;
  choose_compression(thd, options, &codec, &level);
  return codec != CHEETAH_COMPRESSION_ZSTD && options != nullptr && options->compression_level != 0;
}

int check_table_options(THD *thd, const TABLE *form, const HA_CREATE_INFO *info) {
  const ha_table_option_struct *options = form->s->option_struct;
  if (options != nullptr && options->encrypted) {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION,
                    "Table storage engine 'CHEETAH' does not support the create option 'ENCRYPTED=YES'; encrypt the "
                    "file system instead",
                    MYF(0));
    return own_error_reported;
  }
  bool row_format = (info->used_fields & HA_CREATE_USED_ROW_FORMAT) && info->row_type != ROW_TYPE_DEFAULT;
  if (row_format) warn_ignored(thd, "ROW_FORMAT", "rows have one format, compressed by pages; use COMPRESSION");
  if (has_level_without_effect(thd, options)) warn_ignored(thd, "COMPRESSION_LEVEL", "only zstd has levels");
  if (info->transactional == HA_CHOICE_NO) warn_ignored(thd, "TRANSACTIONAL=0", "tables are always transactional");
  for (const IgnoredOption &option : ignored_options) {
    if (info->used_fields & option.used) warn_ignored(thd, option.name, option.reason);
  }
  return 0;
}

// A constraint without a name is named by its columns.
static std::string description_of(const Key *key) {
  if (key->name.str != nullptr && key->name.length != 0) return "constraint '" + std::string(key->name.str) + "'";
  std::string columns;
  List_iterator_fast<Key_part_spec> parts(const_cast<Key *>(key)->columns);
  while (Key_part_spec *part = parts++) {
    if (!columns.empty()) columns += ", ";
    columns += part->field_name.str;
  }
  return "FOREIGN KEY (" + columns + ")";
}

int check_foreign_keys(THD *thd) {
  bool unchecked = thd->variables.option_bits & OPTION_NO_FOREIGN_KEY_CHECKS;
  if (thd_sql_command(thd) != SQLCOM_CREATE_TABLE && thd_sql_command(thd) != SQLCOM_ALTER_TABLE) return 0;
  List_iterator_fast<Key> keys(thd->lex->alter_info.key_list);
  while (Key *key = keys++) {
    if (key->type != Key::FOREIGN_KEY) continue;
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                        unchecked ? "CHEETAH has no foreign keys: %s is accepted (foreign_key_checks=0) "
                                    "but not kept and never checked"
                                  : "CHEETAH has no foreign keys: %s is refused; leave it out, or set "
                                    "foreign_key_checks=0 to have it ignored",
                        description_of(key).c_str());
    if (!unchecked) return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  return 0;
}

}  // namespace cheetah
