// SPDX-License-Identifier: GPL-2.0-only
// The handler: one open instance of a table. Most methods convert their arguments, call the engine
// once, convert the result, and map the error. They are defined in ha_cheetah.cc (open, flags),
// writes.cc, reads.cc, fulltext.cc, locking.cc, loads.cc, keys.cc, numbering.cc, statistics.cc and
// checking.cc, in ddl.cc and alter.cc of ../ddl, in foreign_keys.cc, told_server.cc and actions.cc
// of ../constraints, and in cluster.cc of ../transactions.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "transactions/session.h"
#include "constraints/foreign_keys.h"
#include "ddl/table_codec.h"

#include <memory>
#include <string>

namespace cheetah {

class AlterContext;
class Alteration;
class SearchTexts;
struct Action;
struct FulltextSearch;
struct Refusal;
struct Orphans;

// Returns the engine's name of the table with this path ("./db/table" becomes "db/table").
std::string table_name_of_path(const char *path);
// Returns whether the engine's name is the name of a temporary table.
bool is_temporary_name(const std::string &name);
// Returns the size of a row's position: `ref_length` of the handler.
uint position_bytes(const TableCodec &codec);

// Describes to the engine the encoding of a table's keys and the statistics options of its
// definition. From then on the engine collects statistics automatically.
void describe_keys(const CheetahTable *engine_table, const TableCodec &codec, const TABLE_SHARE *share,
                   bool is_temporary);

struct CloseTable {
  void operator()(CheetahTable *table) const { cheetah_close_table(table); }
};
struct CloseCursor {
  void operator()(CheetahCursor *cursor) const { cheetah_close_cursor(cursor); }
};
struct FreeBuffer {
  void operator()(CheetahBuffer *buffer) const { cheetah_free_buffer(buffer); }
};
struct FreeLoad {
  void operator()(CheetahLoad *load) const { cheetah_free_load(load); }
};
struct FreeWords {
  void operator()(CheetahWords *words) const { cheetah_free_words(words); }
};
struct FreeTxn {
  void operator()(CheetahTxn *txn) const { cheetah_free_txn(txn); }
};
using TableHandle = std::unique_ptr<CheetahTable, CloseTable>;
using CursorHandle = std::unique_ptr<CheetahCursor, CloseCursor>;
using RowBuffer = std::unique_ptr<CheetahBuffer, FreeBuffer>;
using WordList = std::unique_ptr<CheetahWords, FreeWords>;
using LoadHandle = std::unique_ptr<CheetahLoad, FreeLoad>;
using TxnHandle = std::unique_ptr<CheetahTxn, FreeTxn>;

}  // namespace cheetah

class ha_cheetah final : public cheetah::CostedHandler, private cheetah::LargeValues {
 public:
  ha_cheetah(handlerton *hton, TABLE_SHARE *share);

  // The abilities of the engine.
  Table_flags table_flags() const override;
  ulong index_flags(uint key_no, uint part, bool all_parts) const override;
  const char *index_type(uint key_no) override;
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_parts() const override { return MAX_REF_PARTS; }
  uint max_supported_key_length() const override;
  uint max_supported_key_part_length() const override;
  enum row_type get_row_type() const override;
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }
  my_bool register_query_cache_table(THD *, const char *, uint, qc_engine_callback *callback, ulonglong *) override;
  bool get_error_message(int error, String *text) override;

  // Opening and closing.
  int open(const char *path, int mode, uint test_if_locked) override;
  int close() override;
  int reset() override;
  int extra(enum ha_extra_function operation) override;

  // Locks and statements.
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type lock_type) override;
  uint lock_count() const override { return 0; }
  int external_lock(THD *thd, int lock_type) override;
  int start_stmt(THD *thd, thr_lock_type lock_type) override;
  handler *clone(const char *, MEM_ROOT *root) override;
  void init_table_handle_for_HANDLER() override { set_read(CHEETAH_READ_CONSISTENT); }

  // Rows.
  int write_row(const uchar *record) override;
  int update_row(const uchar *old_record, const uchar *new_record) override;
  int delete_row(const uchar *record) override;
  int truncate() override;
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  int delete_all_rows() override { return HA_ERR_WRONG_COMMAND; }
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  int reset_auto_increment(ulonglong value) override;

  // Scans.
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *left, const uchar *right) override;
  int index_init(uint key_no, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *record, const uchar *key, key_part_map parts, enum ha_rkey_function find) override;
  int index_read_last_map(uchar *record, const uchar *key, key_part_map parts) override;
  int index_next(uchar *record) override;
  int index_prev(uchar *record) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int index_next_same(uchar *record, const uchar *key, uint length) override;
  int read_range_first(const key_range *start, const key_range *end, bool equal, bool sorted) override;
  void unlock_row() override;
  bool was_semi_consistent_read() override { return read_unlocked_; }
  void try_semi_consistent_read(bool yes) override;
  Item *idx_cond_push(uint key_no, Item *condition) override;
  bool rowid_filter_push(Rowid_filter *filter) override;

  // Many ranges of a key, which the server may sort (reads.cc).
  int multi_range_read_init(RANGE_SEQ_IF *ranges, void *context, uint count, uint mode, HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  ha_rows multi_range_read_info(uint key_no, uint count, uint keys, uint key_parts, uint *bytes, uint *mode,
                                Cost_estimate *cost) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t bytes) override;

  void column_bitmaps_signal() override;

  // Full-text searches.
  int ft_init() override;
  FT_INFO *ft_init_ext(uint flags, uint key_no, String *text) override;
  int ft_read(uchar *record) override;
  void ft_end() override;
  // Return the rank of the row in the record, and of the row that `ft_read` returned last; 0 if the
  // row does not match.
  float rank_of(cheetah::FulltextSearch *search, const uchar *record);
  float rank_of_last(cheetah::FulltextSearch *search);

  // Statistics and costs.
  int info(uint what) override;
  ha_rows records() override;
  ha_rows estimate_rows_upper_bound() override;
  ha_rows records_in_range(uint key_no, const key_range *low, const key_range *high, page_range *pages) override;

  // Definition.
  int create(const char *path, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *path) override;
  int rename_table(const char *source, const char *target) override;
  void update_create_info(HA_CREATE_INFO *info) override;
  bool can_convert_nocopy(const Field &field, const Column_definition &definition) const override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *change) override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *change) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *change) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *change, bool commit) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;

  // Constraints.
  char *get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char *text) override;
  int get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  int get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  bool referenced_by_foreign_key() const noexcept override;
  bool can_switch_engines() override;
  bool is_fk_defined_on_table_or_index(uint key_no) override;
  bool get_foreign_dup_key(char *child_table, uint table_bytes, char *child_key, uint key_bytes) override;

  // Maintenance.
  int check(THD *thd, HA_CHECK_OPT *options) override;
  int analyze(THD *thd, HA_CHECK_OPT *options) override;
  int optimize(THD *thd, HA_CHECK_OPT *options) override;
  int repair(THD *thd, HA_CHECK_OPT *options) override;
  bool check_and_repair(THD *) override { return true; }
  int disable_indexes(key_map keep, bool persist) override;
  int enable_indexes(key_map, bool persist) override;
  int indexes_are_disabled() override { return has_disabled_; }

 private:
  // ../transactions/cluster.cc
  bool stays_on_this_node() const;
  int refuse_unreplicated() const;
  static void warn_of_unreplicated(THD *thd, const char *name);

  // locking.cc
  bool is_sequence() const;
  bool is_temporary() const;
  void set_read(CheetahRead read);
  CheetahTxn *txn() const { return txn_; }
  // Returns whether the statement does not write the rows that it reads. Then only the requested
  // columns are decoded. A second handler that searches for duplicates of a row to be written has a
  // read lock, but the statement writes its table.
  bool reads_only() const { return get_lock_type() == F_RDLCK && table->reginfo.lock_type < TL_FIRST_WRITE; }
  int begin_statement(THD *thd, bool writes);
  // Begins a statement if the server has not locked the table.
  int begin_unlocked(bool writes);
  void count_use(bool begins);
  bool locks_whole_table(THD *thd) const;
  bool is_kept_from_others() const;
  int lock_for_statement(THD *thd, bool writes);
  int lock_engine_table(bool exclusive);
  int lock_to_scan();
  int use_private_transaction(THD *thd, bool writes);
  int end_private_transaction();

  // ha_cheetah.cc
  int attach();
  int fetch(unsigned slot, CheetahBytes locator, CheetahBytes *value) override;

  // writes.cc
  void encode_clustered_key(const uchar *record, cheetah::Buffer *out);
  void encode_secondaries(const uchar *record, bool check_unique);
  void add_entry(unsigned engine_index, size_t key_start, size_t payload_start, bool check_unique);
  bool writes_clustered_columns() const;
  bool secondary_changes(unsigned engine_index, const uchar *old_record, const uchar *new_record, bool all);
  void compute_virtual_key_columns();
  bool replaces_by_same_row(const cheetah::RowCodec::Old &old);
  int fetch_old_row(const uchar *new_record, CheetahBytes key, CheetahBytes *row);
  int write_failed(int32_t code);
  void set_pointers();
  bool looks_at_constraints();
  int begin_change();
  int insert(const uchar *record);
  bool empties_geometry(const uchar *old_record, const uchar *new_record) const;
  int change_row(const uchar *old_record, const uchar *new_record);
  int undo_row(const CheetahSavepoint &before, int error);

  // ../constraints/foreign_keys.cc and actions.cc
  friend class cheetah::ForeignKeys;
  int too_deep(const CheetahForeignKey &constraint);
  int refuse_by(const CheetahForeignKey &constraint, int error, const cheetah::Refusal &refusal);
  // Applies the action of a constraint to the rows of this child. `cause`: the change of the
  // parent's row.
  int follow(const cheetah::Action &action, const cheetah::CascadeStep *cause);
  int follow_row(const cheetah::Action &action, uint32_t index_no, CheetahCursor *cursor, const CheetahFound &found,
                 CheetahBuffer *row);
  void write_only(const std::vector<cheetah::KeyPart> &parts, size_t count);

  // fulltext.cc
  friend class cheetah::SearchTexts;
  int decode_whole_row(CheetahBytes key, CheetahBytes row, uchar *record);
  int search_words(const cheetah::FulltextSearch &search, CheetahMatches **matches);
  int rank_now(cheetah::FulltextSearch *search, CheetahBytes key, float *rank);
  float rank_of_key(cheetah::FulltextSearch *search, CheetahBytes key);
  static CheetahWords *words(cheetah::WordList *list);
  int insert_words(const uchar *record);
  int delete_words(const uchar *record);
  int change_words(const uchar *old_record, const uchar *new_record);
  int begin_word_loads();

  // loads.cc
  int begin_load();
  int finish_load();
  void abandon_load();
  int load_failed(const CheetahLoad *load, int32_t code);
  int words_failed(int32_t code);
  int show_refused_row(const CheetahLoad *load);

  // numbering.cc
  int note_inserted_number(const uchar *record, bool duplicate);
  void note_updated_number(const uchar *old_record, const uchar *new_record);

  // reads.cc
  int open_cursor(unsigned engine_index);
  int seek(uint8_t mode, CheetahBytes key, CheetahSeekEnd end = {CHEETAH_END_NONE, {nullptr, 0}});
  CheetahSeekEnd end_of_range();
  uint8_t end_of_same(key_part_map parts) const;
  int seek_and_deliver(uint8_t mode, CheetahBytes key, bool forward, uchar *record);
  int step(bool forward, uchar *record);
  int move(bool forward);
  int move_from_outside(bool forward);
  int32_t next_rows();
  void end_run();
  void pause_scan();
  int deliver(uchar *record, bool forward);
  int deliver_clustered(uchar *record);
  int deliver_secondary(uchar *record, bool *passed);
  static int outcome_of(check_result_t result, bool *passed);
  int check_entry(bool conditional, bool filtered, bool *passed);
  bool decode_entry(uchar *record);
  void prepare_ranges(uint *mode) override;
  void append_key_image(uint key_no, const uchar *image, key_part_map parts, cheetah::Buffer *out);
  bool entry_starts_with(const cheetah::Buffer &prefix) const;
  int read_row_of_entry(uchar *record, cheetah::RowCodec::Columns columns);
  int decode_row(CheetahBytes key, CheetahBytes row, uchar *record);
  int decode_row(CheetahBytes key, CheetahBytes row, uchar *record, cheetah::RowCodec::Columns columns);
  cheetah::RowCodec::Columns requested_columns() const;
  int compute_virtual_columns_of_key(uint key_no);
  void remember_position(CheetahBytes clustered_key);
  void store_ref(CheetahBytes clustered_key, uchar *place) const;
  static CheetahBytes ref_key(const uchar *place);

  // alter.cc
  friend class cheetah::AlterContext;
  friend class cheetah::Alteration;

  // keys.cc
  void look_for_disabled_indexes();
  void tell_keys_in_use();
  int indexes_changed(int32_t code);
  bool is_partition() const;

  // statistics.cc
  double clustered_pages() const override;
  int refresh_sizes();
  void look_for_cardinalities();
  void set_cardinalities();
  void tell_creation();
  void bound(uint key_no, const key_range *range, cheetah::Buffer *out);

  // checking.cc
  int result_of_check(THD *thd, int32_t code, unsigned findings);
  int cross_check(THD *thd);
  int quick_check(THD *thd);
  int full_check(THD *thd);
  int32_t check_words(CheetahTextSink sink, void *context);
  int32_t search_orphans(size_t no, cheetah::Orphans *orphans);
  int report_rows_without_parent(THD *thd);

  cheetah::TableCodec codec_;
  cheetah::TableHandle engine_table_;
  mutable cheetah::ForeignKeys constraints_{this};
  std::string name_, path_;
  // For each index of the engine, whether it is disabled.
  std::vector<bool> disabled_;
  bool has_disabled_ = false;
  std::vector<const Field *> geometries_;  // stored columns

  // State of the current statement.
  cheetah::Session *session_ = nullptr;
  CheetahTxn *txn_ = nullptr;  // nullptr while the table is not locked
  bool locks_when_scanned_ = false;  // the source of a copy: locked as a whole when a scan begins
  bool is_counted_ = false;  // counted among the tables that the connection uses
  CheetahRead read_ = CHEETAH_READ_CONSISTENT;
  CheetahRead locked_read_ = CHEETAH_READ_EXCLUSIVE;  // for the kind of lock that the server requested
  cheetah::TxnHandle private_txn_;
  bool changes_duplicates_ = false;  // REPLACE and ON DUPLICATE KEY UPDATE: a row with a duplicate key is changed
  bool skips_locked_ = false;           // SKIP LOCKED
  bool tries_semi_consistent_ = false;  // rows locked by others are read in their last committed version
  bool read_unlocked_ = false;          // the last row was read this way
  bool in_range_read_ = false;       // `end_range` belongs to the current search
  int numbering_error_ = 0;
  ulonglong numbered_rows_left_ = 0;  // remaining rows of the number that the statement announced
  ulonglong reserved_up_to_ = 0;      // lower AUTO_INCREMENT numbers are reserved for the statement

  // A load of rows into a new table that the server copies into, or into an empty table. It begins
  // with the first row.
  bool in_bulk_insert_ = false;
  bool copies_ = false;
  bool load_was_asked_ = false;
  bool ignores_duplicates_ = false;  // IGNORE, REPLACE and ON DUPLICATE KEY UPDATE: the statement continues after a duplicate
  cheetah::LoadHandle load_;
  std::vector<cheetah::LoadHandle> word_loads_;  // for each full-text index; null if its words are not loaded

  // State of the current scan.
  cheetah::CursorHandle cursor_;
  unsigned cursor_index_ = 0;
  // `missed`: at the position that the key of the last search would have. `behind`: after all
  // entries that start with that key.
  enum class Scan : uchar { none, fresh, on_entry, missed, behind, paused, past_last, past_first } scan_ = Scan::none;
  bool seeks_prefix_ = false;  // the cursor ends after the entries that start with the key of the last search
  CheetahFound found_ = {};
  // Rows that the engine returned in one call. The next row is at `run_next_`.
  bool in_runs_ = false;
  std::vector<CheetahFound> run_;
  size_t run_next_ = 0;
  size_t run_count_ = 0;
  cheetah::Buffer saved_key_;    // stored key of the current entry of a paused scan
  cheetah::Buffer current_key_;  // clustered key of the row read last, in a table with a hidden key
  cheetah::RowBuffer row_;       // row that was looked up by key
  cheetah::Buffer search_key_;
  cheetah::Buffer end_key_;

  // Reused from row to row.
  cheetah::Buffer scratch_;
  // The table's tmp_set while virtual columns are computed.
  std::vector<my_bitmap_map> kept_set_;
  cheetah::Buffer key_;
  cheetah::Buffer old_key_;
  cheetah::Buffer row_image_;
  cheetah::Buffer entry_bytes_;
  std::vector<CheetahEntry> entries_;
  std::vector<CheetahEntry> old_entries_;
  cheetah::RowBuffer old_row_;
  cheetah::WordList words_, old_words_;
  const cheetah::FulltextSearch *read_search_ = nullptr;  // that returned the last row
  cheetah::Buffer read_key_;                              // of that row
  std::vector<cheetah::RowBuffer> large_values_;

  static constexpr uint64_t no_version = ~0ULL;

  // Sizes at the last `refresh_sizes`.
  std::vector<CheetahIndexStats> sizes_;
  uint64_t fulltext_bytes_ = 0;
  ha_rows sized_rows_ = 0;
  uint64_t statistics_version_ = no_version;  // of the cardinalities passed to the server
};
