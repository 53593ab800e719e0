// SPDX-License-Identifier: GPL-2.0-only
// Answers the server's questions about constraints, for SHOW CREATE TABLE and information_schema,
// for opening the tables that a statement needs, and for checking whether a definition may change.
#include "constraints/foreign_keys.h"
#include "engine.h"
#include "handler/ha_cheetah.h"

#include <sql_show.h>

#include <algorithm>

using namespace cheetah;

static void append_columns(THD *thd, const CheetahBytes *columns, size_t count, String *out) {
  out->append('(');
  for (size_t i = 0; i < count; i++) {
    if (i > 0) out->append(STRING_WITH_LEN(", "));
    append_identifier(thd, out, reinterpret_cast<const char *>(columns[i].data), columns[i].len);
  }
  out->append(')');
}

// RESTRICT is the default, and is not printed.
static void append_action(const char *when, uint8_t action, String *out) {
  if (action == CHEETAH_FOREIGN_KEY_ACTION_RESTRICT) return;
  out->append(when, strlen(when));
  out->append(action_words(action), strlen(action_words(action)));
}

namespace cheetah {

uint8_t kept_by(THD *thd) {
  // After a crash the server completes or rolls back interrupted statements. Completion and
  // rollback may not fail.
  if (!engine.ddl_recovered || thd == nullptr) return CHEETAH_REFERENCED_IGNORED;
  if (thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS)) return CHEETAH_REFERENCED_IGNORED;
  switch (thd_sql_command(thd)) {
    case SQLCOM_DROP_TABLE: return CHEETAH_REFERENCED_REFUSED;
    case SQLCOM_DROP_DB: return CHEETAH_REFERENCED_REFUSED_ELSEWHERE;
    case SQLCOM_CREATE_TABLE:
      return thd->lex->create_info.or_replace() ? CHEETAH_REFERENCED_REFUSED : CHEETAH_REFERENCED_IGNORED;
    default: return CHEETAH_REFERENCED_IGNORED;
  }
}

const char *action_words(uint8_t action) {
  static const char *const words[] = {"RESTRICT", "NO ACTION", "CASCADE", "SET NULL"};
  return words[action];
}

void print_constraint(THD *thd, const CheetahForeignKey &constraint, String *out) {
  std::string child = text_of(constraint.child), parent = text_of(constraint.parent);
  std::string database = shown_database(parent), table = shown_table(parent);
  out->append(STRING_WITH_LEN(", CONSTRAINT "));
  append_identifier(thd, out, reinterpret_cast<const char *>(constraint.name.data), constraint.name.len);
  out->append(STRING_WITH_LEN(" FOREIGN KEY "));
  append_columns(thd, constraint.columns, constraint.column_count, out);
  out->append(STRING_WITH_LEN(" REFERENCES "));
  if (database != shown_database(child)) {
    append_identifier(thd, out, database.c_str(), database.size());
    out->append('.');
  }
  append_identifier(thd, out, table.c_str(), table.size());
  out->append(' ');
  append_columns(thd, constraint.parent_columns, constraint.column_count, out);
  append_action(" ON DELETE ", constraint.on_delete, out);
  append_action(" ON UPDATE ", constraint.on_update, out);
}

void append_table_and_constraint(THD *thd, const CheetahForeignKey &constraint, String *out) {
  std::string child = text_of(constraint.child);
  std::string database = shown_database(child), name = shown_table(child);
  append_identifier(thd, out, database.c_str(), database.size());
  out->append('.');
  append_identifier(thd, out, name.c_str(), name.size());
  print_constraint(thd, constraint, out);
}

}  // namespace cheetah

char *ha_cheetah::get_foreign_key_create_info() {
  constraints_.refresh();
  String text, line;
  for (size_t no = 0; no < constraints_.count(CHEETAH_ROLE_CHILD); no++) {
    line.length(0);
    print_constraint(ha_thd(), constraints_.get(CHEETAH_ROLE_CHILD, no), &line);
    text.append(STRING_WITH_LEN(",\n "));
    text.append(line.ptr() + 1, line.length() - 1);
  }
  if (text.length() == 0) return nullptr;
  return my_strndup(PSI_INSTRUMENT_ME, text.ptr(), text.length(), MYF(0));
}

void ha_cheetah::free_foreign_key_create_info(char *text) { my_free(text); }

static enum_fk_option option_of(uint8_t action) {
  switch (action) {
    case CHEETAH_FOREIGN_KEY_ACTION_NO_ACTION: return FK_OPTION_NO_ACTION;
    case CHEETAH_FOREIGN_KEY_ACTION_CASCADE: return FK_OPTION_CASCADE;
    case CHEETAH_FOREIGN_KEY_ACTION_SET_NULL: return FK_OPTION_SET_NULL;
    default: return FK_OPTION_RESTRICT;
  }
}

static LEX_CSTRING *kept(THD *thd, const char *text, size_t length) {
  return thd_make_lex_string(thd, nullptr, text, length, true);
}

static LEX_CSTRING *kept(THD *thd, const std::string &text) { return kept(thd, text.c_str(), text.size()); }

static LEX_CSTRING *kept(THD *thd, CheetahBytes text) {
  return kept(thd, reinterpret_cast<const char *>(text.data), text.len);
}

// `strongest`: report the stronger of both actions for both. When a statement deletes rows, the
// server decides by the delete action which tables to open; it does not consider that an action may
// update a table further down the chain.
static FOREIGN_KEY_INFO *info_of(THD *thd, const CheetahForeignKey &constraint, bool strongest) {
  std::string child = text_of(constraint.child), parent = text_of(constraint.parent);
  FOREIGN_KEY_INFO info;
  info.foreign_id = kept(thd, constraint.name);
  info.foreign_db = kept(thd, shown_database(child));
  info.foreign_table = kept(thd, shown_table(child));
  info.referenced_db = kept(thd, shown_database(parent));
  info.referenced_table = kept(thd, shown_table(parent));
  uint8_t on_delete = constraint.on_delete, on_update = constraint.on_update;
  if (strongest) on_delete = on_update = std::max(on_delete, on_update);
  info.delete_method = option_of(on_delete);
  info.update_method = option_of(on_update);
  const CheetahKeySide &child_key = constraint.child_key, &parent_key = constraint.parent_key;
  info.referenced_key_name = parent_key.columns != nullptr ? kept(thd, parent_key.index_name) : nullptr;
  uint count = static_cast<uint>(constraint.column_count);
  for (uint i = 0; i < count; i++) {
    info.foreign_fields.push_back(kept(thd, constraint.columns[i]));
    info.referenced_fields.push_back(kept(thd, constraint.parent_columns[i]));
    if (child_key.columns != nullptr && child_key.columns[i].nullable) info.set_nullable(thd, false, i, count);
    if (parent_key.columns != nullptr && parent_key.columns[i].nullable) info.set_nullable(thd, true, i, count);
  }
  return static_cast<FOREIGN_KEY_INFO *>(thd_memdup(thd, &info, sizeof(info)));
}

int ha_cheetah::get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) {
  constraints_.refresh();
  for (size_t no = 0; no < constraints_.count(CHEETAH_ROLE_CHILD); no++) {
    list->push_back(info_of(thd, constraints_.get(CHEETAH_ROLE_CHILD, no), false));
  }
  return 0;
}

int ha_cheetah::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) {
  constraints_.refresh();
  bool may_be_updated_by_action = constraints_.count(CHEETAH_ROLE_CHILD) != 0;
  for (size_t no = 0; no < constraints_.count(CHEETAH_ROLE_PARENT); no++) {
    CheetahForeignKey constraint = constraints_.get(CHEETAH_ROLE_PARENT, no);
    // This child is a copy that is about to replace its original. The server could not open the
    // copy.
    if (is_intermediate_name(text_of(constraint.child))) continue;
    list->push_back(info_of(thd, constraint, may_be_updated_by_action));
  }
  return 0;
}

bool ha_cheetah::referenced_by_foreign_key() const noexcept {
  constraints_.refresh();
  return constraints_.count(CHEETAH_ROLE_PARENT) != 0;
}

bool ha_cheetah::can_switch_engines() {
  constraints_.refresh();
  return !constraints_.exist();
}

bool ha_cheetah::is_fk_defined_on_table_or_index(uint key_no) {
  constraints_.refresh();
  if (key_no == MAX_KEY) return constraints_.exist();
  if (is_fulltext(table->key_info[key_no])) return false;
  for (uint8_t role : {CHEETAH_ROLE_CHILD, CHEETAH_ROLE_PARENT}) {
    for (size_t no = 0; no < constraints_.count(role); no++) {
      CheetahForeignKey constraint = constraints_.get(role, no);
      const CheetahKeySide &side = role == CHEETAH_ROLE_CHILD ? constraint.child_key : constraint.parent_key;
      if (side.columns != nullptr && side.index_no == codec_.engine_index(key_no)) return true;
    }
  }
  return false;
}

bool ha_cheetah::get_foreign_dup_key(char *child_table, uint table_bytes, char *child_key, uint key_bytes) {
  Session *session = Session::existing(ha_thd());
  if (session == nullptr || session->duplicate_of_action().first.empty()) return false;
  strmake(child_table, session->duplicate_of_action().first.c_str(), table_bytes - 1);
  strmake(child_key, session->duplicate_of_action().second.c_str(), key_bytes - 1);
  return true;
}
