// SPDX-License-Identifier: GPL-2.0-only
#include "errors.h"

#include "constraints/foreign_keys.h"
#include "constraints/refusals.h"
#include "transactions/session.h"

namespace cheetah {

String last_message() {
  CheetahBytes message = cheetah_last_error();
  String text;
  text.copy(reinterpret_cast<const char *>(message.data), message.len, &my_charset_utf8mb4_bin);
  return text;
}

bool own_error_text(int error, String *text) {
  if (error < own_error_limit || error > own_error_last) return false;
  if (error != own_error_reported) text->copy(last_message());
  return true;
}

static void warn(THD *thd, uint number) {
  if (thd == nullptr) return;
  String message = last_message();
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, number, "CHEETAH: %s", message.c_ptr_safe());
}

static void log_failure() {
  String message = last_message();
  sql_print_error("CHEETAH: %s", message.c_ptr_safe());
}

static int corrupted(THD *thd) {
  log_failure();
  warn(thd, ER_NOT_KEYFILE);
  return HA_ERR_CRASHED;
}

// Reports a missing encryption key. The server's message lacks the reason, so the reason is logged.
static int without_key(THD *thd) {
  log_failure();
  warn(thd, HA_ERR_DECRYPTION_FAILED);
  return HA_ERR_DECRYPTION_FAILED;
}

// Marks the transaction for rollback: as in InnoDB, such an error rolls back the whole transaction.
static int ends_transaction(THD *thd, int error) {
  if (thd != nullptr) thd->mark_transaction_to_rollback(true);
  return error;
}

// Reports that a commit or rollback ended differently than requested. The server shows only the
// number of an error of COMMIT or ROLLBACK, so the message is also given as a warning.
static int not_as_asked(THD *thd) {
  log_failure();
  warn(thd, ER_ERROR_DURING_ROLLBACK);
  return own_error_rollback;
}

static int constraint_refused(THD *thd, int error) {
  warn_of_constraint(thd, error, cheetah_last_error());
  return error;
}

// Reports that a constraint protects the table. Like InnoDB's, the message does not name the
// constraint.
static int is_referenced(THD *thd) {
  Session *session = thd != nullptr ? Session::existing(thd) : nullptr;
  if (session != nullptr) session->set_constraint_text({});
  if (thd != nullptr) note_refused_definition(thd, cheetah_last_error());
  return HA_ERR_ROW_IS_REFERENCED;
}

// Reports that a constraint needs an index. The engine's message is the name of the index.
static int index_is_needed() {
  my_error(ER_DROP_INDEX_FK, MYF(0), last_message().c_ptr_safe());
  return own_error_reported;
}

// Reports the message of the search parser as a syntax error, as InnoDB does.
static int search_not_understood() {
  my_printf_error(ER_PARSE_ERROR, "%s", MYF(0), last_message().c_ptr_safe());
  return own_error_reported;
}

int rollback_error(int32_t code, THD *thd) {
  int error = handler_error(code, thd);
  if (error != 0 && thd != nullptr) thd->mark_transaction_to_rollback(true);
  return error;
}

int handler_error(int32_t code, THD *thd) {
  switch (code) {
    case CHEETAH_CODE_OK: return 0;
    case CHEETAH_CODE_END: return HA_ERR_END_OF_FILE;
    case CHEETAH_CODE_DUPLICATE_KEY: return HA_ERR_FOUND_DUPP_KEY;
    case CHEETAH_CODE_TABLE_EXISTS: return HA_ERR_TABLE_EXIST;
    case CHEETAH_CODE_NO_SUCH_TABLE: return HA_ERR_NO_SUCH_TABLE;
    case CHEETAH_CODE_ROW_NOT_FOUND: return HA_ERR_KEY_NOT_FOUND;
    case CHEETAH_CODE_LOCK_TIMEOUT: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case CHEETAH_CODE_DEADLOCK: return ends_transaction(thd, HA_ERR_LOCK_DEADLOCK);
    case CHEETAH_CODE_RECORD_CHANGED: return ends_transaction(thd, HA_ERR_RECORD_CHANGED);
    case CHEETAH_CODE_LOCK_TABLE_FULL: return ends_transaction(thd, HA_ERR_LOCK_TABLE_FULL);
    case CHEETAH_CODE_LOCKED: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case CHEETAH_CODE_INTERRUPTED: return HA_ERR_ABORTED_BY_USER;
    case CHEETAH_CODE_LIMIT: return own_error_limit;
    case CHEETAH_CODE_DISK_FULL: warn(thd, ER_RECORD_FILE_FULL); log_failure(); return HA_ERR_RECORD_FILE_FULL;
    case CHEETAH_CODE_UNSUPPORTED: log_failure(); return own_error_unsupported;
    case CHEETAH_CODE_CORRUPTION: return corrupted(thd);
    case CHEETAH_CODE_KEY: return without_key(thd);
    case CHEETAH_CODE_IO: log_failure(); return own_error_io;
    case CHEETAH_CODE_TABLE_CHANGED: return HA_ERR_TABLE_DEF_CHANGED;
    case CHEETAH_CODE_CANNOT_ADD_CONSTRAINT: return constraint_refused(thd, HA_ERR_CANNOT_ADD_FOREIGN);
    case CHEETAH_CODE_CONSTRAINT_EXISTS: return constraint_refused(thd, HA_ERR_FOUND_DUPP_KEY);
    case CHEETAH_CODE_IS_REFERENCED: return is_referenced(thd);
    case CHEETAH_CODE_INDEX_IS_NEEDED: return index_is_needed();
    case CHEETAH_CODE_SEARCH_SYNTAX: return search_not_understood();
    case CHEETAH_CODE_SEARCH_PHRASE: return HA_ERR_FTS_TOO_MANY_WORDS_IN_PHRASE;
    case CHEETAH_CODE_SEARCH_MEMORY: return HA_ERR_OUT_OF_MEM;
    case CHEETAH_CODE_ROLLBACK: return not_as_asked(thd);
    default: log_failure(); return ends_transaction(thd, own_error_stopped);
  }
}

}  // namespace cheetah
