//! Prepared transactions: they have promised to end as somebody else decides, whatever happens
//! until then.
//!
//! Invariants
//!   P1  PREPARE is logged in the mini-transaction that gives the transaction its XID, and the XID
//!       is part of the epoch state: a transaction is prepared in both or in neither (H2).
//!   P2  A prepared transaction changes nothing. Before it is rolled back its promise is withdrawn,
//!       durably, by a record of its own: a crash in the middle then finds one that must be rolled
//!       back, never the half of one that may still be committed.
//!   P3  One that nobody holds, because its client has gone or the server was started again, is in
//!       the list here, with the locks of its transaction. Those that a startup finds are there,
//!       and their tables locked as for changes, before anybody is served (M3); their rows are
//!       locked by the versions that they have made, as those of any open transaction.
//!   P4  Once prepared, its COMMIT needs no room that is not there: PREPARE has made it.
//! Locks     the list, for a moment; nothing is taken while it is held.

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

/// Prepares the transaction; returns where the log must be durable before that counts. Outside
/// mini-transactions.
pub(crate) fn prepare(core: &Core, slot: &Slot, xid: Xid) -> Result<Lsn> {
    shadow::check_whole(core, slot.txn())?;
    end::make_room_to_end(core, slot.txn())?;
    let end = log(core, slot, Some(xid))?;
    Counters::add(&core.counters.prepares);
    Ok(end)
}

/// Withdraws the promise of a transaction that is to be rolled back; nothing for one that has given
/// none (P2). Outside mini-transactions; blocks as a commit does.
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

/// The changes that PREPARE makes; redo repeats them in the same way (P1).
pub(crate) fn note(_mtr: &MiniTransaction<'_>, slot: &Slot, xid: Option<Xid>) {
    slot.state().xid = xid;
}

/// Takes over a prepared transaction that a startup has found, and locks its tables again (P3). May
/// do I/O.
pub(crate) fn recover(core: &Core, slot: &Arc<Slot>) -> Result<()> {
    let Some(xid) = slot.state().xid else { return Ok(()) };
    let (listed, tables) = adopt::take_over(core, slot)?;
    let changed = ChangedTables::default();
    let waiting = Waiting { xid, slot: Arc::clone(slot), listed, tables, changed, is_told: false };
    core.prepared.put_back(waiting);
    Ok(())
}

/// Commits the transaction of that name; `UnknownXid` when none that nobody holds is called so. On
/// return the commit is as durable as the flush mode says.
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

/// Rolls the transaction of that name back, a long one in the background; `UnknownXid` as for
/// [`commit`], `RollbackUnfinished` when the rollback has met an error and goes on in the
/// background. Until its end the locks stay.
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
