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

/// The file whose lock keeps a second process from opening the database.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// The environment of a database.
#[derive(Clone)]
pub struct Env {
    /// The directory of the database.
    pub disk: Arc<dyn Disk>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// An open database; clones share it. Dropping all without [`close`](Db::close) is like a crash.
#[derive(Clone)]
pub struct Db(pub(in crate::db) Arc<Inner>);

pub(in crate::db) struct Inner {
    pub(in crate::db) core: Arc<Core>,
    pub(in crate::db) background: Arc<Background>,
    pub(in crate::db) last_output: LastOutput,
    threads: Mutex<Option<Threads>>,
    _lock: Box<dyn DirLock>,
}

/// Stops a database until it is opened again, and does not keep it open.
#[derive(Debug)]
pub struct Stopper(Weak<Health>);

impl Stopper {
    /// Whether the database is still open.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Makes every call fail, with `reason`, until the database is opened again.
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
    /// Opens the database in a directory, creates it if it does not exist, and recovers it, however
    /// it was closed. Blocks until exactly the committed state is restored. Sizes that are fixed at
    /// creation are taken from the database, not from `config`.
    pub fn open(env: Env, config: Config) -> Result<Self> {
        Self::open_with(env, &config, Cleanup::Now)
    }

    /// Like [`open`](Self::open), but returns as soon as everything committed is restored. The
    /// background rolls back the transactions that were open at a crash; until then their changes
    /// stay locked. For callers that start the background threads, or run the background steps.
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

    /// Ends the background threads and makes a checkpoint, so that the next startup has nothing to
    /// redo. The caller should first end all transactions. The next startup rolls back a
    /// transaction that is still open, or that cannot be rolled back now or soon.
    pub fn close(&self) -> Result<()> {
        self.stop_threads();
        self.0.background.waiting_snapshot.clear();
        self.0.background.finish_frees();
        self.0.background.leave_nothing_new();
        self.0.core.checkpoint()
    }

    /// Starts the background threads, which write pages, collect garbage, flush the log and make
    /// checkpoints. They end when the database is closed or dropped.
    pub fn start_background_threads(&self) -> Result<()> {
        let mut threads = self.0.threads.lock();
        if threads.is_none() {
            self.0.core.pace.set_has_threads(true);
            *threads = Some(Threads::start(&self.0.background)?);
        }
        Ok(())
    }

    /// Runs one step of all the threads' work, and returns whether anything was done. For callers
    /// that start no background threads.
    pub fn run_background(&self) -> Result<bool> {
        self.0.background.step()
    }

    /// Sets when a commit returns, like `innodb_flush_log_at_trx_commit`: 0 at once, 1 when the log
    /// is on disk, 2 when the log is written to its file.
    pub fn set_flush_log_at_commit(&self, mode: u8) {
        self.0.core.journal.set_flush_mode(mode.min(2));
    }

    /// Sets the engine's memory limit to `bytes`, or to the minimum that it needs, and returns the
    /// new limit. Memory is allocated as it is needed; memory beyond a lower limit is freed in the
    /// background. Parts that were set aside when the database was opened keep their size
    /// (`memory`, durability::M3).
    pub fn set_buffer_pool_bytes(&self, bytes: u64) -> u64 {
        let bytes = self.0.core.pool.set_memory_bytes(bytes);
        self.0.background.call();
        bytes
    }

    /// Sets whether changes of rows and of secondary index entries may be pending in memory for a
    /// cold leaf. Pending changes remain so.
    pub fn set_buffering(&self, is_on: bool) {
        self.0.core.leaves.set_buffering(is_on);
    }

    /// Sets the I/O operations per second that the background may use when nothing is urgent.
    pub fn set_io_capacity(&self, operations_per_second: u32) {
        self.0.core.pace.set_io_capacity(operations_per_second.max(1));
    }

    /// Makes the background read all images in turn at this rate, at most one pass a day, to find
    /// damage before a statement needs the image. Damage is reported as a background error. With 0,
    /// the default, it reads none.
    pub fn set_scrub_rate(&self, bytes_per_second: u64) {
        self.0.core.upkeep.set_scrub_rate(bytes_per_second);
        self.0.background.call();
    }

    /// Makes the newest versions of these server keys and of key 1 current. Key 1 encrypts data
    /// that belongs to no table. Requests the versions from the key service, and blocks for I/O if
    /// any is new. Fails with `Key` if the service lacks one.
    pub fn use_keys(&self, ids: &[u32]) -> Result<()> {
        self.0.core.use_keys(ids)
    }

    /// Sets whether to encrypt tables without an encryption option in their definitions. The
    /// background encrypts or decrypts existing tables. Requests these tables' keys from the key
    /// service: fails with `Key`, and changes nothing, if it lacks one.
    pub fn set_encrypt_tables(&self, is_on: bool) -> Result<()> {
        let core = &self.0.core;
        if is_on {
            core.use_keys(&core.keys_by_default())?;
        }
        core.pool.keys().set_closes_tables(is_on);
        self.0.background.call();
        Ok(())
    }

    /// Sets whether the log is encrypted; the log continues in a new file. Fails with `Key` if the
    /// service lacks key 1. Blocks for I/O.
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

    /// Sets how many versions old a page's key must be before the background re-encrypts the page:
    /// 1, the default, re-encrypts it as soon as there is a newer version; 0 never.
    pub fn set_rotate_key_age(&self, versions: u32) {
        self.0.core.pool.keys().set_rotate_age(versions);
        self.0.background.call();
    }

    /// Whether the background still has to check the encryption of pages.
    pub fn is_rotating(&self) -> bool {
        self.0.background.key_rotation.is_due(&self.0.core)
    }

    /// The number of images encrypted or decrypted since startup because keys or settings changed.
    pub fn rotated_images(&self) -> u64 {
        self.0.core.upkeep.rotated_count()
    }

    /// Makes the background request newer key versions at once, and check all pages.
    pub fn rotate_keys(&self) {
        self.0.background.key_rotation.restart();
    }

    /// Creates a table; durable on return, like all changes of the catalog.
    pub fn create_table(&self, spec: &TableSpec) -> Result<Arc<Table>> {
        self.create_table_with(spec, &Constraints::default())
    }

    /// Like [`create_table`](Self::create_table), with a description of the columns, and foreign
    /// key constraints. Fails with `Constraint` if these are invalid, or if the table does not fit
    /// constraints that refer to a table of its name.
    pub fn create_table_with(&self, spec: &TableSpec, constraints: &Constraints) -> Result<Arc<Table>> {
        ddl::create_table(&self.0.core, spec, constraints)
    }

    pub(crate) fn create_defined(&self, def: TableDef) -> Result<Arc<Table>> {
        ddl::create_defined(&self.0.core, def)
    }

    /// Drops a table. The caller must ensure that no statement uses it. Its handles return
    /// `NoSuchTable` from now on, and the background frees its space.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.drop_table_unless(name, Referenced::Ignored)
    }

    /// Like [`drop_table`](Self::drop_table), but fails with `Constraint` if other tables'
    /// references to it forbid the drop.
    pub fn drop_table_unless(&self, name: &str, referenced: Referenced) -> Result<()> {
        ddl::drop_table(&self.0.core, name, referenced)
    }

    /// The number of changes of definitions since startup. Once it has grown, constraints looked up
    /// earlier may be outdated.
    pub fn definition_changes(&self) -> u64 {
        self.0.core.catalog.changes()
    }

    /// Makes generated constraint names begin with the result of `show` for the part of the table's
    /// name after the database. Only the first call has an effect.
    pub fn show_names_with(&self, show: impl Fn(&str) -> String + Send + Sync + 'static) {
        self.0.core.catalog.show_names_with(Box::new(show));
    }

    /// Records the caller's message about a refusal by a constraint for
    /// [`status_text`](Self::status_text), which keeps its first 8 KiB. Neither waits nor does I/O.
    pub fn note_refused_by_constraint(&self, text: &str) {
        let core = &self.0.core;
        core.refusals.note(core.moment(), text);
    }

    /// The constraints whose child is this table, with their current supporting indexes.
    pub fn constraints_of_child(&self, table: &Arc<Table>) -> Vec<ForeignKey> {
        foreign_keys::of_child(&self.0.core.catalog, table)
    }

    /// The constraints whose parent is this table.
    pub fn constraints_of_parent(&self, table: &Arc<Table>) -> Vec<ForeignKey> {
        foreign_keys::of_parent(&self.0.core.catalog, table)
    }

    /// The constraints that a new definition would add to a table, with the indexes that would
    /// support them. Fails with `Constraint` if the table may not have them.
    pub fn constraints_to_add(&self, table: &Arc<Table>, new: &Constraints) -> Result<Vec<ForeignKey>> {
        let _ddl = self.0.core.catalog.lock_ddl();
        foreign_keys::of_definition(&self.0.core.catalog, table, new)
    }

    /// All constraints, sorted by the child's name and their own.
    pub fn constraints(&self) -> Vec<ForeignKey> {
        foreign_keys::all(&self.0.core.catalog)
    }

    /// Renames a table.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        ddl::rename_table(&self.0.core, from, to)
    }

    /// Like [`rename_table`](Self::rename_table), for a caller that repeats a rename after a crash:
    /// succeeds if the table already has the new name.
    pub fn rename_table_again(&self, from: &str, to: &str) -> Result<()> {
        ddl::rename_table_again(&self.0.core, from, to)
    }

    /// Records that the tables whose names begin with `prefix` remain of a larger table, some of
    /// whose rows disappeared without being deleted, as when a partition is dropped. Snapshots
    /// older than this call are refused these tables (`TableChanged`).
    pub fn note_remainders(&self, prefix: &str) {
        ddl::note_remainders(&self.0.core, prefix);
    }

    /// Replaces a table with an empty one and returns the new table. Otherwise like
    /// [`drop_table`](Self::drop_table).
    pub fn truncate_table(&self, name: &str) -> Result<Arc<Table>> {
        self.truncate_table_unless(name, Referenced::Ignored)
    }

    /// Like [`truncate_table`](Self::truncate_table), but fails with `Constraint` if other tables'
    /// references to it forbid that.
    pub fn truncate_table_unless(&self, name: &str, referenced: Referenced) -> Result<Arc<Table>> {
        ddl::truncate_table(&self.0.core, name, referenced)
    }

    /// Gives tables new definitions without changing their rows: all of the tables or none. The
    /// caller must ensure that no statement uses the tables; their handles return `NoSuchTable`
    /// from now on. Blocks for one sync of the log. Fails with `Limit` for an index that does not
    /// exist.
    pub fn alter_tables(&self, alterations: &[Alteration]) -> Result<()> {
        alter::alter_tables(&self.0.core, alterations)
    }

    /// Returns the table with this name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.0.core.catalog.by_name(name)
    }

    /// The posting table of a full-text index, by its position from 0, for
    /// [`Transaction::insert_words`] and the like. Fails with `Limit` if there is no such index.
    pub fn postings(&self, table: &Table, index_no: usize) -> Result<Arc<Table>> {
        self.table(&table.fulltext_index(index_no)?.postings)
    }

    /// Creates an empty posting table, with words of at most `max_word_bytes`, for a full-text
    /// index that a change of the definition of `table` will add
    /// ([`FulltextFrom::Built`](crate::table::FulltextFrom)). Durable on return.
    pub fn new_postings(&self, table: &Table, max_word_bytes: u32) -> Result<NewPostings> {
        NewPostings::new(&self.0.core, table, max_word_bytes)
    }

    /// The quarantined tables, each with the damage found when the database was opened.
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

    /// Begins a transaction. Cheap: the transaction receives an ID when it first writes.
    pub fn begin(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.0.core))
    }

    /// Sets `later`, which is called for two transactions of one deadlock whose sessions are
    /// [known](Transaction::report_waits), and returns the session that must commit after the
    /// other. The other session's transaction is not rolled back, however little work it has done.
    /// If `later` returns `None`, or the sessions are not known, the transaction with the least
    /// work is rolled back. `later` may be called on any thread that requests a lock; it must not
    /// wait, nor use the engine. Only the first call has an effect.
    ///
    /// Without this function, a replica that applies in parallel may repeatedly roll back the
    /// transaction that must commit first: its retry conflicts with the other transaction before
    /// that one has made progress.
    pub fn set_victim_choice(
        &self,
        later: impl Fn(SessionId, SessionId) -> Option<SessionId> + Send + Sync + 'static,
    ) {
        self.0.core.set_victim_choice(later);
    }

    /// Like [`Transaction::check_table`], in a separate transaction, and without comparing entries
    /// with those that a caller computes. If `extended`, reads every large value; otherwise checks
    /// only that its pages exist.
    pub fn check_table(&self, table: &Arc<Table>, extended: bool) -> Result<CheckReport> {
        self.begin().check_table_as(table, extended, None)
    }

    /// Like [`Transaction::check_table`], in a separate transaction.
    pub fn check_table_with(
        &self,
        table: &Arc<Table>,
        expected: &mut ExpectedEntries<'_>,
    ) -> Result<CheckReport> {
        self.begin().check_table(table, expected)
    }

    /// Makes all changes so far part of the database files, so that recovery does not need the log
    /// for them. Blocks for I/O.
    pub fn checkpoint(&self) -> Result<()> {
        self.0.core.checkpoint()
    }

    /// The errors, with their places, that neither stop the engine nor belong to a statement.
    pub fn background_errors(&self) -> Vec<(&'static str, String)> {
        self.0.core.health.background_errors().list()
    }

    /// Sends all [`background_errors`](Self::background_errors), existing and new, to `listener`.
    /// Only the first call has an effect.
    pub fn announce_background_errors_to(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        self.0.core.health.background_errors().announce_to(listener);
    }

    /// Why the engine has stopped, if it has.
    pub fn stopped(&self) -> Option<String> {
        self.0.core.health.reason().map(str::to_owned)
    }

    /// A handle that can stop the database, for code that catches a panic.
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
