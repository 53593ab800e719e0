//! The checkpoint in progress, if any: the epoch that is being written, and whether the checkpoint
//! can still succeed.

use super::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::base::{Epoch, Error};

/// See the module.
#[derive(Default, Debug)]
pub(in crate::pool) struct EpochInWriting {
    /// 0 if no checkpoint is in progress, or if it has failed.
    writing: AtomicU64,
    in_progress: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl EpochInWriting {
    /// The epoch whose pages must be written in their state at the epoch switch.
    pub(in crate::pool) fn writing(&self) -> Option<Epoch> {
        match self.writing.load(Ordering::Acquire) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// Starts a checkpoint of `epoch`, which an epoch switch has ended.
    pub(in crate::pool) fn begin(&self, epoch: Epoch) {
        let another = self.in_progress.swap(true, Ordering::AcqRel);
        assert!(!another, "K1: one checkpoint at a time");
        self.writing.store(epoch.0, Ordering::Release);
    }

    /// Marks the checkpoint as failed: from now on no page is flushed for it before a change. Keeps
    /// the first reason.
    pub(in crate::pool) fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.writing.store(0, Ordering::Release);
    }

    /// The reason why the checkpoint failed, unless it has not failed or the reason was already
    /// taken.
    pub(in crate::pool) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    /// From now on no page is flushed before a change.
    pub(in crate::pool) fn stop(&self) {
        self.writing.store(0, Ordering::Release);
    }

    /// Ends the checkpoint. The next checkpoint may begin.
    pub(in crate::pool) fn end(&self) {
        self.stop();
        *self.failure.lock() = None;
        self.in_progress.store(false, Ordering::Release);
    }
}
