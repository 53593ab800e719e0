// SPDX-License-Identifier: GPL-2.0-only
// The actions on child rows when their parent row is deleted or changed.
#pragma once

#include "server.h"
#include "codec/key_codec.h"
#include "cheetah.h"

#include <string>
#include <vector>

class ha_cheetah;

namespace cheetah {

// A row that changes, and those because of which it does: an action of a constraint on its parent's
// row, and so on up to the statement.
struct CascadeStep {
  const CascadeStep *cause;  // nullptr for a row of the statement
  const std::string *table;
  bool is_update;
  std::string constraint;  // whose action it is; empty for a row of the statement
  unsigned depth;
};

// The columns of a constraint in the parent's new row.
class ParentValues {
 public:
  void take(const std::vector<KeyPart> &parts, size_t count, const uchar *record);
  // Puts them into the child's record; false when one does not fit there.
  bool put(const std::vector<KeyPart> &parts, uchar *record) const;

 private:
  struct Value {
    bool is_null;
    std::string bytes;
  };
  std::vector<Value> values_;
};

struct Action {
  const CheetahForeignKeys *list;
  size_t no;  // in the list, as the parent's
  const CheetahForeignKey &constraint;
  uint8_t what;      // a CheetahForeignKeyAction that changes the child
  bool parent_goes;  // or else its columns change, to `values`
  CheetahBytes key;  // of the rows in the child's index
  const ParentValues &values;

  bool deletes() const { return parent_goes && what == CHEETAH_FOREIGN_KEY_ACTION_CASCADE; }
};

// The handler with which the server has opened the child for actions of the statement; nullptr if
// it has not.
ha_cheetah *open_child(THD *thd, const std::string &name);

}  // namespace cheetah
