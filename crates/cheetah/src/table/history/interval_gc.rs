//! Interval garbage collection: removes what [`super::purge`] has to leave because of an old
//! snapshot, but nobody sees. It runs ahead of that one, from finish record to finish record up to
//! the last published stamp, and looks at each record and entry that the transaction has marked as
//! deleted: which versions lie under the mark, and from which stamp to which each was the newest.
//! When no live snapshot lies within such a stretch, the record goes at once. So the old snapshot
//! keeps the rows that it sees, and not what came and went after it.
//!
//! Why nobody misses what goes. Let *t* be the stamp of the mark and *p* the last published stamp,
//! which was read before the slots of the snapshots were (H7); *t* <= *p*.
//!   - A snapshot that was not found in a slot is not older than *p*: it sees the mark, or a later
//!     version. It finds no record in place of one that says that the row is gone. So does one that
//!     is opened while the record goes.
//!   - One that was found lies in none of the stretches: it sees that the place held nothing, or a
//!     mark. As for the one before. When the key comes back, its operation finds an empty place,
//!     and the chain of the new row ends there; none of these snapshots sees more behind it.
//!   - An entry lies between the operations that brought it and took it, which are those between
//!     which the row had its key. So who sees a row finds its entry, and the entries of a row that
//!     nobody sees are seen by nobody. Entries go before their row, in one mini-transaction, as in
//!     purge: the argument of `visible.rs` about the order of reads holds.
//!   - A reader that has copied a record before it went follows the copy: no undo record goes
//!     before purge has passed it, which waits for the snapshot.
//!   - Own changes of open transactions are never under the mark of one that has ended. Locks are
//!     on keys, not on records; a place without a record is free, as one with a mark whose
//!     transaction has ended (I4 of `db/reading/locking_scan.rs`).
//!   - One difference there is between a mark and nothing: it tells who has changed the place, and
//!     snapshot isolation asks for that. Marks behind the oldest snapshot whose reader watches for
//!     that stay.
//!
//! Invariants
//!   I1  A record goes only while it is just as the operation left it, marked by it. So what
//!       somebody has brought back, or marked again, stays; so does what an open or prepared
//!       transaction has touched. Work on the row holds its purge latch, as in purge, from the look
//!       at the place to the change. A rollback that puts a mark back leaves it to purge.
//!   I2  Nothing of this is durable or logged. Purge comes to all of it again, finds what is left,
//!       and frees the large values: nobody reaches them meanwhile, as undo records of the row lead
//!       to them and nothing else. Redo finds either the mark or nothing where the first run found
//!       the other one, as ever with purge: a change of a place without a row takes both.
//!   I3  Each record is looked at once; and once more when a snapshot that has kept something, and
//!       was not the oldest, has gone: from the first to the last mark that it has kept. Each
//!       record that is looked at for the first time pays for one that is looked at again, so all
//!       of it costs at most twice one pass over the log, however snapshots come and go.
//!   I4  It waits for nobody. A row that somebody works on is looked at again later, as if a
//!       snapshot had kept it. Purge goes first.
//!   I5  The stamps of snapshots are looked up in each step, under the lock of purge: so no record
//!       that a step follows has been passed. Snapshots that go meanwhile are taken for live ones.
//! Locks     those of purge.

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

/// Older versions of a place that are looked at. A place that comes and goes more often before
/// anybody looks is left to purge; it is one record, whatever the number of its versions.
const VERSIONS_MAX: usize = 64;

/// How long it rests after an error.
const REST_NS: u64 = 1_000_000_000;

/// The tools of [`UndoPosition::go_on`].
struct Tools<'b> {
    record: &'b mut Vec<u8>,
    writer: &'b mut Writer,
    sight: &'b mut Sight,
}

/// Goes on by up to `records` undo records and finish records; whether there is more to do. Outside
/// mini-transactions; does I/O.
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
    // On a full disk the space that it takes comes before the space that it gives back.
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

    /// Goes on up to `to`; whether there is nothing more to look at there now. After an error it
    /// goes on behind the transaction in which that was met: purge will tell of it.
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
    /// Looks at the next record of a transaction; where to go on.
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

/// Removes what the operation has marked, as far as it is still so and nobody sees what was there
/// before.
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

/// A place in a tree of a table: of a row, or of its entry in an index.
#[derive(Clone, Copy)]
struct Spot<'a> {
    table: TableId,
    /// The clustered key.
    row_key: &'a [u8],
    /// Number of the index, and the entry's key without that of the row.
    entry: Option<(u32, &'a [u8])>,
}

/// Whether a version is a row, or an entry of one, and not a mark; and whose it is.
type Older = (bool, Version);

impl Spot<'_> {
    /// The content of the place before an operation; `None` if no undo record tells of any.
    /// `Corruption` if the operation was not on this place.
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
        told.filter(|_| row.table == self.table).ok_or_else(|| not_of(at, "it is about another place"))
    }
}

/// The readers of a version that lies under a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    ByNobody,
    /// The first of the live snapshots that do.
    By(usize),
    /// Perhaps somebody: it is not worth while to look further.
    Perhaps,
}

impl Sight {
    /// Looks which snapshots there are, and has looked at again what was kept for those that have
    /// gone (I3).
    fn look(&mut self, core: &Core) {
        self.up_to = core.transactions.versions.live_and_watched(&mut self.live);
        // No snapshot is older than a horizon (H7): a slot that shows less is about to show another
        // stamp.
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

    /// The stamp of the oldest snapshot.
    fn oldest(&self) -> u64 {
        self.live.first().copied().unwrap_or(u64::MAX)
    }

    /// By how many ends of transactions it is behind.
    fn lag(&self) -> u64 {
        self.live.last().map_or(0, |last| last - self.oldest())
    }

    /// The first live snapshot that sees what was committed with `stamp`.
    fn first_that_sees(&self, stamp: u64) -> usize {
        self.live.partition_point(|&live| live < stamp)
    }

    fn look_again_at(&mut self, at: Stretch) {
        self.due = Some(self.due.map_or(at, |due| due.and(at)));
    }

    /// Notes that a live snapshot has kept something; of the oldest it need not be known, as purge
    /// goes on when that goes.
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

    /// Numbers of the indexes in which the operation has marked something under which nobody sees
    /// anything. The row's is one of them only if those of all its entries are.
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

    /// Looks under the mark that the operation `row` has left in `spot`, from version to version,
    /// whether a live snapshot sees one that is a row. Reads up to [`VERSIONS_MAX`] undo records.
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
                // Does not arise: nobody changes a row that an open transaction has changed, and
                // changes that are rolled back go.
                State::Active | State::Aborted(_) => return Ok(Seen::Perhaps),
            };
            if is_live && first < later {
                return Ok(Seen::By(first));
            }
            // The version that the oldest snapshot sees hides all older ones from all.
            let goes_on = sound!(first > 0, "purge: look under the mark at one version only");
            let Some((txn, at)) = version.filter(|(_, at)| goes_on && *at != UndoPtr(0)) else {
                return Ok(Seen::ByNobody);
            };
            if at >= newer_at {
                return Err(not_of(at, "it leads to a newer one"));
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
