//! An open database.

use super::background::Background;
use super::status::LastOutput;
use super::threads::{crew, Threads};
use super::{statistics_table, NewPostings, Transaction};
use crate::base::{Config, Error, Health, Result, SessionId};
use crate::check::{CheckReport, ExpectedEntries};
use crate::format::catalog::TableDef;
use crate::recovery::{self, Cleanup};
use crate::table::definitions::{alter, ddl, foreign_keys};
use crate::table::shared::parts::Core;
use crate::table::{Alteration, Constraints, ForeignKey, Referenced, Table, TableSpec};
use cheetah_io::{Clock, DirLock, Disk};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// File whose lock keeps a second process out.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// The outside world of a database.
#[derive(Clone)]
pub struct Env {
    /// Its directory.
    pub disk: Arc<dyn Disk>,
    /// Its time.
    pub clock: Arc<dyn Clock>,
}

/// An open database. Clones share it; dropping the last one without [`close`](Db::close) is like a
/// crash.
#[derive(Clone)]
pub struct Db(pub(in crate::db) Arc<Inner>);

pub(in crate::db) struct Inner {
    pub(in crate::db) core: Arc<Core>,
    pub(in crate::db) background: Arc<Background>,
    pub(in crate::db) last_output: LastOutput,
    threads: Mutex<Option<Threads>>,
    _lock: Box<dyn DirLock>,
}

/// Stops a database for ever, as long as it is open; does not keep it open.
#[derive(Debug)]
pub struct Stopper(Weak<Health>);

impl Stopper {
    /// Whether the database is still open.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Every call fails from now on, with `reason`, until the database is opened again.
    pub fn stop(&self, reason: &str) {
        if let Some(health) = self.0.upgrade() {
            let _ = health.stop(reason);
        }
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("tables", &self.0.core.catalog.names().len()).finish()
    }
}

impl Db {
    /// Opens the database of a directory, creating it if it does not exist, and recovers it,
    /// however it was closed last time. Blocks until everything committed is there and nothing
    /// else. Sizes that are fixed at creation are taken from the database, not from `config`.
    pub fn open(env: Env, config: Config) -> Result<Self> {
        Self::open_with(env, &config, Cleanup::Now)
    }

    /// As [`open`](Self::open), but returns as soon as everything committed is there: transactions
    /// that were open at a crash are rolled back by the background, and until then keep locked what
    /// they have changed. For callers who start its threads, or run its steps.
    pub fn open_early(env: Env, config: Config) -> Result<Self> {
        Self::open_with(env, &config, Cleanup::Later)
    }

    fn open_with(env: Env, config: &Config, cleanup: Cleanup) -> Result<Self> {
        let lock = lock_directory(&*env.disk)?;
        let uuid = env.clock.unique();
        let crew = crew(config.redo_threads);
        let core = Arc::new(recovery::open(env.disk, env.clock, config, uuid, cleanup, crew)?);
        statistics_table::load(&core)?;
        let background = Arc::new(Background::new(Arc::clone(&core)));
        let last_output = LastOutput::new(core.clock.now_ns());
        let inner = Inner { core, background, last_output, threads: Mutex::new(None), _lock: lock };
        Ok(Self(Arc::new(inner)))
    }

    /// Ends the threads of the background and makes a checkpoint, so that the next startup has
    /// nothing to redo. To be called when no transaction is open any more; one that is, or cannot
    /// be rolled back now, or not soon, will be rolled back after the next startup.
    pub fn close(&self) -> Result<()> {
        self.stop_threads();
        self.0.background.waiting_snapshot.clear();
        self.0.background.finish_frees();
        self.0.background.leave_nothing_new();
        self.0.core.checkpoint()
    }

    /// Starts the threads that write, collect, flush and make checkpoints. They end with the
    /// database.
    pub fn start_background_threads(&self) -> Result<()> {
        let mut threads = self.0.threads.lock();
        if threads.is_none() {
            self.0.core.pace.set_has_threads(true);
            *threads = Some(Threads::start(&self.0.background)?);
        }
        Ok(())
    }

    /// One step of everything that the threads would do; whether anything was done. For callers
    /// without threads.
    pub fn run_background(&self) -> Result<bool> {
        self.0.background.step()
    }

    /// The step for which a commit waits, as `innodb_flush_log_at_trx_commit`: 0 none, 1 the log is
    /// on disk, 2 the log is written to its file.
    pub fn set_flush_log_at_commit(&self, mode: u8) {
        self.0.core.journal.set_flush_mode(mode.min(2));
    }

    /// Sets the memory of the engine to `bytes`, or to the minimum that it needs, and returns the
    /// new size. More is used as it is needed. Memory beyond the new size is given back in the
    /// background; parts that were set aside when the database was opened keep their size
    /// (`memory`, M3).
    pub fn set_buffer_pool_bytes(&self, bytes: u64) -> u64 {
        let bytes = self.0.core.pool.set_memory_bytes(bytes);
        self.0.background.call();
        bytes
    }

    /// Sets whether changes of rows and of entries of secondary indexes may wait in memory for a
    /// leaf that is not there. Changes that wait already go on waiting.
    pub fn set_buffering(&self, is_on: bool) {
        self.0.core.leaves.set_buffering(is_on);
    }

    /// I/O operations a second that the background may use when nothing presses.
    pub fn set_io_capacity(&self, operations_per_second: u32) {
        self.0.core.pace.set_io_capacity(operations_per_second.max(1));
    }

    /// Has the background read all images in turn from now on, at that rate, to find damage before
    /// somebody needs them; a pass a day at most. 0, as at first: none. Damage that is found is a
    /// background error.
    pub fn set_scrub_rate(&self, bytes_per_second: u64) {
        self.0.core.upkeep.set_scrub_rate(bytes_per_second);
        self.0.background.call();
    }

    /// Has these keys of the server serve, in their newest versions, and key 1, which closes what
    /// belongs to no table. Asks the key service; blocks for I/O if any is new. `Key` when the
    /// service lacks one.
    pub fn use_keys(&self, ids: &[u32]) -> Result<()> {
        self.0.core.use_keys(ids)
    }

    /// Sets whether tables are encrypted that do not say whether they are. The background encrypts,
    /// or decrypts, the present tables. Asks the key service for the keys of these tables: `Key`
    /// when it lacks one; then nothing has changed.
    pub fn set_encrypt_tables(&self, is_on: bool) -> Result<()> {
        let core = &self.0.core;
        if is_on {
            core.use_keys(&core.keys_by_default())?;
        }
        core.pool.keys().set_closes_tables(is_on);
        self.0.background.call();
        Ok(())
    }

    /// Sets whether the log is encrypted; it goes on in a new file. `Key` when the service lacks
    /// key 1. Blocks for I/O.
    pub fn set_encrypt_log(&self, is_on: bool) -> Result<()> {
        let core = &self.0.core;
        if is_on {
            core.use_keys(&[])?;
        }
        let keys = core.pool.keys();
        let was_on = keys.set_closes_log(is_on);
        let begun = core.journal.log().map_or(Ok(()), |log| log.close_as_wanted());
        begun.inspect_err(|_| {
            keys.set_closes_log(was_on);
        })
    }

    /// By how many versions the key of a page may be behind, and one more, until the background
    /// encrypts it anew; 1 as at first, 0: any number.
    pub fn set_rotate_key_age(&self, versions: u32) {
        self.0.core.pool.keys().set_rotate_age(versions);
        self.0.background.call();
    }

    /// Whether the background has still to look whether pages are encrypted as they should be.
    pub fn is_rotating(&self) -> bool {
        self.0.background.key_rotation.is_due(&self.0.core)
    }

    /// Images that the background has encrypted or decrypted since the startup, as keys or settings
    /// were others.
    pub fn rotated_images(&self) -> u64 {
        self.0.core.upkeep.rotated_count()
    }

    /// Has the background ask for newer versions of keys at once, and look at all pages.
    pub fn rotate_keys(&self) {
        self.0.background.key_rotation.restart();
    }

    /// Creates a table; durable on return, as all changes of the catalog.
    pub fn create_table(&self, spec: &TableSpec) -> Result<Arc<Table>> {
        self.create_table_with(spec, &Constraints::default())
    }

    /// As [`create_table`](Self::create_table), with a description of its columns, and constraints
    /// that tie its rows to those of others. `Constraint` when these cannot be, or do not fit those
    /// that refer to a table of its name.
    pub fn create_table_with(&self, spec: &TableSpec, constraints: &Constraints) -> Result<Arc<Table>> {
        ddl::create_table(&self.0.core, spec, constraints)
    }

    /// Creates a table as another database has defined it, but for its numbers.
    pub(crate) fn create_defined(&self, def: TableDef) -> Result<Arc<Table>> {
        ddl::create_defined(&self.0.core, def)
    }

    /// Drops a table. No statement may be using it; its handles answer `NoSuchTable` from now on,
    /// and its space is given back by the background.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.drop_table_unless(name, Referenced::Ignored)
    }

    /// As [`drop_table`](Self::drop_table), unless tables refer to it that keep it: `Constraint`.
    pub fn drop_table_unless(&self, name: &str, referenced: Referenced) -> Result<()> {
        ddl::drop_table(&self.0.core, name, referenced)
    }

    /// How often definitions have changed since the startup: findings about constraints may be out
    /// of date once it has grown.
    pub fn definition_changes(&self) -> u64 {
        self.0.core.catalog.changes()
    }

    /// From now on `show` tells what people call a table, by what stands behind the database in its
    /// name: names of constraints that nobody has given begin so. The first one counts.
    pub fn show_names_with(&self, show: impl Fn(&str) -> String + Send + Sync + 'static) {
        self.0.core.catalog.show_names_with(Box::new(show));
    }

    /// Notes for [`status_text`](Self::status_text) what a constraint has refused, in the words of
    /// the caller, of which the first 8 KiB are kept. Neither waits nor does I/O.
    pub fn note_refused_by_constraint(&self, text: &str) {
        let core = &self.0.core;
        core.refusals.note(core.moment(), text);
    }

    /// The constraints whose child the table is, and the indexes that serve them now.
    pub fn constraints_of_child(&self, table: &Arc<Table>) -> Vec<ForeignKey> {
        foreign_keys::of_child(&self.0.core.catalog, table)
    }

    /// The constraints whose parent the table is.
    pub fn constraints_of_parent(&self, table: &Arc<Table>) -> Vec<ForeignKey> {
        foreign_keys::of_parent(&self.0.core.catalog, table)
    }

    /// The constraints that a new definition would add to a table, and the indexes that would serve
    /// them. `Constraint` when it may not have them.
    pub fn constraints_to_add(&self, table: &Arc<Table>, new: &Constraints) -> Result<Vec<ForeignKey>> {
        let _ddl = self.0.core.catalog.lock_ddl();
        foreign_keys::of_definition(&self.0.core.catalog, table, new)
    }

    /// All constraints, by the names of children and their own.
    pub fn constraints(&self) -> Vec<ForeignKey> {
        foreign_keys::all(&self.0.core.catalog)
    }

    /// Gives a table another name.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        ddl::rename_table(&self.0.core, from, to)
    }

    /// As [`rename_table`](Self::rename_table), for a caller that repeats what a crash has
    /// interrupted: it is done when the table has the new name already.
    pub fn rename_table_again(&self, from: &str, to: &str) -> Result<()> {
        ddl::rename_table_again(&self.0.core, from, to)
    }

    /// Notes that the tables whose names begin so are what is left of a larger one: some of its
    /// rows have gone without being deleted, as when a partition is dropped. Snapshots from before
    /// now are refused them (`TableChanged`).
    pub fn note_remainders(&self, prefix: &str) {
        ddl::note_remainders(&self.0.core, prefix);
    }

    /// Replaces a table by an empty one and returns that. Otherwise as
    /// [`drop_table`](Self::drop_table).
    pub fn truncate_table(&self, name: &str) -> Result<Arc<Table>> {
        self.truncate_table_unless(name, Referenced::Ignored)
    }

    /// As [`truncate_table`](Self::truncate_table), unless tables refer to it: `Constraint`.
    pub fn truncate_table_unless(&self, name: &str, referenced: Referenced) -> Result<Arc<Table>> {
        ddl::truncate_table(&self.0.core, name, referenced)
    }

    /// Gives tables new definitions that leave their rows as they are: all of them or none. No
    /// statement may be using the tables; their handles answer `NoSuchTable` from now on. Blocks
    /// for one sync of the log. `Limit` when an index is named that there is not.
    pub fn alter_tables(&self, alterations: &[Alteration]) -> Result<()> {
        alter::alter_tables(&self.0.core, alterations)
    }

    /// The table of that name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.0.core.catalog.by_name(name)
    }

    /// The table with the postings of a full-text index of a table, by its position from 0: rows
    /// of it are written and read by [`Transaction::insert_words`] and its like. `Limit` when there
    /// is no such index.
    pub fn postings(&self, table: &Table, index_no: usize) -> Result<Arc<Table>> {
        self.table(&table.fulltext_index(index_no)?.postings)
    }

    /// Room for the postings of a full-text index that a change of the definition of `table` is to
    /// bring ([`FulltextFrom::Built`](crate::table::FulltextFrom)), with words of at most
    /// `max_word_bytes`. Durable on return.
    pub fn new_postings(&self, table: &Table, max_word_bytes: u32) -> Result<NewPostings> {
        NewPostings::new(&self.0.core, table, max_word_bytes)
    }

    /// The quarantined tables and why they are: they met damage when the database was opened, now
    /// or earlier.
    pub fn quarantined_tables(&self) -> Vec<(String, String)> {
        self.0.core.catalog.quarantined()
    }

    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.0.core.catalog.names()
    }

    /// Sets the next auto-increment value of a table; durable on return.
    pub fn set_auto_increment(&self, table: &Arc<Table>, next: u64) -> Result<()> {
        ddl::set_auto_increment(&self.0.core, table, next)
    }

    /// A new transaction. Cheap: it gets a number when it first writes.
    pub fn begin(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.0.core))
    }

    /// From now on `later` is asked, when two transactions are in one deadlock whose sessions are
    /// named ([`report_waits`](Transaction::report_waits)), which of them must commit after the
    /// other one: the earlier one is not rolled back, whatever each has done. With none, or where
    /// sessions are not named, the one with the least work is. `later` is called by any thread that
    /// asks for a lock; it must not wait, nor use the engine. The first one counts.
    ///
    /// Without it a replica that applies in parallel may roll back the first one in line again and
    /// again: it is tried again before the other one has run on.
    pub fn set_victim_choice(
        &self,
        later: impl Fn(SessionId, SessionId) -> Option<SessionId> + Send + Sync + 'static,
    ) {
        self.0.core.set_victim_choice(later);
    }

    /// As [`Transaction::check_table`], with a transaction of its own, without the entries that the
    /// caller would compute. `extended` reads every large value too; otherwise only that its pages
    /// are there is looked at.
    pub fn check_table(&self, table: &Arc<Table>, extended: bool) -> Result<CheckReport> {
        self.begin().check_table_as(table, extended, None)
    }

    /// As [`Transaction::check_table`], with a transaction of its own.
    pub fn check_table_with(
        &self,
        table: &Arc<Table>,
        expected: &mut ExpectedEntries<'_>,
    ) -> Result<CheckReport> {
        self.begin().check_table(table, expected)
    }

    /// Makes everything so far part of the database without the log. Blocks for I/O.
    pub fn checkpoint(&self) -> Result<()> {
        self.0.core.checkpoint()
    }

    /// Errors that do not stop the engine and belong to no statement that could report them: places
    /// and errors.
    pub fn background_errors(&self) -> Vec<(&'static str, String)> {
        self.0.core.health.background_errors().list()
    }

    /// From now on `listener` hears of every new entry of
    /// [`background_errors`](Self::background_errors), and of those there are. The first listener
    /// counts.
    pub fn announce_background_errors_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        self.0.core.health.background_errors().announce_to(listener);
    }

    /// Why the engine has stopped, if it has.
    pub fn stopped(&self) -> Option<String> {
        self.0.core.health.reason().map(str::to_owned)
    }

    /// Something to stop the database with, for whoever catches a panic.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::downgrade(&self.0.core.health))
    }

    fn stop_threads(&self) {
        let threads = self.0.threads.lock().take();
        drop(threads);
        self.0.core.pace.set_has_threads(false);
    }
}

pub(crate) fn lock_directory(disk: &dyn Disk) -> Result<Box<dyn DirLock>> {
    disk.lock(LOCK_FILE).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Unsupported {
            place: LOCK_FILE.into(),
            detail: "another process has this database open; stop it first".into(),
        },
        _ => Error::io("lock", LOCK_FILE, error),
    })
}
