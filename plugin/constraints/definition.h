// SPDX-License-Identifier: GPL-2.0-only
// Describes the columns, keys and constraints of a table definition for the engine.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "ddl/table_codec.h"

#include <deque>
#include <string>
#include <vector>

namespace cheetah {

// Returns the engine's name for a table of the server.
std::string engine_name(const char *database, const char *table);

class Definition {
 public:
  // `form`: the new definition. `alter_info` lists its constraints.
  Definition(THD *thd, TABLE *form, const TableCodec &codec, const Alter_info *alter_info);

  // Fills in the description. `own_name`: the name of the table, or of the copy that ALTER TABLE
  // fills. Returns 0 or a handler error.
  int find(const std::string &own_name);
  const CheetahConstraints *for_engine() const { return &for_engine_; }

 private:
  void describe_columns();
  void describe_keys(const TableCodec &codec);
  void find_renamed_columns();
  int add_constraint(const Foreign_key *key, bool is_copy);
  std::string new_column_name(const char *name) const;
  std::string next_name();
  std::string copied_table() const;
  CheetahBytes keep(std::string text);
  bool computes_stored_column_from(const char *name) const;

  THD *thd_;
  TABLE *form_;
  const Alter_info *alter_info_;
  std::string name_;  // of the table; for a copy, of the table that it will replace
  ulong next_number_ = 0;
  bool is_temporary_ = false;
  // Strings and arrays that the description points to. A deque does not move its elements.
  std::deque<std::string> texts_;
  std::deque<Buffer> kinds_;
  std::deque<std::vector<CheetahBytes>> names_;
  std::deque<std::vector<CheetahKeyPartDef>> parts_;
  std::vector<CheetahColumnDef> columns_;
  std::vector<CheetahKeyDef> keys_;
  std::vector<CheetahForeignKeyDef> constraints_;
  std::vector<CheetahRenamedColumn> renamed_;
  size_t kept_count_ = 0;
  CheetahConstraints for_engine_ = {};
};

}  // namespace cheetah
