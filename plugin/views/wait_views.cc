// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_LATENCY: how long operations take. CHEETAH_STALLS: where threads are
// held up, and the connection of the last one.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static ST_FIELD_INFO latency_columns[] = {Column("OPERATION", Varchar(32), NOT_NULL),
                                          Column("FROM_US", ULonglong(), NOT_NULL),
                                          Column("BELOW_US", ULonglong(), NULLABLE),
                                          Column("COUNT", ULonglong(), NOT_NULL),
                                          CEnd()};

static ST_FIELD_INFO stall_columns[] = {Column("REASON", Varchar(32), NOT_NULL),
                                        Column("CURRENT_COUNT", ULonglong(), NOT_NULL),
                                        Column("CURRENT_MAX_US", ULonglong(), NOT_NULL),
                                        Column("COUNT", ULonglong(), NOT_NULL),
                                        Column("SUM_US", ULonglong(), NOT_NULL),
                                        Column("MAX_US", ULonglong(), NOT_NULL),
                                        Column("LAST_ENDED", Datetime(0), NULLABLE),
                                        Column("LAST_CONNECTION_ID", ULonglong(), NULLABLE),
                                        CEnd()};

}  // namespace Show

namespace cheetah {

static void write_latency(void *context, const CheetahLatency *latency) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, latency->operation);
  rows->put(1, latency->from_us);
  if (latency->below_us != 0) rows->put(2, latency->below_us);
  rows->put(3, latency->count);
  rows->end();
}

static int fill_latency(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return cheetah_list_latencies(engine.db, write_latency, &rows) != CHEETAH_CODE_OK || rows.failed();
}

static void write_stall(void *context, const CheetahStall *stall) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, stall->reason);
  rows->put(1, stall->current);
  rows->put(2, stall->current_us_max);
  rows->put(3, stall->count);
  rows->put(4, stall->sum_us);
  rows->put(5, stall->max_us);
  if (stall->count != 0) rows->put_moment(6, stall->last_age_ns);
  if (stall->last_connection != 0) rows->put(7, stall->last_connection);
  rows->end();
}

static int fill_stalls(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return cheetah_list_stalls(engine.db, write_stall, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_maria_plugin information_schema_latency =
    describe_view("CHEETAH_LATENCY", "Latencies of operations of the Cheetah engine",
                  init_view<Show::latency_columns, fill_latency>);
st_maria_plugin information_schema_stalls =
    describe_view("CHEETAH_STALLS", "Stalls of threads in the Cheetah engine",
                  init_view<Show::stall_columns, fill_stalls>);

}  // namespace cheetah
