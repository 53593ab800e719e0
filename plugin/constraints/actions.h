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

// A change of rows in one table, linked through `cause` to the change that caused it, up to the row
// that the statement itself changes.
struct CascadeStep {
  const CascadeStep *cause;  // nullptr for a row of the statement
  const std::string *table;
  bool is_update;
  std::string constraint;  // the constraint whose action this is; empty for a row of the statement
  unsigned depth;
};

// The columns of a constraint in the parent's new row.
class ParentValues {
 public:
  void take(const std::vector<KeyPart> &parts, size_t count, const uchar *record);
  // Copies the values into the child's record. Returns false if a value does not fit.
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
  size_t no;  // of the constraint, among those of the parent in the list
  const CheetahForeignKey &constraint;
  uint8_t what;      // a CheetahForeignKeyAction that changes the child
  bool parent_goes;  // the parent's row was deleted; otherwise its columns change to `values`
  CheetahBytes key;  // prefix of the affected rows' keys in the child's index
  const ParentValues &values;

  bool deletes() const { return parent_goes && what == CHEETAH_FOREIGN_KEY_ACTION_CASCADE; }
};

// Returns the handler of the child if the server opened the child for actions of the statement;
// otherwise nullptr.
ha_cheetah *open_child(THD *thd, const std::string &name);

}  // namespace cheetah
