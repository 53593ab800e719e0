//! Startup recovery: opens a database, and creates it if it does not exist.
//!
//! The steps, in order:
//! 1. If there is a MANIFEST, compare the files with it. Read CONTROL, and get the keys. Remove
//!    MANIFEST, durably; then write a new incarnation, durably. The caller has locked the
//!    directory.
//! 2. Open the segments, the pool and the state of the last epoch, with the saved changes of
//!    leaves.
//! 3. Redo; then the log continues in a new file.
//! 4. Give each unfinished transaction an owner, and lock its tables. Drop the shadow tables of
//!    transactions that are not prepared, and posting tables that no definition names.
//! 5. Roll back the unprepared transactions, purge the history of committed ones, and make a
//!    checkpoint, or leave this step to the background.
//!
//! No session is served before step 4 is done. So no session changes a row that still has to be
//! rolled back, and consistent reads do not see such a row (durability::S7).

use super::crew::Crew;
use super::outcomes::Outcomes;
use super::redo;
use crate::backup;
use crate::base::{sound, Config, Epoch, Error, Health, PageId, Result, TreeId};
use crate::checkpoint::{CheckpointParts, Checkpointer};
use crate::durable::Durable;
use crate::format::control::ControlBlock;
use crate::format::image::Compression;
use crate::format::location::MapEntry;
use crate::format::row::RowFormatVersion;
use crate::format::state::State;
use crate::keys::{Closing, Keys, SYSTEM_KEY};
use crate::leaves::{ColdLeaves, KeyPart, Leaves};
use crate::log::{self, Log, LogSetup};
use crate::memory::{MemoryBudget, MemoryUse};
use crate::page_map::{MapStore, Opened};
use crate::pool::{self, Pool, PoolParts, Upkeep};
use crate::segment::Segments;
use crate::sort::{SortMemory, TempFiles};
use crate::table::definitions::catalog::Catalog;
use crate::table::definitions::{fulltext, shadow};
use crate::table::history::prepared_list::Prepared;
use crate::table::history::purge_state::Purge;
use crate::table::history::unfinished_list::Unfinished;
use crate::table::shared::counters::Counters;
use crate::table::shared::deadlocks::Deadlocks;
use crate::table::shared::for_people::ForPeople;
use crate::table::shared::keys_in_use::use_keys;
use crate::table::shared::parts::Core;
use crate::table::shared::purge_latch::PurgeLatches;
use crate::table::shared::refusals::Refusals;
use crate::table::shared::room::{ignore_disk_full, Reliefs};
use crate::table::shared::unique_keys::UniqueKeys;
use crate::table::shared::{Journal, Pace, Sorting, Startup, StatisticsWork, Transactions};
use crate::txn::{Active, LockLimits, LockTable, UndoLog, UndoStart, Versions};
use cheetah_io::{Clock, Disk};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cleanup {
    /// Before startup recovery ends.
    Now,
    /// In the background.
    Later,
}

/// Opens the database on `disk`, creating it if it does not exist, and recovers it.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    config: &Config,
    uuid: [u8; 16],
    cleanup: Cleanup,
    crew: Crew,
) -> Result<Core> {
    let durable = Arc::new(Durable::new(disk, Arc::new(Health::default())));
    backup::check_manifest(&durable)?;
    let (parts, epoch, state) = load_epoch(durable, clock, config, uuid)?;
    backup::remove_unfinished(parts.durable.disk());
    let core = match epoch {
        Epoch(0) => parts.create()?,
        _ => parts.recover(&State::decode(&state)?, cleanup, crew)?,
    };
    core.checkpointer.startup_has_ended();
    core.startup.end();
    Ok(core)
}

/// Performs steps 1 and 2, except for the saved changes of leaves. Returns the state of the epoch
/// without decoding it.
pub(super) fn load_epoch(
    durable: Arc<Durable>,
    clock: Arc<dyn Clock>,
    config: &Config,
    uuid: [u8; 16],
) -> Result<(Parts, Epoch, Vec<u8>)> {
    config.validate()?;
    let health = Arc::clone(durable.health());
    let (mut keys, mut closes_any) = (None, config.encrypts_log || config.encrypts_tables);
    let before_writing = |control: &ControlBlock| {
        let (source, clock, database) = (config.keys.clone(), Arc::clone(&clock), control.identity.uuid);
        let opened = Arc::new(Keys::open(source, clock, database, &control.keys)?);
        closes_any &= !(config.stays_plain && control.keys.is_empty());
        // The key is checked before anything is written (durability::E12).
        if closes_any && opened.system().is_none() {
            opened.fetch_newest(SYSTEM_KEY)?;
        }
        keys = Some(opened);
        backup::remove_manifest(&durable)
    };
    let Opened { store, identity, config, epoch, first_epoch, next_segment, .. } =
        MapStore::open_after(Arc::clone(&durable), config, uuid, before_writing)?;
    let keys = keys.expect("opening a map reads its control block");
    if closes_any {
        use_keys(&keys, &store, &[])?;
        keys.set_closes_log(config.encrypts_log);
        keys.set_closes_tables(config.encrypts_tables);
    }
    let budget = Arc::new(MemoryBudget::new(config.buffer_pool_bytes));
    let segments = Arc::new(Segments::open(Arc::clone(&durable), &config, identity, next_segment)?);
    let mut entries = HashMap::new();
    let state = store.load(&mut |page, entry| match entry {
        Some(entry) => drop(entries.insert(page, entry)),
        None => drop(entries.remove(&page)),
    })?;
    entries.values().for_each(|entry| segments.retain(&entry.location));
    // While the pool copies the entries into its page table, the map is in memory twice.
    let entries_memory = budget.reserve(MemoryUse::Redo, entries_bytes(&entries));
    let cold = ColdLeaves::new(&budget, &config);
    let parts = PoolParts {
        health: Arc::clone(&health),
        clock: Arc::clone(&clock),
        keys: Arc::clone(&keys),
        memory: Arc::clone(&budget),
        segments: Arc::clone(&segments),
        beside: cold.clone(),
    };
    let leaves = Leaves::new(Pool::open(&config, parts, first_epoch, entries), cold);
    drop(entries_memory);
    segments.end_startup(epoch)?;
    register_own_trees(&leaves);
    let setup = LogSetup::new(&config, Arc::clone(&durable), Arc::clone(&clock), Arc::clone(&keys), identity);
    let pool = Arc::clone(leaves.pool());
    Ok((Parts { health, durable, clock, config, pool, leaves, store, setup }, epoch, state))
}

/// The memory of a hash map, which has a byte for each slot and keeps one slot in eight empty.
fn entries_bytes(entries: &HashMap<PageId, MapEntry>) -> usize {
    entries.capacity() * (size_of::<(PageId, MapEntry)>() + 1) * 8 / 7
}

pub(super) struct Parts {
    pub(super) health: Arc<Health>,
    pub(super) durable: Arc<Durable>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) config: Config,
    pub(super) pool: Arc<Pool>,
    pub(super) leaves: Leaves,
    pub(super) store: MapStore,
    pub(super) setup: LogSetup,
}

impl Parts {
    /// Creates a new database: an empty catalog, and a first epoch with it.
    fn create(self) -> Result<Core> {
        let log = Log::create(&self.setup)?;
        let catalog = Catalog::create(&self.leaves, &self.pool.enter())?;
        let core = self.assemble(&State::default(), catalog)?;
        restore_changes(&core, &State::default())?;
        start_log(&core, log);
        core.checkpoint()?;
        Ok(core)
    }

    /// Redoes the log on top of the last epoch, and with `Cleanup::Now` performs step 5 too.
    fn recover(self, state: &State, cleanup: Cleanup, crew: Crew) -> Result<Core> {
        self.pool.adopt_dictionaries(&state.dictionaries);
        let catalog = Catalog::open(&self.leaves, state)?;
        self.pool.load_primers();
        let (setup, durable) = (self.setup.clone(), Arc::clone(&self.durable));
        let core = self.assemble(state, catalog)?;
        restore_changes(&core, state)?;
        let (disk, keys, from) = (durable.disk(), &*setup.keys, state.lsn);
        let mut outcomes = Outcomes::default();
        log::read_from(disk, keys, from, from, |frame| outcomes.note(frame.kind, frame.body))?;
        outcomes.count_memory(core.pool.memory());
        let recovered = redo::run(&core, crew, outcomes, |redo| {
            log::read_from(disk, keys, from, from, |frame| redo.add(frame.kind, frame.body))
        })?;
        start_log(&core, Log::open(&setup, &recovered, state.lsn)?);
        redo::finish(&core)?;
        shadow::drop_lost(&core)?;
        fulltext::drop_lost(&core)?;
        core.catalog.restore_counts(&core.transactions.active.slots());
        match cleanup {
            Cleanup::Now => finish(&core)?,
            Cleanup::Later => core.checkpointer.merge_map_if_there_is_room()?,
        }
        Ok(core)
    }

    pub(super) fn assemble(self, state: &State, catalog: Catalog) -> Result<Core> {
        let start = UndoStart {
            first_page: state.undo_first_page,
            end: state.undo_end,
            pages: state.undo_pages.clone(),
            purge: state.purge,
        };
        let versions = Versions::new(state.next_txn, state.next_commit);
        for txn in &state.txns {
            if txn.xid.is_none() || sound!(true, "recovery: take what is prepared for committed") {
                versions.adopt(txn.txn);
            }
        }
        let log = Arc::new(OnceLock::new());
        let pace = Pace::new(self.config.io_capacity);
        let (has_threads, io_capacity, unlogged) = pace.shared();
        let upkeep = Arc::new(Upkeep::new(Arc::clone(&self.pool)));
        let parts = CheckpointParts {
            health: Arc::clone(&self.health),
            clock: Arc::clone(&self.clock),
            pool: Arc::clone(&self.pool),
            leaves: self.leaves.clone(),
            upkeep: Arc::clone(&upkeep),
            map: self.store,
            log: Arc::clone(&log),
            has_threads,
            io_capacity,
            unlogged,
            log_bytes_max: self.config.log_bytes_max,
            interval_ns: self.config.checkpoint_interval_ns,
        };
        let undo = UndoLog::open(Arc::clone(&self.pool), start)?;
        let sort_memory = SortMemory::new(Arc::clone(self.pool.memory()));
        Ok(Core {
            journal: Journal::new(Arc::clone(&log), Arc::clone(&self.health)),
            health: self.health,
            clock: self.clock,
            checkpointer: Checkpointer::new(parts, state.lsn),
            transactions: Transactions::new(Active::new(&state.txns), versions, undo),
            locks: LockTable::counted(lock_limits(self.pool.memory()), Arc::clone(self.pool.memory())),
            deadlocks: Deadlocks::default(),
            refusals: Refusals::default(),
            for_people: ForPeople::default(),
            catalog,
            counters: Counters::default(),
            startup: Startup::default(),
            pace,
            reliefs: Reliefs::default(),
            unfinished: Unfinished::default(),
            prepared: Prepared::default(),
            purge: Purge::default(),
            purge_latches: PurgeLatches::default(),
            unique_keys: UniqueKeys::default(),
            sorting: Sorting::new(sort_memory, temp_files(self.durable, &self.pool, log)?),
            dropping: Mutex::default(),
            statistics: StatisticsWork::default(),
            losses: None,
            pool: self.pool,
            leaves: self.leaves,
            upkeep,
            config: self.config,
        })
    }
}

fn lock_limits(memory: &MemoryBudget) -> LockLimits {
    LockLimits { bytes_max: memory.shares().locks_bytes_max(), ..LockLimits::default() }
}

/// Temporary files may use the reserve during redo: the changes in the log were already accepted.
fn temp_files(durable: Arc<Durable>, pool: &Arc<Pool>, log: Arc<OnceLock<Log>>) -> Result<Arc<TempFiles>> {
    let pool = Arc::clone(pool);
    TempFiles::open(durable, Arc::clone(pool.keys()), move |bytes| match log.get() {
        Some(_) => pool.take_space(bytes),
        None => {
            pool.note_space_taken(bytes);
            Ok(())
        }
    })
}

/// Rolls back unfinished transactions, purges history, and commits an epoch with the result.
fn finish(core: &Core) -> Result<()> {
    // On a full disk the remaining work is left to the background.
    ignore_disk_full(core.unfinished.finish(core))?;
    ignore_disk_full(core.purge.finish(core))?;
    while core.trim_undo() {}
    core.checkpoint()
}

/// Loads the changes of leaves that the last checkpoint saved. The rows of the changes in a damaged
/// file are unknown, so every table with changes in the file is quarantined.
pub(super) fn restore_changes(core: &Core, state: &State) -> Result<()> {
    for (trees, error) in core.leaves.restore_changes(&state.change_files, &state.dropped_trees)? {
        for (table, _) in trees.iter().filter_map(|tree| core.catalog.by_tree(*tree)) {
            core.quarantine(table.id(), Error::corrupt("saved changes", error.to_string()), true)?;
        }
    }
    Ok(())
}

fn start_log(core: &Core, log: Log) {
    core.pool.memory().set(MemoryUse::Log, log.buffer_bytes_max());
    core.journal.start(log);
}

fn register_own_trees(leaves: &Leaves) {
    for id in [TreeId::CATALOG, TreeId::UNDO] {
        let (row_format, compression) = (RowFormatVersion::opaque(), Compression::default());
        let closing = Closing::AsSystem;
        leaves.register_tree(pool::TreeDef { id, row_format, compression, closing }, KeyPart::default());
    }
}
