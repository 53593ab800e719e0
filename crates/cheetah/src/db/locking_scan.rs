//! A scan that locks what it reads: ranges of its index, and the rows.
//!
//! Record by record: under the latch of the leaf it sees the next record and asks for its lock, with the range since the last
//! one; if it has to wait, it looks again afterwards from where it was. From an entry of a secondary index it goes on to
//! the row, locks that, and makes sure that the entry is still the row's.
//!
//! Invariants
//!   I1  Where ranges are locked, every key from where the scan began to where it is lies in a range of its owner, and was seen
//!       under a latch under which the range was locked already or then: nobody has put a record there unseen.
//!   I2  What it stops at is live, locked, and of a transaction that has committed or is its own: the newest row.
//!   I3  It stops at a row without its lock only if it was told to look at such rows, and says so.
//!   I4  A record that is marked as deleted by a transaction that has ended is passed: nobody can bring it back but by an
//!       insert, which the range keeps away.

use super::OnLocked;
use crate::base::{planted, Error, Result, TreeId};
use crate::format::page::{RecordFlags, RecordRef};
use crate::format::varint;
use crate::table::locker::{Asked, Locked, Locker, Maker, Patience};
use crate::table::visible::read_row;
use crate::table::Table;
use crate::tree::{successor, SeekMode, Sight, Walk};
use crate::txn::{KeyRange, Lock, LockMode, ReadView, Ticket};
use std::ops::Bound;
use std::sync::Arc;

/// How a scan locks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locking {
    pub(super) mode: LockMode,
    /// Whether nobody may put rows between those that it reads.
    pub(super) ranges: bool,
    pub(super) on_locked: OnLocked,
}

/// Where it goes no further: the keys that a search asks for end there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeekEnd<'a> {
    /// Nowhere.
    #[default]
    None,
    /// With the keys that begin with the one that was sought.
    Prefix,
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
    /// On the record of `key`.
    On,
    /// Behind all records.
    End,
}

/// What came of one step.
#[derive(Debug)]
enum Step {
    /// The record is in `key` and `entry`.
    Landed,
    /// The record of `next` is none to stop at.
    Passed,
    /// Nothing in this leaf: on to the fence in `next`.
    Crossed,
    /// Nothing up to the end of what was asked for, which is in `next`.
    Limit,
    /// Nothing up to the end of the tree.
    End,
    Again,
    Wait(Ticket),
    /// Somebody has the record, and the scan passes such records or looks at them.
    Refused,
    /// Somebody has the record, and the scan is not to wait at all.
    TimedOut,
}

/// A record that was copied out of its leaf.
#[derive(Default, Debug)]
struct Copied {
    flags: RecordFlags,
    payload: Vec<u8>,
    /// How often the lock of the row was asked for and counted for this stop; not at all when an own version is the lock.
    granted: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct LockingScan {
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
    /// The direction of the last search, to which the limit belongs.
    is_forward: bool,
    /// The record whose lock was waited for last: that request counts too.
    waited_for: Option<Vec<u8>>,
    key: Vec<u8>,
    entry: Copied,
    row: Vec<u8>,
    /// Whether the row is as it was committed last, and somebody else has it locked (I3).
    is_unlocked: bool,
    /// Keeps the large values of such a row until the scan leaves it.
    unlocked_view: Option<ReadView>,
}

impl LockingScan {
    pub(super) fn new(
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
            is_forward: true,
            waited_for: None,
            key: Vec::new(),
            entry: Copied::default(),
            row: Vec::new(),
            is_unlocked: false,
            unlocked_view: None,
        })
    }

    /// Goes to an entry, and no further than `end`; `false` if there is none such.
    pub(super) fn seek(&mut self, mode: SeekMode, key: &[u8], end: SeekEnd<'_>) -> Result<bool> {
        self.place = Place::Nowhere;
        let above = |key: &[u8]| successor(key);
        let forward = matches!(mode, SeekMode::AtLeast | SeekMode::After | SeekMode::First);
        self.is_forward = forward;
        self.limit = match (end, forward) {
            (SeekEnd::None, _) => None,
            (SeekEnd::Prefix, true) => above(key),
            (SeekEnd::Prefix, false) => Some(key.to_vec()),
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

    /// Goes to the next entry; `false` at the end, or at the end of what was sought: another call goes beyond that.
    pub(super) fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::End => Ok(false),
            Place::Start => self.forward(Vec::new(), false),
            Place::Before => {
                let from = std::mem::take(&mut self.from);
                self.forward(from, false)
            }
            Place::On => {
                let mut from = std::mem::take(&mut self.from);
                from.clone_from(&self.key);
                self.forward(from, true)
            }
        }
    }

    /// The mirror image of [`next`](Self::next).
    pub(super) fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::Nowhere | Place::Start => Ok(false),
            Place::End => self.backward(None),
            Place::Before => {
                let below = std::mem::take(&mut self.from);
                self.backward(Some(below))
            }
            Place::On => {
                let mut below = std::mem::take(&mut self.from);
                below.clone_from(&self.key);
                self.backward(Some(below))
            }
        }
    }

    /// Goes to the row once more that it is on, and waits for its lock; to the next one if it is not there any more.
    pub(super) fn read_again(&mut self) -> Result<bool> {
        let on_locked = std::mem::replace(&mut self.how.on_locked, OnLocked::Wait);
        let mut from = std::mem::take(&mut self.from);
        from.clone_from(&self.key);
        let found = self.forward(from, false);
        self.how.on_locked = on_locked;
        found
    }

    /// Whether it is on a row without its lock.
    pub(super) fn is_unlocked(&self) -> bool {
        self.is_unlocked
    }

    fn forward(&mut self, from: Vec<u8>, mut after: bool) -> Result<bool> {
        self.from = from;
        self.turn(true);
        let mut crossed = false;
        loop {
            let step = self.step_forward(after, crossed)?;
            (after, crossed) = match self.settle(step)? {
                Step::Landed => return Ok(true),
                Step::Passed => (true, crossed),
                Step::Crossed => (false, true),
                Step::Limit => return Ok(self.stop(Place::Before)),
                Step::End => return Ok(self.stop(Place::End)),
                Step::Again | Step::Wait(_) | Step::Refused | Step::TimedOut => continue,
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
            match self.settle(step)? {
                Step::Landed => return Ok(true),
                Step::Passed | Step::Crossed => is_bounded = true,
                Step::Limit => return Ok(self.stop(Place::Before)),
                Step::End => return Ok(self.stop(Place::Start)),
                Step::Again | Step::Wait(_) | Step::Refused | Step::TimedOut => continue,
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

    fn step_forward(&mut self, after: bool, crossed: bool) -> Result<Step> {
        let Self { locker, index_no, how, walk, from, next, limit, key, entry, table, .. } = self;
        let _usage = table.use_it()?;
        let (tree, index_no, how) = (walk.tree().def().id, *index_no, *how);
        let asking = Asking { locker, tree, index_no, how, is_forward: true };
        let low = if after { Bound::Excluded(&from[..]) } else { Bound::Included(&from[..]) };
        walk.forward(from, after, |sight| {
            let limit = limit.as_deref();
            let (end, step) = match sight {
                Sight::Record(found, record) if limit.is_none_or(|limit| found < limit) => {
                    next.clear();
                    next.extend_from_slice(found);
                    let is_alone = !after && !crossed && from == found;
                    return asking.judge((low, Bound::Included(found)), is_alone, found, record, key, entry);
                }
                Sight::Fence(fence) if limit.is_none_or(|limit| fence < limit) => {
                    (Some(fence), Step::Crossed)
                }
                _ => (limit, if limit.is_some() { Step::Limit } else { Step::End }),
            };
            next.clear();
            next.extend_from_slice(end.unwrap_or_default());
            if !planted::is_on("scan: leave the gap behind the last record") {
                asking.lock_rest((low, end.map_or(Bound::Unbounded, Bound::Excluded)), &step)?;
            }
            Ok(step)
        })?
    }

    fn step_backward(&mut self, is_bounded: bool) -> Result<Step> {
        let Self { locker, index_no, how, walk, from, next, limit, key, entry, table, .. } = self;
        let _usage = table.use_it()?;
        let (tree, index_no, how) = (walk.tree().def().id, *index_no, *how);
        let asking = Asking { locker, tree, index_no, how, is_forward: false };
        let below = is_bounded.then_some(&from[..]);
        let high = below.map_or(Bound::Unbounded, Bound::Excluded);
        walk.backward(below, |sight| {
            let limit = limit.as_deref();
            let (end, step) = match sight {
                Sight::Record(found, record) if limit.is_none_or(|limit| found >= limit) => {
                    next.clear();
                    next.extend_from_slice(found);
                    return asking.judge((Bound::Included(found), high), false, found, record, key, entry);
                }
                Sight::Fence(fence) if limit.is_none_or(|limit| fence > limit) => {
                    (Some(fence), Step::Crossed)
                }
                _ => (limit, if limit.is_some() { Step::Limit } else { Step::End }),
            };
            next.clear();
            next.extend_from_slice(end.unwrap_or_default());
            asking.lock_rest((end.map_or(Bound::Unbounded, Bound::Included), high), &step)?;
            Ok(step)
        })?
    }

    /// Does what a step asks for outside the latch. `Again` and its like: the same step once more.
    fn settle(&mut self, step: Step) -> Result<Step> {
        let step = match step {
            Step::Landed if self.index_no != 0 => self.lock_row()?,
            other => other,
        };
        let step = if matches!(step, Step::Refused) { self.pass_locked()? } else { step };
        match &step {
            Step::Landed => {
                self.place = Place::On;
                self.settle_awaited(!self.is_unlocked);
            }
            Step::Crossed => {
                self.locker.check_interrupted()?;
                self.walk.cross();
                self.settle_awaited(false);
            }
            Step::Again => self.locker.give_way()?,
            Step::Wait(ticket) => {
                self.locker.wait(ticket)?;
                self.waited_for = Some(self.next.clone());
            }
            Step::TimedOut => return Err(self.locker.timeout(&[])),
            Step::Passed | Step::Refused | Step::Limit | Step::End => self.settle_awaited(false),
        }
        Ok(step)
    }

    /// Somebody else has locked the record of `next`: passes it, or looks at it.
    fn pass_locked(&mut self) -> Result<Step> {
        if self.how.on_locked == OnLocked::Skip {
            return Ok(Step::Passed);
        }
        let Self { locker, table, key, next, entry, unlocked_view, .. } = self;
        let _usage = table.use_it()?;
        let view = unlocked_view.insert(ReadView::new(&locker.core.versions));
        view.open();
        if !read_row(&locker.core, table, next, Some(view), &mut entry.payload)? {
            return Ok(Step::Passed);
        }
        key.clone_from(next);
        (entry.granted, entry.flags) = (0, RecordFlags::NONE);
        self.is_unlocked = true;
        Ok(Step::Landed)
    }

    /// Counts the lock that was waited for when the scan stops at its row; otherwise the row has gone, and where ranges are not
    /// locked the lock is given back.
    fn settle_awaited(&mut self, is_landed: bool) {
        let Some(awaited) = self.waited_for.take().filter(|_| self.index_no == 0) else { return };
        if is_landed && awaited == self.key {
            self.entry.granted += u32::from(self.entry.granted > 0);
        } else if !self.how.ranges {
            self.locker.unlock_row(&self.table, &awaited, self.how.mode);
        }
    }

    /// Locks the row of the entry (I2).
    fn lock_row(&mut self) -> Result<Step> {
        let (_, clustered) = parts(self.index_no, &self.key, &self.entry.payload);
        let Self { locker, how, row, table, .. } = self;
        let see = |record: RecordRef<'_>| {
            row.clear();
            row.extend_from_slice(record.payload);
            locker.check_unchanged(record.version)
        };
        let patience = if how.on_locked == OnLocked::Skip { Patience::None } else { Patience::Waits };
        let locked = locker.lock_row(table, clustered, patience, |_| how.mode, see)?;
        let (Locked::Live(by) | Locked::Gone(by)) = locked else { return Ok(Step::Refused) };
        self.entry.granted = u32::from(by.is_some());
        let is_marked = self.entry.flags == RecordFlags::DELETE_MARKED;
        if (is_marked || !self.walk.is_current()) && !self.look_again()? {
            self.unlock();
            return Ok(Step::Passed);
        }
        if let Locked::Gone(_) = locked {
            let place = format!("index {} of table '{}'", self.index_no, self.table.name());
            return Err(Error::corrupt(place, "an entry leads to no row; run CHECK TABLE"));
        }
        Ok(Step::Landed)
    }

    /// Copies the entry again, whose row is locked; whether it is still there.
    fn look_again(&mut self) -> Result<bool> {
        let Self { table, index_no, key, entry, .. } = self;
        let _usage = table.use_it()?;
        let found = table.tree(*index_no)?.get(key, |record| entry.copy(record))?;
        Ok(found.is_some() && entry.flags != RecordFlags::DELETE_MARKED)
    }

    /// Gives the lock of the row back that it is on, if ranges are not locked: it does not match.
    pub(super) fn unlock(&mut self) {
        let granted = std::mem::take(&mut self.entry.granted);
        if self.how.ranges {
            return;
        }
        let (_, clustered) = parts(self.index_no, &self.key, &self.entry.payload);
        (0..granted).for_each(|_| self.locker.unlock_row(&self.table, clustered, self.how.mode));
    }

    /// What was sought has no end any more.
    pub(super) fn forget_end(&mut self) {
        self.limit = None;
    }

    pub(super) fn valid(&self) -> bool {
        self.place == Place::On
    }

    /// The whole stored key; empty when there is no entry.
    pub(super) fn key(&self) -> &[u8] {
        if self.valid() {
            &self.key
        } else {
            &[]
        }
    }

    /// What is stored under the key.
    pub(super) fn stored(&self) -> &[u8] {
        if self.valid() {
            &self.entry.payload
        } else {
            &[]
        }
    }

    /// The stored row.
    pub(super) fn row(&self) -> &[u8] {
        if self.index_no == 0 {
            self.stored()
        } else {
            &self.row
        }
    }
}

impl Copied {
    fn copy(&mut self, record: RecordRef<'_>) {
        self.flags = record.flags;
        self.payload.clear();
        self.payload.extend_from_slice(record.payload);
    }
}

/// The caller's part of a stored key, and the clustered key.
pub(super) fn parts<'k>(index_no: usize, key: &'k [u8], stored: &[u8]) -> (&'k [u8], &'k [u8]) {
    if index_no == 0 {
        return (key, key);
    }
    let clustered_len = varint::get(stored).map_or(0, |(len, _)| len as usize);
    key.split_at(key.len().saturating_sub(clustered_len))
}

/// What one step asks with.
struct Asking<'a> {
    locker: &'a Locker,
    tree: TreeId,
    index_no: usize,
    how: Locking,
    is_forward: bool,
}

impl Asking<'_> {
    /// Keeps others from putting records into a range. Those that are there stay free.
    fn lock_gap(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Gap { tree: self.tree, range, mode: self.how.mode })
    }

    /// The same, for a range without records of others. It becomes one with what the scan locks before and behind it, so that
    /// a whole table takes the memory of one range, however many leaves it has.
    fn lock_passed(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Range { tree: self.tree, range, mode: self.how.mode })
    }

    /// Locks what is left of a leaf behind its last record, up to where `step` ends.
    fn lock_rest(&self, range: KeyRange<'_>, step: &Step) -> Result<()> {
        match step {
            Step::Crossed => self.lock_passed(range),
            _ => self.lock_gap(range),
        }
    }

    fn lock_range(&self, lock: Lock<'_>) -> Result<()> {
        if self.how.ranges {
            self.locker.ask(lock, Patience::None)?;
        }
        Ok(())
    }

    /// Asks for what a record needs, and copies it when the scan may stop there. `is_alone` says that the range is the
    /// record.
    fn judge(
        &self,
        range: KeyRange<'_>,
        is_alone: bool,
        found: &[u8],
        record: RecordRef<'_>,
        key: &mut Vec<u8>,
        entry: &mut Copied,
    ) -> Result<Step> {
        let (tree, Locking { mode, ranges, on_locked }) = (self.tree, self.how);
        let is_row = self.index_no == 0;
        let patience = match on_locked {
            OnLocked::Skip => Patience::None,
            OnLocked::Look if is_row && !ranges && !is_alone && self.is_forward => Patience::None,
            OnLocked::Look | OnLocked::Wait => Patience::Waits,
        };
        let range = match planted::is_on("scan: leave the gap before a record") {
            true => (Bound::Included(found), Bound::Included(found)),
            false => range,
        };
        let lock = match ranges && !(is_row && is_alone) {
            true => Lock::NextKey { tree, range, key: found, mode },
            false => Lock::Record { tree, key: found, mode },
        };
        entry.granted = 0;
        let asked = match self.locker.maker_of(record.version) {
            Maker::Other(_)
                if record.is_marked() && planted::is_on("scan: pass rows whose deletion is open") =>
            {
                return Ok(Step::Passed);
            }
            Maker::Other(_) if is_row && planted::is_on("scan: take an open change for committed") => {
                Asked::Held
            }
            Maker::Other(holder) if is_row => {
                self.locker.ask_behind_for_row(holder, (tree, found), lock, patience)?
            }
            // The lock of an entry may be left of an own change that was taken back: the row tells.
            Maker::Other(holder) if ranges => {
                self.locker.ask_behind(holder, (tree, found), lock, patience)?
            }
            // Without ranges the entry needs no lock: its row tells whose it is.
            Maker::Other(_) => Asked::Held,
            _ if record.is_marked() => {
                self.lock_gap(range)?;
                if is_row {
                    self.locker.check_unchanged(record.version)?;
                }
                return Ok(Step::Passed);
            }
            Maker::Own => {
                self.lock_passed(range)?;
                Asked::Held
            }
            Maker::Ended if is_row || ranges => {
                entry.granted = u32::from(is_row);
                self.locker.ask(lock, patience)?
            }
            Maker::Ended => Asked::Held,
        };
        Ok(match asked {
            Asked::Held => {
                if is_row {
                    self.locker.check_unchanged(record.version)?;
                }
                key.clear();
                key.extend_from_slice(found);
                entry.copy(record);
                Step::Landed
            }
            Asked::Again => Step::Again,
            Asked::Wait(ticket) => Step::Wait(ticket),
            Asked::Refused if patience == Patience::Waits => Step::TimedOut,
            Asked::Refused => Step::Refused,
        })
    }
}
