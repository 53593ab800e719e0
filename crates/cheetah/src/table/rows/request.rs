//! A row operation as its caller asks for it, and the writer that asks.

use super::locker::Locker;
use crate::base::{Error, Result, TreeId};
use crate::format::log_record::RowOp;
use crate::format::page::max_payload_bytes;
use crate::format::varint;
use crate::table::definitions::handle::Table;
use crate::table::definitions::spec::{NewRow, OldEntry, SecondaryEntry};
use crate::table::shared::parts::Core;
use crate::txn::{LockMode, Slot};
use std::sync::Arc;

/// The writer, and the table.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) core: &'a Core,
    pub(crate) slot: &'a Arc<Slot>,
    pub(crate) table: &'a Table,
    /// The locks to take; none when nobody else can get at the rows.
    pub(crate) locks: Option<Locks<'a>>,
    /// Whether the statement is to end, asked while it waits and before it tries again.
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

impl Target<'_> {
    /// `Interrupted` when the statement is to end: asked before something is tried again.
    pub(in crate::table) fn check_interrupted(&self) -> Result<()> {
        match (self.interrupted)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// How a row operation locks.
#[derive(Clone, Copy)]
pub(crate) struct Locks<'a> {
    pub(crate) locker: &'a Locker,
    /// How a row that has the new row's unique key is locked: as the caller needs it for what it
    /// does next.
    pub(crate) duplicates: LockMode,
    /// Whether unique keys of a refused row that nobody has stay locked: see
    /// [`operation_locks::keep_absent`](super::operation_locks::keep_absent).
    pub(crate) keeps_absent: bool,
}

/// A caller's request: a row that goes, a row that comes, and the entries of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRequest<'a> {
    pub(in crate::table) op: RowOp,
    /// The key of the row that goes; empty for an insert.
    pub(in crate::table) old_key: &'a [u8],
    /// The row that comes; none for a delete.
    pub(in crate::table) new: Option<NewRow<'a>>,
    pub(in crate::table) old_entries: &'a [OldEntry<'a>],
}

impl<'a> RowRequest<'a> {
    /// Insert `new`.
    pub(crate) fn insert(new: &NewRow<'a>) -> Self {
        Self { op: RowOp::Insert, old_key: b"", new: Some(*new), old_entries: &[] }
    }

    /// Change the row of `old_key`.
    pub(crate) fn update(old_key: &'a [u8], new: &NewRow<'a>, old_entries: &'a [OldEntry<'a>]) -> Self {
        Self { op: RowOp::Update, old_key, new: Some(*new), old_entries }
    }

    /// Delete the row of `old_key`.
    pub(crate) fn delete(old_key: &'a [u8], old_entries: &'a [OldEntry<'a>]) -> Self {
        Self { op: RowOp::Delete, old_key, new: None, old_entries }
    }

    /// The key of the row that comes; empty for a delete.
    pub(in crate::table) fn new_key(&self) -> &'a [u8] {
        self.new.map_or(b"", |new| new.key)
    }

    /// The key of the row that goes; none for an insert.
    pub(in crate::table) fn gone_key(&self) -> Option<&'a [u8]> {
        (self.op != RowOp::Insert).then_some(self.old_key)
    }

    /// The key of the row that comes, if no row of that key goes.
    pub(in crate::table) fn added_key(&self) -> Option<&'a [u8]> {
        self.new.map(|new| new.key).filter(|&key| self.gone_key() != Some(key))
    }

    /// The entries that come.
    pub(in crate::table) fn new_entries(&self) -> &'a [SecondaryEntry<'a>] {
        self.new.map_or(&[], |new| new.secondary)
    }

    /// The keys that the new row adds to unique indexes.
    pub(in crate::table) fn unique_keys(
        &self,
        table: &'a Table,
    ) -> impl Iterator<Item = (TreeId, &'a [u8])> + 'a {
        let entries = self.new_entries().iter().filter(|entry| must_be_unique(table, entry));
        entries.filter_map(|entry| table.tree(entry.index_no).ok().map(|tree| (tree.def().id, entry.key)))
    }
}

/// Whether another row with the key of `entry` is refused.
pub(in crate::table) fn must_be_unique(table: &Table, entry: &SecondaryEntry<'_>) -> bool {
    entry.check_unique && table.indexes().get(entry.index_no).is_some_and(|index| index.unique)
}

/// Refuses keys and payloads that are too long for their trees, so that nothing can be refused in
/// the mini-transaction.
pub(in crate::table) fn check_limits(table: &Table, new: Option<&NewRow<'_>>) -> Result<()> {
    let Some(new) = new else { return Ok(()) };
    let key_max =
        |index_no: usize| table.indexes().get(index_no).map_or(0, |index| index.max_key_bytes as usize);
    check("clustered key length (bytes)", new.key.len(), key_max(0))?;
    for entry in new.secondary {
        let tree = table.tree(entry.index_no)?;
        check("index key length (bytes)", entry.key.len(), key_max(entry.index_no))?;
        let payload_max = max_payload_bytes(tree.page_bytes(), tree.def().key_bytes_max);
        check("index payload length (bytes)", entry.payload.len() + varint::MAX_BYTES, payload_max)?;
    }
    Ok(())
}

fn check(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 })
}
