//! The requests of a locking scan at one place of its index, under the latch of the leaf there. See
//! [`super::locking_scan`].

use crate::base::{sound, Result, TreeId, TxnId};
use crate::db::OnLocked;
use crate::format::page::{RecordFlags, RecordRef};
use crate::table::rows::locker::{Asked, Locker, Patience, ScannedBy, VersionWriter};
use crate::txn::{KeyRange, Lock, LockMode, PendingLock};
use std::ops::Bound;

/// How a scan locks.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Locking {
    pub(in crate::db) mode: LockMode,
    /// Whether nobody may put rows between those that it reads.
    pub(in crate::db) ranges: bool,
    pub(in crate::db) on_locked: OnLocked,
    /// Whether rows that have changed since the snapshot are as good as others.
    pub(in crate::db) any_version: bool,
}

/// The outcome of one step.
#[derive(Debug)]
pub(in crate::db) enum ScanStep {
    /// It stops at the record, which has been copied.
    Landed,
    /// The scan does not stop at the record.
    Passed,
    /// Nothing in this leaf: on to the fence.
    Crossed,
    /// Nothing up to the end of what was asked for.
    Limit,
    /// Nothing up to the end of the tree.
    End,
    Again,
    Wait(PendingLock),
    /// Somebody has the record, and the scan passes such records or looks at them.
    Refused,
    /// Somebody has the record, and the scan is not to wait at all.
    TimedOut,
}

/// A record as it lies in its leaf.
#[derive(Clone, Copy)]
pub(in crate::db) struct Met<'a> {
    pub(in crate::db) key: &'a [u8],
    pub(in crate::db) record: RecordRef<'a>,
    /// The range that the scan has passed since the record before, up to this one.
    pub(in crate::db) range: KeyRange<'a>,
    /// Whether the range is the record.
    pub(in crate::db) is_alone: bool,
}

/// A record that was copied out of its leaf.
#[derive(Default, Debug)]
pub(in crate::db) struct Copied {
    pub(in crate::db) key: Vec<u8>,
    pub(in crate::db) flags: RecordFlags,
    pub(in crate::db) payload: Vec<u8>,
    /// How often the lock of the row was asked for and counted for this stop; not at all when an
    /// own version is the lock.
    pub(in crate::db) granted: u32,
    /// The kind of lock that the row has.
    pub(in crate::db) by: ScannedBy,
}

impl Copied {
    /// Copies all but the key.
    pub(in crate::db) fn copy(&mut self, record: RecordRef<'_>) {
        self.flags = record.flags;
        self.payload.clear();
        self.payload.extend_from_slice(record.payload);
    }
}

/// The parameters of one step.
pub(in crate::db) struct Asking<'a> {
    pub(in crate::db) locker: &'a Locker,
    pub(in crate::db) tree: TreeId,
    /// Whether the records are the rows.
    pub(in crate::db) is_clustered: bool,
    pub(in crate::db) how: Locking,
    pub(in crate::db) is_forward: bool,
}

impl Asking<'_> {
    /// Whether a record is passed in any case: it is marked as deleted for good, or by the scan's
    /// own transaction.
    pub(in crate::db) fn passes(&self, key: &[u8], record: &RecordRef<'_>) -> bool {
        let range = (Bound::Included(key), Bound::Included(key));
        record.is_marked()
            && !matches!(self.locker.writer_of(record.version), VersionWriter::Other(_))
            && self.check_unchanged(&Met { key, record: *record, range, is_alone: false }).is_ok()
    }

    /// Keeps others from a range in which all records were passed (I5 of [`super::locking_scan`]).
    /// Errors: those of a request for a lock.
    pub(in crate::db) fn lock_run(&self, range: KeyRange<'_>) -> Result<()> {
        match sound!(true, "scan: leave the records that it passes out") {
            true => self.lock_passed(range),
            false => Ok(()),
        }
    }

    /// Keeps others from putting records into a range. Those that are there stay free.
    fn lock_gap(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Gap { tree: self.tree, range, mode: self.how.mode })
    }

    /// The same, for a range without records of others, but for those that are deleted. It becomes
    /// one with what the scan locks before and behind it, so that a whole table takes the memory of
    /// one range, however many leaves it has, and however many deleted records.
    fn lock_passed(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Range { tree: self.tree, range, mode: self.how.mode })
    }

    /// Locks what is left of a leaf behind its last record that was not passed, up to where `step`
    /// ends. `passed`: the run of records in it, all of which were passed, and the gap behind that.
    pub(in crate::db) fn lock_rest(
        &self,
        range: KeyRange<'_>,
        step: &ScanStep,
        passed: Option<[KeyRange<'_>; 2]>,
    ) -> Result<()> {
        match (step, passed) {
            (ScanStep::Crossed, Some(_)) => self.lock_run(range),
            (ScanStep::Crossed, None) => self.lock_passed(range),
            // Rows may be asked for in the gap: others lock keys there that are in no index.
            (_, Some([run, gap])) => {
                self.lock_run(run)?;
                self.lock_gap(gap)
            }
            (_, None) => self.lock_gap(range),
        }
    }

    fn lock_range(&self, lock: Lock<'_>) -> Result<()> {
        if self.how.ranges {
            self.locker.ask(lock, Patience::None)?;
        }
        Ok(())
    }

    /// As [`judge`](Self::judge), for a record whose range begins with a run of records that were
    /// passed.
    pub(in crate::db) fn judge_behind(
        &self,
        run: Option<KeyRange<'_>>,
        mut met: Met<'_>,
        copied: &mut Copied,
    ) -> Result<ScanStep> {
        let Some(run) = run else { return self.judge(met, copied) };
        if !sound!(true, "scan: leave the records that it passes out") {
            met.range = (Bound::Included(met.key), Bound::Included(met.key));
        }
        let step = self.judge(met, copied)?;
        // A scan that lands has the run with the record. One that waits is queued, and asks for
        // nothing: it comes here again (I6).
        let lacks_run = match step {
            ScanStep::Landed => !self.locks_records(),
            ScanStep::Wait(_) => !sound!(true, "scan: lock what it passed while it waits"),
            _ => true,
        };
        if lacks_run {
            self.lock_run(run)?;
        }
        Ok(step)
    }

    /// Asks for what a record needs, and copies it when the scan may stop there.
    pub(in crate::db) fn judge(&self, mut met: Met<'_>, copied: &mut Copied) -> Result<ScanStep> {
        if !sound!(true, "scan: leave the gap before a record") {
            met.range = (Bound::Included(met.key), Bound::Included(met.key));
        }
        (copied.granted, copied.by) = (0, ScannedBy::Record);
        let writer = self.locker.writer_of(met.record.version);
        if met.record.is_marked() {
            match writer {
                VersionWriter::Other(_) if sound!(true, "scan: pass rows whose deletion is open") => {}
                VersionWriter::Other(_) => return Ok(ScanStep::Passed),
                VersionWriter::Own | VersionWriter::Ended => return self.pass_deleted(&met),
            }
        }
        let patience = self.patience(&met);
        let asked = match writer {
            VersionWriter::Other(holder) => self.ask_behind(holder, &met, patience)?,
            VersionWriter::Own => {
                self.lock_passed(met.range)?;
                Asked::Held
            }
            VersionWriter::Ended if self.locks_records() => {
                copied.granted = u32::from(self.is_clustered);
                let lock = self.lock_of(&met);
                if self.is_clustered && matches!(lock, Lock::NextKey { .. }) {
                    copied.by = ScannedBy::Range;
                }
                self.locker.ask(lock, patience)?
            }
            VersionWriter::Ended => Asked::Held,
        };
        Ok(match asked {
            Asked::Held => {
                self.check_unchanged(&met)?;
                copied.key.clear();
                copied.key.extend_from_slice(met.key);
                copied.copy(met.record);
                ScanStep::Landed
            }
            Asked::Again => ScanStep::Again,
            Asked::Wait(pending) => ScanStep::Wait(pending),
            Asked::Refused if patience == Patience::Waits => ScanStep::TimedOut,
            Asked::Refused => ScanStep::Refused,
        })
    }

    /// Passes a record that is marked as deleted, for good or by the scan's own transaction.
    fn pass_deleted(&self, met: &Met<'_>) -> Result<ScanStep> {
        self.lock_gap(met.range)?;
        self.check_unchanged(met)?;
        Ok(ScanStep::Passed)
    }

    /// Asks for a record that another open transaction has written.
    fn ask_behind(&self, holder: TxnId, met: &Met<'_>, patience: Patience) -> Result<Asked> {
        let (place, lock) = ((self.tree, met.key), self.lock_of(met));
        if self.is_clustered {
            if !sound!(true, "scan: take an open change for committed") {
                return Ok(Asked::Held);
            }
            return self.locker.ask_behind_for_row(holder, place, lock, patience);
        }
        if !self.locks_records() {
            return Ok(Asked::Held);
        }
        // The lock of an entry may be left of an own change that was rolled back: the row tells.
        self.locker.ask_behind(holder, place, lock, patience)
    }

    /// Whether records of the index are locked: rows are, and all records in ranges. An entry
    /// without ranges needs no lock, as its row tells whose it is.
    fn locks_records(&self) -> bool {
        self.is_clustered || self.how.ranges
    }

    fn lock_of<'l>(&self, met: &Met<'l>) -> Lock<'l> {
        let (tree, mode, Met { key, range, .. }) = (self.tree, self.how.mode, *met);
        match self.how.ranges && !(self.is_clustered && met.is_alone) {
            true => Lock::NextKey { tree, range, key, mode },
            false => Lock::Record { tree, key, mode },
        }
    }

    /// Whether to wait for a record that somebody else has.
    fn patience(&self, met: &Met<'_>) -> Patience {
        let may_look = self.is_clustered && !self.how.ranges && !met.is_alone && self.is_forward;
        match self.how.on_locked {
            OnLocked::Skip => Patience::None,
            OnLocked::Look if may_look => Patience::None,
            OnLocked::Look | OnLocked::Wait => Patience::Waits,
        }
    }

    /// Refuses a row that has changed since the snapshot, where such rows are refused.
    fn check_unchanged(&self, met: &Met<'_>) -> Result<()> {
        match self.is_clustered && !self.how.any_version {
            true => self.locker.check_unchanged(met.record.version),
            false => Ok(()),
        }
    }
}
