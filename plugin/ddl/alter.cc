// SPDX-License-Identifier: GPL-2.0-only
// ALTER TABLE in place: changes of a definition that keep the table's rows and indexes, and the
// indexes that the engine builds for the new definition.
//
// The server first calls `check_if_supported_inplace_alter`, whose result decides which ALGORITHM=
// and LOCK= are possible. Then it calls `prepare_inplace_alter_table`, `inplace_alter_table` and,
// while it has exclusive access to the table, `commit_inplace_alter_table`. In the last call the
// engine takes over the new definition, of all partitions at once, together with the version of the
// .frm file. After a crash the server's ddl log uses this version to find out which .frm file
// belongs to the table (docs/developers/mariadb.md, "DDL and crashes").
#include "ddl/alter.h"

#include "constraints/refusals.h"
#include "ddl/alteration.h"
#include "ddl/orphans.h"
#include "ddl/table_options.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "handler/progress.h"
#include "settings.h"
#include "transactions/stages.h"

#include <algorithm>

using namespace cheetah;

namespace cheetah {

int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  std::string name = table_name_of_path(path);
  CheetahBytes mark{version->str, version->length};
  if (cheetah_has_mark(engine.db, bytes_of(name), mark)) return 0;
  std::vector<std::string> partitions = table_names(name + "#P#");
  for (const std::string &partition : partitions) {
    if (!cheetah_has_mark(engine.db, bytes_of(partition), mark)) return 1;
  }
  return partitions.empty() ? 1 : 0;
}

struct FreePostings {
  void operator()(CheetahPostings *postings) const { cheetah_free_postings(postings); }
};
struct FreeBuild {
  void operator()(CheetahBuild *build) const { cheetah_free_build(build); }
};

// Computes the entries of rows in the new indexes. The rows contain their large values if an entry
// needs one.
class EntryBuilder final : private LargeValues {
 public:
  explicit EntryBuilder(const Alteration &alteration) : alteration_(alteration) {
    columns_.resize(alteration.altered()->s->fields);
    const TableCodec &codec = alteration.codec();
    for (unsigned i = 1; i < alteration.from().size(); i++) {
      if (alteration.from()[i] != Alteration::no_index) continue;
      built_.push_back(i);
      need(codec.secondary_of(i).key());
    }
    if (!codec.hidden_key()) need(codec.clustered());
  }

  const std::vector<unsigned> &built() const { return built_; }
  bool with_values() const { return with_values_; }

  static int32_t of_row(void *self, CheetahBytes key, CheetahBytes row, CheetahBuiltEntries *entries) {
    return static_cast<EntryBuilder *>(self)->add(key, row, entries);
  }

  // Decodes the key columns into the record.
  bool decode(CheetahBytes key, CheetahBytes row) { return decode_columns(key, row, columns_, this); }
  // Decodes the selected columns into the record. `large` reads values that are stored out of line.
  bool decode_columns(CheetahBytes key, CheetahBytes row, const std::vector<bool> &columns, LargeValues *large) {
    TABLE *table = alteration_.altered();
    const TableCodec &codec = alteration_.codec();
    MY_BITMAP *read_set = table->read_set;
    bitmap_clear_all(&table->tmp_set);
    for (uint i = 0; i < columns.size(); i++) {
      if (columns[i]) bitmap_set_bit(&table->tmp_set, i);
    }
    table->read_set = &table->tmp_set;
    int error = codec.row().decode(row, table->record[0], table, RowCodec::Columns::read, large);
    table->read_set = read_set;
    return error == 0 && (codec.hidden_key() || codec.clustered().decode(key, table->record[0]));
  }

 private:
  void need(const KeyCodec &key) {
    for (const KeyPart &part : key.parts()) {
      const Field *field = part.field();
      columns_[field->field_index] = true;
      with_values_ |= alteration_.codec().row().may_be_large(field);
    }
  }

  int32_t add(CheetahBytes key, CheetahBytes row, CheetahBuiltEntries *entries) {
    if (!decode(key, row)) return CHEETAH_CODE_CORRUPTION;
    const uchar *record = alteration_.altered()->record[0];
    for (uint32_t no = 0; no < built_.size(); no++) {
      const SecondaryCodec &index = alteration_.codec().secondary_of(built_[no]);
      entry_.clear();
      index.key().append(record, &scratch_, &entry_);
      size_t payload_start = entry_.size();
      index.append_payload(record, &entry_);
      bool unique = index.key().unique() && !index.key().has_null(record);
      cheetah_add_built_entry(entries, no + 1, unique, entry_.bytes(0, payload_start),
                              entry_.bytes(payload_start, entry_.size()));
    }
    return CHEETAH_CODE_OK;
  }

  int fetch(unsigned, CheetahBytes, CheetahBytes *) override { return HA_ERR_CRASHED; }

  const Alteration &alteration_;
  std::vector<unsigned> built_;
  std::vector<bool> columns_;
  bool with_values_ = false;
  Buffer scratch_, entry_;
};

// The ALTER TABLE of one table or partition.
class AlterContext final : public inplace_alter_handler_ctx {
 public:
  AlterContext(const ha_cheetah *handler, TABLE *altered, const Alter_inplace_info *change, CheetahTxn *txn,
               const CheetahTable *table)
      : alteration_(handler, altered, change), entries_(alteration_), thd_(altered->in_use), txn_(txn), table_(table),
        fulltext_specs_(alteration_.codec()), definition_(altered->in_use, altered, alteration_.codec(), change->alter_info),
        name_(handler->name_) {
    alteration_.codec().append_fingerprint(&fingerprint_);
    if (alteration_.has_names()) TableCodec::append_names(altered, &fingerprint_);
    names_.reserve(alteration_.from().size());
    uint32_t built = 0;
    for (unsigned i = 0; i < alteration_.from().size(); i++) {
      bool kept = alteration_.from()[i] != Alteration::no_index;
      names_.push_back(alteration_.index_name(i));
      indexes_.push_back(CheetahAlteredIndex{bytes_of(names_.back()), kept ? alteration_.from()[i] : 0, kept ? 0 : ++built});
    }
    for (size_t no = 0; no < fulltext_specs_.size(); no++) {
      fulltext_.push_back(CheetahAlteredFulltext{fulltext_specs_[no], alteration_.fulltext_from()[no], nullptr});
    }
    postings_.resize(fulltext_.size());
  }

  const Alteration &alteration() const { return alteration_; }
  void set_format(const CheetahFormat &format) {
    format_ = format;
    keeps_format_ = false;
  }

  int32_t build() {
    const std::vector<unsigned> &built = entries_.built();
    if (built.empty()) return CHEETAH_CODE_OK;
    std::vector<CheetahIndexSpec> specs;
    for (unsigned i : built) {
      const KeyCodec &key = alteration_.codec().secondary_of(i).key();
      specs.push_back(CheetahIndexSpec{bytes_of(names_[i]), key.max_bytes(), key.unique()});
    }
    CheetahBuild *build = nullptr;
    int32_t code = cheetah_begin_build(txn_, table_, specs.data(), specs.size(), entries_.with_values(), &build);
    build_.reset(build);
    if (code != CHEETAH_CODE_OK) return code;
    Progress progress(thd_);
    InStage stage(thd_, &stage_building_indexes);
    return cheetah_run_build(txn_, build, EntryBuilder::of_row, &entries_, report_progress, thd_);
  }

  int check_fulltext() const {
    for (const WordCodec &index : alteration_.codec().fulltext()) {
      if (const char *why = index.why_not()) return refuse_fulltext(index.name(), why);
    }
    return 0;
  }

  // Loads the words of all rows into new full-text indexes. No transaction writes to the table
  // meanwhile. The words are committed even if the statement fails later, but then no definition
  // refers to their tables.
  int build_fulltext(ha_cheetah *file) {
    for (size_t no = 0; no < fulltext_.size(); no++) {
      if (fulltext_[no].from != Alteration::no_index) continue;
      CheetahPostings *made = nullptr;
      int error = handler_error(cheetah_new_postings(engine.db, table_, &made), thd_);
      postings_[no].reset(made);
      fulltext_[no].built = made;
      if (error == 0) error = load_words(file, &alteration_.fulltext(no), made);
      if (error != 0) return error;
    }
    return 0;
  }

  // Describes the columns and constraints of the new definition, and locks the parents of new
  // constraints against changes. Returns 0 or a handler error.
  int find_constraints() {
    int error = definition_.find(name_);
    if (error != 0) return error;
    const CheetahConstraints *constraints = definition_.for_engine();
    for (size_t no = constraints->kept_count; no < constraints->foreign_key_count; no++) {
      std::string parent = text_of(constraints->foreign_keys[no].parent);
      bool locks = alteration_.adds_checked_constraints() && parent != name_;
      error = locks ? lock_parent(parent) : 0;
      if (error != 0) return error;
    }
    CheetahForeignKeys *list = nullptr;
    int32_t code = cheetah_foreign_keys_to_add(engine.db, table_, constraints, &list);
    new_constraints_ = owned(list);
    if (list != nullptr) find_columns_to_check();
    return handler_error(code, thd_);
  }

  // Checks that each row has its parents.
  int check_rows(ha_cheetah *file) {
    if (!new_constraints_ || !alteration_.adds_checked_constraints()) return 0;
    CheetahCursor *opened = nullptr;
    int32_t code = cheetah_lock_table(txn_, table_, false);
    if (code == CHEETAH_CODE_OK)
      code = cheetah_open_cursor(txn_, table_, 0, CHEETAH_READ_SHARED, CHEETAH_ON_LOCKED_WAIT, &opened);
    CursorHandle cursor(opened);
    CheetahFound found = {};
    CheetahBytes no_key{nullptr, 0};
    if (code == CHEETAH_CODE_OK)
      code = cheetah_seek(cursor.get(), CHEETAH_SEEK_FIRST, no_key, {CHEETAH_END_NONE, no_key}, &found);
    for (; code == CHEETAH_CODE_OK; code = cheetah_next(cursor.get(), &found)) {
      if (interrupted(thd_)) return HA_ERR_ABORTED_BY_USER;
      int error = check_row(file, found);
      if (error != 0) return error;
    }
    return code == CHEETAH_CODE_END ? 0 : handler_error(code, thd_);
  }

  // Describes the keys now, because the table may not be opened again for a while.
  void describe_new_keys() const {
    CheetahTable *opened = nullptr;
    if (cheetah_open_table(engine.db, bytes_of(name_), &opened) != CHEETAH_CODE_OK) return;
    TableHandle handle(opened);
    const TABLE *altered = alteration_.altered();
    describe_keys(opened, alteration_.codec(), altered->s, is_temporary_name(name_));
  }

  int32_t finish() {
    if (!build_) return CHEETAH_CODE_OK;
    InStage stage(thd_, &stage_catching_up);
    return cheetah_finish_build(txn_, build_.get(), EntryBuilder::of_row, &entries_);
  }

  CheetahAlteration for_engine(CheetahBytes mark) const {
    return CheetahAlteration{table_, indexes_.data(), indexes_.size(), build_.get(), alteration_.new_rows(),
                             definition_.for_engine(), fulltext_.data(), fulltext_.size(), fingerprint_.bytes(), mark,
                             format_.compression_level, format_.compression, keeps_format_};
  }

  // Reports the failure to the client. For a duplicate key, shows the key of the refused row.
  void report(handler *file, int32_t code) {
    if (code != CHEETAH_CODE_DUPLICATE_KEY) return file->print_error(handler_error(code, thd_), MYF(0));
    CheetahBytes existing, key, row;
    uint32_t no = 0;
    cheetah_last_duplicate(&no, &existing);
    cheetah_row_refused_by_build(build_.get(), &key, &row);
    bool known = no > 0 && no <= entries_.built().size() && entries_.decode(key, row);
    const KEY *duplicate = known ? alteration_.key(entries_.built()[no - 1]) : nullptr;
    print_keydup_error(alteration_.altered(), const_cast<KEY *>(duplicate), MYF(0));
  }

 private:
  // Locks the parent against other statements, as the server does for a copy, and against
  // transactions without a connection. A missing parent is refused later.
  int lock_parent(const std::string &parent) {
    std::string database = shown_database(parent), table = shown_table(parent);
    MDL_request request;
    MDL_REQUEST_INIT(&request, MDL_key::TABLE, database.c_str(), table.c_str(), MDL_SHARED_NO_WRITE, MDL_TRANSACTION);
    if (thd_->mdl_context.acquire_lock(&request, thd_->variables.lock_wait_timeout)) return own_error_reported;
    CheetahTable *opened = nullptr;
    if (cheetah_open_table(engine.db, bytes_of(parent), &opened) != CHEETAH_CODE_OK) return 0;
    TableHandle handle(opened);
    return handler_error(cheetah_lock_table(txn_, opened, false), thd_);
  }

  // Uses a separate transaction: the words must be committed before the definition refers to them.
  int load_words(ha_cheetah *file, WordCodec *index, const CheetahPostings *made) {
    TxnHandle txn(new_transaction());
    if (!txn) return HA_ERR_OUT_OF_MEM;
    CheetahLoad *begun = nullptr;
    int32_t code = cheetah_lock_table(txn_, table_, false);
    if (code == CHEETAH_CODE_OK) code = cheetah_begin_load_of_postings(txn.get(), made, &begun);
    LoadHandle load(begun);
    CheetahCursor *opened = nullptr;
    if (code == CHEETAH_CODE_OK)
      code = cheetah_open_cursor(txn_, table_, 0, CHEETAH_READ_SHARED, CHEETAH_ON_LOCKED_WAIT, &opened);
    CursorHandle cursor(opened);
    CheetahFound found = {};
    CheetahBytes no_key{nullptr, 0};
    if (code == CHEETAH_CODE_OK)
      code = cheetah_seek(cursor.get(), CHEETAH_SEEK_FIRST, no_key, {CHEETAH_END_NONE, no_key}, &found);
    std::vector<bool> columns(alteration_.altered()->s->fields);
    for (const Field *field : index->fields()) columns[field->field_index] = true;
    WordList words(cheetah_new_words());
    for (; code == CHEETAH_CODE_OK; code = cheetah_next(cursor.get(), &found)) {
      if (interrupted(thd_)) return HA_ERR_ABORTED_BY_USER;
      if (!entries_.decode_columns(found.clustered, found.value, columns, file)) return HA_ERR_CRASHED;
      index->collect(alteration_.altered()->record[0], words.get());
      int32_t loaded = cheetah_load_words(txn.get(), load.get(), found.clustered, words.get());
      if (loaded != CHEETAH_CODE_OK) return handler_error(loaded, thd_);
    }
    Progress progress(thd_);
    InStage stage(thd_, &stage_building_indexes);
    if (code == CHEETAH_CODE_END) code = cheetah_finish_load(txn.get(), load.get(), report_progress, thd_);
    if (code == CHEETAH_CODE_OK) code = cheetah_commit(txn.get());
    return handler_error(code, thd_);
  }

  int check_row(ha_cheetah *file, const CheetahFound &found) {
    const CheetahForeignKeys *list = new_constraints_.get();
    if (!entries_.decode_columns(found.clustered, found.value, columns_to_check_, file)) return HA_ERR_CRASHED;
    for (size_t no = 0; no < cheetah_foreign_key_count(list, CHEETAH_ROLE_CHILD); no++) {
      CheetahForeignKey constraint = constraint_of(list, CHEETAH_ROLE_CHILD, no);
      const uchar *record = alteration_.altered()->record[0];
      if (constraint.parent_key.columns == nullptr) return refuse(file, constraint, "the parent table has no index for the constraint");
      bool refers = encode_reference(alteration_.codec(), constraint, CHEETAH_ROLE_CHILD, record, &scratch_, &reference_);
      if (!refers) continue;
      if (!last_.empty() && no == 0 && same(last_, reference_)) continue;
      int32_t code = cheetah_find_reference(txn_, list, CHEETAH_ROLE_CHILD, no, reference_.bytes());
      if (code == CHEETAH_CODE_END) return refuse(file, constraint, "the parent table has no row with that key");
      if (code != CHEETAH_CODE_OK) return handler_error(code, thd_);
      if (no == 0) last_.assign(reference_.bytes());
    }
    return 0;
  }

  int refuse(ha_cheetah *file, const CheetahForeignKey &constraint, const char *reason) {
    Refusal refusal{CHEETAH_ROLE_CHILD, &alteration_.codec(), alteration_.altered()->record[0], reason};
    return file->refuse_by(constraint, HA_ERR_NO_REFERENCED_ROW, refusal);
  }

  void find_columns_to_check() {
    const CheetahForeignKeys *list = new_constraints_.get();
    columns_to_check_.resize(alteration_.altered()->s->fields);
    for (size_t no = 0; no < cheetah_foreign_key_count(list, CHEETAH_ROLE_CHILD); no++) {
      CheetahForeignKey constraint = constraint_of(list, CHEETAH_ROLE_CHILD, no);
      for (size_t i = 0; i < constraint.column_count; i++) {
        columns_to_check_[constraint.child_key.columns[i].column] = true;
      }
    }
  }

  static bool same(const Buffer &one, const Buffer &other) {
    return one.size() == other.size() && memcmp(one.data(), other.data(), one.size()) == 0;
  }

  Alteration alteration_;
  EntryBuilder entries_;
  THD *thd_;
  CheetahTxn *txn_;
  const CheetahTable *table_;
  Buffer fingerprint_;
  std::vector<std::string> names_;
  std::vector<CheetahAlteredIndex> indexes_;
  CheetahFormat format_ = {};
  bool keeps_format_ = true;
  std::unique_ptr<CheetahBuild, FreeBuild> build_;
  FulltextSpecs fulltext_specs_;
  std::vector<CheetahAlteredFulltext> fulltext_;
  std::vector<std::unique_ptr<CheetahPostings, FreePostings>> postings_;
  Definition definition_;
  std::string name_;
  ForeignKeyList new_constraints_;
  std::vector<bool> columns_to_check_;
  Buffer scratch_, reference_, last_;
};

}  // namespace cheetah

// Values are stored without padding, so the rows stay valid when a column becomes longer.
bool ha_cheetah::can_convert_nocopy(const Field &field, const Column_definition &definition) const {
  return field.real_type() == MYSQL_TYPE_VARCHAR && definition.type_handler() == field.type_handler() &&
         definition.charset == field.charset() && definition.compression_method() == nullptr &&
         definition.length >= field.field_length;
}

// Returns why a change needs a copy of the table.
static const char *why_server_copies(const TABLE *altered, const Alter_inplace_info *change, bool is_sequence) {
  alter_table_operations changes = change->handler_flags;
  if (is_sequence) return "a sequence is always copied";
  if (altered->versioned()) return "the table has system versioning";
  if (change->error_if_not_empty) return "an added column needs a value, so the table must be empty";
  if (changes & (ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE)) return "a column changes its type";
  if (changes & (ALTER_COLUMN_NULLABLE | ALTER_COLUMN_NOT_NULLABLE)) return "a column changes between NULL and NOT NULL";
  if (changes & ALTER_ADD_CHECK_CONSTRAINT) return "all rows are checked against the new constraint";
  if (changes & ALTER_RECREATE_TABLE) return "FORCE requests a copy";
  if (change->create_info->used_fields & HA_CREATE_USED_AUTO) return "setting AUTO_INCREMENT needs a copy, which finds the highest number";
  return "the server must compute or check all rows, which needs a copy";
}

enum_alter_inplace_result ha_cheetah::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *change) {
  const alter_table_operations in_place =
      ALTER_COLUMN_DEFAULT | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_RENAME |
      ALTER_RENAME_INDEX | ALTER_CHANGE_INDEX_COMMENT | ALTER_INDEX_IGNORABILITY | ALTER_INDEX_ORDER | ALTER_DROP_CHECK_CONSTRAINT |
      ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX |
      ALTER_ADD_UNIQUE_INDEX | ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX | ALTER_OPTIONS | ALTER_PARTITIONED | ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN |
      ALTER_STORED_COLUMN_ORDER | ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;
  // The counter must not become lower than a number in the table.
  bool sets_counter = change->create_info->used_fields & HA_CREATE_USED_AUTO;
  if ((change->handler_flags & ~in_place) || sets_counter || change->error_if_not_empty || altered->versioned() || is_sequence()) {
    change->unsupported_reason = why_server_copies(altered, change, is_sequence());
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  Alteration alteration(this, altered, change);
  // For a change of columns that constraints need, the copy makes the server report the error.
  if (alteration.changes_columns_of_constraints(&constraints_)) {
    change->unsupported_reason = "a foreign key column is dropped or changes its type";
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  bool checks_rows = alteration.adds_checked_constraints();
  if (checks_rows && alteration.adds_constraint_of_computed_column()) {
    change->unsupported_reason = "the foreign key has a virtual column, which only a copy computes";
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if (checks_rows && alteration.changes_columns()) {
    change->unsupported_reason = "the statement also adds or drops columns; add the foreign key in a separate statement";
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if (const char *why = alteration.why_copied()) {
    change->unsupported_reason = why;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if (alteration.changes_format()) {
    // Only ALGORITHM=NOCOPY and INSTANT leave existing rows in the old format.
    auto algorithm = change->alter_info->algorithm(ha_thd());
    bool later_images_only = algorithm == Alter_info::ALTER_TABLE_ALGORITHM_NOCOPY || algorithm == Alter_info::ALTER_TABLE_ALGORITHM_INSTANT;
    if (!later_images_only) {
      change->unsupported_reason = "a copy gives all rows the new format; with ALGORITHM=INSTANT rows get it when they are rewritten";
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
  }
  if (checks_rows || alteration.builds_fulltext()) return HA_ALTER_INPLACE_NOCOPY_LOCK;
  return alteration.builds() ? HA_ALTER_INPLACE_NOCOPY_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}

bool ha_cheetah::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *change) {
  THD *thd = ha_thd();
  // A transaction without a client may have an unfinished load: wait for it.
  int error = begin_unlocked(false);
  if (error == 0) error = handler_error(cheetah_keep_loads_off(txn_, engine_table_.get()), thd);
  if (error == 0 && cheetah_is_dropped(engine_table_.get())) error = attach();
  auto *context = new AlterContext(this, altered, change, txn_, engine_table_.get());
  change->handler_ctx = context;
  if (context == nullptr) return true;
  CheetahFormat format = {};
  bool changes_format = context->alteration().changes_format();
  if (error == 0) error = changes_format ? choose_format(thd, altered, change->create_info, &format) : 0;
  if (error == 0) warn_of_ignored_options(thd, change->create_info);
  if (error == 0) error = context->check_fulltext();
  if (error == 0) error = context->find_constraints();
  if (error == HA_ERR_CANNOT_ADD_FOREIGN || error == HA_ERR_FOUND_DUPP_KEY) {
    // Reports the same error as for a copy. InnoDB makes a copy here.
    my_error(ER_CANT_CREATE_TABLE, MYF(0), table_share->db.str, table_share->table_name.str, error);
    return true;
  }
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  if (changes_format) context->set_format(format);
  return false;
}

bool ha_cheetah::inplace_alter_table(TABLE *, Alter_inplace_info *change) {
  auto *context = static_cast<AlterContext *>(change->handler_ctx);
  int error = context->check_rows(this);
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  error = context->build_fulltext(this);
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  int32_t code = context->build();
  if (code != CHEETAH_CODE_OK) context->report(this, code);
  return code != CHEETAH_CODE_OK;
}

bool ha_cheetah::commit_inplace_alter_table(TABLE *, Alter_inplace_info *change, bool commit) {
  if (!commit) return false;
  const LEX_CUSTRING &version = change->create_info->tabledef_version;
  CheetahBytes mark{version.str, version.length};
  std::vector<CheetahAlteration> alterations;
  inplace_alter_handler_ctx *alone[] = {change->handler_ctx, nullptr};
  inplace_alter_handler_ctx **all = change->group_commit_ctx != nullptr ? change->group_commit_ctx : alone;
  for (; *all != nullptr; all++) {
    auto *context = static_cast<AlterContext *>(*all);
    int32_t code = context->finish();
    if (code != CHEETAH_CODE_OK) {
      context->report(this, code);
      return true;
    }
    alterations.push_back(context->for_engine(mark));
  }
  int error = handler_error(cheetah_alter_tables(engine.db, alterations.data(), alterations.size()), ha_thd());
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  for (all = change->group_commit_ctx != nullptr ? change->group_commit_ctx : alone; *all != nullptr; all++) {
    static_cast<AlterContext *>(*all)->describe_new_keys();
  }
  change->group_commit_ctx = nullptr;
  return false;
}
