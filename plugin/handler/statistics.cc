// SPDX-License-Identifier: GPL-2.0-only
// Statistics for the optimizer and SHOW TABLE STATUS: counts are exact, sizes are bytes on disk.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "transactions/page_work.h"

#include <algorithm>

using namespace cheetah;

// The page size for the optimizer's costs. It is InnoDB's, so that plans are the same.
static constexpr ulonglong cost_page_bytes = 16384;
// Sizes are refreshed when the number of rows has changed by more than 1 / `size_change_divisor`.
static constexpr ha_rows size_change_divisor = 16;

int ha_cheetah::refresh_sizes() {
  sizes_.resize(codec_.secondaries().size() + 1);
  sized_rows_ = cheetah_row_count(engine_table_.get());
  int error = handler_error(cheetah_index_stats(engine_table_.get(), sizes_.data(), sizes_.size()), ha_thd());
  return error != 0 ? error : handler_error(cheetah_fulltext_bytes(engine_table_.get(), &fulltext_bytes_), ha_thd());
}

static bool much_changed(ha_rows before, ha_rows now) {
  ha_rows difference = before < now ? now - before : before - now;
  return difference > before / size_change_divisor;
}

// Returns the bytes on disk, or the bytes in memory if the first checkpoint has not yet written the
// index.
static ulonglong bytes_of_index(const CheetahIndexStats &size) {
  return size.stored_bytes != 0 ? size.stored_bytes : size.logical_bytes;
}

// The server also calls this for open tables that no statement uses. A load may have replaced such
// a table since its last use.
int ha_cheetah::info(uint what) {
  int stale = cheetah_is_dropped(engine_table_.get()) ? attach() : 0;
  if (stale != 0) return stale;
  Session *session = Session::existing(ha_thd());
  if ((what & HA_STATUS_ERRKEY) && session != nullptr) errkey = session->duplicate_key_no();
  if (what & HA_STATUS_AUTO) stats.auto_increment_value = cheetah_auto_increment(engine_table_.get());
  // For a partition the server may request only the times.
  if (what & HA_STATUS_TIME) {
    tell_creation();
    stats.update_time = static_cast<ulong>(cheetah_changed_at(engine_table_.get()));
  }
  if (!(what & (HA_STATUS_VARIABLE | HA_STATUS_CONST))) return 0;
  ha_rows rows = cheetah_row_count(engine_table_.get());
  if (sizes_.empty() || (what & HA_STATUS_TIME) || much_changed(sized_rows_, rows)) {
    int error = refresh_sizes();
    if (error != 0) return error;
  }
  // The optimizer relies on 0 being exact, but reads it before the table is locked.
  bool for_display = what & (HA_STATUS_TIME | HA_STATUS_OPEN);
  stats.records = rows == 0 && !for_display ? 1 : rows;
  stats.deleted = 0;
  stats.data_file_length = bytes_of_index(sizes_[0]);
  stats.index_file_length = fulltext_bytes_;
  for (size_t i = 1; i < sizes_.size(); i++) stats.index_file_length += bytes_of_index(sizes_[i]);
  stats.delete_length = 0;
  for (const CheetahIndexStats &size : sizes_) stats.delete_length += size.free_bytes;
  stats.block_size = cost_page_bytes;
  // Users divide the length by the row length; the optimizer needs the size of the rows it reads.
  ulonglong length = what & HA_STATUS_TIME ? stats.data_file_length : sizes_[0].logical_bytes;
  stats.mean_rec_length = rows == 0 ? 0 : static_cast<ulong>(length / rows);
  stats.mrr_length_per_rec = ref_length + sizeof(void *);
  if (what & HA_STATUS_CONST) {
    set_cardinalities();
    if (!is_partition()) tell_keys_in_use();
  }
  if (what & HA_STATUS_VARIABLE) look_for_cardinalities();
  return 0;
}

// Sets the creation time. As in InnoDB, it is the time when the definition was last written.
void ha_cheetah::tell_creation() {
  char path[FN_REFLEN];
  strxnmov(path, sizeof path - 1, table->s->normalized_path.str, reg_ext, NullS);
  MY_STAT frm;
  stats.create_time = my_stat(path, &frm, MYF(0)) != nullptr ? frm.st_ctime : 0;
}

void cheetah::describe_keys(const CheetahTable *engine_table, const TableCodec &codec, const TABLE_SHARE *share,
                            bool is_temporary) {
  KeyEncodings keys = codec.key_encodings();
  uint8_t recalc = static_cast<uint8_t>(share->stats_auto_recalc);
  cheetah_describe_keys(engine.db, engine_table, keys.for_engine().data(), keys.for_engine().size(),
                        share->stats_sample_pages, recalc, is_temporary);
}

// Passes cardinalities to the server if the engine has collected new statistics in the background.
void ha_cheetah::look_for_cardinalities() {
  uint64_t version = cheetah_statistics_version(engine_table_.get());
  if (version == statistics_version_) return;
  statistics_version_ = version;
  set_cardinalities();
}

// Passes the engine's cardinalities to the server. A unique key has one row per value. If the
// engine has no statistics, the server guesses the other values.
void ha_cheetah::set_cardinalities() {
  for (uint key_no = 0; key_no < table->s->keys; key_no++) {
    KEY &key = table->key_info[key_no];
    if (key.rec_per_key == nullptr || is_fulltext(key)) continue;
    for (uint part = 0; part < key.ext_key_parts; part++) {
      key.rec_per_key[part] = static_cast<ulong>(
          cheetah_rows_per_value(engine_table_.get(), codec_.engine_index(key_no), part + 1));
    }
    bool unique = key_no == codec_.clustered_no() || ((key.flags & HA_NOSAME) && !(key.flags & HA_NULL_PART_KEY));
    if (unique) key.rec_per_key[key.user_defined_key_parts - 1] = 1;
  }
}

// Returns an exact count with HA_HAS_RECORDS, otherwise an estimate. This function reports no
// error, because the scan that follows meets the error again.
ha_rows ha_cheetah::records() {
  CountedWork counted(handler_stats);
  if (read_ != CHEETAH_READ_CONSISTENT) return cheetah_row_count(engine_table_.get());
  if (begin_unlocked(false) != 0) return HA_POS_ERROR;
  uint64_t count = 0;
  return cheetah_count(txn_, engine_table_.get(), &count) == CHEETAH_CODE_OK ? count : HA_POS_ERROR;
}

ha_rows ha_cheetah::estimate_rows_upper_bound() { return cheetah_row_count(engine_table_.get()) + 1; }

// Converts a bound of a range of key images to a bound of a range of stored keys, [low, high). A
// bound after all entries that start with a key becomes that key followed by 0xff, which sorts
// after these entries.
void ha_cheetah::bound(uint key_no, const key_range *range, Buffer *out) {
  out->clear();
  append_key_image(key_no, range->key, range->keypart_map, out);
  if (range->flag == HA_READ_AFTER_KEY) out->append_byte(0xff);
}

ha_rows ha_cheetah::records_in_range(uint key_no, const key_range *low, const key_range *high, page_range *) {
  CountedWork counted(handler_stats);
  if (low != nullptr) bound(key_no, low, &key_);
  if (high != nullptr) bound(key_no, high, &old_key_);
  CheetahBytes from = key_.bytes(), to = old_key_.bytes();
  uint64_t count = 0;
  int32_t code = cheetah_records_in_range(engine_table_.get(), codec_.engine_index(key_no),
                                          low != nullptr ? &from : nullptr, high != nullptr ? &to : nullptr, &count);
  if (code != CHEETAH_CODE_OK) return HA_POS_ERROR;
  // The optimizer relies on 0 being exact.
  return count == 0 ? 1 : count;
}

double ha_cheetah::clustered_pages() const {
  return sizes_.empty() ? 0 : static_cast<double>(std::max<ulonglong>(sizes_[0].logical_bytes / cost_page_bytes, 1));
}
