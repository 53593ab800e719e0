//! The steps of a checkpoint, in order.

use super::due::{Changes, Quiet, Reason};
use super::pace::{Pace, STEP_PAGES};
use crate::base::latency::{Latency, LatencyCounts};
use crate::base::stalls::{Operation, Reason as StallReason};
use crate::base::{sound, statement_threads, Error, Health, Lsn, Result};
use crate::format::state::State;
use crate::leaves::{Leaves, Saving};
use crate::log::Log;
use crate::page_map::MapStore;
use crate::pool::{EndedEpoch, EpochState, Pool, Reserve, Upkeep};
use cheetah_io::Clock;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Pages between two syncs of a checkpoint that is written in steps.
const PAGES_PER_SYNC: usize = 512;
/// Leaves whose pending changes are saved in the time of one page write.
const SAVED_PER_WRITTEN: usize = 4;

/// The state that a checkpoint needs from the layers above.
pub(crate) trait StateAtSwitch {
    /// The state that belongs to the pages at this moment. Runs at the epoch switch, while no
    /// mini-transaction is open; must not enter one, and does no I/O.
    fn state_at_switch(&self) -> State;
}

pub(crate) struct CheckpointParts {
    pub(crate) health: Arc<Health>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) leaves: Leaves,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) map: MapStore,
    /// Empty during redo.
    pub(crate) log: Arc<OnceLock<Log>>,
    pub(crate) has_threads: Arc<AtomicBool>,
    /// The background's I/O operations per second.
    pub(crate) io_capacity: Arc<AtomicU32>,
    /// Counts changes that are not logged.
    pub(crate) unlogged: Arc<AtomicU64>,
    /// The maximum bytes of log between two checkpoints.
    pub(crate) log_bytes_max: u64,
    /// The time after which a changed database gets a checkpoint.
    pub(crate) interval_ns: u64,
}

pub(crate) struct Checkpointer {
    pub(super) parts: CheckpointParts,
    /// Held during a checkpoint (K1).
    one: Mutex<()>,
    /// Threads that wait for the checkpoint in progress, which then does not pause.
    hurried: AtomicU32,
    pub(super) last: Mutex<LastCheckpoint>,
    pub(super) quiet: Mutex<Quiet>,
    steps: Latency,
    /// When the free space of the disk was last checked.
    pub(super) space_looked_at_ns: AtomicU64,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LastCheckpoint {
    pub(super) lsn: Lsn,
    pub(super) at_ns: u64,
    /// When a later checkpoint last failed.
    pub(super) failed_at_ns: u64,
    /// The pool's outdated bytes at its end, or at the end of the startup.
    pub(super) outdated_bytes: i64,
}

impl Checkpointer {
    /// The last checkpoint is the loaded epoch, whose log ends at `lsn`.
    pub(crate) fn new(parts: CheckpointParts, lsn: Lsn) -> Self {
        let last = LastCheckpoint { lsn, at_ns: parts.clock.now_ns(), failed_at_ns: 0, outdated_bytes: 0 };
        let (one, hurried, quiet) = (Mutex::default(), AtomicU32::new(0), Mutex::default());
        let (steps, space_looked_at_ns) = (Latency::default(), AtomicU64::new(0));
        Self { parts, one, hurried, last: Mutex::new(last), quiet, steps, space_looked_at_ns }
    }

    /// How long the steps of checkpoints took, even of abandoned ones: the epoch switch; saving and
    /// writing between two pauses, or all of it if a thread waits; the end, with syncs and map
    /// commit.
    pub(crate) fn step_times(&self) -> LatencyCounts {
        self.steps.counts()
    }

    fn begin_step(&self) -> Operation<'_> {
        let stalls = self.parts.health.stalls();
        stalls.begin_operation(StallReason::Checkpoint, &self.steps, &*self.parts.clock)
    }

    /// Called at the end of the startup: data already outdated is no reason for a checkpoint.
    pub(crate) fn startup_has_ended(&self) {
        self.last.lock().outdated_bytes = self.parts.upkeep.outdated_bytes();
    }

    /// Makes all changes so far part of the database files, so that recovery needs no log for them.
    /// Must be called outside of mini-transactions; blocks. A checkpoint in progress hurries.
    pub(crate) fn checkpoint(&self, above: &dyn StateAtSwitch) -> Result<()> {
        self.hurry();
        let one = self.one.lock();
        self.end_hurry();
        let threads = if self.parts.has_threads.load(Relaxed) { statement_threads() } else { 1 };
        self.run(one, above, |ended, saving| {
            // Timed as one step, whose length depends on the amount to write.
            self.steps.time(&*self.parts.clock, || {
                saving.save_pending(usize::MAX, &mut || ended.check())?;
                ended.leave_out_saved()?;
                match threads {
                    1 => Ok(()),
                    // A thread waits for the end of this checkpoint.
                    _ => ended.write_all(threads),
                }
            })
        })
    }

    /// Makes a checkpoint whose pages are written at an even rate, or without pauses if there are
    /// no background threads or it must free memory or space. If `why` is `Idle`, first writes
    /// pending changes into their leaves (K4).
    pub(crate) fn spread_checkpoint(&self, above: &dyn StateAtSwitch, why: Reason) -> Result<()> {
        if sound!(why == Reason::Idle, "checkpoint: leave waiting what waits at rest") {
            self.come_to_rest();
        }
        let is_urgent = why == Reason::Space || self.parts.pool.remembers_too_much();
        if is_urgent || !self.parts.has_threads.load(Relaxed) {
            return self.checkpoint(above);
        }
        let mut pace = Pace::start(self);
        self.checkpoint_in_steps(above, STEP_PAGES, &mut |pages_left| pace.wait(pages_left))
    }

    /// Writes pending changes into their leaves (K4). Stops at a change, or when a thread waits.
    fn come_to_rest(&self) {
        let Self { parts, .. } = self;
        let changes = self.changes();
        let pause_ns = STEP_PAGES as u64 * 1_000_000_000 / u64::from(parts.io_capacity.load(Relaxed)).max(1);
        let mut goes_on = |done: usize| {
            if done % STEP_PAGES == STEP_PAGES - 1 && parts.has_threads.load(Relaxed) {
                parts.clock.sleep_ns(pause_ns);
            }
            self.changes() == changes && !self.is_hurried()
        };
        let errors = parts.health.background_errors();
        match parts.leaves.fold_waiting(&mut goes_on) {
            Ok(()) => errors.clear("bringing changes into their leaves"),
            Err(error) => {
                errors.note("bringing changes into their leaves", &error);
                self.quiet.lock().failed_at = Some(changes);
            }
        }
    }

    /// Writes `step_pages` pages at a time, then calls `pause` with the number of pages left.
    pub(crate) fn checkpoint_in_steps(
        &self,
        above: &dyn StateAtSwitch,
        step_pages: usize,
        pause: &mut dyn FnMut(usize),
    ) -> Result<()> {
        self.run(self.one.lock(), above, |ended, saving| {
            let mut step = self.begin_step();
            let mut pause = |pages_left| step.between(|| pause(pages_left));
            let pages_left = ended.pages_left();
            let mut pause_of_saving = || {
                pause(pages_left);
                ended.check()
            };
            saving.save_pending(SAVED_PER_WRITTEN * step_pages, &mut pause_of_saving)?;
            ended.leave_out_saved()?;
            write_in_steps(ended, step_pages, &mut pause)
        })
    }

    /// `write` may leave pages to the last step.
    fn run(
        &self,
        _one: MutexGuard<'_, ()>,
        above: &dyn StateAtSwitch,
        write: impl FnOnce(&mut EndedEpoch<'_>, &mut Saving<'_>) -> Result<()>,
    ) -> Result<()> {
        self.parts.health.check()?;
        // This checkpoint may end before the background merges the map files.
        self.merge_map_if_there_is_room()?;
        let done = self.check_space().and_then(|()| self.run_in_space(above, write));
        if done.is_err() {
            self.last.lock().failed_at_ns = self.parts.clock.now_ns();
        }
        done
    }

    /// Fails with `DiskFull` if the changes do not fit: writing them would use up the disk in vain
    /// (durability::O1). Never fails during redo.
    fn check_space(&self) -> Result<()> {
        let Self { parts, .. } = self;
        match parts.log.get() {
            None => {
                parts.pool.space().look(parts.pool.promised_bytes());
                Ok(())
            }
            Some(_) => parts.pool.space().check_to_write(parts.pool.checkpoint_bytes(), Reserve::Nothing),
        }
    }

    fn run_in_space(
        &self,
        above: &dyn StateAtSwitch,
        write: impl FnOnce(&mut EndedEpoch<'_>, &mut Saving<'_>) -> Result<()>,
    ) -> Result<()> {
        let switch = self.begin_step();
        let (ended, state) = self.parts.pool.end_epoch(|_| above.state_at_switch());
        drop(switch);
        let state = self.write_and_commit(ended, state, write);
        let state = state.inspect_err(|error| self.parts.leaves.note_failed_checkpoint(error))?;
        *self.last.lock() = LastCheckpoint {
            lsn: state.lsn,
            at_ns: self.parts.clock.now_ns(),
            failed_at_ns: 0,
            outdated_bytes: self.parts.upkeep.outdated_bytes(),
        };
        self.recycle_log(&state)
    }

    /// Runs the steps after the epoch switch.
    fn write_and_commit<'p>(
        &self,
        mut ended: EndedEpoch<'p>,
        mut state: State,
        write: impl FnOnce(&mut EndedEpoch<'p>, &mut Saving<'_>) -> Result<()>,
    ) -> Result<State> {
        let mut saving = self.parts.leaves.begin_saving(ended.epoch());
        write(&mut ended, &mut saving)?;
        let _end = self.begin_step();
        let epoch = ended.epoch();
        let written = ended.finish()?;
        state.change_files = saving.finish()?.to_vec();
        let stored = EpochState { bytes: state.encode(), log_start: state.lsn };
        self.make_log_durable(state.lsn)?;
        let is_ahead = self.parts.log.get().is_some_and(|log| log.durable_end() < state.lsn);
        assert!(
            !sound!(is_ahead, "checkpoint: commit ahead of the log"),
            "K2: the log is durable up to the epoch switch"
        );
        let committed = written.commit(&self.parts.map, &stored);
        if committed.is_err() && self.parts.map.may_be_durable(epoch) {
            saving.note_may_be_durable();
        }
        committed?;
        saving.committed();
        Ok(state)
    }

    /// Makes the log durable up to the epoch switch (K2).
    fn make_log_durable(&self, lsn: Lsn) -> Result<()> {
        match self.parts.log.get() {
            Some(log) if sound!(true, "checkpoint: commit ahead of the log") => log.sync_to(lsn),
            _ => Ok(()),
        }
    }

    /// Recycles the log before the epoch (K3). Open transactions need none of the old log: the
    /// epoch has their changes and their undo records (durability::H5).
    fn recycle_log(&self, state: &State) -> Result<()> {
        let goes = state.txns.is_empty() || sound!(true, "checkpoint: keep the log of open transactions");
        match self.parts.log.get() {
            Some(log) if goes => log.recycle(state.lsn).map(drop),
            _ => Ok(()),
        }
    }

    /// No checkpoint pauses until [`end_hurry`](Self::end_hurry).
    pub(crate) fn hurry(&self) {
        self.hurried.fetch_add(1, Relaxed);
    }

    pub(crate) fn end_hurry(&self) {
        self.hurried.fetch_sub(1, Relaxed);
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.load(Relaxed) > 0
    }

    /// Merges the files of the page map if too many; returns whether it did. Blocks for I/O.
    pub(crate) fn merge_map_if_due(&self) -> Result<bool> {
        self.parts.map.merge_if_due()
    }

    /// Like [`merge_map_if_due`](Self::merge_map_if_due), but ignores a full disk: each startup
    /// adds a file to the map, and the number of files is limited.
    pub(crate) fn merge_map_if_there_is_room(&self) -> Result<()> {
        match self.merge_map_if_due() {
            Err(Error::DiskFull(_)) => Ok(()),
            merged => merged.map(drop),
        }
    }

    pub(crate) fn map(&self) -> &MapStore {
        &self.parts.map
    }

    pub(crate) fn map_file_bytes(&self) -> u64 {
        self.parts.map.file_bytes()
    }

    /// 0 during redo.
    pub(crate) fn log_end(&self) -> Lsn {
        self.parts.log.get().map_or(Lsn(0), Log::end)
    }

    /// The end of the log and the count of unlogged changes: every change advances one of them.
    pub(super) fn changes(&self) -> Changes {
        (self.log_end(), self.parts.unlogged.load(Relaxed))
    }

    /// Since the last checkpoint.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_end().0.saturating_sub(self.last.lock().lsn.0)
    }

    /// The log since the last checkpoint, in percent of the maximum.
    pub(crate) fn log_percent(&self) -> u64 {
        self.log_bytes().saturating_mul(100) / self.parts.log_bytes_max.max(1)
    }
}

/// Writes with intermediate syncs: concurrent commits would wait for one long sync at the end.
fn write_in_steps(ended: &mut EndedEpoch<'_>, step_pages: usize, pause: &mut dyn FnMut(usize)) -> Result<()> {
    let mut pages_synced = ended.pages_left();
    while ended.write_some(step_pages)? > 0 {
        if pages_synced - ended.pages_left() >= PAGES_PER_SYNC {
            ended.sync_written()?;
            pages_synced = ended.pages_left();
        }
        pause(ended.pages_left());
    }
    Ok(())
}
