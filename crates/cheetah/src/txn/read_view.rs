//! The view of one transaction: its own changes, and those of others in its snapshot.

use super::versions::{Reader, Versions};
use crate::base::{sound, TableId, TxnId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module. Shared by a transaction and its cursors.
#[derive(Debug)]
pub struct ReadView {
    reader: Reader,
    /// The transaction's number; 0 before it has written something.
    own: AtomicU64,
    /// The number under which it has written temporary tables; 0 before that.
    temporary: AtomicU64,
}

impl ReadView {
    /// The view of a new transaction; its snapshot is not open.
    pub fn new(versions: &Versions) -> Self {
        Self { reader: versions.reader(), own: AtomicU64::new(0), temporary: AtomicU64::new(0) }
    }

    /// From now on the changes of `txn` are seen.
    pub fn belong_to(&self, txn: TxnId) {
        self.own.store(txn.0, Relaxed);
    }

    /// From now on the changes of `txn`, which are of temporary tables, are seen too.
    pub fn belong_to_temporary(&self, txn: TxnId) {
        self.temporary.store(txn.0, Relaxed);
    }

    /// Sees as its own what `other` does.
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

    /// Ends the transaction: nothing is its own any more.
    pub fn end(&self) {
        self.own.store(0, Relaxed);
        self.temporary.store(0, Relaxed);
        if sound!(true, "snapshot: keep it for the next transaction") {
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

    /// The number under which the transaction writes this table, once it has written one of its
    /// kind.
    pub fn own_of(&self, table: TableId) -> Option<TxnId> {
        let own = if table.is_temporary() { &self.temporary } else { &self.own };
        let own = own.load(Relaxed);
        (own != 0).then_some(TxnId(own))
    }

    /// `txn`, if that is the transaction's.
    #[inline]
    pub fn own_if(&self, txn: TxnId) -> Option<TxnId> {
        let is_own = [&self.own, &self.temporary].iter().any(|own| own.load(Relaxed) == txn.0);
        is_own.then_some(txn)
    }
}
