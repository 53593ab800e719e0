// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_BUFFER_POOL_STATS has the columns of INNODB_BUFFER_POOL_STATS; columns
// that have no meaning here are NULL. CHEETAH_CACHE_CURVE predicts the reads with more or less
// memory.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static ST_FIELD_INFO pool_columns[] = {Column("POOL_ID", ULong(), NOT_NULL),
                                       Column("POOL_SIZE", ULonglong(), NOT_NULL),
                                       Column("FREE_BUFFERS", ULonglong(), NOT_NULL),
                                       Column("DATABASE_PAGES", ULonglong(), NOT_NULL),
                                       Column("OLD_DATABASE_PAGES", ULonglong(), NOT_NULL),
                                       Column("MODIFIED_DATABASE_PAGES", ULonglong(), NOT_NULL),
                                       Column("PENDING_DECOMPRESS", ULonglong(), NULLABLE),
                                       Column("PENDING_READS", ULonglong(), NULLABLE),
                                       Column("PENDING_FLUSH_LRU", ULonglong(), NULLABLE),
                                       Column("PENDING_FLUSH_LIST", ULonglong(), NULLABLE),
                                       Column("PAGES_MADE_YOUNG", ULonglong(), NULLABLE),
                                       Column("PAGES_NOT_MADE_YOUNG", ULonglong(), NULLABLE),
                                       Column("PAGES_MADE_YOUNG_RATE", Float(MAX_FLOAT_STR_LENGTH), NULLABLE),
                                       Column("PAGES_MADE_NOT_YOUNG_RATE", Float(MAX_FLOAT_STR_LENGTH), NULLABLE),
                                       Column("NUMBER_PAGES_READ", ULonglong(), NOT_NULL),
                                       Column("NUMBER_PAGES_CREATED", ULonglong(), NOT_NULL),
                                       Column("NUMBER_PAGES_WRITTEN", ULonglong(), NOT_NULL),
                                       Column("PAGES_READ_RATE", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                       Column("PAGES_CREATE_RATE", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                       Column("PAGES_WRITTEN_RATE", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                       Column("NUMBER_PAGES_GET", ULonglong(), NOT_NULL),
                                       Column("HIT_RATE", ULonglong(), NULLABLE),
                                       Column("YOUNG_MAKE_PER_THOUSAND_GETS", ULonglong(), NULLABLE),
                                       Column("NOT_YOUNG_MAKE_PER_THOUSAND_GETS", ULonglong(), NULLABLE),
                                       Column("NUMBER_PAGES_READ_AHEAD", ULonglong(), NOT_NULL),
                                       Column("NUMBER_READ_AHEAD_EVICTED", ULonglong(), NOT_NULL),
                                       Column("READ_AHEAD_RATE", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                       Column("READ_AHEAD_EVICTED_RATE", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                       Column("LRU_IO_TOTAL", ULonglong(), NULLABLE),
                                       Column("LRU_IO_CURRENT", ULonglong(), NULLABLE),
                                       Column("UNCOMPRESS_TOTAL", ULonglong(), NULLABLE),
                                       Column("UNCOMPRESS_CURRENT", ULonglong(), NULLABLE),
                                       CEnd()};

static ST_FIELD_INFO curve_columns[] = {Column("MEMORY_PERCENT", ULonglong(), NOT_NULL),
                                        Column("MEMORY_BYTES", ULonglong(), NOT_NULL),
                                        Column("MISSES_PER_1000", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                        Column("READS_PER_SECOND", Float(MAX_FLOAT_STR_LENGTH), NOT_NULL),
                                        CEnd()};

}  // namespace Show

namespace cheetah {

static void write_pool(Rows *rows, const CheetahPoolStats &stats) {
  auto put_rate = [rows](uint column, uint64_t per_1000_s) {
    rows->put_real(column, static_cast<double>(per_1000_s) / 1000);
  };
  rows->start();
  rows->put(1, stats.size_pages);
  rows->put(2, stats.free_pages);
  rows->put(3, stats.pages);
  rows->put(4, stats.leaving_pages);
  rows->put(5, stats.dirty_pages);
  rows->put(14, stats.reads);
  rows->put(15, stats.creates);
  rows->put(16, stats.writes);
  put_rate(17, stats.reads_per_1000_s);
  put_rate(18, stats.creates_per_1000_s);
  put_rate(19, stats.writes_per_1000_s);
  rows->put(20, stats.gets);
  if (stats.has_hits) rows->put(21, stats.hits_per_1000);
  rows->put(24, stats.reads_ahead);
  rows->put(25, stats.ahead_wasted);
  put_rate(26, stats.reads_ahead_per_1000_s);
  put_rate(27, stats.ahead_wasted_per_1000_s);
  rows->end();
}

static int fill_pool(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  CheetahPoolStats stats;
  if (cheetah_pool_stats(engine.db, &stats) != CHEETAH_CODE_OK) return 1;
  Rows rows(thd, tables->table);
  write_pool(&rows, stats);
  return rows.failed();
}

static void write_point(void *context, const CheetahCurvePoint *point) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, point->percent);
  rows->put(1, point->memory_bytes);
  rows->put_real(2, static_cast<double>(point->misses_per_million) / 1000);
  rows->put_real(3, static_cast<double>(point->reads_per_1000_s) / 1000);
  rows->end();
}

static int fill_curve(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return cheetah_list_cache_curve(engine.db, write_point, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_maria_plugin information_schema_cache_curve =
    describe_view("CHEETAH_CACHE_CURVE", "Predicted reads of the Cheetah engine with more or less memory",
                  init_view<Show::curve_columns, fill_curve>);
st_maria_plugin information_schema_buffer_pool_stats =
    describe_view("CHEETAH_BUFFER_POOL_STATS", "The buffer pool of the Cheetah engine",
                  init_view<Show::pool_columns, fill_pool>);

}  // namespace cheetah
