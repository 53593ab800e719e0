// SPDX-License-Identifier: GPL-2.0-only
// CHECK, ANALYZE, OPTIMIZE and REPAIR TABLE.
#include "constraints/orphan_rows.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "ddl/orphans.h"
#include "handler/row_entries.h"

using namespace cheetah;

namespace {

struct Findings {
  THD *thd;
  const TABLE *table;
  uint count;
};

}  // namespace

static void report(THD *thd, const TABLE *table, const char *kind, const char *text, size_t length) {
  Protocol *protocol = thd->protocol;
  std::string name = std::string(table->s->db.str) + "." + table->s->table_name.str;
  protocol->prepare_for_resend();
  protocol->store(name.c_str(), name.size(), system_charset_info);
  protocol->store(STRING_WITH_LEN("check"), system_charset_info);
  protocol->store(kind, strlen(kind), system_charset_info);
  protocol->store(text, length, system_charset_info);
  protocol->write();
}

static void report_finding(void *context, CheetahBytes text) {
  auto *findings = static_cast<Findings *>(context);
  findings->count++;
  report(findings->thd, findings->table, "error", reinterpret_cast<const char *>(text.data), text.len);
}

// Reports tables of the same database that exist in the engine but not in the server.
static void report_orphans(THD *thd, const TABLE *table, const std::string &database) {
  // Temporary tables have no .frm file here. The server's start drops those that remain after a
  // crash.
  if (database == "#tmp/") return;
  for (const std::string &name : table_names(database)) {
    if (has_definition(name)) continue;
    std::string text = "The engine has a table '" + name +
                       "' without a .frm file (it was dropped while the plugin was missing): DROP TABLE removes it";
    report(thd, table, "warning", text.data(), text.size());
  }
}

// The maximum number of times that a check restarts because a table of the constraint was altered
// or truncated meanwhile.
static constexpr unsigned searches_max = 100;

static void report_unserved(THD *thd, const TABLE *table, const CheetahForeignKey &constraint) {
  String text;
  text.set_charset(system_charset_info);
  text.append(STRING_WITH_LEN("Rows were not checked for parents: the other table or an index is missing. Table and constraint: "));
  append_table_and_constraint(thd, constraint, &text);
  report(thd, table, "warning", text.ptr(), text.length());
}

// Returns the server's result code of a check. Reports errors other than damage.
int ha_cheetah::result_of_check(THD *thd, int32_t code, unsigned findings) {
  if (findings > 0 || code == CHEETAH_CODE_CORRUPTION) return HA_ADMIN_CORRUPT;
  if (code == CHEETAH_CODE_OK) return HA_ADMIN_OK;
  print_error(handler_error(code, thd), MYF(0));
  return HA_ADMIN_FAILED;
}

int ha_cheetah::cross_check(THD *thd) {
  MY_BITMAP *saved = table->read_set;
  table->use_all_columns();
  std::vector<bool> kept(disabled_);
  kept.flip();
  RowEntries expected(table, &codec_, this, kept);
  Findings findings{thd, table, 0};
  int32_t code = cheetah_check_table(txn_, engine_table_.get(), RowEntries::of_row, RowEntries::repeats, &expected,
                                     report_finding, &findings);
  if (code == CHEETAH_CODE_OK) code = check_words(report_finding, &findings);
  table->column_bitmaps_set(saved, table->write_set);
  return result_of_check(thd, code, findings.count);
}

int ha_cheetah::quick_check(THD *thd) {
  Findings findings{thd, table, 0};
  int32_t code = cheetah_check_inner_pages(txn_, engine_table_.get(), report_finding, &findings);
  return result_of_check(thd, code, findings.count);
}

// Reads in a new snapshot. If all changes were checked, each row in the snapshot has its parent,
// regardless of concurrent changes.
int32_t ha_cheetah::search_orphans(size_t no, Orphans *orphans) {
  TxnHandle txn(new_transaction());
  if (!txn) return CHEETAH_CODE_FATAL;
  int32_t code = cheetah_set_isolation(txn.get(), CHEETAH_ISOLATION_REPEATABLE_READ);
  if (code != CHEETAH_CODE_OK) return code;
  ForeignKeyList list = constraints_.list();
  return OrphanSearch(table, &codec_, this, list.get(), no).run(txn.get(), engine_table_.get(), orphans);
}

static void report_orphan_rows(THD *thd, const TABLE *table, const CheetahForeignKey &constraint, const Orphans &orphans) {
  String text;
  text.set_charset(system_charset_info);
  text.append(STRING_WITH_LEN("Rows without a parent: "));
  text.append_ulonglong(orphans.rows);
  text.append(STRING_WITH_LEN(". Table and constraint: "));
  append_table_and_constraint(thd, constraint, &text);
  text.append(STRING_WITH_LEN(". Keys: "));
  text.append(orphans.keys_text);
  if (orphans.keys > keys_told_max) text.append(STRING_WITH_LEN(", .."));
  report(thd, table, "warning", text.ptr(), text.length());
}

// Reports rows without a parent as warnings: they may result from `foreign_key_checks=0`, and are
// not damage. A parent may be altered or truncated during the search, which is then repeated.
int ha_cheetah::report_rows_without_parent(THD *thd) {
  constraints_.refresh();
  table->use_all_columns();
  unsigned attempts = 0;
  for (size_t no = 0; no < constraints_.count(CHEETAH_ROLE_CHILD);) {
    CheetahForeignKey constraint = constraints_.get(CHEETAH_ROLE_CHILD, no);
    bool is_served = constraint.child_key.columns != nullptr && constraint.parent_key.columns != nullptr;
    Orphans orphans;
    int32_t code = is_served ? search_orphans(no, &orphans) : CHEETAH_CODE_OK;
    if ((code == CHEETAH_CODE_NO_SUCH_TABLE || code == CHEETAH_CODE_TABLE_CHANGED) && attempts++ < searches_max) {
      constraints_.forget();
      constraints_.refresh();
      continue;
    }
    if (code != CHEETAH_CODE_OK) return handler_error(code, thd);
    if (!is_served) report_unserved(thd, table, constraint);
    if (orphans.rows > 0) report_orphan_rows(thd, table, constraint, orphans);
    no++;
  }
  return 0;
}

int ha_cheetah::full_check(THD *thd) {
  report_orphans(thd, table, std::string(name_, 0, name_.find('/') + 1));
  int result = cross_check(thd);
  if (result != HA_ADMIN_OK) return result;
  MY_BITMAP *saved = table->read_set;
  int error = report_rows_without_parent(thd);
  table->column_bitmaps_set(saved, table->write_set);
  if (error != 0) print_error(error, MYF(0));
  return error == 0 ? HA_ADMIN_OK : HA_ADMIN_FAILED;
}

// FAST and CHANGED skip tables that were closed properly, as all tables of this engine are.
int ha_cheetah::check(THD *thd, HA_CHECK_OPT *options) {
  if (options->flags & (T_FAST | T_CHECK_ONLY_CHANGED)) return HA_ADMIN_OK;
  int error = begin_unlocked(false);
  if (error == 0) return options->flags & T_QUICK ? quick_check(thd) : full_check(thd);
  print_error(error, MYF(0));
  return HA_ADMIN_FAILED;
}

int ha_cheetah::analyze(THD *thd, HA_CHECK_OPT *) {
  int error = handler_error(cheetah_analyze_table(engine.db, engine_table_.get()), thd);
  if (error == 0) error = refresh_sizes();
  return error == 0 ? info(HA_STATUS_CONST | HA_STATUS_VARIABLE) != 0 : HA_ADMIN_FAILED;
}

// Makes the server rebuild the table through a copy.
int ha_cheetah::optimize(THD *, HA_CHECK_OPT *) { return HA_ADMIN_TRY_ALTER; }

int ha_cheetah::repair(THD *, HA_CHECK_OPT *) { return HA_ADMIN_NOT_IMPLEMENTED; }
