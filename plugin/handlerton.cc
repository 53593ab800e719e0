// SPDX-License-Identifier: GPL-2.0-only
// The functions of the handlerton: transactions, savepoints, and calls for the whole engine.
#include "backup.h"
#include "ddl/alter.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "ddl/orphans.h"
#include "transactions/session.h"
#include "settings.h"
#include "ddl/table_options.h"
#include "transactions/two_phase.h"

namespace cheetah {

Engine engine;

static handler *create_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *root) {
  return new (root) ha_cheetah(hton, share);
}

static int commit(THD *thd, bool all) {
  Session *session = Session::existing(thd);
  return session == nullptr ? 0 : session->commit(thd, all);
}

static int rollback(THD *thd, bool all) {
  Session *session = Session::existing(thd);
  return session == nullptr ? 0 : session->rollback(thd, all);
}

static int savepoint_set(THD *thd, void *place) {
  Session *session = Session::of(thd);
  if (session == nullptr) return HA_ERR_OUT_OF_MEM;
  *static_cast<CheetahSavepoint *>(place) = cheetah_savepoint(session->txn());
  return 0;
}

static int savepoint_rollback(THD *thd, void *place) {
  Session *session = Session::of(thd);
  if (session == nullptr) return HA_ERR_OUT_OF_MEM;
  return rollback_error(cheetah_rollback_to(session->txn(), static_cast<CheetahSavepoint *>(place)), thd);
}

static int savepoint_release(THD *, void *) { return 0; }

// Returns whether a rollback to a savepoint may release metadata locks. As in InnoDB, locks survive
// the rollback, so the metadata locks of their tables must survive, too.
static bool savepoint_rollback_can_release_mdl(THD *thd) {
  Session *session = Session::existing(thd);
  return session == nullptr || !cheetah_holds_locks(session->txn());
}

static int close_connection(THD *thd) {
  Session::close(thd);
  return 0;
}

static int start_consistent_snapshot(THD *thd) {
  Session *session = Session::of(thd);
  if (session == nullptr) return HA_ERR_OUT_OF_MEM;
  if (thd_tx_isolation(thd) <= ISO_READ_COMMITTED) {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_UNSUPPORTED,
                        "CHEETAH: WITH CONSISTENT SNAPSHOT is ignored at READ COMMITTED isolation level.");
    return session->join_transaction(thd);
  }
  return session->take_snapshot(thd);
}

static bool flush_logs(handlerton *) { return handler_error(cheetah_sync_log(engine.db), current_thd) != 0; }

// Drops the partitions of an orphan by its name, because the server does not know that the orphan
// was partitioned.
static int drop_orphaned_partitions(const std::string &name) {
  std::vector<std::string> partitions = table_names(name + "#P#");
  if (partitions.empty() || has_definition(name)) return HA_ERR_NO_SUCH_TABLE;
  for (const std::string &partition : partitions) {
    int32_t code = cheetah_drop_table(engine.db, bytes_of(partition), CHEETAH_REFERENCED_IGNORED);
    int error = handler_error(code, current_thd);
    if (error != 0) return error;
  }
  return 0;
}

// Drops the vector indexes of orphans. The server does not know that a table without a .frm file
// had a vector index.
static void drop_orphaned_vectors(const std::string &name) {
  if (is_temporary_name(name) || has_definition(name)) return;
  for (const std::string &vectors : table_names(name + vector_mark)) drop_or_warn(vectors);
}

static int drop_table(handlerton *, const char *path) {
  std::string name = table_name_of_path(path);
  int error = wait_for_prepared(name, current_thd);
  uint8_t referenced = kept_by(current_thd);
  if (error == 0) error = handler_error(cheetah_drop_table(engine.db, bytes_of(name), referenced), current_thd);
  if (error == 0) drop_orphaned_vectors(name);
  return error == HA_ERR_NO_SUCH_TABLE ? drop_orphaned_partitions(name) : error;
}

// Drops the remaining tables of a database. `path`: "./database/". The server has dropped the
// tables that it knows; the remaining tables are orphans.
static void drop_database(handlerton *, char *path) {
  std::string prefix = table_name_of_path(path);
  if (prefix.empty() || prefix.back() != FN_LIBCHAR) prefix += FN_LIBCHAR;
  for (const std::string &name : table_names(prefix)) drop_or_warn(name);
}

static int signal_ddl_recovery_done(handlerton *) {
  drop_intermediate_tables();
  engine.ddl_recovered = true;
  return 0;
}

struct Printer {
  THD *thd;
  stat_print_fn *print;
  bool failed;
};

static void print_status(void *context, CheetahBytes text) {
  auto *printer = static_cast<Printer *>(context);
  printer->failed = printer->print(printer->thd, STRING_WITH_LEN("CHEETAH"), STRING_WITH_LEN(""),
                                   reinterpret_cast<const char *>(text.data), text.len);
}

static bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type type) {
  if (type != HA_ENGINE_STATUS) return false;
  Printer printer{thd, print, false};
  return cheetah_status_text(engine.db, print_status, &printer) != CHEETAH_CODE_OK || printer.failed;
}

static uint partition_flags() { return 0; }

static alter_table_operations alter_table_flags(alter_table_operations) { return 0; }

void set_handlerton(handlerton *hton) {
  engine.hton = hton;
  hton->db_type = DB_TYPE_AUTOASSIGN;
  hton->flags = HTON_SUPPORTS_EXTENDED_KEYS | HTON_SUPPORTS_FOREIGN_KEYS;
  hton->savepoint_offset = sizeof(CheetahSavepoint);
  hton->create = create_handler;
  hton->commit = of_transaction<commit>;
  hton->rollback = of_transaction<rollback>;
  hton->savepoint_set = of_transaction<savepoint_set>;
  hton->savepoint_rollback = of_transaction<savepoint_rollback>;
  hton->savepoint_release = of_transaction<savepoint_release>;
  hton->savepoint_rollback_can_release_mdl = of_transaction<savepoint_rollback_can_release_mdl>;
  hton->close_connection = of_transaction<close_connection>;
  hton->start_consistent_snapshot = of_transaction<start_consistent_snapshot>;
  hton->flush_logs = flush_logs;
  hton->drop_table = drop_table;
  hton->drop_database = drop_database;
  hton->signal_ddl_recovery_done = signal_ddl_recovery_done;
  hton->check_version = check_version;
  hton->show_status = show_status;
  set_backup(hton);
  set_two_phase(hton);
  set_costs(hton);
  hton->partition_flags = partition_flags;
  hton->alter_table_flags = alter_table_flags;
  hton->tablefile_extensions = hton_no_exts;
  hton->table_options = table_option_list;
}

}  // namespace cheetah
