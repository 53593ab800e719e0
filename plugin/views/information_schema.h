// SPDX-License-Identifier: GPL-2.0-only
// The engine's tables of information_schema: CHEETAH_TABLES and CHEETAH_INDEXES
// (information_schema.cc), CHEETAH_TRX, CHEETAH_LOCKS and CHEETAH_LOCK_WAITS
// (transaction_views.cc), the CHEETAH_CMP views (compression_views.cc), CHEETAH_BUFFER_POOL_STATS
// and CHEETAH_CACHE_CURVE (pool_view.cc), CHEETAH_COMPRESSION_ESTIMATE (estimate_view.cc),
// CHEETAH_FOREIGN_KEYS (constraint_view.cc), CHEETAH_LATENCY and CHEETAH_STALLS
// (wait_views.cc), CHEETAH_TABLESPACES_ENCRYPTION (encryption_view.cc).
#pragma once

#include "server.h"
#include "layout/version.h"

#include <string>

namespace cheetah {

extern st_maria_plugin information_schema_tables;
extern st_maria_plugin information_schema_indexes;
extern st_maria_plugin information_schema_trx;
extern st_maria_plugin information_schema_locks;
extern st_maria_plugin information_schema_lock_waits;
extern st_maria_plugin information_schema_cmp;
extern st_maria_plugin information_schema_cmp_reset;
extern st_maria_plugin information_schema_cmp_per_index;
extern st_maria_plugin information_schema_cmp_per_index_reset;
extern st_maria_plugin information_schema_buffer_pool_stats;
extern st_maria_plugin information_schema_cache_curve;
extern st_maria_plugin information_schema_compression_estimate;
extern st_maria_plugin information_schema_foreign_keys;
extern st_maria_plugin information_schema_latency;
extern st_maria_plugin information_schema_stalls;
extern st_maria_plugin information_schema_tablespaces_encryption;

extern st_mysql_information_schema view_interface;

// Returns the plugin of a view. `init` sets the columns of the view and the function that fills it.
// The result must be a constant, because it initialises the server's static list of plugins.
constexpr st_maria_plugin describe_view(const char *name, const char *description, int (*init)(void *)) {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &view_interface,
          name,
          "The Cheetah authors",
          description,
          PLUGIN_LICENSE_GPL,
          init,
          nullptr,
          version_number,
          nullptr,
          nullptr,
          version_text,
          MariaDB_PLUGIN_MATURITY_GAMMA};
}

// Returns whether the table is one of the engine's own, which belong to no database of the server.
inline bool is_own_table(const std::string &name) { return name.find('/') == std::string::npos; }

// The name of a table as the server shows it.
struct TableName {
  std::string schema, table;
};
TableName table_name_of(const std::string &name);

// Returns the quoted name of a table, with its schema.
std::string quoted_table_name(const std::string &name);

}  // namespace cheetah
