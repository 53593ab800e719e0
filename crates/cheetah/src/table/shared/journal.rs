//! The log, as those who change things see it.
//!
//! Invariants
//!   I1  A log record is appended inside the mini-transaction that makes the change it describes,
//!       so the position of an epoch switch in the log separates what its epoch has from what it
//!       has not.
//!   I2  During redo nothing is appended: the records are there already.

use crate::base::{sound, Health, Lsn, Result};
use crate::log::{FlushMode, Log};
use crate::pool::MiniTransaction;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// See the module.
pub(crate) struct Journal {
    /// Absent during redo (I2).
    log: Arc<OnceLock<Log>>,
    health: Arc<Health>,
    /// As `innodb_flush_log_at_trx_commit`.
    flush_mode: AtomicU8,
}

impl Journal {
    /// Without a log, until it [starts](Self::start). `log` is shared with the checkpoints.
    pub(crate) fn new(log: Arc<OnceLock<Log>>, health: Arc<Health>) -> Self {
        Self { log, health, flush_mode: AtomicU8::new(1) }
    }

    /// From now on changes are logged.
    pub(crate) fn start(&self, log: Log) {
        let _ = self.log.set(log);
    }

    /// The log; none during redo.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }

    /// The step for which a commit waits: 0 none, 1 a sync, 2 a write.
    pub(crate) fn set_flush_mode(&self, mode: u8) {
        self.flush_mode.store(mode, Relaxed);
    }

    /// End of the log; 0 during redo.
    pub(crate) fn end(&self) -> Lsn {
        self.log.get().map_or(Lsn(0), Log::end)
    }

    /// Appends a record (I1, I2); returns where it ends. An error stops the engine: it leaves a
    /// mini-transaction half done.
    pub(crate) fn append(&self, _mtr: &MiniTransaction<'_>, record: &[u8]) -> Result<Lsn> {
        let Some(log) = self.log.get() else { return Ok(Lsn(0)) };
        let (&kind, body) = record.split_first().expect("a log record has a kind");
        Ok(self.health.must("appending to the log", log.append(kind, body))?.end)
    }

    /// Makes the log durable up to `lsn` as far as the flush mode asks for it at a commit.
    pub(crate) fn flush_at_commit(&self, lsn: Lsn) -> Result<()> {
        if !sound!(true, "txn: acknowledge before the log is durable") {
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
    pub(crate) fn sync(&self, lsn: Lsn) -> Result<()> {
        self.log.get().map_or(Ok(()), |log| log.sync_to(lsn))
    }
}
