//! Interval garbage collection: removes records that no snapshot sees but that [`super::purge`] has
//! to leave because of an old snapshot. It runs ahead of purge, from finish record to finish record
//! up to the last published stamp, and visits each record and entry that a transaction
//! delete-marked. It finds the older versions under the mark, and the interval of stamps in which
//! each was the newest. If no live snapshot is inside such an interval, the record is removed at
//! once. So an old snapshot holds up only rows that it sees, not rows inserted and deleted later.
//!
//! No reader misses a removed record, for the following reasons. Let *t* be the stamp of the mark,
//! and *p* >= *t* the last published stamp, read before the slots of the snapshots
//! (durability::H7).
//!   - A snapshot not found in a slot is not older than *p*: it sees the mark or a later version.
//!     So it finds no record instead of a delete-marked one. The same is true of a snapshot opened
//!     while the record is removed.
//!   - A snapshot found in a slot is in none of the intervals: for it, the key had no record or a
//!     delete-marked one, so the same argument holds. When the key is inserted again, the insert
//!     finds no record, and the chain of the new row ends there. None of these snapshots sees an
//!     older version.
//!   - An entry exists between the operations that added and removed it, which are the operations
//!     between which the row had its key. So a reader that sees a row finds its entry, and the
//!     entries of an invisible row are invisible. Entries are removed before their row, in one
//!     mini-transaction, as in purge: the argument of `visible.rs` about the order of reads holds.
//!   - A reader that copied a record before its removal follows the copy: no undo record is freed
//!     before purge has passed it, and purge waits for the snapshot.
//!   - Changes of open transactions are never under the mark of an ended one. Locks are on keys,
//!     not on records. A key without a record is free, like a key whose delete mark is by an ended
//!     transaction (I4 of `db/reading/locking_scan.rs`).
//!   - A mark and an absent record differ in one way: the mark names the transaction that changed
//!     the key, which snapshot isolation needs. Marks newer than the oldest snapshot whose reader
//!     watches for changes therefore stay.
//!
//! Invariants
//!   I1  A record is removed only while it is exactly as the operation that marked it left it. So a
//!       record that was inserted or marked again stays, and so does a record touched by an open or
//!       prepared transaction. The purge latch of the row is held from the lookup to the change, as
//!   I2  Nothing of this is durable or logged. Purge visits all the undo records again, removes the
//!       remaining records, and frees the large values. No reader reaches these values meanwhile,
//!       because only undo records of the row lead to them. Redo may find a mark where the first
//!       run found no record, or the reverse, as is always possible with purge: a change to a key
//!       without a row accepts both.
//!   I3  Each record is visited once. When a snapshot that kept records, but was not the oldest, is
//!       closed, the records from the first to the last mark that it kept are visited again. Each
//!       first visit pays for one repeated visit, so the total cost is at most twice one pass over
//!       the log, however snapshots open and close.
//!   I4  It never waits for another thread. A row that a thread works on is visited again later, as
//!       if a snapshot had kept it. Purge takes precedence.
//!   I5  Each step reads the stamps of the snapshots under the lock of purge, so purge has not
//!       passed any undo record that the step follows. Snapshots closed meanwhile count as live.
//! Locks     the locks of purge.

use super::interval_state::{IntervalGc, Sight, Stretch, Under, UndoPosition};
use super::purge::{marks_entry, marks_row, remove_marked};
use super::purge_state::Budget;
use crate::base::{reach, sound, Error, Result, TableId, UndoPtr};
use crate::format::log_record::RowOp;
use crate::format::undo_record::{decode_body, UndoBody, UndoRow, HEAD_BYTES};
use crate::pool::Reserve;
use crate::table::definitions::handle::Table;
use crate::table::rows::change::Version;
use crate::table::rows::writer::Writer;
use crate::table::shared::parts::Core;
use crate::txn::State;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of older versions of a key that are checked. A key inserted and deleted more
/// often is left to purge; it is one record, whatever the number of its versions.
const VERSIONS_MAX: usize = 64;

/// Delay after an error.
const REST_NS: u64 = 1_000_000_000;

struct Tools<'b> {
    record: &'b mut Vec<u8>,
    writer: &'b mut Writer,
    sight: &'b mut Sight,
}

/// Visits up to `records` undo records and finish records. Returns whether there is more to do.
/// Outside mini-transactions; does I/O.
pub(super) fn step(
    core: &Core,
    between: &mut IntervalGc,
    record: &mut Vec<u8>,
    writer: &mut Writer,
    records: usize,
) -> Result<bool> {
    let now_ns = core.clock.now_ns();
    if now_ns < between.rests_until_ns {
        return Ok(false);
    }
    between.sight.look(core);
    // On a full disk, the removal would use space before it frees any.
    if between.sight.lag() < core.config.old_snapshot_lag || core.pool.check_space(Reserve::Whole).is_err() {
        return Ok(false);
    }
    let done = between.go_on(core, record, writer, records);
    done.inspect_err(|_| between.rests_until_ns = now_ns + REST_NS)
}

impl IntervalGc {
    fn go_on(
        &mut self,
        core: &Core,
        record: &mut Vec<u8>,
        writer: &mut Writer,
        records: usize,
    ) -> Result<bool> {
        let Self { ahead, again, paid, sight, .. } = self;
        let mut tools = Tools { record, writer, sight };
        let mut budget = Budget { records };
        let done = ahead.go_on(core, UndoPtr(u64::MAX), &mut budget, &mut tools);
        let new_count = records - budget.records;
        *paid += new_count as u64;
        if !done? {
            return Ok(true);
        }
        if let Some(busy) = tools.sight.busy.take_if(|_| new_count > 0) {
            tools.sight.look_again_at(busy);
        }
        if again.is_none() {
            *again = tools.sight.due.take().map(|due| (UndoPosition::of(due.from), due.to));
        }
        if let Some((place, to)) = again {
            let left = budget.records.min(usize::try_from(*paid).unwrap_or(usize::MAX));
            budget.records -= left;
            let mut again_budget = Budget { records: left };
            let done = place.go_on(core, *to, &mut again_budget, &mut tools);
            *paid -= (left - again_budget.records) as u64;
            budget.records += again_budget.records;
            if done? {
                reach::mark("looked between snapshots again");
                *again = None;
            }
        }
        Ok(budget.records < records)
    }
}

impl UndoPosition {
    fn of(at: UndoPtr) -> Self {
        Self { at, under: None }
    }

    /// Visits records up to `to`. Returns whether none is left now. After an error, skips the
    /// transaction that met it: purge will report the error.
    fn go_on(
        &mut self,
        core: &Core,
        to: UndoPtr,
        budget: &mut Budget,
        tools: &mut Tools<'_>,
    ) -> Result<bool> {
        if self.at < core.transactions.undo.searched_to() {
            *self = Self::of(core.transactions.undo.searched_to());
        }
        while budget.records > 0 {
            let Some(under) = self.under else {
                let Some((next, head, end)) =
                    core.transactions.undo.finish_from(&mut self.at, tools.record)?
                else {
                    return Ok(self.at >= to.min(core.transactions.undo.end()));
                };
                if self.at >= to || end.stamp > tools.sight.up_to {
                    return Ok(true);
                }
                budget.take_one();
                let (by, stamp, head, undo_no) = (head.txn, end.stamp, end.head, end.undo_no);
                let finish = Stretch { from: self.at, to: next };
                self.under = Some(Under { by, stamp, head, undo_no, finish });
                continue;
            };
            // A mark over a version that all snapshots see is left to purge.
            if under.head == UndoPtr(0) || under.stamp <= tools.sight.oldest() {
                *self = Self::of(under.finish.to);
                continue;
            }
            budget.take_one();
            let before = tools.look_at(core, &under, budget);
            self.under = Some(before.inspect_err(|_| *self = Self::of(under.finish.to))?);
        }
        Ok(false)
    }
}

impl Tools<'_> {
    /// Visits the next record, and returns where to continue.
    fn look_at(&mut self, core: &Core, under: &Under, budget: &mut Budget) -> Result<Under> {
        let head = core.transactions.undo.read(under.head, under.by, under.undo_no, self.record)?;
        match decode_body(self.record.get(HEAD_BYTES..).unwrap_or_default())? {
            UndoBody::Row(row) if row.op != RowOp::Insert => {
                remove_unseen(core, under, &row, self.writer, self.sight, budget)?;
            }
            _ => {}
        }
        Ok(Under { head: head.prev, undo_no: under.undo_no - 1, ..*under })
    }
}

/// Removes delete-marked records that are unchanged if no snapshot sees an older version.
fn remove_unseen(
    core: &Core,
    under: &Under,
    row: &UndoRow<'_>,
    writer: &mut Writer,
    sight: &mut Sight,
    budget: &mut Budget,
) -> Result<()> {
    core.catalog.using(row.table, |table| match table {
        Some(table) => remove_unseen_of(core, table, under, row, writer, sight, budget),
        None => Ok(()),
    })
}

fn remove_unseen_of(
    core: &Core,
    table: &Table,
    under: &Under,
    row: &UndoRow<'_>,
    writer: &mut Writer,
    sight: &mut Sight,
    budget: &mut Budget,
) -> Result<()> {
    let unseen = sight.unseen_indexes(core, under, row, budget)?;
    if unseen.is_empty() {
        return Ok(());
    }
    let Some(latch) = core.purge_latches.for_purge(table.id(), row.old_key) else {
        sight.busy = Some(sight.busy.map_or(under.finish, |busy| busy.and(under.finish)));
        return Ok(());
    };
    let by = Some((under.by, under.head));
    // I1.
    let is_dead = |marked: bool, version: Version| {
        marked && !sound!(version != by, "purge: take a later mark for its own")
    };
    let removed = remove_marked(core, table, row, writer, |index| unseen.contains(&index), is_dead)?;
    drop(latch);
    if removed > 0 {
        reach::mark("marked records purged between snapshots");
        core.counters.purged_between_snapshots.fetch_add(removed as u64, Relaxed);
        core.note_merge(writer.paths.merge_small(table, &writer.change));
    }
    Ok(())
}

/// A key in a tree of a table: of a row, or of its entry in an index.
#[derive(Clone, Copy)]
struct Spot<'a> {
    table: TableId,
    row_key: &'a [u8],
    /// The number of the index, and the entry's key without the clustered key.
    entry: Option<(u32, &'a [u8])>,
}

/// Whether the version is live, not a delete mark; and the version.
type Older = (bool, Version);

impl Spot<'_> {
    /// The content of the key before an operation; `None` if no undo record describes it. Returns
    /// `Corruption` if the operation did not change this key.
    fn before(&self, at: UndoPtr, row: &UndoRow<'_>) -> Result<Option<Older>> {
        let new_key = if row.new_key.is_empty() { row.old_key } else { row.new_key };
        let was_here = row.op != RowOp::Insert && row.old_key == self.row_key;
        let is_here = row.op != RowOp::Delete && new_key == self.row_key;
        let told = match self.entry {
            None if was_here => Some(Some((true, row.old.version))),
            None if is_here => Some(row.marked.map(|marked| (false, marked.version))),
            None => None,
            Some((index, key)) => row.entries.iter().find_map(|entry| match entry.index == index {
                true if was_here && entry.old_key == key => Some(Some((true, entry.old.version))),
                true if is_here && entry.new_key == key => {
                    Some(entry.marked.map(|marked| (false, marked.version)))
                }
                _ => None,
            }),
        };
        told.filter(|_| row.table == self.table).ok_or_else(|| not_of(at, "it is about another key"))
    }
}

/// The readers of a version under a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    ByNobody,
    /// The first live snapshot that sees it.
    By(usize),
    /// Possibly some snapshot; a further check costs more than it is worth.
    Perhaps,
}

impl Sight {
    /// Reads the stamps of the live snapshots, and schedules a repeated visit for closed ones (I3).
    fn look(&mut self, core: &Core) {
        self.up_to = core.transactions.versions.live_and_watched(&mut self.live);
        // No snapshot is older than the horizon (durability::H7): a slot that shows a smaller stamp
        // is about to be updated.
        let horizon = core.purge.horizon();
        self.live.retain(|&stamp| stamp >= horizon);
        if self.live.len() > 2 && !sound!(true, "purge: overlook snapshots in the middle") {
            self.live.drain(1..self.live.len() - 1);
        }
        let passed = core.transactions.undo.searched_to();
        let Self { live, kept, due, .. } = self;
        kept.retain(|(stamp, stretch)| {
            let is_live = live.binary_search(stamp).is_ok();
            if !is_live && stretch.to > passed {
                *due = Some(due.map_or(*stretch, |due| due.and(*stretch)));
            }
            is_live && stretch.to > passed
        });
    }

    fn oldest(&self) -> u64 {
        self.live.first().copied().unwrap_or(u64::MAX)
    }

    /// The number of transaction ends between the oldest snapshot and the newest.
    fn lag(&self) -> u64 {
        self.live.last().map_or(0, |last| last - self.oldest())
    }

    /// Returns the first live snapshot that sees the commit with `stamp`.
    fn first_that_sees(&self, stamp: u64) -> usize {
        self.live.partition_point(|&live| live < stamp)
    }

    fn look_again_at(&mut self, at: Stretch) {
        self.due = Some(self.due.map_or(at, |due| due.and(at)));
    }

    /// The oldest snapshot is not noted, because purge continues when it is closed.
    fn note_kept(&mut self, by: usize, at: Stretch) {
        let Some(&stamp) = self.live.get(by).filter(|_| by > 0) else { return };
        reach::mark("kept for a snapshot in the middle");
        let found = self.kept.binary_search_by_key(&stamp, |kept| kept.0);
        let no = found.unwrap_or_else(|no| {
            self.kept.insert(no, (stamp, at));
            no
        });
        if let Some((_, stretch)) = self.kept.get_mut(no) {
            *stretch = stretch.and(at);
        }
    }

    /// The numbers of the indexes in which the operation delete-marked a record that no snapshot
    /// sees. Includes the clustered index only with all secondary indexes.
    fn unseen_indexes(
        &mut self,
        core: &Core,
        under: &Under,
        row: &UndoRow<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<u32>> {
        let mut unseen = Vec::new();
        let mut spot = Spot { table: row.table, row_key: row.old_key, entry: None };
        let mut are_all = true;
        for entry in row.entries.iter().filter(|entry| marks_entry(row, entry)) {
            spot.entry = Some((entry.index, entry.old_key));
            match self.is_unseen(core, spot, under, row, budget)? {
                true => unseen.push(entry.index),
                false => are_all = false,
            }
        }
        spot.entry = None;
        if are_all && marks_row(row) && self.is_unseen(core, spot, under, row, budget)? {
            unseen.push(0);
        }
        Ok(unseen)
    }

    fn is_unseen(
        &mut self,
        core: &Core,
        spot: Spot<'_>,
        under: &Under,
        row: &UndoRow<'_>,
        budget: &mut Budget,
    ) -> Result<bool> {
        let seen = self.look_under(core, spot, under, row, budget)?;
        if let Seen::By(no) = seen {
            self.note_kept(no, under.finish);
        }
        Ok(seen == Seen::ByNobody)
    }

    /// Follows the versions under the mark that the operation `row` left at `spot`, and checks
    /// whether a live snapshot sees a live one. Reads up to [`VERSIONS_MAX`] undo records.
    fn look_under(
        &mut self,
        core: &Core,
        spot: Spot<'_>,
        under: &Under,
        row: &UndoRow<'_>,
        budget: &mut Budget,
    ) -> Result<Seen> {
        let (mut later, mut newer_at) = (self.first_that_sees(under.stamp), under.head);
        let mut older = spot.before(newer_at, row)?;
        for _ in 0..VERSIONS_MAX {
            let Some((is_live, version)) = older else { return Ok(Seen::ByNobody) };
            let first = match version.map_or(State::Frozen, |(txn, _)| core.transactions.versions.state(txn))
            {
                State::Frozen => 0,
                State::Committed(stamp) => self.first_that_sees(stamp),
                // Cannot happen: no transaction changes a row that an open transaction has changed,
                // and rolled-back changes are removed.
                State::Active | State::Aborted(_) => return Ok(Seen::Perhaps),
            };
            if is_live && first < later {
                return Ok(Seen::By(first));
            }
            // The version that the oldest snapshot sees hides all older ones from all snapshots.
            let goes_on = sound!(first > 0, "purge: look under the mark at one version only");
            let Some((txn, at)) = version.filter(|(_, at)| goes_on && *at != UndoPtr(0)) else {
                return Ok(Seen::ByNobody);
            };
            if at >= newer_at {
                return Err(not_of(at, "it leads to a newer version"));
            }
            budget.take_one();
            core.transactions.undo.read_version(at, txn, &mut self.older)?;
            let body = decode_body(self.older.get(HEAD_BYTES..).unwrap_or_default())?;
            let UndoBody::Row(row) = &body else { return Err(not_of(at, "it is not about a row")) };
            older = spot.before(at, row)?;
            (later, newer_at) = (first, at);
        }
        Ok(Seen::Perhaps)
    }
}

fn not_of(at: UndoPtr, detail: &str) -> Error {
    Error::corrupt(
        format!("undo record at {at}"),
        format!("a version below a delete mark refers to it, but {detail}"),
    )
}
