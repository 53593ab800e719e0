// SPDX-License-Identifier: GPL-2.0-only
// The state of a connection in the engine: one transaction, and the start of its current statement.
#pragma once

#include "server.h"
#include "cheetah.h"

#include <set>
#include <string>
#include <utility>

namespace cheetah {

struct CascadeStep;

// Which of two sessions must commit after the other one, as a replica's workers; nullptr for
// others.
void *later_session(void *first, void *second);

class Session {
 public:
  // The session of `thd`, made at the first call; nullptr when the engine has no memory for one.
  static Session *of(THD *thd);
  // The session if there is one.
  static Session *existing(THD *thd);
  static void close(THD *thd);

  CheetahTxn *txn() { return txn_; }
  // The key that failed last as a duplicate. Of the connection, as a partitioned table does not
  // always ask the partition that has met it.
  uint duplicate_key_no() const { return duplicate_key_no_; }
  void set_duplicate_key_no(uint key_no) { duplicate_key_no_ = key_no; }

  // The row that an action of a constraint is at; nullptr while none is followed.
  const CascadeStep *cascade() const { return cascade_; }
  void set_cascade(const CascadeStep *step) { cascade_ = step; }
  // The constraint that has refused a row, for the message of the statement.
  const std::string &constraint_text() const { return constraint_text_; }
  void set_constraint_text(std::string text) { constraint_text_ = std::move(text); }
  // The child and the key that an action has met twice.
  const std::pair<std::string, std::string> &duplicate_of_action() const { return duplicate_of_action_; }
  void set_duplicate_of_action(const char *table, const char *key) { duplicate_of_action_ = {table, key}; }

  // The current statement has created the table.
  void note_created(THD *thd, const std::string &table);
  // Whether CREATE TABLE .. SELECT fills the table. A replica creates it by one event, and gets its
  // rows by others of the same transaction: those that come next in the session.
  bool fills_new_table(THD *thd, const std::string &table) const;

  // A handler begins to use its table, or does so no more: for CHEETAH_TRX.
  void count_table(bool begins);
  // Tells the server that this statement uses the engine; remembers where the statement began.
  int register_statement(THD *thd);
  // Takes part in the connection's transaction before a statement uses the engine, so that its
  // savepoints count.
  int join_transaction(THD *thd);
  // START TRANSACTION WITH CONSISTENT SNAPSHOT.
  int take_snapshot(THD *thd);
  // Whether a call of the server with `all` ends the transaction, and not only a statement of it.
  static bool ends_transaction(THD *thd, bool all);
  int commit(THD *thd, bool all);
  int rollback(THD *thd, bool all);

 private:
  explicit Session(CheetahTxn *txn) : txn_(txn) {}
  int begin_transaction(THD *thd);
  void end_statement();
  int end_transaction(THD *thd, bool commit);

  CheetahTxn *txn_;
  CheetahSavepoint statement_start_ = {};
  uint32_t tables_in_use_ = 0;
  bool in_transaction_ = false;
  bool in_statement_ = false;
  uint duplicate_key_no_ = ~0U;
  const CascadeStep *cascade_ = nullptr;
  // Tables that the statement of this number has created; none once a transaction has ended.
  std::set<std::string> created_;
  query_id_t created_by_ = 0;
  std::string constraint_text_;
  std::pair<std::string, std::string> duplicate_of_action_;
};

// A transaction that asks the connection of the thread that uses it while it waits; nullptr without
// memory.
CheetahTxn *new_transaction();

// Whether the connection wants the engine to stop what it does; for waits inside the engine. `thd`:
// a THD, or nullptr for that of the calling thread.
uint8_t interrupted(void *thd);

}  // namespace cheetah
