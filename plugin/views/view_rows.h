// SPDX-License-Identifier: GPL-2.0-only
// Writes the rows of an information_schema view while the engine lists them.
#pragma once

#include "server.h"

#include <sql_i_s.h>
#include <sql_show.h>
#include <tztime.h>

#include <string>

#include "engine.h"

namespace cheetah {

// A column without a value is NULL, or 0 if it is NOT NULL.
class Rows {
 public:
  Rows(THD *thd, TABLE *target) : thd_(thd), target_(target), now_(my_time(0)) {}

  void start() { restore_record(target_, s->default_values); }
  void end() { failed_ = failed_ || schema_table_store_record(thd_, target_); }
  bool failed() const { return failed_; }

  void put(uint column, ulonglong value) { prepared(column)->store(static_cast<longlong>(value), true); }
  void put(uint column, const std::string &text, CHARSET_INFO *charset = system_charset_info) {
    prepared(column)->store(text.data(), text.size(), charset);
  }
  void put_signed(uint column, longlong value) { prepared(column)->store(value, false); }
  void put_real(uint column, double value) { prepared(column)->store(value); }
  // Puts the time `age_ns` ago, in the session's time zone.
  void put_moment(uint column, uint64_t age_ns) {
    MYSQL_TIME time;
    thd_->variables.time_zone->gmt_sec_to_TIME(&time, now_ - static_cast<my_time_t>(age_ns / 1000000000));
    prepared(column)->store_time(&time);
  }
  // Leaves the column NULL if `text` is empty.
  void put(uint column, CheetahBytes text) {
    if (text.len > 0) put(column, text_of(text));
  }

 private:
  Field *prepared(uint column) {
    target_->field[column]->set_notnull();
    return target_->field[column];
  }

  THD *thd_;
  TABLE *target_;
  my_time_t now_;
  bool failed_ = false;
};

// Sets the columns of a view and the function that fills it.
template <ST_FIELD_INFO *columns, int (*fill)(THD *, TABLE_LIST *, COND *)>
int init_view(void *place) {
  auto *schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = columns;
  schema->fill_table = fill;
  return 0;
}

}  // namespace cheetah
