// SPDX-License-Identifier: GPL-2.0-only
// CHECK, ANALYZE, OPTIMIZE, REPAIR.
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

// Names tables of the same database that the engine has and the server does not know.
static void report_orphans(THD *thd, const TABLE *table, const std::string &database) {
  // Temporary tables of any session have none; the server's start drops what a crash leaves of
  // them.
  if (database == "#tmp/") return;
  for (const std::string &name : table_names(database)) {
    if (has_definition(name)) continue;
    std::string text = "The engine has a table '" + name +
                       "' without a .frm file (it was dropped while the plugin was missing): DROP TABLE removes it";
    report(thd, table, "warning", text.data(), text.size());
  }
}

int ha_cheetah::cross_check(THD *thd) {
  MY_BITMAP *saved = table->read_set;
  table->use_all_columns();
  std::vector<bool> kept(disabled_);
  kept.flip();
  RowEntries expected(table, &codec_, this, kept);
  Findings findings{thd, table, 0};
  int32_t code = cheetah_check_table(engine.db, engine_table_.get(), RowEntries::of_row, &expected, report_finding,
                                     &findings);
  if (code == CHEETAH_OK) code = check_words(report_finding, &findings);
  table->column_bitmaps_set(saved, table->write_set);
  if (findings.count > 0 || code == CHEETAH_CORRUPTION) return HA_ADMIN_CORRUPT;
  if (code == CHEETAH_OK) return HA_ADMIN_OK;
  table->file->print_error(handler_error(code, thd), MYF(0));
  return HA_ADMIN_FAILED;
}

int ha_cheetah::check(THD *thd, HA_CHECK_OPT *) {
  report_orphans(thd, table, std::string(name_, 0, name_.find('/') + 1));
  int error = lock_engine_table(false);
  if (error == 0) return cross_check(thd);
  print_error(error, MYF(0));
  return HA_ADMIN_FAILED;
}

int ha_cheetah::analyze(THD *thd, HA_CHECK_OPT *) {
  int error = handler_error(cheetah_analyze_table(engine.db, engine_table_.get()), thd);
  if (error == 0) error = refresh_sizes();
  return error == 0 ? info(HA_STATUS_CONST | HA_STATUS_VARIABLE) != 0 : HA_ADMIN_FAILED;
}

// Rebuilding is the server's: it copies the table.
int ha_cheetah::optimize(THD *, HA_CHECK_OPT *) { return HA_ADMIN_TRY_ALTER; }

int ha_cheetah::repair(THD *, HA_CHECK_OPT *) { return HA_ADMIN_NOT_IMPLEMENTED; }
