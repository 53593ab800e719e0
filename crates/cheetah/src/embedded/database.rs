//! [`Database`].

use crate::base::{Config, Error, Result};
use crate::db::{Db, Env, Transaction};
use crate::table::{Table, TableSpec};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use std::path::Path;
use std::sync::Arc;

/// An open database: a directory with tables.
///
/// Background threads write pages, collect garbage and make checkpoints until it is closed or
/// dropped. Only one process at a time can have a directory open. All methods may be called by
/// several threads.
#[derive(Debug)]
pub struct Database {
    db: Db,
    is_closed: bool,
}

impl Database {
    /// Opens the database in the directory `path` with default settings: 128 MiB of memory, and
    /// commits that are durable when they return. Creates the directory and the database if they do
    /// not exist. After a crash, recovers all committed transactions and no others.
    ///
    /// Blocks, and does I/O. Fails with `Io`; with `Unsupported` if another process has the
    /// database open, or a newer version of the crate wrote it; and with `Corruption`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Config::default())
    }

    /// Like [`open`](Self::open), with other settings. The sizes of pages and segments are fixed
    /// when the database is created.
    pub fn open_with(path: impl AsRef<Path>, config: Config) -> Result<Self> {
        let path = path.as_ref();
        let disk =
            PosixDisk::open(path).map_err(|error| Error::io("open", path.display().to_string(), error))?;
        let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
        let db = Db::open(env, config)?;
        db.start_background_threads()?;
        Ok(Self { db, is_closed: false })
    }

    /// Creates an empty table; durable on return. Fails with `TableExists` if a table has this
    /// name, and with `Limit` for too many indexes or too long keys.
    pub fn create_table(&self, spec: &TableSpec) -> Result<Arc<Table>> {
        self.db.create_table(spec)
    }

    /// Returns the table with this name. Fails with `NoSuchTable` if there is none. Does no I/O.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.db.table(name)
    }

    /// Returns the names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.db.table_names()
    }

    /// Drops a table; durable on return. Its handles return `NoSuchTable` from then on, and the
    /// background frees its space.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.db.drop_table(name)
    }

    /// Renames a table; durable on return.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.db.rename_table(from, to)
    }

    /// Begins a transaction. After a commit or a rollback the handle can be used for the next
    /// transaction. Neither blocks nor does I/O.
    pub fn begin(&self) -> Transaction {
        self.db.begin()
    }

    /// Returns the engine's full interface: sizes, status, backups, loads, checks.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Ends the threads and makes a checkpoint, so that the next `open` has nothing to recover.
    /// Transactions that are still open are rolled back by the next `open`. Dropping the database
    /// does the same, and ignores errors: committed transactions are safe in any case.
    pub fn close(mut self) -> Result<()> {
        self.is_closed = true;
        self.db.close()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.is_closed {
            // The next startup redoes what a failed checkpoint did not write.
            let _ = self.db.close();
        }
    }
}
