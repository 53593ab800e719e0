//! Two-phase commit: a transaction is prepared here and elsewhere, a coordinator decides, and all
//! participants follow its decision.
//!
//! The order is:
//!
//! 1. `prepare`, which makes the promise durable in the log.
//! 2. The coordinator decides.
//! 3. `commit_ordered`, which fixes the transaction's position in the order of commits. It does I/O
//!    only where a mini-transaction must (full log buffer, or a page that the ended epoch needs).
//! 4. `commit`, which then waits for nothing: after a crash the coordinator repeats its decision.
//!
//! After step 1, `rollback` is possible instead. A transaction that is dropped after `prepare`
//! stays prepared and keeps its locks, and so does a prepared transaction that a startup finds:
//! [`Db::commit_prepared`] and [`Db::rollback_prepared`] end it.

use crate::base::{sound, Error, Result, Xid};
use crate::db::{Db, Transaction};
use crate::table::history::end;
use crate::table::history::prepared;

impl Transaction {
    /// Promises to commit or to roll back as the coordinator will decide, whatever happens until
    /// then. On return, the promise is as durable as the flush mode requires. A prepared
    /// transaction must only be passed to [`commit_ordered`](Self::commit_ordered), `commit` or
    /// `rollback`, or be dropped. Makes no promise if the transaction has changed nothing. Errors:
    /// those of a commit; then the transaction is not prepared.
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

    /// Commits a prepared transaction at this position in the order of commits: its changes become
    /// visible, and only the release of its locks is left to [`commit`](Self::commit). May be
    /// called from any thread while no other thread uses the transaction. Waits for no I/O, unless
    /// the log buffers are full, or a load becomes visible while the catalog is being changed. Does
    /// not fail: `commit` reports if the engine stopped meanwhile. Does nothing for a transaction
    /// that is not prepared.
    pub fn commit_ordered(&mut self) {
        let Some(slot) = self.slot.as_ref().filter(|slot| slot.state().xid.is_some()) else { return };
        self.ordered = Some(end::commit_in_place(&self.core, slot));
    }

    /// Whether it is prepared and waits for a decision.
    pub fn is_prepared(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.state().xid.is_some())
    }

    /// The transaction stays prepared and keeps its locks.
    pub(in crate::db) fn detach(&mut self) {
        // No thread reads the temporary tables any more.
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
    /// The XIDs of prepared transactions without a handle: found by a startup, or dropped.
    pub fn prepared(&self) -> Vec<Xid> {
        self.0.core.prepared.xids()
    }

    /// Up to `count` XIDs of transactions that the startup found prepared, each in one call only.
    pub fn recover(&self, count: usize) -> Vec<Xid> {
        self.0.core.prepared.tell(count)
    }

    /// Commits one of the [`prepared`](Self::prepared) transactions, as durably as any commit.
    /// Fails with `UnknownXid` if none has this XID.
    pub fn commit_prepared(&self, xid: &Xid) -> Result<()> {
        prepared::commit(&self.0.core, xid)
    }

    /// Rolls back one of the [`prepared`](Self::prepared) transactions. Fails with `UnknownXid` if
    /// none has this XID, and with `RollbackUnfinished` if the rollback continues in the
    /// background.
    pub fn rollback_prepared(&self, xid: &Xid) -> Result<()> {
        prepared::roll_back(&self.0.core, xid)
    }

    /// Waits until no [`prepared`](Self::prepared) transaction keeps `table` locked, before the
    /// table is dropped or emptied. Fails with `LockTimeout` or `Interrupted`.
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

    /// Makes all commits so far durable, in any flush mode. Blocks for I/O.
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
