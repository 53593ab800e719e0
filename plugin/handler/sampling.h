// SPDX-License-Identifier: GPL-2.0-only
// Samples rows of a table of any engine for an estimate.
//
// The clustered index is read at places that are spread over it. If the first key column is an
// integer, its values determine the places. Otherwise the rows are read in order, for at most
// `time_max_us`. Each secondary index is read at the places of the sampled rows.
#pragma once

#include "server.h"
#include "ddl/table_codec.h"

#include <functional>
#include <vector>

namespace cheetah {

class Sampler {
 public:
  // `table` must be locked for reading, with all columns in its read set.
  Sampler(THD *thd, TABLE *table, CheetahEstimate *estimate);

  // Returns 0 or a handler error.
  int sample();
  // Returns whether a part of the table was not sampled because of the time limit.
  bool is_partial() const { return partial_; }
  // Returns an index that cannot be read in order, or nullptr.
  static const KEY *unordered_key(const TABLE *table);

 private:
  using Next = std::function<int()>;
  using Image = std::vector<uchar>;

  int sample_clustered();
  int sample_secondary(uint index_no);
  int sample_by_values(uint runs);
  int sample_in_turn(uint runs, int error, const Next &next);
  int run(uint index_no, bool from_start, int error, const Next &next);
  int add(uint index_no, uint8_t *more);
  void keep_places();
  Image image_of(uint key_no, uint length) const;
  int check(int32_t code) const;
  const KEY &clustered_key() const { return table_->key_info[codec_.clustered_no()]; }

  THD *thd_;
  TABLE *table_;
  handler *file_;
  CheetahEstimate *estimate_;
  my_rnd_struct random_;
  TableCodec codec_;
  std::vector<std::vector<Image>> places_;  // by the engine's index number
  bool whole_ = false;                      // the first run has read all rows
  bool partial_ = false;
  Buffer scratch_, key_, clustered_, payload_;
};

}  // namespace cheetah
