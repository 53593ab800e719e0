// SPDX-License-Identifier: GPL-2.0-only
// Opens and closes the engine, and declares the plugins to the server.
#include "codec/key_text.h"
#include "transactions/connections.h"
#include "constraints/foreign_keys.h"
#include "engine.h"
#include "errors.h"
#include "views/information_schema.h"
#include "ddl/orphans.h"
#include "layout/layout.h"
#include "transactions/session.h"
#include "transactions/stages.h"
#include "settings.h"
#include "status.h"
#include "transactions/two_phase.h"
#include "layout/version.h"

#include <ctime>
#include <sstream>

// The server exports this function, but none of its headers declares it.
void ignore_db_dirs_append(const char *directory);

using namespace cheetah;

// Hides the engine's directory from SHOW DATABASES. The server reads this list after it has
// initialised the plugins of its command line.
static void hide_directory() { ignore_db_dirs_append(reinterpret_cast<const char *>(open_config().directory.data)); }

// Logs an error of the background. Also called from the engine's threads.
static void log_background_error(void *, CheetahBytes text) {
  sql_print_error("CHEETAH: %.*s", static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

// Logs a long stall. Also called from the engine's threads.
static void log_stall(void *, CheetahBytes text) {
  sql_print_warning("CHEETAH: %.*s", static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

// Passes the current time to the sink, in the server's time zone, like the error log.
static void tell_time(void *, CheetahTextSink sink, void *sink_context) {
  time_t seconds = time(nullptr);
  tm parts;
  char text[32];
  localtime_r(&seconds, &parts);
  size_t length = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  sink(sink_context, CheetahBytes{reinterpret_cast<const uint8_t *>(text), length});
}

// Logs line by line, because the server truncates long messages.
static void log_deadlock(void *, CheetahBytes text) {
  if (!prints_all_deadlocks()) return;
  sql_print_information("CHEETAH: Transactions deadlock detected, dumping detailed information.");
  std::istringstream lines(text_of(text));
  for (std::string line; std::getline(lines, line);) sql_print_information("CHEETAH: %s", line.c_str());
}

// Returns whether the server's classes have a different layout than in the headers: then the plugin
// would corrupt the server's memory.
static bool is_refused(const handlerton *hton) {
  const char *difference = layout_difference(hton);
  if (difference == nullptr) return false;
  sql_print_error("CHEETAH: the plugin was built for a different server, with the headers of %s: %s differs. "
                  "Nothing was opened or changed. Install the plugin for this server, see docs/users/upgrades.md",
                  MYSQL_SERVER_VERSION, difference);
  return true;
}

static int open_engine(void *hton) {
  if (is_refused(static_cast<handlerton *>(hton))) return 1;
  adjust_settings();
  CheetahConfig config = open_config();
  int32_t code = cheetah_open(&config, &engine.db);
  if (code != CHEETAH_CODE_OK) {
    String message = last_message();
    sql_print_error("CHEETAH: cannot open the database in '#cheetah' of the data directory: %s", message.c_ptr_safe());
    return 1;
  }
  cheetah_announce_background_errors(engine.db, log_background_error, nullptr);
  cheetah_announce_stalls(engine.db, log_stall, nullptr);
  cheetah_announce_deadlocks(engine.db, log_deadlock, nullptr);
  cheetah_show_values_with(engine.db, show_value, nullptr);
  cheetah_tell_time_with(engine.db, tell_time, nullptr);
  cheetah_describe_connections(engine.db, describe_connection, nullptr);
  cheetah_show_names_with(engine.db, show_table_name, nullptr);
  cheetah_set_victim_choice(engine.db, later_session);
  observe_stages();
  tell_settings();
  set_handlerton(static_cast<handlerton *>(hton));
  hide_directory();
  drop_temporary_tables();
  warn_of_untold_prepared();
  return 0;
}

static int close_engine(void *) {
  int32_t code = cheetah_close(engine.db);
  engine = Engine();
  if (code == CHEETAH_CODE_OK) return 0;
  String message = last_message();
  sql_print_error("CHEETAH: closing failed: %s; the next start recovers from the log", message.c_ptr_safe());
  return 0;
}

static st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

maria_declare_plugin(cheetah){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &storage_engine,
    "CHEETAH",
    "The Cheetah authors",
    "Transactional, compressed tables",
    PLUGIN_LICENSE_GPL,
    open_engine,
    close_engine,
    version_number,
    status_variables,
    cheetah::system_variables,
    version_text,
    // The lowest maturity that a stable server loads. The server has one such setting for all
    // plugins, so a lower maturity here would make users lower it for all of them.
    MariaDB_PLUGIN_MATURITY_GAMMA,
},
    information_schema_tables, information_schema_indexes, information_schema_trx, information_schema_locks,
    information_schema_lock_waits, information_schema_cmp, information_schema_cmp_reset, information_schema_cmp_per_index,
    information_schema_cmp_per_index_reset, information_schema_buffer_pool_stats, information_schema_cache_curve,
    information_schema_compression_estimate, information_schema_foreign_keys, information_schema_latency,
    information_schema_stalls, information_schema_tablespaces_encryption maria_declare_plugin_end;
