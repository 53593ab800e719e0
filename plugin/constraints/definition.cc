// SPDX-License-Identifier: GPL-2.0-only
#include "constraints/definition.h"

#include "constraints/foreign_keys.h"
#include "engine.h"
#include "handler/ha_cheetah.h"

#include <sql_table.h>

namespace cheetah {

std::string engine_name(const char *database, const char *table) {
  char name[FN_REFLEN + 1];
  std::string result(name, tablename_to_filename(database, name, sizeof(name)));
  result += FN_LIBCHAR;
  return result.append(name, tablename_to_filename(table, name, sizeof(name)));
}

Definition::Definition(THD *thd, TABLE *form, const TableCodec &codec, const Alter_info *alter_info)
    : thd_(thd), form_(form), alter_info_(alter_info) {
  // Sequences and versioned tables take no part in constraints. A versioned table keeps old rows as
  // history, to which no child may refer.
  if (form->s->table_type == TABLE_TYPE_SEQUENCE || form->versioned()) return;
  describe_columns();
  describe_keys(codec);
}

CheetahBytes Definition::keep(std::string text) {
  texts_.push_back(std::move(text));
  return bytes_of(texts_.back());
}

void Definition::describe_columns() {
  for (Field **field = form_->field; *field != nullptr; field++) {
    Buffer &kind = kinds_.emplace_back();
    describe_kind(*field, &kind);
    columns_.push_back(CheetahColumnDef{keep((*field)->field_name.str), kind.bytes(), (*field)->real_maybe_null()});
  }
}

void Definition::describe_keys(const TableCodec &codec) {
  for (uint index = 0; index <= codec.secondaries().size(); index++) {
    std::vector<CheetahKeyPartDef> &parts = parts_.emplace_back();
    for (const KeyPart &part : codec.key_at(index).parts()) {
      parts.push_back(CheetahKeyPartDef{part.field()->field_index, part.descending(), !part.whole_column()});
    }
    keys_.push_back(CheetahKeyDef{parts.data(), parts.size()});
  }
}

void Definition::find_renamed_columns() {
  List_iterator_fast<Create_field> columns(const_cast<Alter_info *>(alter_info_)->create_list);
  while (const Create_field *column = columns++) {
    if (column->field == nullptr || strcmp(column->field->field_name.str, column->field_name.str) == 0) continue;
    renamed_.push_back(CheetahRenamedColumn{keep(column->field->field_name.str), keep(column->field_name.str)});
  }
}

// Returns the new name of a column. Existing constraints use the old names.
std::string Definition::new_column_name(const char *name) const {
  List_iterator_fast<Create_field> columns(const_cast<Alter_info *>(alter_info_)->create_list);
  while (const Create_field *column = columns++) {
    if (column->field != nullptr && is_same_column(column->field->field_name.str, name)) {
      return column->field_name.str;
    }
  }
  return name;
}

// Returns whether a stored generated column depends on column `name`. Actions do not recompute
// stored columns.
bool Definition::computes_stored_column_from(const char *name) const {
  if (form_->vfield == nullptr) return false;
  MY_BITMAP *read_set = form_->read_set;
  bool found = false;
  for (Field **field = form_->vfield; *field != nullptr && !found; field++) {
    if (!(*field)->stored_in_db()) continue;
    bitmap_clear_all(&form_->tmp_set);
    form_->read_set = &form_->tmp_set;
    (*field)->vcol_info->expr->walk(&Item::register_field_in_read_map, 1, form_);
    for (Field **base = form_->field; *base != nullptr; base++) {
      bool is_it = is_same_column((*base)->field_name.str, name);
      found |= is_it && bitmap_is_set(&form_->tmp_set, (*base)->field_index);
    }
  }
  form_->read_set = read_set;
  return found;
}

// Names a constraint like InnoDB: the table's name, `_ibfk_`, and the next unused number.
std::string Definition::next_name() {
  if (next_number_ == 0) next_number_ = last_generated_number(name_) + 1;
  return std::string(form_->s->table_name.str) + generated_name_infix + std::to_string(next_number_++);
}

static uint8_t action_of(enum_fk_option option) {
  switch (option) {
    case FK_OPTION_CASCADE: return CHEETAH_FOREIGN_KEY_ACTION_CASCADE;
    case FK_OPTION_SET_NULL: return CHEETAH_FOREIGN_KEY_ACTION_SET_NULL;
    case FK_OPTION_NO_ACTION: return CHEETAH_FOREIGN_KEY_ACTION_NO_ACTION;
    default: return CHEETAH_FOREIGN_KEY_ACTION_RESTRICT;
  }
}

static bool changes_child(uint8_t action) { return action >= CHEETAH_FOREIGN_KEY_ACTION_CASCADE; }

static int refuse(THD *thd, const char *reason) {
  warn_of_constraint(thd, HA_ERR_CANNOT_ADD_FOREIGN, bytes_of(reason));
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

static std::string lower(const char *name) {
  return lower_case_table_names != 0 ? lower_case(name) : name;
}

int Definition::add_constraint(const Foreign_key *key, bool is_copy) {
  auto *fk = const_cast<Foreign_key *>(key);
  if (is_temporary_) return refuse(thd_, "temporary tables cannot have foreign keys");
  if (form_->versioned()) return refuse(thd_, "system-versioned tables cannot have foreign keys");
  CheetahForeignKeyDef constraint = {};
  constraint.inherited = key->old && is_copy;
  constraint.on_delete = action_of(key->delete_opt);
  constraint.on_update = action_of(key->update_opt);
  std::string database = lower(key->ref_db.str != nullptr ? key->ref_db.str : form_->s->db.str);
  std::string parent = engine_name(database.c_str(), lower(key->ref_table.str).c_str());
  bool refers_to_itself = parent == name_;
  constraint.name = keep(key->constraint_name.str != nullptr ? std::string(key->constraint_name.str) : next_name());
  constraint.parent = keep(parent);
  std::vector<CheetahBytes> &columns = names_.emplace_back();
  List_iterator_fast<Key_part_spec> own(fk->columns), others(fk->ref_columns);
  while (const Key_part_spec *column = own++) {
    std::string name = key->old ? new_column_name(column->field_name.str) : column->field_name.str;
    bool acts = changes_child(constraint.on_update) || constraint.on_delete == CHEETAH_FOREIGN_KEY_ACTION_SET_NULL;
    if (acts && computes_stored_column_from(name.c_str())) {
      return refuse(thd_, "a stored generated column depends on a column that an action would change");
    }
    columns.push_back(keep(std::move(name)));
  }
  std::vector<CheetahBytes> &parent_columns = names_.emplace_back();
  while (const Key_part_spec *column = others++) {
    bool may_have_changed = key->old && refers_to_itself;
    parent_columns.push_back(keep(may_have_changed ? new_column_name(column->field_name.str) : column->field_name.str));
  }
  if (parent_columns.size() != columns.size()) return refuse(thd_, "the numbers of child and parent columns differ");
  constraint.columns = columns.data();
  constraint.parent_columns = parent_columns.data();
  constraint.column_count = columns.size();
  if (key->old) constraints_.insert(constraints_.begin() + static_cast<long>(kept_count_++), constraint);
  else constraints_.push_back(constraint);
  return 0;
}

// Returns the name of the table that a copy will replace.
std::string Definition::copied_table() const {
  const TABLE_LIST *altered = thd_->lex->query_tables;
  if (thd_sql_command(thd_) == SQLCOM_ALTER_TABLE && altered != nullptr) {
    return engine_name(altered->db.str, altered->table_name.str);
  }
  return engine_name(form_->s->db.str, form_->s->table_name.str);
}

// For CREATE TABLE .. LIKE the server lists the source table's constraints as old ones, as it does
// for ALTER TABLE. Like InnoDB, the new table does not inherit them.
int Definition::find(const std::string &own_name) {
  is_temporary_ = is_temporary_name(own_name);
  bool is_copy = !is_temporary_ && is_intermediate_name(own_name);
  name_ = is_copy ? copied_table() : own_name;
  bool creates = thd_sql_command(thd_) == SQLCOM_CREATE_TABLE;
  if (alter_info_ != nullptr) {
    find_renamed_columns();
    List_iterator_fast<Key> keys(const_cast<Alter_info *>(alter_info_)->key_list);
    while (const Key *key = keys++) {
      if (key->type != Key::FOREIGN_KEY || (key->old && creates)) continue;
      int error = add_constraint(static_cast<const Foreign_key *>(key), is_copy);
      if (error != 0) return error;
    }
  }
  bool are_checked = !thd_test_options(thd_, OPTION_NO_FOREIGN_KEY_CHECKS);
  CheetahBytes copy_of = is_copy ? bytes_of(name_) : CheetahBytes{nullptr, 0};
  for_engine_ = CheetahConstraints{columns_.data(), columns_.size(), keys_.data(), keys_.size(), constraints_.data(),
                                   constraints_.size(), kept_count_, copy_of, renamed_.data(), renamed_.size(),
                                   are_checked};
  return 0;
}

}  // namespace cheetah
