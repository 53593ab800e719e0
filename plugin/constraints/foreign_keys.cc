// SPDX-License-Identifier: GPL-2.0-only
#include "constraints/foreign_keys.h"

#include "constraints/actions.h"
#include "constraints/refusals.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"

#include <sql_show.h>
#include <sql_table.h>

namespace cheetah {

const char *const generated_name_infix = "_ibfk_";

bool is_intermediate_name(const std::string &table_name) {
  return table_name.compare(table_name.rfind(FN_LIBCHAR) + 1, 4, "#sql") == 0;
}

static std::string shown(const std::string &file_name) {
  char name[NAME_LEN + 1];
  return std::string(name, filename_to_tablename(file_name.c_str(), name, sizeof(name), true));
}

std::string shown_database(const std::string &engine_name) {
  return shown(engine_name.substr(0, engine_name.rfind(FN_LIBCHAR)));
}

std::string shown_table(const std::string &engine_name) {
  return shown(engine_name.substr(engine_name.rfind(FN_LIBCHAR) + 1));
}

void show_table_name(void *, CheetahBytes name, CheetahTextSink sink, void *context) {
  sink(context, bytes_of(shown(text_of(name))));
}

void warn_of_constraint(THD *thd, int error, CheetahBytes reason) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, error,
                      "CHEETAH refuses a foreign key constraint: %.*s", static_cast<int>(reason.len),
                      reinterpret_cast<const char *>(reason.data));
  note_refused_definition(thd, reason);
}

static bool same_bytes(CheetahBytes one, CheetahBytes other) {
  return one.len == other.len && (one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
}

ForeignKeyList owned(CheetahForeignKeys *list) {
  return list == nullptr ? nullptr : ForeignKeyList(list, cheetah_free_foreign_keys);
}

CheetahForeignKey constraint_of(const CheetahForeignKeys *list, uint8_t role, size_t no) {
  CheetahForeignKey constraint = {};
  cheetah_foreign_key(list, role, no, &constraint);
  return constraint;
}

ulong last_generated_number(const std::string &table_name) {
  CheetahTable *table = nullptr;
  if (cheetah_open_table(engine.db, bytes_of(table_name), &table) != CHEETAH_CODE_OK) return 0;
  TableHandle opened(table);
  ForeignKeyList list = owned(cheetah_foreign_keys(engine.db, table));
  size_t count = list ? cheetah_foreign_key_count(list.get(), CHEETAH_ROLE_CHILD) : 0;
  std::string prefix = shown_table(table_name) + generated_name_infix;
  ulong last = 0;
  for (size_t no = 0; no < count; no++) {
    std::string name = text_of(constraint_of(list.get(), CHEETAH_ROLE_CHILD, no).name);
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    ulong number = strtoul(name.c_str() + prefix.size(), nullptr, 10);
    if (number > last) last = number;
  }
  return last;
}

// The definitions changed during the check, so the constraint must be looked up again. Never
// returned to the server.
static constexpr int ask_again = own_error_last + 1;
// Maximum number of repeated checks of one row.
static constexpr unsigned asked_max = 100;

static int error_of_search(int32_t code, THD *thd) {
  return code == CHEETAH_CODE_NO_SUCH_TABLE ? ask_again : handler_error(code, thd);
}

static const CheetahKeySide &own_side(const CheetahForeignKey &constraint, uint8_t role) {
  return role == CHEETAH_ROLE_CHILD ? constraint.child_key : constraint.parent_key;
}

static const CheetahKeySide &other_side(const CheetahForeignKey &constraint, uint8_t role) {
  return role == CHEETAH_ROLE_CHILD ? constraint.parent_key : constraint.child_key;
}

bool encode_reference(const TableCodec &codec, const CheetahForeignKey &constraint, uint8_t role, const uchar *record,
                      Buffer *scratch, Buffer *key) {
  const std::vector<KeyPart> &parts = codec.key_at(own_side(constraint, role).index_no).parts();
  const CheetahKeyColumn *columns = other_side(constraint, role).columns;
  key->clear();
  for (size_t i = 0; i < constraint.column_count; i++) {
    if (parts[i].is_null(record)) return false;
    parts[i].append_as(record, columns[i].nullable != 0, columns[i].descending != 0, scratch, key);
  }
  return true;
}

void ForeignKeys::refresh() {
  uint64_t now = cheetah_definition_changes(engine.db);
  if (is_known_ && now == as_of_) return;
  list_ = owned(cheetah_foreign_keys(engine.db, file_->engine_table_.get()));
  child_count_ = list_ ? cheetah_foreign_key_count(list_.get(), CHEETAH_ROLE_CHILD) : 0;
  parent_count_ = list_ ? cheetah_foreign_key_count(list_.get(), CHEETAH_ROLE_PARENT) : 0;
  as_of_ = now;
  is_known_ = true;
}

// Reloads the constraints after a table named in one of them was altered, truncated or dropped.
int ForeignKeys::refresh_again() {
  if (interrupted(file_->ha_thd())) return HA_ERR_ABORTED_BY_USER;
  is_known_ = false;
  refresh();
  return 0;
}

void ForeignKeys::forget_if_old() {
  if (!is_known_ || cheetah_definition_changes(engine.db) == as_of_) return;
  list_.reset();
  is_known_ = false;
}

bool ForeignKeys::refer_to_own_table() const {
  for (size_t no = 0; no < child_count_; no++) {
    CheetahForeignKey constraint = get(CHEETAH_ROLE_CHILD, no);
    if (same_bytes(constraint.child, constraint.parent)) return true;
  }
  return false;
}

bool ForeignKeys::changes(const CheetahForeignKey &constraint, uint8_t role, const uchar *old_record,
                          const uchar *record) const {
  const std::vector<KeyPart> &parts = file_->codec_.key_at(own_side(constraint, role).index_no).parts();
  for (size_t i = 0; i < constraint.column_count; i++) {
    bool was_null = parts[i].is_null(old_record), is_null = parts[i].is_null(record);
    if (was_null != is_null) return true;
    if (!is_null && !same_bytes(parts[i].stored_bytes(old_record), parts[i].stored_bytes(record))) return true;
  }
  return false;
}

int ForeignKeys::check_parents(const uchar *old_record, const uchar *record) {
  for (unsigned asked = 0;; asked++) {
    ForeignKeyList list = list_;
    const CascadeStep *step = file_->session_->cascade();
    bool is_copy = is_intermediate_name(file_->name_);
    int error = 0;
    for (size_t no = 0; no < child_count_ && error == 0; no++) {
      CheetahForeignKey constraint = constraint_of(list.get(), CHEETAH_ROLE_CHILD, no);
      if (is_copy && constraint.is_checked == 0) continue;
      if (step != nullptr && step->constraint == text_of(constraint.name)) continue;
      bool is_served = constraint.child_key.columns != nullptr;
      bool may_stay = is_served && old_record != nullptr;
      if (may_stay && !changes(constraint, CHEETAH_ROLE_CHILD, old_record, record)) continue;
      error = check_parent(list.get(), no, record);
    }
    if (error != ask_again) return error;
    if (asked == asked_max) return HA_ERR_NO_SUCH_TABLE;
    error = refresh_again();
    if (error != 0) return error;
  }
}

int ForeignKeys::check_parent(const CheetahForeignKeys *list, size_t no, const uchar *record) {
  CheetahForeignKey constraint = constraint_of(list, CHEETAH_ROLE_CHILD, no);
  if (constraint.child_key.columns == nullptr) {
    return refuse(constraint, CHEETAH_ROLE_CHILD, record, "its table has no index for the constraint");
  }
  if (constraint.parent_key.columns == nullptr) {
    const std::vector<KeyPart> &parts = file_->codec_.key_at(constraint.child_key.index_no).parts();
    for (size_t i = 0; i < constraint.column_count; i++) {
      if (parts[i].is_null(record)) return 0;
    }
    return refuse(constraint, CHEETAH_ROLE_CHILD, record, "the parent table does not exist or has no index for the constraint");
  }
  if (!encode_reference(file_->codec_, constraint, CHEETAH_ROLE_CHILD, record, &scratch_, &key_)) return 0;
  int32_t code = cheetah_find_reference(file_->txn_, list, CHEETAH_ROLE_CHILD, no, key_.bytes());
  if (code == CHEETAH_CODE_END)
    return refuse(constraint, CHEETAH_ROLE_CHILD, record, "the parent table has no row with that key");
  return error_of_search(code, file_->ha_thd());
}

// Refuses the row, unless definitions changed during the check: then the result of the search may
// be wrong, and the check is repeated.
int ForeignKeys::refuse(const CheetahForeignKey &constraint, uint8_t role, const uchar *record, const char *reason) {
  if (cheetah_definition_changes(engine.db) != as_of_) return ask_again;
  int error = role == CHEETAH_ROLE_CHILD ? HA_ERR_NO_REFERENCED_ROW : HA_ERR_ROW_IS_REFERENCED;
  return file_->refuse_by(constraint, error, Refusal{role, &file_->codec_, record, reason});
}

int ForeignKeys::act_on_children(const uchar *old_record, const uchar *record) {
  for (unsigned asked = 0;; asked++) {
    ForeignKeyList list = list_;
    size_t count = parent_count_;
    int error = 0;
    for (size_t no = 0; no < count && error == 0; no++) error = act(list.get(), no, old_record, record);
    if (error != ask_again) return error;
    if (asked == asked_max) return HA_ERR_NO_SUCH_TABLE;
    // Children changed so far no longer match the old key, so the next pass does not find them.
    error = refresh_again();
    if (error != 0) return error;
  }
}

// Returns whether the row is its own child. Like InnoDB, `act` refuses to change the parent key of
// such a row. It lets the row be deleted only if the action deletes or changes the child, too.
bool ForeignKeys::refers_to_itself(const CheetahForeignKey &constraint, const uchar *record) {
  if (!same_bytes(constraint.child, constraint.parent)) return false;
  own_key_.clear();
  file_->codec_.key_at(constraint.child_key.index_no).append(record, &scratch_, &own_key_);
  return own_key_.size() >= key_.size() && memcmp(own_key_.data(), key_.data(), key_.size()) == 0;
}

int ForeignKeys::act(const CheetahForeignKeys *list, size_t no, const uchar *old_record, const uchar *record) {
  CheetahForeignKey constraint = constraint_of(list, CHEETAH_ROLE_PARENT, no);
  if (constraint.parent_key.columns == nullptr) return 0;
  if (record != nullptr && !changes(constraint, CHEETAH_ROLE_PARENT, old_record, record)) return 0;
  if (constraint.child_key.columns == nullptr) {
    return refuse(constraint, CHEETAH_ROLE_PARENT, old_record, "the child table has no index for the constraint");
  }
  if (!encode_reference(file_->codec_, constraint, CHEETAH_ROLE_PARENT, old_record, &scratch_, &key_)) return 0;
  THD *thd = file_->ha_thd();
  uint8_t what = record == nullptr ? constraint.on_delete : constraint.on_update;
  if (refers_to_itself(constraint, old_record) && (record != nullptr || what < CHEETAH_FOREIGN_KEY_ACTION_CASCADE)) {
    return refuse(constraint, CHEETAH_ROLE_PARENT, old_record, "it refers to itself");
  }
  ha_cheetah *child = what >= CHEETAH_FOREIGN_KEY_ACTION_CASCADE ? open_child(thd, text_of(constraint.child)) : nullptr;
  if (child == nullptr) {
    int32_t code = cheetah_find_reference(file_->txn_, list, CHEETAH_ROLE_PARENT, no, key_.bytes());
    if (code == CHEETAH_CODE_OK)
      return refuse(constraint, CHEETAH_ROLE_PARENT, old_record, "a row of the child table refers to it");
    return code == CHEETAH_CODE_END ? 0 : error_of_search(code, thd);
  }
  ParentValues values;
  if (record != nullptr && what == CHEETAH_FOREIGN_KEY_ACTION_CASCADE) {
    values.take(file_->codec_.key_at(constraint.parent_key.index_no).parts(), constraint.column_count, record);
  }
  CascadeStep of_statement{nullptr, &file_->name_, record != nullptr, {}, 0};
  const CascadeStep *step = file_->session_->cascade();
  std::string key = text_of(key_.bytes());
  Action action{list, no, constraint, what, record == nullptr, bytes_of(key), values};
  return child->follow(action, step != nullptr ? step : &of_statement);
}

}  // namespace cheetah

using namespace cheetah;

// Stores the message for the client in the session. The server later requests it from the handler
// of the statement.
int ha_cheetah::refuse_by(const CheetahForeignKey &constraint, int error, const Refusal &refusal) {
  String text;
  append_table_and_constraint(ha_thd(), constraint, &text);
  session_->set_constraint_text(std::string(text.ptr(), text.length()));
  note_refused_row(ha_thd(), constraint, refusal);
  return error;
}
