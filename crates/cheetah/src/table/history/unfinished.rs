//! Rollbacks that go on in the background: those that have met an error, long ones that nobody
//! wants to wait for, and those of transactions that a startup has found open.
//!
//! Invariants
//!   I1  A rollback here keeps its transaction's locks, and with them the versions of rows that it
//!       has still to roll back: nobody changes those. Consistent reads see nothing of it, as
//!       before. Tables that it has locked for changes stay so, and as a whole only for a load that
//!       is to take their place.
//!   I2  One thread at a time works on them. One that fails rests for a while, and the others go
//!       on.
//!   I3  Each is in the list of active transactions too, so that every epoch has it: rollbacks that
//!       are here when the database is closed, or crashes, are finished by the next startup.
//! Locks     `writer`, over I/O; the list, for a moment.

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

/// Undo records that one step works on.
const RECORDS_PER_STEP: usize = 256;
/// Undo records beyond which nobody waits for the rollback of a statement that was killed, or of a
/// client that has gone: a hundredth of a second or so.
const RECORDS_WAITED_FOR: u64 = 1000;
/// Steps for which a database that is closed waits; the next startup goes on.
const STEPS_AT_CLOSE: usize = 512;

impl Unfinished {
    /// Takes over a rollback that has met an error, with the locks of its transaction (I1).
    pub(crate) fn add_rollback(&self, core: &Core, slot: Arc<Slot>, listed: Listed, reason: String) {
        release_whole_tables(core, &slot, &listed);
        let rest = Rest::new(slot, listed, false);
        rest.fail(core.clock.now_ns(), reason);
        self.list.lock().push(Arc::new(rest));
    }

    /// Whether the rollback of a transaction is long, and there is somebody here to do it.
    pub(crate) fn should_take(&self, core: &Core, slot: &Slot) -> bool {
        core.pace.has_threads() && slot.undo_no() > RECORDS_WAITED_FOR
    }

    /// Takes over a rollback that is to be done, with the locks of its transaction (I1). The caller
    /// has withdrawn the promise of a prepared one.
    pub(crate) fn add(&self, core: &Core, slot: Arc<Slot>, listed: Listed) {
        reach::mark("rollback left to the background");
        release_whole_tables(core, &slot, &listed);
        self.list.lock().push(Arc::new(Rest::new(slot, listed, false)));
    }

    /// Takes over a transaction that a startup has found open, and locks its tables again (I1).
    /// Reads its undo records.
    pub(crate) fn add_found(&self, core: &Core, slot: &Arc<Slot>) -> Result<()> {
        let (listed, _) = adopt::take_over(core, slot)?;
        self.list.lock().push(Arc::new(Rest::new(Arc::clone(slot), listed, true)));
        Ok(())
    }

    /// Works on what is due; whether anything was done. An error of one does not keep the others;
    /// the first is returned.
    pub(crate) fn step(&self, core: &Core) -> Result<bool> {
        let now_ns = core.clock.now_ns();
        self.work_on(core, |rest| rest.is_due(now_ns))
    }

    /// Works on everything until it is finished or has failed once more.
    pub(crate) fn finish(&self, core: &Core) -> Result<()> {
        self.finish_within(core, usize::MAX)
    }

    /// As [`finish`](Self::finish), but leaves what would keep the database from being closed for
    /// long.
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

/// Goes on with one; whether it is finished.
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

/// The error of a transaction whose rollback has met `error`.
pub(crate) fn unfinished_error(txn: TxnId, error: Error) -> Error {
    match error {
        Error::Fatal(_) | Error::RollbackUnfinished { .. } => error,
        other => Error::RollbackUnfinished { txn, reason: other.to_string() },
    }
}
