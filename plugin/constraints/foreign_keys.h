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

// The text between the name of a table and a number in the name of a constraint without one.
extern const char *const generated_name_infix;
// The highest such number that a constraint of the table has; 0 if none has one.
ulong last_generated_number(const std::string &table_name);

// Whether the server calls copies of tables so.
bool is_intermediate_name(const std::string &table_name);
// The database and the table of the engine's name, as people write them.
std::string shown_database(const std::string &engine_name);
std::string shown_table(const std::string &engine_name);

// For the engine, which makes names of constraints of it.
void show_table_name(void *, CheetahBytes name, CheetahTextSink sink, void *context);

// Which children keep a table from being dropped by the statement: a CheetahReferenced.
uint8_t kept_by(THD *thd);

// Tells the client, beside the error, why a constraint cannot be.
void warn_of_constraint(THD *thd, int error, CheetahBytes reason);

using ForeignKeyList = std::shared_ptr<CheetahForeignKeys>;
ForeignKeyList owned(CheetahForeignKeys *list);
CheetahForeignKey constraint_of(const CheetahForeignKeys *list, uint8_t role, size_t no);

// The columns of a constraint, from a record of its table in that role, as they are in the index of
// the other one. False when one is NULL: then they refer to nothing.
bool encode_reference(const TableCodec &codec, const CheetahForeignKey &constraint, uint8_t role, const uchar *record,
                      Buffer *scratch, Buffer *key);

class ForeignKeys {
 public:
  explicit ForeignKeys(ha_cheetah *file) : file_(file) {}

  // Finds out about the constraints of the table, if definitions have changed since.
  void refresh();
  // The next look finds out anew.
  void forget() { is_known_ = false; }
  // Between statements: kept findings would keep tables that have been dropped on disk.
  void forget_if_old();
  size_t count(uint8_t role) const { return role == CHEETAH_ROLE_CHILD ? child_count_ : parent_count_; }
  bool exist() const { return list_ != nullptr; }
  CheetahForeignKey get(uint8_t role, size_t no) const { return constraint_of(list_.get(), role, no); }
  bool refer_to_own_table() const;
  ForeignKeyList list() const { return list_; }

  // After a row has been written; `old_record`: its former content, nullptr for a new one and for
  // one that has got another place, which InnoDB takes for new. 0, or an error of the handler.
  int check_parents(const uchar *old_record, const uchar *record);
  // After a row has been deleted (`record`: nullptr) or changed: keeps it for its children, or has
  // these follow.
  int act_on_children(const uchar *old_record, const uchar *record);

 private:
  int check_parent(const CheetahForeignKeys *list, size_t no, const uchar *record);
  int act(const CheetahForeignKeys *list, size_t no, const uchar *old_record, const uchar *record);
  bool changes(const CheetahForeignKey &constraint, uint8_t role, const uchar *old_record, const uchar *record) const;
  bool refers_to_itself(const CheetahForeignKey &constraint, const uchar *record);
  int refresh_again();
  int refuse(const CheetahForeignKey &constraint, uint8_t role, const uchar *record, const char *reason);

  ha_cheetah *file_;
  // Of the row that is looked at; actions have keys of their own.
  Buffer scratch_, key_, own_key_;
  ForeignKeyList list_;
  size_t child_count_ = 0;
  size_t parent_count_ = 0;
  uint64_t as_of_ = 0;
  bool is_known_ = false;
};

// The child and the constraint, as the server's messages have them.
void append_table_and_constraint(THD *thd, const CheetahForeignKey &constraint, String *out);

// How a CheetahForeignKeyAction is written.
const char *action_words(uint8_t action);

// ", CONSTRAINT .." as SHOW CREATE TABLE has it.
void print_constraint(THD *thd, const CheetahForeignKey &constraint, String *out);

}  // namespace cheetah
