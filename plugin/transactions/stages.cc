// SPDX-License-Identifier: GPL-2.0-only
#include "transactions/stages.h"

#include <cstring>
#include <iterator>

namespace cheetah {

PSI_stage_info stage_building_indexes = {0, "Building indexes", 0};
PSI_stage_info stage_writing_snapshot = {0, "Writing a snapshot of the engine", 0};
PSI_stage_info stage_catching_up = {0, "Applying concurrent changes to the new indexes", 0};

static PSI_stage_info row_lock = {0, "Waiting for row lock", 0};
static PSI_stage_info table_lock = {0, "Waiting for table lock of the engine", 0};
static PSI_stage_info log_space = {0, "Waiting for log space", 0};
static PSI_stage_info memory = {0, "Waiting for free memory in the cache", 0};
static PSI_stage_info rollback = {0, "Rolling back", 0};

// In the order of CheetahStage.
static PSI_stage_info *engine_stages[] = {&row_lock, &table_lock, &log_space, &memory, &rollback};

static PSI_stage_info *all_stages[] = {&row_lock, &table_lock, &log_space, &memory,
                                       &rollback, &stage_building_indexes, &stage_catching_up,
                                       &stage_writing_snapshot};

static_assert(sizeof(PSI_stage_info) <= sizeof(CheetahStageBefore), "a stage of the server fits into the engine's words");

// Returns whether the server's thread pool should start another thread during the wait, so that the
// connection on which the wait depends can run.
static bool lets_others_run(uint8_t stage) { return stage <= CHEETAH_STAGE_LOG_SPACE; }

// Does nothing in the engine's own threads, which have no connection.
static uint64_t begin_stage(uint8_t stage, CheetahStageBefore *before) {
  THD *thd = current_thd;
  if (thd == nullptr) return 0;
  PSI_stage_info previous = {0, nullptr, 0};
  set_thd_stage_info(thd, engine_stages[stage], &previous, __func__, __FILE__, __LINE__);
  memcpy(before, &previous, sizeof previous);
  if (lets_others_run(stage)) thd_wait_begin(thd, stage == CHEETAH_STAGE_LOG_SPACE ? THD_WAIT_DISKIO : THD_WAIT_ROW_LOCK);
  return thd_get_thread_id(thd);
}

static void end_stage(uint8_t stage, const CheetahStageBefore *before) {
  THD *thd = current_thd;
  if (thd == nullptr) return;
  if (lets_others_run(stage)) thd_wait_end(thd);
  PSI_stage_info previous;
  memcpy(&previous, before, sizeof previous);
  set_thd_stage_info(thd, &previous, nullptr, __func__, __FILE__, __LINE__);
}

static uint64_t connection_of_thread() {
  THD *thd = current_thd;
  return thd == nullptr ? 0 : thd_get_thread_id(thd);
}

void observe_stages() {
  mysql_stage_register("cheetah", all_stages, static_cast<int>(std::size(all_stages)));
  cheetah_observe_stages(begin_stage, end_stage, connection_of_thread);
}

}  // namespace cheetah
