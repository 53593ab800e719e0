// SPDX-License-Identifier: GPL-2.0-only
// System variables cheetah_*.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

extern st_mysql_sys_var *system_variables[];

// Returns the list of values that a variable may have. `names` ends with a null pointer.
template <size_t count>
TYPELIB list_of(const char *(&names)[count]) {
  TYPELIB list = {};
  list.count = count - 1;
  list.name = "";
  list.type_names = names;
  return list;
}

// Parse the value given to SET as a boolean, or as the number of a word in `words`. Return false
// for any other value.
bool boolean_of(st_mysql_value *value, bool *result);
bool word_of(st_mysql_value *value, const TYPELIB *words, ulong *result);

// The names of CheetahCompression values, in their order.
extern const char *compression_names[];

// Called at startup: adjusts variables that contradict each other, and logs each adjustment as a
// warning.
void adjust_settings();
// Returns the parameters to open the engine.
CheetahConfig open_config();
// Returns the lock wait timeout of the statement, which NOWAIT and WAIT n may shorten.
uint64_t lock_wait_timeout_ns(THD *thd);
bool snapshot_isolation(THD *thd);
// Returns whether invalid words of a definition are refused.
bool strict_mode(THD *thd);
// Returns whether DISABLE KEYS works on tables that have rows.
bool disables_keys_of_rows(THD *thd);
// Returns the rules of full-text indexes that are created from now on.
struct WordRules;
WordRules word_rules(THD *thd);
// Returns the maximum size in bytes of the result of a full-text search.
uint64_t ft_result_cache_limit();
// Returns whether every deadlock is written to the error log.
bool prints_all_deadlocks();
// Returns whether programs that do not know the engine may back up the server.
bool allows_foreign_backup(THD *thd);
// Returns whether rows may be written although the other nodes of a cluster do not receive them.
bool allows_local_writes(THD *thd);
// Returns the seconds for which the state of a backup stays pinned.
unsigned snapshot_max_age();
// Passes the variables about statistics, scrubbing, snapshots, stalls and key rotation to the open
// engine.
void tell_settings();
// Returns the session's compression of tables whose definition names none: a CheetahCompression and
// its level (0: the codec's own default).
void default_compression(THD *thd, uint8_t *codec, int32_t *level);

}  // namespace cheetah
