//! Rollbacks that have met an error, which go on in the background.
//!
//! Invariants
//!   I1  A rollback here keeps the table locks of its transaction until it is complete: nobody sees or changes what is half
//!       taken back.
//!   I2  One thread at a time works on them. One that fails rests for a while, and the others go on.
//!   I3  Each is in the list of active transactions too, so that every generation has it: what is here when the database
//!       is closed, or crashes, is finished by the next opening.
//! Locks     `work`, over I/O; the list, for a moment.

use super::core::Core;
use super::rollback;
use super::row_op::Writer;
use crate::base::{Error, Result, TableId, TxnId};
use crate::txn::{Listed, Phase, Slot};
use parking_lot::Mutex;
use std::sync::Arc;

/// Undo records that one step works on.
const RECORDS_PER_STEP: usize = 256;
/// How long one that has failed rests.
const REST_NS: u64 = 1_000_000_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Unfinished {
    list: Mutex<Vec<Arc<Rest>>>,
    work: Mutex<Writer>,
}

/// What is left of a transaction, and its locks.
struct Rest {
    slot: Arc<Slot>,
    listed: Listed,
    tables: Vec<TableId>,
    failed: Mutex<Option<Failure>>,
}

struct Failure {
    reason: String,
    retry_ns: u64,
}

impl Rest {
    fn is_due(&self, now_ns: u64) -> bool {
        self.failed.lock().as_ref().is_none_or(|failure| failure.retry_ns <= now_ns)
    }

    fn fail(&self, now_ns: u64, reason: String) {
        *self.failed.lock() = Some(Failure { reason, retry_ns: now_ns + REST_NS });
    }
}

impl Unfinished {
    /// Takes over a rollback that has met an error, with the locks of its transaction (I1).
    pub(crate) fn add_rollback(
        &self,
        slot: Arc<Slot>,
        listed: Listed,
        tables: Vec<TableId>,
        now_ns: u64,
        reason: String,
    ) {
        listed.set_phase(Phase::RollingBack);
        let rest = Rest { slot, listed, tables, failed: Mutex::default() };
        rest.fail(now_ns, reason);
        self.list.lock().push(Arc::new(rest));
    }

    /// How many rollbacks are here.
    pub(crate) fn rollbacks_count(&self) -> usize {
        self.list.lock().len()
    }

    /// The rollback that keeps `table` locked, and what it has met.
    pub(crate) fn rollback_of(&self, table: TableId) -> Option<(TxnId, String)> {
        let list = self.list.lock();
        let rest = list.iter().find(|rest| rest.tables.contains(&table))?;
        let reason = rest.failed.lock().as_ref().map(|failure| failure.reason.clone());
        reason.map(|reason| (rest.slot.txn(), reason))
    }

    /// Works on what is due; whether anything was done. An error of one does not keep the others; the first is returned.
    pub(crate) fn step(&self, core: &Core) -> Result<bool> {
        let now_ns = core.clock.now_ns();
        self.work_on(core, |rest| rest.is_due(now_ns))
    }

    /// Works on everything until it is finished or has failed once more.
    pub(crate) fn finish(&self, core: &Core) -> Result<()> {
        let now_ns = core.clock.now_ns();
        let mut first = self.work_on(core, |_| true).map(drop);
        while self.list.lock().iter().any(|rest| rest.is_due(now_ns)) {
            first = first.and(self.work_on(core, |rest| rest.is_due(now_ns)).map(drop));
        }
        first
    }

    fn work_on(&self, core: &Core, is_due: impl Fn(&Rest) -> bool) -> Result<bool> {
        let mut writer = self.work.lock();
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

/// Goes on with one; whether it is finished.
fn go_on(core: &Core, rest: &Rest, writer: &mut Writer) -> Result<bool> {
    let finished = rollback::roll_back_some(core, &rest.slot, writer, RECORDS_PER_STEP);
    writer.release();
    if matches!(finished, Ok(true)) {
        core.locks.release_all(rest.listed.owner());
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
