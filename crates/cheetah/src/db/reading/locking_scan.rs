//! A scan that locks what it reads: ranges of its index, and rows.
//!
//! The scan works record by record. Under the latch of the leaf, it finds the next record that it
//! does not skip, and requests the lock on the record and on the range between it and the previous
//! record. After a wait it reads again from its position. From an entry of a secondary index it
//! goes to the row, locks it, and checks that the entry still belongs to it.
//!
//! If a single row is looked up by its full key and its leaf is cold, the scan examines the row
//! under the lock of the leaf's page table entry instead of a latch.
//!
//! Invariants
//!   I1  If ranges are locked, every key from the start of the scan to its position is in a range
//!       that the scan's owner locked no later than it released the latch under which the scan saw
//!       the key. So no other transaction can have inserted a record there unseen by the scan.
//!   I2  The row at which the scan stops is live and locked, and its writer has committed or is the
//!       scan's own transaction: the scan has the row's newest version.
//!   I3  The scan stops at a row that it has not locked only if the caller allows this, and then
//!       `is_unlocked` returns true.
//!   I4  The scan skips a record that was delete-marked by a transaction that has ended. Only an
//!       insert could bring the record back, and the lock on the range prevents that.
//!   I5  Consecutive delete-marked records in a leaf are skipped in one step, under one latch.
//!       Their range is locked together with the range of the next record that is not skipped, and
//!       includes the deleted records' keys. If another transaction has locked such a key, it keeps
//!       its lock. The scan's transaction, which has only the range, must wait for that lock before
//!       it inserts the key.
//!   I6  A scan whose request is queued makes no further request until that request is answered.
//!       Otherwise its new lock could block a transaction that already waits. That wait for the
//!       scan may close a cycle, but no search for deadlocks runs then: the deadlock would go
//!       undetected.

use super::scan_step::{Asking, Copied, Locking, Met, ScanStep};
use crate::base::{sound, Error, Result};
use crate::db::OnLocked;
use crate::format::page::{RecordFlags, RecordRef};
use crate::format::varint;
use crate::table::history::visible::read_row;
use crate::table::rows::locker::{Locked, Locker, Patience, ScannedBy};
use crate::table::Table;
use crate::tree::{successor, Path, SeekMode, Sight, Walk};
use crate::txn::{LockMode, ReadView};
use std::ops::Bound;
use std::sync::Arc;

/// Where a search of a locking cursor ends. For a consistent read it only limits the read-ahead
/// (see [`Cursor::seek_to`](crate::db::Cursor::seek_to)).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeekEnd<'a> {
    /// At the end of the index.
    #[default]
    None,
    /// After the keys that begin with the key of the search.
    Prefix,
    /// For a full key of the clustered index: after the row with that key.
    Row,
    /// Before this key; forward only.
    Below(&'a [u8]),
    /// After the keys that begin with this key; forward only.
    UpTo(&'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Nowhere,
    /// Before all records.
    Start,
    /// Right before `from`, on no record.
    Before,
    /// On the record of `entry`.
    On,
    /// After all records.
    End,
}

#[derive(Debug)]
pub(in crate::db) struct LockingScan {
    locker: Arc<Locker>,
    table: Arc<Table>,
    index_no: usize,
    how: Locking,
    walk: Walk,
    place: Place,
    /// Where the current step begins.
    from: Vec<u8>,
    /// Where the next step begins.
    next: Vec<u8>,
    /// Forward: the first key beyond the search. Backward: the last key within it.
    limit: Option<Vec<u8>>,
    is_point: bool,
    /// The direction that `limit` is for.
    is_forward: bool,
    /// The record whose lock the scan last waited for: `entry.granted` includes that request.
    waited_for: Option<Vec<u8>>,
    entry: Copied,
    row: Vec<u8>,
    /// For the operation that changes the row: the path to its leaf, or the ticket of a cold one.
    row_path: Path,
    /// `entry` has the last committed version of a row that another transaction has locked (I3).
    is_unlocked: bool,
    /// Preserves the large values of an unlocked row until the scan leaves it.
    unlocked_view: Option<ReadView>,
}

impl LockingScan {
    pub(in crate::db) fn new(
        locker: &Arc<Locker>,
        table: &Arc<Table>,
        index_no: usize,
        how: Locking,
    ) -> Result<Self> {
        Ok(Self {
            locker: Arc::clone(locker),
            table: Arc::clone(table),
            index_no,
            how,
            walk: Walk::new(table.tree(index_no)?),
            place: Place::Nowhere,
            from: Vec::new(),
            next: Vec::new(),
            limit: None,
            is_point: false,
            is_forward: true,
            waited_for: None,
            entry: Copied::default(),
            row: Vec::new(),
            row_path: Path::default(),
            is_unlocked: false,
            unlocked_view: None,
        })
    }

    /// Does not move beyond `end`; returns `false` if there is no such entry.
    pub(in crate::db) fn seek(&mut self, mode: SeekMode, key: &[u8], end: SeekEnd<'_>) -> Result<bool> {
        self.place = Place::Nowhere;
        let above = |key: &[u8]| successor(key);
        let forward = mode.is_forward();
        self.is_forward = forward;
        self.is_point = self.index_no == 0 && mode == SeekMode::AtLeast && matches!(end, SeekEnd::Row);
        self.limit = match (end, forward) {
            (SeekEnd::None, _) => None,
            (SeekEnd::Prefix | SeekEnd::Row, true) => above(key),
            (SeekEnd::Prefix | SeekEnd::Row, false) => Some(key.to_vec()),
            (SeekEnd::Below(end), _) => Some(end.to_vec()),
            (SeekEnd::UpTo(end), _) => above(end),
        };
        let from = match mode {
            SeekMode::First => Some(Vec::new()),
            SeekMode::Last => None,
            SeekMode::AtLeast | SeekMode::Before => Some(key.to_vec()),
            SeekMode::After | SeekMode::AtMost => above(key),
        };
        match (forward, from) {
            (true, Some(from)) => self.forward(from, false),
            (true, None) => {
                self.place = Place::End;
                Ok(false)
            }
            (false, below) => self.backward(below),
        }
    }

    /// Returns `false` at the end of the index or search; a further call passes the search's end.
    pub(in crate::db) fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::End => Ok(false),
            Place::Start => self.forward(Vec::new(), false),
            Place::Before => {
                let from = std::mem::take(&mut self.from);
                self.forward(from, false)
            }
            Place::On => {
                let mut from = std::mem::take(&mut self.from);
                from.clone_from(&self.entry.key);
                self.forward(from, true)
            }
        }
    }

    pub(in crate::db) fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::Start => Ok(false),
            Place::End => self.backward(None),
            Place::Before => {
                let below = std::mem::take(&mut self.from);
                self.backward(Some(below))
            }
            Place::On => {
                let mut below = std::mem::take(&mut self.from);
                below.clone_from(&self.entry.key);
                self.backward(Some(below))
            }
        }
    }

    /// Reads the current row again and waits for its lock; moves on if the row no longer exists.
    pub(in crate::db) fn read_again(&mut self) -> Result<bool> {
        let on_locked = std::mem::replace(&mut self.how.on_locked, OnLocked::Wait);
        let mut from = std::mem::take(&mut self.from);
        from.clone_from(&self.entry.key);
        let found = self.forward(from, false);
        self.how.on_locked = on_locked;
        found
    }

    pub(in crate::db) fn is_unlocked(&self) -> bool {
        self.is_unlocked
    }

    fn forward(&mut self, from: Vec<u8>, mut after: bool) -> Result<bool> {
        self.from = from;
        self.turn(true);
        let mut crossed = false;
        loop {
            let step = self.step_forward(after, crossed)?;
            (after, crossed) = match self.finish_step(step)? {
                ScanStep::Landed => return Ok(true),
                ScanStep::Passed => (true, crossed),
                ScanStep::Crossed => (false, true),
                ScanStep::Limit => return Ok(self.stop(Place::Before)),
                ScanStep::End => return Ok(self.stop(Place::End)),
                ScanStep::Again | ScanStep::Wait(_) | ScanStep::Refused | ScanStep::TimedOut => continue,
            };
            std::mem::swap(&mut self.from, &mut self.next);
        }
    }

    fn backward(&mut self, below: Option<Vec<u8>>) -> Result<bool> {
        let mut is_bounded = below.is_some();
        self.turn(false);
        self.from = below.unwrap_or_default();
        loop {
            let step = self.step_backward(is_bounded)?;
            match self.finish_step(step)? {
                ScanStep::Landed => return Ok(true),
                ScanStep::Passed | ScanStep::Crossed => is_bounded = true,
                ScanStep::Limit => return Ok(self.stop(Place::Before)),
                ScanStep::End => return Ok(self.stop(Place::Start)),
                ScanStep::Again | ScanStep::Wait(_) | ScanStep::Refused | ScanStep::TimedOut => continue,
            }
            std::mem::swap(&mut self.from, &mut self.next);
        }
    }

    /// A change of direction drops the search's limit.
    fn turn(&mut self, forward: bool) {
        if self.is_forward != forward {
            self.limit = None;
        }
        (self.is_forward, self.waited_for, self.is_unlocked) = (forward, None, false);
        self.unlocked_view = None;
    }

    fn stop(&mut self, place: Place) -> bool {
        self.place = place;
        self.limit = None;
        std::mem::swap(&mut self.from, &mut self.next);
        false
    }

    fn step_forward(&mut self, after: bool, crossed: bool) -> Result<ScanStep> {
        let may_stay_out = || {
            sound!(
                self.walk.tree().leaves().has_tickets(),
                "scan: read the leaf of a row that is sought by its key"
            )
        };
        if self.is_point && !after && !crossed && may_stay_out() {
            if let Some(step) = self.step_to_point()? {
                return Ok(step);
            }
        }
        let Self { locker, index_no, how, walk, from, next, limit, entry, table, .. } = self;
        let _usage = table.use_it()?;
        let (tree, is_clustered, how) = (walk.tree().def().id, *index_no == 0, *how);
        let asking = Asking { locker, tree, is_clustered, how, is_forward: true };
        let low = if after { Bound::Excluded(&from[..]) } else { Bound::Included(&from[..]) };
        let limit = limit.as_deref();
        let passes = |key: &[u8], record: &RecordRef<'_>| {
            limit.is_none_or(|limit| key < limit) && asking.passes(key, record)
        };
        walk.forward(from, after, passes, |passed, sight| {
            let (end, step) = match sight {
                Sight::Record(key, record) if limit.is_none_or(|limit| key < limit) => {
                    next.clear();
                    next.extend_from_slice(key);
                    let run = passed.map(|passed| (low, Bound::Included(passed)));
                    let (range, is_alone) = ((low, Bound::Included(key)), !after && !crossed && from == key);
                    return asking.judge_behind(run, Met { key, record, range, is_alone }, entry);
                }
                Sight::Fence(fence) if limit.is_none_or(|limit| fence < limit) => {
                    (Some(fence), ScanStep::Crossed)
                }
                _ => (limit, if limit.is_some() { ScanStep::Limit } else { ScanStep::End }),
            };
            next.clear();
            next.extend_from_slice(end.unwrap_or_default());
            if sound!(true, "scan: leave the gap behind the last record") {
                let high = end.map_or(Bound::Unbounded, Bound::Excluded);
                let passed = passed.map(|last| [(low, Bound::Included(last)), (Bound::Excluded(last), high)]);
                asking.lock_rest((low, high), &step, passed)?;
            }
            Ok(step)
        })?
    }

    /// Examines the row with the key `from` if its leaf is not in memory and need not be read.
    fn step_to_point(&mut self) -> Result<Option<ScanStep>> {
        let Self { locker, how, walk, from, next, entry, table, row_path, .. } = self;
        let _usage = table.use_it()?;
        let (tree, how) = (walk.tree().def().id, *how);
        let asking = Asking { locker, tree, is_clustered: true, how, is_forward: true };
        let range = (Bound::Included(&from[..]), Bound::Included(&from[..]));
        let seen = walk.tree().see_unloaded(from, row_path, |record| {
            asking.judge(Met { key: from, record, range, is_alone: true }, entry)
        })?;
        next.clone_from(from);
        seen.transpose()
    }

    fn step_backward(&mut self, is_bounded: bool) -> Result<ScanStep> {
        let Self { locker, index_no, how, walk, from, next, limit, entry, table, .. } = self;
        let _usage = table.use_it()?;
        let (tree, is_clustered, how) = (walk.tree().def().id, *index_no == 0, *how);
        let asking = Asking { locker, tree, is_clustered, how, is_forward: false };
        let below = is_bounded.then_some(&from[..]);
        let high = below.map_or(Bound::Unbounded, Bound::Excluded);
        let limit = limit.as_deref();
        let passes = |key: &[u8], record: &RecordRef<'_>| {
            limit.is_none_or(|limit| key >= limit) && asking.passes(key, record)
        };
        walk.backward(below, passes, |passed, sight| {
            let (end, step) = match sight {
                Sight::Record(key, record) if limit.is_none_or(|limit| key >= limit) => {
                    next.clear();
                    next.extend_from_slice(key);
                    let run = passed.map(|passed| (Bound::Included(passed), high));
                    let range = (Bound::Included(key), high);
                    return asking.judge_behind(run, Met { key, record, range, is_alone: false }, entry);
                }
                Sight::Fence(fence) if limit.is_none_or(|limit| fence > limit) => {
                    (Some(fence), ScanStep::Crossed)
                }
                _ => (limit, if limit.is_some() { ScanStep::Limit } else { ScanStep::End }),
            };
            next.clear();
            next.extend_from_slice(end.unwrap_or_default());
            let low = end.map_or(Bound::Unbounded, Bound::Included);
            let passed = passed.map(|last| [(Bound::Included(last), high), (low, Bound::Excluded(last))]);
            asking.lock_rest((low, high), &step, passed)?;
            Ok(step)
        })?
    }

    /// Does the part of a step outside the latch. The caller repeats it after `Again` and the like.
    fn finish_step(&mut self, step: ScanStep) -> Result<ScanStep> {
        let step = match step {
            ScanStep::Landed if self.index_no != 0 => self.lock_row()?,
            other => other,
        };
        let step = if matches!(step, ScanStep::Refused) { self.pass_locked()? } else { step };
        match &step {
            ScanStep::Landed => {
                self.place = Place::On;
                self.count_awaited(!self.is_unlocked);
                self.note_locked();
            }
            ScanStep::Crossed => {
                self.locker.check_interrupted()?;
                self.walk.cross();
                self.count_awaited(false);
            }
            ScanStep::Again => self.locker.give_way()?,
            ScanStep::Wait(pending) => {
                self.locker.wait(pending)?;
                self.waited_for = Some(self.next.clone());
            }
            ScanStep::TimedOut => return Err(self.locker.timeout(&[])),
            ScanStep::Passed | ScanStep::Refused | ScanStep::Limit | ScanStep::End => {
                self.count_awaited(false)
            }
        }
        Ok(step)
    }

    /// Spares an operation that changes the current row the request for its lock.
    fn note_locked(&mut self) {
        let peeked = self.row_path.take_peeked();
        if self.is_unlocked || self.how.mode != LockMode::Exclusive || self.how.any_version {
            return;
        }
        let (_, clustered) = parts(self.index_no, &self.entry.key, &self.entry.payload);
        self.locker.note_scanned(self.table.clustered().def().id, clustered, self.entry.by, peeked);
    }

    /// Skips the record at `next`, which another transaction has locked, or reads it unlocked.
    fn pass_locked(&mut self) -> Result<ScanStep> {
        if self.how.on_locked == OnLocked::Skip {
            return Ok(ScanStep::Passed);
        }
        let Self { locker, table, next, entry, unlocked_view, .. } = self;
        let _usage = table.use_it()?;
        let view = unlocked_view.insert(ReadView::new(&locker.core.transactions.versions));
        view.open();
        if !read_row(&locker.core, table, next, Some(view), &mut entry.payload)? {
            return Ok(ScanStep::Passed);
        }
        entry.key.clone_from(next);
        (entry.granted, entry.flags, entry.by) = (0, RecordFlags::NONE, ScannedBy::Record);
        self.is_unlocked = true;
        Ok(ScanStep::Landed)
    }

    /// Counts the awaited lock if the scan stops at its row. Otherwise the row was deleted:
    /// releases the lock, unless ranges are locked.
    fn count_awaited(&mut self, is_landed: bool) {
        let Some(awaited) = self.waited_for.take().filter(|_| self.index_no == 0) else { return };
        if is_landed && awaited == self.entry.key {
            self.entry.granted += u32::from(self.entry.granted > 0);
        } else if !self.how.ranges {
            self.locker.unlock_row(&self.table, &awaited, self.how.mode);
        }
    }

    /// Locks the row of the entry (I2).
    fn lock_row(&mut self) -> Result<ScanStep> {
        let (_, clustered) = parts(self.index_no, &self.entry.key, &self.entry.payload);
        let Self { locker, how, row, table, row_path, .. } = self;
        let see = |record: RecordRef<'_>| {
            row.clear();
            row.extend_from_slice(record.payload);
            if how.any_version {
                return Ok(());
            }
            locker.check_unchanged(record.version)
        };
        let patience = if how.on_locked == OnLocked::Skip { Patience::None } else { Patience::Waits };
        let locked = locker.lock_row(table, clustered, Some(row_path), patience, |_| how.mode, see);
        row_path.unpin();
        let locked = locked?;
        let (Locked::Live(by) | Locked::Gone(by)) = locked else { return Ok(ScanStep::Refused) };
        self.entry.granted = u32::from(by.is_some());
        let is_marked = self.entry.flags == RecordFlags::DELETE_MARKED;
        if (is_marked || !self.walk.is_current()) && !self.look_again()? {
            self.unlock();
            return Ok(ScanStep::Passed);
        }
        if let Locked::Gone(_) = locked {
            let place = format!("index {} of table '{}'", self.index_no, self.table.name());
            return Err(Error::corrupt(place, "an entry leads to no row; run CHECK TABLE"));
        }
        Ok(ScanStep::Landed)
    }

    /// Copies the entry again after its row was locked; returns whether it still exists.
    fn look_again(&mut self) -> Result<bool> {
        let Self { table, index_no, entry, .. } = self;
        let _usage = table.use_it()?;
        let key = std::mem::take(&mut entry.key);
        let found = table.tree(*index_no)?.get(&key, |record| entry.copy(record));
        entry.key = key;
        Ok(found?.is_some() && entry.flags != RecordFlags::DELETE_MARKED)
    }

    /// Releases the lock on the current row, which does not match, unless ranges are locked.
    pub(in crate::db) fn unlock(&mut self) {
        let granted = std::mem::take(&mut self.entry.granted);
        if self.how.ranges {
            return;
        }
        let (_, clustered) = parts(self.index_no, &self.entry.key, &self.entry.payload);
        (0..granted).for_each(|_| self.locker.unlock_row(&self.table, clustered, self.how.mode));
    }

    pub(in crate::db) fn forget_end(&mut self) {
        self.limit = None;
    }

    pub(in crate::db) fn valid(&self) -> bool {
        self.place == Place::On
    }

    /// The whole stored key; empty if the scan is not on an entry.
    pub(in crate::db) fn key(&self) -> &[u8] {
        if self.valid() {
            &self.entry.key
        } else {
            &[]
        }
    }

    pub(in crate::db) fn stored(&self) -> &[u8] {
        if self.valid() {
            &self.entry.payload
        } else {
            &[]
        }
    }

    pub(in crate::db) fn row(&self) -> &[u8] {
        if self.index_no == 0 {
            self.stored()
        } else {
            &self.row
        }
    }
}

/// Splits a stored key into the caller's part and the clustered key.
pub(in crate::db) fn parts<'k>(index_no: usize, key: &'k [u8], stored: &[u8]) -> (&'k [u8], &'k [u8]) {
    if index_no == 0 {
        return (key, key);
    }
    let clustered_len = varint::get(stored).map_or(0, |(len, _)| len as usize);
    key.split_at(key.len().saturating_sub(clustered_len))
}
