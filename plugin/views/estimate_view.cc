// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_COMPRESSION_ESTIMATE: the estimated size of a table of any engine in
// each format. docs/users/statistics.md describes the columns.
#include "views/information_schema.h"

#include <lock.h>
#include <sql_base.h>
#include <sql_show.h>

#include "engine.h"
#include "errors.h"
#include "handler/sampling.h"
#include "settings.h"
#include "views/view_rows.h"

#include <memory>

namespace Show {

static constexpr uint error_digits = 702;

static ST_FIELD_INFO estimate_columns[] = {Column("TABLE_SCHEMA", Varchar(192), NOT_NULL),
                                           Column("TABLE_NAME", Varchar(192), NOT_NULL),
                                           Column("ENGINE", Varchar(64), NOT_NULL),
                                           Column("CURRENT_BYTES", ULonglong(), NOT_NULL),
                                           Column("TABLE_ROWS", ULonglong(), NOT_NULL),
                                           Column("SAMPLED_ROWS", ULonglong(), NOT_NULL),
                                           Column("COMPRESSION", Varchar(8), NOT_NULL),
                                           Column("COMPRESSION_LEVEL", SLong(), NOT_NULL),
                                           Column("KEY_BLOCK_SIZE", ULonglong(), NULLABLE),
                                           Column("ESTIMATED_BYTES", ULonglong(), NOT_NULL),
                                           Column("ERROR_PERCENT", Decimal(error_digits), NULLABLE),
                                           Column("COMPRESS_US", ULonglong(), NOT_NULL),
                                           Column("UNCOMPRESS_US", ULonglong(), NOT_NULL),
                                           CEnd()};

}  // namespace Show

namespace cheetah {

static constexpr uint64_t ns_per_us = 1000;

using EstimateHandle = std::unique_ptr<CheetahEstimate, decltype(&cheetah_free_estimate)>;

static void warn(THD *thd, const TABLE *table, const char *reason) {
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_UNKNOWN_ERROR, "CHEETAH: no estimate for %s.%s: %s", table->s->db.str,
                      table->s->table_name.str, reason);
}

// Returns why this engine could not store the table, or nullptr if it could.
static const char *unsuitable(const TABLE *table) {
  for (uint key_no = 0; key_no < table->s->keys; key_no++) {
    const KEY &key = table->key_info[key_no];
    if (is_fulltext(key) || is_spatial(key)) return "FULLTEXT and SPATIAL keys cannot be estimated";
  }
  if (table->s->keys_in_use.bits_set() < table->s->keys) return "some of its keys are disabled";
  return Sampler::unordered_key(table) != nullptr ? "a key cannot be read in order" : nullptr;
}

class EstimateRows : public Rows {
 public:
  EstimateRows(THD *thd, TABLE *target, const TABLE *of) : Rows(thd, target), of_(of) {}

  void write(const CheetahWeight &weight) {
    const ha_statistics &stats = of_->file->stats;
    start();
    put(0, std::string(of_->s->db.str, of_->s->db.length));
    put(1, std::string(of_->s->table_name.str, of_->s->table_name.length));
    put(2, std::string(of_->file->real_table_type()));
    put(3, stats.data_file_length + stats.index_file_length);
    put(4, weight.rows);
    put(5, weight.sampled_rows);
    put(6, std::string(compression_names[weight.compression]));
    put_signed(7, weight.compression_level);
    if (weight.key_block_size != 0) put(8, weight.key_block_size);
    put(9, weight.bytes);
    if (weight.has_error) put_real(10, static_cast<double>(weight.error_ppm) / 10000);
    put(11, weight.encode_ns / ns_per_us);
    put(12, weight.decode_ns / ns_per_us);
    end();
  }

 private:
  const TABLE *of_;
};

static void write_weight(void *context, const CheetahWeight *weight) {
  auto *rows = static_cast<EstimateRows *>(context);
  if (!rows->failed()) rows->write(*weight);
}

static EstimateHandle new_estimate(TABLE *table) {
  TableCodec codec;
  codec.init(table);
  std::vector<CheetahIndexSpec> indexes = codec.index_specs(table);
  CheetahTableSpec spec = {};
  spec.name = bytes_of(table->s->table_name.str);
  spec.row_format = codec.row().row_format();
  spec.indexes = indexes.data();
  spec.index_count = indexes.size();
  spec.hidden_key = codec.hidden_key();
  CheetahEstimate *estimate = nullptr;
  cheetah_new_estimate(engine.db, &spec, &estimate);
  return EstimateHandle(estimate, cheetah_free_estimate);
}

// Returns true if the statement must end.
static bool estimate_table(THD *thd, TABLE *table, TABLE *view) {
  EstimateHandle estimate = new_estimate(table);
  if (!estimate) {
    warn(thd, table, last_message().c_ptr_safe());
    return false;
  }
  Sampler sampler(thd, table, estimate.get());
  int error = sampler.sample();
  if (error == HA_ERR_ABORTED_BY_USER) return true;
  if (error != 0) {
    warn(thd, table, error == own_error_limit ? last_message().c_ptr_safe() : "its rows cannot be read");
    return false;
  }
  if (sampler.is_partial()) {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_NOTE, ER_UNKNOWN_ERROR,
                        "CHEETAH: only the first rows of %s.%s were sampled; it has no integer key to spread the samples by",
                        table->s->db.str, table->s->table_name.str);
  }
  EstimateRows rows(thd, view, table);
  return cheetah_weigh(estimate.get(), table->file->stats.records, write_weight, &rows) != CHEETAH_CODE_OK || rows.failed();
}

// The server calls this with each opened table that matches the conditions on the first two
// columns.
static int process_table(THD *thd, TABLE_LIST *tables, TABLE *view, bool failed, const LEX_CSTRING *, const LEX_CSTRING *) {
  if (failed) {
    if (thd->is_error()) {
      push_warning(thd, Sql_condition::WARN_LEVEL_WARN, thd->get_stmt_da()->sql_errno(), thd->get_stmt_da()->message());
    }
    thd->clear_error();
    return 0;
  }
  TABLE *table = tables->table;
  bool is_stored = !tables->view && !tables->schema_table && table != nullptr && table->file != nullptr &&
                   (table->s->table_category == TABLE_CATEGORY_USER || table->s->table_category == TABLE_CATEGORY_SYSTEM);
  if (engine.db == nullptr || !is_stored || table->s->sequence) return 0;
  if (const char *reason = unsuitable(table)) {
    warn(thd, table, reason);
    return 0;
  }
  table->use_all_columns();
  table->reginfo.lock_type = TL_READ;
  MYSQL_LOCK *lock = mysql_lock_tables(thd, &table, 1, 0);
  if (lock == nullptr) return 1;
  table->file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK);
  bool ends = estimate_table(thd, table, view);
  mysql_unlock_tables(thd, lock);
  return ends;
}

static int init_estimate(void *place) {
  auto *schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = Show::estimate_columns;
  schema->fill_table = get_all_tables;
  schema->process_table = process_table;
  schema->idx_field1 = 0;
  schema->idx_field2 = 1;
  schema->i_s_requested_object = OPEN_TABLE_ONLY;
  return 0;
}

st_maria_plugin information_schema_compression_estimate =
    describe_view("CHEETAH_COMPRESSION_ESTIMATE", "Estimated sizes of tables in each format of the Cheetah engine", init_estimate);

}  // namespace cheetah
