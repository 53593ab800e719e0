// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_FOREIGN_KEYS: the columns of InnoDB's INNODB_SYS_FOREIGN and
// INNODB_SYS_FOREIGN_COLS, and the indexes that the constraint uses. One row for each column of a
// constraint.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "constraints/foreign_keys.h"
#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static ST_FIELD_INFO constraint_columns[] = {Column("ID", Varchar(2 * NAME_LEN + 1), NOT_NULL),
                                             Column("FOR_NAME", Varchar(2 * NAME_LEN + 1), NOT_NULL),
                                             Column("REF_NAME", Varchar(2 * NAME_LEN + 1), NOT_NULL),
                                             Column("N_COLS", ULonglong(), NOT_NULL),
                                             Column("POS", ULonglong(), NOT_NULL),
                                             Column("FOR_COL_NAME", Varchar(NAME_LEN), NOT_NULL),
                                             Column("REF_COL_NAME", Varchar(NAME_LEN), NOT_NULL),
                                             Column("ON_DELETE", Varchar(16), NOT_NULL),
                                             Column("ON_UPDATE", Varchar(16), NOT_NULL),
                                             Column("FOR_INDEX", Varchar(NAME_LEN), NULLABLE),
                                             Column("REF_INDEX", Varchar(NAME_LEN), NULLABLE),
                                             CEnd()};

}  // namespace Show

namespace cheetah {

static std::string shown_name(CheetahBytes engine_name) {
  std::string name = text_of(engine_name);
  return shown_database(name) + FN_LIBCHAR + shown_table(name);
}

static void put_side(Rows *rows, uint column, const CheetahKeySide &side) {
  if (side.columns != nullptr) rows->put(column, side.index_name);
}

static void write_constraint(void *context, const CheetahForeignKey *constraint) {
  auto *rows = static_cast<Rows *>(context);
  std::string child = shown_name(constraint->child);
  for (size_t i = 0; i < constraint->column_count && !rows->failed(); i++) {
    rows->start();
    rows->put(0, child.substr(0, child.find(FN_LIBCHAR) + 1) + text_of(constraint->name));
    rows->put(1, child);
    rows->put(2, shown_name(constraint->parent));
    rows->put(3, constraint->column_count);
    rows->put(4, i);
    rows->put(5, constraint->columns[i]);
    rows->put(6, constraint->parent_columns[i]);
    rows->put(7, std::string(action_words(constraint->on_delete)));
    rows->put(8, std::string(action_words(constraint->on_update)));
    put_side(rows, 9, constraint->child_key);
    put_side(rows, 10, constraint->parent_key);
    rows->end();
  }
}

static int fill_constraints(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return cheetah_list_foreign_keys(engine.db, write_constraint, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_maria_plugin information_schema_foreign_keys =
    describe_view("CHEETAH_FOREIGN_KEYS", "Constraints between tables of the Cheetah engine",
                  init_view<Show::constraint_columns, fill_constraints>);

}  // namespace cheetah
