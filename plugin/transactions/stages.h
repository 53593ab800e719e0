// SPDX-License-Identifier: GPL-2.0-only
// Stages: the State of SHOW PROCESSLIST while a statement waits in the engine, or does there what
// takes long.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Tells the server of our stages, and has the engine tell of its own.
void observe_stages();

extern PSI_stage_info stage_building_indexes;
extern PSI_stage_info stage_catching_up;
extern PSI_stage_info stage_writing_snapshot;

// A stage of the connection's statement, until this goes.
class InStage {
 public:
  InStage(THD *thd, const PSI_stage_info *stage) : thd_(thd) {
    set_thd_stage_info(thd, stage, &before_, __func__, __FILE__, __LINE__);
  }
  ~InStage() { set_thd_stage_info(thd_, &before_, nullptr, __func__, __FILE__, __LINE__); }
  InStage(const InStage &) = delete;
  InStage &operator=(const InStage &) = delete;

 private:
  THD *thd_;
  PSI_stage_info before_ = {0, nullptr, 0};
};

}  // namespace cheetah
