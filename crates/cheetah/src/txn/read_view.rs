//! What one transaction sees: its own changes, and what its snapshot has of others.

use super::versions::{Reader, Versions};
use crate::base::{planted, TxnId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module. Shared by a transaction and its cursors.
#[derive(Debug)]
pub struct ReadView {
    reader: Reader,
    /// The transaction's number; 0 before it has written something.
    own: AtomicU64,
}

impl ReadView {
    /// The view of a new transaction; its snapshot is not open.
    pub fn new(versions: &Versions) -> Self {
        Self { reader: versions.reader(), own: AtomicU64::new(0) }
    }

    /// From now on the changes of `txn` are seen.
    pub fn belong_to(&self, txn: TxnId) {
        self.own.store(txn.0, Relaxed);
    }

    /// Opens the snapshot, unless it is open.
    pub fn open(&self) {
        if self.reader.read_stamp().is_none() {
            self.reader.open();
        }
    }

    /// Closes the snapshot.
    pub fn close(&self) {
        self.reader.close();
    }

    /// Ends the transaction: nothing is its own any more.
    pub fn end(&self) {
        self.own.store(0, Relaxed);
        if !planted::is_on("snapshot: keep it for the next transaction") {
            self.reader.close();
        }
    }

    /// The stamp of the snapshot, when that is open.
    pub fn stamp(&self) -> Option<u64> {
        self.reader.read_stamp()
    }

    /// Its snapshot.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The transaction's number, once it has written something.
    pub fn own(&self) -> Option<TxnId> {
        let own = self.own.load(Relaxed);
        (own != 0).then_some(TxnId(own))
    }
}
