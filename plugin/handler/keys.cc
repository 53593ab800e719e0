// SPDX-License-Identifier: GPL-2.0-only
// ALTER TABLE .. DISABLE KEYS and ENABLE KEYS. Every dump has these statements around its rows,
// even if the dump is loaded into a table in use. So DISABLE KEYS works only on empty tables,
// unless the session allows it on other tables.
//
// The engine stops maintaining disabled indexes. ENABLE KEYS rebuilds them from entries that are
// computed here, row by row. Disabled indexes are removed from `keys_in_use` of the table's share,
// so that the server does not use them.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "handler/progress.h"
#include "handler/row_entries.h"
#include "settings.h"
#include "transactions/stages.h"

using namespace cheetah;

// Loads the list of disabled indexes from the engine. Called when the handler opens the engine's
// table.
void ha_cheetah::look_for_disabled_indexes() {
  has_disabled_ = false;
  disabled_.assign(codec_.secondaries().size() + 1, false);
  for (size_t i = 1; i < disabled_.size(); i++) {
    disabled_[i] = cheetah_index_is_disabled(engine_table_.get(), static_cast<uint32_t>(i)) != 0;
    has_disabled_ |= disabled_[i];
  }
}

// Sets `keys_in_use` of the table's share, like MyISAM.
void ha_cheetah::tell_keys_in_use() {
  key_map in_use;
  in_use.init(0);
  in_use.set_prefix(table_share->keys);
  for (uint key_no = 0; key_no < table_share->keys; key_no++) {
    bool has_words = is_fulltext(table->key_info[key_no]);
    if (!has_words && disabled_[codec_.engine_index(key_no)]) in_use.clear_bit(key_no);
  }
  if (table_share->keys_in_use == in_use) return;
  bool shared = table_share->tmp_table == NO_TMP_TABLE;
  if (shared) mysql_mutex_lock(&table_share->LOCK_share);
  table_share->keys_in_use = in_use;
  if (shared) mysql_mutex_unlock(&table_share->LOCK_share);
}

int ha_cheetah::indexes_changed(int32_t code) {
  int error = handler_error(code, ha_thd());
  if (error == 0) error = attach();
  return error == 0 ? info(HA_STATUS_CONST | HA_STATUS_VARIABLE) : error;
}

// Returns whether the statement is DISABLE KEYS. Otherwise ALTER TABLE disables the keys of a copy
// that are disabled in its source table.
static bool says_disable(THD *thd) { return thd->lex->alter_info.keys_onoff == Alter_info::DISABLE; }

// Partitions are refused, because all partitions of a table would have to change together. Indexes
// of USING HASH stay enabled, because the server finds rows through them. A copy is refused if only
// empty tables are allowed: it has no rows yet, and does not know whether its source table has
// rows.
int ha_cheetah::disable_indexes(key_map keep, bool persist) {
  if (!persist || is_partition() || is_temporary_name(name_)) return HA_ERR_WRONG_COMMAND;
  int error = begin_unlocked(true);
  if (error != 0) return error;
  bool only_if_empty = says_disable(ha_thd()) && !disables_keys_of_rows(ha_thd());
  if (only_if_empty && is_intermediate_name(name_)) return HA_ERR_WRONG_COMMAND;
  std::vector<uint32_t> indexes;
  for (uint key_no = 0; key_no < table_share->keys; key_no++) {
    const KEY &key = table->key_info[key_no];
    if (keep.is_set(key_no) || key.algorithm == HA_KEY_ALG_LONG_HASH || is_fulltext(key)) continue;
    if (key_no != codec_.clustered_no()) indexes.push_back(codec_.engine_index(key_no));
  }
  int32_t code =
      cheetah_disable_indexes(txn_, engine_table_.get(), indexes.data(), indexes.size(), only_if_empty);
  return code == CHEETAH_CODE_END ? HA_ERR_WRONG_COMMAND : indexes_changed(code);
}

int ha_cheetah::enable_indexes(key_map, bool persist) {
  if (!persist || !has_disabled_ || is_partition() || is_temporary_name(name_)) return HA_ERR_WRONG_COMMAND;
  int error = begin_unlocked(true);
  if (error != 0) return error;
  MY_BITMAP *saved = table->read_set;
  table->use_all_columns();
  RowEntries entries(table, &codec_, this, disabled_);
  Progress progress(ha_thd());
  InStage stage(ha_thd(), &stage_building_indexes);
  int32_t code = cheetah_enable_indexes(txn_, engine_table_.get(), RowEntries::of_row, &entries, report_progress, ha_thd());
  table->column_bitmaps_set(saved, table->write_set);
  return indexes_changed(code);
}

// Returns whether the table is a partition, by its name: each partition is a table of the engine.
bool ha_cheetah::is_partition() const { return name_.find("#P#") != std::string::npos || name_.find("#p#") != std::string::npos; }
