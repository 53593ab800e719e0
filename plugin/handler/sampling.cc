// SPDX-License-Identifier: GPL-2.0-only
#include "handler/sampling.h"

#include "errors.h"

namespace cheetah {

// The time limit for reading rows in order.
static constexpr ulonglong time_max_us = 700000;

Sampler::Sampler(THD *thd, TABLE *table, CheetahEstimate *estimate)
    : thd_(thd), table_(table), file_(table->file), estimate_(estimate) {
  // The sampler does not use the session's random numbers, because that would change later results
  // of RAND().
  my_rnd_init(&random_, static_cast<ulong>(my_interval_timer()), static_cast<ulong>(thd_get_thread_id(thd)));
  codec_.init(table);
  places_.resize(codec_.secondaries().size() + 1);
}

static bool is_ordered(const TABLE *table, uint key_no) { return table->file->index_flags(key_no, 0, true) & HA_READ_ORDER; }

const KEY *Sampler::unordered_key(const TABLE *table) {
  for (uint key_no = 0; key_no < table->s->keys; key_no++) {
    if (!is_ordered(table, key_no)) return &table->key_info[key_no];
  }
  return nullptr;
}

int Sampler::sample() {
  int error = sample_clustered();
  for (uint index_no = 1; error == 0 && index_no < places_.size(); index_no++) error = sample_secondary(index_no);
  return error;
}

int Sampler::sample_clustered() {
  uint runs = cheetah_estimate_runs(estimate_);
  uchar *record = table_->record[0];
  if (codec_.hidden_key()) {
    int error = file_->ha_rnd_init(true);
    if (error != 0) return error;
    Next next = [this, record] { return file_->ha_rnd_next(record); };
    error = sample_in_turn(runs, next(), next);
    file_->ha_rnd_end();
    return error;
  }
  int error = file_->ha_index_init(codec_.clustered_no(), true);
  if (error != 0) return error;
  if (clustered_key().key_part[0].field->result_type() == INT_RESULT) {
    error = sample_by_values(runs);
  } else {
    error = sample_in_turn(runs, file_->ha_index_first(record), [this, record] { return file_->ha_index_next(record); });
  }
  file_->ha_index_end();
  return error;
}

// Samples from values that are evenly spread between the first and the last value. A place that is
// found twice is sampled once.
int Sampler::sample_by_values(uint runs) {
  const KEY_PART_INFO &part = clustered_key().key_part[0];
  Field *field = part.field;
  uchar *record = table_->record[0];
  Next next = [this, record] { return file_->ha_index_next(record); };
  int error = run(0, true, file_->ha_index_first(record), next);
  if (error != 0 || whole_) return error;
  if ((error = file_->ha_index_first(record)) != 0) return error;
  longlong first = field->val_int();
  if ((error = file_->ha_index_last(record)) != 0) return error;
  longlong last = field->val_int(), found = first;
  if (part.key_part_flag & HA_REVERSE_SORT) std::swap(first, last);
  ulonglong span = static_cast<ulonglong>(last) - static_cast<ulonglong>(first);
  uint places = 0;
  for (uint i = 1; i < runs; i++) {
    double share = (i + my_rnd(&random_)) / runs;
    MY_BITMAP *columns = dbug_tmp_use_all_columns(table_, &table_->write_set);
    field->set_notnull();
    field->store(static_cast<longlong>(static_cast<ulonglong>(first) + static_cast<ulonglong>(static_cast<double>(span) * share)),
                 field->flags & UNSIGNED_FLAG);
    dbug_tmp_restore_column_map(&table_->write_set, columns);
    Image image = image_of(codec_.clustered_no(), part.store_length);
    error = file_->ha_index_read_map(record, image.data(), 1, HA_READ_KEY_OR_NEXT);
    if (error == HA_ERR_KEY_NOT_FOUND || error == HA_ERR_END_OF_FILE) continue;
    if (error != 0) return error;
    if (field->val_int() == found) continue;
    found = field->val_int();
    if ((error = run(0, false, 0, next)) != 0) return error;
    places++;
  }
  if (places >= runs / 2) return 0;
  return sample_in_turn(runs, file_->ha_index_first(record), next);
}

// Reads all rows from the current record on, and samples a run at regular intervals.
int Sampler::sample_in_turn(uint runs, int error, const Next &next) {
  ulonglong end = microsecond_interval_timer() + time_max_us;
  ha_rows stride = file_->stats.records / runs + 1, left = 0;
  bool from_start = true;
  while (error == 0 && !whole_) {
    if (left > 0) {
      left--;
      if (thd_kill_level(thd_) != THD_IS_NOT_KILLED) return HA_ERR_ABORTED_BY_USER;
    } else {
      if ((error = run(0, from_start, 0, next)) != 0) return error;
      from_start = false;
      left = stride;
      if (microsecond_interval_timer() > end) {
        partial_ = true;
        return 0;
      }
    }
    if (!whole_) error = next();
  }
  return error == HA_ERR_END_OF_FILE ? 0 : error;
}

int Sampler::sample_secondary(uint index_no) {
  uint key_no = codec_.key_number(index_no);
  uchar *record = table_->record[0];
  int error = file_->ha_index_init(key_no, true);
  if (error != 0) return error;
  Next next = [this, record] { return file_->ha_index_next(record); };
  error = run(index_no, true, file_->ha_index_first(record), next);
  uint runs = cheetah_estimate_runs(estimate_);
  key_part_map all = make_prev_keypart_map(table_->key_info[key_no].user_defined_key_parts);
  const std::vector<Image> &places = places_[index_no];
  for (uint i = 1; error == 0 && !whole_ && i < runs && !places.empty(); i++) {
    const Image &place = places[i * places.size() / runs];
    int found = file_->ha_index_read_map(record, place.data(), all, HA_READ_KEY_OR_NEXT);
    if (found == HA_ERR_KEY_NOT_FOUND || found == HA_ERR_END_OF_FILE) continue;
    error = found != 0 ? found : run(index_no, false, 0, next);
  }
  file_->ha_index_end();
  return error;
}

// Samples entries from the current record on, until the run is long enough or the index ends.
// `error` is nonzero if there is no current record.
int Sampler::run(uint index_no, bool from_start, int error, const Next &next) {
  if (int failed = check(cheetah_estimate_run(estimate_, index_no, from_start))) return failed;
  if (index_no == 0 && error == 0) keep_places();
  uint8_t more = 1;
  while (error == 0 && more) {
    if (thd_kill_level(thd_) != THD_IS_NOT_KILLED) return HA_ERR_ABORTED_BY_USER;
    error = add(index_no, &more);
    if (error == 0 && more) error = next();
  }
  if (error != HA_ERR_END_OF_FILE) return error;
  if (index_no == 0 && from_start) whole_ = true;
  return check(cheetah_estimate_end(estimate_, index_no));
}

int Sampler::add(uint index_no, uint8_t *more) {
  const uchar *record = table_->record[0];
  clustered_.clear();
  key_.clear();
  payload_.clear();
  if (!codec_.hidden_key()) codec_.clustered().append(record, &scratch_, &clustered_);
  if (index_no == 0) {
    codec_.row().encode(record, RowCodec::Old{}, table_->read_set, &payload_);
    return check(cheetah_estimate_row(estimate_, clustered_.bytes(), payload_.bytes(), more));
  }
  const SecondaryCodec &secondary = codec_.secondary_of(index_no);
  secondary.key().append(record, &scratch_, &key_);
  secondary.append_payload(record, &payload_);
  return check(cheetah_estimate_entry(estimate_, index_no, key_.bytes(), clustered_.bytes(), payload_.bytes(), more));
}

// Saves the current row's key in each secondary index as a place to sample from.
void Sampler::keep_places() {
  for (uint index_no = 1; index_no < places_.size(); index_no++) {
    uint key_no = codec_.key_number(index_no);
    places_[index_no].push_back(image_of(key_no, table_->key_info[key_no].key_length));
  }
}

Sampler::Image Sampler::image_of(uint key_no, uint length) const {
  Image image(length);
  key_copy(image.data(), table_->record[0], &table_->key_info[key_no], length);
  return image;
}

int Sampler::check(int32_t code) const { return handler_error(code, thd_); }

}  // namespace cheetah
