// SPDX-License-Identifier: GPL-2.0-only
#include "settings.h"

#include "backup.h"
#include "codec/words.h"
#include "encryption/encryption.h"
#include "engine.h"
#include "errors.h"

#include <set_var.h>

#include <algorithm>

namespace cheetah {

static const ulonglong mib = 1ULL << 20, tib = 1ULL << 40;

static ulonglong buffer_pool_size, log_file_size, log_size_max;
static ulonglong result_cache_limit;
static unsigned io_capacity, scrub_rate, flush_log_at_trx_commit, sample_pages, ft_min_token_size, ft_max_token_size;
static unsigned pin_seconds_max;
static ulong change_buffering;
static char nothing[] = "", *snapshot_path = nothing;
static double stall_warning;
static my_bool data_file_buffering, checkpoint_now, stats_auto_recalc, print_all_deadlocks;
const char *compression_names[] = {"none", "lz4", "zstd", NullS};
static TYPELIB compression_type = list_of(compression_names);
// The names of the two values of the engine's flag, 0 and 1.
static const char *change_buffering_names[] = {"none", "all", NullS};
static TYPELIB change_buffering_type = list_of(change_buffering_names);

static void set_flush_log(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  cheetah_set_flush_log_at_commit(engine.db, static_cast<uint8_t>(flush_log_at_trx_commit));
}

static void set_buffer_pool_size(THD *, st_mysql_sys_var *, void *place, const void *value) {
  auto *size = static_cast<ulonglong *>(place);
  *size = cheetah_set_buffer_pool_size(engine.db, *static_cast<const ulonglong *>(value));
}

static void set_io_capacity(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  cheetah_set_io_capacity(engine.db, io_capacity);
}

static void set_scrub_rate(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  cheetah_set_scrub_rate(engine.db, scrub_rate * mib);
}

static void set_snapshot_max_age(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  cheetah_set_snapshot_max_age(engine.db, pin_seconds_max);
}

static void set_change_buffering(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<ulong *>(place) = *static_cast<const ulong *>(value);
  cheetah_set_change_buffering(engine.db, static_cast<uint8_t>(change_buffering));
}

static void set_sample_pages(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  cheetah_set_statistics(engine.db, stats_auto_recalc, sample_pages);
}

static void set_auto_recalc(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<my_bool *>(place) = *static_cast<const my_bool *>(value);
  cheetah_set_statistics(engine.db, stats_auto_recalc, sample_pages);
}

static void tell_stall_warning() { cheetah_set_stall_warning(engine.db, static_cast<uint64_t>(stall_warning * 1e9)); }

static void set_stall_warning(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<double *>(place) = *static_cast<const double *>(value);
  tell_stall_warning();
}

// Parses a word or its number like the server does.
bool word_of(st_mysql_value *value, const TYPELIB *words, ulong *result) {
  char buffer[16];
  int length = sizeof(buffer);
  long long number = 0;
  if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING) {
    const char *text = value->val_str(value, buffer, &length);
    if (text == nullptr) return false;
    for (number = 0; number < words->count; number++) {
      const char *word = words->type_names[number];
      if (strlen(word) == static_cast<size_t>(length) && strncasecmp(word, text, strlen(word)) == 0) break;
    }
  } else if (value->val_int(value, &number) != 0) {
    return false;
  }
  *result = static_cast<ulong>(number);
  return number >= 0 && number < words->count;
}

bool boolean_of(st_mysql_value *value, bool *result) {
  char buffer[8];
  int length = sizeof(buffer);
  long long number = 0;
  if (value->value_type(value) == MYSQL_VALUE_TYPE_STRING) {
    const char *text = value->val_str(value, buffer, &length);
    *result = text != nullptr && length == 2 && strncasecmp(text, "ON", 2) == 0;
    return *result || (text != nullptr && length == 3 && strncasecmp(text, "OFF", 3) == 0);
  }
  if (value->val_int(value, &number) != 0) return false;
  *result = number == 1;
  return number == 0 || number == 1;
}

// Makes a checkpoint. This is the variable's check function, so a failure fails the statement.
static int make_checkpoint(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  bool is_asked = false;
  *static_cast<my_bool *>(save) = false;
  if (!boolean_of(value, &is_asked)) return 1;
  if (!is_asked || cheetah_checkpoint(engine.db) == CHEETAH_CODE_OK) return 0;
  String message = last_message();
  my_printf_error(ER_ERROR_DURING_CHECKPOINT, "CHEETAH: checkpoint failed: %s", MYF(0), message.c_ptr_safe());
  return 1;
}

// Writes a snapshot, in the check function like `make_checkpoint`. The variable itself stays empty.
static int write_snapshot(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int length = sizeof(buffer);
  const char *path = value->val_str(value, buffer, &length);
  *static_cast<char **>(save) = nothing;
  return path == nullptr || create_snapshot(thd, std::string(path, static_cast<size_t>(length)));
}

static void leave_empty(THD *, st_mysql_sys_var *, void *, const void *) {}

static MYSQL_SYSVAR_STR(create_snapshot, snapshot_path, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_NOCMDOPT,
                        "Writes a snapshot of all CHEETAH tables into a new directory with this absolute path: the state of "
                        "the last BACKUP STAGE END if it is still pinned, otherwise the current state",
                        write_snapshot, leave_empty, "");

static MYSQL_SYSVAR_UINT(snapshot_max_age, pin_seconds_max, PLUGIN_VAR_RQCMDARG,
                         "Seconds for which the state of the last BACKUP STAGE END stays pinned unless it is written "
                         "earlier; 0: it is not pinned",
                         nullptr, set_snapshot_max_age, 3600, 0, 31536000, 0);

static MYSQL_SYSVAR_BOOL(checkpoint_now, checkpoint_now, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_NOCMDOPT,
                         "ON: makes a checkpoint; recovery then needs no log of earlier commits",
                         make_checkpoint, nullptr, false);

static MYSQL_SYSVAR_ULONGLONG(buffer_pool_size, buffer_pool_size, PLUGIN_VAR_RQCMDARG,
                              "Total memory for pages, write buffers and the log buffer", nullptr,
                              set_buffer_pool_size, 128 * mib, 8 * mib, 64 * tib, mib);

static MYSQL_SYSVAR_ULONGLONG(log_file_size, log_file_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                              "Maximum size of a redo log file", nullptr, nullptr, 64 * mib, mib, 1024 * mib, mib);

static MYSQL_SYSVAR_ULONGLONG(log_size_max, log_size_max, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                              "Size of the redo log: a checkpoint starts when a quarter of it is used", nullptr, nullptr,
                              1024 * mib, 8 * mib, ~0ULL, mib);

static MYSQL_SYSVAR_BOOL(data_file_buffering, data_file_buffering, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                         "Whether data files are read through the page cache of the operating system", nullptr, nullptr,
                         false);

static MYSQL_SYSVAR_UINT(io_capacity, io_capacity, PLUGIN_VAR_RQCMDARG,
                         "I/O operations per second that background work may use", nullptr, set_io_capacity, 2000, 10,
                         4000000, 0);

static MYSQL_SYSVAR_UINT(scrub_rate, scrub_rate, PLUGIN_VAR_RQCMDARG,
                         "MiB per second that the background check of all pages for damage reads; 0: no check. "
                         "Setting it starts a new pass",
                         nullptr, set_scrub_rate, 1, 0, 100000, 0);

static MYSQL_SYSVAR_UINT(flush_log_at_trx_commit, flush_log_at_trx_commit, PLUGIN_VAR_RQCMDARG,
                         "1: the log is written and synced before a commit returns; 2: it is written before a commit "
                         "returns, and synced once per second; 0: it is written and synced once per second",
                         nullptr, set_flush_log, 1, 0, 2, 0);

static MYSQL_SYSVAR_ENUM(change_buffering, change_buffering, PLUGIN_VAR_RQCMDARG,
                         "Whether changes to rows and index entries may be buffered while their leaf is not in "
                         "memory: none or all",
                         nullptr, set_change_buffering, 1, &change_buffering_type);

static MYSQL_SYSVAR_UINT(ft_min_token_size, ft_min_token_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                         "Minimum length in characters of a word in a new FULLTEXT index", nullptr,
                         nullptr, 3, 0, 16, 0);

static MYSQL_SYSVAR_UINT(ft_max_token_size, ft_max_token_size, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                         "Maximum length in characters of a word in a new FULLTEXT index", nullptr,
                         nullptr, 84, 10, 84, 0);

static MYSQL_SYSVAR_ULONGLONG(ft_result_cache_limit, result_cache_limit, PLUGIN_VAR_RQCMDARG,
                              "Maximum size in bytes of the result of one FULLTEXT search", nullptr, nullptr, 2000000000,
                              1000000, 32ULL << 30, 0);

static MYSQL_THDVAR_BOOL(ft_enable_stopword, PLUGIN_VAR_OPCMDARG,
                         "Whether new FULLTEXT indexes omit stop words", nullptr, nullptr,
                         true);

static MYSQL_SYSVAR_UINT(stats_persistent_sample_pages, sample_pages, PLUGIN_VAR_RQCMDARG,
                         "Number of places in an index that are sampled for statistics; a table's STATS_SAMPLE_PAGES "
                         "overrides it",
                         nullptr, set_sample_pages, 20, 1, 1000000, 0);

static MYSQL_SYSVAR_BOOL(stats_auto_recalc, stats_auto_recalc, PLUGIN_VAR_OPCMDARG,
                         "Whether statistics are collected in the background when a table has none or a tenth of its rows "
                         "has changed; a table's STATS_AUTO_RECALC overrides it",
                         nullptr, set_auto_recalc, true);

static MYSQL_SYSVAR_DOUBLE(stall_warning, stall_warning, PLUGIN_VAR_RQCMDARG,
                           "Seconds after which a wait for log space, memory, the disk or a checkpoint, or a wait of many "
                           "threads for locks, is reported in the error log; 0: no reports",
                           nullptr, set_stall_warning, 5, 0, 31536000, 0);

static constexpr ulonglong default_lock_wait_seconds = 50;

static MYSQL_THDVAR_ULONGLONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                              "Seconds to wait for a row or table lock; at the default value, "
                              "innodb_lock_wait_timeout applies instead",
                              nullptr, nullptr, default_lock_wait_seconds, 0, 100000000, 0);

static MYSQL_THDVAR_BOOL(snapshot_isolation, PLUGIN_VAR_OPCMDARG,
                         "Refuse to lock or change a row that has changed since the transaction's snapshot (error 1020), "
                         "under REPEATABLE READ and SERIALIZABLE",
                         nullptr, nullptr, snapshot_isolation_default);

static MYSQL_THDVAR_BOOL(strict_mode, PLUGIN_VAR_OPCMDARG,
                         "Refuse a KEY_BLOCK_SIZE or ROW_FORMAT that InnoDB does not have (error 1005); OFF: ignore it with "
                         "a warning",
                         nullptr, nullptr, true);

static MYSQL_SYSVAR_BOOL(print_all_deadlocks, print_all_deadlocks, PLUGIN_VAR_OPCMDARG,
                         "Whether every deadlock is written to the error log; innodb_print_all_deadlocks=ON has the same effect",
                         nullptr, nullptr, false);

static MYSQL_THDVAR_BOOL(allow_foreign_backup, PLUGIN_VAR_OPCMDARG,
                         "Whether programs that may leave out CHEETAH tables may use BACKUP STAGE START: for file system "
                         "snapshots, which contain the tables, and for backups that do not need them",
                         nullptr, nullptr, false);

static MYSQL_THDVAR_BOOL(wsrep_local_writes, PLUGIN_VAR_OPCMDARG,
                         "Whether rows of CHEETAH tables may be written while wsrep is on. The rows stay on this node: they are "
                         "not replicated",
                         nullptr, nullptr, false);

static MYSQL_THDVAR_BOOL(disable_keys, PLUGIN_VAR_OPCMDARG,
                         "Whether ALTER TABLE .. DISABLE KEYS also works on tables that have rows; OFF: only on empty tables",
                         nullptr, nullptr, false);

static MYSQL_THDVAR_ENUM(default_compression, PLUGIN_VAR_RQCMDARG,
                         "Compression of tables whose definition does not name one", nullptr, nullptr,
                         CHEETAH_COMPRESSION_ZSTD, &compression_type);

static MYSQL_THDVAR_INT(default_compression_level, PLUGIN_VAR_RQCMDARG,
                        "Compression level of tables whose definition does not name one; 0: the codec's default",
                        nullptr, nullptr, 0, 0, 22, 0);

st_mysql_sys_var *system_variables[] = {MYSQL_SYSVAR(buffer_pool_size),
                                        MYSQL_SYSVAR(log_file_size),
                                        MYSQL_SYSVAR(log_size_max),
                                        MYSQL_SYSVAR(data_file_buffering),
                                        MYSQL_SYSVAR(io_capacity),
                                        MYSQL_SYSVAR(scrub_rate),
                                        MYSQL_SYSVAR(flush_log_at_trx_commit),
                                        MYSQL_SYSVAR(change_buffering),
                                        MYSQL_SYSVAR(checkpoint_now),
                                        MYSQL_SYSVAR(create_snapshot),
                                        MYSQL_SYSVAR(snapshot_max_age),
                                        MYSQL_SYSVAR(stats_persistent_sample_pages),
                                        MYSQL_SYSVAR(ft_min_token_size),
                                        MYSQL_SYSVAR(ft_max_token_size),
                                        MYSQL_SYSVAR(ft_result_cache_limit),
                                        MYSQL_SYSVAR(ft_enable_stopword),
                                        MYSQL_SYSVAR(stats_auto_recalc),
                                        MYSQL_SYSVAR(stall_warning),
                                        MYSQL_SYSVAR(print_all_deadlocks),
                                        MYSQL_SYSVAR(lock_wait_timeout),
                                        MYSQL_SYSVAR(snapshot_isolation),
                                        MYSQL_SYSVAR(strict_mode),
                                        MYSQL_SYSVAR(allow_foreign_backup),
                                        MYSQL_SYSVAR(wsrep_local_writes),
                                        MYSQL_SYSVAR(disable_keys),
                                        MYSQL_SYSVAR(default_compression),
                                        MYSQL_SYSVAR(default_compression_level),
                                        sysvar_default_encryption_key_id,
                                        sysvar_encrypt_tables,
                                        sysvar_encrypt_log,
                                        sysvar_encryption_rotate_key_age,
                                        nullptr};

// Relative to the data directory, which is the server's working directory.
static const char *directory = "#cheetah";

static void log_adjustment(void *, CheetahBytes text) {
  sql_print_warning("CHEETAH: %.*s", static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

void adjust_settings() {
  CheetahSettings settings{log_file_size, log_size_max, ft_min_token_size, ft_max_token_size};
  cheetah_adjust_settings(&settings, log_adjustment, nullptr);
  log_file_size = settings.log_file_bytes;
  log_size_max = settings.log_bytes_max;
  ft_min_token_size = settings.word_chars_min;
  ft_max_token_size = settings.word_chars_max;
}

CheetahConfig open_config() {
  CheetahConfig config = {};
  config.directory = bytes_of(directory);
  config.buffer_pool_bytes = buffer_pool_size;
  config.log_file_bytes = log_file_size;
  config.log_bytes_max = log_size_max;
  config.io_capacity = io_capacity;
  config.flush_log_at_commit = static_cast<uint8_t>(flush_log_at_trx_commit);
  config.buffers_changes = static_cast<uint8_t>(change_buffering);
  config.buffers_data_files = static_cast<uint8_t>(data_file_buffering);
  set_encryption(&config);
  return config;
}

// Returns the variable with this name, if it exists. With the last argument true, an unknown name
// is no error (1193), although the argument's name suggests the opposite.
static sys_var *find_variable(THD *thd, const char *name) { return find_sys_var(thd, name, strlen(name), true); }

// Returns whether every deadlock is logged. InnoDB's variable has the same effect, because users
// may already have set it.
bool prints_all_deadlocks() {
  THD *thd = current_thd;
  if (print_all_deadlocks || thd == nullptr) return print_all_deadlocks;
  static sys_var *const variable = find_variable(thd, "innodb_print_all_deadlocks");
  bool is_null = false;
  return variable != nullptr && variable->val_int(&is_null, thd, OPT_GLOBAL, &null_clex_str) != 0;
}

// Returns the session's innodb_lock_wait_timeout, which programs set; without InnoDB, our default.
static ulonglong innodb_lock_wait_seconds(THD *thd) {
  static const sys_var *const variable = find_variable(thd, "innodb_lock_wait_timeout");
  if (variable == nullptr || variable->show_type() != SHOW_UINT) return default_lock_wait_seconds;
  return *reinterpret_cast<const uint *>(variable->value_ptr(thd, OPT_SESSION, &null_clex_str));
}

// Returns the timeout of lock waits. For NOWAIT and WAIT n the server sets InnoDB's variable, but
// not ours. For the statement it also sets its own lock_wait_timeout, so that variable is used.
uint64_t lock_wait_timeout_ns(THD *thd) {
  ulonglong seconds = THDVAR(thd, lock_wait_timeout);
  if (seconds == default_lock_wait_seconds) seconds = innodb_lock_wait_seconds(thd);
  bool of_statement = !thd->lex->stmt_var_list.is_empty();
  if (of_statement) seconds = std::min<ulonglong>(seconds, thd->variables.lock_wait_timeout);
  return seconds * 1000000000ULL;
}

WordRules word_rules(THD *thd) {
  return WordRules{ft_min_token_size, ft_max_token_size, THDVAR(thd, ft_enable_stopword) != 0};
}

uint64_t ft_result_cache_limit() { return result_cache_limit; }

bool allows_foreign_backup(THD *thd) { return THDVAR(thd, allow_foreign_backup); }

bool allows_local_writes(THD *thd) { return THDVAR(thd, wsrep_local_writes); }

unsigned snapshot_max_age() { return pin_seconds_max; }

void tell_settings() {
  cheetah_set_statistics(engine.db, stats_auto_recalc, sample_pages);
  cheetah_set_scrub_rate(engine.db, scrub_rate * mib);
  cheetah_set_snapshot_max_age(engine.db, pin_seconds_max);
  tell_stall_warning();
  tell_rotation();
}

bool snapshot_isolation(THD *thd) { return THDVAR(thd, snapshot_isolation); }

bool strict_mode(THD *thd) { return THDVAR(thd, strict_mode); }

bool disables_keys_of_rows(THD *thd) { return THDVAR(thd, disable_keys); }

void default_compression(THD *thd, uint8_t *codec, int32_t *level) {
  *codec = static_cast<uint8_t>(THDVAR(thd, default_compression));
  *level = THDVAR(thd, default_compression_level);
}

}  // namespace cheetah
