// SPDX-License-Identifier: GPL-2.0-only
// Tables that the engine has and the server does not know any more.
#pragma once

#include "server.h"

#include <string>
#include <vector>

namespace cheetah {

// Names of all tables of the engine that start with `prefix`.
std::vector<std::string> table_names(const std::string &prefix);

// The prefix that the names of a partition and of all others of its table share; empty if the name
// is of none.
std::string siblings_of_partition(const std::string &name);

// The name of a vector index, which is a table, is that of its table, this mark, and a number.
constexpr const char *vector_mark = "#i#";

// Whether the server has a .frm file for the table (of a partition or a vector index: for its
// table).
bool has_definition(const std::string &name);

// Drops a table, with a warning in the error log when that fails: nobody who could be told an error
// asks for it.
void drop_or_warn(const std::string &name);

// Drops temporary tables of a server that was killed.
void drop_temporary_tables();

// Drops what an interrupted ALTER TABLE has left. To be called after the server's own recovery of
// DDL, which has finished or rolled back every statement by then: a table #sql-... without .frm
// file belongs to none.
void drop_intermediate_tables();

// Renames what the engine has of a partitioned table, and the file that lists its partitions. The
// server's recovery of ALTER TABLE renames a partitioned table as if it had no partitions; it would
// be lost (docs/developers/mariadb.md). 0, or an error of the handler.
int rename_all_partitions(const std::string &source, const std::string &target);

}  // namespace cheetah
