// SPDX-License-Identifier: GPL-2.0-only
// Actions on the rows of a child. Each action uses the child's own handler, which in turn checks
// the child's own constraints. Actions do not call the server's ha_* functions: the binary log must
// have no rows of actions, because the replica's engine repeats them, and triggers must not fire.
//
// If a table appears more than once in a chain of actions, all its levels use the same handler. So
// the handler's records are restored when a level ends, and a level keeps no other state in the
// handler.
#include "constraints/actions.h"

#include "constraints/foreign_keys.h"
#include "constraints/refusals.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"

// The server exports this function without declaring it.
TABLE *find_fk_open_table(THD *thd, const char *db, size_t db_len, const char *table, size_t table_len);

namespace cheetah {

// InnoDB's limit of levels below the row of the statement.
static constexpr unsigned depth_max = 15;

void ParentValues::take(const std::vector<KeyPart> &parts, size_t count, const uchar *record) {
  for (size_t i = 0; i < count; i++) {
    if (parts[i].is_null(record)) values_.push_back(Value{true, {}});
    else values_.push_back(Value{false, text_of(parts[i].stored_bytes(record))});
  }
}

bool ParentValues::put(const std::vector<KeyPart> &parts, uchar *record) const {
  for (size_t i = 0; i < values_.size(); i++) {
    const Value &value = values_[i];
    bool fits = value.is_null ? parts[i].set_null(record) : parts[i].set_value(record, bytes_of(value.bytes));
    if (!fits) return false;
  }
  return true;
}

ha_cheetah *open_child(THD *thd, const std::string &name) {
  std::string database = shown_database(name), table = shown_table(name);
  TABLE *child = find_fk_open_table(thd, database.c_str(), database.size(), table.c_str(), table.size());
  return child != nullptr && child->file->ht == engine.hton ? static_cast<ha_cheetah *>(child->file) : nullptr;
}

// Saves the records and the column sets of a handler's table, and restores them at the end.
class KeptRecords {
 public:
  explicit KeptRecords(TABLE *table)
      : table_(table), read_set_(table->read_set), write_set_(table->write_set),
        records_{text(table->record[0]), text(table->record[1])} {}
  ~KeptRecords() {
    memcpy(table_->record[0], records_[0].data(), records_[0].size());
    memcpy(table_->record[1], records_[1].data(), records_[1].size());
    table_->column_bitmaps_set(read_set_, write_set_);
  }

 private:
  std::string text(const uchar *record) const {
    return std::string(reinterpret_cast<const char *>(record), table_->s->reclength);
  }

  TABLE *table_;
  MY_BITMAP *read_set_, *write_set_;
  std::string records_[2];
};

// Makes a step the current one of the session while its rows are processed.
class CurrentStep {
 public:
  CurrentStep(Session *session, const CascadeStep *step) : session_(session), before_(session->cascade()) {
    session->set_cascade(step);
  }
  ~CurrentStep() { session_->set_cascade(before_); }

 private:
  Session *session_;
  const CascadeStep *before_;
};

// Returns whether an earlier step updates the table. As in InnoDB, an action must not update a
// table if an update of that table caused the action.
static bool updates_above(const CascadeStep *step, const std::string &table) {
  for (; step != nullptr; step = step->cause) {
    if (step->is_update && *step->table == table) return true;
  }
  return false;
}

}  // namespace cheetah

using namespace cheetah;

int ha_cheetah::follow(const Action &action, const CascadeStep *cause) {
  CascadeStep step{cause, &name_, !action.deletes(), text_of(action.constraint.name), cause->depth + 1};
  CurrentStep current(session_, &step);
  KeptRecords kept(table);
  table->use_all_columns();
  CheetahCursor *opened = nullptr;
  uint32_t index_no = action.constraint.child_key.index_no;
  int32_t code = cheetah_open_children(txn_, action.list, action.no, &opened);
  CursorHandle cursor(opened);
  RowBuffer row(cheetah_new_buffer());
  CheetahFound found = {};
  if (code == CHEETAH_CODE_OK) {
    code = cheetah_seek(cursor.get(), CHEETAH_SEEK_AT_LEAST, action.key, {CHEETAH_END_PREFIX, {nullptr, 0}}, &found);
  }
  while (code == CHEETAH_CODE_OK && found.key.len >= action.key.len &&
         memcmp(found.key.data, action.key.data, action.key.len) == 0) {
    if (!action.deletes() && updates_above(cause, name_)) {
      Refusal refusal{CHEETAH_ROLE_CHILD, &codec_, nullptr, "an update of its table caused this update"};
      return refuse_by(action.constraint, HA_ERR_ROW_IS_REFERENCED, refusal);
    }
    if (step.depth >= depth_max) return too_deep(action.constraint);
    int error = follow_row(action, index_no, cursor.get(), found, row.get());
    if (error != 0) return error;
    code = cheetah_next(cursor.get(), &found);
  }
  return code == CHEETAH_CODE_OK || code == CHEETAH_CODE_END ? 0 : handler_error(code, ha_thd());
}

int ha_cheetah::too_deep(const CheetahForeignKey &constraint) {
  push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, HA_ERR_ROW_IS_REFERENCED,
                      "CHEETAH: Cannot delete/update rows with cascading foreign key constraints that exceed max depth "
                      "of %u. Please drop extra constraints and try again",
                      depth_max);
  Refusal refusal{CHEETAH_ROLE_CHILD, &codec_, nullptr, "the chain of actions is too long"};
  return refuse_by(constraint, HA_ERR_FK_DEPTH_EXCEEDED, refusal);
}

// `row`: a buffer for bytes that the record points into.
int ha_cheetah::follow_row(const Action &action, uint32_t index_no, CheetahCursor *cursor, const CheetahFound &found,
                           CheetahBuffer *row) {
  if (interrupted(ha_thd())) return HA_ERR_ABORTED_BY_USER;
  CheetahBytes stored = found.value;
  if (index_no != 0) {
    int32_t code = cheetah_current_row(cursor, row);
    if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
    stored = cheetah_buffer_bytes(row);
  }
  uchar *record = table->record[0], *old_record = table->record[1];
  remember_position(found.clustered);
  int error = decode_row(found.clustered, stored, record);
  if (error != 0) return error;
  if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
  if (action.deletes()) return delete_row(record);
  memcpy(old_record, record, table->s->reclength);
  const std::vector<KeyPart> &parts = codec_.key_at(index_no).parts();
  bool fits = true;
  if (action.what == CHEETAH_FOREIGN_KEY_ACTION_CASCADE) {
    fits = action.values.put(parts, record);
  } else {
    for (size_t i = 0; i < action.constraint.column_count; i++) fits &= parts[i].set_null(record);
  }
  if (!fits) {
    Refusal refusal{CHEETAH_ROLE_CHILD, &codec_, old_record, "the new value does not fit its columns"};
    return refuse_by(action.constraint, HA_ERR_ROW_IS_REFERENCED, refusal);
  }
  if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_WRITE);
  write_only(parts, action.constraint.column_count);
  error = update_row(old_record, record);
  table->use_all_columns();
  if (error == HA_ERR_RECORD_IS_THE_SAME) return 0;
  if (error != HA_ERR_FOUND_DUPP_KEY) return error;
  uint key_no = session_->duplicate_key_no();
  const char *key = key_no < table->s->keys ? table->key_info[key_no].name.str : "";
  session_->set_duplicate_of_action(table->s->table_name.str, key);
  return HA_ERR_FOREIGN_DUPLICATE_KEY;
}

// Marks only the columns of the constraint as written. A table with generated columns keeps all
// columns marked, because the server may compute other columns from the written ones.
void ha_cheetah::write_only(const std::vector<KeyPart> &parts, size_t count) {
  if (table->vfield != nullptr) return;
  bitmap_clear_all(&table->tmp_set);
  for (size_t i = 0; i < count; i++) bitmap_set_bit(&table->tmp_set, parts[i].field()->field_index);
  table->column_bitmaps_set(table->read_set, &table->tmp_set);
}
