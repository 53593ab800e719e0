// SPDX-License-Identifier: GPL-2.0-only
// Inserts, updates and deletes: encodes the record as keys and a row, and passes them to the engine
// in one call.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "transactions/page_work.h"
#include "transactions/two_phase.h"

using namespace cheetah;

void ha_cheetah::encode_clustered_key(const uchar *record, Buffer *out) {
  out->clear();
  codec_.clustered().append(record, &scratch_, out);
}

// Until `set_pointers`, entries hold offsets in entry_bytes_ instead of pointers, because the
// buffer may move while it grows.
void ha_cheetah::add_entry(unsigned engine_index, size_t key_start, size_t payload_start, bool check_unique) {
  CheetahEntry entry;
  entry.index_no = engine_index;
  entry.check_unique = check_unique;
  entry.key = CheetahBytes{reinterpret_cast<const uint8_t *>(key_start), payload_start - key_start};
  entry.payload = CheetahBytes{reinterpret_cast<const uint8_t *>(payload_start), entry_bytes_.size() - payload_start};
  entries_.push_back(entry);
}

static const uint8_t *place_of(const Buffer &bytes, const uint8_t *position) {
  return bytes.data() + reinterpret_cast<size_t>(position);
}

void ha_cheetah::set_pointers() {
  for (CheetahEntry &entry : entries_) {
    entry.key.data = place_of(entry_bytes_, entry.key.data);
    entry.payload.data = place_of(entry_bytes_, entry.payload.data);
  }
  for (CheetahEntry &entry : old_entries_) {
    entry.key.data = place_of(entry_bytes_, entry.key.data);
    entry.payload.data = place_of(entry_bytes_, entry.payload.data);
  }
}

void ha_cheetah::encode_secondaries(const uchar *record, bool check_unique) {
  unsigned engine_index = 1;
  for (const SecondaryCodec &index : codec_.secondaries()) {
    if (disabled_[engine_index]) {
      engine_index++;
      continue;
    }
    size_t key_start = entry_bytes_.size();
    index.key().append(record, &scratch_, &entry_bytes_);
    size_t payload_start = entry_bytes_.size();
    index.append_payload(record, &entry_bytes_);
    bool unique = check_unique && index.key().unique() && !index.key().has_null(record);
    add_entry(engine_index++, key_start, payload_start, unique);
  }
}

int ha_cheetah::write_failed(int32_t code) {
  if (code == CHEETAH_CODE_DUPLICATE_KEY) {
    CheetahBytes existing;
    uint32_t engine_index;
    cheetah_last_duplicate(&engine_index, &existing);
    session_->set_duplicate_key_no(codec_.key_number(engine_index));
    store_ref(existing, dup_ref);
  }
  return handler_error(code, ha_thd());
}

// Returns whether constraints apply to changes of rows. With `foreign_key_checks=0` children
// neither prevent a change nor change with it.
bool ha_cheetah::looks_at_constraints() {
  if (thd_test_options(ha_thd(), OPTION_NO_FOREIGN_KEY_CHECKS)) return false;
  constraints_.refresh();
  return constraints_.exist();
}

// Rolls back the changes of a row that failed, because the statement may continue (IGNORE).
int ha_cheetah::undo_row(const CheetahSavepoint &before, int error) {
  if (error == 0 || ha_thd()->transaction_rollback_request) return error;
  int failed = rollback_error(cheetah_rollback_to(txn_, &before), ha_thd());
  return failed != 0 ? failed : error;
}

int ha_cheetah::begin_change() { return stays_on_this_node() ? refuse_unreplicated() : begin_unlocked(true); }

int ha_cheetah::write_row(const uchar *record) {
  CountedWork counted(handler_stats);
  int error = begin_change();
  if (error != 0) return error;
  bool has_parents = looks_at_constraints() && constraints_.count(CHEETAH_ROLE_CHILD) != 0;
  if (!has_parents && codec_.fulltext().empty()) return insert(record);
  CheetahSavepoint before = cheetah_savepoint(txn_);
  error = insert(record);
  if (error != 0) return error;
  error = insert_words(record);
  if (error == 0 && has_parents) error = constraints_.check_parents(nullptr, record);
  return undo_row(before, error);
}

int ha_cheetah::insert(const uchar *record) {
  if (table->next_number_field && record == table->record[0]) {
    int error = update_auto_increment();
    if (error != 0) return numbering_error_ != 0 ? numbering_error_ : error;
  }
  if (codec_.hidden_key()) {
    uchar number[8];
    mi_int8store(number, cheetah_next_hidden_key(engine_table_.get()));
    current_key_.assign(CheetahBytes{number, sizeof(number)});
    key_.assign(current_key_.bytes());
  } else {
    encode_clustered_key(record, &key_);
  }
  row_image_.clear();
  codec_.row().encode(record, RowCodec::Old(), table->write_set, &row_image_);
  entries_.clear();
  old_entries_.clear();
  entry_bytes_.clear();
  encode_secondaries(record, true);
  set_pointers();
  CheetahRow row{key_.bytes(), row_image_.bytes(), entries_.data(), entries_.size(), changes_duplicates_};
  int error = begin_load();
  if (error != 0) return error;
  int32_t code = load_ ? cheetah_load(txn_, load_.get(), &row) : cheetah_insert(txn_, engine_table_.get(), &row);
  error = note_inserted_number(record, code == CHEETAH_CODE_DUPLICATE_KEY);
  // A deadlock at the counter is reported even if a duplicate would be ignored.
  if (error != 0) return error;
  if (code != CHEETAH_CODE_OK) return load_ ? load_failed(load_.get(), code) : write_failed(code);
  return is_sequence() ? end_private_transaction() : 0;
}

bool ha_cheetah::writes_clustered_columns() const {
  return !codec_.hidden_key() && codec_.clustered().touches(table->write_set);
}

// Reads the old row if large values that the update does not change can be reused: the old row
// holds their locators.
int ha_cheetah::fetch_old_row(const uchar *new_record, CheetahBytes key, CheetahBytes *row) {
  *row = CheetahBytes{nullptr, 0};
  if (!codec_.row().needs_old_row(new_record, table->write_set)) return 0;
  int32_t code = cheetah_get(txn_, engine_table_.get(), key, CHEETAH_READ_EXCLUSIVE, old_row_.get());
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  *row = cheetah_buffer_bytes(old_row_.get());
  return 0;
}

// Adds the new and the old entry of an index if the update changes the entry, or if `all` is set
// because the clustered key changes. An entry stores the exact values of the clustered key's
// columns, so it may change though the keys compare equal ('AB', 'ab').
bool ha_cheetah::secondary_changes(unsigned engine_index, const uchar *old_record, const uchar *new_record, bool all) {
  const SecondaryCodec &index = codec_.secondary_of(engine_index);
  if (disabled_[engine_index]) return false;
  if (!all && !index.touches(table->write_set) && !writes_clustered_columns()) return false;
  size_t old_start = entry_bytes_.size();
  index.key().append(old_record, &scratch_, &entry_bytes_);
  size_t old_payload = entry_bytes_.size();
  index.append_payload(old_record, &entry_bytes_);
  size_t new_start = entry_bytes_.size();
  index.key().append(new_record, &scratch_, &entry_bytes_);
  size_t new_payload = entry_bytes_.size();
  index.append_payload(new_record, &entry_bytes_);
  const uchar *bytes = entry_bytes_.data();
  bool same_key = old_payload - old_start == new_payload - new_start &&
                  memcmp(bytes + old_start, bytes + new_start, new_payload - new_start) == 0;
  bool same_entry = same_key && new_start - old_payload == entry_bytes_.size() - new_payload &&
                    memcmp(bytes + old_payload, bytes + new_payload, new_start - old_payload) == 0;
  if (same_entry && !all) return false;
  bool unique = !same_key && index.key().unique() && !index.key().has_null(new_record);
  add_entry(engine_index, new_start, new_payload, unique);
  CheetahEntry old_entry = entries_.back();
  old_entry.key = CheetahBytes{reinterpret_cast<const uint8_t *>(old_start), old_payload - old_start};
  old_entry.payload = CheetahBytes{reinterpret_cast<const uint8_t *>(old_payload), new_start - old_payload};
  old_entries_.push_back(old_entry);
  return true;
}

// If the clustered key changes, the entries of all indexes change. The server has computed only the
// virtual columns of indexes whose columns are written.
void ha_cheetah::compute_virtual_key_columns() {
  if (table->vfield == nullptr) return;
  table->update_virtual_fields(this, VCOL_UPDATE_INDEXED);
  table->move_fields(table->field, table->record[1], table->record[0]);
  table->update_virtual_fields(this, VCOL_UPDATE_INDEXED);
  table->move_fields(table->field, table->record[0], table->record[1]);
}

// Returns whether REPLACE or LOAD DATA replaces a row with an equal one. The server does not
// compare these rows itself, and counts an unchanged row once instead of twice.
bool ha_cheetah::replaces_by_same_row(const RowCodec::Old &old) {
  int command = thd_sql_command(ha_thd());
  if (command != SQLCOM_REPLACE && command != SQLCOM_REPLACE_SELECT && command != SQLCOM_LOAD) return false;
  size_t new_bytes = row_image_.size();
  if (!codec_.row().encode(old.record, old, table->write_set, &row_image_)) return false;
  size_t old_bytes = row_image_.size() - new_bytes;
  bool same = old_bytes == new_bytes && memcmp(row_image_.data(), row_image_.data() + new_bytes, new_bytes) == 0;
  row_image_.truncate(new_bytes);
  return same;
}

// Constraints are looked up after the row was changed and thereby locked, so that a constraint
// added meanwhile is also checked.
int ha_cheetah::update_row(const uchar *old_record, const uchar *new_record) {
  CountedWork counted(handler_stats);
  int error = begin_change();
  if (error != 0) return error;
  CheetahSavepoint before = cheetah_savepoint(txn_);
  error = change_row(old_record, new_record);
  if (error != 0) return error;
  error = change_words(old_record, new_record);
  if (error != 0 || !looks_at_constraints()) return undo_row(before, error);
  bool moved = old_key_.size() != key_.size() || memcmp(old_key_.data(), key_.data(), key_.size()) != 0;
  error = constraints_.check_parents(moved ? nullptr : old_record, new_record);
  if (error == 0) error = constraints_.act_on_children(old_record, new_record);
  return undo_row(before, error);
}

static bool is_empty(const Field *field, const uchar *record) {
  uchar *place = const_cast<uchar *>(field->ptr_in_record(record));
  return !field->is_null_in_record(record) && static_cast<const Field_blob *>(field)->get_length(place) == 0;
}

// Like InnoDB: without strict mode the server converts NULL to an empty value, which is not a valid
// geometry.
bool ha_cheetah::empties_geometry(const uchar *old_record, const uchar *new_record) const {
  for (const Field *field : geometries_) {
    if (is_empty(field, new_record) && !is_empty(field, old_record)) return true;
  }
  return false;
}

int ha_cheetah::change_row(const uchar *old_record, const uchar *new_record) {
  if (empties_geometry(old_record, new_record)) return HA_ERR_NULL_IN_SPATIAL;
  if (codec_.hidden_key()) {
    old_key_.assign(current_key_.bytes());
    key_.assign(current_key_.bytes());
  } else {
    encode_clustered_key(old_record, &old_key_);
    encode_clustered_key(new_record, &key_);
  }
  RowCodec::Old old{{nullptr, 0}, old_record};
  int error = fetch_old_row(new_record, old_key_.bytes(), &old.row);
  if (error != 0) return error;
  row_image_.clear();
  if (!codec_.row().encode(new_record, old, table->write_set, &row_image_)) return HA_ERR_CRASHED;
  bool moves = old_key_.size() != key_.size() || memcmp(old_key_.data(), key_.data(), key_.size()) != 0;
  if (moves || writes_clustered_columns()) compute_virtual_key_columns();
  entries_.clear();
  old_entries_.clear();
  entry_bytes_.clear();
  for (unsigned i = 1; i <= codec_.secondaries().size(); i++) secondary_changes(i, old_record, new_record, moves);
  set_pointers();
  if (!moves && entries_.empty() && replaces_by_same_row(old)) return HA_ERR_RECORD_IS_THE_SAME;
  CheetahRow row{key_.bytes(), row_image_.bytes(), entries_.data(), entries_.size(), changes_duplicates_};
  int32_t code = cheetah_update(txn_, engine_table_.get(), old_key_.bytes(), &row, old_entries_.data(),
                                old_entries_.size());
  if (code != CHEETAH_CODE_OK) return write_failed(code);
  note_updated_number(old_record, new_record);
  return is_sequence() ? end_private_transaction() : 0;
}

int ha_cheetah::delete_row(const uchar *record) {
  CountedWork counted(handler_stats);
  int error = begin_change();
  if (error != 0) return error;
  CheetahSavepoint before = cheetah_savepoint(txn_);
  if (codec_.hidden_key()) key_.assign(current_key_.bytes());
  else encode_clustered_key(record, &key_);
  entries_.clear();
  old_entries_.clear();
  entry_bytes_.clear();
  encode_secondaries(record, false);
  set_pointers();
  int32_t code = cheetah_delete(txn_, engine_table_.get(), key_.bytes(), entries_.data(), entries_.size());
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  error = delete_words(record);
  if (error == 0 && looks_at_constraints()) error = constraints_.act_on_children(record, nullptr);
  return undo_row(before, error);
}

int ha_cheetah::truncate() {
  cursor_.reset();
  uint8_t referenced = thd_test_options(ha_thd(), OPTION_NO_FOREIGN_KEY_CHECKS) ? CHEETAH_REFERENCED_IGNORED
                                                                               : CHEETAH_REFERENCED_REFUSED;
  int error = wait_for_prepared(name_, ha_thd());
  if (error == 0) error = handler_error(cheetah_truncate_table(engine.db, bytes_of(name_), referenced), ha_thd());
  return error != 0 ? error : attach();
}
