// SPDX-License-Identifier: GPL-2.0-only
// How far a long step of a statement is, for SHOW PROCESSLIST and clients.
#pragma once

#include "server.h"

namespace cheetah {

// For the engine, which tells it now and then; `thd` is the connection's.
inline void report_progress(void *thd, uint64_t done, uint64_t total) {
  thd_progress_report(static_cast<THD *>(thd), done, total);
}

// Nothing is shown but between its begin and its end, where the server has none of its own around
// the step.
class Progress {
 public:
  explicit Progress(THD *thd) : thd_(thd) { thd_progress_init(thd, 1); }
  ~Progress() { thd_progress_end(thd_); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

 private:
  THD *thd_;
};

}  // namespace cheetah
