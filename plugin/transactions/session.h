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

// Returns the session that must commit after the other one, as workers of a replica must; nullptr
// if their order is free.
void *later_session(void *first, void *second);

class Session {
 public:
  // Returns the session of `thd`, created by the first call; nullptr if memory is exhausted.
  static Session *of(THD *thd);
  // Returns the session of `thd`, or nullptr if it has none.
  static Session *existing(THD *thd);
  static void close(THD *thd);

  CheetahTxn *txn() { return txn_; }
  // Returns the key of the last duplicate. Kept in the session, because the server may request it
  // from a different partition than the one that found the duplicate.
  uint duplicate_key_no() const { return duplicate_key_no_; }
  void set_duplicate_key_no(uint key_no) { duplicate_key_no_ = key_no; }

  // Returns the current step of a constraint's action; nullptr while no action runs.
  const CascadeStep *cascade() const { return cascade_; }
  void set_cascade(const CascadeStep *step) { cascade_ = step; }
  // Returns the constraint that refused a row, for the error message of the statement.
  const std::string &constraint_text() const { return constraint_text_; }
  void set_constraint_text(std::string text) { constraint_text_ = std::move(text); }
  // Returns the child table and the key in which an action caused a duplicate.
  const std::pair<std::string, std::string> &duplicate_of_action() const { return duplicate_of_action_; }
  void set_duplicate_of_action(const char *table, const char *key) { duplicate_of_action_ = {table, key}; }

  // Records that the current statement created the table.
  void note_created(THD *thd, const std::string &table);
  // Returns whether CREATE TABLE .. SELECT fills the table. A replica creates the table in one
  // event and receives its rows in the next events of the same transaction in the session.
  bool fills_new_table(THD *thd, const std::string &table) const;

  // Counts a table that a handler begins to use, or stops using, for CHEETAH_TRX.
  void count_table(bool begins);
  // Registers the engine with the server for this statement, and sets a savepoint at its start.
  int register_statement(THD *thd);
  // Joins the connection's transaction before a statement uses the engine, so that savepoints of
  // the connection apply to the engine.
  int join_transaction(THD *thd);
  // Takes the snapshot for START TRANSACTION WITH CONSISTENT SNAPSHOT.
  int take_snapshot(THD *thd);
  // Returns whether a commit or rollback with `all` ends the transaction, and not just a statement.
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
  // Tables that the statement with query ID `created_by_` created; empty after a transaction ends.
  std::set<std::string> created_;
  query_id_t created_by_ = 0;
  std::string constraint_text_;
  std::pair<std::string, std::string> duplicate_of_action_;
};

// Begins a transaction whose waits end when the connection of the waiting thread is killed. Returns
// nullptr if memory is exhausted.
CheetahTxn *new_transaction();

// Returns whether the connection was killed. The engine calls this while it waits. `thd`: a THD, or
// nullptr for the THD of the calling thread.
uint8_t interrupted(void *thd);

}  // namespace cheetah
