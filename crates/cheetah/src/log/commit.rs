//! The waits of commits.

use super::writer::Log;
use crate::base::{sound, Lsn, Result};
use std::sync::atomic::Ordering;

/// The event for which a commit waits: the values of `innodb_flush_log_at_trx_commit`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FlushMode {
    /// Nothing. A crash of the process loses up to a second.
    None,
    /// That its records are durable.
    #[default]
    Sync,
    /// That its records are with the operating system. A power cut loses up to a second.
    Write,
}

impl Log {
    /// Waits as a commit whose record ends at `lsn` has to in this mode.
    pub fn commit(&self, lsn: Lsn, mode: FlushMode) -> Result<()> {
        let waits = |wait: &dyn Fn() -> Result<()>| self.counters.commit_waits.time(&*self.clock, wait);
        match mode {
            FlushMode::None => self.health().check(),
            FlushMode::Sync => waits(&|| self.sync_to(lsn)),
            FlushMode::Write => waits(&|| self.write_to(lsn)),
        }
    }

    /// Returns when everything before `lsn` is durable. Blocks for I/O. Fatal when a sync fails.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.group.sync_to(lsn, || self.health().check(), || self.write_and_sync())
    }

    /// Returns when everything before `lsn` is with the operating system.
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

    /// Called about once a second: makes everything durable that modes 0 and 2 have left, says in
    /// the log that it is, and prepares a file for when the current one is full. Errors other than
    /// Fatal only mean that the disk is full.
    pub fn background_flush(&self) -> Result<()> {
        self.sync_to(self.end())?;
        if self.mark_idle() {
            self.write_out()?;
        }
        self.prepare_reserve()
    }
}
