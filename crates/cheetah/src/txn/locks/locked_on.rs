//! The object of a lock, for views and reports.

use super::deadlock::report::BlockingKind;
use super::key::{write_hex, KeyBytes, KeySpan};
use super::modes::TableMode;
use super::request::{RowRequest, RowWant, Want};
use crate::base::hash::hash_key;
use crate::base::{TableId, TreeId};
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// The object of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockedOn {
    /// A table.
    Table(TableId),
    /// A record.
    Record {
        /// The index.
        tree: TreeId,
        /// The key as stored.
        key: Vec<u8>,
    },
    /// A range.
    Range {
        /// The index.
        tree: TreeId,
        /// The low bound.
        low: Bound<Vec<u8>>,
        /// The high bound; unbounded means up to the supremum.
        high: Bound<Vec<u8>>,
        /// Whether the records in it are locked, too (next-key), or only the gaps.
        has_records: bool,
    },
    /// The position of a record to be inserted.
    Insert {
        /// The index.
        tree: TreeId,
        /// The key of the new record.
        key: Vec<u8>,
    },
    /// A number of records, without their keys.
    Records {
        /// The index.
        tree: TreeId,
        /// The number of records.
        count: usize,
    },
}

impl LockedOn {
    pub(super) fn wanted(want: &Want) -> (Self, TableMode) {
        let request = match want {
            Want::Table(table, mode) => return (LockedOn::Table(*table), *mode),
            Want::Row(request) => request,
        };
        let RowRequest { tree, key, want, .. } = request;
        match want {
            RowWant::Record(mode) => (Self::record(*tree, key), (*mode).into()),
            RowWant::NextKey(mode, span) => (Self::range(*tree, span, true), (*mode).into()),
            RowWant::Insert => {
                (LockedOn::Insert { tree: *tree, key: key.as_slice().to_vec() }, TableMode::Exclusive)
            }
        }
    }

    pub(super) fn record(tree: TreeId, key: &KeyBytes) -> Self {
        LockedOn::Record { tree, key: key.as_slice().to_vec() }
    }

    pub(super) fn range(tree: TreeId, span: &KeySpan, has_records: bool) -> Self {
        LockedOn::Range { tree, low: span.low.to_low(), high: span.high.to_high(), has_records }
    }

    /// Returns a hash of the object, for lock IDs that are short even if the keys are long.
    pub fn hash(&self) -> u64 {
        match self {
            LockedOn::Table(table) => u64::from(table.0),
            LockedOn::Record { tree, key } => hash_key(tree.0, key),
            LockedOn::Records { tree, .. } => u64::from(tree.0),
            LockedOn::Range { tree, .. } | LockedOn::Insert { tree, .. } => {
                hash_key(tree.0, self.to_string().as_bytes())
            }
        }
    }

    /// Returns the index; `None` for a table.
    pub fn tree(&self) -> Option<TreeId> {
        match self {
            LockedOn::Table(_) => None,
            LockedOn::Record { tree, .. }
            | LockedOn::Range { tree, .. }
            | LockedOn::Insert { tree, .. }
            | LockedOn::Records { tree, .. } => Some(*tree),
        }
    }

    /// Returns its position within its index, with keys formatted by `show`; `None` for a table.
    pub fn data(&self, show: ShowKey<'_>) -> Option<String> {
        match self {
            LockedOn::Table(_) => None,
            LockedOn::Record { key, .. } => Some(show(key)),
            LockedOn::Records { count, .. } => Some(format!("{count} records")),
            LockedOn::Insert { key, .. } => Some(format!("insert {}", show(key))),
            LockedOn::Range { low, high, .. } => Some(range(low, high, show)),
        }
    }

    /// Describes the object, with keys formatted by `show`.
    pub fn told(&self, show: ShowKey<'_>) -> String {
        match self {
            LockedOn::Table(table) => format!("table {table}"),
            LockedOn::Record { tree, key } => format!("record {} of index {tree}", show(key)),
            LockedOn::Records { tree, count } => format!("{count} records of index {tree}"),
            LockedOn::Insert { tree, key } => format!("a new record {} of index {tree}", show(key)),
            LockedOn::Range { tree, low, high, has_records } => {
                let what = if *has_records { "records and gaps" } else { "gaps" };
                format!("{what} of index {tree} from {}", range(low, high, show))
            }
        }
    }

    /// The key that a request for this object conflicts on: of the record, or of the new record.
    fn key(&self) -> Option<&[u8]> {
        match self {
            LockedOn::Record { key, .. } | LockedOn::Insert { key, .. } => Some(key),
            LockedOn::Range { low, high, .. } => match (low, high) {
                (_, Bound::Included(key)) | (Bound::Included(key), _) => Some(key),
                _ => None,
            },
            LockedOn::Table(_) | LockedOn::Records { .. } => None,
        }
    }

    /// Returns whether a lock on this object blocks a request for `wanted` in the way `kind`.
    pub fn blocks(&self, kind: BlockingKind, wanted: &LockedOn) -> bool {
        match (self, kind) {
            (LockedOn::Table(_), BlockingKind::Lock) => self == wanted,
            (LockedOn::Record { tree, key }, BlockingKind::Lock) => {
                wanted.tree() == Some(*tree) && wanted.key() == Some(key)
            }
            (LockedOn::Range { tree, low, high, .. }, BlockingKind::Range) => {
                let range = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                wanted.tree() == Some(*tree)
                    && wanted.key().is_some_and(|key| RangeBounds::<[u8]>::contains(&range, key))
            }
            _ => false,
        }
    }

    /// Returns the kind, in the terms of InnoDB.
    pub fn kind(&self) -> &'static str {
        match self {
            LockedOn::Table(_) => "TABLE",
            LockedOn::Record { .. } | LockedOn::Records { .. } => "RECORD",
            LockedOn::Range { has_records: false, .. } => "GAP",
            LockedOn::Range { .. } => "NEXT-KEY",
            LockedOn::Insert { .. } => "INSERT INTENTION",
        }
    }
}

/// Formats a key for users.
pub type ShowKey<'s> = &'s dyn Fn(&[u8]) -> String;

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

/// Formats a key in hexadecimal.
pub fn hex(key: &[u8]) -> String {
    Hex(key).to_string()
}

/// Describes the object, with keys in hexadecimal.
impl fmt::Display for LockedOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&hex))
    }
}

/// Formats a range in interval notation, `(0a, 0c]`, with keys formatted by `show`.
fn range(low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>, show: ShowKey<'_>) -> String {
    let low = match low {
        Bound::Included(key) => format!("[{}", show(key)),
        Bound::Excluded(key) => format!("({}", show(key)),
        Bound::Unbounded => "(infimum".to_owned(),
    };
    match high {
        Bound::Included(key) => format!("{low}, {}]", show(key)),
        Bound::Excluded(key) => format!("{low}, {})", show(key)),
        Bound::Unbounded => format!("{low}, supremum)"),
    }
}
