// SPDX-License-Identifier: GPL-2.0-only
// Creates, drops and renames tables.
//
// The engine's catalog is transactional: each of these calls takes effect completely and durably,
// or not at all. The definition is also stored in the server's .frm file. After a crash the
// server's ddl log makes both consistent again. For that, dropping or renaming a missing table must
// return "no such table" and no other error (docs/developers/mariadb.md, "DDL and crashes").
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
  // Next the server creates the table of a vector index, with a column for row positions of this
  // table.
  ref_length = position_bytes(codec);
  std::string name = table_name_of_path(path);
  error = create_in_engine(thd, name, form, info, format, encryption, codec);
  Session *session = error == 0 ? Session::of(thd) : nullptr;
  if (session != nullptr) session->note_created(thd, name);
  return error;
}

// Returns whether the statement is DROP PARTITION or CONVERT PARTITION, which remove rows from a
// table without deleting them. All other changes replace the partitions that they drop.
static bool takes_partitions_out(THD *thd) {
  static constexpr ulonglong taking = ALTER_PARTITION_DROP | ALTER_PARTITION_CONVERT_OUT;
  bool alters = thd != nullptr && thd_sql_command(thd) == SQLCOM_ALTER_TABLE;
  return alters && (thd->lex->alter_info.partition_flags & taking) != 0;
}

// Called after a partition was dropped or renamed. Notifies the engine if the statement removed the
// partition's rows from the table.
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

// After a crash the server repeats renames. For a partitioned table it starts again with the first
// partition, or renames the table as if it had no partitions.
int ha_cheetah::rename_table(const char *source, const char *target) {
  std::string from = table_name_of_path(source), to = table_name_of_path(target);
  bool again = !engine.ddl_recovered;
  int error = handler_error(cheetah_rename_table(engine.db, bytes_of(from), bytes_of(to), again), ha_thd());
  if (error == 0) note_partition_gone(ha_thd(), from);
  return again && error == HA_ERR_NO_SUCH_TABLE ? rename_all_partitions(from, to) : error;
}

// Fills in the counter for SHOW CREATE TABLE and ALTER TABLE.
void ha_cheetah::update_create_info(HA_CREATE_INFO *info) {
  if ((info->used_fields & HA_CREATE_USED_AUTO) || table->found_next_number_field == nullptr) return;
  info->auto_increment_value = cheetah_auto_increment(engine_table_.get());
}

// Called by EXCHANGE PARTITION, which has already compared the columns and indexes. The rows are
// not rewritten, so both definitions must have the same format and encryption.
bool ha_cheetah::check_if_incompatible_data(HA_CREATE_INFO *theirs, uint changes) {
  const ha_table_option_struct *mine = table_share->option_struct;
  bool is_alike = changes == IS_EQUAL_YES && same_format_options(mine, theirs->option_struct) &&
                  same_encryption(mine, theirs->option_struct);
  // The server does not check which keys of a partition are disabled.
  return is_alike && !has_disabled_ ? COMPATIBLE_DATA_YES : COMPATIBLE_DATA_NO;
}
