// SPDX-License-Identifier: GPL-2.0-only
// information_schema.CHEETAH_TABLESPACES_ENCRYPTION: InnoDB's columns, one row for each table.
#include "views/information_schema.h"

#include <sql_acl.h>
#include <sql_parse.h>

#include "engine.h"
#include "views/view_rows.h"

namespace Show {

static ST_FIELD_INFO encryption_columns[] = {Column("SPACE", ULonglong(), NOT_NULL),
                                             Column("NAME", Varchar(655), NULLABLE),
                                             Column("ENCRYPTION_SCHEME", ULong(), NOT_NULL),
                                             Column("KEYSERVER_REQUESTS", ULong(), NOT_NULL),
                                             Column("MIN_KEY_VERSION", ULong(), NOT_NULL),
                                             Column("CURRENT_KEY_VERSION", ULong(), NOT_NULL),
                                             Column("KEY_ROTATION_PAGE_NUMBER", ULonglong(), NULLABLE),
                                             Column("KEY_ROTATION_MAX_PAGE_NUMBER", ULonglong(), NULLABLE),
                                             Column("CURRENT_KEY_ID", ULong(), NOT_NULL),
                                             Column("ROTATING_OR_FLUSHING", SLong(1), NOT_NULL),
                                             CEnd()};

}  // namespace Show

namespace cheetah {

// As in InnoDB's view, NAME is the name of the table's files.
static void write_encryption(void *context, const CheetahTableEncryption *table) {
  auto *rows = static_cast<Rows *>(context);
  if (rows->failed()) return;
  rows->start();
  rows->put(0, table->table);
  rows->put(1, text_of(table->name));
  rows->put(2, uint64_t{table->is_encrypted});
  rows->put(3, table->key_requests);
  rows->put(4, uint64_t{table->min_key_version});
  rows->put(5, uint64_t{table->current_key_version});
  if (table->rotation_pages != 0) {
    rows->put(6, table->rotation_page);
    rows->put(7, table->rotation_pages);
  }
  rows->put(8, uint64_t{table->key_id});
  rows->put_signed(9, table->is_rotating);
  rows->end();
}

// Like InnoDB's view, shows rows only to users with the PROCESS privilege.
static int fill_encryption(THD *thd, TABLE_LIST *tables, COND *) {
  if (engine.db == nullptr || check_global_access(thd, PROCESS_ACL)) return 0;
  Rows rows(thd, tables->table);
  return cheetah_list_encryption(engine.db, write_encryption, &rows) != CHEETAH_CODE_OK || rows.failed();
}

st_maria_plugin information_schema_tablespaces_encryption =
    describe_view("CHEETAH_TABLESPACES_ENCRYPTION", "Encryption and keys of tables of the Cheetah engine",
                  init_view<Show::encryption_columns, fill_encryption>);

}  // namespace cheetah
