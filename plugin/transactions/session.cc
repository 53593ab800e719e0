// SPDX-License-Identifier: GPL-2.0-only
#include "transactions/session.h"

#include <memory>

#include "engine.h"
#include "errors.h"
#include "settings.h"

// The server exports them without declaring them to plugins.
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);
extern "C" int thd_deadlock_victim_preference(const MYSQL_THD first, const MYSQL_THD second);

namespace cheetah {

Session *Session::existing(THD *thd) { return static_cast<Session *>(thd_get_ha_data(thd, engine.hton)); }

// Reports a wait to the server, which kills the blocker if the blocker must commit after the
// waiter.
static void report_wait(void *waiter, void *blocker) {
  thd_rpl_deadlock_check(static_cast<THD *>(waiter), static_cast<THD *>(blocker));
}

void *later_session(void *first, void *second) {
  int preference = thd_deadlock_victim_preference(static_cast<THD *>(first), static_cast<THD *>(second));
  if (preference == 0) return nullptr;
  return preference < 0 ? first : second;
}

CheetahTxn *new_transaction() { return cheetah_begin(engine.db, interrupted, nullptr); }

Session *Session::of(THD *thd) {
  Session *session = existing(thd);
  if (session != nullptr) return session;
  CheetahTxn *txn = new_transaction();
  if (txn == nullptr) return nullptr;
  std::unique_ptr<Session> fresh(new (std::nothrow) Session(txn));
  if (!fresh) {
    cheetah_free_txn(txn);
    return nullptr;
  }
  cheetah_set_connection(txn, thd_get_thread_id(thd));
  if (thd->slave_thread) cheetah_report_waits(txn, thd, report_wait);
  thd_set_ha_data(thd, engine.hton, fresh.get());
  return fresh.release();
}

void Session::close(THD *thd) {
  std::unique_ptr<Session> session(existing(thd));
  if (!session) return;
  cheetah_free_txn(session->txn_);
  thd_set_ha_data(thd, engine.hton, nullptr);
}

static bool in_long_transaction(THD *thd) { return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

// Returns the isolation level of the next transaction. READ UNCOMMITTED is treated as READ
// COMMITTED. A single-statement transaction that locks nothing is serializable if it reads a
// snapshot, so SERIALIZABLE makes a difference only in longer transactions.
static CheetahIsolation isolation_level(THD *thd) {
  int level = thd_tx_isolation(thd);
  if (level <= ISO_READ_COMMITTED) return CHEETAH_ISOLATION_READ_COMMITTED;
  if (level == ISO_SERIALIZABLE && in_long_transaction(thd)) return CHEETAH_ISOLATION_SERIALIZABLE;
  return CHEETAH_ISOLATION_REPEATABLE_READ;
}

int Session::begin_transaction(THD *thd) {
  if (in_transaction_) return 0;
  in_transaction_ = true;
  cheetah_set_snapshot_isolation(txn_, snapshot_isolation(thd));
  return handler_error(cheetah_set_isolation(txn_, isolation_level(thd)), thd);
}

void Session::note_created(THD *thd, const std::string &table) {
  if (created_by_ != thd->query_id) created_.clear();
  created_by_ = thd->query_id;
  created_.insert(table);
}

bool Session::fills_new_table(THD *thd, const std::string &table) const {
  return created_.count(table) != 0 && (thd->slave_thread || created_by_ == thd->query_id);
}

void Session::count_table(bool begins) {
  tables_in_use_ = begins ? tables_in_use_ + 1 : tables_in_use_ - 1;
  cheetah_set_tables_in_use(txn_, tables_in_use_);
}

int Session::register_statement(THD *thd) {
  trans_register_ha(thd, false, engine.hton, 0);
  if (in_long_transaction(thd)) trans_register_ha(thd, true, engine.hton, 0);
  if (in_statement_) return 0;
  in_statement_ = true;
  cheetah_set_lock_wait(txn_, lock_wait_timeout_ns(thd));
  statement_start_ = cheetah_savepoint(txn_);
  return begin_transaction(thd);
}

int Session::join_transaction(THD *thd) {
  trans_register_ha(thd, true, engine.hton, 0);
  return begin_transaction(thd);
}

int Session::take_snapshot(THD *thd) {
  int error = join_transaction(thd);
  return error != 0 ? error : handler_error(cheetah_take_snapshot(txn_), thd);
}

void Session::end_statement() {
  in_statement_ = false;
  cheetah_end_statement(txn_);
}

bool Session::ends_transaction(THD *thd, bool all) { return all || !in_long_transaction(thd); }

int Session::end_transaction(THD *thd, bool commit) {
  in_statement_ = in_transaction_ = false;
  created_.clear();
  return handler_error(commit ? cheetah_commit(txn_) : cheetah_rollback(txn_), thd);
}

int Session::commit(THD *thd, bool all) {
  if (ends_transaction(thd, all)) return end_transaction(thd, true);
  end_statement();
  return 0;
}

int Session::rollback(THD *thd, bool all) {
  if (ends_transaction(thd, all)) return end_transaction(thd, false);
  if (!in_statement_) return 0;
  // The connection ends, so the whole transaction is rolled back. No client waits for the rollback.
  if (thd->killed >= KILL_CONNECTION) {
    thd->mark_transaction_to_rollback(true);
    return end_transaction(thd, false);
  }
  int error = rollback_error(cheetah_rollback_to(txn_, &statement_start_), thd);
  end_statement();
  return error;
}

// Returns whether the statement was killed, by its error: the server clears the kill flag before it
// rolls back the statement.
static bool was_killed(THD *thd) {
  if (!thd->is_error()) return false;
  uint error = thd->get_stmt_da()->sql_errno();
  return error == ER_QUERY_INTERRUPTED || error == ER_STATEMENT_TIMEOUT;
}

// Returns whether the connection or its statement is killed. LIMIT ROWS EXAMINED also sets the kill
// flag (ABORT_QUERY), but the rows found so far are a valid result.
static bool is_killed(THD *thd) { return thd_kill_level(thd) != THD_IS_NOT_KILLED && thd->killed != ABORT_QUERY; }

uint8_t interrupted(void *context) {
  THD *thd = context != nullptr ? static_cast<THD *>(context) : current_thd;
  return thd != nullptr && (is_killed(thd) || was_killed(thd));
}

}  // namespace cheetah
