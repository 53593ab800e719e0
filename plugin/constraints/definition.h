// SPDX-License-Identifier: GPL-2.0-only
// The description of a definition's columns, keys and constraints for the engine.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "ddl/table_codec.h"

#include <deque>
#include <string>
#include <vector>

namespace cheetah {

// The engine's name of a table of the server.
std::string engine_name(const char *database, const char *table);

class Definition {
 public:
  // `form`: the new definition, whose constraints `alter_info` has.
  Definition(THD *thd, TABLE *form, const TableCodec &codec, const Alter_info *alter_info);

  // `own_name`: the table's, or that of the copy that ALTER TABLE fills. 0 or an error of the
  // handler.
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
  std::string name_;  // of the table that the server speaks of
  ulong next_number_ = 0;
  bool is_temporary_ = false;
  // Texts that the engine is shown; a deque leaves them where they are.
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
