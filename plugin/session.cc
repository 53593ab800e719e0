// SPDX-License-Identifier: GPL-2.0-only
#include "session.h"

#include <memory>

#include "engine.h"
#include "errors.h"

namespace cheetah {

Session *Session::existing(THD *thd) { return static_cast<Session *>(thd_get_ha_data(thd, engine.hton)); }

Session *Session::of(THD *thd) {
  Session *session = existing(thd);
  if (session != nullptr) return session;
  CheetahTxn *txn = cheetah_begin(engine.db, interrupted, nullptr);
  if (txn == nullptr) return nullptr;
  std::unique_ptr<Session> fresh(new (std::nothrow) Session(txn));
  if (!fresh) {
    cheetah_free_txn(txn);
    return nullptr;
  }
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

void Session::register_statement(THD *thd) {
  if (!in_statement_) statement_start_ = cheetah_savepoint(txn_);
  in_statement_ = true;
  trans_register_ha(thd, false, engine.hton, 0);
  if (in_long_transaction(thd)) trans_register_ha(thd, true, engine.hton, 0);
}

int Session::end_transaction(THD *thd, bool commit) {
  in_statement_ = false;
  return handler_error(commit ? cheetah_commit(txn_) : cheetah_rollback(txn_), thd);
}

int Session::commit(THD *thd, bool all) {
  if (all || !in_long_transaction(thd)) return end_transaction(thd, true);
  in_statement_ = false;
  return 0;
}

int Session::rollback(THD *thd, bool all) {
  if (all || !in_long_transaction(thd)) return end_transaction(thd, false);
  if (!in_statement_) return 0;
  in_statement_ = false;
  return rollback_error(cheetah_rollback_to(txn_, &statement_start_), thd);
}

uint8_t interrupted(void *context) {
  THD *thd = context != nullptr ? static_cast<THD *>(context) : current_thd;
  return thd != nullptr && thd_kill_level(thd) != THD_IS_NOT_KILLED;
}

}  // namespace cheetah
