//! The state of purge between its steps: its buffers and its progress.
//!
//! Locks     `buffers`, over I/O.

use super::interval_state::IntervalGc;
use crate::table::rows::writer::Writer;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

/// The progress of purge; see [`super::purge`].
#[derive(Default, Debug)]
pub(crate) struct Purge {
    /// Held by the thread that purges (I2).
    pub(super) buffers: Mutex<Buffers>,
    /// Transactions that ended with stamps up to this one may be purged (I5).
    pub(super) horizon: AtomicU64,
    /// Purge rests until then after an error, so as not to read a damaged page at each commit.
    pub(super) rests_until_ns: AtomicU64,
}

#[derive(Default, Debug)]
pub(super) struct Buffers {
    pub(super) record: Vec<u8>,
    pub(super) writer: Writer,
    pub(super) between: IntervalGc,
}

impl Purge {
    /// Transactions that ended with larger stamps have not been purged.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon.load(Acquire)
    }

    /// Keeps purge from changing any tree while the guard is held. Waits for a step in progress.
    pub(crate) fn pause(&self) -> impl Sized + '_ {
        self.buffers.lock()
    }
}

pub(in crate::table) struct Budget {
    pub(in crate::table) records: usize,
}

impl Budget {
    pub(in crate::table) fn take_one(&mut self) -> bool {
        let is_left = self.records > 0;
        self.records = self.records.saturating_sub(1);
        is_left
    }
}
