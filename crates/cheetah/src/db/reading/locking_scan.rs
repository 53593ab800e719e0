//! A scan that locks what it reads: ranges of its index, and the rows.
//!
//! Record by record: under the latch of the leaf it sees the next record that is not passed, and
//! asks for its lock, with the range since the last one. If it has to wait, it looks again
//! afterwards from where it was. From an entry of a secondary index it goes on to the row, locks
//! that, and makes sure that the entry is still the row's.
//!
//! One row that is sought by its whole key, and whose leaf is not in memory, is judged under the
//! lock of the leaf's page table entry instead of a latch.
//!
//! Invariants
//!   I1  Where ranges are locked, every key from where the scan began to where it is lies in a
//!       range of its owner, and was seen under a latch under which the range was locked already or
//!       then: nobody has put a record there unseen.
//!   I2  The row at which it stops is live, locked, and of a transaction that has committed or is
//!       its own: the newest row.
//!   I3  It stops at a row without its lock only if it was told to look at such rows, and says so.
//!   I4  A record that is marked as deleted by a transaction that has ended is passed: nobody can
//!       bring it back but by an insert, which the range keeps away.
//!   I5  Such records that follow each other in a leaf are passed in one step, under one latch. The
//!       range that they lie in is locked with that of the next record that is not passed, the
//!       places of the deleted ones among it. An owner who has locked such a place keeps it: one
//!       that has only the range waits for it before it puts a row there.
//!   I6  A scan whose request is queued asks for nothing until that is answered. Somebody may wait
//!       for what it would get, and would then wait for the scan, in a cycle that was looked for
//!       before: nobody would see the deadlock.

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

/// Where it goes no further: the keys that a search asks for end there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeekEnd<'a> {
    /// Nowhere.
    #[default]
    None,
    /// With the keys that begin with the one that was sought.
    Prefix,
    /// As [`Prefix`](Self::Prefix), for a whole key of the clustered index: with the row that has
    /// it.
    Row,
    /// Before this key; forward only.
    Below(&'a [u8]),
    /// With the keys that begin with this one; forward only.
    UpTo(&'a [u8]),
}

/// A place between or on records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Nowhere,
    /// In front of all records.
    Start,
    /// Right before `from`, on no record.
    Before,
    /// On the record of `entry`.
    On,
    /// Behind all records.
    End,
}

/// See the module.
#[derive(Debug)]
pub(in crate::db) struct LockingScan {
    locker: Arc<Locker>,
    table: Arc<Table>,
    index_no: usize,
    how: Locking,
    walk: Walk,
    place: Place,
    /// Where the step in progress begins.
    from: Vec<u8>,
    /// Where the next one begins.
    next: Vec<u8>,
    /// Forward: the first key that is out of question. Backward: the last one that is not.
    limit: Option<Vec<u8>>,
    /// Whether one row was sought by its whole key.
    is_point: bool,
    /// The direction of the last search, to which the limit belongs.
    is_forward: bool,
    /// The record whose lock was waited for last: that request counts too.
    waited_for: Option<Vec<u8>>,
    /// The record that it is on.
    entry: Copied,
    row: Vec<u8>,
    /// Findings about the cold leaf of the row, for the operation that changes it.
    row_path: Path,
    /// Whether the row is as it was committed last, and somebody else has it locked (I3).
    is_unlocked: bool,
    /// Keeps the large values of such a row until the scan leaves it.
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

    /// Goes to an entry, and no further than `end`; `false` if no such entry exists.
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

    /// Goes to the next entry; `false` at the end, or at the end of what was sought: another call
    /// goes beyond that.
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

    /// The mirror image of [`next`](Self::next).
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

    /// Goes to the row once more that it is on, and waits for its lock; to the next one if it is
    /// not there any more.
    pub(in crate::db) fn read_again(&mut self) -> Result<bool> {
        let on_locked = std::mem::replace(&mut self.how.on_locked, OnLocked::Wait);
        let mut from = std::mem::take(&mut self.from);
        from.clone_from(&self.entry.key);
        let found = self.forward(from, false);
        self.how.on_locked = on_locked;
        found
    }

    /// Whether it is on a row without its lock.
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

    /// A scan that turns round leaves what was sought behind.
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

    /// Judges the row of `from`, if it is there and its leaf is not in memory, and need not be.
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

    /// Does what a step asks for outside the latch. `Again` and its like: the same step once more.
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

    /// Notes that the row that it is on is locked: an operation that changes it need not ask again.
    fn note_locked(&mut self) {
        let peeked = self.row_path.take_peeked();
        if self.is_unlocked || self.how.mode != LockMode::Exclusive || self.how.any_version {
            return;
        }
        let (_, clustered) = parts(self.index_no, &self.entry.key, &self.entry.payload);
        self.locker.note_scanned(self.table.clustered().def().id, clustered, self.entry.by, peeked);
    }

    /// Somebody else has locked the record of `next`: passes it, or looks at it.
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

    /// Counts the lock that was waited for when the scan stops at its row; otherwise the row has
    /// gone, and where ranges are not locked the lock is given back.
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

    /// Copies the entry again, whose row is locked; whether it is still there.
    fn look_again(&mut self) -> Result<bool> {
        let Self { table, index_no, entry, .. } = self;
        let _usage = table.use_it()?;
        let key = std::mem::take(&mut entry.key);
        let found = table.tree(*index_no)?.get(&key, |record| entry.copy(record));
        entry.key = key;
        Ok(found?.is_some() && entry.flags != RecordFlags::DELETE_MARKED)
    }

    /// Gives the lock of the row back that it is on, if ranges are not locked: it does not match.
    pub(in crate::db) fn unlock(&mut self) {
        let granted = std::mem::take(&mut self.entry.granted);
        if self.how.ranges {
            return;
        }
        let (_, clustered) = parts(self.index_no, &self.entry.key, &self.entry.payload);
        (0..granted).for_each(|_| self.locker.unlock_row(&self.table, clustered, self.how.mode));
    }

    /// The search has no end any more.
    pub(in crate::db) fn forget_end(&mut self) {
        self.limit = None;
    }

    pub(in crate::db) fn valid(&self) -> bool {
        self.place == Place::On
    }

    /// The whole stored key; empty when there is no entry.
    pub(in crate::db) fn key(&self) -> &[u8] {
        if self.valid() {
            &self.entry.key
        } else {
            &[]
        }
    }

    /// The payload stored under the key.
    pub(in crate::db) fn stored(&self) -> &[u8] {
        if self.valid() {
            &self.entry.payload
        } else {
            &[]
        }
    }

    /// The stored row.
    pub(in crate::db) fn row(&self) -> &[u8] {
        if self.index_no == 0 {
            self.stored()
        } else {
            &self.row
        }
    }
}

/// The caller's part of a stored key, and the clustered key.
pub(in crate::db) fn parts<'k>(index_no: usize, key: &'k [u8], stored: &[u8]) -> (&'k [u8], &'k [u8]) {
    if index_no == 0 {
        return (key, key);
    }
    let clustered_len = varint::get(stored).map_or(0, |(len, _)| len as usize);
    key.split_at(key.len().saturating_sub(clustered_len))
}
