// SPDX-License-Identifier: GPL-2.0-only
#include "encryption/encryption.h"

#include <mysql/service_encryption.h>

#include "engine.h"
#include "errors.h"
#include "settings.h"

#include <mutex>

namespace cheetah {

static constexpr uint system_key = 1;

static ulong encrypt_tables;
static my_bool encrypt_log;
static unsigned rotate_key_age;

enum EncryptTables { encrypt_off, encrypt_on, encrypt_force };
static const char *encrypt_tables_names[] = {"OFF", "ON", "FORCE", NullS};
static TYPELIB encrypt_tables_type = list_of(encrypt_tables_names);

// Key plugins may use the server's per-thread state (my_thread_init), which the engine's own
// threads lack. Creates that state for the lifetime of this object.
class ServerThread {
 public:
  ServerThread() : is_begun(_my_thread_var() == nullptr && !my_thread_init()) {}
  ~ServerThread() {
    if (is_begun) my_thread_end();
  }
  ServerThread(const ServerThread &) = delete;
  ServerThread &operator=(const ServerThread &) = delete;

 private:
  const bool is_begun;
};

uint32_t newest_key_version(uint32_t id) {
  ServerThread thread;
  uint version = encryption_key_get_latest_version(id);
  bool is_there = version != ENCRYPTION_KEY_VERSION_INVALID && version != ENCRYPTION_KEY_NOT_ENCRYPTED;
  return is_there ? version : 0;
}

size_t key_bytes(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes) {
  ServerThread thread;
  uint length = static_cast<uint>(buffer_bytes);
  return encryption_key_get(id, version, buffer, &length) == 0 ? length : 0;
}

static void warn(void *thd, CheetahBytes text) {
  push_warning_printf(static_cast<THD *>(thd), Sql_condition::WARN_LEVEL_WARN, HA_WRONG_CREATE_OPTION, "CHEETAH: %.*s",
                      static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

int choose_encryption(THD *thd, uint encrypted, ulonglong key_id, CheetahEncryption *encryption) {
  CheetahEncryptionWords words = {};
  words.key_id = static_cast<uint32_t>(key_id);
  words.encrypted = static_cast<uint8_t>(encrypted);
  words.encrypt_tables = static_cast<uint8_t>(encrypt_tables);
  words.newest_key_version = newest_key_version;
  int32_t code = cheetah_choose_encryption(&words, warn, thd, encryption);
  if (code != CHEETAH_CODE_OK) return handler_error(code, thd);
  return encryption->refused ? HA_WRONG_CREATE_OPTION : 0;
}

void set_encryption(CheetahConfig *config) {
  config->encrypts_tables = encrypt_tables != encrypt_off;
  config->encrypts_log = encrypt_log;
  config->newest_key_version = newest_key_version;
  config->key_bytes = key_bytes;
}

// Changes a setting that the engine may refuse. Fetching a key may need a network request, and
// LOCK_global_system_variables blocks new connections, so the lock is released meanwhile. The
// variable changes only if the engine accepts the setting.
template <typename Value>
static void set_in_engine(void *place, const void *value, int32_t (*set)(const CheetahDb *, uint8_t)) {
  static std::mutex one_at_a_time;
  Value wanted = *static_cast<const Value *>(value);
  mysql_mutex_unlock(&LOCK_global_system_variables);
  one_at_a_time.lock();
  int32_t code = set(engine.db, wanted != 0);
  mysql_mutex_lock(&LOCK_global_system_variables);
  if (code == CHEETAH_CODE_OK) *static_cast<Value *>(place) = wanted;
  one_at_a_time.unlock();
  if (code == CHEETAH_CODE_OK) return;
  String message = last_message();
  my_printf_error(ER_WRONG_ARGUMENTS, "CHEETAH: cannot change encryption: %s", MYF(0), message.c_ptr_safe());
}

static void set_encrypt_tables(THD *, st_mysql_sys_var *, void *place, const void *value) {
  set_in_engine<ulong>(place, value, cheetah_set_encrypt_tables);
}

static void set_encrypt_log(THD *, st_mysql_sys_var *, void *place, const void *value) {
  set_in_engine<my_bool>(place, value, cheetah_set_encrypt_log);
}

void tell_rotation() { cheetah_set_rotate_key_age(engine.db, rotate_key_age); }

static void set_rotate_key_age(THD *, st_mysql_sys_var *, void *place, const void *value) {
  *static_cast<unsigned *>(place) = *static_cast<const unsigned *>(value);
  tell_rotation();
}

// Refuses a setting without a key, as InnoDB does.
static int refuse_without_key(THD *thd) {
  if (newest_key_version(system_key) != 0) return 0;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_UNSUPPORTED,
                      "CHEETAH: cannot enable encryption, encryption plugin is not available");
  return 1;
}

static int check_encrypt_tables(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  auto *wanted = static_cast<ulong *>(save);
  if (!word_of(value, &encrypt_tables_type, wanted)) return 1;
  return *wanted == encrypt_off ? 0 : refuse_without_key(thd);
}

static int check_encrypt_log(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  bool wanted = false;
  if (!boolean_of(value, &wanted)) return 1;
  *static_cast<my_bool *>(save) = wanted;
  return wanted ? refuse_without_key(thd) : 0;
}

// Sets the default key. As in InnoDB, a missing key only causes a warning.
static void set_default_key(THD *thd, st_mysql_sys_var *, void *place, const void *value) {
  uint id = *static_cast<const uint *>(value);
  *static_cast<uint *>(place) = id;
  if (id == system_key || newest_key_version(id) != 0) return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_WRONG_ARGUMENTS,
                      "cheetah_default_encryption_key_id=%u is not available", id);
}

static MYSQL_THDVAR_UINT(default_encryption_key_id, PLUGIN_VAR_RQCMDARG,
                         "Key ID of tables whose definition has no ENCRYPTION_KEY_ID", nullptr,
                         set_default_key, system_key, 1, UINT_MAX32, 0);

static MYSQL_SYSVAR_ENUM(encrypt_tables, encrypt_tables, PLUGIN_VAR_OPCMDARG,
                         "Whether tables are encrypted if their definition has no ENCRYPTED: OFF, ON, or FORCE, "
                         "which also refuses ENCRYPTED=NO. cheetah_encrypt_log controls encryption of the log",
                         check_encrypt_tables, set_encrypt_tables, encrypt_off, &encrypt_tables_type);

static MYSQL_SYSVAR_BOOL(encrypt_log, encrypt_log, PLUGIN_VAR_OPCMDARG,
                         "Whether the redo log is encrypted, starting with a new log file", check_encrypt_log,
                         set_encrypt_log, false);

static MYSQL_SYSVAR_UINT(encryption_rotate_key_age, rotate_key_age, PLUGIN_VAR_RQCMDARG,
                         "Number of versions by which the key of a page may be older than the newest version before "
                         "the page is re-encrypted in the background; 0: pages are not re-encrypted",
                         nullptr, set_rotate_key_age, 1, 0, UINT_MAX32, 0);

st_mysql_sys_var *const sysvar_default_encryption_key_id = MYSQL_SYSVAR(default_encryption_key_id);
st_mysql_sys_var *const sysvar_encrypt_tables = MYSQL_SYSVAR(encrypt_tables);
st_mysql_sys_var *const sysvar_encrypt_log = MYSQL_SYSVAR(encrypt_log);
st_mysql_sys_var *const sysvar_encryption_rotate_key_age = MYSQL_SYSVAR(encryption_rotate_key_age);

}  // namespace cheetah
