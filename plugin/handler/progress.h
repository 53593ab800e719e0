// SPDX-License-Identifier: GPL-2.0-only
// Reports the progress of a long step of a statement, for SHOW PROCESSLIST and clients.
#pragma once

#include "server.h"

namespace cheetah {

// A callback that the engine calls from time to time. `thd` is the connection's THD.
inline void report_progress(void *thd, uint64_t done, uint64_t total) {
  thd_progress_report(static_cast<THD *>(thd), done, total);
}

// Begins and ends a progress report. `report_progress` has no effect outside of a report, unless
// the server itself has begun one.
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
