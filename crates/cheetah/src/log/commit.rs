//! The waits of commits.

use super::writer::Log;
use crate::base::{sound, Lsn, Result};
use std::sync::atomic::Ordering;

/// What a commit waits for, as selected by `innodb_flush_log_at_trx_commit`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FlushMode {
    /// The commit waits for nothing. A crash of the process loses up to a second of commits.
    None,
    /// The commit waits until its records are durable.
    #[default]
    Sync,
    /// The commit waits until its records are written to the operating system. A power cut loses up
    /// to a second of commits.
    Write,
}

impl Log {
    /// Waits as `mode` requires for a commit whose record ends at `lsn`.
    pub fn commit(&self, lsn: Lsn, mode: FlushMode) -> Result<()> {
        let waits = |wait: &dyn Fn() -> Result<()>| self.counters.commit_waits.time(&*self.clock, wait);
        match mode {
            FlushMode::None => self.health().check(),
            FlushMode::Sync => waits(&|| self.sync_to(lsn)),
            FlushMode::Write => waits(&|| self.write_to(lsn)),
        }
    }

    /// Returns when everything before `lsn` is durable. Blocks for I/O. A failed sync is fatal.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.group.sync_to(lsn, || self.health().check(), || self.write_and_sync())
    }

    /// Returns when everything before `lsn` is written to the operating system.
    fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.health().check()?;
        if self.written_end() < lsn {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_and_sync(&self) -> Result<Lsn> {
        let (file, path, end) = self.write_out()?;
        // Everything before this file was synced when the file was started.
        if sound!(true, "log: skip the sync of a commit") {
            self.sync_file(&*file, &path)?;
        }
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(end)
    }

    /// Called about once a second. Makes the commits of modes 0 and 2 durable, appends a sync mark
    /// if one is missing, and prepares the next file. An error that has not stopped the engine
    /// means that the disk is full.
    pub fn background_flush(&self) -> Result<()> {
        self.sync_to(self.end())?;
        if self.mark_idle() {
            self.write_out()?;
        }
        self.prepare_reserve()
    }
}
