// SPDX-License-Identifier: GPL-2.0-only
// Rows for an estimate, out of a table of any engine.
//
// The clustered index is read from places that are spread over it: by values of the first key
// column, if that is an integer; otherwise one after the other, for as long as `time_max_us`. Each
// other index is read from the places of rows that were found so.
#pragma once

#include "server.h"
#include "ddl/table_codec.h"

#include <functional>
#include <vector>

namespace cheetah {

class Sampler {
 public:
  // `table` is locked for reading, and all its columns are wanted.
  Sampler(THD *thd, TABLE *table, CheetahEstimate *estimate);

  // 0, or an error of the handler.
  int sample();
  // Whether a part of the table was left out for want of time.
  bool is_partial() const { return partial_; }
  // An index that cannot be read in order, or nullptr.
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
  std::vector<std::vector<Image>> places_;  // by number of the index in the engine
  bool whole_ = false;                      // the first run has seen all rows
  bool partial_ = false;
  Buffer scratch_, key_, clustered_, payload_;
};

}  // namespace cheetah
