//! Purge: removes versions that no snapshot can see any more, in the order in which transactions
//! ended. It follows the finish records of the undo log as far as the horizon allows, and skips
//! rolled-back transactions and those without garbage. For a committed transaction it follows the
//! undo chain from the newest record to the oldest, and removes the records that the transaction
//! delete-marked and the large values that it dropped. [`super::interval_gc`] removes records that
//! no snapshot sees, but that wait for purge because of an old snapshot.
//!
//! Invariants
//!   I1  The removals of a purge step and the record of its progress change in one
//!       mini-transaction, and the progress is part of the epoch state. So large values are freed
//!       exactly once, whatever crashes happen (durability::C4). Removing a record again does
//!       nothing.
//!   I2  Only one thread at a time purges, here or in interval garbage collection. A thread that
//!       finds another thread purging returns.
//!   I3  Undo records of a dropped or quarantined table are skipped: its trees are freed as a
//!       whole.
//!   I4  Damage found at startup, or in transactions that ended before it, quarantines the table.
//!       After any other error purge stays where it is, and retries later or at the next startup.
//!   I5  A record is removed only while it is marked by the transaction being purged, or by one
//!       that every snapshot sees (durability::C10). [`Purge::horizon`] is set first: it tells a
//!       transaction which might restore the mark that purge will not return for it.
//!   I6  Purge never waits for another thread: if a thread works on a row, purge retries the row
//!       later.
//! Locks     `buffers`, over I/O; a row's purge latch, exclusively, over the mini-transaction; the
//!           locks of the undo log, briefly.

use super::interval_gc;
use super::purge_state::{Budget, Buffers, Purge};
use crate::base::{reach, sound, Result, TxnId, UndoPtr};
use crate::format::log_record::RowOp;
use crate::format::row::LOCATOR_BYTES;
use crate::format::state::PurgeState;
use crate::format::undo_record::{
    decode_body, UndoBody, UndoEntry, UndoFinish, UndoHead, UndoRow, HEAD_BYTES,
};
use crate::pool::MiniTransaction;
use crate::table::definitions::handle::Table;
use crate::table::rows::change::{self, Version};
use crate::table::rows::large::{self, FREED_PER_STEP};
use crate::table::rows::writer::Writer;
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Maximum number of leaves merged per step, and pages that each merge may change.
const MERGES_PER_STEP: usize = 64;
const PAGES_PER_MERGE: usize = 8;

/// Records per step and maximum number of steps at close; the next startup continues.
const RECORDS_PER_STEP: usize = 1024;
const STEPS_AT_CLOSE: usize = 512;

/// Delay after an error.
const REST_NS: u64 = 1_000_000_000;

enum Purged {
    /// The record is done; purge continues here.
    GoOn(PurgeState),
    /// It was the last record of its transaction, which is now passed.
    Passed,
    /// A thread works on its row (I6).
    Busy,
}

struct Ended {
    txn: TxnId,
    end: UndoFinish,
    next: UndoPtr,
}

impl Purge {
    /// Purges up to `records` undo records and finish records. Returns whether anything was done.
    /// Outside mini-transactions; does I/O.
    pub(crate) fn step(&self, core: &Core, records: usize) -> Result<bool> {
        core.health.check()?;
        let Some(mut buffers) = self.buffers.try_lock() else { return Ok(false) };
        if core.clock.now_ns() < self.rests_until_ns.load(Acquire) {
            return Ok(false);
        }
        let horizon = core.transactions.versions.horizon();
        // A slot may briefly show a stamp that its snapshot then does not take: the horizon stays.
        self.horizon.fetch_max(horizon, Release);
        core.forget_old_versions();
        core.catalog.forget_replaced(horizon);
        let done = purge_up_to(core, horizon, &mut Budget { records }, &mut buffers);
        let has_merged = merge_small_leaves(core, &mut buffers.writer);
        buffers.writer.release();
        done.map(|done| done || has_merged)
            .inspect_err(|_| self.rests_until_ns.store(core.clock.now_ns() + REST_NS, Release))
    }

    /// When an old snapshot holds up purge, visits up to `records` undo records and finish records
    /// of transactions that not all snapshots see, and removes records that no snapshot sees
    /// ([`super::interval_gc`]). Returns whether there is more to do. Outside mini-transactions;
    /// does I/O.
    pub(crate) fn step_between(&self, core: &Core, records: usize) -> Result<bool> {
        core.health.check()?;
        let Some(mut buffers) = self.buffers.try_lock() else { return Ok(false) };
        let Buffers { record, writer, between } = &mut *buffers;
        let done = interval_gc::step(core, between, record, writer, records);
        writer.release();
        done
    }

    /// Like [`finish`](Self::finish), but leaves work that would delay closing for long.
    pub(crate) fn finish_at_close(&self, core: &Core) -> Result<()> {
        let mut steps_left = STEPS_AT_CLOSE;
        while steps_left > 0 && self.step(core, RECORDS_PER_STEP)? {
            steps_left -= 1;
        }
        Ok(())
    }

    /// Purges all garbage that no snapshot sees.
    pub(crate) fn finish(&self, core: &Core) -> Result<()> {
        while self.step(core, usize::MAX)? {}
        Ok(())
    }
}

fn purge_up_to(core: &Core, horizon: u64, budget: &mut Budget, buffers: &mut Buffers) -> Result<bool> {
    let mut done = false;
    while budget.take_one() {
        let Some((next, head, end)) = core.transactions.undo.next_finish(&mut buffers.record)? else {
            return Ok(done || core.transactions.undo.has_more_to_search());
        };
        if sound!(end.stamp > horizon, "purge: do not look at snapshots") {
            reach::mark("purge held up by a snapshot");
            return Ok(done);
        }
        let ended = Ended { txn: head.txn, end, next };
        if !purge_transaction(core, &ended, budget, buffers)? {
            return Ok(done);
        }
        done = true;
    }
    Ok(done)
}

/// Purges newest record first. Returns false if it has to wait.
fn purge_transaction(core: &Core, ended: &Ended, budget: &mut Budget, buffers: &mut Buffers) -> Result<bool> {
    let mut at = core.transactions.undo.purge_state();
    if at.head == UndoPtr(0) {
        (at.head, at.undo_no) = (ended.end.head, ended.end.undo_no);
    }
    let Buffers { record, writer, .. } = buffers;
    while at.head != UndoPtr(0) {
        if !budget.take_one() {
            core.transactions.undo.note_purge(&core.pool.enter(), at);
            return Ok(true);
        }
        let head = core.transactions.undo.read(at.head, ended.txn, at.undo_no, record)?;
        match decode_body(record.get(HEAD_BYTES..).unwrap_or_default())? {
            UndoBody::Row(row) => match purge_row(core, ended, at, &head, &row, writer) {
                Ok(Purged::GoOn(on)) => at = on,
                Ok(Purged::Passed) => return Ok(true),
                Ok(Purged::Busy) => {
                    core.transactions.undo.note_purge(&core.pool.enter(), at);
                    return Ok(false);
                }
                // After a quarantine, the record is read again and skipped.
                Err(error) => {
                    let is_left_over = core.startup.ended_before(ended.end.stamp);
                    core.quarantine(row.table, error, is_left_over)?;
                }
            },
            _ => at = before(at, &head),
        }
    }
    pass(core, &core.pool.enter(), ended)?;
    Ok(true)
}

fn purge_row(
    core: &Core,
    ended: &Ended,
    at: PurgeState,
    head: &UndoHead,
    row: &UndoRow<'_>,
    writer: &mut Writer,
) -> Result<Purged> {
    core.catalog.using(row.table, |table| match table {
        Some(table) => purge_row_of(core, table, ended, at, head, row, writer),
        None => Ok(Purged::GoOn(before(at, head))),
    })
}

fn purge_row_of(
    core: &Core,
    table: &Table,
    ended: &Ended,
    at: PurgeState,
    head: &UndoHead,
    row: &UndoRow<'_>,
    writer: &mut Writer,
) -> Result<Purged> {
    if row.op != RowOp::Insert && at.freed_pages == 0 {
        let Some(latch) = core.purge_latches.for_purge(table.id(), row.old_key) else {
            return Ok(Purged::Busy);
        };
        let is_dead = |marked: bool, version: Version| {
            let is_its_mark = marked
                && version.is_none_or(|(by, _)| !sound!(by != ended.txn, "purge: remove others' marks"));
            !sound!(!is_its_mark, "purge: remove what lives again")
        };
        if remove_marked(core, table, row, writer, |_| true, is_dead)? > 0 {
            reach::mark("marked records purged");
        }
        drop(latch);
        core.note_merge(writer.paths.merge_small(table, &writer.change));
    }
    match row.freed.is_empty() {
        true => Ok(Purged::GoOn(before(at, head))),
        false => free_of_record(core, table, ended, at, head, row),
    }
}

pub(in crate::table) fn marks_row(row: &UndoRow<'_>) -> bool {
    row.op == RowOp::Delete || (row.op == RowOp::Update && !row.new_key.is_empty())
}

pub(in crate::table) fn marks_entry(row: &UndoRow<'_>, entry: &UndoEntry<'_>) -> bool {
    marks_row(row) || (row.op == RowOp::Update && entry.old_key != entry.new_key)
}

/// Removes the delete-marked entries and row of the operation, in the indexes whose numbers
/// `is_wanted` accepts (0 is the clustered index), if `is_dead` accepts their delete mark and
/// version. Returns the number of removed records. Repeating this does nothing, so purge need not
/// record its progress in the same mini-transaction.
pub(in crate::table) fn remove_marked(
    core: &Core,
    table: &Table,
    row: &UndoRow<'_>,
    writer: &mut Writer,
    is_wanted: impl Fn(u32) -> bool,
    is_dead: impl Fn(bool, Version) -> bool,
) -> Result<usize> {
    let Writer { change, paths, .. } = writer;
    change.start_purge(row);
    let entries = row.entries.iter().filter(|entry| marks_entry(row, entry) && is_wanted(entry.index));
    for entry in entries {
        if let Some(index_no) = table.position_of(entry.index) {
            change.plan_removal(table, paths, index_no, entry.old_key, &is_dead)?;
        }
    }
    if marks_row(row) && is_wanted(0) {
        change.plan_removal(table, paths, 0, b"", &is_dead)?;
    }
    if change.is_empty() {
        return Ok(0);
    }
    change::prepare(table, change, paths)?;
    core.make_room(Need::Purge, 4 * change.steps_count())?;
    let mtr = change::enter(&core.pool, table, change, paths)?;
    core.health.must("purging a row", change::apply(&mtr, table, change, paths, None))?;
    Ok(change.steps_count())
}

/// Merges leaves that applying pending changes made small; returns whether there were any.
fn merge_small_leaves(core: &Core, writer: &mut Writer) -> bool {
    for done in 0..MERGES_PER_STEP {
        if !core.leaves.has_small_leaves() || core.make_room(Need::Purge, PAGES_PER_MERGE).is_err() {
            return done > 0;
        }
        let Some((tree, key)) = core.leaves.next_small_leaf() else { return done > 0 };
        let Some((table, index_no)) = core.catalog.by_tree(tree) else { continue };
        core.catalog.using(table.id(), |table| {
            if let Some(table) =
                table.filter(|table| table.tree(index_no).is_ok_and(|of| of.def().id == tree))
            {
                core.note_merge(writer.paths.merge(table, index_no, &key));
            }
        });
    }
    true
}

fn before(at: PurgeState, head: &UndoHead) -> PurgeState {
    PurgeState { head: head.prev, undo_no: at.undo_no - 1, freed_pages: 0, ..at }
}

fn pass(core: &Core, mtr: &MiniTransaction<'_>, ended: &Ended) -> Result<()> {
    core.health.must("purging a transaction", core.transactions.undo.pass(mtr, ended.next, &ended.end))
}

/// Stores the progress in the mini-transaction that purges a record, and returns where to continue:
/// after the last record of a transaction, beyond that transaction.
fn note_purged(
    core: &Core,
    mtr: &MiniTransaction<'_>,
    ended: &Ended,
    at: PurgeState,
    head: &UndoHead,
) -> Result<Purged> {
    let at = before(at, head);
    if at.head == UndoPtr(0) {
        return pass(core, mtr, ended).map(|()| Purged::Passed);
    }
    core.transactions.undo.note_purge(mtr, at);
    Ok(Purged::GoOn(at))
}

fn free_of_record(
    core: &Core,
    table: &Table,
    ended: &Ended,
    mut at: PurgeState,
    head: &UndoHead,
    row: &UndoRow<'_>,
) -> Result<Purged> {
    let (mut data, mut index) = (Vec::new(), Vec::new());
    for locator in row.freed.chunks(LOCATOR_BYTES) {
        large::pages_of(&core.pool, table.blob_owner(), locator, &mut data, &mut index)?;
    }
    let already_free = at.freed_pages as usize;
    large::check_owner(core, table.blob_owner(), data.iter().skip(already_free).chain(&index))?;
    reach::mark("large value left behind freed");
    loop {
        core.make_room(Need::Back, FREED_PER_STEP)?;
        let mtr = core.pool.enter();
        let from = (at.freed_pages as usize).min(data.len());
        let to = (from + FREED_PER_STEP).min(data.len());
        if !sound!(true, "txn: free large values before noting it") {
            data.iter().chain(&index).for_each(|&page| core.pool.free(&mtr, page));
            drop(mtr);
            core.checkpoint()?;
            return note_purged(core, &core.pool.enter(), ended, at, head);
        }
        data.iter().take(to).skip(from).for_each(|&page| core.pool.free(&mtr, page));
        at.freed_pages = to as u64;
        if to == data.len() {
            index.iter().for_each(|&page| core.pool.free(&mtr, page));
            return note_purged(core, &mtr, ended, at, head);
        }
        core.transactions.undo.note_purge(&mtr, at);
    }
}
