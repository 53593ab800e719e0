// SPDX-License-Identifier: GPL-2.0-only
// System variables cheetah_*.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

extern st_mysql_sys_var *system_variables[];

// The values that a variable may have; the names end with a null.
template <size_t count>
TYPELIB list_of(const char *(&names)[count]) {
  TYPELIB list = {};
  list.count = count - 1;
  list.name = "";
  list.type_names = names;
  return list;
}

// The value given to SET: a boolean, or the number of one of the words; false for any other.
bool boolean_of(st_mysql_value *value, bool *result);
bool word_of(st_mysql_value *value, const TYPELIB *words, ulong *result);

// The names of a CheetahCompression, in their order.
extern const char *compression_names[];

// At the start: gives variables that do not fit each other values that do, and says so in the error
// log.
void adjust_settings();
// The parameters to open the engine.
CheetahConfig open_config();
// Also that of NOWAIT and WAIT n in a statement.
uint64_t lock_wait_timeout_ns(THD *thd);
bool snapshot_isolation(THD *thd);
// Whether words of a definition that cannot be meant are refused.
bool strict_mode(THD *thd);
// Whether DISABLE KEYS counts for tables that have rows.
bool disables_keys_of_rows(THD *thd);
// Of full-text indexes that are created from now on.
struct WordRules;
WordRules word_rules(THD *thd);
// Bytes that the result of a full-text search may take.
uint64_t ft_result_cache_limit();
// Whether every deadlock is written to the error log.
bool prints_all_deadlocks();
// Whether programs that do not know the engine may back the server up.
bool allows_foreign_backup(THD *thd);
// Whether rows may be written that stay on this server: other nodes of a cluster do not get them.
bool allows_local_writes(THD *thd);
// Seconds for which the state of a backup stays pinned.
unsigned snapshot_max_age();
// Tells the open engine what the variables say of the background, of backups and of stalls.
void tell_settings();
// The session's choice for tables that say nothing: a CheetahCompression and its level (0: the
// codec's own default).
void default_compression(THD *thd, uint8_t *codec, int32_t *level);

}  // namespace cheetah
