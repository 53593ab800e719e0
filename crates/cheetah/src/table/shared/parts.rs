//! The parts of an open database, and operations that use several of them. [`Core`] gives a
//! checkpoint its [`StateAtSwitch`].

use super::counters::Counters;
use super::deadlocks::Deadlocks;
use super::for_people::ForPeople;
use super::purge_latch::PurgeLatches;
use super::refusals::Refusals;
use super::room::Reliefs;
use super::unique_keys::UniqueKeys;
use super::{Dropping, Journal, Losses, Pace, Sorting, Startup, StatisticsWork, Transactions};
use crate::base::stages::Stage;
use crate::base::stalls::Stall;
use crate::base::{opaque, reach, sound, Config, Error, ErrorKind, Health, Result, TableId, UndoPtr};
use crate::checkpoint::{Checkpointer, StateAtSwitch};
use crate::format::state::State;
use crate::leaves::Leaves;
use crate::memory::MemoryUse;
use crate::pool::{Pool, Upkeep};
use crate::table::definitions::catalog::Catalog;
use crate::table::definitions::handle::Table;
use crate::table::history::prepared_list::Prepared;
use crate::table::history::purge_state::Purge;
use crate::table::history::unfinished_list::Unfinished;
use crate::table::rows::change::Version;
use crate::txn::{Listed, LockTable, Slot};
use cheetah_io::Clock;
use parking_lot::Mutex;
use std::sync::Arc;

/// The parts of an open database.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) health: Arc<Health>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) leaves: Leaves,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) journal: Journal,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) transactions: Transactions,
    pub(crate) locks: LockTable,
    pub(crate) deadlocks: Deadlocks,
    pub(crate) refusals: Refusals,
    pub(crate) for_people: ForPeople,
    pub(crate) catalog: Catalog,
    pub(crate) counters: Counters,
    pub(crate) startup: Startup,
    pub(crate) pace: Pace,
    pub(crate) reliefs: Reliefs,
    pub(crate) unfinished: Unfinished,
    /// Without a session, waiting for the coordinator's decision.
    pub(crate) prepared: Prepared,
    pub(crate) purge: Purge,
    /// Rows that purge stays away from.
    pub(crate) purge_latches: PurgeLatches,
    /// Keys of unique indexes that writers are about to add.
    pub(crate) unique_keys: UniqueKeys,
    pub(crate) sorting: Sorting,
    pub(crate) dropping: Mutex<Dropping>,
    pub(crate) statistics: StatisticsWork,
    /// Set for a database that is opened only to be copied; then no table is quarantined.
    pub(crate) losses: Option<Losses>,
}

opaque!(Core);

impl Core {
    pub(crate) fn list_found(&self, slot: &Slot) -> Listed {
        let listed = self.transactions.roster.enter(self.transactions.new_owner(), None);
        listed.begin(|| self.clock.now_ns());
        listed.set_txn(slot.txn());
        slot.belong_to(listed.owner());
        listed
    }

    /// The stall of the calling thread ends when the returned guard is dropped.
    #[must_use]
    pub(crate) fn begin_stall(&self, stage: Stage) -> Stall<'_> {
        self.health.stalls().begin(stage, &*self.clock)
    }

    /// Most row operations have nothing to merge.
    pub(crate) fn note_merge(&self, result: Result<bool>) {
        if !matches!(result, Ok(false)) {
            self.note_cleanup("merging pages", result.map(drop));
        }
    }

    /// The error does not fail the operation.
    pub(crate) fn note_cleanup(&self, work: &'static str, result: Result<()>) {
        match result {
            Ok(()) => self.health.background_errors().clear(work),
            Err(error) => self.health.background_errors().note(work, &error),
        }
    }

    /// Quarantines a table that startup cannot process. `error` is damage found at startup or, if
    /// `is_left_over`, found by the background in work left over from startup (durability::N3).
    /// Returns any other error.
    pub(crate) fn quarantine(&self, table: TableId, error: Error, is_left_over: bool) -> Result<()> {
        if let Some(losses) = &self.losses {
            // A lack of space for the copy is not damage.
            if error.kind() == ErrorKind::Stopped || matches!(error, Error::DiskFull(_)) {
                return Err(error);
            }
            losses.note_change(table, &error);
            return Ok(());
        }
        let is_left_over = sound!(is_left_over, "recovery: quarantine nothing once it serves");
        let is_startup = is_left_over || !self.startup.is_over();
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

    /// Makes the background remove the statistics of a dropped table.
    pub(crate) fn forget_statistics(&self, table: &Table) {
        if sound!(
            table.has_had_statistics() && !table.id().is_temporary(),
            "statistics: keep those of a dropped table"
        ) {
            self.statistics.forget(table.id());
        }
    }

    /// Makes all changes so far durable in the database, so that they no longer need the log.
    /// Outside mini-transactions; blocks. A checkpoint in progress hurries.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpointer.checkpoint(self)
    }

    /// Whether every snapshot sees a version, now and later. Purge may have passed it, and will not
    /// return for the records it delete-marked. The caller holds a purge latch of the row.
    pub(crate) fn is_settled(&self, version: Version) -> bool {
        let Some((txn, _)) = version else { return true };
        let is_sound = sound!(true, "blind: wait for all older transactions");
        let horizon = if is_sound { self.purge.horizon() } else { 0 };
        self.transactions.versions.is_committed_for_all(txn, horizon)
    }

    /// Page writes then omit the versions that every snapshot sees.
    pub(crate) fn forget_old_versions(&self) {
        let below = self.transactions.versions.visible_below();
        let mtr = self.pool.enter();
        self.pool.set_freeze_below(&mtr, below);
        self.pool.memory().set(MemoryUse::Outcomes, self.transactions.versions.bytes());
    }

    /// Transactions that have ended but are not purged.
    pub(crate) fn to_purge_count(&self) -> u64 {
        let slots = self.transactions.active.slots();
        let open = slots.iter().filter(|slot| slot.state().first != UndoPtr(0));
        self.transactions.undo.live_count().saturating_sub(open.count() as u64)
    }

    /// Frees undo pages that no transaction needs; returns whether there may be more.
    pub(crate) fn trim_undo(&self) -> bool {
        self.transactions.undo.free_oldest_pages()
    }
}

impl StateAtSwitch for Core {
    fn state_at_switch(&self) -> State {
        let undo = self.transactions.undo.snapshot();
        let mut state = State {
            lsn: self.journal.end(),
            next_txn: self.transactions.versions.next_txn(),
            next_commit: self.transactions.versions.next_stamp(),
            undo_first_page: undo.first_page,
            undo_end: undo.end,
            undo_pages: undo.pages,
            purge: undo.purge,
            txns: self.transactions.active.snapshot(),
            ..State::default()
        };
        self.catalog.snapshot(&mut state);
        if sound!(true, "checkpoint: forget the dictionaries") {
            state.dictionaries = self.pool.dictionaries();
        }
        if !sound!(true, "checkpoint: forget open transactions") {
            state.txns.clear();
        }
        if !sound!(true, "checkpoint: forget the XIDs") {
            state.txns.iter_mut().for_each(|txn| txn.xid = None);
        }
        if !sound!(true, "recovery: forget the quarantine") {
            state.quarantined.clear();
        }
        if !sound!(true, "checkpoint: forget the row counters") {
            state.tables.iter_mut().for_each(|table| table.row_count = 0);
        }
        state
    }
}
