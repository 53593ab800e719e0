// SPDX-License-Identifier: GPL-2.0-only
// mariadb-backup blocks commits, notes the position of the binary log, and ends BACKUP STAGE. The
// server calls end_backup before it releases commits, so the pinned state matches that position.
//
// A program that copies only the engines it knows would report success without our tables. So the
// first stage fails, unless the backup was announced as one that handles this engine. The program
// cheetah-backup announces it in a separate session, because it cannot use the session of
// mariadb-backup. Other programs set a variable.
#include "backup.h"

#include "ddl/orphans.h"
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "settings.h"
#include "transactions/session.h"
#include "transactions/stages.h"

#include <ctime>
#include <utility>
#include <vector>

namespace cheetah {

// Lines for the manifest of a snapshot: a word and its text.
using Notes = std::vector<std::pair<std::string, std::string>>;

static std::vector<CheetahNote> told(const Notes &notes) {
  std::vector<CheetahNote> list;
  for (const auto &[word, text] : notes) list.push_back({bytes_of(word), bytes_of(text)});
  return list;
}

static std::string time_now() {
  time_t seconds = time(nullptr);
  tm parts;
  char text[32];
  gmtime_r(&seconds, &parts);
  return std::string(text, strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

static Notes notes_of(const char *by) {
  return {{"server", server_version}, {"pinned", time_now()}, {"by", by}};
}

// Adds the position of the binary log to the notes. Must be called while commits are blocked.
static void note_position(Notes *notes) {
  if (!mysql_bin_log.is_open()) return;
  LOG_INFO end;
  mysql_bin_log.get_current_log(&end);
  const char *name = end.log_file_name + dirname_length(end.log_file_name);
  notes->emplace_back("binlog", std::string(name) + " " + std::to_string(end.pos));
  String gtid;
  if (!mysql_bin_log.append_state_pos(&gtid)) notes->emplace_back("gtid", std::string(gtid.ptr(), gtid.length()));
}

// Returns whether the backup still blocks commits. The result is false if its stages ended early,
// or the connection was lost.
static bool blocks_commits(THD *thd) {
  return thd != nullptr && !thd_killed(thd) &&
         thd->mdl_context.is_lock_owner(MDL_key::BACKUP, "", "", MDL_BACKUP_WAIT_COMMIT);
}

static void end_backup() {
  THD *thd = current_thd;
  if (!blocks_commits(thd)) return;
  Notes notes = notes_of("backup");
  note_position(&notes);
  std::vector<CheetahNote> list = told(notes);
  int32_t code = cheetah_pin_snapshot(engine.db, list.data(), list.size());
  if (code == CHEETAH_CODE_END) return;
  if (code == CHEETAH_CODE_OK) {
    sql_print_information("CHEETAH: a backup has ended its stages: the current state is pinned for %u s. "
                          "SET GLOBAL cheetah_create_snapshot = '/new/directory' writes it, as cheetah-backup does",
                          snapshot_max_age());
    return;
  }
  String message = last_message();
  sql_print_error("CHEETAH: a backup has ended its stages, but the state could not be pinned: %s",
                  message.c_ptr_safe());
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG, "CHEETAH: nothing was pinned: %s",
                      message.c_ptr_safe());
}

static bool has_lasting_tables() {
  for (const std::string &name : table_names("")) {
    if (!is_temporary_name(name)) return true;
  }
  return false;
}

// Returns whether a session holds the user lock that announces that the next backup handles this
// engine. The server releases the lock when the session ends for any reason. An announcement is
// valid for one backup only. A second backup that waited for the end of the first one's stages is
// not announced. The server runs the stages of one backup at a time.
static bool is_announced(THD *thd) {
  MDL_key lock(MDL_key::USER_LOCK, "cheetah_backup_stages", "");
  unsigned long session = thd->mdl_context.get_lock_owner(&lock);
  if (session == 0 || session == engine.announcer) return false;
  engine.announcer = session;
  return true;
}

// Refuses a backup that would leave out the engine's tables. The server has no way to refuse the
// stage itself: the stage begins, but the statement fails.
static void prepare_for_backup() {
  THD *thd = current_thd;
  if (thd == nullptr || is_announced(thd) || !has_lasting_tables()) return;
  if (allows_foreign_backup(thd)) {
    sql_print_warning("CHEETAH: a backup starts, as cheetah_allow_foreign_backup is ON. Programs that copy the files of known "
                      "engines, like mariadb-backup, leave out all CHEETAH tables (#cheetah)");
    return;
  }
  static const char *refusal = "CHEETAH: mariadb-backup and similar programs leave out the data of all CHEETAH tables: use "
                               "cheetah-backup, which calls mariadb-backup and adds these tables, or mariadb-dump. For file "
                               "system snapshots, which contain them, SET cheetah_allow_foreign_backup = ON (GLOBAL for programs)";
  sql_print_error("%s", refusal);
  my_printf_error(ER_BACKUP_STAGE_FAILED, "%s. (The stage has begun: BACKUP STAGE END ends it)", MYF(0), refusal);
}

static uint8_t is_own(const CheetahXid *xid) {
  XID name;
  name.set(static_cast<long>(xid->format), reinterpret_cast<const char *>(xid->global.data),
           static_cast<long>(xid->global.len), reinterpret_cast<const char *>(xid->branch.data),
           static_cast<long>(xid->branch.len));
  return name.get_my_xid() != 0;
}

bool create_snapshot(THD *thd, const std::string &path) {
  Notes notes = notes_of("statement");
  std::vector<CheetahNote> list = told(notes);
  CheetahSnapshotOrder order{bytes_of(path), bytes_of(mysql_real_data_home), list.data(), list.size(),
                             is_own,         interrupted,                    thd};
  CheetahSnapshot snapshot{};
  InStage stage(thd, &stage_writing_snapshot);
  int32_t code = cheetah_create_snapshot(engine.db, &order, &snapshot);
  if (code == CHEETAH_CODE_OK) {
    sql_print_information("CHEETAH: a snapshot is in %s: %llu files of %llu bytes, of which %llu bytes were copied",
                          path.c_str(), static_cast<ulonglong>(snapshot.files_count),
                          static_cast<ulonglong>(snapshot.bytes), static_cast<ulonglong>(snapshot.copied_bytes));
    return false;
  }
  if (code == CHEETAH_CODE_INTERRUPTED) {
    thd->send_kill_message();
    return true;
  }
  String message = last_message();
  my_printf_error(ER_CANT_CREATE_FILE, "CHEETAH: cannot create the snapshot: %s", MYF(0), message.c_ptr_safe());
  return true;
}

void set_backup(handlerton *hton) {
  hton->prepare_for_backup = prepare_for_backup;
  hton->end_backup = end_backup;
}

}  // namespace cheetah
