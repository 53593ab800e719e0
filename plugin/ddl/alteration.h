// SPDX-License-Identifier: GPL-2.0-only
// Both definitions of a table that ALTER TABLE changes in place, and which index of the new one is
// which of the old one.
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
  // Of each index its place in the old definition, or none.
  const std::vector<unsigned> &from() const { return from_; }

  // Of each full-text index its place in the old definition, or none.
  const std::vector<unsigned> &fulltext_from() const { return fulltext_from_; }
  bool builds_fulltext() const;

  // Whether columns come, go, or change their places.
  bool changes_columns() const;

  // Whether the engine is to know the columns by name from now on: once they have changed, for
  // good.
  bool has_names() const;

  // The change that the engine makes to the present rows; null if columns stay as they are.
  const CheetahNewRows *new_rows() const { return changes_columns() ? &new_rows_.for_engine : nullptr; }

  // Why the table is copied; null if rows and clustered index are just what it has, or the engine
  // can take them for it, and the indexes can be built.
  const char *why_copied() const;

  bool keeps_primary_key() const { return codec_.hidden_key() == handler_->codec_.hidden_key() && from_[0] == 0; }

  bool builds() const { return std::find(from_.begin(), from_.end(), no_index) != from_.end(); }

  bool changes_format() const;

  bool changes_encryption() const;

  const KEY *key(unsigned index) const;

  // Whether constraints come whose rows are to be looked at.
  bool adds_checked_constraints() const;

  // Whether a constraint that comes names a column that rows do not have: the server computes it,
  // for a copy.
  bool adds_constraint_of_computed_column() const;

  // Whether a column goes, or changes its type or NOT NULL, that a constraint of the table names.
  bool changes_columns_of_constraints(ForeignKeys *constraints) const;

  std::string index_name(unsigned index) const { return key(index) == nullptr ? "(hidden)" : key(index)->name.str; }

 private:
  // Null if the engine can take the new columns for the rows that there are.
  const char *why_columns_are_copied() const;

  bool keeps_rows() const;

  bool is_computed_when_read(const char *name) const;

  bool keeps_column(const std::string &name) const;

  // Whether keys that the table has get other sizes of blocks: those count where the table has
  // none.
  bool changes_sizes_of_keys() const;

  // Null if the engine can build the index. Virtual columns are the server's to compute, also those
  // behind UNIQUE .. USING HASH; so is whether periods overlap. IGNORE drops rows.
  const char *why_not_built(unsigned index) const;

  bool same_key(unsigned index, unsigned from) const;

  // Finds which column was which, and the change of rows if columns come or go.
  void find_columns();

  // Finds what each column was, and puts what new ones have into the record; false if one has
  // nothing that is the same for all rows.
  bool find_defaults();

  // Puts what a column that comes has in the rows that there are into the record; false if that is
  // not the same for all rows, or needs a look at each.
  bool set_default(Field *field) const;

  // The server drops and adds every key without a KEY_BLOCK_SIZE of its own when that of the table
  // changes, which says nothing of the key. Returns which old one it is, if one.
  unsigned same_but_block_size(const KEY &added) const;

  unsigned old_index(unsigned index) const;

  // Which of the old full-text indexes has the same words as the new one, which takes its rules
  // over; none if it is to be built.
  unsigned old_fulltext(WordCodec *index) const;

  // The number of the key in the old definition that has become that one; none if it is added.
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
