//! Rollbacks that the background finishes: rollbacks that met an error, long ones that no client
//! should wait for, and those of transactions that startup found open.
//!
//! Invariants
//!   I1  A rollback here keeps its transaction's locks, and with them the row versions that it
//!       still has to roll back: no other transaction changes these rows. Consistent reads do not
//!       see its changes, as before. Tables locked for changes stay locked; of its exclusive table
//!       locks, it keeps only those on tables that a load is about to replace.
//!   I2  One thread at a time works on the rollbacks. A rollback that fails is retried after a
//!       delay, and the other rollbacks continue.
//!   I3  Each rollback is also in the list of active transactions, so every epoch has it. If the
//!       database is closed or crashes, the next startup finishes the remaining rollbacks.
//! Locks     `writer`, over I/O; the list, briefly.

use super::adopt;
use super::rollback;
use super::unfinished_list::{Rest, Unfinished};
use crate::base::{reach, Error, Result, TxnId};
use crate::table::definitions::shadow;
use crate::table::rows::writer::Writer;
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::txn::{Listed, Slot};
use std::sync::Arc;

const RECORDS_PER_STEP: usize = 256;
/// Undo records for which a thread waits, at most, for the rollback of a killed statement or of a
/// disconnected client: about a hundredth of a second.
const RECORDS_WAITED_FOR: u64 = 1000;
/// Steps that closing a database waits for; the next startup does the rest.
const STEPS_AT_CLOSE: usize = 512;

impl Unfinished {
    /// Takes over a rollback that met an error, with the locks of its transaction (I1).
    pub(crate) fn add_rollback(&self, core: &Core, slot: Arc<Slot>, listed: Listed, reason: String) {
        release_whole_tables(core, &slot, &listed);
        let rest = Rest::new(slot, listed, false);
        rest.fail(core.clock.now_ns(), reason);
        self.list.lock().push(Arc::new(rest));
    }

    /// Whether the rollback is long, and a background thread can do it.
    pub(crate) fn should_take(&self, core: &Core, slot: &Slot) -> bool {
        core.pace.has_threads() && slot.undo_no() > RECORDS_WAITED_FOR
    }

    /// Takes over a rollback that has not begun, with its transaction's locks (I1). The caller has
    /// withdrawn the promise, if any.
    pub(crate) fn add(&self, core: &Core, slot: Arc<Slot>, listed: Listed) {
        reach::mark("rollback left to the background");
        release_whole_tables(core, &slot, &listed);
        self.list.lock().push(Arc::new(Rest::new(slot, listed, false)));
    }

    /// Takes over a transaction that startup found open, and locks its tables again (I1). Reads its
    /// undo records.
    pub(crate) fn add_found(&self, core: &Core, slot: &Arc<Slot>) -> Result<()> {
        let (listed, _) = adopt::take_over(core, slot)?;
        self.list.lock().push(Arc::new(Rest::new(Arc::clone(slot), listed, true)));
        Ok(())
    }

    /// Works on the rollbacks that are due, and returns whether there were any. An error in one
    /// does not stop the others; the first error is returned.
    pub(crate) fn step(&self, core: &Core) -> Result<bool> {
        let now_ns = core.clock.now_ns();
        self.work_on(core, |rest| rest.is_due(now_ns))
    }

    /// Works on every rollback until it is finished or has failed once more.
    pub(crate) fn finish(&self, core: &Core) -> Result<()> {
        self.finish_within(core, usize::MAX)
    }

    /// Like [`finish`](Self::finish), but leaves work that would delay closing for long.
    pub(crate) fn finish_at_close(&self, core: &Core) -> Result<()> {
        self.finish_within(core, STEPS_AT_CLOSE)
    }

    fn finish_within(&self, core: &Core, steps_max: usize) -> Result<()> {
        let now_ns = core.clock.now_ns();
        let mut first = self.work_on(core, |_| true).map(drop);
        let mut steps_left = steps_max - 1;
        while steps_left > 0 && self.list.lock().iter().any(|rest| rest.is_due(now_ns)) {
            first = first.and(self.work_on(core, |rest| rest.is_due(now_ns)).map(drop));
            steps_left -= 1;
        }
        first
    }

    fn work_on(&self, core: &Core, is_due: impl Fn(&Rest) -> bool) -> Result<bool> {
        let mut writer = self.writer.lock();
        let due = self.list.lock().iter().filter(|rest| is_due(rest)).cloned().collect::<Vec<_>>();
        let mut done = Ok(!due.is_empty());
        for rest in due {
            match go_on(core, &rest, &mut writer) {
                Ok(true) => self.list.lock().retain(|other| !Arc::ptr_eq(other, &rest)),
                Ok(false) => {}
                Err(error) => {
                    rest.fail(core.clock.now_ns(), error.to_string());
                    done = done.and(Err(error));
                }
            }
        }
        done
    }
}

fn release_whole_tables(core: &Core, slot: &Slot, listed: &Listed) {
    core.locks.release_whole_tables(listed.owner(), &shadow::targets_of(core, slot.txn()));
}

/// Returns whether the rollback is finished.
fn go_on(core: &Core, rest: &Rest, writer: &mut Writer) -> Result<bool> {
    let finished = rollback::roll_back_some(core, &rest.slot, writer, RECORDS_PER_STEP);
    writer.release();
    if matches!(finished, Ok(true)) {
        core.locks.release_all(rest.listed.owner());
        if rest.is_found {
            Counters::add(&core.counters.transactions_recovered);
        }
    }
    finished
}

/// The error for a transaction whose rollback met `error`.
pub(crate) fn unfinished_error(txn: TxnId, error: Error) -> Error {
    match error {
        Error::Fatal(_) | Error::RollbackUnfinished { .. } => error,
        other => Error::RollbackUnfinished { txn, reason: other.to_string() },
    }
}
