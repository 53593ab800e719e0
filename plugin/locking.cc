// SPDX-License-Identifier: GPL-2.0-only
// Statements begin here: which transaction the handler works in, and the table lock it needs.
//
// A sequence is changed outside the connection's transaction, as its values must not come back with a rollback: its
// handler has a transaction of its own, ended after each change and each scan.
#include "engine.h"
#include "errors.h"
#include "ha_cheetah.h"
#include "settings.h"

using namespace cheetah;

static constexpr ulonglong nanoseconds = 1000000000ULL;

bool ha_cheetah::is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }

// The engine locks; the server's own table locks are not used (lock_count is 0).
THR_LOCK_DATA **ha_cheetah::store_lock(THD *, THR_LOCK_DATA **to, enum thr_lock_type) { return to; }

int ha_cheetah::external_lock(THD *thd, int lock_type) {
  if (lock_type != F_UNLCK) return begin_statement(thd, lock_type == F_WRLCK);
  pause_scan();
  return end_private_transaction();
}

int ha_cheetah::start_stmt(THD *thd, thr_lock_type lock_type) {
  return begin_statement(thd, lock_type >= TL_FIRST_WRITE);
}

int ha_cheetah::begin_statement(THD *thd, bool writes) {
  session_ = Session::of(thd);
  if (session_ == nullptr) return HA_ERR_OUT_OF_MEM;
  cursor_.reset();
  read_ = writes ? CHEETAH_READ_EXCLUSIVE : CHEETAH_READ_CONSISTENT;
  numbered_rows_left_ = reserved_up_to_ = 0;
  if (is_sequence()) return use_private_transaction();
  if (writes && thd->transaction->xid_state.is_explicit_XA()) {
    // XA PREPARE would only warn, and XA COMMIT by another connection would find nothing.
    my_error(ER_NOT_SUPPORTED_YET, MYF(0), "changes of CHEETAH tables in an XA transaction");
    return own_error_reported;
  }
  txn_ = session_->txn();
  session_->register_statement(thd);
  return lock_engine_table(thd, writes);
}

int ha_cheetah::lock_engine_table(THD *thd, bool exclusive) {
  cheetah_set_lock_wait(txn_, lock_wait_timeout_seconds(thd) * nanoseconds);
  int32_t code = cheetah_lock_table(txn_, engine_table_.get(), exclusive);
  if (code != CHEETAH_NO_SUCH_TABLE) return handler_error(code, thd);
  // TRUNCATE by another handler has put a new table under the name.
  int error = attach();
  if (error != 0) return error;
  return handler_error(cheetah_lock_table(txn_, engine_table_.get(), exclusive), thd);
}

int ha_cheetah::use_private_transaction() {
  if (!private_txn_) private_txn_.reset(cheetah_begin(engine.db, interrupted, nullptr));
  txn_ = private_txn_.get();
  return txn_ == nullptr ? HA_ERR_OUT_OF_MEM : 0;
}

int ha_cheetah::end_private_transaction() {
  if (!private_txn_) return 0;
  return handler_error(cheetah_commit(private_txn_.get()), ha_thd());
}
