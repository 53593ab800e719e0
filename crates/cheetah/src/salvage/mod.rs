//! Salvage: copies what can be read of a damaged database into a new one.
//!
//! The damaged database is opened through a disk that writes elsewhere, as far as that goes: with
//! its log, or at its last checkpoint (`opening`). Each of its tables is created anew, with all
//! that its caller has put into its definition, and gets the rows that can be read (`rows`,
//! `copying`). Secondary indexes come disabled: ENABLE KEYS builds them from the rows.
//!
//! Invariants
//!   S1  Nothing is written to the damaged database (I1 of [`cheetah_io::overlay`]).
//!   S2  A row that is copied is one that was committed, whole: a version that the reader's
//!       snapshot sees, with all its large values. All else is left out and counted. Exception: a
//!       table that an earlier startup has quarantined may have rows of transactions that were
//!       rolled back; the report says so.
//!   S3  Rows of undamaged leaves all come, whatever is damaged beside them. Exception: a table is
//!       not copied whose definition is lost, or that of the postings of its full-text indexes.
//!   S4  Every loss is told of: a report that finds nothing lost means that every committed row was
//!       copied.
//!   S5  With a key service all that is written is closed, whether the damaged database was or not:
//!       the copy (but for tables that say no), sort runs, and files of the salvage itself (E16).
//!       Without the keys that it needs the salvage ends at once: an attempt with less would lose
//!       what the keys bring back.
//! docs/developers/decisions/0051-salvage.md says why.

mod copying;
mod opening;
mod rows;

use crate::base::{Config, Error, Result};
use crate::db::{lock_directory, Db, Env, LOCK_FILE};
use crate::table::shared::parts::Core;
use crate::tree::Gap;
use cheetah_io::{Clock, Disk};
use std::sync::Arc;

/// The directories of a salvage.
#[derive(Clone)]
pub struct Disks {
    /// The damaged database; nothing is written there.
    pub damaged: Arc<dyn Disk>,
    /// Room for files of the salvage itself, which are gone at its end.
    pub scratch: Arc<dyn Disk>,
    /// An empty directory: the new database.
    pub new: Arc<dyn Disk>,
}

/// The outcome for a table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TableReport {
    /// Its name.
    pub name: String,
    /// Rows that the new table has.
    pub rows: u64,
    /// Rows that were there and could not be copied.
    pub rows_lost: u64,
    /// Why the first one could not.
    pub row_lost_why: String,
    /// Keys of which nothing could be read, in their order.
    pub gaps: Vec<Gap>,
    /// Changes that were in the log or in saved changes and could not be made, at least this
    /// number: rows may be as before these.
    pub changes_lost: u64,
    /// Why the first one could not.
    pub change_lost_why: String,
    /// Why the table was quarantined by an earlier startup; its rows may be older ones, or of
    /// transactions that were rolled back.
    pub quarantine: Option<String>,
    /// Why the copy itself has not come to its end.
    pub failure: Option<String>,
    /// The number of its secondary indexes, which are disabled in the new table.
    pub disabled_indexes: usize,
    /// Whether postings of its full-text indexes are lost.
    pub lacks_postings: bool,
}

impl TableReport {
    /// Whether all its committed rows were copied.
    pub fn is_whole(&self) -> bool {
        self.rows_lost == 0
            && self.gaps.is_empty()
            && self.changes_lost == 0
            && self.quarantine.is_none()
            && self.failure.is_none()
            && !self.lacks_postings
    }
}

/// The outcome of a salvage.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Each table, by name.
    pub tables: Vec<TableReport>,
    /// The losses of the database as a whole.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether nothing was lost.
    pub fn is_whole(&self) -> bool {
        self.notes.is_empty() && self.tables.iter().all(TableReport::is_whole)
    }
}

/// Copies all that can be read into a new database, with the sizes and memory of `config`; `heard`
/// gets the report of each table when it is done. Blocks for I/O. `Unsupported` when the new
/// directory is not empty, when somebody has the damaged database open, or when a newer version
/// wrote it; `Corruption` when nothing of it can be opened; other errors are those of the new
/// database.
pub fn salvage(
    disks: &Disks,
    clock: &Arc<dyn Clock>,
    config: &Config,
    heard: &mut dyn FnMut(&TableReport),
) -> Result<Report> {
    let files = disks.new.list("").map_err(|error| Error::io("list", "the new directory", error))?;
    if let Some(file) = files.first() {
        let detail = "the directory for the new database is not empty; name one that does not exist";
        return Err(Error::Unsupported { place: file.clone(), detail: detail.into() });
    }
    let names = disks.damaged.list("").map_err(|error| Error::io("list", "the directory", error))?;
    if !names.iter().any(|name| name == "CONTROL" || name == "seg" || name.starts_with("map-")) {
        let detail = "the directory holds no Cheetah database";
        return Err(Error::Unsupported { place: "CONTROL".into(), detail: detail.into() });
    }
    let is_locked = names.iter().any(|name| name == LOCK_FILE);
    let _lock = is_locked.then(|| lock_directory(&*disks.damaged)).transpose()?;
    let is_closed = config.keys.is_there();
    let config = Config { encrypts_tables: is_closed, encrypts_log: is_closed, ..config.clone() };
    let core = opening::open(disks, clock, &config)?;
    let config =
        Config { page_bytes: core.config.page_bytes, segment_bytes: core.config.segment_bytes, ..config };
    let env = Env { disk: Arc::clone(&disks.new), clock: Arc::clone(clock) };
    let new = Db::open(env, config)?;
    let tables = copying::copy_all(&core, &new, heard)?;
    new.close()?;
    Ok(Report { tables, notes: notes(&core) })
}

fn notes(core: &Core) -> Vec<String> {
    core.losses.as_ref().map_or_else(Vec::new, |losses| losses.notes())
}
