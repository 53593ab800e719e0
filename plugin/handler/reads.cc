// SPDX-License-Identifier: GPL-2.0-only
// Scans and lookups.
//
// A scan reads an index of the engine through one cursor. The index's columns can be decoded from
// the entries of a secondary index. The row is fetched only if the statement reads other columns,
// and only after the pushed index condition and the rowid filter have passed.
#include "codec/columns.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "transactions/page_work.h"

#include <algorithm>

using namespace cheetah;

static constexpr CheetahBytes no_key{nullptr, 0};
// Rows requested in one call: more than most leaves have.
static constexpr size_t run_rows_max = 128;

int ha_cheetah::open_cursor(unsigned engine_index) {
  CheetahCursor *cursor = nullptr;
  cursor_.reset();
  CheetahOnLocked on_locked = skips_locked_            ? CHEETAH_ON_LOCKED_SKIP
                              : tries_semi_consistent_ ? CHEETAH_ON_LOCKED_LOOK
                                                       : CHEETAH_ON_LOCKED_WAIT;
  int32_t code = cheetah_open_cursor(txn_, engine_table_.get(), engine_index, read_, on_locked, &cursor);
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  cursor_.reset(cursor);
  cursor_index_ = engine_index;
  return 0;
}

int ha_cheetah::seek(uint8_t mode, CheetahBytes key, CheetahSeekEnd end) {
  if (!cursor_ || scan_ >= Scan::paused) {
    int error = open_cursor(cursor_index_);
    if (error != 0) return error;
  }
  end_run();
  seeks_prefix_ = end.kind == CHEETAH_END_PREFIX || end.kind == CHEETAH_END_ROW;
  int32_t code = cheetah_seek(cursor_.get(), mode, key, end, &found_);
  scan_ = code == CHEETAH_CODE_OK ? Scan::on_entry : Scan::none;
  read_unlocked_ = code == CHEETAH_CODE_OK && tries_semi_consistent_ && cheetah_is_unlocked(cursor_.get());
  return handler_error(code, ha_thd());
}

int ha_cheetah::seek_and_deliver(uint8_t mode, CheetahBytes key, bool forward, uchar *record) {
  int error = seek(mode, key);
  return error != 0 ? error : deliver(record, forward);
}

int ha_cheetah::move(bool forward) {
  if (scan_ != Scan::on_entry) return move_from_outside(forward);
  bool again = read_unlocked_;
  read_unlocked_ = false;
  int32_t code = again     ? cheetah_read_again(cursor_.get(), &found_)
                 : in_runs_  ? next_rows()
                 : forward ? cheetah_next(cursor_.get(), &found_)
                           : cheetah_prev(cursor_.get(), &found_);
  if (code == CHEETAH_CODE_OK) {
    read_unlocked_ = tries_semi_consistent_ && cheetah_is_unlocked(cursor_.get());
    return 0;
  }
  scan_ = forward ? Scan::past_last : Scan::past_first;
  return handler_error(code, ha_thd());
}

// Moves to the next row of the run, and requests another run after the last row. Rows can be read
// ahead, because table scans of a snapshot only move forward and are not affected by concurrent
// changes.
int32_t ha_cheetah::next_rows() {
  if (run_next_ == run_count_) {
    if (run_.empty()) run_.resize(run_rows_max);
    end_run();
    int32_t code = cheetah_next_rows(cursor_.get(), run_.data(), run_.size(), &run_count_);
    if (code != CHEETAH_CODE_OK) return code;
  }
  found_ = run_[run_next_++];
  return CHEETAH_CODE_OK;
}

void ha_cheetah::end_run() { run_next_ = run_count_ = 0; }

// Continues a scan that is not at an entry. A paused scan moves to its next entry. A scan at the
// position of a missing key, or at the end of equal entries, moves to the neighbour. A scan at an
// end of the index moves back into the index.
int ha_cheetah::move_from_outside(bool forward) {
  int error = HA_ERR_END_OF_FILE;
  if (scan_ == Scan::none) return error;
  if (scan_ == Scan::missed) error = seek(forward ? CHEETAH_SEEK_AT_LEAST : CHEETAH_SEEK_BEFORE, search_key_.bytes());
  if (scan_ == Scan::behind) error = seek(forward ? CHEETAH_SEEK_AFTER : CHEETAH_SEEK_AT_MOST, search_key_.bytes());
  if (scan_ == Scan::paused) error = seek(forward ? CHEETAH_SEEK_AFTER : CHEETAH_SEEK_BEFORE, saved_key_.bytes());
  if (scan_ == Scan::past_last && !forward) error = seek(CHEETAH_SEEK_LAST, no_key);
  if (scan_ == Scan::past_first && forward) error = seek(CHEETAH_SEEK_FIRST, no_key);
  if (error != 0) scan_ = forward ? Scan::past_last : Scan::past_first;
  return error;
}

// Saves the position of a scan, because HANDLER continues it after its transaction and the cursor
// have ended.
void ha_cheetah::pause_scan() {
  if (scan_ != Scan::on_entry) return;
  saved_key_.clear();
  saved_key_.append(found_.key.data, found_.key.len);
  if (cursor_index_ != 0) saved_key_.append(found_.clustered.data, found_.clustered.len);
  scan_ = Scan::paused;
}

int ha_cheetah::step(bool forward, uchar *record) {
  int error = move(forward);
  return error != 0 ? error : deliver(record, forward);
}

// Fills `record` from the first entry, starting at the current one, that passes the pushed index
// condition and the rowid filter.
int ha_cheetah::deliver(uchar *record, bool forward) {
  if (cursor_index_ == 0) return deliver_clustered(record);
  for (;;) {
    bool passed = true;
    int error = deliver_secondary(record, &passed);
    if (error != 0 || passed) return error;
    unlock_row();
    error = move(forward);
    if (error != 0) return error;
  }
}

int ha_cheetah::deliver_clustered(uchar *record) {
  remember_position(found_.key);
  return decode_row(found_.key, found_.value, record);
}

static bool has_virtual_part(const KeyCodec &key) {
  for (const KeyPart &part : key.parts()) {
    if (!is_stored(part.field())) return true;
  }
  return false;
}

int ha_cheetah::deliver_secondary(uchar *record, bool *passed) {
  bool conditional = pushed_idx_cond != nullptr && pushed_idx_cond_keyno == active_index;
  bool filtered = pushed_rowid_filter != nullptr && rowid_filter_is_active;
  bool only_index = keyread_enabled() && keyread == active_index;
  bool decoded = (conditional || filtered || only_index) && decode_entry(record);
  remember_position(found_.clustered);
  if (decoded) {
    int error = check_entry(conditional, filtered, passed);
    if (error != 0 || !*passed || only_index) return error;
  }
  // The server computes virtual columns after the row was delivered. That is too late for a check
  // of the entry, and the server does not do it for an index-only read.
  bool computes = !decoded && (conditional || only_index) && has_virtual_part(codec_.key_of(active_index));
  int error = read_row_of_entry(record, computes ? RowCodec::Columns::complete : requested_columns());
  if (error == 0 && computes) error = compute_virtual_columns_of_key(active_index);
  if (error == 0 && !decoded) error = check_entry(conditional, filtered, passed);
  return error;
}

// Checks the pushed condition and the filter against the index columns in the record.
int ha_cheetah::check_entry(bool conditional, bool filtered, bool *passed) {
  int error = conditional ? outcome_of(handler_index_cond_check(this), passed) : 0;
  if (error != 0 || !*passed || !filtered) return error;
  return outcome_of(handler_rowid_filter_check(this), passed);
}

int ha_cheetah::outcome_of(check_result_t result, bool *passed) {
  switch (result) {
    case CHECK_POS: *passed = true; return 0;
    case CHECK_NEG: *passed = false; return 0;
    case CHECK_OUT_OF_RANGE: return HA_ERR_END_OF_FILE;
    case CHECK_ABORTED_BY_USER: return HA_ERR_ABORTED_BY_USER;
    default: return HA_ERR_INTERNAL_ERROR;
  }
}

// Fills the columns of the index and of the primary key. Returns false if the entry does not
// contain all of them.
bool ha_cheetah::decode_entry(uchar *record) {
  return codec_.secondary_of(cursor_index_).decode_entry(found_.key, found_.clustered, found_.value, record);
}

int ha_cheetah::read_row_of_entry(uchar *record, RowCodec::Columns columns) {
  int32_t code = cheetah_current_row(cursor_.get(), row_.get());
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  return decode_row(found_.clustered, cheetah_buffer_bytes(row_.get()), record, columns);
}

RowCodec::Columns ha_cheetah::requested_columns() const {
  return reads_only() ? RowCodec::Columns::read : RowCodec::Columns::all;
}

int ha_cheetah::decode_row(CheetahBytes key, CheetahBytes row, uchar *record) {
  return decode_row(key, row, record, requested_columns());
}

int ha_cheetah::decode_row(CheetahBytes key, CheetahBytes row, uchar *record, RowCodec::Columns columns) {
  int error = codec_.row().decode(row, record, table, columns, this);
  if (error != 0 || codec_.hidden_key()) return error;
  return codec_.clustered().decode(key, record) ? 0 : HA_ERR_CRASHED;
}

// Computes the virtual columns of a key from a complete row. update_virtual_field clears `tmp_set`,
// which may be the table's read_set during a sort, so its contents are restored.
int ha_cheetah::compute_virtual_columns_of_key(uint key_no) {
  MY_BITMAP &set = table->tmp_set;
  size_t words = bitmap_buffer_size(set.n_bits) / sizeof(*set.bitmap);
  kept_set_.assign(set.bitmap, set.bitmap + words);
  bool failed = false;
  for (const KeyPart &part : codec_.key_of(key_no).parts()) {
    Field *field = part.field();
    failed = failed || (!is_stored(field) && table->update_virtual_field(field, false));
  }
  std::copy(kept_set_.begin(), kept_set_.end(), set.bitmap);
  return failed ? HA_ERR_INTERNAL_ERROR : 0;
}

// If `parts` selects all parts, limits it to the parts in the image, which includes parts of the
// primary key only if the server uses extended keys.
void ha_cheetah::append_key_image(uint key_no, const uchar *image, key_part_map parts, Buffer *out) {
  uint count = table->actual_n_key_parts(&table->key_info[key_no]);
  codec_.key_of(key_no).append_image(image, parts & make_prev_keypart_map(count), &scratch_, out);
}

bool ha_cheetah::entry_starts_with(const Buffer &prefix) const {
  size_t own = std::min(prefix.size(), found_.key.len), behind = prefix.size() - own;
  if (memcmp(found_.key.data, prefix.data(), own) != 0) return false;
  if (behind == 0) return true;
  // The prefix of an extended key continues with the clustered key.
  return cursor_index_ != 0 && behind <= found_.clustered.len &&
         memcmp(found_.clustered.data, prefix.data() + own, behind) == 0;
}

// Table scans.

int ha_cheetah::rnd_init(bool scan) {
  int error = begin_unlocked(false);
  if (error != 0) return error;
  cursor_.reset();
  cursor_index_ = 0;
  scan_ = Scan::fresh;
  in_runs_ = scan && read_ == CHEETAH_READ_CONSISTENT && reads_only() && thd_sql_command(ha_thd()) == SQLCOM_SELECT;
  return lock_to_scan();
}

// Does not close the cursor: BLOBs of the last row point into its memory, and the server may use
// them until the statement ends (it reads tables with one row while it plans the statement).
int ha_cheetah::rnd_end() {
  scan_ = Scan::none;
  return 0;
}

int ha_cheetah::rnd_next(uchar *record) {
  CountedWork counted(handler_stats);
  if (scan_ == Scan::fresh) return seek_and_deliver(CHEETAH_SEEK_FIRST, no_key, true, record);
  return step(true, record);
}

int ha_cheetah::rnd_pos(uchar *record, uchar *position) {
  CountedWork counted(handler_stats);
  int error = begin_unlocked(false);
  if (error != 0) return error;
  CheetahBytes key = ref_key(position);
  int32_t code = cheetah_get(txn_, engine_table_.get(), key, read_, row_.get());
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  remember_position(key);
  return decode_row(key, cheetah_buffer_bytes(row_.get()), record);
}

// A position consists of the length of the clustered key and the key, padded with zeroes, because
// the server compares positions as fixed-size bytes.

void ha_cheetah::position(const uchar *record) {
  if (codec_.hidden_key()) {
    store_ref(current_key_.bytes(), ref);
    return;
  }
  key_.clear();
  codec_.clustered().append(record, &scratch_, &key_);
  store_ref(key_.bytes(), ref);
}

void ha_cheetah::store_ref(CheetahBytes clustered_key, uchar *place) const {
  size_t room = ref_length - 2;
  size_t length = clustered_key.len < room ? clustered_key.len : room;
  int2store(place, static_cast<uint16>(length));
  memcpy(place + 2, clustered_key.data, length);
  memset(place + 2 + length, 0, room - length);
}

CheetahBytes ha_cheetah::ref_key(const uchar *place) { return CheetahBytes{place + 2, uint2korr(place)}; }

int ha_cheetah::cmp_ref(const uchar *left, const uchar *right) {
  CheetahBytes a = ref_key(left), b = ref_key(right);
  int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
  if (order != 0) return order;
  return a.len < b.len ? -1 : a.len > b.len;
}

// Saves the hidden key of the row, because the record does not contain it.
void ha_cheetah::remember_position(CheetahBytes clustered_key) {
  if (codec_.hidden_key()) current_key_.assign(clustered_key);
}

// Index scans.

int ha_cheetah::index_init(uint key_no, bool) {
  int error = begin_unlocked(false);
  if (error != 0) return error;
  active_index = key_no;
  cursor_.reset();
  bool has_words = is_fulltext(table->key_info[key_no]);  // then ft_read reads the rows
  cursor_index_ = has_words ? 0 : codec_.engine_index(key_no);
  if (disabled_[cursor_index_]) return HA_ERR_WRONG_INDEX;
  scan_ = Scan::none;
  in_runs_ = false;
  return lock_to_scan();
}

int ha_cheetah::index_end() {
  active_index = MAX_KEY;
  scan_ = Scan::none;
  return 0;
}

struct Search {
  uint8_t mode;
  bool forward;  // direction to continue from entries that do not pass the pushed condition
  bool same;     // the entry must start with the key
};

static Search search_for(enum ha_rkey_function find) {
  switch (find) {
    case HA_READ_KEY_OR_NEXT: return {CHEETAH_SEEK_AT_LEAST, true, false};
    case HA_READ_AFTER_KEY: return {CHEETAH_SEEK_AFTER, true, false};
    case HA_READ_BEFORE_KEY: return {CHEETAH_SEEK_BEFORE, false, false};
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV: return {CHEETAH_SEEK_AT_MOST, false, false};
    case HA_READ_PREFIX_LAST: return {CHEETAH_SEEK_AT_MOST, false, true};
    default: return {CHEETAH_SEEK_AT_LEAST, true, true};
  }
}

int ha_cheetah::index_read_map(uchar *record, const uchar *key, key_part_map parts, enum ha_rkey_function find) {
  CountedWork counted(handler_stats);
  Search search = search_for(find);
  search_key_.clear();
  append_key_image(active_index, key, parts, &search_key_);
  CheetahSeekEnd end = search.same ? CheetahSeekEnd{end_of_same(parts), no_key} : end_of_range();
  int error = seek(search.mode, search_key_.bytes(), end);
  if (search.same && error == HA_ERR_END_OF_FILE) scan_ = Scan::missed;
  while (error == 0) {
    if (search.same && !entry_starts_with(search_key_)) {
      scan_ = Scan::missed;
      return HA_ERR_KEY_NOT_FOUND;
    }
    bool passed = true;
    error = cursor_index_ == 0 ? deliver_clustered(record) : deliver_secondary(record, &passed);
    if (error != 0 || passed) break;
    unlock_row();
    error = move(search.forward);
  }
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

int ha_cheetah::index_read_last_map(uchar *record, const uchar *key, key_part_map parts) {
  return index_read_map(record, key, parts, HA_READ_PREFIX_LAST);
}

// Loose index scans and HANDLER continue past the entries of an exact search, so the cursor's end
// is removed.
int ha_cheetah::index_next(uchar *record) {
  CountedWork counted(handler_stats);
  if (seeks_prefix_ && scan_ == Scan::on_entry) cheetah_forget_end(cursor_.get());
  seeks_prefix_ = false;
  return step(true, record);
}

int ha_cheetah::index_prev(uchar *record) {
  CountedWork counted(handler_stats);
  return step(false, record);
}

int ha_cheetah::index_first(uchar *record) {
  CountedWork counted(handler_stats);
  int error = seek(CHEETAH_SEEK_FIRST, no_key, end_of_range());
  return error != 0 ? error : deliver(record, true);
}

int ha_cheetah::index_last(uchar *record) {
  CountedWork counted(handler_stats);
  return seek_and_deliver(CHEETAH_SEEK_LAST, no_key, false, record);
}

int ha_cheetah::read_range_first(const key_range *start, const key_range *end, bool equal, bool sorted) {
  in_range_read_ = true;
  int error = handler::read_range_first(start, end, equal, sorted);
  in_range_read_ = false;
  return error;
}

// Returns the end of the cursor in a search for entries that start with these parts of a key.
uint8_t ha_cheetah::end_of_same(key_part_map parts) const {
  key_part_map whole = make_prev_keypart_map(table->key_info[active_index].user_defined_key_parts);
  bool is_row = active_index == table->s->primary_key && (parts & whole) == whole;
  return is_row ? CHEETAH_END_ROW : CHEETAH_END_PREFIX;
}

// Returns the end of the range, so that rows after it are not locked.
CheetahSeekEnd ha_cheetah::end_of_range() {
  if (!in_range_read_ || end_range == nullptr) return {CHEETAH_END_NONE, no_key};
  end_key_.clear();
  append_key_image(active_index, end_range->key, end_range->keypart_map, &end_key_);
  bool below = end_range->flag == HA_READ_BEFORE_KEY;
  return {static_cast<uint8_t>(below ? CHEETAH_END_BELOW : CHEETAH_END_UP_TO), end_key_.bytes()};
}

// Begins or ends semi-consistent reads. UPDATE first reads the last committed version of locked
// rows, and then requests the matching rows a second time.
void ha_cheetah::try_semi_consistent_read(bool yes) {
  tries_semi_consistent_ = yes && read_ == CHEETAH_READ_EXCLUSIVE && thd_tx_isolation(ha_thd()) <= ISO_READ_COMMITTED;
}

// Called when the last row does not match.
void ha_cheetah::unlock_row() {
  if (read_unlocked_) {
    read_unlocked_ = false;
    return;
  }
  if (scan_ == Scan::on_entry && read_ != CHEETAH_READ_CONSISTENT) cheetah_unlock_row(cursor_.get());
}

// The key is the one that the last index_read_map has searched.
int ha_cheetah::index_next_same(uchar *record, const uchar *, uint) {
  CountedWork counted(handler_stats);
  for (;;) {
    int error = move(true);
    if (error == 0 && !entry_starts_with(search_key_)) error = HA_ERR_END_OF_FILE;
    if (error == HA_ERR_END_OF_FILE) scan_ = Scan::behind;
    if (error != 0) return error;
    bool passed = true;
    error = cursor_index_ == 0 ? deliver_clustered(record) : deliver_secondary(record, &passed);
    if (error != 0 || passed) return error;
    unlock_row();
  }
}

// Does not take the condition if a key part is only a prefix of a column: the condition may need
// the column, which cannot be decoded from an entry.
Item *ha_cheetah::idx_cond_push(uint key_no, Item *condition) {
  if (key_no == table->s->primary_key) return condition;
  for (const KeyPart &part : codec_.key_of(key_no).parts()) {
    if (!part.whole_column()) return condition;
  }
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = key_no;
  in_range_check_pushed_down = true;
  return nullptr;
}

// The filter contains the positions of the requested rows, which the server found through another
// index.
bool ha_cheetah::rowid_filter_push(Rowid_filter *filter) {
  pushed_rowid_filter = filter;
  return false;
}

// Reads of many ranges of a key: the server's DsMrr_impl sorts the keys to search for, or the
// positions found, and reads by index_* and rnd_pos. A batched key access join (BKA) uses this too.

// Locking reads do not use DsMrr_impl: rows must be locked in the order of the key.
void ha_cheetah::prepare_ranges(uint *mode) {
  ranges_.init(this, table);
  bool locks_rows = read_ != CHEETAH_READ_CONSISTENT && !is_temporary();
  if (locks_rows) *mode |= HA_MRR_USE_DEFAULT_IMPL;
}

int ha_cheetah::multi_range_read_init(RANGE_SEQ_IF *ranges, void *context, uint count, uint mode, HANDLER_BUFFER *buffer) {
  return ranges_.dsmrr_init(this, ranges, context, count, mode, buffer);
}

int ha_cheetah::multi_range_read_next(range_id_t *range) { return ranges_.dsmrr_next(range); }

ha_rows ha_cheetah::multi_range_read_info(uint key_no, uint count, uint keys, uint key_parts, uint *bytes, uint *mode,
                                          Cost_estimate *cost) {
  prepare_ranges(mode);
  return ranges_.dsmrr_info(key_no, count, keys, key_parts, bytes, mode, cost);
}

int ha_cheetah::multi_range_read_explain_info(uint mode, char *text, size_t bytes) {
  return ranges_.dsmrr_explain_info(mode, text, bytes);
}
