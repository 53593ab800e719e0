//! The object of a lock, as views and reports tell it.

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
        /// From where.
        low: Bound<Vec<u8>>,
        /// Up to where; unbounded reaches to the supremum.
        high: Bound<Vec<u8>>,
        /// Whether the records in it are locked too (next-key), or the gaps only.
        has_records: bool,
    },
    /// The place of a record to be.
    Insert {
        /// The index.
        tree: TreeId,
        /// The key as it is to be stored.
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
    /// The object of a request, and its mode.
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

    /// The same for what is the same, whatever its keys are long; for names of locks.
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

    /// The index; none for a table.
    pub fn tree(&self) -> Option<TreeId> {
        match self {
            LockedOn::Table(_) => None,
            LockedOn::Record { tree, .. }
            | LockedOn::Range { tree, .. }
            | LockedOn::Insert { tree, .. }
            | LockedOn::Records { tree, .. } => Some(*tree),
        }
    }

    /// Its place within its index, with keys as `show` shows them; none for a table.
    pub fn data(&self, show: ShowKey<'_>) -> Option<String> {
        match self {
            LockedOn::Table(_) => None,
            LockedOn::Record { key, .. } => Some(show(key)),
            LockedOn::Records { count, .. } => Some(format!("{count} records")),
            LockedOn::Insert { key, .. } => Some(format!("insert {}", show(key))),
            LockedOn::Range { low, high, .. } => Some(range(low, high, show)),
        }
    }

    /// Its place in words, with keys as `show` shows them.
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

    /// The key that a request for this names to others: of the record, or of the place of the new
    /// one.
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

    /// Whether a lock on this is what keeps a request for `wanted` waiting in the way `kind`.
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

    /// The kind, as users of InnoDB know it.
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

/// Shows a key to people.
pub type ShowKey<'s> = &'s dyn Fn(&[u8]) -> String;

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

/// A key in hexadecimal digits.
pub fn hex(key: &[u8]) -> String {
    Hex(key).to_string()
}

/// In words, with keys in hexadecimal digits.
impl fmt::Display for LockedOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&hex))
    }
}

/// A range as in mathematics: `(0a, 0c]` with keys in hexadecimal digits.
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
