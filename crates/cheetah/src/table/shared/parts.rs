//! What all parts of an open database share.
//!
//! Invariants
//!   I1  A log record is appended inside the mini-transaction that makes the change it describes,
//!       so the position of an epoch switch in the log separates what its epoch has from what it
//!       has not.
//!   I2  During redo nothing is appended: the records are there already.

use super::deadlocks::Deadlocks;
use super::purge_latch::Standings;
use super::unique_keys::UniqueKeys;
use crate::base::{
    brake, planted, reach, Config, Error, Health, Lsn, PageId, Result, TableId, TreeId, UndoPtr,
};
use crate::checkpoint::{Checkpointer, StateAtSwitch};
use crate::format::state::State;
use crate::log::{FlushMode, Log, Space};
use crate::memory::MemoryUse;
use crate::pool::{MiniTransaction, Pool, Reserve};
use crate::sort::{SortMemory, TempFiles};
use crate::table::definitions::catalog::Catalog;
use crate::table::history::prepared_list::Prepared;
use crate::table::history::purge_state::Purge;
use crate::table::history::unfinished_list::Unfinished;
use crate::table::rows::change::Version;
use crate::txn::{Active, Listed, LockTable, Owner, Roster, Slot, State as TxnOutcome, UndoLog, Versions};
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The parts of an open database.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) health: Arc<Health>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pool: Arc<Pool>,
    /// Absent during redo (I2).
    pub(crate) log: Arc<OnceLock<Log>>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) active: Active,
    pub(crate) versions: Versions,
    pub(crate) undo: UndoLog,
    pub(crate) locks: LockTable,
    /// Who has a transaction.
    pub(crate) roster: Roster,
    pub(crate) deadlocks: Deadlocks,
    pub(crate) catalog: Catalog,
    pub(crate) counters: Counters,
    /// As `innodb_flush_log_at_trx_commit`.
    pub(crate) flush_mode: AtomicU8,
    /// Whether threads of the background are there to make a checkpoint when writers wait for one.
    pub(crate) has_threads: Arc<AtomicBool>,
    /// False while the database is being opened.
    pub(crate) is_serving: AtomicBool,
    /// Transactions with smaller numbers, and ends with smaller stamps, are from before the
    /// startup.
    pub(crate) first_txn: AtomicU64,
    pub(crate) first_stamp: AtomicU64,
    pub(crate) next_owner: AtomicU64,
    pub(crate) steps_on_full_disk: AtomicU64,
    pub(crate) io_capacity: Arc<AtomicU32>,
    /// What transactions have left to the background.
    pub(crate) unfinished: Unfinished,
    /// Transactions that wait for somebody else's decision, and nobody holds.
    pub(crate) prepared: Prepared,
    pub(crate) purge: Purge,
    /// What purge stays away from.
    pub(crate) standings: Standings,
    /// Keys of unique indexes that somebody is about to add.
    pub(crate) unique_keys: UniqueKeys,
    /// What loads sort with.
    pub(crate) sort_memory: Arc<SortMemory>,
    pub(crate) temp_files: Arc<TempFiles>,
    /// Where the search for pages of dropped trees goes on.
    pub(crate) dropping: Mutex<Dropping>,
}

/// A walk over all pages for those of dropped trees.
#[derive(Default, Debug)]
pub(crate) struct Dropping {
    /// Those whose pages are freed by this walk; none while there is no walk.
    pub(crate) trees: HashSet<TreeId>,
    pub(crate) next: PageId,
}

/// Steps of a rollback on a full disk between two attempts to give space back.
const STEPS_BETWEEN_RELIEFS: u64 = 32;

/// What has happened since the database was opened.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub(crate) rows_inserted: AtomicU64,
    pub(crate) rows_updated: AtomicU64,
    pub(crate) rows_deleted: AtomicU64,
    pub(crate) rows_read: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) rollbacks: AtomicU64,
    pub(crate) prepares: AtomicU64,
    pub(crate) rows_rolled_back: AtomicU64,
    pub(crate) large_values_written: AtomicU64,
    /// Deleted rows, and entries, that were removed though an old snapshot held purge up.
    pub(crate) purged_between_snapshots: AtomicU64,
    /// Requests that have waited, for how long together, and the longest.
    pub(crate) lock_waits: AtomicU64,
    pub(crate) lock_wait_ns: AtomicU64,
    pub(crate) lock_wait_ns_max: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) lock_timeouts: AtomicU64,
    /// Tables whose trees were built by loads, their rows, and what was written to sort them.
    pub(crate) loads: AtomicU64,
    pub(crate) loaded_rows: AtomicU64,
    pub(crate) load_spilled_bytes: AtomicU64,
    pub(crate) log_records_replayed: AtomicU64,
    pub(crate) transactions_recovered: AtomicU64,
}

impl Counters {
    /// Adds one.
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a wait for a lock that has ended.
    pub(crate) fn add_lock_wait(&self, ns: u64) {
        Self::add(&self.lock_waits);
        self.lock_wait_ns.fetch_add(ns, Relaxed);
        self.lock_wait_ns_max.fetch_max(ns, Relaxed);
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("active", &self.active).finish_non_exhaustive()
    }
}

/// Whether an operation may be refused for lack of space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// It brings new data: refused when the disk is full, before anything is changed.
    New,
    /// It deletes: may use half of the reserve, as it leads to space, but leaves the rest to those
    /// who roll back (H3).
    Delete,
    /// It rolls back or gives back: must succeed on a full disk, from the reserve (H3).
    Back,
}

impl Core {
    /// A new owner of locks.
    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Relaxed))
    }

    /// Lists a transaction that a startup has found, with an owner of its own.
    pub(crate) fn list_found(&self, slot: &Slot) -> Listed {
        let listed = self.roster.enter(self.new_owner(), None);
        listed.begin(|| self.clock.now_ns());
        listed.set_txn(slot.txn());
        slot.belong_to(listed.owner());
        listed
    }

    /// Makes room for `pages` pages in memory and in the log. Outside mini-transactions; may wait
    /// and do I/O.
    pub(crate) fn make_room(&self, need: Need, pages: usize) -> Result<()> {
        self.make_room_unless(need, pages, &|| false)
    }

    /// As [`make_room`](Self::make_room), but `Interrupted` when `interrupted` says so while it
    /// waits for the log.
    pub(crate) fn make_room_unless(
        &self,
        need: Need,
        pages: usize,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.health.check()?;
        let need = if planted::is_on("txn: roll back only with space") { Need::New } else { need };
        let is_full = self.make_room_in_memory(need, pages)?;
        let Some(log) = self.log.get() else { return Ok(()) };
        if log.space() == Space::Full && !self.has_threads.load(Relaxed) {
            forgive(need, self.checkpoint())?;
        }
        match need {
            Need::New => {
                self.slow_down();
                log.wait_for_space(&*self.clock, interrupted)
            }
            Need::Delete if !is_full => log.wait_for_space(&*self.clock, interrupted),
            Need::Delete | Need::Back => self.find_log_file(log),
        }
    }

    /// Whether the disk is full; `DiskFull` when it is too full for this need. During redo
    /// everything is let pass.
    fn make_room_in_memory(&self, need: Need, pages: usize) -> Result<bool> {
        if self.log.get().is_none() {
            forgive(Need::Back, self.pool.make_room_from_reserve(pages))?;
            return Ok(false);
        }
        if need == Need::New {
            self.pool.make_room(pages)?;
            return Ok(false);
        }
        let is_full = self.relieve_full_disk()?;
        if need == Need::Delete && is_full {
            self.pool.check_space(Reserve::Half)?;
        }
        forgive(Need::Back, self.pool.make_room_from_reserve(pages))?;
        Ok(is_full)
    }

    /// Holds a writer up a little when most of the memory is dirty: so the cleaner keeps ahead, and
    /// nobody has to stop.
    fn slow_down(&self) {
        let delay_ns = match self.has_threads.load(Relaxed) {
            true => self.pool.pressure(0).delay_ns(),
            false => 0,
        };
        if let Some(owed_ns) = brake::owe(delay_ns) {
            self.clock.sleep_ns(owed_ns);
        }
    }

    /// Sees to it that a file waits for when the current one of the log is full. What rolls back
    /// does not wait for room below the log's limit: on a full disk no checkpoint may succeed, and
    /// nobody would make room.
    fn find_log_file(&self, log: &Log) -> Result<()> {
        match log.prepare_reserve() {
            // A checkpoint lets go of old files, and those are used again.
            Err(Error::DiskFull(_)) => {
                forgive(Need::Back, self.checkpoint())?;
                forgive(Need::Back, log.prepare_reserve())
            }
            other => other,
        }
    }

    /// On a full disk, gives space back now and then: images that rolled back pages have replaced
    /// go only when a checkpoint has committed, and a long rollback would use up the reserve before
    /// (H3). Whether the disk is full.
    fn relieve_full_disk(&self) -> Result<bool> {
        if self.pool.check_space(Reserve::Whole).is_ok() {
            return Ok(false);
        }
        if self.steps_on_full_disk.fetch_add(1, Relaxed) % STEPS_BETWEEN_RELIEFS == 0 {
            forgive(Need::Back, self.checkpoint())?;
            forgive(Need::Back, self.pool.collect(self.config.segment_bytes).map(drop))?;
            forgive(Need::Back, self.checkpoint())?;
        }
        Ok(true)
    }

    /// Appends a record to the log (I1, I2); returns where it ends.
    pub(crate) fn append(&self, _mtr: &MiniTransaction<'_>, record: &[u8]) -> Result<Lsn> {
        let Some(log) = self.log.get() else { return Ok(Lsn(0)) };
        let (&kind, body) = record.split_first().expect("a log record has a kind");
        Ok(self.must("appending to the log", log.append(kind, body))?.end)
    }

    /// Stops the engine when `result` is an error: it leaves a mini-transaction half done.
    pub(crate) fn must<T>(&self, what: &str, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.health.stop(format!("{what} failed in the middle: {error}")))
    }

    /// Takes the result of tidying up after work that is done: an error is not one of that work,
    /// but is told.
    pub(crate) fn tidied(&self, result: Result<()>) {
        if let Err(error) = result {
            self.health.background_errors().note("merging pages", &error);
        }
    }

    /// Quarantines a table that a startup cannot work on: `error` is damage that it met there, or
    /// that the background meets in what the startup has left to it, `is_left_over` (N3). Any other
    /// error comes back.
    pub(crate) fn quarantine(&self, table: TableId, error: Error, is_left_over: bool) -> Result<()> {
        let is_left_over = is_left_over && !planted::is_on("recovery: quarantine nothing once it serves");
        let is_startup = is_left_over || !self.is_serving.load(Relaxed);
        let is_damage = matches!(error, Error::Corruption { .. }) && is_startup;
        match self.catalog.by_id(table).filter(|_| is_damage) {
            None => Err(error),
            Some(table) => {
                reach::mark("table quarantined");
                table.quarantine(error.to_string());
                Ok(())
            }
        }
    }

    /// Notes that everything up to now is from before the startup.
    pub(crate) fn note_startup(&self) {
        self.first_txn.store(self.versions.next_txn().0, Relaxed);
        self.first_stamp.store(self.versions.next_stamp(), Relaxed);
    }

    /// Makes everything that has happened so far part of the database without the log. Outside
    /// mini-transactions; blocks, and makes a checkpoint in progress hurry.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpointer.checkpoint(self)
    }

    /// End of the log; 0 during redo.
    pub(crate) fn log_end(&self) -> Lsn {
        self.checkpointer.log_end()
    }

    /// Whether purge has come to the end of a version's transaction, so that it will not come for
    /// what that has marked as deleted. Asked by whoever has a standing of the row.
    pub(crate) fn is_purged(&self, version: Version) -> bool {
        let Some((txn, _)) = version else { return true };
        match self.versions.state(txn) {
            TxnOutcome::Frozen => true,
            TxnOutcome::Committed(stamp) => stamp <= self.purge.horizon(),
            TxnOutcome::Active | TxnOutcome::Aborted(_) => false,
        }
    }

    /// From now on pages are written without the versions that everybody sees.
    pub(crate) fn forget_old_versions(&self) {
        let below = self.versions.visible_below();
        let mtr = self.pool.enter();
        self.pool.set_freeze_below(&mtr, below);
        self.pool.memory().set(MemoryUse::Outcomes, self.versions.bytes());
    }

    /// Transactions that have ended and are not purged.
    pub(crate) fn to_purge_count(&self) -> u64 {
        let slots = self.active.slots();
        let open = slots.iter().filter(|slot| slot.state().first != UndoPtr(0));
        self.undo.live_count().saturating_sub(open.count() as u64)
    }

    /// Frees undo pages that no transaction needs; whether there may be more.
    pub(crate) fn trim_undo(&self) -> bool {
        self.undo.advance_tail()
    }

    /// Makes the log durable up to `lsn` as far as the flush mode asks for it at a commit.
    pub(crate) fn flush_at_commit(&self, lsn: Lsn) -> Result<()> {
        if planted::is_on("txn: acknowledge before the log is durable") {
            return Ok(());
        }
        let mode = match self.flush_mode.load(Relaxed) {
            0 => FlushMode::None,
            1 => FlushMode::Sync,
            _ => FlushMode::Write,
        };
        self.log.get().map_or(Ok(()), |log| log.commit(lsn, mode))
    }

    /// As [`flush_at_commit`](Self::flush_at_commit), for a commit that somebody else repeats after
    /// a power cut, so that it need not be durable: mode 2 writes it all the same, as it promises.
    pub(crate) fn write_at_commit(&self, lsn: Lsn) -> Result<()> {
        match (self.log.get(), self.flush_mode.load(Relaxed)) {
            (Some(log), 2) => log.commit(lsn, FlushMode::Write),
            _ => self.health.check(),
        }
    }

    /// Makes the log durable up to `lsn`, whatever the flush mode.
    pub(crate) fn sync_log(&self, lsn: Lsn) -> Result<()> {
        self.log.get().map_or(Ok(()), |log| log.sync_to(lsn))
    }
}

impl StateAtSwitch for Core {
    fn state_at_switch(&self) -> State {
        let undo = self.undo.snapshot();
        let mut state = State {
            lsn: self.log.get().map_or(Lsn(0), Log::end),
            next_txn: self.versions.next_txn(),
            next_commit: self.versions.next_stamp(),
            undo_first_page: undo.first_page,
            undo_end: undo.end,
            undo_pages: undo.pages,
            purge: undo.purge,
            txns: self.active.snapshot(),
            ..State::default()
        };
        self.catalog.snapshot(&mut state);
        if !planted::is_on("checkpoint: forget the dictionaries") {
            state.dictionaries = self.pool.dictionaries();
        }
        if planted::is_on("checkpoint: forget open transactions") {
            state.txns.clear();
        }
        if planted::is_on("checkpoint: forget the XIDs") {
            state.txns.iter_mut().for_each(|txn| txn.xid = None);
        }
        if planted::is_on("recovery: forget the quarantine") {
            state.quarantined.clear();
        }
        if planted::is_on("checkpoint: forget the row counters") {
            state.tables.iter_mut().for_each(|table| table.row_count = 0);
        }
        state
    }
}

fn forgive(need: Need, result: Result<()>) -> Result<()> {
    match result {
        Err(Error::DiskFull(_)) if need != Need::New => Ok(()),
        other => other,
    }
}
