//! Prepared transactions: they have promised to commit or roll back as an external coordinator
//! decides, whatever happens until then.
//!
//! Invariants
//!   P1  PREPARE is logged in the mini-transaction that gives the transaction its XID, and the XID
//!       is part of the epoch state: the transaction is prepared in both the log and the epoch, or
//!       in neither (durability::H2).
//!   P2  A prepared transaction changes nothing. Before it is rolled back, its promise is durably
//!       withdrawn by a log record of its own. So after a crash in the middle, startup finds a
//!       transaction that must be rolled back, never half of one that may still be committed.
//!   P3  A prepared transaction without a session, because its client disconnected or the server
//!       restarted, is in the list here and keeps its locks. Startup lists the ones it finds, and
//!       locks their tables for changes, before the database accepts requests (durability::M3).
//!       Their rows are locked by the versions they wrote, as for any open transaction.
//!   P4  The COMMIT of a prepared transaction needs no new room: PREPARE has reserved it.
//! Locks     the list, briefly; no other lock is taken while it is held.

use super::adopt;
use super::prepared_list::Waiting;
use super::unfinished::unfinished_error;
use super::{end, rollback};
use crate::base::{sound, Lsn, Result, Xid};
use crate::format::log_record::LogRecord;
use crate::pool::MiniTransaction;
use crate::table::definitions::shadow;
use crate::table::rows::writer::Writer;
use crate::table::shared::changed_tables::ChangedTables;
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::txn::{Listed, Phase, Slot};
use std::sync::Arc;

/// Returns the LSN up to which the log must be durable before the transaction counts as prepared.
/// Outside mini-transactions.
pub(crate) fn prepare(core: &Core, slot: &Slot, xid: Xid) -> Result<Lsn> {
    shadow::check_whole(core, slot.txn())?;
    end::make_room_to_end(core, slot.txn())?;
    let end = log(core, slot, Some(xid))?;
    Counters::add(&core.counters.prepares);
    Ok(end)
}

/// Withdraws the promise, if any, of a transaction that is to be rolled back (P2). Outside
/// mini-transactions; blocks as a commit does.
pub(crate) fn withdraw(core: &Core, slot: &Slot) -> Result<()> {
    if !sound!(slot.state().xid.is_some(), "two-phase: roll back what is still promised") {
        return Ok(());
    }
    core.make_room(Need::Back, 0)?;
    let end = log(core, slot, None)?;
    core.journal.flush_at_commit(end)
}

fn log(core: &Core, slot: &Slot, xid: Option<Xid>) -> Result<Lsn> {
    let mut record = Vec::new();
    LogRecord::Prepare(slot.txn(), xid).encode(&mut record);
    let mtr = core.pool.enter();
    note(&mtr, slot, xid);
    core.journal.append(&mtr, &record)
}

/// Makes the changes of PREPARE; redo repeats them in the same way (P1).
pub(crate) fn note(_mtr: &MiniTransaction<'_>, slot: &Slot, xid: Option<Xid>) {
    slot.state().xid = xid;
}

/// Takes over a prepared transaction that startup found, and locks its tables (P3). May do I/O.
pub(crate) fn recover(core: &Core, slot: &Arc<Slot>) -> Result<()> {
    let Some(xid) = slot.state().xid else { return Ok(()) };
    let (listed, tables) = adopt::take_over(core, slot)?;
    let changed = ChangedTables::default();
    let waiting = Waiting { xid, slot: Arc::clone(slot), listed, tables, changed, is_told: false };
    core.prepared.put_back(waiting);
    Ok(())
}

/// Returns `UnknownXid` if no listed transaction has this XID. On return, the commit is as durable
/// as the flush mode requires.
pub(crate) fn commit(core: &Core, xid: &Xid) -> Result<()> {
    let mut waiting = core.prepared.take(xid)?;
    match end::commit(core, &waiting.slot) {
        Err(error) => {
            core.prepared.put_back(waiting);
            Err(error)
        }
        Ok(end) => {
            waiting.changed.tell();
            release(core, &waiting.listed);
            core.journal.flush_at_commit(end)
        }
    }
}

/// Rolls back the listed transaction, in the background if that takes long. Returns `UnknownXid` as
/// for [`commit`], or `RollbackUnfinished` if the rollback met an error and continues in the
/// background. Releases the ranges at once, and other locks when the rollback ends.
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
