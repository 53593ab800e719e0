// SPDX-License-Identifier: GPL-2.0-only
// The properties of the handler, and opening and closing a table.
#include "handler/ha_cheetah.h"

#include "engine.h"
#include "errors.h"

namespace cheetah {

// InnoDB's limits, so that its tables can be converted without changes.
static constexpr uint key_bytes_max = 3500;
static constexpr uint key_part_bytes_max = 3072;
static constexpr uint ref_length_bytes = 2;

static const std::string temporary_prefix = "#tmp/";

std::string table_name_of_path(const char *path) {
  if (path[0] == FN_CURLIB && path[1] == FN_LIBCHAR) return path + 2;
  // A temporary table: its path leads to the server's tmpdir and its name is unique in the process.
  const char *slash = strrchr(path, FN_LIBCHAR);
  return temporary_prefix + (slash != nullptr ? slash + 1 : path);
}

uint position_bytes(const TableCodec &codec) { return ref_length_bytes + codec.clustered_key_bytes_max(); }

bool is_temporary_name(const std::string &name) {
  return name.compare(0, temporary_prefix.size(), temporary_prefix) == 0;
}

}  // namespace cheetah

using namespace cheetah;

ha_cheetah::ha_cheetah(handlerton *hton, TABLE_SHARE *share) : CostedHandler(hton, share) {}

// Returns the properties of the handler. The server calls this again whenever a statement locks the
// table. A locking read must visit the rows that it counts, so it has no HA_HAS_RECORDS. If reads
// do not lock ranges, the server makes its own checks (UNIQUE .. USING HASH, WITHOUT OVERLAPS)
// after it has written the row, so that one of two concurrent writers finds the row of the other.
handler::Table_flags ha_cheetah::table_flags() const {
  Table_flags counts = read_ == CHEETAH_READ_CONSISTENT || is_temporary() ? HA_HAS_RECORDS : 0;
  // Like InnoDB: statement-based replication has the same effect on the replica only if no other
  // transaction changes the ranges that the statement reads.
  bool ranges_stay = thd_tx_isolation(ha_thd()) > ISO_READ_COMMITTED;
  Table_flags level = ranges_stay ? HA_BINLOG_STMT_CAPABLE : HA_CHECK_UNIQUE_AFTER_WRITE;
  return counts | level | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_VIRTUAL_COLUMNS | HA_CAN_INDEX_BLOBS | HA_CAN_SQL_HANDLER |
         HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION | HA_PRIMARY_KEY_IN_READ_INDEX |
         HA_BINLOG_ROW_CAPABLE | HA_CAN_GEOMETRY | HA_TABLE_SCAN_ON_INDEX |
         HA_DUPLICATE_POS | HA_CRASH_SAFE | HA_CAN_ONLINE_BACKUPS |
         HA_CAN_FULLTEXT | HA_CAN_FULLTEXT_EXT | HA_CAN_SKIP_LOCKED | HA_CONCURRENT_OPTIMIZE | HA_CAN_TABLES_WITHOUT_ROLLBACK |
         copies_offline;
}

const char *ha_cheetah::index_type(uint key_no) {
  return is_fulltext(table_share->key_info[key_no]) ? "FULLTEXT" : "BTREE";
}

// A full-text index has no flags, because it is only searched.
ulong ha_cheetah::index_flags(uint key_no, uint, bool) const {
  if (is_fulltext(table_share->key_info[key_no])) return 0;
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_KEYREAD_ONLY;
  bool is_clustered = key_no == table_share->primary_key;
  return flags | (is_clustered ? HA_CLUSTERED_INDEX : HA_DO_INDEX_COND_PUSHDOWN | HA_DO_RANGE_FILTER_PUSHDOWN);
}

uint ha_cheetah::max_supported_key_length() const { return key_bytes_max; }

uint ha_cheetah::max_supported_key_part_length() const { return key_part_bytes_max; }

// Returns the row format that SHOW TABLE STATUS shows: the format named in the definition.
enum row_type ha_cheetah::get_row_type() const {
  if (table_share == nullptr) return ROW_TYPE_DYNAMIC;
  return static_cast<enum row_type>(
      cheetah_shown_row_format(static_cast<uint8_t>(table_share->row_type), table_share->key_block_size));
}

my_bool ha_cheetah::register_query_cache_table(THD *, const char *, uint, qc_engine_callback *callback, ulonglong *) {
  *callback = nullptr;
  return false;
}

bool ha_cheetah::get_error_message(int error, String *text) {
  if (error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_FK_DEPTH_EXCEEDED) {
    const Session *session = Session::existing(ha_thd());
    if (session == nullptr) return false;
    const std::string &constraint = session->constraint_text();
    text->copy(constraint.c_str(), constraint.size(), system_charset_info);
    return false;
  }
  if (error == HA_ERR_DECRYPTION_FAILED) {
    text->append(STRING_WITH_LEN("Table encrypted but decryption failed: its key is not available or is a different key"));
    return false;
  }
  own_error_text(error, text);
  return error == own_error_reported;
}

// Opens the engine's table, and refuses it if it was created for a different definition.
int ha_cheetah::attach() {
  CheetahTable *table_handle = nullptr;
  int error = handler_error(cheetah_open_table(engine.db, bytes_of(name_), &table_handle), ha_thd());
  if (error != 0) return error;
  engine_table_.reset(table_handle);
  constraints_.forget();
  codec_.row().expect_large_if(cheetah_has_older_rows(table_handle));
  look_for_disabled_indexes();
  bool fits = codec_.describes(table, cheetah_table_extra(table_handle));
  if (!fits || !codec_.init_fulltext(table, table_handle)) {
    sql_print_error("CHEETAH: the .frm file of table '%s' and the engine's catalog describe different tables; restore "
                    "the .frm file that belongs to the table",
                    name_.c_str());
    return HA_ERR_TABLE_DEF_CHANGED;
  }
  describe_keys(table_handle, codec_, table->s, is_temporary_name(name_));
  statistics_version_ = no_version;
  return 0;
}

int ha_cheetah::open(const char *path, int, uint) {
  name_ = table_name_of_path(path);
  path_ = path;
  codec_.init(table);
  geometries_.clear();
  for (Field **field = table->field; *field != nullptr; field++) {
    if ((*field)->type() == MYSQL_TYPE_GEOMETRY && (*field)->stored_in_db()) geometries_.push_back(*field);
  }
  int error = attach();
  if (error != 0) return error;
  row_.reset(cheetah_new_buffer());
  old_row_.reset(cheetah_new_buffer());
  key_used_on_scan = table->s->primary_key;
  ref_length = position_bytes(codec_);
  return info(HA_STATUS_CONST | HA_STATUS_VARIABLE | HA_STATUS_OPEN);
}

int ha_cheetah::close() {
  ranges_.dsmrr_close();
  cursor_.reset();
  abandon_load();
  private_txn_.reset();
  engine_table_.reset();
  return 0;
}

int ha_cheetah::reset() {
  ranges_.dsmrr_close();
  cursor_.reset();
  constraints_.forget_if_old();
  abandon_load();
  scan_ = Scan::none;
  ignores_duplicates_ = changes_duplicates_ = tries_semi_consistent_ = read_unlocked_ = false;
  large_values_.clear();
  return 0;
}

int ha_cheetah::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_IGNORE_DUP_KEY: ignores_duplicates_ = true; break;
    case HA_EXTRA_WRITE_CAN_REPLACE:
    case HA_EXTRA_INSERT_WITH_UPDATE: changes_duplicates_ = true; break;
    case HA_EXTRA_NO_IGNORE_DUP_KEY: ignores_duplicates_ = changes_duplicates_ = false; break;
    case HA_EXTRA_WRITE_CANNOT_REPLACE: changes_duplicates_ = false; break;
    case begin_copy: copies_ = true; break;
    case end_copy: return finish_load();
    case abort_copy: abandon_load(); break;
    default: break;
  }
  return 0;
}

// LargeValues: uses one buffer for each column that had a large value in this statement.
int ha_cheetah::fetch(unsigned slot, CheetahBytes locator, CheetahBytes *value) {
  if (slot >= large_values_.size()) large_values_.resize(slot + 1);
  RowBuffer &buffer = large_values_[slot];
  if (!buffer) buffer.reset(cheetah_new_buffer());
  int32_t code = cheetah_fetch_large(txn_, engine_table_.get(), locator, buffer.get());
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  *value = cheetah_buffer_bytes(buffer.get());
  return 0;
}
