// SPDX-License-Identifier: GPL-2.0-only
#include "information_schema.h"

#include <sql_i_s.h>
#include <sql_show.h>
#include <sql_table.h>

#include "engine.h"
#include "ha_cheetah.h"
#include "settings.h"

namespace Show {

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
                                        CEnd()};

static ST_FIELD_INFO index_columns[] = {Column("TABLE_SCHEMA", Varchar(192), NOT_NULL),
                                        Column("TABLE_NAME", Varchar(192), NOT_NULL),
                                        Column("INDEX_NAME", Varchar(192), NOT_NULL),
                                        Column("PAGES", ULonglong(), NOT_NULL),
                                        Column("LEAF_PAGES", ULonglong(), NOT_NULL),
                                        Column("DEPTH", ULong(), NOT_NULL),
                                        Column("LOGICAL_BYTES", ULonglong(), NOT_NULL),
                                        Column("STORED_BYTES", ULonglong(), NOT_NULL),
                                        CEnd()};

}  // namespace Show

namespace cheetah {

// A name of files as the server shows it.
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
  if (slash == std::string::npos) return {"", decoded(name)};
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

// One table of the engine, while its rows of the information schema are written.
class Described {
 public:
  explicit Described(const std::string &name) : name_(name) {
    CheetahTable *table = nullptr;
    if (cheetah_open_table(engine.db, bytes_of(name), &table) != CHEETAH_OK) return;
    handle_.reset(table);
    sizes_.resize(cheetah_index_count(table));
    if (cheetah_index_stats(table, sizes_.data(), sizes_.size()) != CHEETAH_OK) sizes_.clear();
  }

  bool found() const { return handle_ != nullptr && !sizes_.empty(); }
  const CheetahTable *handle() const { return handle_.get(); }
  const std::vector<CheetahIndexStats> &sizes() const { return sizes_; }

  // Schema and table as the server shows names: decoded from those of files.
  void store_name(TABLE *target) const {
    TableName shown = table_name_of(name_);
    target->field[0]->store(shown.schema.data(), shown.schema.size(), system_charset_info);
    target->field[1]->store(shown.table.data(), shown.table.size(), system_charset_info);
  }

 private:
  std::string name_;
  TableHandle handle_;
  std::vector<CheetahIndexStats> sizes_;
};

static void add_name(void *names, CheetahBytes name) {
  static_cast<std::vector<std::string> *>(names)->push_back(text_of(name));
}

static void store_number(Field *field, ulonglong value) { field->store(static_cast<longlong>(value), true); }

static int write_table(THD *thd, TABLE *target, const Described &table) {
  CheetahIndexStats total = {};
  for (const CheetahIndexStats &size : table.sizes()) {
    total.pages += size.pages;
    total.logical_bytes += size.logical_bytes;
    total.stored_bytes += size.stored_bytes;
  }
  table.store_name(target);
  ulonglong numbers[] = {cheetah_row_count(table.handle()), table.sizes().size(), total.pages, total.logical_bytes,
                         total.stored_bytes, cheetah_auto_increment(table.handle())};
  for (size_t i = 0; i < array_elements(numbers); i++) store_number(target->field[2 + i], numbers[i]);
  uint8_t codec;
  int32_t level;
  cheetah_table_compression(table.handle(), &codec, &level);
  const char *name = compression_names[codec];
  target->field[8]->store(name, strlen(name), system_charset_info);
  target->field[9]->store(level, false);
  return schema_table_store_record(thd, target);
}

static int write_indexes(THD *thd, TABLE *target, const Described &table) {
  for (uint32_t index_no = 0; index_no < table.sizes().size(); index_no++) {
    const CheetahIndexStats &size = table.sizes()[index_no];
    CheetahBytes name = cheetah_index_name(table.handle(), index_no);
    table.store_name(target);
    target->field[2]->store(reinterpret_cast<const char *>(name.data), name.len, system_charset_info);
    ulonglong numbers[] = {size.pages, size.leaf_pages, size.depth, size.logical_bytes, size.stored_bytes};
    for (size_t i = 0; i < array_elements(numbers); i++) store_number(target->field[3 + i], numbers[i]);
    int error = schema_table_store_record(thd, target);
    if (error != 0) return error;
  }
  return 0;
}

template <int (*write)(THD *, TABLE *, const Described &)>
static int fill(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr) return 0;
  std::vector<std::string> names;
  cheetah_table_names(engine.db, add_name, &names);
  for (const std::string &name : names) {
    if (is_own_table(name)) continue;
    Described table(name);
    if (table.found() && write(thd, tables->table, table) != 0) return 1;
  }
  return 0;
}

static int init_tables(void *place) {
  auto *schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = Show::table_columns;
  schema->fill_table = fill<write_table>;
  return 0;
}

static int init_indexes(void *place) {
  auto *schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = Show::index_columns;
  schema->fill_table = fill<write_indexes>;
  return 0;
}

st_mysql_information_schema view_interface = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

st_maria_plugin information_schema_tables =
    describe_view("CHEETAH_TABLES", "Tables of the Cheetah engine", init_tables);
st_maria_plugin information_schema_indexes =
    describe_view("CHEETAH_INDEXES", "Indexes of the Cheetah engine", init_indexes);

}  // namespace cheetah
