// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_TRX, CHEETAH_LOCKS and CHEETAH_LOCK_WAITS have the columns of the
// INNODB_ views of the same names, and CHEETAH_TRX has three more at its end. A column is NULL if
// it has no meaning here, or if it describes the connection and the transaction has none.
// docs/developers/transactions.md, "Views", lists the columns.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "transactions/connections.h"
#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static const LEX_CSTRING isolation_names[] = {{STRING_WITH_LEN("READ UNCOMMITTED")},
                                              {STRING_WITH_LEN("READ COMMITTED")},
                                              {STRING_WITH_LEN("REPEATABLE READ")},
                                              {STRING_WITH_LEN("SERIALIZABLE")}};
static TypelibBuffer<4> isolation_typelib(isolation_names);

static const LEX_CSTRING mode_names[] = {{STRING_WITH_LEN("S")},      {STRING_WITH_LEN("S,GAP")},
                                         {STRING_WITH_LEN("X")},      {STRING_WITH_LEN("X,GAP")},
                                         {STRING_WITH_LEN("IS")},     {STRING_WITH_LEN("IS,GAP")},
                                         {STRING_WITH_LEN("IX")},     {STRING_WITH_LEN("IX,GAP")},
                                         {STRING_WITH_LEN("AUTO_INC")}};
static TypelibBuffer<9> mode_typelib(mode_names);

static const LEX_CSTRING type_names[] = {{STRING_WITH_LEN("RECORD")}, {STRING_WITH_LEN("TABLE")}};
static TypelibBuffer<2> type_typelib(type_names);

static constexpr uint lock_id_length = 81;
static constexpr uint query_length = 1024;

static ST_FIELD_INFO trx_columns[] = {Column("trx_id", ULonglong(), NOT_NULL),
                                      Column("trx_state", Varchar(13), NOT_NULL),
                                      Column("trx_started", Datetime(0), NOT_NULL),
                                      Column("trx_requested_lock_id", Varchar(lock_id_length), NULLABLE),
                                      Column("trx_wait_started", Datetime(0), NULLABLE),
                                      Column("trx_weight", ULonglong(), NOT_NULL),
                                      Column("trx_mysql_thread_id", ULonglong(), NOT_NULL),
                                      Column("trx_query", Varchar(query_length), NULLABLE),
                                      Column("trx_operation_state", Varchar(64), NULLABLE),
                                      Column("trx_tables_in_use", ULonglong(), NULLABLE),
                                      Column("trx_tables_locked", ULonglong(), NOT_NULL),
                                      Column("trx_lock_structs", ULonglong(), NOT_NULL),
                                      Column("trx_lock_memory_bytes", ULonglong(), NOT_NULL),
                                      Column("trx_rows_locked", ULonglong(), NOT_NULL),
                                      Column("trx_rows_modified", ULonglong(), NOT_NULL),
                                      Column("trx_concurrency_tickets", ULonglong(), NULLABLE),
                                      Column("trx_isolation_level", Enum(&isolation_typelib), NOT_NULL),
                                      Column("trx_unique_checks", SLong(1), NULLABLE),
                                      Column("trx_foreign_key_checks", SLong(1), NULLABLE),
                                      Column("trx_last_foreign_key_error", Varchar(256), NULLABLE),
                                      Column("trx_is_read_only", SLong(1), NULLABLE),
                                      Column("trx_autocommit_non_locking", SLong(1), NULLABLE),
                                      Column("trx_xid", Varchar(560), NULLABLE),
                                      Column("trx_kept_from_purge", ULonglong(), NOT_NULL),
                                      Column("trx_undo_bytes", ULonglong(), NOT_NULL),
                                      CEnd()};

static ST_FIELD_INFO locks_columns[] = {Column("lock_id", Varchar(lock_id_length), NOT_NULL),
                                        Column("lock_trx_id", ULonglong(), NOT_NULL),
                                        Column("lock_mode", Enum(&mode_typelib), NOT_NULL),
                                        Column("lock_type", Enum(&type_typelib), NOT_NULL),
                                        Column("lock_table", Varchar(1024), NOT_NULL),
                                        Column("lock_index", Varchar(1024), NULLABLE),
                                        Column("lock_space", ULong(), NULLABLE),
                                        Column("lock_page", ULong(), NULLABLE),
                                        Column("lock_rec", ULong(), NULLABLE),
                                        Column("lock_data", Varchar(8192), NULLABLE),
                                        CEnd()};

static ST_FIELD_INFO lock_waits_columns[] = {Column("requesting_trx_id", ULonglong(), NOT_NULL),
                                             Column("requested_lock_id", Varchar(lock_id_length), NOT_NULL),
                                             Column("blocking_trx_id", ULonglong(), NOT_NULL),
                                             Column("blocking_lock_id", Varchar(lock_id_length), NOT_NULL),
                                             CEnd()};

}  // namespace Show

namespace cheetah {

// Puts the columns that the server knows of the connection: its current statement, tables and
// settings.
static void write_connection(Rows *rows, const CheetahTxnInfo *txn) {
  Connection connection;
  if (txn->connection == 0 || !find_connection(txn->connection, Show::query_length, &connection)) return;
  bool reads_without_locks = connection.commits_itself && txn->tables_locked == 0;
  if (!connection.statement.empty()) rows->put(7, connection.statement, connection.charset);
  rows->put(9, txn->tables_in_use);
  rows->put(17, connection.checks_unique);
  rows->put(18, connection.checks_foreign_keys);
  rows->put(20, connection.only_reads || reads_without_locks);
  rows->put(21, reads_without_locks);
}

static void write_transaction(void *context, const CheetahTxnInfo *txn) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, txn->id);
  rows->put(1, txn->state);
  rows->put_moment(2, txn->age_ns);
  if (txn->requested_lock.len > 0) {
    rows->put(3, txn->requested_lock);
    rows->put_moment(4, txn->wait_ns);
  }
  rows->put(5, txn->changes + txn->locks);
  rows->put(6, txn->connection);
  write_connection(rows, txn);
  rows->put(10, txn->tables_locked);
  rows->put(11, txn->locks);
  rows->put(12, txn->lock_bytes);
  rows->put(13, txn->records_locked);
  rows->put(14, txn->changes);
  rows->put(15, 0ULL);  // the engine has no concurrency tickets
  // The engine's isolation levels begin with READ COMMITTED, which is number 1 in the server.
  const LEX_CSTRING &level = Show::isolation_names[txn->isolation + 1];
  rows->put(16, std::string(level.str, level.length));
  rows->put(22, txn->xid);
  rows->put(23, txn->kept_from_purge);
  rows->put(24, txn->undo_bytes);
  rows->end();
}

static void write_lock(void *context, const CheetahLockInfo *lock) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, lock->id);
  rows->put(1, lock->txn);
  rows->put(2, lock->mode);
  rows->put(3, std::string(lock->index.len > 0 ? "RECORD" : "TABLE"));
  rows->put(4, quoted_table_name(text_of(lock->table)));
  rows->put(5, lock->index);
  rows->put(9, lock->data);
  rows->end();
}

static void write_lock_wait(void *context, const CheetahLockWait *wait) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, wait->requesting);
  rows->put(1, wait->requested_lock);
  rows->put(2, wait->blocking);
  rows->put(3, wait->blocking_lock);
  rows->end();
}

// Fills a view from a list of the engine, for users with the PROCESS privilege.
template <typename Sink>
static int fill(THD *thd, TABLE_LIST *tables, int32_t (*list)(const CheetahDb *, Sink, void *), Sink write) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return list(engine.db, write, &rows) != CHEETAH_CODE_OK || rows.failed();
}

static int fill_transactions(THD *thd, TABLE_LIST *tables, COND *) {
  return fill(thd, tables, cheetah_list_transactions, write_transaction);
}

static int fill_locks(THD *thd, TABLE_LIST *tables, COND *) {
  return fill(thd, tables, cheetah_list_locks, write_lock);
}

static int fill_lock_waits(THD *thd, TABLE_LIST *tables, COND *) {
  return fill(thd, tables, cheetah_list_lock_waits, write_lock_wait);
}

st_maria_plugin information_schema_trx = describe_view("CHEETAH_TRX", "Transactions of the Cheetah engine",
                                                       init_view<Show::trx_columns, fill_transactions>);
st_maria_plugin information_schema_locks =
    describe_view("CHEETAH_LOCKS", "Locks of the Cheetah engine", init_view<Show::locks_columns, fill_locks>);
st_maria_plugin information_schema_lock_waits =
    describe_view("CHEETAH_LOCK_WAITS", "Lock waits between transactions of the Cheetah engine",
                  init_view<Show::lock_waits_columns, fill_lock_waits>);

}  // namespace cheetah
