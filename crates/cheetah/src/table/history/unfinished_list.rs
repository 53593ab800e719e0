//! Rollbacks left to the background, and their errors. [`super::unfinished`] works on them.

use crate::base::TxnId;
use crate::table::rows::writer::Writer;
use crate::txn::{Listed, Owner, Phase, Slot};
use parking_lot::Mutex;
use std::sync::Arc;

/// Delay before a failed rollback is retried.
const REST_NS: u64 = 1_000_000_000;

/// See [`super::unfinished`].
#[derive(Default)]
pub(crate) struct Unfinished {
    pub(super) list: Mutex<Vec<Arc<Rest>>>,
    /// Belongs to the thread that works on them (I2).
    pub(super) writer: Mutex<Writer>,
}

/// An unfinished rollback, and the locks of its transaction.
pub(super) struct Rest {
    pub(super) slot: Arc<Slot>,
    pub(super) listed: Listed,
    failed: Mutex<Option<Failure>>,
    /// Startup found the transaction.
    pub(super) is_found: bool,
}

struct Failure {
    reason: String,
    retry_ns: u64,
}

impl Rest {
    pub(super) fn new(slot: Arc<Slot>, listed: Listed, is_found: bool) -> Self {
        listed.set_phase(Phase::RollingBack);
        Self { slot, listed, failed: Mutex::default(), is_found }
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.failed.lock().as_ref().is_none_or(|failure| failure.retry_ns <= now_ns)
    }

    pub(super) fn fail(&self, now_ns: u64, reason: String) {
        *self.failed.lock() = Some(Failure { reason, retry_ns: now_ns + REST_NS });
    }
}

impl Unfinished {
    pub(crate) fn rollbacks_count(&self) -> usize {
        self.list.lock().len()
    }

    /// A rollback of one of `owners` that met an error, and this error.
    pub(crate) fn failed_among(&self, owners: &[Owner]) -> Option<(TxnId, String)> {
        let list = self.list.lock();
        list.iter().filter(|rest| owners.contains(&rest.listed.owner())).find_map(|rest| {
            let failed = rest.failed.lock();
            failed.as_ref().map(|failure| (rest.slot.txn(), failure.reason.clone()))
        })
    }
}
