//! One step of a locking scan: the lock requests at one position of its index, under the latch of
//! the leaf. See [`super::locking_scan`].

use crate::base::{sound, Result, TreeId, TxnId};
use crate::db::OnLocked;
use crate::format::page::{RecordFlags, RecordRef};
use crate::table::rows::locker::{Asked, Locker, Patience, ScannedBy, VersionWriter};
use crate::txn::{KeyRange, Lock, LockMode, PendingLock};
use std::ops::Bound;

#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Locking {
    pub(in crate::db) mode: LockMode,
    /// Whether to keep other transactions from inserting between the rows read.
    pub(in crate::db) ranges: bool,
    pub(in crate::db) on_locked: OnLocked,
    pub(in crate::db) any_version: bool,
}

#[derive(Debug)]
pub(in crate::db) enum ScanStep {
    /// The scan stops at the record, which was copied.
    Landed,
    /// The scan does not stop at the record.
    Passed,
    /// No record in this leaf: continue at the fence.
    Crossed,
    /// No record up to the end of the search.
    Limit,
    /// No record up to the end of the tree.
    End,
    Again,
    Wait(PendingLock),
    /// Another transaction has locked the record, and the scan skips or reads such records.
    Refused,
    /// Another transaction has locked the record, and the scan must not wait.
    TimedOut,
}

#[derive(Clone, Copy)]
pub(in crate::db) struct Met<'a> {
    pub(in crate::db) key: &'a [u8],
    pub(in crate::db) record: RecordRef<'a>,
    /// The range between the previous record and this one, including this one.
    pub(in crate::db) range: KeyRange<'a>,
    /// Whether the range is only the record itself.
    pub(in crate::db) is_alone: bool,
}

#[derive(Default, Debug)]
pub(in crate::db) struct Copied {
    pub(in crate::db) key: Vec<u8>,
    pub(in crate::db) flags: RecordFlags,
    pub(in crate::db) payload: Vec<u8>,
    /// Requests for the row's lock at this stop; 0 if the transaction's own version is the lock.
    pub(in crate::db) granted: u32,
    pub(in crate::db) by: ScannedBy,
}

impl Copied {
    pub(in crate::db) fn copy(&mut self, record: RecordRef<'_>) {
        self.flags = record.flags;
        self.payload.clear();
        self.payload.extend_from_slice(record.payload);
    }
}

pub(in crate::db) struct Asking<'a> {
    pub(in crate::db) locker: &'a Locker,
    pub(in crate::db) tree: TreeId,
    pub(in crate::db) is_clustered: bool,
    pub(in crate::db) how: Locking,
    pub(in crate::db) is_forward: bool,
}

impl Asking<'_> {
    /// Whether a record is skipped in any case: it was delete-marked by a transaction that has
    /// ended or by the scan's own, and the scan does not refuse it as changed after its snapshot.
    pub(in crate::db) fn passes(&self, key: &[u8], record: &RecordRef<'_>) -> bool {
        let range = (Bound::Included(key), Bound::Included(key));
        record.is_marked()
            && !matches!(self.locker.writer_of(record.version), VersionWriter::Other(_))
            && self.check_unchanged(&Met { key, record: *record, range, is_alone: false }).is_ok()
    }

    /// Locks a range in which all records were skipped (I5 of [`super::locking_scan`]).
    pub(in crate::db) fn lock_run(&self, range: KeyRange<'_>) -> Result<()> {
        match sound!(true, "scan: leave the records that it passes out") {
            true => self.lock_passed(range),
            false => Ok(()),
        }
    }

    /// Keeps other transactions from inserting into a range. Existing records stay unlocked.
    fn lock_gap(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Gap { tree: self.tree, range, mode: self.how.mode })
    }

    /// Like [`lock_gap`](Self::lock_gap), if all records are deleted or the transaction's own. The
    /// range merges with those that the scan locks before and after it, so a scan of a whole table
    /// takes the memory of one range, however many leaves and deleted records.
    fn lock_passed(&self, range: KeyRange<'_>) -> Result<()> {
        self.lock_range(Lock::Range { tree: self.tree, range, mode: self.how.mode })
    }

    /// Locks the rest of a leaf after its last record that was not skipped, up to the end of
    /// `step`. `passed`: the run of skipped records in it, and the gap after the run.
    pub(in crate::db) fn lock_rest(
        &self,
        range: KeyRange<'_>,
        step: &ScanStep,
        passed: Option<[KeyRange<'_>; 2]>,
    ) -> Result<()> {
        match (step, passed) {
            (ScanStep::Crossed, Some(_)) => self.lock_run(range),
            (ScanStep::Crossed, None) => self.lock_passed(range),
            // Other transactions may lock keys in the gap that are in no index.
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

    /// Like [`judge`](Self::judge), for a range that begins with a run of skipped records.
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
        // If the scan lands, its range includes the run. If it waits, it has a queued request,
        // requests nothing else, and repeats this step (I6).
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

    /// Requests the locks that a record needs, and copies the record if the scan may stop there.
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

    fn pass_deleted(&self, met: &Met<'_>) -> Result<ScanStep> {
        self.lock_gap(met.range)?;
        self.check_unchanged(met)?;
        Ok(ScanStep::Passed)
    }

    /// The record was written by another open transaction.
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
        // The holder may have locked the entry for a change since rolled back: the row decides.
        self.locker.ask_behind(holder, place, lock, patience)
    }

    /// Rows are always locked, and so are all records in locked ranges. Without ranges an entry
    /// needs no lock, because its row determines the owner.
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

    fn patience(&self, met: &Met<'_>) -> Patience {
        let may_look = self.is_clustered && !self.how.ranges && !met.is_alone && self.is_forward;
        match self.how.on_locked {
            OnLocked::Skip => Patience::None,
            OnLocked::Look if may_look => Patience::None,
            OnLocked::Look | OnLocked::Wait => Patience::Waits,
        }
    }

    /// Refuses a row that changed after the snapshot, if such rows are refused.
    fn check_unchanged(&self, met: &Met<'_>) -> Result<()> {
        match self.is_clustered && !self.how.any_version {
            true => self.locker.check_unchanged(met.record.version),
            false => Ok(()),
        }
    }
}
