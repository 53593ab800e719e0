// SPDX-License-Identifier: GPL-2.0-only
// Loads: the engine gets the rows of a statement together, and says at the end whether all is well.
//
// Copies into a new table: the server announces a copy, and asks at its end for an error, for ALTER
// TABLE and OPTIMIZE by copy and for CREATE TABLE .. SELECT (HA_EXTRA_BEGIN_COPY,
// HA_EXTRA_END_COPY), as long as duplicates are errors. For partitions that ALTER TABLE adds it
// announces one too, without a bulk insert, but does not look at the error: these get their rows
// one by one.
//
// Of a child, each row is checked when it is given to the load, and its parent is locked to the end
// of the transaction; rows of a load are not found, so a table that refers to itself has none.
//
// LOAD DATA and INSERT .. SELECT: the server begins a bulk insert, unless triggers or functions may
// read the table meanwhile, and looks at the error of its end. Their rows come with the commit, if
// that is the statement's own and nothing in it reads the table, as RETURNING may. INSERT .. VALUES
// brings its rows one by one: its length is known, and small beside what a load costs, and each of
// its values may be computed behind the row before.
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

// A statement that has failed already is rolled back; one that is killed is to be.
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

// Whether the statement is its own transaction, and ends at the first duplicate. A replica's is
// never alone.
static bool commits_its_rows(THD *thd) {
  int command = thd_sql_command(thd);
  bool inserts = command == SQLCOM_INSERT_SELECT || command == SQLCOM_LOAD;
  return inserts && !thd->slave_thread && !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

// Whether the statement uses the table in another place, too, under whatever name.
static bool is_used_twice(THD *thd, const TABLE *table) {
  for (const TABLE_LIST *used = thd->lex->query_tables; used != nullptr; used = used->next_global) {
    if (used->table != nullptr && used->table != table && used->table->s == table->s) return true;
  }
  return false;
}

// Rows of a temporary table go with a rollback. A table with a unique key over periods is read by
// the server for each row. The server changes the table of a vector index with each row, too, in
// the same transaction.
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

// Words of a row that is there already, as somebody else has written it since the load began: the
// load of rows, which has kept more of them, finds out which.
int ha_cheetah::words_failed(int32_t code) {
  if (code == CHEETAH_CODE_DUPLICATE_KEY && load_) {
    int32_t of_rows = cheetah_finish_load(txn_, load_.get(), report_progress, ha_thd());
    if (of_rows != CHEETAH_CODE_OK) return load_failed(load_.get(), of_rows);
  }
  return handler_error(code, ha_thd());
}

// The server reads the key that it reports from its record, where there may be another row by now.
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
  int error = codec_.row().decode(row_image_.bytes(), record, table, RowCodec::Columns::all, this);
  if (error != 0) return error;
  if (!codec_.hidden_key() && !codec_.clustered().decode(key_.bytes(), record)) return HA_ERR_CRASHED;
  uint key_no = session_->duplicate_key_no();
  return key_no < table->s->keys ? compute_virtual_columns_of_key(key_no) : 0;
}
