// SPDX-License-Identifier: GPL-2.0-only
// Begins statements: chooses the handler's transaction, its read mode, and whether it locks the
// whole table.
//
// The read mode follows from the command and the server's kind of lock, by InnoDB's rules;
// docs/developers/mariadb.md, "What a statement locks", lists them in a table.
//
// A sequence is changed outside the connection's transaction, because a rollback must not restore
// its old values. Its handler has a private transaction, which ends after each change and each
// statement.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "settings.h"
#include "transactions/two_phase.h"

using namespace cheetah;

// Returns whether the statement reads data and writes it to another place. At READ COMMITTED such a
// statement reads a snapshot; at higher isolation levels the rows that it reads must not change
// before it commits.
static bool writes_what_it_reads(int command) {
  switch (command) {
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_CREATE_TABLE:
    case SQLCOM_UPDATE: return true;
    default: return false;
  }
}

static CheetahRead read_mode(THD *thd, thr_lock_type lock_type) {
  int command = thd_sql_command(thd);
  if (lock_type >= TL_FIRST_WRITE) return CHEETAH_READ_EXCLUSIVE;
  bool plain = lock_type == TL_READ || lock_type == TL_READ_HIGH_PRIORITY;
  bool snapshot = plain && (command == SQLCOM_SELECT || command == SQLCOM_ANALYZE);
  snapshot |= command == SQLCOM_CHECKSUM || command == SQLCOM_CREATE_SEQUENCE;
  snapshot |= (plain || lock_type == TL_READ_NO_INSERT) && writes_what_it_reads(command) &&
              thd_tx_isolation(thd) <= ISO_READ_COMMITTED;
  return snapshot ? CHEETAH_READ_CONSISTENT : CHEETAH_READ_SHARED;
}

static bool skips_locked(thr_lock_type lock_type) {
  return lock_type == TL_READ_SKIP_LOCKED || lock_type == TL_WRITE_SKIP_LOCKED;
}

// Returns whether the command copies a table under a metadata lock. Transactions without a
// connection (prepared transactions and rollbacks in the background) do not hold metadata locks.
static bool copies_table(int command) {
  switch (command) {
    case SQLCOM_ALTER_TABLE:
    case SQLCOM_CREATE_INDEX:
    case SQLCOM_DROP_INDEX:
    case SQLCOM_OPTIMIZE: return true;
    default: return false;
  }
}

// Returns the time in seconds for UPDATE_TIME. As in InnoDB, filling a copy or a new table does not
// count as a change.
static uint64_t time_of_changes(THD *thd) {
  int command = thd_sql_command(thd);
  return copies_table(command) || command == SQLCOM_CREATE_TABLE ? 0 : static_cast<uint64_t>(time(nullptr));
}

bool ha_cheetah::is_sequence() const { return table->s->table_type == TABLE_TYPE_SEQUENCE; }

// The engine has its own locks and does not use the server's table locks (lock_count is 0).
THR_LOCK_DATA **ha_cheetah::store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type lock_type) {
  if (lock_type == TL_IGNORE) return to;
  locked_read_ = read_mode(thd, lock_type);
  skips_locked_ = skips_locked(lock_type);
  return to;
}

int ha_cheetah::external_lock(THD *thd, int lock_type) {
  if (lock_type == F_UNLCK) {
    pause_scan();
    count_use(false);
    txn_ = nullptr;
    return end_private_transaction();
  }
  if (lock_type == F_WRLCK) locked_read_ = CHEETAH_READ_EXCLUSIVE;
  set_read(locked_read_);
  int error = begin_statement(thd, lock_type == F_WRLCK);
  if (error == 0) count_use(true);
  return error;
}

void ha_cheetah::count_use(bool begins) {
  if (begins == is_counted_) return;
  is_counted_ = begins;
  session_->count_table(begins);
}

// Under LOCK TABLES and in stored functions, tables are already locked, possibly with a stronger
// lock than this statement needs. A temporary table that was created since then is not locked.
int ha_cheetah::start_stmt(THD *thd, thr_lock_type lock_type) {
  bool writes = lock_type >= TL_FIRST_WRITE;
  bool plain_select = lock_type == TL_READ && thd_sql_command(thd) == SQLCOM_SELECT;
  set_read(writes ? CHEETAH_READ_EXCLUSIVE : plain_select ? CHEETAH_READ_CONSISTENT : locked_read_);
  skips_locked_ = skips_locked(lock_type);
  cached_table_flags = table_flags();
  return begin_statement(thd, writes);
}

// A temporary table belongs to one connection, and may have been created, truncated or rebuilt
// since the connection's snapshot. So it is not read in the snapshot.
bool ha_cheetah::is_temporary() const { return table_share->tmp_table != NO_TMP_TABLE; }

void ha_cheetah::set_read(CheetahRead read) {
  read_ = read == CHEETAH_READ_CONSISTENT && is_temporary() ? CHEETAH_READ_SHARED : read;
}

// A second handler of the same statement uses the read mode of the first, because the server locks
// it without a kind of lock. It opens the table of this handler: for a partition, the server may
// pass the name of the whole table.
handler *ha_cheetah::clone(const char *, MEM_ROOT *root) {
  auto *second = static_cast<ha_cheetah *>(handler::clone(path_.c_str(), root));
  if (second == nullptr) return nullptr;
  second->locked_read_ = read_;
  second->skips_locked_ = skips_locked_;
  return second;
}

int ha_cheetah::begin_statement(THD *thd, bool writes) {
  session_ = Session::of(thd);
  if (session_ == nullptr) return HA_ERR_OUT_OF_MEM;
  cursor_.reset();
  numbered_rows_left_ = reserved_up_to_ = 0;
  // TRUNCATE by another handler has replaced the table with a new one of the same name.
  int error = cheetah_is_dropped(engine_table_.get()) ? attach() : 0;
  if (error != 0) return error;
  if (is_sequence()) return use_private_transaction(thd, writes);
  if (writes && thd->transaction->xid_state.is_explicit_XA() && !takes_part_in_two_phase()) {
    // XA PREPARE would only warn, and XA COMMIT by another connection would find nothing.
    my_error(ER_NOT_SUPPORTED_YET, MYF(0), "changes of CHEETAH tables in an XA transaction before the server is restarted "
             "with the plugin");
    return own_error_reported;
  }
  txn_ = session_->txn();
  if (writes) cheetah_set_time(txn_, time_of_changes(thd));
  if (writes && session_->fills_new_table(thd, name_)) cheetah_fill_new_table(txn_, engine_table_.get());
  error = session_->register_statement(thd);
  // ALTER TABLE may need no scan. Then it does not block other transactions.
  locks_when_scanned_ = !writes && copies_table(thd_sql_command(thd)) && !is_temporary();
  return error != 0 || locks_when_scanned_ ? error : lock_for_statement(thd, writes);
}

// The server uses some tables without locking them: it writes the row of a new temporary sequence
// this way, and the rows of a temporary table that ALTER TABLE fills.
int ha_cheetah::begin_unlocked(bool writes) { return txn_ != nullptr ? 0 : begin_statement(ha_thd(), writes); }

int ha_cheetah::lock_for_statement(THD *thd, bool writes) {
  if (locks_whole_table(thd)) return lock_engine_table(writes);
  if (!writes || !is_kept_from_others()) return 0;
  return handler_error(cheetah_try_lock_table(txn_, engine_table_.get()), thd);
}

// Temporary tables, which only one connection sees, and tables that are copied are locked as a
// whole instead of row by row. LOCK TABLES locks the table until the end of the transaction, unless
// each statement is its own transaction.
bool ha_cheetah::locks_whole_table(THD *thd) const {
  int command = thd_sql_command(thd);
  bool locks_tables = command == SQLCOM_LOCK_TABLES && thd_test_options(thd, OPTION_NOT_AUTOCOMMIT);
  return is_temporary() || locks_tables || copies_table(command);
}

// Returns whether the connection has locked the table with LOCK TABLES .. WRITE, as a dump does.
// Transactions without a connection (prepared transactions, rollbacks in the background) may still
// hold row locks, and the statement waits for these row by row.
bool ha_cheetah::is_kept_from_others() const {
  return table->mdl_ticket != nullptr && table->mdl_ticket->has_stronger_or_equal_type(MDL_SHARED_NO_READ_WRITE);
}

int ha_cheetah::lock_engine_table(bool exclusive) {
  return handler_error(cheetah_lock_table(txn_, engine_table_.get(), exclusive), ha_thd());
}

int ha_cheetah::lock_to_scan() {
  if (!locks_when_scanned_) return 0;
  locks_when_scanned_ = false;
  return lock_engine_table(false);
}

int ha_cheetah::use_private_transaction(THD *thd, bool writes) {
  // Two handlers of one statement must not wait for each other. A consistent read takes no locks,
  // and reads committed rows.
  if (!writes) read_ = CHEETAH_READ_CONSISTENT;
  int error = end_private_transaction();
  if (error != 0) return error;
  if (!private_txn_) private_txn_.reset(new_transaction());
  txn_ = private_txn_.get();
  if (txn_ == nullptr) return HA_ERR_OUT_OF_MEM;
  cheetah_set_connection(txn_, thd_get_thread_id(thd));
  cheetah_set_lock_wait(txn_, lock_wait_timeout_ns(thd));
  return 0;
}

int ha_cheetah::end_private_transaction() {
  if (!private_txn_) return 0;
  return handler_error(cheetah_commit(private_txn_.get()), ha_thd());
}
