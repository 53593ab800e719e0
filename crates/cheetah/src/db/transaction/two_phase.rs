//! Two-phase commit: a transaction is prepared here and elsewhere, somebody else decides, and
//! everybody does as decided.
//!
//! Order: `prepare`, which the log makes durable; the decision; `commit_ordered`, which takes the
//! transaction's place in the order of commits, with no I/O but what a mini-transaction must do (a
//! full buffer of the log, a page that the ended epoch needs); `commit`, which then has nothing
//! left to wait for: after a crash whoever has decided says so again. Or `rollback`. A transaction
//! that is dropped after `prepare` goes on waiting, with its locks, and so does one that a startup
//! finds: [`Db::commit_prepared`] and [`Db::rollback_prepared`] end it.

use crate::base::{sound, Error, Result, Xid};
use crate::db::{Db, Transaction};
use crate::table::history::end;
use crate::table::history::prepared;

impl Transaction {
    /// Promises to commit or to roll back, as will be decided, whatever happens until then. On
    /// return the promise is as durable as the flush mode says. Until it has ended the transaction
    /// takes only [`commit_ordered`](Self::commit_ordered), `commit`, `rollback`, and being
    /// dropped. Nothing to do for one that has changed nothing. Errors: those of a commit; then it
    /// is not prepared.
    pub fn prepare(&mut self, xid: Xid) -> Result<()> {
        self.end_statement();
        self.check_loads_have_ended()?;
        self.end_if_unchanged(end::is_unlogged)?;
        self.view.end();
        match self.slot.clone() {
            None => Ok(()),
            Some(slot) => {
                let end = prepared::prepare(&self.core, &slot, xid)?;
                match sound!(true, "two-phase: return before PREPARE is durable") {
                    true => self.core.journal.flush_at_commit(end),
                    false => Ok(()),
                }
            }
        }
    }

    /// Commits a prepared transaction in this place of the order of commits: it is visible, and
    /// only the release of its locks is left to [`commit`](Self::commit). From any thread while no
    /// other one uses the transaction. Waits for no I/O, unless the buffers of the log are full or
    /// a load takes its place while the catalog is changed, and does not fail: `commit` tells when
    /// the engine has stopped meanwhile. Nothing to do for a transaction that is not prepared.
    pub fn commit_ordered(&mut self) {
        let Some(slot) = self.slot.as_ref().filter(|slot| slot.state().xid.is_some()) else { return };
        self.ordered = Some(end::commit_in_place(&self.core, slot));
    }

    /// Whether it waits for a decision.
    pub fn is_prepared(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.state().xid.is_some())
    }

    /// Lets go of a prepared transaction, which goes on waiting with its locks.
    pub(in crate::db) fn detach(&mut self) {
        // Nobody sees the tables any more.
        let _ = self.roll_back_temporary();
        let Some(slot) = self.slot.take() else { return };
        let xid = slot.state().xid;
        if let Some(xid) = xid {
            let (listed, mut tables) = self.give_up_locks();
            tables.retain(|table| !table.is_temporary());
            let changed = std::mem::take(&mut self.changed);
            self.core.prepared.add(slot, xid, listed, tables, changed);
        }
    }
}

impl Db {
    /// The names of the prepared transactions that nobody holds: those that a startup has found,
    /// and those that were dropped.
    pub fn prepared(&self) -> Vec<Xid> {
        self.0.core.prepared.xids()
    }

    /// The names of at most `count` transactions that the startup has found prepared, each only
    /// once.
    pub fn recover(&self, count: usize) -> Vec<Xid> {
        self.0.core.prepared.tell(count)
    }

    /// Commits one of [`prepared`](Self::prepared); durable on return as any commit. `UnknownXid`
    /// when none is called so.
    pub fn commit_prepared(&self, xid: &Xid) -> Result<()> {
        prepared::commit(&self.0.core, xid)
    }

    /// Rolls one of [`prepared`](Self::prepared) back. `UnknownXid` when none is called so;
    /// `RollbackUnfinished` when the rollback goes on in the background.
    pub fn rollback_prepared(&self, xid: &Xid) -> Result<()> {
        prepared::roll_back(&self.0.core, xid)
    }

    /// Waits until none of [`prepared`](Self::prepared) keeps the table of that name locked: for
    /// those who drop or empty it. `LockTimeout`, `Interrupted`.
    pub fn wait_for_prepared(
        &self,
        table: &str,
        timeout_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        match self.0.core.catalog.by_name(table) {
            Ok(table) => self.0.core.prepared.wait_for(table.id(), timeout_ns, interrupted),
            Err(Error::NoSuchTable(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes all durable that has been committed so far, in any flush mode. Blocks for I/O.
    pub fn sync_log(&self) -> Result<()> {
        self.0.core.journal.sync(self.0.core.journal.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_change_threads<T: Send>() {}

    #[test]
    fn a_transaction_may_be_committed_by_another_thread() {
        may_change_threads::<Transaction>();
    }
}
