//! The view of one transaction: its own changes, and those of other transactions in its snapshot.

use super::versions::{Reader, Versions};
use crate::base::{sound, TableId, TxnId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module documentation. Shared by a transaction and its cursors.
#[derive(Debug)]
pub struct ReadView {
    reader: Reader,
    /// The transaction's ID; 0 before it has written anything.
    own: AtomicU64,
    /// The ID under which it has written temporary tables; 0 before it has written any.
    temporary: AtomicU64,
}

impl ReadView {
    /// Creates the view of a new transaction; its snapshot is not open.
    pub fn new(versions: &Versions) -> Self {
        Self { reader: versions.reader(), own: AtomicU64::new(0), temporary: AtomicU64::new(0) }
    }

    /// Makes the changes of `txn` visible as the transaction's own.
    pub fn belong_to(&self, txn: TxnId) {
        self.own.store(txn.0, Relaxed);
    }

    /// Makes the changes of `txn` to temporary tables visible as the transaction's own.
    pub fn belong_to_temporary(&self, txn: TxnId) {
        self.temporary.store(txn.0, Relaxed);
    }

    /// Makes visible the changes that `other` sees as its own.
    pub fn belong_as(&self, other: &Self) {
        self.own.store(other.own.load(Relaxed), Relaxed);
        self.temporary.store(other.temporary.load(Relaxed), Relaxed);
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

    /// Ends the transaction: the view has no own changes any more.
    pub fn end(&self) {
        self.own.store(0, Relaxed);
        self.temporary.store(0, Relaxed);
        if sound!(true, "snapshot: keep it for the next transaction") {
            self.reader.close();
        }
    }

    /// Returns the stamp of the snapshot, if it is open.
    pub fn stamp(&self) -> Option<u64> {
        self.reader.read_stamp()
    }

    /// Returns its snapshot reader.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the ID under which the transaction writes this table, once it has written a table of
    /// this kind (temporary or not).
    pub fn own_of(&self, table: TableId) -> Option<TxnId> {
        let own = if table.is_temporary() { &self.temporary } else { &self.own };
        let own = own.load(Relaxed);
        (own != 0).then_some(TxnId(own))
    }

    /// Returns `txn` if it is the transaction itself.
    #[inline]
    pub fn own_if(&self, txn: TxnId) -> Option<TxnId> {
        let is_own = [&self.own, &self.temporary].iter().any(|own| own.load(Relaxed) == txn.0);
        is_own.then_some(txn)
    }
}
