// SPDX-License-Identifier: GPL-2.0-only
// Two-phase commit with the binary log and other engines, and XA.
//
// The server prepares the transaction in each engine that has written, and syncs its binary log
// once for a group of transactions. The thread that leads the group then calls commit_ordered for
// each transaction, in the order of the log. Finally the thread of each connection calls commit.
// After a crash the server lists the prepared transactions, and commits those that the binary log
// contains. XA PREPARE only prepares: a client decides later, possibly over another connection.
#include "transactions/two_phase.h"

#include "engine.h"
#include "errors.h"
#include "transactions/session.h"
#include "settings.h"

namespace cheetah {

// Results of commit_by_xid and rollback_by_xid, with X/Open's numbers. The server's headers do not
// define them.
enum XaAnswer { xa_ok = 0, xa_failed = -3, xa_unknown = -4 };

static CheetahXid cheetah_xid(const XID *xid) {
  const auto *name = reinterpret_cast<const uint8_t *>(xid->data);
  auto global = static_cast<size_t>(xid->gtrid_length), branch = static_cast<size_t>(xid->bqual_length);
  return CheetahXid{static_cast<uint64_t>(xid->formatID), {name, global}, {name + global, branch}};
}

static int prepare(THD *thd, bool all) {
  Session *session = Session::existing(thd);
  if (session == nullptr || !Session::ends_transaction(thd, all)) return 0;
  CheetahXid xid = cheetah_xid(thd->get_xid());
  return handler_error(cheetah_prepare(session->txn(), &xid), thd);
}

static void commit_ordered(THD *thd, bool) {
  Session *session = Session::existing(thd);
  if (session != nullptr) cheetah_commit_ordered(session->txn());
}

struct XidList {
  XID *next;
};

static void add_xid(void *context, const CheetahXid *xid) {
  auto *list = static_cast<XidList *>(context);
  list->next->set(static_cast<long>(xid->format), reinterpret_cast<const char *>(xid->global.data),
                  static_cast<long>(xid->global.len), reinterpret_cast<const char *>(xid->branch.data),
                  static_cast<long>(xid->branch.len));
  list->next++;
}

static int recover(XID *xids, uint count) {
  XidList list{xids};
  return static_cast<int>(cheetah_recover(engine.db, count, add_xid, &list));
}

// Returns the result of ending a transaction by its XID. The server calls every engine, and ignores
// errors that are not reported with my_error.
static int end_by_xid(int32_t code) {
  if (code == CHEETAH_CODE_OK) return xa_ok;
  if (code == CHEETAH_CODE_UNKNOWN_XID) return xa_unknown;
  handler_error(code, current_thd);
  // The rollback continues in the background, so the decision took effect.
  if (code == CHEETAH_CODE_ROLLBACK) return xa_ok;
  my_error(ER_XAER_RMERR, MYF(0));
  return xa_failed;
}

static int commit_by_xid(XID *xid) {
  CheetahXid name = cheetah_xid(xid);
  return end_by_xid(cheetah_commit_prepared(engine.db, &name));
}

static int rollback_by_xid(XID *xid) {
  CheetahXid name = cheetah_xid(xid);
  return end_by_xid(cheetah_rollback_prepared(engine.db, &name));
}

// Makes all commits so far durable, and notifies the server. If the log cannot be synced, the
// engine has stopped. Then the server is not notified, and must keep its binary log.
static void commit_checkpoint_request(void *cookie) {
  if (cheetah_sync_log(engine.db) == CHEETAH_CODE_OK) commit_checkpoint_notify_ha(cookie);
}

void set_two_phase(handlerton *hton) {
  hton->prepare = of_transaction<prepare>;
  hton->commit_ordered = of_transaction<commit_ordered>;
  hton->recover = of_transaction<recover>;
  hton->commit_by_xid = of_transaction<commit_by_xid>;
  hton->rollback_by_xid = of_transaction<rollback_by_xid>;
  hton->commit_checkpoint_request = commit_checkpoint_request;
}

static void ignore_xid(void *, const CheetahXid *) {}

void warn_of_untold_prepared() {
  if (!mysqld_server_started) return;
  unsigned count = cheetah_recover(engine.db, ~0U, ignore_xid, nullptr);
  if (count == 0) return;
  sql_print_warning("CHEETAH: %u prepared transactions hold locks on the rows they changed, and the server finds such transactions "
                    "only while it starts: load the plugin in the server's configuration, restart the server, then end them (XA RECOVER)",
                    count);
}

int wait_for_prepared(const std::string &name, THD *thd) {
  // The server completes a statement that a crash interrupted. The statement had already waited.
  if (thd == nullptr || !engine.ddl_recovered) return 0;
  uint64_t timeout_ns = lock_wait_timeout_ns(thd);
  return handler_error(cheetah_wait_for_prepared(engine.db, bytes_of(name), timeout_ns, interrupted, thd), thd);
}

bool takes_part_in_two_phase() { return engine.hton->prepare != nullptr; }

}  // namespace cheetah
