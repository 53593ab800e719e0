//! A transaction's locks, as row operations and scans request them, and its waits.
//!
//! Invariants
//!   I1  A thread that waits for a lock holds no latch, no table use and no purge latch, only locks
//!       and possibly pins: [`Locker::lock_row`] releases the pins of its own path, and a row
//!       operation keeps the pins of its other paths ([`super::operation`]).
//!   I2  A record's version is checked under the latch of its leaf, together with the request for
//!       its lock. So a request also finds a writer that has replaced its lock by a version: the
//!       version names the writer. A version whose transaction has ended is committed, because
//!       rollback removes versions from their records before the transaction ends.
//!   I3  A writer counts as ended once its stamp is published, not when its outcome is decided. So
//!       a snapshot opened while holding the lock sees what that writer committed
//!       (durability::M13). Between the two moments, the caller checks the record again.
//!   I4  A row that a scan has just locked exclusively needs no second request when the transaction
//!       changes it next. Its key is remembered until a row lock is released, a rollback happens,
//!       or the transaction ends; until then the lock cannot be lost.
//!   I5  Locks are on rows, that is on clustered keys: the writer of a row or of one of its entries
//!       locks the row. Scans also lock ranges of the index they read.

use super::change::Version;
use crate::base::stages::Stage;
use crate::base::{sound, Error, Result, SessionId, TableId, TreeId, TxnId};
use crate::format::page::RecordRef;
use crate::pool::latches_held;
use crate::table::definitions::handle::Table;
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::tree::{Path, Peeked};
use crate::txn::{
    Answer, Entry, Lock, LockMode, LockOutcome, Owner, PendingLock, ReadView, State, TableMode, Wait,
};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

const LOCK_WAIT_NS: u64 = 50_000_000_000;
/// Interval at which a waiter checks for an interrupt.
const WAIT_SLICE_NS: u64 = 50_000_000;

/// Whether the caller wants its statement to end.
pub(crate) type Interrupted = Arc<dyn Fn() -> bool + Send + Sync>;
/// Called with the sessions that the caller waits for.
pub(crate) type Report = Arc<dyn Fn(SessionId) + Send + Sync>;

/// The writer of a record's newest version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VersionWriter {
    /// A transaction that has ended and whose stamp is published (I3).
    Ended,
    /// The requesting transaction.
    Own,
    /// Another transaction, which owns the record through this version or is just ending.
    Other(TxnId),
}

/// The answer to a request made under a latch.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The lock is held.
    Held,
    /// The writer that was in the way has just ended: check again.
    Again,
    /// Wait for the lock, then check again.
    Wait(PendingLock),
    /// Another transaction is in the way, and the caller does not wait.
    Refused,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Wait up to the transaction's timeout.
    Waits,
    /// Do not wait.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locked {
    /// The row exists and is locked: by one request in this mode, which can be released, or, if
    /// `None`, by a version of its own transaction.
    Live(Option<LockMode>),
    /// The row does not exist; its key is locked in the same way.
    Gone(Option<LockMode>),
    /// Another transaction has locked it, and the caller does not wait.
    Refused,
}

struct Look {
    asked: Asked,
    writer: VersionWriter,
    /// The mode in which the lock was requested.
    mode: LockMode,
    /// Valid only if the lock is held.
    is_live: bool,
}

impl Look {
    fn locked(&self, by: Option<LockMode>) -> Locked {
        if self.is_live {
            Locked::Live(by)
        } else {
            Locked::Gone(by)
        }
    }
}

/// The locks of one transaction handle. Shared by the transaction and its cursors.
pub(crate) struct Locker {
    pub(crate) core: Arc<Core>,
    pub(crate) owner: Owner,
    view: Arc<ReadView>,
    /// The owner's entry in the registry of read views.
    entry: Arc<Entry>,
    interrupted: Interrupted,
    report: Option<Report>,
    lock_wait_ns: AtomicU64,
    /// Snapshot isolation: see [`check_unchanged`](Self::check_unchanged).
    refuses_changed: AtomicBool,
    /// The work that a deadlock victim would lose.
    undo_records_count: AtomicU64,
    /// The row that a scan locked exclusively last (I4).
    scanned: Mutex<Scanned>,
}

/// There is no row if `tree` is `None`.
#[derive(Default)]
struct Scanned {
    tree: Option<TreeId>,
    key: Vec<u8>,
    by: ScannedBy,
    /// The record that the scan found in the image of its cold leaf.
    peeked: Option<Peeked>,
}

/// The kind of lock that a scan holds on a row.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum ScannedBy {
    /// A lock of the record.
    #[default]
    Record,
    /// A lock of a range that contains the record.
    Range,
}

impl std::fmt::Debug for Locker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locker").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Locker {
    /// Creates the locks of the owner of `entry`, whose own changes are those of `view`.
    pub(crate) fn new(core: &Arc<Core>, view: &Arc<ReadView>, entry: Arc<Entry>) -> Self {
        Self {
            core: Arc::clone(core),
            owner: entry.owner(),
            view: Arc::clone(view),
            entry,
            interrupted: Arc::new(|| false),
            report: None,
            lock_wait_ns: AtomicU64::new(LOCK_WAIT_NS),
            refuses_changed: AtomicBool::new(false),
            undo_records_count: AtomicU64::new(0),
            scanned: Mutex::default(),
        }
    }

    pub(crate) fn successor(&self, view: &Arc<ReadView>, entry: Arc<Entry>) -> Self {
        let (interrupted, report) = (Arc::clone(&self.interrupted), self.report.clone());
        let lock_wait_ns = AtomicU64::new(self.lock_wait_ns.load(Relaxed));
        let refuses_changed = AtomicBool::new(self.refuses_changed.load(Relaxed));
        tell_watching(view, self.refuses_changed.load(Relaxed));
        Self { interrupted, report, lock_wait_ns, refuses_changed, ..Self::new(&self.core, view, entry) }
    }

    pub(crate) fn interrupted_by(&self, interrupted: Interrupted) -> Self {
        Self { interrupted, ..self.successor(&self.view, Arc::clone(&self.entry)) }
    }

    pub(crate) fn reported_to(&self, report: Report) -> Self {
        Self { report: Some(report), ..self.successor(&self.view, Arc::clone(&self.entry)) }
    }

    pub(crate) fn set_wait_ns(&self, timeout_ns: u64) {
        self.lock_wait_ns.store(timeout_ns, Relaxed);
    }

    pub(crate) fn wait_ns(&self) -> u64 {
        self.lock_wait_ns.load(Relaxed)
    }

    pub(crate) fn note_undo_records(&self, count: u64) {
        self.undo_records_count.store(count, Relaxed);
    }

    /// Notes that a scan has locked a row exclusively, and that the row has not changed since (I4).
    pub(crate) fn note_scanned(&self, tree: TreeId, key: &[u8], by: ScannedBy, peeked: Option<Peeked>) {
        let mut scanned = self.scanned.lock();
        (scanned.tree, scanned.by, scanned.peeked) = (Some(tree), by, peeked);
        scanned.key.clear();
        scanned.key.extend_from_slice(key);
    }

    /// How the last scan locked the row, if it is the remembered one. Moves the record that the
    /// scan found in the image of the row's leaf to `path`.
    pub(crate) fn scanned_by(&self, tree: TreeId, key: &[u8], path: &mut Path) -> Option<ScannedBy> {
        let mut scanned = self.scanned.lock();
        if scanned.tree != Some(tree) || scanned.key != key {
            return None;
        }
        if let Some(peeked) = scanned.peeked.take() {
            path.set_peeked(peeked);
        }
        Some(scanned.by)
    }

    /// Forgets the scanned row, because row locks may be released (I4).
    pub(crate) fn forget_scanned(&self) {
        if sound!(true, "locks: keep a scanned row that was given back") {
            let mut scanned = self.scanned.lock();
            (scanned.tree, scanned.peeked) = (None, None);
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        (self.interrupted)()
    }

    /// Returns `Interrupted` if the caller wants its statement to end. Call it before each retry,
    /// and regularly in long operations.
    pub(crate) fn check_interrupted(&self) -> Result<()> {
        match self.is_interrupted() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Must be called under the latch of the record's leaf (I2).
    pub(crate) fn writer_of(&self, version: Version) -> VersionWriter {
        let Some((txn, _)) = version else { return VersionWriter::Ended };
        if self.view.own_if(txn).is_some() {
            return VersionWriter::Own;
        }
        match self.core.transactions.versions.has_ended(txn) {
            true => VersionWriter::Ended,
            false => VersionWriter::Other(txn),
        }
    }

    /// Sets whether rows changed since the transaction's snapshot are refused. Call it while the
    /// snapshot is not open.
    pub(crate) fn refuse_changed(&self, refuses: bool) {
        self.refuses_changed.store(refuses, Relaxed);
        tell_watching(&self.view, refuses);
    }

    /// Refuses no row until [`resume_refusals`](Self::resume_refusals), which needs the result: for
    /// records that depend on rows which are checked themselves.
    pub(crate) fn suspend_refusals(&self) -> bool {
        self.refuses_changed.swap(false, Relaxed)
    }

    pub(crate) fn resume_refusals(&self, refuses: bool) {
        self.refuses_changed.store(refuses, Relaxed);
    }

    /// Returns `RecordChanged` if changed rows are refused and the transaction's snapshot does not
    /// see the version of a locked row.
    pub(crate) fn check_unchanged(&self, version: Version) -> Result<()> {
        let Some((txn, _)) = version.filter(|_| self.refuses_changed.load(Relaxed)) else { return Ok(()) };
        let sees = || self.view.reader().sees(txn, self.view.own_if(txn));
        match self.view.stamp() {
            Some(_) if sound!(!sees(), "snapshot isolation: do not look for changes") => {
                Err(Error::RecordChanged)
            }
            _ => Ok(()),
        }
    }

    fn is_patient(&self, patience: Patience) -> bool {
        patience == Patience::Waits && self.lock_wait_ns.load(Relaxed) > 0
    }

    /// Does not block. Errors: `Deadlock`, `LockTableFull`.
    pub(crate) fn ask(&self, mut lock: Lock<'_>, patience: Patience) -> Result<Asked> {
        let wait = if self.is_patient(patience) {
            Wait::Queue { undo_records_count: self.undo_records_count.load(Relaxed) }
        } else {
            Wait::Never
        };
        if let Lock::Record { mode, .. } | Lock::NextKey { mode, .. } = &mut lock {
            let is_sound = sound!(true, "locks: share what is asked for exclusively");
            *mode = if is_sound { *mode } else { LockMode::Shared };
        }
        let answer = self.core.locks.request(self.owner, lock, wait).inspect_err(|error| {
            if matches!(error, Error::Deadlock) {
                self.core.note_deadlock();
            }
        })?;
        if let Lock::Record { tree, key, mode: LockMode::Shared } = lock {
            if !sound!(true, "locks: let go of shared ones at once") {
                self.core.locks.unlock_row(self.owner, tree, key, LockMode::Shared);
            }
        }
        Ok(match answer {
            Answer::Granted | Answer::AlreadyHeld => Asked::Held,
            Answer::Wait(pending) => Asked::Wait(pending),
            Answer::Refused => Asked::Refused,
        })
    }

    /// Requests `lock` on the record of `key`, whose version belongs to another open transaction,
    /// or to one whose commit is just being published (durability::M13). If the caller is going to
    /// wait, the lock of `holder` is entered in the lock table first. A caller that gets the lock
    /// checks the record again: the holder may have ended, or may have released the row although it
    /// still has to roll back an older change of it. A record lock is released before that check,
    /// which requests the lock again.
    pub(crate) fn ask_behind(
        &self,
        holder: TxnId,
        (tree, key): (TreeId, &[u8]),
        lock: Lock<'_>,
        patience: Patience,
    ) -> Result<Asked> {
        let slot = self.core.transactions.active.get(holder);
        let Some(owner) = slot.and_then(|slot| slot.owner()) else { return Ok(Asked::Again) };
        let is_active = || self.core.transactions.versions.state(holder) == State::Active;
        if !self.is_patient(patience) {
            return Ok(if is_active() { Asked::Refused } else { Asked::Again });
        }
        if !self.core.locks.convert_implicit(owner, tree, key, is_active)? {
            return Ok(Asked::Again);
        }
        let asked = self.ask(lock, patience)?;
        if let (Asked::Held, Lock::Record { mode, .. }) = (&asked, lock) {
            self.core.locks.unlock_row(self.owner, tree, key, mode);
            return Ok(Asked::Again);
        }
        Ok(asked)
    }

    /// Like [`ask_behind`](Self::ask_behind) for a row, which is always checked again. First
    /// releases the caller's own lock on the row, if any: a rollback released the row and has
    /// reached an older change of it.
    pub(crate) fn ask_behind_for_row(
        &self,
        holder: TxnId,
        (tree, key): (TreeId, &[u8]),
        lock: Lock<'_>,
        patience: Patience,
    ) -> Result<Asked> {
        self.forget_scanned();
        self.core.locks.release_row(self.owner, tree, key);
        Ok(match self.ask_behind(holder, (tree, key), lock, patience)? {
            Asked::Held => Asked::Again,
            asked => asked,
        })
    }

    /// Must be called under the latch of the row's leaf (I2).
    fn ask_for_row(
        &self,
        (tree, key): (TreeId, &[u8]),
        mode: LockMode,
        writer: VersionWriter,
        patience: Patience,
    ) -> Result<Asked> {
        let lock = Lock::Record { tree, key, mode };
        match writer {
            VersionWriter::Own => Ok(Asked::Held),
            VersionWriter::Ended => self.ask(lock, patience),
            VersionWriter::Other(holder) => self.ask_behind_for_row(holder, (tree, key), lock, patience),
        }
    }

    /// Yields, so that the writer in the way can end before the caller checks again. Errors:
    /// `Interrupted`, and the error of a stopped engine.
    pub(crate) fn give_way(&self) -> Result<()> {
        std::thread::yield_now();
        self.core.health.check()?;
        self.check_interrupted()
    }

    /// Waits for a row or a range. Errors: `LockTimeout`, `Deadlock`, `Interrupted`, and
    /// `RollbackUnfinished` instead of `LockTimeout` if a blocker is a rollback that meets errors.
    pub(crate) fn wait(&self, pending: &PendingLock) -> Result<()> {
        self.wait_in(Stage::RowLock, pending)
    }

    fn wait_in(&self, stage: Stage, pending: &PendingLock) -> Result<()> {
        debug_assert_eq!(latches_held(), 0, "I1: a thread that waits for a lock holds no latch");
        let stall = self.core.begin_stall(stage);
        self.entry.set_waiting(Some(stall.since_ns()));
        let done = self.wait_for_answer(pending);
        drop(stall);
        self.entry.set_waiting(None);
        done
    }

    fn wait_for_answer(&self, pending: &PendingLock) -> Result<()> {
        let mut left_ns = self.lock_wait_ns.load(Relaxed);
        loop {
            let slice_ns = left_ns.min(WAIT_SLICE_NS);
            self.report_blockers();
            if let Some(outcome) = pending.wait_ns(slice_ns) {
                return self.outcome(outcome);
            }
            left_ns -= slice_ns;
            let refusal = match (self.core.health.check(), self.is_interrupted(), left_ns) {
                (Err(fatal), _, _) => fatal,
                (_, true, _) => Error::Interrupted,
                (_, _, 0) => self.timeout(&self.core.locks.blockers_of(self.owner)),
                _ => continue,
            };
            return match self.core.locks.cancel(pending) {
                Some(outcome) => self.outcome(outcome),
                None => Err(refusal),
            };
        }
    }

    /// Reports the sessions that the caller waits for. Repeated, because the blockers may change.
    ///
    /// A blocker may end meanwhile, and its session start a transaction that does not block the
    /// caller. So a session is reported only if it has stayed in one transaction since it was seen
    /// to block.
    fn report_blockers(&self) {
        let Some(report) = &self.report else { return };
        let (locks, roster) = (&self.core.locks, &self.core.transactions.roster);
        let turn_of = |blocker| Some((blocker, roster.get(blocker)?.turn()));
        let turns: Vec<_> = locks.blockers_of(self.owner).into_iter().filter_map(turn_of).collect();
        let blockers = locks.blockers_of(self.owner);
        for (blocker, turn) in turns.into_iter().filter(|(blocker, _)| blockers.contains(blocker)) {
            roster.with_session(blocker, turn, |session| report(session));
        }
    }

    fn outcome(&self, outcome: LockOutcome) -> Result<()> {
        match outcome {
            LockOutcome::Granted => Ok(()),
            LockOutcome::Deadlock => {
                self.core.note_deadlock();
                Err(Error::Deadlock)
            }
        }
    }

    pub(crate) fn timeout(&self, blockers: &[Owner]) -> Error {
        match self.core.unfinished.failed_among(blockers) {
            Some((txn, reason)) => Error::RollbackUnfinished { txn, reason },
            None => {
                Counters::add(&self.core.counters.lock_timeouts);
                Error::LockTimeout
            }
        }
    }

    /// Waits; the errors are those of [`ask`](Self::ask) and [`wait`](Self::wait).
    pub(crate) fn acquire(&self, lock: Lock<'_>) -> Result<()> {
        let stage = if let Lock::Table(..) = lock { Stage::TableLock } else { Stage::RowLock };
        match self.ask(lock, Patience::Waits)? {
            Asked::Wait(pending) => self.wait_in(stage, &pending),
            Asked::Refused => Err(self.timeout(&self.core.locks.blockers_of_request(self.owner, lock))),
            Asked::Held | Asked::Again => Ok(()),
        }
    }

    pub(crate) fn lock_table(&self, table: TableId, mode: TableMode) -> Result<()> {
        self.acquire(Lock::Table(table, mode))
    }

    /// Locks a table if that requires no wait; returns whether it did.
    pub(crate) fn try_lock_table(&self, table: TableId, mode: TableMode) -> Result<bool> {
        Ok(matches!(self.ask(Lock::Table(table, mode), Patience::None)?, Asked::Held))
    }

    /// Locks the row of `key`, in the mode that `mode` chooses for the record. `see` gets the
    /// record as it is when the lock is held. If `path` is given and the lock needed no wait,
    /// leaves it prepared for `key` in the clustered tree. Waits and may do I/O; the errors are
    /// those of [`acquire`](Self::acquire) and of `see`.
    ///
    /// The path stays useful after the latch is released, but is never trusted. Its pins keep the
    /// frames in memory, but other threads may split, merge, free and reuse the pages. So every
    /// user of the path takes the leaf's latch and checks again that the page is alive, belongs to
    /// this tree, is a leaf, and has the key between its fences; if not, it searches from the root
    /// ([`Tree::look_prepared`](crate::tree::Tree::look_prepared)). The record itself is not kept.
    pub(crate) fn lock_row(
        &self,
        table: &Table,
        key: &[u8],
        mut path: Option<&mut Path>,
        patience: Patience,
        mode: impl Fn(Option<RecordRef<'_>>) -> LockMode,
        mut see: impl FnMut(RecordRef<'_>) -> Result<()>,
    ) -> Result<Locked> {
        let mut waited_for = None;
        let is_blind = !sound!(true, "locks: do not look again after a wait");
        let locked = loop {
            let look = self.look_at_row(table, key, path.as_deref_mut(), patience, &mode, &mut see)?;
            if let VersionWriter::Other(_) = look.writer {
                waited_for = None;
            }
            match look.asked {
                Asked::Held => break look.locked((look.writer != VersionWriter::Own).then_some(look.mode)),
                Asked::Wait(ref pending) => {
                    // Unpin this path, too: thousands of transactions may wait.
                    path.iter_mut().for_each(|path| path.release());
                    self.wait(pending)?;
                    waited_for = Some(look.mode);
                    if is_blind {
                        break look.locked(None);
                    }
                }
                Asked::Again => self.give_way()?,
                Asked::Refused if patience == Patience::None => return Ok(Locked::Refused),
                Asked::Refused => return Err(self.timeout(&[])),
            }
        };
        // The row was requested twice; one call must release the lock.
        if let Some(mode) = waited_for {
            self.unlock_row(table, key, mode);
        }
        Ok(locked)
    }

    /// Requests the row's lock under the latch of its leaf (I2).
    fn look_at_row(
        &self,
        table: &Table,
        key: &[u8],
        path: Option<&mut Path>,
        patience: Patience,
        mode: &impl Fn(Option<RecordRef<'_>>) -> LockMode,
        see: &mut impl FnMut(RecordRef<'_>) -> Result<()>,
    ) -> Result<Look> {
        let is_blind = !sound!(true, "locks: do not look again after a wait");
        let _usage = table.use_it()?;
        let tree = table.clustered();
        let look = |record: Option<RecordRef<'_>>| {
            let (writer, mode) = (self.writer_of(record.and_then(|record| record.version)), mode(record));
            let asked = self.ask_for_row((tree.def().id, key), mode, writer, patience)?;
            let seen = record.filter(|_| is_blind || matches!(asked, Asked::Held));
            seen.map_or(Ok(()), &mut *see)?;
            Ok(Look { asked, writer, mode, is_live: seen.is_some_and(|record| !record.is_marked()) })
        };
        match path {
            Some(path) => tree.look_prepared(key, path, look)?,
            None => tree.look_prepared(key, &mut Path::default(), look)?,
        }
    }

    /// Releases one request for the row of `key`.
    pub(crate) fn unlock_row(&self, table: &Table, key: &[u8], mode: LockMode) {
        self.forget_scanned();
        self.core.locks.unlock_row(self.owner, table.clustered().def().id, key, mode);
    }
}

fn tell_watching(view: &ReadView, refuses: bool) {
    view.reader().watch(sound!(refuses, "purge: forget who watches for changes"));
}
