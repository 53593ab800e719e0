// SPDX-License-Identifier: GPL-2.0-only
// Loads: the engine collects the rows of a statement, and reports errors such as duplicates
// only at the end.
//
// Copies into a new table: for ALTER TABLE and OPTIMIZE by copy and for CREATE TABLE .. SELECT the
// server announces a copy (HA_EXTRA_BEGIN_COPY), and checks for an error at its end
// (HA_EXTRA_END_COPY), if duplicates are errors. For partitions that ALTER TABLE adds, the server
// also announces a copy, but without a bulk insert, and ignores the error. So the rows of these
// partitions are inserted one by one.
//
// In a child table, each row is checked when it is added to the load, and its parent is locked
// until the end of the transaction. Rows of a load cannot be found before its end, so a table that
// refers to itself has no loads.
//
// LOAD DATA and INSERT .. SELECT: the server begins a bulk insert, unless triggers or functions may
// read the table meanwhile, and checks the error at its end. The rows become visible at the commit.
// So a load is used only if the statement commits itself, and nothing in it (such as RETURNING)
// reads the table. INSERT .. VALUES inserts its rows one by one: the number of rows is known and
// too small to justify a load, and each value may be computed after the previous row was inserted.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "handler/progress.h"
#include "transactions/stages.h"

using namespace cheetah;

void ha_cheetah::start_bulk_insert(ha_rows, uint) {
  in_bulk_insert_ = true;
  load_was_asked_ = false;
}

// Finishes the load, or abandons it if the statement has failed or was killed. A killed statement
// must return an error, so that it is rolled back.
int ha_cheetah::end_bulk_insert() {
  in_bulk_insert_ = false;
  if (!load_ || copies_) return 0;
  int error = 0;
  bool failed = ha_thd()->is_error();
  if (failed || interrupted(ha_thd())) {
    abandon_load();
    if (!failed) error = HA_ERR_ABORTED_BY_USER;
  } else {
    error = finish_load();
  }
  // The server reports this variable.
  if (error != 0) my_errno = error;
  return error;
}

// Returns whether the statement is its own transaction. A replica's statement never is.
static bool commits_its_rows(THD *thd) {
  int command = thd_sql_command(thd);
  bool inserts = command == SQLCOM_INSERT_SELECT || command == SQLCOM_LOAD;
  return inserts && !thd->slave_thread && !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

// Returns whether the statement also uses the table elsewhere, under any alias.
static bool is_used_twice(THD *thd, const TABLE *table) {
  for (const TABLE_LIST *used = thd->lex->query_tables; used != nullptr; used = used->next_global) {
    if (used->table != nullptr && used->table != table && used->table->s == table->s) return true;
  }
  return false;
}

// Begins a load if one is possible. A temporary table has no load, because a rollback must remove
// its rows. A table with a unique key over periods has no load, because the server reads the table
// for each row. A table with a vector index has no load, because the server also changes the table
// of the index with each row, in the same transaction.
int ha_cheetah::begin_load() {
  if (!in_bulk_insert_ || load_was_asked_) return 0;
  load_was_asked_ = true;
  if (is_temporary_name(name_) || is_sequence() || table->s->period.unique_keys != 0) return 0;
  if (has_vector_index(table->s)) return 0;
  if (looks_at_constraints() && constraints_.refer_to_own_table()) return 0;
  if (!copies_ && (ignores_duplicates_ || !commits_its_rows(ha_thd()) || is_used_twice(ha_thd(), table))) return 0;
  CheetahLoad *load = nullptr;
  int error = handler_error(cheetah_begin_load(txn_, engine_table_.get(), !copies_, &load), ha_thd());
  load_.reset(load);
  return error == 0 && load_ ? begin_word_loads() : error;
}

int ha_cheetah::finish_load() {
  bool copies = copies_;
  copies_ = false;
  LoadHandle load = std::move(load_);
  std::vector<LoadHandle> word_loads = std::move(word_loads_);
  if (!load) return 0;
  InStage stage(ha_thd(), &stage_building_indexes);
  int32_t code = cheetah_finish_load(txn_, load.get(), report_progress, ha_thd());
  if (code != CHEETAH_CODE_OK) return load_failed(load.get(), code);
  for (const LoadHandle &words : word_loads) {
    if (words && code == CHEETAH_CODE_OK) code = cheetah_finish_load(txn_, words.get(), report_progress, ha_thd());
  }
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  return copies ? attach() : 0;
}

void ha_cheetah::abandon_load() {
  copies_ = in_bulk_insert_ = false;
  load_.reset();
  word_loads_.clear();
}

// A duplicate among loaded words means that another transaction has written the same row since the
// load began. The load of rows then finds that row.
int ha_cheetah::words_failed(int32_t code) {
  if (code == CHEETAH_CODE_DUPLICATE_KEY && load_) {
    int32_t of_rows = cheetah_finish_load(txn_, load_.get(), report_progress, ha_thd());
    if (of_rows != CHEETAH_CODE_OK) return load_failed(load_.get(), of_rows);
  }
  return handler_error(code, ha_thd());
}

// Puts the refused row into the server's record: the server reports the key from this record, which
// may hold a different row by now.
int ha_cheetah::load_failed(const CheetahLoad *load, int32_t code) {
  int error = write_failed(code);
  if (code == CHEETAH_CODE_DUPLICATE_KEY) {
    int failed = show_refused_row(load);
    if (failed != 0) return failed;
  }
  return error;
}

int ha_cheetah::show_refused_row(const CheetahLoad *load) {
  CheetahBytes key, row;
  cheetah_refused_row(load, &key, &row);
  key_.assign(key);
  row_image_.assign(row);
  uchar *record = table->record[0];
  int error = codec_.row().decode(row_image_.bytes(), record, table, RowCodec::Columns::complete, this);
  if (error != 0) return error;
  if (!codec_.hidden_key() && !codec_.clustered().decode(key_.bytes(), record)) return HA_ERR_CRASHED;
  uint key_no = session_->duplicate_key_no();
  return key_no < table->s->keys ? compute_virtual_columns_of_key(key_no) : 0;
}
