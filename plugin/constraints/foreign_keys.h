// SPDX-License-Identifier: GPL-2.0-only
// The constraints of one open table, and the checks of its rows
// (docs/developers/decisions/0046-foreign-keys.md).
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "ddl/table_codec.h"

#include <memory>
#include <string>

class ha_cheetah;

namespace cheetah {

// The infix of a generated constraint name: <table><infix><number>.
extern const char *const generated_name_infix;
// Returns the highest number in generated constraint names of the table; 0 if there is none.
ulong last_generated_number(const std::string &table_name);

// Returns whether the server uses such a name for the copy of a table.
bool is_intermediate_name(const std::string &table_name);
// Return the database and the table in an engine name, as users write them.
std::string shown_database(const std::string &engine_name);
std::string shown_table(const std::string &engine_name);

// Passes the table name in `name` to `sink` as users write it. The engine uses it in names of
// constraints.
void show_table_name(void *, CheetahBytes name, CheetahTextSink sink, void *context);

// Returns the kind of children that prevent the statement from dropping their parent: a
// CheetahReferenced.
uint8_t kept_by(THD *thd);

// Adds a warning with the reason why a constraint is refused.
void warn_of_constraint(THD *thd, int error, CheetahBytes reason);

using ForeignKeyList = std::shared_ptr<CheetahForeignKeys>;
ForeignKeyList owned(CheetahForeignKeys *list);
CheetahForeignKey constraint_of(const CheetahForeignKeys *list, uint8_t role, size_t no);

// Encodes the constraint's columns in `record`, a record of the table with role `role`, as the
// index of the other table encodes them. Returns false if a column is NULL: then the row refers to
// nothing.
bool encode_reference(const TableCodec &codec, const CheetahForeignKey &constraint, uint8_t role, const uchar *record,
                      Buffer *scratch, Buffer *key);

class ForeignKeys {
 public:
  explicit ForeignKeys(ha_cheetah *file) : file_(file) {}

  // Loads the constraints of the table if definitions have changed since the last call.
  void refresh();
  // Makes the next `refresh` reload the constraints.
  void forget() { is_known_ = false; }
  // Called between statements: releases outdated constraints, which would keep dropped tables on
  // disk.
  void forget_if_old();
  size_t count(uint8_t role) const { return role == CHEETAH_ROLE_CHILD ? child_count_ : parent_count_; }
  bool exist() const { return list_ != nullptr; }
  CheetahForeignKey get(uint8_t role, size_t no) const { return constraint_of(list_.get(), role, no); }
  bool refer_to_own_table() const;
  ForeignKeyList list() const { return list_; }

  // Checks that a written row has its parents. `old_record`: the previous content; nullptr for a
  // new row, and for a row whose clustered key changed, which InnoDB treats as new. Returns 0 or a
  // handler error.
  int check_parents(const uchar *old_record, const uchar *record);
  // Called after a row was deleted (`record` is nullptr) or changed: refuses the change if children
  // refer to the row, or applies the constraints' actions to them.
  int act_on_children(const uchar *old_record, const uchar *record);

 private:
  int check_parent(const CheetahForeignKeys *list, size_t no, const uchar *record);
  int act(const CheetahForeignKeys *list, size_t no, const uchar *old_record, const uchar *record);
  bool changes(const CheetahForeignKey &constraint, uint8_t role, const uchar *old_record, const uchar *record) const;
  bool refers_to_itself(const CheetahForeignKey &constraint, const uchar *record);
  int refresh_again();
  int refuse(const CheetahForeignKey &constraint, uint8_t role, const uchar *record, const char *reason);

  ha_cheetah *file_;
  // Buffers for the row being checked. Actions have their own keys.
  Buffer scratch_, key_, own_key_;
  ForeignKeyList list_;
  size_t child_count_ = 0;
  size_t parent_count_ = 0;
  uint64_t as_of_ = 0;
  bool is_known_ = false;
};

// Appends the child table and the constraint in the format of the server's messages.
void append_table_and_constraint(THD *thd, const CheetahForeignKey &constraint, String *out);

// Returns the SQL keywords of a CheetahForeignKeyAction.
const char *action_words(uint8_t action);

// Appends ", CONSTRAINT ..", as in SHOW CREATE TABLE.
void print_constraint(THD *thd, const CheetahForeignKey &constraint, String *out);

}  // namespace cheetah
