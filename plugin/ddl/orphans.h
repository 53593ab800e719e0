// SPDX-License-Identifier: GPL-2.0-only
// Tables that exist in the engine but that the server no longer knows.
#pragma once

#include "server.h"

#include <string>
#include <vector>

namespace cheetah {

// Returns the names of all tables of the engine that start with `prefix`.
std::vector<std::string> table_names(const std::string &prefix);

// Returns the prefix that all partitions of the same table share in their names; empty if `name` is
// not a partition.
std::string siblings_of_partition(const std::string &name);

// A vector index is a table. Its name is the name of the indexed table, this mark, and a number.
constexpr const char *vector_mark = "#i#";

// Returns whether the server has a .frm file for the table, or for the table of a partition or
// vector index.
bool has_definition(const std::string &name);

// Drops a table. Logs a warning if this fails, because no statement could report the error.
void drop_or_warn(const std::string &name);

// Drops temporary tables of a server that was killed.
void drop_temporary_tables();

// Drops intermediate tables of interrupted ALTER TABLE statements. Must be called after the
// server's own recovery of DDL, which completes or rolls back every statement: after it, a table
// #sql-... without .frm file belongs to no statement.
void drop_intermediate_tables();

// Renames all partitions of a table in the engine, and the .par file that lists them. The server's
// recovery of ALTER TABLE renames a partitioned table as if it had no partitions, so without this
// the table would be lost (docs/developers/mariadb.md). Returns 0 or a handler error.
int rename_all_partitions(const std::string &source, const std::string &target);

}  // namespace cheetah
