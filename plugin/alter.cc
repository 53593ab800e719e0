// SPDX-License-Identifier: GPL-2.0-only
// ALTER TABLE in place: what of a new definition the engine's rows and indexes fit as they are.
//
// The server asks `check_if_supported_inplace_alter` first. What is answered there decides about ALGORITHM= and LOCK=. Then come
// `prepare_inplace_alter_table`, `inplace_alter_table` and, with nobody else at the table, `commit_inplace_alter_table`: in that one the engine
// takes the new definition, of all partitions at once, together with the number that the .frm file has. By that number the
// server's ddl log finds out after a crash which .frm file belongs to the table (docs/mariadb.md, "DDL and crashes").
#include "alter.h"

#include "engine.h"
#include "errors.h"
#include "ha_cheetah.h"
#include "orphans.h"
#include "table_options.h"

using namespace cheetah;

namespace cheetah {

// Both definitions of a table, and which index of the new one is which of the old one.
class Alteration {
 public:
  Alteration(const ha_cheetah *handler, TABLE *altered, const Alter_inplace_info *change)
      : handler_(handler), altered_(altered), change_(change) {
    codec_.init(altered);
    for (unsigned i = 0; i <= codec_.secondaries().size(); i++) from_.push_back(old_index(i));
  }

  const TableCodec &codec() const { return codec_; }
  const std::vector<unsigned> &from() const { return from_; }

  // Whether rows and all indexes are just what the table has.
  bool fits() const {
    const TableCodec &old = handler_->codec_;
    CheetahShape shape = codec_.row().shape();
    if (codec_.hidden_key() != old.hidden_key() || !codec_.row().same_columns(old.row()) ||
        !cheetah_table_fits(handler_->engine_table_.get(), &shape)) {
      return false;
    }
    for (unsigned i = 0; i < from_.size(); i++) {
      if (from_[i] == no_index || (from_[i] == 0) != (i == 0) || !same_key(i)) return false;
    }
    return true;
  }

  bool changes_format() const {
    const HA_CREATE_INFO *info = change_->create_info;
    const TABLE_SHARE *old = handler_->table_share;
    return !same_options(old->option_struct, info->option_struct) || old->row_type != info->row_type ||
           old->key_block_size != info->key_block_size;
  }

  std::string index_name(unsigned index) const {
    uint key_no = codec_.key_number(index);
    return key_no == MAX_KEY ? "(hidden)" : altered_->key_info[key_no].name.str;
  }

 private:
  static constexpr unsigned no_index = ~0U;

  bool same_key(unsigned index) const {
    const TableCodec &old = handler_->codec_;
    if (index == 0) return codec_.hidden_key() || codec_.clustered().same_encoding(old.clustered());
    return codec_.secondary_of(index).key().same_encoding(old.secondary_of(from_[index]).key());
  }

  unsigned old_index(unsigned index) const {
    uint key_no = codec_.key_number(index);
    if (key_no == MAX_KEY) return handler_->codec_.hidden_key() ? 0 : no_index;
    for (uint i = 0; i < change_->index_add_count; i++) {
      if (change_->index_add_buffer[i] == key_no) return no_index;
    }
    const char *name = altered_->key_info[key_no].name.str;
    for (const Alter_inplace_info::Rename_key_pair &pair : change_->rename_keys) {
      if (strcmp(pair.new_key->name.str, name) == 0) name = pair.old_key->name.str;
    }
    const TABLE *table = handler_->table;
    for (uint old = 0; old < table->s->keys; old++) {
      if (strcmp(table->key_info[old].name.str, name) == 0) return handler_->codec_.engine_index(old);
    }
    return no_index;
  }

  const ha_cheetah *handler_;
  TABLE *altered_;
  const Alter_inplace_info *change_;
  TableCodec codec_;
  std::vector<unsigned> from_;
};

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

// What is to be done once nobody else is at the table.
class AlterContext final : public inplace_alter_handler_ctx {
 public:
  AlterContext(const Alteration &alteration, const CheetahTable *table, const CheetahFormat *format) : table_(table) {
    alteration.codec().append_fingerprint(&fingerprint_);
    names_.reserve(alteration.from().size());
    for (unsigned i = 0; i < alteration.from().size(); i++) {
      names_.push_back(alteration.index_name(i));
      indexes_.push_back(CheetahAlteredIndex{bytes_of(names_.back()), alteration.from()[i]});
    }
    if (format != nullptr) format_ = *format;
    keeps_format_ = format == nullptr;
  }

  CheetahAlteration for_engine(CheetahBytes mark) const {
    return CheetahAlteration{table_, indexes_.data(), indexes_.size(), fingerprint_.bytes(), mark,
                             format_.compression_level, format_.compression, keeps_format_};
  }

 private:
  const CheetahTable *table_;
  Buffer fingerprint_;
  std::vector<std::string> names_;
  std::vector<CheetahAlteredIndex> indexes_;
  CheetahFormat format_ = {};
  bool keeps_format_;
};

}  // namespace cheetah

// Values are stored without padding, so a longer column changes nothing in the rows.
bool ha_cheetah::can_convert_nocopy(const Field &field, const Column_definition &definition) const {
  return field.real_type() == MYSQL_TYPE_VARCHAR && definition.type_handler() == field.type_handler() &&
         definition.charset == field.charset() && definition.compression_method() == nullptr &&
         definition.length >= field.field_length;
}

enum_alter_inplace_result ha_cheetah::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *change) {
  const alter_table_operations in_place =
      ALTER_COLUMN_DEFAULT | ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_RENAME |
      ALTER_RENAME_INDEX | ALTER_CHANGE_INDEX_COMMENT | ALTER_INDEX_IGNORABILITY | ALTER_INDEX_ORDER | ALTER_DROP_CHECK_CONSTRAINT |
      ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX | ALTER_OPTIONS | ALTER_PARTITIONED;
  // The counter may not go below the numbers that there are.
  bool sets_counter = change->create_info->used_fields & HA_CREATE_USED_AUTO;
  if ((change->handler_flags & ~in_place) || sets_counter || altered->versioned() || is_sequence()) {
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  Alteration alteration(this, altered, change);
  if (!alteration.fits()) return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (alteration.changes_format()) {
    // Whoever does not ask for it in so many words wants the rows that there are to have the new format.
    auto algorithm = change->alter_info->algorithm(ha_thd());
    bool later_images_only = algorithm == Alter_info::ALTER_TABLE_ALGORITHM_NOCOPY || algorithm == Alter_info::ALTER_TABLE_ALGORITHM_INSTANT;
    if (!later_images_only) {
      change->unsupported_reason = "the rows get their new format by a copy, or with ALGORITHM=INSTANT as they are written anew";
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    }
  }
  return HA_ALTER_INPLACE_INSTANT;
}

bool ha_cheetah::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *change) {
  THD *thd = ha_thd();
  Alteration alteration(this, altered, change);
  CheetahFormat format = {};
  bool changes_format = alteration.changes_format();
  int error = changes_format ? choose_format(thd, altered, change->create_info, &format) : 0;
  if (error == 0) error = check_table_options(thd, altered, change->create_info);
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  change->handler_ctx = new AlterContext(alteration, engine_table_.get(), changes_format ? &format : nullptr);
  return change->handler_ctx == nullptr;
}

bool ha_cheetah::inplace_alter_table(TABLE *, Alter_inplace_info *) { return false; }

bool ha_cheetah::commit_inplace_alter_table(TABLE *, Alter_inplace_info *change, bool commit) {
  if (!commit) return false;
  const LEX_CUSTRING &version = change->create_info->tabledef_version;
  CheetahBytes mark{version.str, version.length};
  std::vector<CheetahAlteration> alterations;
  inplace_alter_handler_ctx *alone[] = {change->handler_ctx, nullptr};
  inplace_alter_handler_ctx **all = change->group_commit_ctx != nullptr ? change->group_commit_ctx : alone;
  for (; *all != nullptr; all++) alterations.push_back(static_cast<AlterContext *>(*all)->for_engine(mark));
  int error = handler_error(cheetah_alter_tables(engine.db, alterations.data(), alterations.size()), ha_thd());
  if (error != 0) {
    print_error(error, MYF(0));
    return true;
  }
  change->group_commit_ctx = nullptr;
  return false;
}
