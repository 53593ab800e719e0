//! The end of a transaction: commit, rollback, and the release of its locks (I2, I3, I5 and I6 of
//! [`super::handle`]).

use crate::base::stages::Stage;
use crate::base::{sound, Error, Result, SessionId, TableId};
use crate::db::{Savepoint, Transaction};
use crate::table::history::prepared;
use crate::table::history::unfinished::unfinished_error;
use crate::table::history::{end, rollback};
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::Table;
use crate::txn::{Listed, Phase, ReadView, Slot};
use std::sync::Arc;

/// Undo records that a transaction purges at its end, if it helps to purge.
const RECORDS_PURGED_AT_END: usize = 8;
/// Undo pages from which transactions help to purge, because the background does not keep up.
const UNDO_PAGES_HELPED: usize = 4096;

/// When a commit becomes durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    /// As the flush mode requires.
    AsUsersAsk,
    /// Some time after the call returns.
    Later,
}

impl Transaction {
    /// Commits, and releases all locks. On return, the commit is as durable as the flush mode
    /// requires. After [`commit_ordered`](Self::commit_ordered) the coordinator already knows of
    /// the commit, and this call waits for nothing. The handle can be used for another transaction.
    /// Fails with `RolledBack`, or an error of [`rollback`](Self::rollback), if the commit was
    /// refused. After a fatal error, the outcome is known only after the next startup.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_as(Durable::AsUsersAsk)
    }

    /// Like [`commit`](Self::commit), but never waits; durable with the next sync, in about 1 s.
    pub(in crate::db) fn commit_lazily(&mut self) -> Result<()> {
        self.commit_as(Durable::Later)
    }

    fn commit_as(&mut self, durable: Durable) -> Result<()> {
        if let Err(error) = self
            .check_loads_have_ended()
            .and_then(|()| self.end_if_unchanged(end::is_unchanged))
            .and_then(|()| self.make_room_for_temporary())
        {
            return Err(self.roll_back_instead(error));
        }
        if let Some(slot) = self.slot.clone() {
            self.listed.set_phase(Phase::Committing);
            let ordered = self.ordered.take();
            let is_ordered = ordered.is_some();
            let log = || {
                self.writer.release();
                if !sound!(true, "commit: lose the last change") {
                    let logged = slot.undo_no().saturating_sub(1);
                    self.roll_back_to(Savepoint { logged, temporary: u64::MAX })?;
                }
                end::commit(&self.core, &slot)
            };
            let end = match ordered.unwrap_or_else(log) {
                Ok(end) => end,
                Err(error) => return Err(self.roll_back_instead(error)),
            };
            self.slot = None;
            self.commit_temporary()?;
            // Before other transactions receive the locks, and before any wait.
            self.show_filled_tables();
            self.view.end();
            self.changed.tell();
            self.release_locks();
            match durable {
                Durable::Later => {}
                Durable::AsUsersAsk if is_ordered => self.core.journal.write_at_commit(end)?,
                Durable::AsUsersAsk => self.core.journal.flush_at_commit(end)?,
            }
            self.clean_up();
        } else if self.temporary.is_some() {
            Counters::add(&self.core.counters.commits);
        }
        self.commit_temporary()?;
        self.writer.release();
        self.view.end();
        self.show_filled_tables();
        self.release_locks();
        Ok(())
    }

    /// Records that the caller's statement created the table and is filling it: snapshots older
    /// than its commit are refused the table (`TableChanged`), because they cannot see all of it.
    /// The caller must ensure that no other transaction uses the table before the commit.
    pub fn fill_new_table(&mut self, table: &Table) {
        self.filled.insert(table.id());
    }

    /// Makes the tables that the transaction filled known to new snapshots (table::K1).
    fn show_filled_tables(&mut self) {
        let filled = std::mem::take(&mut self.filled);
        if !sound!(true, "create: show a table before all its rows") {
            return;
        }
        for table in filled.into_iter().filter_map(|id| self.core.catalog.by_id(id)) {
            table.set_known_since(self.core.transactions.versions.take_stamp());
        }
    }

    /// Makes room for the commit of the changes of temporary tables. A decided commit does not wait
    /// for room; that of a prepared transaction is never refused for lack of room.
    fn make_room_for_temporary(&self) -> Result<()> {
        match &self.temporary {
            Some(slot) if self.ordered.is_none() => {
                let room = end::make_room_to_end(&self.core, slot.txn());
                if self.is_prepared() {
                    Ok(())
                } else {
                    room
                }
            }
            _ => Ok(()),
        }
    }

    fn commit_temporary(&mut self) -> Result<()> {
        let Some(slot) = self.temporary.take() else { return Ok(()) };
        end::commit_temporary(&self.core, &slot)?;
        self.changed.tell();
        self.clean_up();
        Ok(())
    }

    /// After an error the rows of temporary tables are partly rolled back, and the tables are
    /// quarantined: the background only ends the transaction.
    pub(in crate::db) fn roll_back_temporary(&mut self) -> Result<()> {
        let Some(slot) = self.temporary.take() else { return Ok(()) };
        let core = Arc::clone(&self.core);
        let _stall = core.begin_stall(Stage::RollingBack);
        self.locker.forget_scanned();
        let done = rollback::roll_back(&core, &slot, &mut self.writer);
        self.writer.release();
        done.map_err(|error| {
            slot.for_each_count(|table, _| {
                core.catalog.by_id(table).into_iter().for_each(|table| table.quarantine(error.to_string()));
            });
            core.unfinished.add_rollback(&core, Arc::clone(&slot), core.list_found(&slot), error.to_string());
            unfinished_error(slot.txn(), error)
        })
    }

    /// Ends the transaction, except for its locks, if none of its changes remain, as `is_unchanged`
    /// decides: there is nothing to wait for (I6). Errors: those of a rollback.
    pub(in crate::db) fn end_if_unchanged(
        &mut self,
        is_unchanged: impl Fn(&Core, &Slot) -> bool,
    ) -> Result<()> {
        // The end was already logged, perhaps for a load alone.
        if self.ordered.is_some() {
            return Ok(());
        }
        self.catch_up()?;
        if let Some(slot) = self.slot.as_ref().filter(|slot| is_unchanged(&self.core, slot)) {
            end::end_unchanged(&self.core, slot)?;
            self.slot = None;
            self.changed.forget();
            self.clean_up();
        }
        Ok(())
    }

    fn roll_back_instead(&mut self, error: Error) -> Error {
        if let Error::Fatal(_) = error {
            return error;
        }
        self.rollback().err().unwrap_or(Error::RolledBack(error.to_string()))
    }

    /// Rolls back all changes and releases all locks. If that takes long and the caller was
    /// interrupted, the background does it. The handle can be used for another transaction, even
    /// after an error. Fails with `RollbackUnfinished` if the rollback encountered an error and
    /// continues in the background, with the locks (I3). Changes that
    /// [`commit_ordered`](Self::commit_ordered) committed remain committed.
    pub fn rollback(&mut self) -> Result<()> {
        if self.ordered.is_some() {
            return self.commit();
        }
        self.writer.release();
        self.back_to = None;
        self.unended_loads = 0;
        self.filled.clear();
        self.changed.forget();
        self.view.end();
        let temporary = self.roll_back_temporary();
        if let Some(slot) = self.slot.take() {
            let core = Arc::clone(&self.core);
            let _stall = core.begin_stall(Stage::RollingBack);
            self.listed.set_phase(Phase::RollingBack);
            self.locker.forget_scanned();
            self.core.locks.release_ranges(self.locker.owner);
            if self.locker.is_interrupted() && self.core.unfinished.should_take(&self.core, &slot) {
                return self.leave_rollback(slot);
            }
            let done = rollback::roll_back(&self.core, &slot, &mut self.writer);
            self.writer.release();
            if let Err(error) = done {
                return Err(self.hand_over(slot, error));
            }
            self.clean_up();
        }
        self.release_locks();
        temporary
    }

    /// Hands a long rollback, with its locks, over to the background: the caller was interrupted.
    fn leave_rollback(&mut self, slot: Arc<Slot>) -> Result<()> {
        self.writer.unclaimed.clear();
        if let Err(error) = prepared::withdraw(&self.core, &slot) {
            return Err(self.hand_over(slot, error));
        }
        let (listed, _) = self.give_up_locks();
        if !sound!(true, "rollback: leave it without its locks") {
            self.core.locks.release_all(listed.owner());
        }
        self.core.unfinished.add(&self.core, slot, listed);
        Ok(())
    }

    /// Hands a rollback that encountered `error` over to the background, with its locks.
    fn hand_over(&mut self, slot: Arc<Slot>, error: Error) -> Error {
        let (listed, _) = self.give_up_locks();
        let (core, txn) = (&self.core, slot.txn());
        core.unfinished.add_rollback(core, slot, listed, error.to_string());
        unfinished_error(txn, error)
    }

    /// Becomes a new owner without locks. Returns the old one, and its locked tables, for the code
    /// that takes over its transaction.
    pub(in crate::db) fn give_up_locks(&mut self) -> (Listed, Vec<TableId>) {
        self.end_bulk_inserts();
        let core = &self.core;
        self.view = Arc::new(ReadView::new(&core.transactions.versions));
        let listed =
            core.transactions.roster.enter(core.transactions.new_owner(), Some(Arc::clone(&self.view)));
        self.locker = Arc::new(self.locker.successor(&self.view, listed.entry()));
        listed.set_connection(self.listed.connection());
        listed.set_tables_in_use(self.listed.tables_in_use());
        listed.set_isolation(self.isolation as u8);
        let old = std::mem::replace(&mut self.listed, listed);
        old.set_connection(0);
        old.set_tables_in_use(0);
        old.set_session(SessionId::NONE);
        self.listed.set_session(self.session);
        (old, self.locks.drain(..).map(|lock| lock.0).collect())
    }

    fn release_locks(&mut self) {
        self.end_bulk_inserts();
        self.listed.end();
        self.locks.clear();
        self.locker.forget_scanned();
        self.core.locks.release_all(self.locker.owner);
        self.locker.note_undo_records(0);
    }

    /// Purges a little if the background does not keep up, or if there is no background (I5).
    fn clean_up(&self) {
        let core = &self.core;
        if !core.pace.has_threads() || core.transactions.undo.pages_count() >= UNDO_PAGES_HELPED {
            let _ = core.purge.step(core, RECORDS_PURGED_AT_END);
            core.trim_undo();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_prepared() {
            self.detach();
        }
        // No caller remains that could wait or receive an error (I3).
        self.interrupt_when(|| true);
        let _ = self.rollback();
    }
}
