// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Galera cluster (wsrep). The server replicates table definitions for all engines, but
// rows only for engines that report each row to the cluster. This engine does not report rows. A
// written row would exist on this node only, and users would notice this only when they miss the
// row. So writing a row is an error, unless a variable allows it. Definitions change on all nodes,
// so statements that change rows through the definition (ALTER TABLE, TRUNCATE) are allowed.
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "settings.h"

#include <mysql/service_wsrep.h>
#include <wsrep_on.h>

using namespace cheetah;

// Returns whether the cluster expects this session to replicate rows. The result is false for
// statements that every node executes, and for changes replicated from another node.
static bool is_to_replicate(THD *thd) { return wsrep_on(thd) && wsrep_thd_is_local(thd); }

bool ha_cheetah::stays_on_this_node() const {
  THD *thd = ha_thd();
  return is_to_replicate(thd) && !is_temporary() && !allows_local_writes(thd);
}

int ha_cheetah::refuse_unreplicated() const {
  my_printf_error(ER_GALERA_REPLICATION_NOT_SUPPORTED,
                  "CHEETAH: wsrep is on, but rows of table '%s' are not replicated to the other nodes. For tables that differ "
                  "between nodes, SET cheetah_wsrep_local_writes = ON",
                  MYF(0), table_share->table_name.str);
  return own_error_reported;
}

// (wsrep_on is a macro whose expansion needs parentheses.)
void ha_cheetah::warn_of_unreplicated(THD *thd, const char *name) {
  if (!(wsrep_on(thd)) || allows_local_writes(thd)) return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GALERA_REPLICATION_NOT_SUPPORTED,
                      "CHEETAH: every node creates table '%s', but its rows are not replicated. Writing rows is refused while "
                      "wsrep is on",
                      name);
}
