//! Salvage: copies what can be read of a damaged database into a new one.
//!
//! The damaged database is opened as completely as possible, with its log, or at its last
//! checkpoint, through a disk that writes elsewhere (`opening`). Each of its tables is created
//! again with its full definition, and gets the rows that can be read (`rows`, `copying`).
//! Secondary indexes are created disabled: ENABLE KEYS builds them from the rows.
//!
//! Invariants
//!   S1  Nothing is written to the damaged database (I1 of [`cheetah_io::overlay`]).
//!   S2  A copied row is a committed and complete one: a version that the reader's snapshot sees,
//!       with all its large values. All other rows are left out and counted. Exception: a table
//!       that an earlier startup quarantined may have rows of transactions that were rolled back;
//!       the report says so.
//!   S3  All rows of undamaged leaves are copied, whatever else is damaged. Exception: a table is
//!       not copied if its definition, or that of the postings of its full-text indexes, is lost.
//!   S4  Every loss is reported: if the report contains no loss, every committed row was copied.
//!   S5  With a key service everything that is written is encrypted, whether or not the damaged
//!       database was: the copy (except tables defined as unencrypted), sort runs, and files of the
//!       salvage itself (E16). Without a key that it needs the salvage ends at once: continuing
//!       would lose data that the key can recover.
//!
//! docs/developers/decisions/0051-salvage.md gives the reasons.

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
    /// The damaged database, to which nothing is written.
    pub damaged: Arc<dyn Disk>,
    /// A directory for temporary files, which are removed at the end.
    pub scratch: Arc<dyn Disk>,
    /// An empty directory for the new database.
    pub new: Arc<dyn Disk>,
}

/// The result for one table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TableReport {
    /// Its name.
    pub name: String,
    /// The number of rows in the new table.
    pub rows: u64,
    /// The number of existing rows that could not be copied.
    pub rows_lost: u64,
    /// Why the first of these rows could not be copied.
    pub row_lost_why: String,
    /// Ranges of keys in which nothing could be read, in order.
    pub gaps: Vec<Gap>,
    /// At least this number of changes in the log or in change files could not be applied: rows may
    /// be as they were before them.
    pub changes_lost: u64,
    /// Why the first of these changes could not be applied.
    pub change_lost_why: String,
    /// Why an earlier startup quarantined the table; its rows may be older versions, or rows of
    /// transactions that were rolled back.
    pub quarantine: Option<String>,
    /// Why the copy was not completed.
    pub failure: Option<String>,
    /// The number of its secondary indexes, which are disabled in the new table.
    pub disabled_indexes: usize,
    /// Whether postings of its full-text indexes are lost.
    pub lacks_postings: bool,
}

impl TableReport {
    /// Returns whether all its committed rows were copied.
    pub fn is_whole(&self) -> bool {
        self.rows_lost == 0
            && self.gaps.is_empty()
            && self.changes_lost == 0
            && self.quarantine.is_none()
            && self.failure.is_none()
            && !self.lacks_postings
    }
}

/// The result of a salvage.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// The tables, in order of name.
    pub tables: Vec<TableReport>,
    /// The losses that concern the whole database.
    pub notes: Vec<String>,
}

impl Report {
    /// Returns whether nothing was lost.
    pub fn is_whole(&self) -> bool {
        self.notes.is_empty() && self.tables.iter().all(TableReport::is_whole)
    }
}

/// Copies everything that can be read into a new database, with the sizes and memory of `config`.
/// Passes each table's report to `heard` when the table is done. Blocks for I/O. Fails with
/// `Unsupported` if the new directory is not empty, if another process has the damaged database
/// open, or if a newer version wrote it; and with `Corruption` if no part of it can be opened.
/// Other errors are those of the new database.
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
