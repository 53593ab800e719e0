// SPDX-License-Identifier: GPL-2.0-only
// Finds the parts of a new definition that existing rows and indexes already fit.
#include "ddl/alteration.h"

#include "ddl/table_options.h"
#include "engine.h"
#include "settings.h"

#include <algorithm>

using namespace cheetah;

Alteration::Alteration(const ha_cheetah *handler, TABLE *altered, const Alter_inplace_info *change)
    : handler_(handler), altered_(altered), change_(change) {
  codec_.init(altered);
  codec_.init_fulltext(altered, word_rules(altered->in_use));
  codec_.row().expect_large_if(cheetah_has_older_rows(handler->engine_table_.get()));
  find_columns();
  for (unsigned i = 0; i <= codec_.secondaries().size(); i++) {
    unsigned from = old_index(i);
    from_.push_back(from != no_index && same_key(i, from) ? from : no_index);
  }
  for (WordCodec &index : codec_.fulltext()) fulltext_from_.push_back(old_fulltext(&index));
}

bool Alteration::builds_fulltext() const {
  return std::find(fulltext_from_.begin(), fulltext_from_.end(), no_index) != fulltext_from_.end();
}

bool Alteration::changes_columns() const {
  return change_->handler_flags & (ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN | ALTER_STORED_COLUMN_ORDER);
}

bool Alteration::has_names() const {
  return changes_columns() || handler_->codec_.has_names(cheetah_table_extra(handler_->engine_table_.get()));
}

const char *Alteration::why_copied() const {
  if (changes_encryption()) return "ENCRYPTED or ENCRYPTION_KEY_ID changes, so all rows must be rewritten";
  if (!keeps_primary_key()) return "the primary key is added, dropped or changed";
  if (changes_columns()) {
    if (const char *why = why_columns_are_copied()) return why;
  } else if (!keeps_rows()) {
    return "the stored format of a column changes";
  }
  if (builds_fulltext() && (changes_columns() || builds())) {
    return "a FULLTEXT key must be added in a separate statement";
  }
  for (unsigned i = 1; i < from_.size(); i++) {
    if (from_[i] == 0) return "the primary key becomes a secondary key";
    if (from_[i] != no_index) continue;
    if (const char *why = why_not_built(i)) return why;
  }
  return nullptr;
}

bool Alteration::changes_format() const {
  const HA_CREATE_INFO *info = change_->create_info;
  const TABLE_SHARE *old = handler_->table_share;
  return !same_format_options(old->option_struct, info->option_struct) || old->row_type != info->row_type ||
         old->key_block_size != info->key_block_size || (info->key_block_size == 0 && changes_sizes_of_keys());
}

bool Alteration::changes_encryption() const {
  return !same_encryption(handler_->table_share->option_struct, change_->create_info->option_struct);
}

const KEY *Alteration::key(unsigned index) const {
  uint key_no = codec_.key_number(index);
  return key_no == MAX_KEY ? nullptr : &altered_->key_info[key_no];
}

bool Alteration::adds_checked_constraints() const {
  return (change_->handler_flags & ALTER_ADD_FOREIGN_KEY) &&
         !thd_test_options(altered_->in_use, OPTION_NO_FOREIGN_KEY_CHECKS);
}

bool Alteration::adds_constraint_of_computed_column() const {
  if (altered_->vfield == nullptr) return false;
  List_iterator_fast<Key> keys(change_->alter_info->key_list);
  while (const Key *key = keys++) {
    if (key->type != Key::FOREIGN_KEY || key->old) continue;
    List_iterator_fast<Key_part_spec> columns(const_cast<Key *>(key)->columns);
    while (const Key_part_spec *column = columns++) {
      if (is_computed_when_read(column->field_name.str)) return true;
    }
  }
  return false;
}

bool Alteration::changes_columns_of_constraints(ForeignKeys *constraints) const {
  constraints->refresh();
  for (uint8_t role : {CHEETAH_ROLE_CHILD, CHEETAH_ROLE_PARENT}) {
    for (size_t no = 0; no < constraints->count(role); no++) {
      CheetahForeignKey constraint = constraints->get(role, no);
      const CheetahBytes *names = role == CHEETAH_ROLE_CHILD ? constraint.columns : constraint.parent_columns;
      for (size_t i = 0; i < constraint.column_count; i++) {
        if (!keeps_column(text_of(names[i]))) return true;
      }
    }
  }
  return false;
}

const char *Alteration::why_columns_are_copied() const {
  if (new_rows_.why_unknown != nullptr) return new_rows_.why_unknown;
  if (builds()) {
    return "the statement changes columns and builds an index (one that is added, or that loses a column); change "
           "indexes in a separate statement";
  }
  if (cheetah_can_change_rows(handler_->engine_table_.get(), new_rows())) return nullptr;
  return "too many columns were added and dropped since the table was last copied, or its rows become too long";
}

bool Alteration::keeps_rows() const {
  CheetahRowFormatVersion row_format = codec_.row().row_format();
  return codec_.row().same_columns(handler_->codec_.row()) &&
         cheetah_table_fits(handler_->engine_table_.get(), &row_format);
}

bool Alteration::is_computed_when_read(const char *name) const {
  for (Field **field = altered_->vfield; *field != nullptr; field++) {
    if (is_same_column((*field)->field_name.str, name)) return !is_stored(*field);
  }
  return false;
}

bool Alteration::keeps_column(const std::string &name) const {
  uint no = 0;
  for (const Create_field &column : change_->alter_info->create_list) {
    const Field *was = column.field, *is = altered_->field[no++];
    if (was == nullptr || !is_same_column(was->field_name.str, name.c_str())) continue;
    Buffer before, after;
    describe_kind(const_cast<Field *>(was), &before);
    describe_kind(const_cast<Field *>(is), &after);
    bool same_kind = before.size() == after.size() && memcmp(before.data(), after.data(), before.size()) == 0;
    return same_kind && was->real_maybe_null() == is->real_maybe_null();
  }
  return false;
}

bool Alteration::changes_sizes_of_keys() const {
  for (unsigned i = 0; i < from_.size(); i++) {
    if (key(i) == nullptr || from_[i] == no_index) continue;
    if (key(i)->block_size != handler_->table->key_info[handler_->codec_.key_number(from_[i])].block_size) return true;
  }
  return false;
}

const char *Alteration::why_not_built(unsigned index) const {
  const KEY *added = key(index);
  if (added->algorithm == HA_KEY_ALG_LONG_HASH) return "only a copy builds a key USING HASH";
  if (added->without_overlaps) return "only a copy checks a key WITHOUT OVERLAPS";
  if (change_->ignore && (added->flags & HA_NOSAME)) return "IGNORE needs a copy, which drops duplicate rows";
  uint key_bytes = codec_.secondary_of(index).key().max_bytes();
  if (!cheetah_has_room_for_keys(handler_->engine_table_.get(), key_bytes)) return "the key leaves no room for the primary key";
  for (const KeyPart &part : codec_.secondary_of(index).key().parts()) {
    if (!is_stored(part.field())) return "only a copy builds a key on a virtual column";
  }
  return nullptr;
}

bool Alteration::same_key(unsigned index, unsigned from) const {
  const TableCodec &old = handler_->codec_;
  if (index == 0 || from == 0) {
    if (index != from || codec_.hidden_key() != old.hidden_key()) return false;
    return codec_.hidden_key() || codec_.clustered().same_encoding(old.clustered(), was_);
  }
  return codec_.secondary_of(index).key().same_encoding(old.secondary_of(from).key(), was_);
}

void Alteration::find_columns() {
  was_.resize(altered_->s->fields);
  for (uint i = 0; i < was_.size(); i++) was_[i] = i;
  if (!changes_columns()) return;
  // Generated columns are computed from other columns, and the server owns the hash columns of long
  // keys: neither can be moved in place.
  if (altered_->vfield != nullptr || handler_->table->vfield != nullptr ||
      altered_->s->fields != change_->alter_info->create_list.elements) {
    new_rows_.why_unknown = "the table has generated columns or keys USING HASH";
    return;
  }
  bool have_defaults = find_defaults();
  RowCodec &row = codec_.row();
  if (!have_defaults || !row.encode(altered_->record[0], RowCodec::Old{}, altered_->write_set, &new_rows_.defaults)) {
    new_rows_.why_unknown = "an added column is AUTO_INCREMENT, has a CHECK, or has no single default for all rows";
    return;
  }
  if (!row.moves_from(handler_->codec_.row(), was_, &new_rows_.moves)) {
    new_rows_.why_unknown = "a column also changes its type or NOT NULL";
    return;
  }
  const RowCodec::Moves &moves = new_rows_.moves;
  new_rows_.for_engine = CheetahNewRows{row.row_format(), moves.bits.data(), moves.bits.size(), moves.fixed.data(),
                                        moves.vars.data(), new_rows_.defaults.bytes()};
}

bool Alteration::find_defaults() {
  memcpy(altered_->record[0], altered_->s->default_values, altered_->s->reclength);
  uint no = 0;
  bool all_have = true;
  for (Create_field &column : change_->alter_info->create_list) {
    Field *field = altered_->field[no];
    was_[no++] = column.field != nullptr ? column.field->field_index : RowCodec::no_column;
    all_have = all_have && (column.field != nullptr || set_default(field));
  }
  return all_have;
}

bool Alteration::set_default(Field *field) const {
  if (field->unireg_check == Field::NEXT_NUMBER || field->check_constraint != nullptr) return false;
  constexpr uint same_in_a_statement = VCOL_SESSION_FUNC | VCOL_TIME_FUNC;
  const Virtual_column_info *computed = field->default_value;
  if (computed != nullptr && (computed->flags & ~same_in_a_statement)) return false;
  // RAND() counts as a function of the session.
  if (computed != nullptr && (computed->expr->used_tables() & RAND_TABLE_BIT)) return false;
  int outcome = field->set_default();
  constexpr int was_shortened_to_a_date_or_time = 3;
  return outcome == 0 || outcome == was_shortened_to_a_date_or_time;
}

unsigned Alteration::same_but_block_size(const KEY &added) const {
  // Definitions of hash keys do not show which columns are hashed.
  if (added.algorithm == HA_KEY_ALG_LONG_HASH) return no_index;
  for (uint i = 0; i < change_->index_drop_count; i++) {
    const KEY *old = change_->index_drop_buffer[i];
    bool same = strcmp(old->name.str, added.name.str) == 0 && old->block_size != added.block_size &&
                old->algorithm == added.algorithm && (old->flags & HA_KEYFLAG_MASK) == (added.flags & HA_KEYFLAG_MASK) &&
                old->user_defined_key_parts == added.user_defined_key_parts && old->without_overlaps == added.without_overlaps;
    for (uint part = 0; same && part < added.user_defined_key_parts; part++) {
      const KEY_PART_INFO &was = old->key_part[part], &is = added.key_part[part];
      same = was_[is.field->field_index] == was.field->field_index && was.length == is.length &&
             (was.key_part_flag & HA_REVERSE_SORT) == (is.key_part_flag & HA_REVERSE_SORT);
    }
    if (same) return handler_->codec_.engine_index(static_cast<uint>(old - handler_->table->key_info));
  }
  return no_index;
}

unsigned Alteration::old_index(unsigned index) const {
  uint key_no = codec_.key_number(index);
  if (key_no == MAX_KEY) return handler_->codec_.hidden_key() ? 0 : no_index;
  for (uint i = 0; i < change_->index_add_count; i++) {
    if (change_->index_add_buffer[i] == key_no) return same_but_block_size(altered_->key_info[key_no]);
  }
  unsigned old_no = old_index_named(altered_->key_info[key_no].name.str);
  return old_no == no_index ? no_index : handler_->codec_.engine_index(old_no);
}

unsigned Alteration::old_fulltext(WordCodec *index) const {
  unsigned from = old_index_named(index->name());
  if (from == no_index) return no_index;
  uint old_no = from;
  if (!is_fulltext(handler_->table->key_info[old_no])) return no_index;
  unsigned place = static_cast<unsigned>(handler_->codec_.fulltext_index(old_no));
  const WordCodec &old = handler_->codec_.fulltext()[place];
  bool same = old.charset() == index->charset() && old.fields().size() == index->fields().size();
  for (size_t i = 0; same && i < old.fields().size(); i++) {
    same = was_[index->fields()[i]->field_index] == old.fields()[i]->field_index;
  }
  if (!same) return no_index;
  index->set_rules(old.rules());
  return place;
}

unsigned Alteration::old_index_named(const char *name) const {
  for (uint i = 0; i < change_->index_add_count; i++) {
    if (strcmp(altered_->key_info[change_->index_add_buffer[i]].name.str, name) == 0) return no_index;
  }
  for (const Alter_inplace_info::Rename_key_pair &pair : change_->rename_keys) {
    if (strcmp(pair.new_key->name.str, name) != 0) continue;
    name = pair.old_key->name.str;
    break;
  }
  const TABLE *table = handler_->table;
  for (uint old = 0; old < table->s->keys; old++) {
    if (strcmp(table->key_info[old].name.str, name) == 0) return old;
  }
  return no_index;
}
