//! Startup as a boundary: which transactions began or ended before it.

use crate::base::TxnId;
use crate::txn::Versions;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Smaller transaction IDs and commit stamps are from before startup.
#[derive(Default, Debug)]
pub(crate) struct Startup {
    first_txn: AtomicU64,
    first_stamp: AtomicU64,
    is_over: AtomicBool,
}

impl Startup {
    /// Notes that everything so far happened before startup.
    pub(crate) fn note(&self, versions: &Versions) {
        self.first_txn.store(versions.next_txn().0, Relaxed);
        self.first_stamp.store(versions.next_stamp(), Relaxed);
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    pub(crate) fn began_before(&self, txn: TxnId) -> bool {
        txn.0 < self.first_txn.load(Relaxed)
    }

    pub(crate) fn ended_before(&self, stamp: u64) -> bool {
        stamp < self.first_stamp.load(Relaxed)
    }
}
