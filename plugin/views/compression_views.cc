// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_CMP, CHEETAH_CMP_PER_INDEX and their _RESET variants: the columns of
// InnoDB's views, and the times in microseconds. docs/users/statistics.md describes the rows.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static ST_FIELD_INFO cmp_columns[] = {Column("page_size", SLong(5), NOT_NULL),
                                      Column("compress_ops", ULonglong(), NOT_NULL),
                                      Column("compress_ops_ok", ULonglong(), NOT_NULL),
                                      Column("compress_time", ULonglong(), NOT_NULL),
                                      Column("uncompress_ops", ULonglong(), NOT_NULL),
                                      Column("uncompress_time", ULonglong(), NOT_NULL),
                                      Column("compress_time_us", ULonglong(), NOT_NULL),
                                      Column("uncompress_time_us", ULonglong(), NOT_NULL),
                                      CEnd()};

static ST_FIELD_INFO cmp_per_index_columns[] = {Column("database_name", Varchar(192), NOT_NULL),
                                                Column("table_name", Varchar(192), NOT_NULL),
                                                Column("index_name", Varchar(192), NOT_NULL),
                                                Column("compress_ops", ULonglong(), NOT_NULL),
                                                Column("compress_ops_ok", ULonglong(), NOT_NULL),
                                                Column("compress_time", ULonglong(), NOT_NULL),
                                                Column("uncompress_ops", ULonglong(), NOT_NULL),
                                                Column("uncompress_time", ULonglong(), NOT_NULL),
                                                Column("compress_time_us", ULonglong(), NOT_NULL),
                                                Column("uncompress_time_us", ULonglong(), NOT_NULL),
                                                CEnd()};

}  // namespace Show

namespace cheetah {

static constexpr uint64_t ns_per_us = 1000, ns_per_s = 1000000000;

// Puts the columns that both views share, from `column` on. Compression cannot fail here, so
// compress_ops_ok equals compress_ops.
static void put_work(Rows *rows, uint column, const CheetahImageWork *work) {
  const uint64_t numbers[] = {work->encodes,
                              work->encodes,
                              work->encode_ns / ns_per_s,
                              work->decodes,
                              work->decode_ns / ns_per_s,
                              work->encode_ns / ns_per_us,
                              work->decode_ns / ns_per_us};
  for (uint64_t number : numbers) rows->put(column++, number);
}

static void write_of_length(void *context, const CheetahImageWork *work) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, work->image_bytes_max);
  put_work(rows, 1, work);
  rows->end();
}

static void write_of_index(void *context, const CheetahImageWork *work) {
  auto *rows = static_cast<Rows *>(context);
  std::string name = text_of(work->table);
  if (rows->failed() || is_own_table(name)) return;
  TableName table = table_name_of(name);
  rows->start();
  rows->put(0, table.schema);
  rows->put(1, table.table);
  rows->put(2, text_of(work->index));
  put_work(rows, 3, work);
  rows->end();
}

using ListWork = int32_t (*)(const CheetahDb *, uint8_t, CheetahImageWorkSink, void *);

// Like InnoDB's views, shows rows only to users with the PROCESS privilege.
template <ListWork list, CheetahImageWorkSink write, uint8_t restart>
static int fill(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return list(engine.db, restart, write, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_maria_plugin information_schema_cmp =
    describe_view("CHEETAH_CMP", "Cost of compression in the Cheetah engine",
                  init_view<Show::cmp_columns, fill<cheetah_list_image_work, write_of_length, 0>>);
st_maria_plugin information_schema_cmp_reset =
    describe_view("CHEETAH_CMP_RESET", "Like CHEETAH_CMP; reading it resets the counters",
                  init_view<Show::cmp_columns, fill<cheetah_list_image_work, write_of_length, 1>>);
st_maria_plugin information_schema_cmp_per_index =
    describe_view("CHEETAH_CMP_PER_INDEX", "Cost of compression for each index of the Cheetah engine",
                  init_view<Show::cmp_per_index_columns, fill<cheetah_list_index_image_work, write_of_index, 0>>);
st_maria_plugin information_schema_cmp_per_index_reset =
    describe_view("CHEETAH_CMP_PER_INDEX_RESET", "Like CHEETAH_CMP_PER_INDEX; reading it resets the counters",
                  init_view<Show::cmp_per_index_columns, fill<cheetah_list_index_image_work, write_of_index, 1>>);

}  // namespace cheetah
