// SPDX-License-Identifier: GPL-2.0-only
// Copies into a new table: the engine gets the rows as a load, and says at the end whether all is well.
//
// The server announces a copy, and asks at its end for an error, for ALTER TABLE and OPTIMIZE by copy and for CREATE TABLE .. SELECT
// (HA_EXTRA_BEGIN_COPY, HA_EXTRA_END_COPY), as long as duplicates are errors. For partitions that ALTER TABLE adds it announces one too, without
// a bulk insert, but does not look at the error: these get their rows one by one.
#include "engine.h"
#include "errors.h"
#include "ha_cheetah.h"
#include "progress.h"

using namespace cheetah;

void ha_cheetah::start_bulk_insert(ha_rows, uint) { in_bulk_insert_ = true; }

int ha_cheetah::end_bulk_insert() {
  in_bulk_insert_ = false;
  return 0;
}

// Rows of a temporary table go with a rollback. A table with a unique key over periods is read by the server for each row.
int ha_cheetah::begin_load() {
  if (!copies_ || !in_bulk_insert_) return 0;
  copies_ = false;
  bool temporary = name_.compare(0, 5, "#tmp/") == 0;
  if (temporary || is_sequence() || table->s->period.unique_keys != 0) return 0;
  CheetahLoad *load = nullptr;
  int error = handler_error(cheetah_begin_load(txn_, engine_table_.get(), &load), ha_thd());
  load_.reset(load);
  return error;
}

int ha_cheetah::finish_load() {
  copies_ = false;
  LoadHandle load = std::move(load_);
  if (!load) return 0;
  int32_t code = cheetah_finish_load(txn_, load.get(), report_progress, ha_thd());
  return code == CHEETAH_OK ? attach() : load_failed(load.get(), code);
}

void ha_cheetah::abandon_load() {
  copies_ = in_bulk_insert_ = false;
  load_.reset();
}

// The server reads the key that it reports from its record, where there may be another row by now.
int ha_cheetah::load_failed(const CheetahLoad *load, int32_t code) {
  int error = write_failed(code);
  if (code == CHEETAH_DUPLICATE_KEY) {
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
