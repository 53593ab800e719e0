//! The lock table: what there is, for views and reports.

use super::deadlock::Blocking;
use super::key::{write_hex, KeyBytes, Span};
use super::lock_table::LockTable;
use super::modes::{LockMode, TableMode};
use super::waits::{RowRequest, RowWant, Waits, Want};
use super::Owner;
use crate::base::{TableId, TreeId};
use std::fmt;
use std::ops::Bound;

/// What a lock is on.
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
    /// So many records, without their keys.
    Records {
        /// The index.
        tree: TreeId,
        /// How many.
        count: usize,
    },
}

impl LockedOn {
    /// What a request is for, and how.
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

    fn record(tree: TreeId, key: &KeyBytes) -> Self {
        LockedOn::Record { tree, key: key.as_slice().to_vec() }
    }

    fn range(tree: TreeId, span: &Span, has_records: bool) -> Self {
        LockedOn::Range { tree, low: span.low.to_low(), high: span.high.to_high(), has_records }
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

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

impl fmt::Display for LockedOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockedOn::Table(table) => write!(f, "table {table}"),
            LockedOn::Record { tree, key } => write!(f, "record {} of index {tree}", Hex(key)),
            LockedOn::Records { tree, count } => write!(f, "{count} records of index {tree}"),
            LockedOn::Insert { tree, key } => write!(f, "a new record {} of index {tree}", Hex(key)),
            LockedOn::Range { tree, low, high, has_records } => {
                let what = if *has_records { "records and gaps" } else { "gaps" };
                write!(f, "{what} of index {tree} from ")?;
                write_range(f, low, high)
            }
        }
    }
}

/// Writes a range as in mathematics: `(0a, 0c]`.
fn write_range(f: &mut fmt::Formatter<'_>, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> fmt::Result {
    match low {
        Bound::Included(key) => write!(f, "[{}, ", Hex(key)),
        Bound::Excluded(key) => write!(f, "({}, ", Hex(key)),
        Bound::Unbounded => write!(f, "(infimum, "),
    }?;
    match high {
        Bound::Included(key) => write!(f, "{}]", Hex(key)),
        Bound::Excluded(key) => write!(f, "{})", Hex(key)),
        Bound::Unbounded => write!(f, "supremum)"),
    }
}

/// A lock, or a request that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// Whose.
    pub owner: Owner,
    /// On what.
    pub on: LockedOn,
    /// How.
    pub mode: TableMode,
    /// Whether it is waited for.
    pub is_waiting: bool,
}

/// A wait: who, and what keeps him waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitInfo {
    /// Who waits.
    pub owner: Owner,
    /// What for, and how.
    pub waits_for: (LockedOn, TableMode),
    /// What keeps him waiting.
    pub blocked_by: Vec<Blocking>,
}

impl LockTable {
    /// All waits, as they are at one moment.
    pub fn list_waits(&self) -> Vec<WaitInfo> {
        let waits = self.waits.lock();
        let wait = |waiter| WaitInfo::of(self, &waits, waiter);
        waits.all().map(wait).collect()
    }

    /// All locks and requests that wait. Shard after shard: what changes meanwhile may be missing, or be there twice.
    pub fn list_locks(&self) -> Vec<LockInfo> {
        let mut list = Vec::new();
        let held = |owner, on, mode| LockInfo { owner, on, mode, is_waiting: false };
        for shard in self.tables.shards() {
            let locks = shard.iter().flat_map(|(table, locks)| locks.holds().map(|hold| (*table, hold)));
            list.extend(locks.map(|(table, (owner, mode))| held(owner, LockedOn::Table(table), mode)));
        }
        for stripe in self.stripes.all() {
            for point in stripe.points() {
                let modes = point.holds().filter_map(|hold| Some((hold.owner, hold.mode()?)));
                list.extend(
                    modes.map(|(owner, mode)| {
                        held(owner, LockedOn::record(point.tree, &point.key), mode.into())
                    }),
                );
            }
        }
        self.list_shared(&mut list);
        for wait in self.list_waits() {
            let (on, mode) = wait.waits_for;
            list.push(LockInfo { owner: wait.owner, on, mode, is_waiting: true });
        }
        list
    }

    fn list_shared(&self, list: &mut Vec<LockInfo>) {
        for shard in &self.tree_shards {
            let trees = shard.trees.read();
            for (&tree, shared) in trees.iter() {
                list.extend(shared.ranges.list().into_iter().map(|(owner, level, span)| LockInfo {
                    owner,
                    on: LockedOn::range(tree, &span, level.records().is_some()),
                    mode: level.mode().into(),
                    is_waiting: false,
                }));
                let compressed = shared.compressed.iter().flat_map(|own| {
                    own.counts().into_iter().map(|(mode, count): (LockMode, usize)| (own.owner, mode, count))
                });
                list.extend(compressed.filter(|entry| entry.2 > 0).map(|(owner, mode, count)| LockInfo {
                    owner,
                    on: LockedOn::Records { tree, count },
                    mode: mode.into(),
                    is_waiting: false,
                }));
            }
        }
    }
}

impl WaitInfo {
    fn of(locks: &LockTable, waits: &Waits, waiter: &super::waits::Waiter) -> Self {
        let blocked_by = locks.blockers(waits, waiter);
        Self { owner: waiter.owner, waits_for: LockedOn::wanted(&waiter.want), blocked_by }
    }
}
