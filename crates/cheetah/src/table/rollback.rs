//! Taking transactions back, and what is left to do after a commit.
//!
//! Invariants
//!   I1  One undo record is taken back by one action, which also logs UNDO with the record's number (C5). A crash
//!       in a rollback therefore leaves a transaction with fewer records, never a record half taken back.
//!   I2  ABORT is logged after the last UNDO.
//!   I3  After COMMIT the transaction stays listed, as committed, until the large values that it left behind are
//!       free; how far that has come is part of the generation state. So they are freed exactly once, whatever
//!       crashes in between (C4).
//!   I4  A record of a dropped or fenced table is skipped: its trees are, or will be, freed as a whole.
//!   I5  Damage met at the opening of the database fences the table; met later it leaves the transaction with its locks, for
//!       another attempt ([`super::unfinished`]) or the next opening.
//!   I6  Merging pages afterwards is no part of the work: it may fail, and the record is taken back all the same.

use super::change::{self, Change};
use super::core::{Core, Counters, Need};
use super::handle::Table;
use super::large::{self, Buffers, Unclaimed};
use super::row_op::Writer;
use crate::base::{planted, reach, Error, Lsn, PageId, Result, TreeId, UndoPtr};
use crate::format::log_record::{LogRecord, RowOp};
use crate::format::row::LOCATOR_BYTES;
use crate::format::state::TxnState;
use crate::format::undo_record::{decode_body, UndoBody, UndoHead, UndoRow, HEAD_BYTES};
use crate::pool::Action;
use crate::txn::Slot;
use std::sync::Arc;

/// Pages freed in one action: bounds how long a flip waits.
const FREED_PER_ACTION: usize = 64;

/// Takes back everything that the transaction did after its undo record number `undo_no`.
pub(crate) fn roll_back_to(core: &Core, slot: &Arc<Slot>, undo_no: u64, writer: &mut Writer) -> Result<()> {
    writer.unclaimed.clear();
    while slot.state().undo_no > undo_no {
        take_back_last(core, slot, writer)?;
    }
    Ok(())
}

/// Takes the whole transaction back. After an error it is as listed as before, with fewer records (I1): whoever holds its
/// locks keeps them and tries again.
pub(crate) fn roll_back(core: &Core, slot: &Arc<Slot>, writer: &mut Writer) -> Result<()> {
    if planted::is_on("txn: log ABORT before the UNDOs") {
        log_abort(core, slot)?;
    }
    while !roll_back_some(core, slot, writer, usize::MAX)? {}
    Ok(())
}

/// Takes at most `records` records back, and ends the transaction when that was all; whether it was.
pub(crate) fn roll_back_some(
    core: &Core,
    slot: &Arc<Slot>,
    writer: &mut Writer,
    records: usize,
) -> Result<bool> {
    let undo_no = slot.state().undo_no;
    let keep = undo_no.saturating_sub(records as u64);
    roll_back_to(core, slot, keep, writer)?;
    if keep > 0 {
        return Ok(false);
    }
    log_abort(core, slot)?;
    Counters::add(&core.counters.rollbacks);
    Ok(true)
}

/// Logs ABORT and takes the transaction off the list in one action, so that a generation has either both or neither.
fn log_abort(core: &Core, slot: &Slot) -> Result<()> {
    let mut record = Vec::new();
    LogRecord::Abort(slot.txn()).encode(&mut record);
    core.make_room(Need::Back, 0)?;
    let action = core.pool.enter();
    core.append(&action, &record)?;
    core.active.finish(slot.txn());
    Ok(())
}

/// Takes the newest undo record back; also how redo repeats an UNDO.
pub(crate) fn take_back_last(core: &Core, slot: &Arc<Slot>, writer: &mut Writer) -> Result<()> {
    let state = *slot.state();
    let mut record = std::mem::take(&mut writer.buffers.undo);
    let head = core.undo.read(state.head, state.txn, state.undo_no, &mut record)?;
    let body = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())?;
    encode_undo_record(&state, &mut writer.buffers);
    let mut done = match &body {
        UndoBody::Row(row) => take_back_row(core, slot, &head, row, writer),
        UndoBody::Blob(blob) => {
            let table = core.catalog.by_id(blob.table);
            let pages = blob.pages.iter().chain(&blob.index_pages).copied().collect::<Vec<_>>();
            take_back_pages(core, slot, &head, table.as_deref(), &pages, &writer.buffers)
        }
    };
    if let Err(error) = done {
        done =
            core.fence(body.table(), error).and_then(|()| leave_record(core, slot, &head, &writer.buffers));
    }
    writer.buffers.undo = record;
    done
}

/// Takes back large values that no row operation has taken over.
pub(crate) fn take_back_large_values(
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
        let head = core.undo.read(state.head, state.txn, state.undo_no, &mut record)?;
        let UndoBody::Blob(blob) = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())? else {
            return Ok(());
        };
        encode_undo_record(&state, buffers);
        let table = core.catalog.by_id(blob.table);
        let pages = blob.pages.iter().chain(&blob.index_pages).copied().collect::<Vec<_>>();
        take_back_pages(core, slot, &head, table.as_deref(), &pages, buffers)?;
        buffers.undo = record;
    }
}

fn encode_undo_record(state: &TxnState, buffers: &mut Buffers) {
    buffers.log.clear();
    LogRecord::Undo(state.txn, state.undo_no).encode(&mut buffers.log);
}

fn take_back_row(
    core: &Core,
    slot: &Slot,
    head: &UndoHead,
    row: &UndoRow<'_>,
    writer: &mut Writer,
) -> Result<()> {
    let Some(table) = core.catalog.by_id(row.table) else {
        return leave_record(core, slot, head, &writer.buffers);
    };
    let Ok(_usage) = table.use_it() else {
        return leave_record(core, slot, head, &writer.buffers);
    };
    reach::mark("row taken back");
    build_inverse(row, &mut writer.change);
    change::prepare(&table, &writer.change, &mut writer.paths)?;
    core.make_room(Need::Back, 4 * (writer.change.entries.len() + 1))?;
    {
        let action = core.pool.enter();
        let applied = change::apply(&action, &table, &writer.change, &mut writer.paths);
        core.must("a rollback", applied)?;
        log_undo(core, &action, slot, head, &writer.buffers)?;
    }
    Counters::add(&core.counters.rows_rolled_back);
    core.tidied(writer.paths.merge_small(&table, &writer.change));
    Ok(())
}

/// The row operation that takes another one back: old and new change places.
fn build_inverse(row: &UndoRow<'_>, change: &mut Change) {
    let inverse = match row.op {
        RowOp::Insert => RowOp::Delete,
        RowOp::Update => RowOp::Update,
        RowOp::Delete => RowOp::Insert,
    };
    let same_key = row.op == RowOp::Update && row.new_key.is_empty();
    let new_key = if same_key { row.old_key } else { row.new_key };
    change.start(inverse, new_key, row.old_key);
    change.row = change.put(&[row.old_row]);
    for entry in &row.entries {
        let goes = (row.op != RowOp::Delete).then_some(entry.new_key);
        let comes = (row.op != RowOp::Insert).then_some(entry.old_key);
        change.add_entry(entry.index_no, goes, comes, &[entry.payload]);
    }
}

fn take_back_pages(
    core: &Core,
    slot: &Slot,
    head: &UndoHead,
    table: Option<&Table>,
    pages: &[PageId],
    buffers: &Buffers,
) -> Result<()> {
    let Some((table, _usage)) = table.and_then(|table| table.use_it().ok().map(|usage| (table, usage)))
    else {
        return leave_record(core, slot, head, buffers);
    };
    check_owner(core, table.blob_owner(), pages)?;
    reach::mark("large value taken back");
    core.make_room(Need::Back, pages.len())?;
    let action = core.pool.enter();
    pages.iter().for_each(|&page| core.pool.free(&action, page));
    log_undo(core, &action, slot, head, buffers)
}

/// Takes a record back that needs no change of pages.
fn leave_record(core: &Core, slot: &Slot, head: &UndoHead, buffers: &Buffers) -> Result<()> {
    core.make_room(Need::Back, 0)?;
    let action = core.pool.enter();
    log_undo(core, &action, slot, head, buffers)
}

/// Logs that the newest record is taken back, and moves the transaction to the one before.
fn log_undo(core: &Core, action: &Action<'_>, slot: &Slot, head: &UndoHead, buffers: &Buffers) -> Result<()> {
    if !planted::is_on("txn: take back without logging it") {
        core.append(action, &buffers.log)?;
    }
    step_back(&mut slot.state(), head);
    Ok(())
}

fn step_back(state: &mut TxnState, head: &UndoHead) {
    state.head = head.prev;
    state.undo_no -= 1;
    state.freed_pages = 0;
    if head.prev == UndoPtr(0) {
        state.first = UndoPtr(0);
    }
}

/// Commits: logs COMMIT and takes the transaction off the list, or marks it when it leaves large values behind.
/// Returns where the log must be durable before the commit may be acknowledged.
pub(crate) fn commit(core: &Core, slot: &Slot) -> Result<Lsn> {
    let mut record = Vec::with_capacity(24);
    core.make_room(Need::Back, 0)?;
    let action = core.pool.enter();
    LogRecord::Commit(slot.txn(), core.active.take_commit_no()).encode(&mut record);
    let end = core.append(&action, &record)?;
    mark_committed(core, slot);
    Counters::add(&core.counters.commits);
    Ok(end)
}

/// The part of a commit that redo repeats.
pub(crate) fn mark_committed(core: &Core, slot: &Slot) {
    if slot.leaves_large_values() && !planted::is_on("txn: forget the large values left behind") {
        slot.state().committed = true;
    } else {
        core.active.finish(slot.txn());
    }
}

/// Frees the large values left behind by the undo records of a committed transaction, at most `records` of them;
/// whether that was all. Outside actions.
pub(crate) fn free_left_behind(core: &Core, slot: &Slot, records: usize) -> Result<bool> {
    let mut record = Vec::new();
    for _ in 0..records {
        let state = *slot.state();
        if state.head == UndoPtr(0) {
            core.active.finish(slot.txn());
            return Ok(true);
        }
        let head = core.undo.read(state.head, state.txn, state.undo_no, &mut record)?;
        let body = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())?;
        match body {
            UndoBody::Row(row) if !row.freed.is_empty() => {
                // After a fence the record comes again, and is skipped.
                free_of_record(core, slot, &head, &row).or_else(|error| core.fence(row.table, error))?;
            }
            _ => step_back(&mut slot.state(), &head),
        }
    }
    Ok(false)
}

fn free_of_record(core: &Core, slot: &Slot, head: &UndoHead, row: &UndoRow<'_>) -> Result<()> {
    let table = core.catalog.by_id(row.table);
    let Some((table, _usage)) =
        table.as_ref().and_then(|table| table.use_it().ok().map(|usage| (table, usage)))
    else {
        step_back(&mut slot.state(), head);
        return Ok(());
    };
    let (mut data, mut index) = (Vec::new(), Vec::new());
    for locator in row.freed.chunks(LOCATOR_BYTES) {
        large::pages_of(&core.pool, table.blob_owner(), locator, &mut data, &mut index)?;
    }
    let already_free = slot.state().freed_pages as usize;
    check_owner(core, table.blob_owner(), data.iter().skip(already_free).chain(&index))?;
    reach::mark("large value left behind freed");
    loop {
        core.make_room(Need::Back, FREED_PER_ACTION)?;
        let action = core.pool.enter();
        let mut state = slot.state();
        let from = (state.freed_pages as usize).min(data.len());
        let to = (from + FREED_PER_ACTION).min(data.len());
        if planted::is_on("txn: free large values before noting it") {
            data.iter().chain(&index).for_each(|&page| core.pool.free(&action, page));
            drop((state, action));
            core.checkpoint()?;
            step_back(&mut slot.state(), head);
            return Ok(());
        }
        data.iter().take(to).skip(from).for_each(|&page| core.pool.free(&action, page));
        state.freed_pages = to as u64;
        if to == data.len() {
            index.iter().for_each(|&page| core.pool.free(&action, page));
            step_back(&mut state, head);
            return Ok(());
        }
    }
}

/// Refuses to free pages that the table does not own: freeing a page twice must not take it from its next owner (C4).
fn check_owner<'p>(core: &Core, owner: TreeId, pages: impl IntoIterator<Item = &'p PageId>) -> Result<()> {
    let stranger = |page: &&PageId| core.pool.owner(**page) != Some(owner);
    match pages.into_iter().find(stranger) {
        None => Ok(()),
        Some(page) => {
            let detail = "a large value to free names it, but it is not the table's";
            Err(Error::corrupt(format!("page {page}"), detail))
        }
    }
}
