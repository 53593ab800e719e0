//! Requests: the objects that can be locked, the ways to meet a conflict, and the answers of the
//! lock table. They are made in [`super::acquire`].

use super::key::{KeyBytes, KeySpan};
use super::modes::{LockMode, TableMode};
use super::pending_lock::PendingLock;
use crate::base::hash::hash_key;
use crate::base::{TableId, TreeId};
use std::ops::Bound;

/// A range of keys: its low and its high bound. Without a high bound it reaches to the supremum.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The object to lock, and how.
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
    /// A record and the range that a scan has passed to get to it: nobody puts a record there. The
    /// range holds the key and touches what the scan has locked already; it becomes one with that.
    NextKey {
        /// The index.
        tree: TreeId,
        /// From where the scan was up to the record, both ways.
        range: KeyRange<'a>,
        /// The record's key.
        key: &'a [u8],
        /// The mode.
        mode: LockMode,
    },
    /// A range in which nobody puts a record; records in it are not locked. Always granted. The
    /// mode is for listings.
    Gap {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// The mode.
        mode: LockMode,
    },
    /// The same, with its records: all that there are in it are deleted, or the owner's own.
    /// Becomes one with what a scan locks by [`NextKey`](Self::NextKey) before and behind it.
    /// Always granted; the gap only, where others have keys in it.
    Range {
        /// The index.
        tree: TreeId,
        /// The range.
        range: KeyRange<'a>,
        /// The mode.
        mode: LockMode,
    },
    /// The intention to put a record there. Waits for the ranges of others in which the key lies,
    /// keeps nobody from anything, and leaves nothing behind: after a wait, ask again.
    InsertIntention {
        /// The index.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
    },
}

/// The way to meet a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Queue the request.
    Queue {
        /// Undo records that the owner has written: with its locks they tell how much a deadlock's
        /// victim would lose.
        undo_records_count: u64,
    },
    /// Refuse it: NOWAIT and SKIP LOCKED, which differ in what they make of that.
    Never,
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// The lock is held, and was not before, or not in that mode.
    Granted,
    /// The owner had it, or more, before.
    AlreadyHeld,
    /// The request is queued.
    Wait(PendingLock),
    /// Somebody is in the way of a request that does not wait.
    Refused,
}

/// The object of a queue. Records are told apart by the hash of tree and key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum QueueKey {
    Table(TableId),
    Row(TreeId, u64),
}

/// The part of a row that is wanted. A gap is not among them: a request for one is always granted.
#[derive(Clone, Debug)]
pub(super) enum RowWant {
    Record(LockMode),
    /// The record, and the range, which ends or begins at it.
    NextKey(LockMode, KeySpan),
    Insert,
}

/// A request for a row.
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

    /// How it wants the record itself.
    pub(super) fn record_mode(&self) -> Option<LockMode> {
        match self.want {
            RowWant::Record(mode) | RowWant::NextKey(mode, _) => Some(mode),
            RowWant::Insert => None,
        }
    }
}

/// A request.
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

/// The part of a request that others can block; None for ranges without records.
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
