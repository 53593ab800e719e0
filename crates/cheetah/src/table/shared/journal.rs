//! The log, as used by code that makes changes.
//!
//! Invariants
//!   I1  A log record is appended inside the mini-transaction that makes the change it describes.
//!       So the log position of an epoch switch separates the changes in the epoch from later
//!       changes.
//!   I2  Redo appends nothing: its records are already in the log.

use crate::base::{sound, Health, Lsn, Result};
use crate::log::{FlushMode, Log};
use crate::pool::MiniTransaction;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

pub(crate) struct Journal {
    /// Absent during redo (I2).
    log: Arc<OnceLock<Log>>,
    health: Arc<Health>,
    /// Like `innodb_flush_log_at_trx_commit`.
    flush_mode: AtomicU8,
}

impl Journal {
    /// Has no log until it is [started](Self::start). `log` is shared with the checkpoints.
    pub(crate) fn new(log: Arc<OnceLock<Log>>, health: Arc<Health>) -> Self {
        Self { log, health, flush_mode: AtomicU8::new(1) }
    }

    pub(crate) fn start(&self, log: Log) {
        let _ = self.log.set(log);
    }

    /// `None` during redo.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }

    /// Sets what a commit waits for: 0 nothing, 1 a sync, 2 a write.
    pub(crate) fn set_flush_mode(&self, mode: u8) {
        self.flush_mode.store(mode, Relaxed);
    }

    /// 0 during redo.
    pub(crate) fn end(&self) -> Lsn {
        self.log.get().map_or(Lsn(0), Log::end)
    }

    /// Returns the record's end (I1, I2). An error stops the engine in the middle of the change.
    pub(crate) fn append(&self, _mtr: &MiniTransaction<'_>, record: &[u8]) -> Result<Lsn> {
        let Some(log) = self.log.get() else { return Ok(Lsn(0)) };
        let (&kind, body) = record.split_first().expect("a log record has a kind");
        Ok(self.health.must("appending to the log", log.append(kind, body))?.end)
    }

    /// Makes the log durable up to `lsn`, as far as the flush mode requires at a commit.
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

    /// Like [`flush_at_commit`](Self::flush_at_commit), if another component repeats the commit
    /// after a power cut: it need not be durable. Mode 2 still writes it, as promised.
    pub(crate) fn write_at_commit(&self, lsn: Lsn) -> Result<()> {
        match (self.log.get(), self.flush_mode.load(Relaxed)) {
            (Some(log), 2) => log.commit(lsn, FlushMode::Write),
            _ => self.health.check(),
        }
    }

    /// Makes the log durable up to `lsn`, in every flush mode.
    pub(crate) fn sync(&self, lsn: Lsn) -> Result<()> {
        self.log.get().map_or(Ok(()), |log| log.sync_to(lsn))
    }
}
