// SPDX-License-Identifier: GPL-2.0-only
// Counts the work of a statement on pages of its tables, for ANALYZE FORMAT=JSON and the slow log.
// Nothing is counted unless the server requests it.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Adds the work of one handler call to `stats`. If `stats` is null, nothing is counted.
class CountedWork {
 public:
  explicit CountedWork(ha_handler_stats *stats) : stats_(stats) {
    if (stats_ != nullptr) cheetah_begin_page_work(&since_);
  }
  ~CountedWork() {
    if (stats_ != nullptr) add();
  }
  CountedWork(const CountedWork &) = delete;
  CountedWork &operator=(const CountedWork &) = delete;

 private:
  void add() {
    CheetahPageWork done;
    cheetah_end_page_work(&since_, &done);
    stats_->pages_accessed += done.pages_accessed;
    stats_->pages_updated += done.pages_updated;
    stats_->pages_read_count += done.pages_read;
    stats_->pages_read_time += static_cast<ulonglong>(static_cast<double>(done.read_ns) * timer_tracker_frequency() / 1e9);
    stats_->pages_prefetched += done.pages_prefetched;
    stats_->undo_records_read += done.versions_read;
  }

  ha_handler_stats *stats_;
  CheetahPageWork since_;
};

}  // namespace cheetah
