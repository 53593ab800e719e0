//! Requests: the objects that can be locked, what to do about a conflict, and the answers of the
//! lock table. Requests are made in [`super::acquire`].

use super::key::{KeyBytes, KeySpan};
use super::modes::{LockMode, TableMode};
use super::pending_lock::PendingLock;
use crate::base::hash::hash_key;
use crate::base::{TableId, TreeId};
use std::ops::Bound;

/// A range of keys: its low and its high bound. Without a high bound, the range extends to the
/// supremum.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The object to lock, and the requested mode.
#[derive(Clone, Copy, Debug)]
pub enum Lock<'a> {
    /// A table.
    Table(TableId, TableMode),
    /// One record, and not the gap before it.
    Record {
        /// The index.
        tree: TreeId,
        /// The record's key, as stored there.
        key: &'a [u8],
        /// The mode.
        mode: LockMode,
    },
    /// A record and the range that a scan has passed on the way to it, in which no other owner may
    /// insert a record. The range contains the key, and merges with the adjacent range that the
    /// scan has already locked.
    NextKey {
        /// The index.
        tree: TreeId,
        /// The range from the scan's position to the record, in either direction.
        range: KeyRange<'a>,
        /// The record's key.
        key: &'a [u8],
        /// The mode.
        mode: LockMode,
    },
    /// A range in which no other owner may insert a record; records in it are not locked. Always
    /// granted. The mode is for listings.
    Gap {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// The mode.
        mode: LockMode,
    },
    /// Like [`Gap`](Self::Gap), but with its records, all of which are deleted, or the owner's own.
    /// Merges with the ranges that a scan locks through [`NextKey`](Self::NextKey) before and after
    /// it. Always granted, but only for the gap where other owners hold keys in it.
    Range {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// The mode.
        mode: LockMode,
    },
    /// The intention to insert a record with this key. Waits for other owners' ranges that contain
    /// the key, blocks no other request, and is not kept: after a wait, it must be requested again.
    InsertIntention {
        /// The index.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
    },
}

/// What to do about a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Queue the request.
    Queue {
        /// The number of undo records that the owner has written. Together with its locks, they
        /// measure how much work a deadlock's victim would lose.
        undo_records_count: u64,
    },
    /// Refuse the request: for NOWAIT and SKIP LOCKED.
    Never,
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// The lock is granted, and the owner did not already hold it in this mode.
    Granted,
    /// The owner already held the lock, or a stronger one.
    AlreadyHeld,
    /// The request is queued.
    Wait(PendingLock),
    /// Another owner blocks a request that does not wait.
    Refused,
}

/// The object of a queue. Records are identified by the hash of tree and key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum QueueKey {
    Table(TableId),
    Row(TreeId, u64),
}

/// Requests for gaps have no variant, because they are always granted.
#[derive(Clone, Debug)]
pub(super) enum RowWant {
    Record(LockMode),
    /// The record, and the range that ends or begins at it.
    NextKey(LockMode, KeySpan),
    Insert,
}

#[derive(Clone, Debug)]
pub(super) struct RowRequest {
    pub(super) tree: TreeId,
    pub(super) hash: u64,
    pub(super) key: KeyBytes,
    pub(super) want: RowWant,
}

impl RowRequest {
    pub(super) fn place(&self) -> QueueKey {
        QueueKey::Row(self.tree, self.hash)
    }

    pub(super) fn record_mode(&self) -> Option<LockMode> {
        match self.want {
            RowWant::Record(mode) | RowWant::NextKey(mode, _) => Some(mode),
            RowWant::Insert => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Want {
    Table(TableId, TableMode),
    Row(RowRequest),
}

impl Want {
    pub(super) fn place(&self) -> QueueKey {
        match self {
            Want::Table(table, _) => QueueKey::Table(*table),
            Want::Row(request) => request.place(),
        }
    }
}

/// Returns the part of a request that other owners can block; `None` for ranges without records.
pub(super) fn wanted(lock: Lock<'_>) -> Option<Want> {
    let row = |tree, key, want| {
        Want::Row(RowRequest { tree, hash: hash_key(tree.0, key), key: KeyBytes::new(key), want })
    };
    Some(match lock {
        Lock::Gap { .. } | Lock::Range { .. } => return None,
        Lock::Table(table, mode) => Want::Table(table, mode),
        Lock::Record { tree, key, mode } => row(tree, key, RowWant::Record(mode)),
        Lock::InsertIntention { tree, key } => row(tree, key, RowWant::Insert),
        Lock::NextKey { tree, range, key, mode } => {
            let span = KeySpan::new(range);
            debug_assert!(span.contains(key), "{range:?} holds its record {key:?}");
            row(tree, key, RowWant::NextKey(mode, span))
        }
    })
}
