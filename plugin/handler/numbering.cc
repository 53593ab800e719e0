// SPDX-License-Identifier: GPL-2.0-only
// AUTO_INCREMENT with the same numbers and gaps as InnoDB.
//
// The engine's counter holds the next number to assign. A statement reserves one number for each
// row that it announces to insert. Explicit numbers advance the counter past them.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"

// Returns whether the statement must receive consecutive numbers although the number of its rows is
// not known in advance. Like innodb_autoinc_lock_mode = 1.
static bool inserts_in_bulk(THD *thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_LOAD;
}

void ha_cheetah::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                    ulonglong *reserved) {
  if (numbered_rows_left_ == 0) numbered_rows_left_ = wanted == 0 ? 1 : wanted;
  if (thd_sql_command(ha_thd()) == SQLCOM_ALTER_TABLE) increment = offset = 1;
  CheetahNumbers numbers{increment, offset, table->next_number_field->get_max_int_value(), numbered_rows_left_, 0, 0};
  int32_t code = cheetah_reserve_auto_increment(txn_, engine_table_.get(), inserts_in_bulk(ha_thd()), &numbers);
  numbering_error_ = cheetah::handler_error(code, ha_thd());
  *first = code == CHEETAH_CODE_OK ? numbers.first : ~0ULL;
  *reserved = code == CHEETAH_CODE_OK ? numbers.count : 0;
  if (*reserved != 0) reserved_up_to_ = numbers.next;
}

// Returns whether the statement continues after a duplicate. Then the number of the duplicate is
// used up.
static bool goes_on_after_duplicates(THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_INSERT_SELECT: return true;
    case SQLCOM_LOAD: return thd->lex->duplicates == DUP_REPLACE || thd->lex->ignore;
    default: return false;
  }
}

int ha_cheetah::note_inserted_number(const uchar *record, bool duplicate) {
  Field *field = table->next_number_field;
  if (field == nullptr || record != table->record[0]) return 0;
  if (numbered_rows_left_ > 0) numbered_rows_left_--;
  if (duplicate && !goes_on_after_duplicates(ha_thd())) return 0;
  ulonglong number = static_cast<ulonglong>(field->val_int()), largest = field->get_max_int_value();
  if (number > largest || (!duplicate && number < reserved_up_to_)) return 0;
  const system_variables &session = ha_thd()->variables;
  int32_t code = cheetah_advance_auto_increment(txn_, engine_table_.get(), number, session.auto_increment_increment,
                                                session.auto_increment_offset, inserts_in_bulk(ha_thd()));
  return cheetah::handler_error(code, ha_thd());
}

void ha_cheetah::note_updated_number(const uchar *old_record, const uchar *new_record) {
  Field *field = table->found_next_number_field;
  if (field == nullptr || new_record != table->record[0]) return;
  if (field->cmp_binary_offset(static_cast<uint>(old_record - new_record)) == 0) return;
  ulonglong number = static_cast<ulonglong>(field->val_int()), largest = field->get_max_int_value();
  if (number <= largest) cheetah_advance_auto_increment(txn_, engine_table_.get(), number, 1, 0, false);
}

int ha_cheetah::reset_auto_increment(ulonglong value) {
  int32_t code = cheetah_set_auto_increment(cheetah::engine.db, engine_table_.get(), value);
  return cheetah::handler_error(code, ha_thd());
}
