//! Rolling back: a whole transaction, to a savepoint, or one statement.
//!
//! Invariants
//!   I1  Each undo record is rolled back by one mini-transaction, which also logs UNDO with the
//!       record's number (durability::C5). A crash during a rollback therefore leaves a transaction
//!       with fewer records, never a half rolled back record. UNDO is logged before the trees
//!       change: from then on the row may be free, and the log record of the next transaction that
//!       changes it must follow the UNDO.
//!   I2  ABORT is logged after the last UNDO.
//!   I3  Undo records of a dropped or quarantined table are skipped: its trees are freed as a
//!       whole.
//!   I4  Damage found at startup, or in transactions left over from startup, quarantines the table.
//!       Otherwise the transaction keeps its locks, for another attempt ([`super::unfinished`]) or
//!       the next startup.
//!   I5  When the whole transaction is rolled back, its rows become free. When only some changes
//!       are rolled back, a row stays locked, by a lock instead of the version that locked it
//!       before. A row removed by the rollback is free. So is a removed entry: other transactions
//!       that found it had entered a lock for its version.
//!   I6  Merging pages afterwards is not part of the rollback: if it fails, the record is still
//!       rolled back.

use super::end::{append, end};
use super::prepared;
use crate::base::{reach, sound, Error, PageId, Result, TableId, UndoPtr};
use crate::format::log_record::{LogRecord, RowOp};
use crate::format::state::TxnState;
use crate::format::undo_record::{decode_body, Before, UndoBody, UndoHead, UndoRow, HEAD_BYTES};
use crate::pool::MiniTransaction;
use crate::table::definitions::handle::Table;
use crate::table::definitions::shadow;
use crate::table::rows::change;
use crate::table::rows::large;
use crate::table::rows::writer::{Buffers, Unclaimed, Writer};
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::txn::{Outcome, Slot};
use std::sync::Arc;

/// Whether the locks of rolled-back rows stay (I5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rows<'a> {
    /// They stay. Rows of tables that are exclusively locked need no locks.
    StayLocked {
        whole: &'a [TableId],
    },
    AreFree,
}

/// Rolls back all changes of the transaction after its undo record number `undo_no`. The
/// transaction has locked the tables in `whole` exclusively. Returns `LockTableFull` if there is no
/// room for the locks of the rows (I5): then the whole transaction must be rolled back. Must be
/// called by the transaction's own thread.
pub(crate) fn roll_back_to(
    core: &Core,
    slot: &Arc<Slot>,
    undo_no: u64,
    whole: &[TableId],
    writer: &mut Writer,
) -> Result<()> {
    undo_down_to(core, slot, undo_no, Rows::StayLocked { whole }, writer)
}

fn undo_down_to(
    core: &Core,
    slot: &Arc<Slot>,
    undo_no: u64,
    rows: Rows<'_>,
    writer: &mut Writer,
) -> Result<()> {
    writer.unclaimed.clear();
    while slot.undo_no() > undo_no {
        roll_back_newest(core, slot, rows, writer)?;
    }
    Ok(())
}

/// After an error the transaction stays listed, with fewer records (I1): the caller keeps its locks
/// and tries again.
pub(crate) fn roll_back(core: &Core, slot: &Arc<Slot>, writer: &mut Writer) -> Result<()> {
    if !sound!(true, "txn: log ABORT before the UNDOs") {
        core.make_room(Need::Back, 0)?;
        append(core, &core.pool.enter(), &LogRecord::Abort(slot.txn()))?;
    }
    while !roll_back_some(core, slot, writer, usize::MAX)? {}
    Ok(())
}

/// Rolls back up to `records` records; ends the transaction, and returns true, if none remain.
pub(crate) fn roll_back_some(
    core: &Core,
    slot: &Arc<Slot>,
    writer: &mut Writer,
    records: usize,
) -> Result<bool> {
    prepared::withdraw(core, slot)?;
    let undo_no = slot.undo_no();
    let keep = undo_no.saturating_sub(records as u64);
    let left = u64::from(!sound!(true, "rollback: leave the first change"));
    undo_down_to(core, slot, keep.max(left), Rows::AreFree, writer)?;
    if keep > 0 {
        return Ok(false);
    }
    end(core, slot, Outcome::Aborted)?;
    shadow::drop_of(core, slot.txn());
    Counters::add(&core.counters.rollbacks);
    Ok(true)
}

/// Rolls back the newest undo record, also for redo of an UNDO.
pub(crate) fn roll_back_last(core: &Core, slot: &Arc<Slot>, writer: &mut Writer) -> Result<()> {
    roll_back_newest(core, slot, Rows::AreFree, writer)
}

fn roll_back_newest(core: &Core, slot: &Arc<Slot>, rows: Rows<'_>, writer: &mut Writer) -> Result<()> {
    let state = *slot.state();
    let mut record = std::mem::take(&mut writer.buffers.undo);
    let head = core.transactions.undo.read(state.head, state.txn, state.undo_no, &mut record)?;
    let body = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())?;
    encode_undo_record(&state, &mut writer.buffers);
    let no_step = || {
        Error::corrupt(
            format!("undo record at {}", state.head),
            "it is about neither a row nor a large value",
        )
    };
    let table = body.table().ok_or_else(no_step)?;
    let mut done = match &body {
        UndoBody::Row(row) => roll_back_row(core, slot, (&head, row), rows, writer),
        UndoBody::Blob(blob) => {
            let pages = blob.pages.iter().chain(&blob.index_pages).copied().collect::<Vec<_>>();
            roll_back_pages(core, slot, &head, blob.table, &pages, &writer.buffers)
        }
        UndoBody::Finish(_) => Err(no_step()),
    };
    if let Err(error) = done {
        if let (Some(losses), UndoBody::Row(row)) = (&core.losses, &body) {
            [row.old_key, row.new_key].into_iter().for_each(|key| losses.doubt(row.table, key));
        }
        let is_left_over = core.startup.began_before(state.txn);
        done = core
            .quarantine(table, error, is_left_over)
            .and_then(|()| leave_record(core, slot, &head, &writer.buffers));
    }
    writer.buffers.undo = record;
    done
}

/// No row operation has claimed the values.
pub(crate) fn roll_back_large_values(
    core: &Core,
    slot: &Arc<Slot>,
    unclaimed: &mut Unclaimed,
    buffers: &mut Buffers,
) -> Result<()> {
    unclaimed.clear();
    loop {
        let state = *slot.state();
        if state.head == UndoPtr(0) {
            return Ok(());
        }
        let mut record = std::mem::take(&mut buffers.undo);
        let head = core.transactions.undo.read(state.head, state.txn, state.undo_no, &mut record)?;
        let UndoBody::Blob(blob) = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())? else {
            return Ok(());
        };
        encode_undo_record(&state, buffers);
        let pages = blob.pages.iter().chain(&blob.index_pages).copied().collect::<Vec<_>>();
        roll_back_pages(core, slot, &head, blob.table, &pages, buffers)?;
        buffers.undo = record;
    }
}

fn encode_undo_record(state: &TxnState, buffers: &mut Buffers) {
    buffers.log.clear();
    LogRecord::Undo(state.txn, state.undo_no).encode(&mut buffers.log);
}

fn roll_back_row(
    core: &Core,
    slot: &Slot,
    (head, row): (&UndoHead, &UndoRow<'_>),
    rows: Rows<'_>,
    writer: &mut Writer,
) -> Result<()> {
    core.catalog.using(row.table, |table| match table {
        Some(table) => roll_back_row_of(core, table, slot, (head, row), rows, writer),
        None => leave_record(core, slot, head, &writer.buffers),
    })
}

fn roll_back_row_of(
    core: &Core,
    table: &Table,
    slot: &Slot,
    (head, row): (&UndoHead, &UndoRow<'_>),
    rows: Rows<'_>,
    writer: &mut Writer,
) -> Result<()> {
    reach::mark("row rolled back");
    let old = (row.op != RowOp::Insert).then_some(row.old_key);
    let new = (row.op != RowOp::Delete && !row.new_key.is_empty()).then_some(row.new_key);
    let locks = slot.owner().map(|owner| (owner, table.clustered().def().id));
    let is_by_own = |before: &Before<'_>| before.version.is_some_and(|(txn, _)| txn == slot.txn());
    if let (Some((owner, tree)), Some(key), Rows::StayLocked { whole }) = (locks, old, rows) {
        // A restored version of the transaction's own is still a lock.
        if !whole.contains(&row.table) && !is_by_own(&row.old) {
            core.locks.keep_changed(owner, tree, key)?;
        }
    }
    let latch = core.purge_latches.of_rows(row.table, old, new);
    // Drop tickets of an earlier attempt.
    writer.paths.forget_tickets();
    writer.change.plan_backward(table, row, &|version| core.is_settled(version));
    change::prepare(table, &writer.change, &mut writer.paths)?;
    core.make_room(Need::RollBack, 4 * writer.change.steps_count())?;
    apply_backward(core, slot, head, table, writer)?;
    drop(latch);
    if let Some((owner, tree)) = locks {
        let is_own = row.marked.as_ref().is_some_and(is_by_own);
        let are_free = !sound!(rows != Rows::AreFree, "savepoint: let go of what is rolled back");
        let freed = old.filter(|_| are_free).into_iter().chain(new.filter(|_| are_free || !is_own));
        freed.for_each(|key| core.locks.release_row(owner, tree, key));
        if sound!(true, "rollback: keep the locks of entries") {
            for (index_no, key) in writer.change.freed_entries(slot.txn(), are_free) {
                core.locks.release_row(owner, table.tree(index_no)?.def().id, key);
            }
        }
    }
    Counters::add(&core.counters.rows_rolled_back);
    core.note_merge(writer.paths.merge_small(table, &writer.change));
    Ok(())
}

/// Undoes a row operation as planned (I1).
fn apply_backward(
    core: &Core,
    slot: &Slot,
    head: &UndoHead,
    table: &Table,
    writer: &mut Writer,
) -> Result<()> {
    let mtr = change::enter(&core.pool, table, &writer.change, &mut writer.paths)?;
    let logs_first = sound!(true, "rollback: log when the row is free already");
    if logs_first {
        log_undo(core, &mtr, slot, &writer.buffers)?;
    }
    let own = (head.txn, UndoPtr(0));
    let applied = change::apply(&mtr, table, &writer.change, &mut writer.paths, Some(own));
    core.health.must("a rollback", applied)?;
    slot.count_rows(table.id(), writer.change.rows());
    if !logs_first {
        std::thread::yield_now();
        log_undo(core, &mtr, slot, &writer.buffers)?;
    }
    step_back(&mut slot.state(), head);
    Ok(())
}

fn roll_back_pages(
    core: &Core,
    slot: &Slot,
    head: &UndoHead,
    table: TableId,
    pages: &[PageId],
    buffers: &Buffers,
) -> Result<()> {
    core.catalog.using(table, |table| match table {
        Some(table) => roll_back_pages_of(core, slot, head, table, pages, buffers),
        None => leave_record(core, slot, head, buffers),
    })
}

fn roll_back_pages_of(
    core: &Core,
    slot: &Slot,
    head: &UndoHead,
    table: &Table,
    pages: &[PageId],
    buffers: &Buffers,
) -> Result<()> {
    large::check_owner(core, table.blob_owner(), pages)?;
    reach::mark("large value rolled back");
    core.make_room(Need::RollBack, pages.len())?;
    let mtr = core.pool.enter();
    log_undo(core, &mtr, slot, buffers)?;
    pages.iter().for_each(|&page| core.pool.free(&mtr, page));
    step_back(&mut slot.state(), head);
    Ok(())
}

/// Rolls back a record without changing any page.
fn leave_record(core: &Core, slot: &Slot, head: &UndoHead, buffers: &Buffers) -> Result<()> {
    core.make_room(Need::Back, 0)?;
    let mtr = core.pool.enter();
    log_undo(core, &mtr, slot, buffers)?;
    step_back(&mut slot.state(), head);
    Ok(())
}

/// Logs that the newest record is rolled back (I1).
fn log_undo(core: &Core, mtr: &MiniTransaction<'_>, slot: &Slot, buffers: &Buffers) -> Result<()> {
    if sound!(slot.is_logged(), "txn: roll back without logging it") {
        core.journal.append(mtr, &buffers.log)?;
    }
    Ok(())
}

fn step_back(state: &mut TxnState, head: &UndoHead) {
    debug_assert_eq!(state.undo_no, head.undo_no, "C5: the newest record is taken back first");
    state.head = head.prev;
    state.undo_no -= 1;
}
