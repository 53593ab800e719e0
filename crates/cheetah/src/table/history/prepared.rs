//! Prepared transactions: they have promised to end as somebody else decides, whatever happens until then.
//!
//! Invariants
//!   P1  PREPARE is logged in the mini-transaction that gives the transaction its XID, and the XID is part of the epoch
//!       state: a transaction is prepared in both or in neither (H2).
//!   P2  A prepared transaction changes nothing. Before it is rolled back its promise is withdrawn, durably, by a record of
//!       its own: a crash in the middle then finds one that must be rolled back, never the half of one that may still
//!       be committed.
//!   P3  One that nobody holds, because its client has gone or the server was started again, is in the list here, with the
//!       locks of its transaction. Those that a startup finds are there, and their tables locked as for changes, before anybody
//!       is served (M3); their rows are locked by the versions that they have made, as those of any open transaction.
//!   P4  Once prepared, its COMMIT needs no room that is not there: PREPARE has made it.
//! Locks     the list, for a moment; nothing is taken while it is held.

use super::adopt;
use super::rollback;
use super::unfinished::unfinished_error;
use crate::base::{planted, Error, Lsn, Result, TableId, Xid};
use crate::format::log_record::LogRecord;
use crate::pool::MiniTransaction;
use crate::table::definitions::shadow;
use crate::table::rows::writer::Writer;
use crate::table::shared::parts::{Core, Counters, Need};
use crate::txn::{Listed, Phase, Slot};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How often a waiter looks whether it has been interrupted.
const WAIT_SLICE_NS: u64 = 50_000_000;

/// Those that nobody holds (P3).
#[derive(Default, Debug)]
pub(crate) struct Prepared {
    list: Mutex<Vec<Waiting>>,
    left: Condvar,
}

/// A transaction that waits for a decision.
#[derive(Debug)]
struct Waiting {
    xid: Xid,
    slot: Arc<Slot>,
    listed: Listed,
    tables: Vec<TableId>,
    /// Whether the coordinator need not be told of it: it has been, or has let it be prepared in this run.
    is_told: bool,
}

impl Prepared {
    /// Takes over a transaction whose client has gone, with its locks.
    pub(crate) fn add(&self, slot: Arc<Slot>, xid: Xid, listed: Listed, tables: Vec<TableId>) {
        self.list.lock().push(Waiting { xid, slot, listed, tables, is_told: true });
    }

    /// Their names.
    pub(crate) fn xids(&self) -> Vec<Xid> {
        self.list.lock().iter().map(|waiting| waiting.xid).collect()
    }

    /// Their names, and the tables that each keeps locked.
    pub(crate) fn locks(&self) -> Vec<(Xid, Vec<TableId>)> {
        self.list.lock().iter().map(|waiting| (waiting.xid, waiting.tables.clone())).collect()
    }

    /// The names of at most `count` that were prepared before the last startup and have not been told yet.
    pub(crate) fn tell(&self, count: usize) -> Vec<Xid> {
        let mut list = self.list.lock();
        let untold = list.iter_mut().filter(|waiting| !waiting.is_told).take(count);
        let tell = |waiting: &mut Waiting| {
            waiting.is_told = true;
            waiting.xid
        };
        untold.map(tell).collect()
    }

    /// Waits until none of them keeps `table` locked; `LockTimeout`, `Interrupted`.
    pub(crate) fn wait_for(
        &self,
        table: TableId,
        timeout_ns: u64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut left_ns = timeout_ns;
        let mut list = self.list.lock();
        while list.iter().any(|waiting| waiting.tables.contains(&table)) {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            if left_ns == 0 {
                return Err(Error::LockTimeout);
            }
            let slice_ns = left_ns.min(WAIT_SLICE_NS);
            self.left.wait_for(&mut list, Duration::from_nanos(slice_ns));
            left_ns -= slice_ns;
        }
        Ok(())
    }

    fn take(&self, xid: &Xid) -> Result<Waiting> {
        let mut list = self.list.lock();
        let at = list.iter().position(|waiting| waiting.xid.names_same(xid));
        at.map(|at| list.swap_remove(at)).ok_or_else(|| Error::UnknownXid(xid.to_string()))
    }

    fn put_back(&self, waiting: Waiting) {
        self.list.lock().push(waiting);
    }

    fn note_left(&self) {
        let _list = self.list.lock();
        self.left.notify_all();
    }
}

/// Prepares the transaction; returns where the log must be durable before that counts. Outside mini-transactions.
pub(crate) fn prepare(core: &Core, slot: &Slot, xid: Xid) -> Result<Lsn> {
    shadow::check_whole(core, slot.txn())?;
    rollback::make_room_to_end(core, slot.txn())?;
    let end = log(core, slot, Some(xid))?;
    Counters::add(&core.counters.prepares);
    Ok(end)
}

/// Withdraws the promise of a transaction that is to be rolled back; nothing for one that has given none (P2). Outside
/// mini-transactions; blocks as a commit does.
pub(crate) fn withdraw(core: &Core, slot: &Slot) -> Result<()> {
    if slot.state().xid.is_none() || planted::is_on("two-phase: roll back what is still promised") {
        return Ok(());
    }
    core.make_room(Need::Back, 0)?;
    let end = log(core, slot, None)?;
    core.flush_at_commit(end)
}

fn log(core: &Core, slot: &Slot, xid: Option<Xid>) -> Result<Lsn> {
    let mut record = Vec::new();
    LogRecord::Prepare(slot.txn(), xid).encode(&mut record);
    let mtr = core.pool.enter();
    note(&mtr, slot, xid);
    core.append(&mtr, &record)
}

/// What PREPARE changes; also how redo repeats it (P1).
pub(crate) fn note(_mtr: &MiniTransaction<'_>, slot: &Slot, xid: Option<Xid>) {
    slot.state().xid = xid;
}

/// Takes over a prepared transaction that a startup has found, and locks its tables again (P3). May do I/O.
pub(crate) fn recover(core: &Core, slot: &Arc<Slot>) -> Result<()> {
    let Some(xid) = slot.state().xid else { return Ok(()) };
    let (listed, tables) = adopt::take_over(core, slot)?;
    let waiting = Waiting { xid, slot: Arc::clone(slot), listed, tables, is_told: false };
    core.prepared.put_back(waiting);
    Ok(())
}

/// Commits the transaction of that name; `UnknownXid` when none that nobody holds is called so. On return the commit is as
/// durable as the flush mode says.
pub(crate) fn commit(core: &Core, xid: &Xid) -> Result<()> {
    let waiting = core.prepared.take(xid)?;
    match rollback::commit(core, &waiting.slot) {
        Err(error) => {
            core.prepared.put_back(waiting);
            Err(error)
        }
        Ok(end) => {
            release(core, &waiting.listed);
            core.flush_at_commit(end)
        }
    }
}

/// Rolls the transaction of that name back, a long one in the background; `UnknownXid` as for [`commit`], `RollbackUnfinished` when
/// the rollback has met an error and goes on in the background. Until its end the locks stay.
pub(crate) fn roll_back(core: &Core, xid: &Xid) -> Result<()> {
    let Waiting { slot, listed, .. } = core.prepared.take(xid)?;
    listed.set_phase(Phase::RollingBack);
    core.locks.release_ranges(listed.owner());
    if core.unfinished.should_take(core, &slot) && withdraw(core, &slot).is_ok() {
        core.unfinished.add(core, slot, listed);
        core.prepared.note_left();
        return Ok(());
    }
    match rollback::roll_back(core, &slot, &mut Writer::default()) {
        Ok(()) => {
            release(core, &listed);
            Ok(())
        }
        Err(error) => {
            let txn = slot.txn();
            core.unfinished.add_rollback(core, slot, listed, error.to_string());
            core.prepared.note_left();
            Err(unfinished_error(txn, error))
        }
    }
}

fn release(core: &Core, listed: &Listed) {
    core.locks.release_all(listed.owner());
    core.prepared.note_left();
}
