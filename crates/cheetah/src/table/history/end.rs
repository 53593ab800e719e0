//! The end of a transaction: COMMIT or ABORT in the log, and the finish record that
//! [`super::purge`] follows.
//!
//! Invariants
//!   I1  The end of a transaction is one mini-transaction under the mutex of stamps: it writes
//!       COMMIT or ABORT to the log, a finish record to the undo log, and the row counts. Only then
//!       is the end published (durability::M1). So an epoch has all of the end or nothing.

use crate::base::{sound, Lsn, Result, TxnId, UndoPtr};
use crate::format::log_record::LogRecord;
use crate::format::state::TxnState;
use crate::format::undo_record::{UndoFinish, FINISH_BYTES_MAX};
use crate::pool::MiniTransaction;
use crate::table::definitions::shadow::{self, Places};
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::txn::{Outcome, Slot};

/// Returns the LSN up to which the log must be durable before the commit is acknowledged.
pub(crate) fn commit(core: &Core, slot: &Slot) -> Result<Lsn> {
    if slot.state().xid.is_none() {
        shadow::check_whole(core, slot.txn())?;
    }
    let room = make_room_to_end(core, slot.txn());
    // The room of a prepared transaction is reserved, and it may not be refused.
    if slot.state().xid.is_none() {
        room?;
    }
    commit_in_place(core, slot)
}

/// Like [`commit`], in room that the caller has made: waits only for an epoch switch, and fails
/// only if the engine stops.
pub(crate) fn commit_in_place(core: &Core, slot: &Slot) -> Result<Lsn> {
    let end = end_in_place(core, slot, Outcome::Committed)?;
    Counters::add(&core.counters.commits);
    Ok(end)
}

/// Ends the transaction in one mini-transaction (I1), which redo repeats without logging. Returns
/// the end of its log record.
pub(crate) fn end(core: &Core, slot: &Slot, outcome: Outcome) -> Result<Lsn> {
    make_room_to_end(core, slot.txn())?;
    end_in_place(core, slot, outcome)
}

/// The caller has made room. Fails only if the engine stops.
pub(crate) fn commit_temporary(core: &Core, slot: &Slot) -> Result<()> {
    end_in_place(core, slot, Outcome::Committed).map(drop)
}

/// Whether the transaction has no change left, including a promise, and its commit changes nothing.
pub(crate) fn is_unchanged(core: &Core, slot: &Slot) -> bool {
    let state = *slot.state();
    let has_records = sound!(state.undo_no > 0, "commit: take changes for none");
    let is_load = sound!(!core.catalog.shadow_of(slot.txn()).is_empty(), "commit: take a load for no change");
    !has_records && state.xid.is_none() && !is_load
}

/// Whether it [is unchanged](is_unchanged), without any record in the log.
pub(crate) fn is_unlogged(core: &Core, slot: &Slot) -> bool {
    slot.state().first == UndoPtr(0) && is_unchanged(core, slot)
}

/// Logs the end only if the log has records of the transaction. Errors: those of [`end`].
pub(crate) fn end_unchanged(core: &Core, slot: &Slot) -> Result<()> {
    if sound!(!is_unlogged(core, slot), "commit: leave what was taken back unended") {
        return end(core, slot, Outcome::Aborted).map(drop);
    }
    let _mtr = core.pool.enter();
    core.transactions.versions.finish(slot.txn(), Outcome::Aborted, |_| Ok(()))?;
    core.transactions.active.finish(slot.txn());
    Ok(())
}

/// Outside mini-transactions; may wait and do I/O.
pub(crate) fn make_room_to_end(core: &Core, txn: TxnId) -> Result<()> {
    let pages = core.transactions.undo.pages_needed(FINISH_BYTES_MAX) + shadow::pages_needed(core, txn);
    core.make_room(Need::Back, pages)
}

fn end_in_place(core: &Core, slot: &Slot, outcome: Outcome) -> Result<Lsn> {
    let places = match outcome {
        Outcome::Committed => Places::prepare(core, slot.txn()),
        Outcome::Aborted => Ok(None),
    };
    let mut places = core.health.must("finding the tables to replace", places)?;
    let mtr = core.pool.enter();
    if let Some(places) = &mut places {
        core.health.must("replacing tables by loaded ones", places.write(&mtr))?;
    }
    let end = core.transactions.versions.finish(slot.txn(), outcome, |stamp| {
        let end = match outcome {
            _ if !slot.is_logged() => Lsn(0),
            Outcome::Committed => append(core, &mtr, &LogRecord::Commit(slot.txn(), stamp))?,
            Outcome::Aborted => append(core, &mtr, &LogRecord::Abort(slot.txn()))?,
        };
        append_finish(core, &mtr, slot, stamp, outcome);
        if let Some(places) = &places {
            places.take(stamp);
        }
        if outcome == Outcome::Committed {
            core.catalog.count_committed(&core.transactions.versions, slot, stamp);
        }
        Ok(end)
    });
    slot.state().xid = None;
    core.transactions.active.finish(slot.txn());
    core.health.must("the end of a transaction", end)
}

/// The record has no row data.
pub(super) fn append(core: &Core, mtr: &MiniTransaction<'_>, record: &LogRecord<'_>) -> Result<Lsn> {
    let mut bytes = Vec::with_capacity(24);
    record.encode(&mut bytes);
    core.journal.append(mtr, &bytes)
}

/// Purge follows this record. It names no undo records if the transaction leaves no garbage.
fn append_finish(core: &Core, mtr: &MiniTransaction<'_>, slot: &Slot, stamp: u64, outcome: Outcome) {
    let TxnState { txn, head, first, undo_no, .. } = *slot.state();
    let committed = outcome == Outcome::Committed;
    let leaves_garbage =
        sound!(committed && slot.leaves_garbage(), "txn: forget the large values left behind");
    let (head, undo_no) = if leaves_garbage { (head, undo_no) } else { (UndoPtr(0), 0) };
    if first != UndoPtr(0) {
        core.transactions.undo.append_finish(
            mtr,
            txn,
            &UndoFinish { stamp, committed, head, first, undo_no },
        );
    }
}
