//! A requested row operation, and the writer that requests it.

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

#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) core: &'a Core,
    pub(crate) slot: &'a Arc<Slot>,
    pub(crate) table: &'a Table,
    /// None if no other transaction can reach the rows.
    pub(crate) locks: Option<Locks<'a>>,
    /// Whether the statement is to end; called during waits and before retries.
    pub(crate) interrupted: &'a dyn Fn() -> bool,
}

impl Target<'_> {
    /// Called before retries.
    pub(in crate::table) fn check_interrupted(&self) -> Result<()> {
        match (self.interrupted)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Locks<'a> {
    pub(crate) locker: &'a Locker,
    /// How to lock a row that has the new row's unique key: as the caller's next operation needs.
    pub(crate) duplicates: LockMode,
    /// The absent unique keys of a refused row stay locked: see
    /// [`operation_locks::keep_absent`](super::operation_locks::keep_absent).
    pub(crate) keeps_absent: bool,
}

/// A caller's request: the old row, the new row, and the entries of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRequest<'a> {
    pub(in crate::table) op: RowOp,
    /// Empty for an insert.
    pub(in crate::table) old_key: &'a [u8],
    /// `None` for a delete.
    pub(in crate::table) new: Option<NewRow<'a>>,
    pub(in crate::table) old_entries: &'a [OldEntry<'a>],
}

impl<'a> RowRequest<'a> {
    pub(crate) fn insert(new: &NewRow<'a>) -> Self {
        Self { op: RowOp::Insert, old_key: b"", new: Some(*new), old_entries: &[] }
    }

    pub(crate) fn update(old_key: &'a [u8], new: &NewRow<'a>, old_entries: &'a [OldEntry<'a>]) -> Self {
        Self { op: RowOp::Update, old_key, new: Some(*new), old_entries }
    }

    pub(crate) fn delete(old_key: &'a [u8], old_entries: &'a [OldEntry<'a>]) -> Self {
        Self { op: RowOp::Delete, old_key, new: None, old_entries }
    }

    /// Empty for a delete.
    pub(in crate::table) fn new_key(&self) -> &'a [u8] {
        self.new.map_or(b"", |new| new.key)
    }

    /// `None` for an insert.
    pub(in crate::table) fn gone_key(&self) -> Option<&'a [u8]> {
        (self.op != RowOp::Insert).then_some(self.old_key)
    }

    /// `None` if the old row has the same key.
    pub(in crate::table) fn added_key(&self) -> Option<&'a [u8]> {
        self.new.map(|new| new.key).filter(|&key| self.gone_key() != Some(key))
    }

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

pub(in crate::table) fn must_be_unique(table: &Table, entry: &SecondaryEntry<'_>) -> bool {
    entry.check_unique && table.indexes().get(entry.index_no).is_some_and(|index| index.unique)
}

/// Refuses keys and payloads too long for their trees before the mini-transaction.
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

/// Refuses a request without the entry of an enabled index, which would silently lack the row, or
/// keep an entry without a row.
pub(in crate::table) fn check_entries(table: &Table, request: &RowRequest<'_>) -> Result<()> {
    let enabled = || (1..table.indexes().len()).filter(|&index_no| !table.is_disabled(index_no));
    let new = || request.new_entries().iter().map(|entry| entry.index_no);
    let old = || request.old_entries.iter().map(|entry| entry.index_no);
    let keeps_key = request.op == RowOp::Update && request.added_key().is_none();
    let is_complete = match request.op {
        RowOp::Insert => new().eq(enabled()),
        RowOp::Delete => old().eq(enabled()),
        RowOp::Update => new().eq(old()) && (keeps_key || new().eq(enabled())),
    };
    match is_complete {
        true => Ok(()),
        false => Err(Error::Entries(table.name().to_string())),
    }
}

fn check(what: &'static str, actual: usize, limit: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    Err(Error::Limit { what, actual: actual as u64, limit: limit as u64 })
}
