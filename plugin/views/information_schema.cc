// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_TABLES and CHEETAH_INDEXES: sizes. docs/users/statistics.md describes
// the columns.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>
#include <sql_table.h>

#include "engine.h"
#include "settings.h"
#include "views/view_rows.h"

namespace Show {

// Precision and scale in the server's encoding: 100 * precision + scale.
static constexpr uint ratio_digits = 1202, percent_digits = 502;

static ST_FIELD_INFO table_columns[] = {Column("TABLE_SCHEMA", Varchar(192), NOT_NULL),
                                        Column("TABLE_NAME", Varchar(192), NOT_NULL),
                                        Column("TABLE_ROWS", ULonglong(), NOT_NULL),
                                        Column("INDEX_COUNT", ULong(), NOT_NULL),
                                        Column("PAGES", ULonglong(), NOT_NULL),
                                        Column("LOGICAL_BYTES", ULonglong(), NOT_NULL),
                                        Column("STORED_BYTES", ULonglong(), NOT_NULL),
                                        Column("AUTO_INCREMENT", ULonglong(), NOT_NULL),
                                        Column("COMPRESSION", Varchar(8), NOT_NULL),
                                        Column("COMPRESSION_LEVEL", SLong(), NOT_NULL),
                                        Column("LOGICAL_DATA_BYTES", ULonglong(), NOT_NULL),
                                        Column("LOGICAL_INDEX_BYTES", ULonglong(), NOT_NULL),
                                        Column("STORED_DATA_BYTES", ULonglong(), NOT_NULL),
                                        Column("STORED_INDEX_BYTES", ULonglong(), NOT_NULL),
                                        Column("RATIO", Decimal(ratio_digits), NULLABLE),
                                        Column("FREE_BYTES", ULonglong(), NOT_NULL),
                                        Column("ALLOCATED_BYTES", ULonglong(), NOT_NULL),
                                        Column("CACHED_BYTES", ULonglong(), NOT_NULL),
                                        Column("FORMAT_VERSION", ULong(), NOT_NULL),
                                        CEnd()};

static ST_FIELD_INFO index_columns[] = {Column("TABLE_SCHEMA", Varchar(192), NOT_NULL),
                                        Column("TABLE_NAME", Varchar(192), NOT_NULL),
                                        Column("INDEX_NAME", Varchar(192), NOT_NULL),
                                        Column("PAGES", ULonglong(), NOT_NULL),
                                        Column("LEAF_PAGES", ULonglong(), NOT_NULL),
                                        Column("DEPTH", ULong(), NOT_NULL),
                                        Column("LOGICAL_BYTES", ULonglong(), NOT_NULL),
                                        Column("STORED_BYTES", ULonglong(), NOT_NULL),
                                        Column("COMPRESSION", Varchar(8), NOT_NULL),
                                        Column("COMPRESSION_LEVEL", SLong(), NOT_NULL),
                                        Column("RATIO", Decimal(ratio_digits), NULLABLE),
                                        Column("FREE_BYTES", ULonglong(), NOT_NULL),
                                        Column("ALLOCATED_BYTES", ULonglong(), NOT_NULL),
                                        Column("CACHED_BYTES", ULonglong(), NOT_NULL),
                                        Column("FILL_PERCENT", Decimal(percent_digits), NULLABLE),
                                        CEnd()};

}  // namespace Show

namespace cheetah {

// Converts a file name to the name that the server shows.
static std::string decoded(const std::string &file_name) {
  size_t partition = file_name.find("#P#");
  std::string base = file_name.substr(0, partition);
  char text[NAME_LEN * 2 + 1];
  size_t length = filename_to_tablename(base.c_str(), text, sizeof(text), true);
  std::string name(text, length);
  if (partition != std::string::npos) name += file_name.substr(partition);
  return name;
}

TableName table_name_of(const std::string &name) {
  size_t slash = name.find('/');
  // The engine's own tables do not have file names. A table of words has a number after '/'.
  if (slash == std::string::npos || name[0] == '#') return {"", name};
  return {decoded(name.substr(0, slash)), decoded(name.substr(slash + 1))};
}

static std::string quoted(const std::string &name) {
  std::string text = "`";
  for (char c : name) text += c == '`' ? "``" : std::string(1, c);
  return text + "`";
}

std::string quoted_table_name(const std::string &name) {
  TableName shown = table_name_of(name);
  return shown.schema.empty() ? quoted(shown.table) : quoted(shown.schema) + "." + quoted(shown.table);
}

// Puts `times` * `part` / `whole` into the column; leaves it NULL if `whole` is 0.
static void put_quotient(Rows *rows, uint column, uint64_t part, uint64_t whole, uint times) {
  if (whole != 0) rows->put_real(column, static_cast<double>(part) * times / static_cast<double>(whole));
}

static void put_name(Rows *rows, const std::string &name) {
  TableName shown = table_name_of(name);
  rows->put(0, shown.schema);
  rows->put(1, shown.table);
}

static void put_compression(Rows *rows, uint column, uint8_t codec, int32_t level) {
  rows->put(column, std::string(compression_names[codec]));
  rows->put_signed(column + 1, level);
}

static void write_table(void *context, const CheetahTableSizes *table) {
  auto *rows = static_cast<Rows *>(context);
  std::string name = text_of(table->name);
  if (rows->failed()) return;
  const CheetahSizes &data = table->data, &secondary = table->secondary;
  uint64_t stored = data.stored_bytes + secondary.stored_bytes;
  rows->start();
  put_name(rows, name);
  rows->put(2, table->rows);
  rows->put(3, table->index_count);
  rows->put(4, data.pages + secondary.pages);
  rows->put(5, data.logical_bytes + secondary.logical_bytes);
  rows->put(6, stored);
  rows->put(7, table->auto_increment);
  put_compression(rows, 8, table->compression, table->compression_level);
  rows->put(10, data.logical_bytes);
  rows->put(11, secondary.logical_bytes);
  rows->put(12, data.stored_bytes);
  rows->put(13, secondary.stored_bytes);
  put_quotient(rows, 14, data.stored_logical_bytes + secondary.stored_logical_bytes, stored, 1);
  rows->put(15, data.free_bytes + secondary.free_bytes);
  rows->put(16, data.allocated_bytes + secondary.allocated_bytes);
  rows->put(17, data.cached_bytes + secondary.cached_bytes);
  rows->put(18, uint64_t{table->format_version});
  rows->end();
}

static void write_index(void *context, const CheetahIndexSizes *index) {
  auto *rows = static_cast<Rows *>(context);
  std::string name = text_of(index->table);
  if (rows->failed()) return;
  const CheetahSizes &sizes = index->sizes;
  rows->start();
  put_name(rows, name);
  rows->put(2, text_of(index->index));
  rows->put(3, sizes.pages);
  rows->put(4, sizes.leaf_pages);
  rows->put(5, sizes.depth);
  rows->put(6, sizes.logical_bytes);
  rows->put(7, sizes.stored_bytes);
  put_compression(rows, 8, index->compression, index->compression_level);
  put_quotient(rows, 10, sizes.stored_logical_bytes, sizes.stored_bytes, 1);
  rows->put(11, sizes.free_bytes);
  rows->put(12, sizes.allocated_bytes);
  rows->put(13, sizes.cached_bytes);
  put_quotient(rows, 14, sizes.leaf_used_bytes, sizes.leaf_bytes, 100);
  rows->end();
}

// Like InnoDB's views, shows rows only to users with the PROCESS privilege.
template <typename Sink, int32_t (*list)(const CheetahDb *, Sink, void *), Sink write>
static int fill(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return list(engine.db, write, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_mysql_information_schema view_interface = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

st_maria_plugin information_schema_tables =
    describe_view("CHEETAH_TABLES", "Tables of the Cheetah engine",
                  init_view<Show::table_columns, fill<CheetahTableSizesSink, cheetah_list_table_sizes, write_table>>);
st_maria_plugin information_schema_indexes =
    describe_view("CHEETAH_INDEXES", "Indexes of the Cheetah engine",
                  init_view<Show::index_columns, fill<CheetahIndexSizesSink, cheetah_list_index_sizes, write_index>>);

}  // namespace cheetah
