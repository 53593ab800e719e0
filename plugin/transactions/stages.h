// SPDX-License-Identifier: GPL-2.0-only
// Stages: the State column of SHOW PROCESSLIST while a statement waits or does long work in the
// engine.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Registers our stages with the server, and callbacks in the engine that report its stages.
void observe_stages();

extern PSI_stage_info stage_building_indexes;
extern PSI_stage_info stage_catching_up;
extern PSI_stage_info stage_writing_snapshot;

// Sets a stage of the connection's statement for the lifetime of this object.
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
