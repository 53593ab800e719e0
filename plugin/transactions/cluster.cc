// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Galera cluster (wsrep). The server replicates definitions of all engines, but rows
// only of those that tell the cluster of each row, as this one does not. Rows that are written
// would be on this node alone, and nobody would notice before they are missing. So writing one is
// an error, unless a variable says that such tables are wanted. Definitions change everywhere: the
// effect on rows (ALTER TABLE, TRUNCATE) is not refused.
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "settings.h"

#include <mysql/service_wsrep.h>
#include <wsrep_on.h>

using namespace cheetah;

// Whether the cluster expects this session to replicate rows: not in statements that every node
// executes, nor in what comes from another node.
static bool is_to_replicate(THD *thd) { return wsrep_on(thd) && wsrep_thd_is_local(thd); }

bool ha_cheetah::stays_on_this_node() const {
  THD *thd = ha_thd();
  return is_to_replicate(thd) && !is_temporary() && !allows_local_writes(thd);
}

int ha_cheetah::refuse_unreplicated() const {
  my_printf_error(ER_GALERA_REPLICATION_NOT_SUPPORTED,
                  "CHEETAH: rows of table '%s' are not replicated to the other nodes: wsrep is on. For tables that differ from "
                  "node to node, SET cheetah_wsrep_local_writes = ON",
                  MYF(0), table_share->table_name.str);
  return own_error_reported;
}

// (wsrep_on is a macro whose words need parentheses around them.)
void ha_cheetah::warn_of_unreplicated(THD *thd, const char *name) {
  if (!(wsrep_on(thd)) || allows_local_writes(thd)) return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GALERA_REPLICATION_NOT_SUPPORTED,
                      "CHEETAH: every node makes table '%s', but its rows are not replicated. Writing them is refused while "
                      "wsrep is on",
                      name);
}
