// SPDX-License-Identifier: GPL-2.0-only
// Tables come, go, and change their names.
//
// The engine's catalog is transactional: each of these calls is done as a whole and durable, or not
// at all. The server's .frm file is a second place. Its ddl log puts the two together again after a
// crash; for that, dropping and renaming a table that is not there must answer "no such table" and
// nothing else (docs/developers/mariadb.md, "DDL and crashes").
#include "constraints/definition.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "ddl/orphans.h"
#include "settings.h"
#include "ddl/table_options.h"
#include "transactions/two_phase.h"

using namespace cheetah;

static int create_in_engine(THD *thd, const std::string &name, TABLE *form, const HA_CREATE_INFO *info,
                            const CheetahFormat &format, const CheetahEncryption &encryption, TableCodec &codec) {
  codec.init_fulltext(form, word_rules(thd));
  for (const WordCodec &index : codec.fulltext()) {
    if (const char *why = index.why_not()) return refuse_fulltext(index.name(), why);
  }
  Definition definition(thd, form, codec, info->alter_info);
  int error = definition.find(name);
  if (error != 0) return error;
  std::vector<CheetahIndexSpec> indexes = codec.index_specs(form);
  Buffer fingerprint;
  codec.append_fingerprint(&fingerprint);
  CheetahTableSpec spec = {};
  spec.name = bytes_of(name);
  spec.row_format = codec.row().row_format();
  spec.indexes = indexes.data();
  spec.index_count = indexes.size();
  FulltextSpecs fulltext(codec);
  spec.fulltext = fulltext.data();
  spec.fulltext_count = fulltext.size();
  spec.extra = fingerprint.bytes();
  spec.auto_increment = form->found_next_number_field != nullptr ? info->auto_increment_value : 0;
  spec.hidden_key = codec.hidden_key();
  spec.is_temporary = is_temporary_name(name);
  spec.compression = format.compression;
  spec.compression_level = format.compression_level;
  spec.encryption = encryption;
  return handler_error(cheetah_create_table(engine.db, &spec, definition.for_engine()), thd);
}

int cheetah::refuse_fulltext(const char *index, const char *why) {
  my_printf_error(ER_NOT_SUPPORTED_YET, "CHEETAH: FULLTEXT key '%s': %s", MYF(0), index, why);
  return own_error_reported;
}

int ha_cheetah::create(const char *path, TABLE *form, HA_CREATE_INFO *info) {
  THD *thd = ha_thd();
  CheetahFormat format = {};
  CheetahEncryption encryption = {};
  int error = choose_format(thd, form, info, &format);
  if (error == 0) error = choose_encryption(thd, form, &encryption);
  if (error != 0) return error;
  warn_of_ignored_options(thd, info);
  if (!info->tmp_table()) warn_of_unreplicated(thd, form->s->table_name.str);
  TableCodec codec;
  codec.init(form);
  // The server makes the table of a vector index next, with a column for positions of this one.
  ref_length = position_bytes(codec);
  std::string name = table_name_of_path(path);
  error = create_in_engine(thd, name, form, info, format, encryption, codec);
  Session *session = error == 0 ? Session::of(thd) : nullptr;
  if (session != nullptr) session->note_created(thd, name);
  return error;
}

// DROP PARTITION and CONVERT PARTITION take rows out of a table without deleting them. All other
// changes of partitions put others in the place of those that go.
static bool takes_partitions_out(THD *thd) {
  static constexpr ulonglong taking = ALTER_PARTITION_DROP | ALTER_PARTITION_CONVERT_OUT;
  bool alters = thd != nullptr && thd_sql_command(thd) == SQLCOM_ALTER_TABLE;
  return alters && (thd->lex->alter_info.partition_flags & taking) != 0;
}

// A partition has gone. Tells the engine if the statement has taken its rows out of the table.
static void note_partition_gone(THD *thd, const std::string &name) {
  std::string siblings = siblings_of_partition(name);
  if (!siblings.empty() && takes_partitions_out(thd)) cheetah_note_remainders(engine.db, bytes_of(siblings));
}

int ha_cheetah::delete_table(const char *path) {
  std::string name = table_name_of_path(path);
  int error = wait_for_prepared(name, ha_thd());
  if (error == 0) error = handler_error(cheetah_drop_table(engine.db, bytes_of(name), kept_by(ha_thd())), ha_thd());
  if (error == 0) note_partition_gone(ha_thd(), name);
  return error;
}

// After a crash the server repeats renames, those of partitioned tables from the first partition
// on, or as if the table had no partitions.
int ha_cheetah::rename_table(const char *source, const char *target) {
  std::string from = table_name_of_path(source), to = table_name_of_path(target);
  bool again = !engine.ddl_recovered;
  int error = handler_error(cheetah_rename_table(engine.db, bytes_of(from), bytes_of(to), again), ha_thd());
  if (error == 0) note_partition_gone(ha_thd(), from);
  return again && error == HA_ERR_NO_SUCH_TABLE ? rename_all_partitions(from, to) : error;
}

// SHOW CREATE TABLE and ALTER TABLE keep the counter.
void ha_cheetah::update_create_info(HA_CREATE_INFO *info) {
  if ((info->used_fields & HA_CREATE_USED_AUTO) || table->found_next_number_field == nullptr) return;
  info->auto_increment_value = cheetah_auto_increment(engine_table_.get());
}

// Asked by EXCHANGE PARTITION, which has compared the columns and indexes already. The rows stay
// as they are written, so both definitions must ask for the same format and encryption.
bool ha_cheetah::check_if_incompatible_data(HA_CREATE_INFO *theirs, uint changes) {
  const ha_table_option_struct *mine = table_share->option_struct;
  bool is_alike = changes == IS_EQUAL_YES && same_format_options(mine, theirs->option_struct) &&
                  same_encryption(mine, theirs->option_struct);
  // The server does not ask which keys of a partition are disabled.
  return is_alike && !has_disabled_ ? COMPATIBLE_DATA_YES : COMPATIBLE_DATA_NO;
}
