// SPDX-License-Identifier: GPL-2.0-only
// Finds rows of a child that have no parent, for CHECK TABLE. `foreign_key_checks=0` allows them.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "ddl/table_codec.h"
#include "handler/ha_cheetah.h"

namespace cheetah {

// Maximum number of keys without a parent that are listed for a constraint.
constexpr unsigned keys_told_max = 10;

struct Orphans {
  ulonglong rows = 0;
  unsigned keys = 0;
  String keys_text;  // the first `keys_told_max` keys

  Orphans() { keys_text.set_charset(&my_charset_utf8mb4_bin); }
};

// One check of the rows of a constraint that has indexes on both sides. The child's index is read
// in order, and the parent's index is searched once for each distinct key. Both are read in the
// snapshot of `txn`, without locks.
class OrphanSearch {
 public:
  // `table`: the child. All columns are in its read set.
  OrphanSearch(TABLE *table, const TableCodec *codec, LargeValues *large, const CheetahForeignKeys *list, size_t no)
      : table_(table), codec_(codec), large_(large), list_(list), no_(no),
        constraint_(constraint_of(list, CHEETAH_ROLE_CHILD, no)) {}

  // Returns a CheetahCode; CHEETAH_CODE_INTERRUPTED if the connection was killed.
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
  // The constraint's columns in the previous row, as encoded in the child's and the parent's index.
  Buffer last_, key_;
  bool has_parent_ = true;
};

}  // namespace cheetah
