// SPDX-License-Identifier: GPL-2.0-only
// Rows of a child that have no parent: `foreign_key_checks=0` lets them in, CHECK TABLE finds them.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "ddl/table_codec.h"
#include "handler/ha_cheetah.h"

namespace cheetah {

// How many keys without a parent are told of a constraint.
constexpr unsigned keys_told_max = 10;

struct Orphans {
  ulonglong rows = 0;
  unsigned keys = 0;
  String keys_text;  // the first of them

  Orphans() { keys_text.set_charset(&my_charset_utf8mb4_bin); }
};

// One look at the rows of one constraint, which has indexes on both sides. The child's index is
// read in its order, and the parent's is searched once for each of its keys. Both are read as `txn`
// sees them, and nothing is locked.
class OrphanSearch {
 public:
  // `table`: the child, all of whose columns may be read into its record.
  OrphanSearch(TABLE *table, const TableCodec *codec, LargeValues *large, const CheetahForeignKeys *list, size_t no)
      : table_(table), codec_(codec), large_(large), list_(list), no_(no),
        constraint_(constraint_of(list, CHEETAH_ROLE_CHILD, no)) {}

  // A CheetahCode; CHEETAH_CODE_INTERRUPTED when the connection was killed.
  int32_t run(CheetahTxn *txn, const CheetahTable *child, Orphans *orphans);

 private:
  const std::vector<KeyPart> &parts() const { return codec_->key_at(constraint_.child_key.index_no).parts(); }
  int32_t look_at(const CheetahFound &found, Orphans *orphans);
  const uchar *encode(CheetahBytes key);
  int32_t search_parent();
  int32_t tell(const CheetahFound &found, Orphans *orphans);

  TABLE *table_;
  const TableCodec *codec_;
  LargeValues *large_;
  const CheetahForeignKeys *list_;
  size_t no_;
  CheetahForeignKey constraint_;
  CursorHandle children_, parents_;
  // Columns of the constraint, in the row before: as the child's index has them, and the parent's.
  Buffer last_, key_;
  bool has_parent_ = true;
};

}  // namespace cheetah
