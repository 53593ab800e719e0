// SPDX-License-Identifier: GPL-2.0-only
// Compares both definitions of a table that ALTER TABLE changes in place, and maps the new indexes
// to the old ones.
#pragma once

#include "codec/columns.h"
#include "constraints/definition.h"
#include "ddl/table_codec.h"
#include "handler/ha_cheetah.h"

#include <algorithm>
#include <string>
#include <vector>

namespace cheetah {

class Alteration {
 public:
  Alteration(const ha_cheetah *handler, TABLE *altered, const Alter_inplace_info *change);

  static constexpr unsigned no_index = ~0U;

  TABLE *altered() const { return altered_; }
  const TableCodec &codec() const { return codec_; }
  WordCodec &fulltext(size_t no) { return codec_.fulltext()[no]; }
  // Returns for each index its number in the old definition, or `no_index`.
  const std::vector<unsigned> &from() const { return from_; }

  // Returns for each full-text index its number in the old definition, or `no_index`.
  const std::vector<unsigned> &fulltext_from() const { return fulltext_from_; }
  bool builds_fulltext() const;

  // Returns whether columns are added, dropped, or reordered.
  bool changes_columns() const;

  // Returns whether the engine must store the names of columns: always, once columns were added,
  // dropped or reordered.
  bool has_names() const;

  // Returns the engine's change of the present rows; null if the columns stay the same.
  const CheetahNewRows *new_rows() const { return changes_columns() ? &new_rows_.for_engine : nullptr; }

  // Returns why the table must be copied; null if the engine can keep or convert its rows, keep its
  // clustered index, and build the new indexes.
  const char *why_copied() const;

  bool keeps_primary_key() const { return codec_.hidden_key() == handler_->codec_.hidden_key() && from_[0] == 0; }

  bool builds() const { return std::find(from_.begin(), from_.end(), no_index) != from_.end(); }

  bool changes_format() const;

  bool changes_encryption() const;

  const KEY *key(unsigned index) const;

  // Returns whether added constraints must be checked for the existing rows.
  bool adds_checked_constraints() const;

  // Returns whether an added constraint names a virtual column, which rows do not contain: the
  // server computes it for a copy.
  bool adds_constraint_of_computed_column() const;

  // Returns whether a column that a constraint of the table names is dropped, or changes its type
  // or NOT NULL.
  bool changes_columns_of_constraints(ForeignKeys *constraints) const;

  std::string index_name(unsigned index) const { return key(index) == nullptr ? "(hidden)" : key(index)->name.str; }

 private:
  // Returns why changed columns need a copy; null if the engine can convert the existing rows.
  const char *why_columns_are_copied() const;

  bool keeps_rows() const;

  bool is_computed_when_read(const char *name) const;

  bool keeps_column(const std::string &name) const;

  // Returns whether the KEY_BLOCK_SIZE of existing keys changes. That size applies if the table has
  // none.
  bool changes_sizes_of_keys() const;

  // Returns why the engine cannot build the index; null if it can. Only the server can compute
  // virtual columns, including those of UNIQUE .. USING HASH, and check whether periods overlap.
  // IGNORE drops rows.
  const char *why_not_built(unsigned index) const;

  bool same_key(unsigned index, unsigned from) const;

  // Maps new columns to old ones, and finds how rows change if columns are added, dropped or
  // reordered.
  void find_columns();

  // Maps new columns to old ones, and puts the defaults of added columns into the record. Returns
  // false if an added column does not have the same value in all rows.
  bool find_defaults();

  // Puts the value that an added column has in existing rows into the record. Returns false if the
  // value is not the same for all rows, or if each row must be checked.
  bool set_default(Field *field) const;

  // When the table's KEY_BLOCK_SIZE changes, the server drops and adds every key without its own
  // KEY_BLOCK_SIZE, though the key stays the same. Returns the old index that equals `added` apart
  // from the block size, or `no_index`.
  unsigned same_but_block_size(const KEY &added) const;

  unsigned old_index(unsigned index) const;

  // Returns the old full-text index with the same words as the new one, and copies its rules to the
  // new one. Returns `no_index` if the index must be built.
  unsigned old_fulltext(WordCodec *index) const;

  // Returns the old number of the key that now has this name; `no_index` if the key is added.
  unsigned old_index_named(const char *name) const;

  const ha_cheetah *handler_;
  TABLE *altered_;
  const Alter_inplace_info *change_;
  TableCodec codec_;
  std::vector<unsigned> from_;
  std::vector<unsigned> fulltext_from_;
  std::vector<uint> was_;
  struct {
    const char *why_unknown = nullptr;
    RowCodec::Moves moves;
    Buffer defaults;
    CheetahNewRows for_engine = {};
  } new_rows_;
};

}  // namespace cheetah
