//! A row operation in the form in which it is applied to the trees: forward, again at redo, and backward.
//!
//! Invariants
//!   I1  [`apply`] runs inside one action and changes clustered tree, secondary trees and row count together.
//!   I2  Whatever could refuse a part of it was checked before the action; a refusal in the middle is a broken
//!       invariant and stops the engine, for half an operation must not reach a generation.
//!   I3  The buffers are reused: a steady stream of row operations allocates nothing.
//!   I4  Keys of leaves to merge are pieces of the change that has just been applied: none outlives it.

use super::handle::Table;
use crate::base::{Error, Result, TableId};
use crate::format::log_record::RowOp;
use crate::format::page::RecordRef;
use crate::pool::Action;
use crate::tree::{Changed, Cursor, Path, Removed, Tree};
use std::sync::Arc;

/// A piece of a [`Change`]'s buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Span {
    at: usize,
    len: usize,
}

/// What becomes of one secondary entry. Keys are stored keys: the caller's part, then the clustered key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryChange {
    pub(crate) index_no: usize,
    /// The entry that goes, and how long the caller's part of its key is.
    pub(crate) old_key: Option<(Span, usize)>,
    /// The entry that comes, and how long the caller's part of its key is.
    pub(crate) new_key: Option<(Span, usize)>,
    /// The stored payload of the entry that comes.
    pub(crate) payload: Span,
}

/// A row operation to apply.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) op: RowOp,
    bytes: Vec<u8>,
    pub(crate) old_key: Span,
    pub(crate) new_key: Span,
    /// The stored row that comes.
    pub(crate) row: Span,
    pub(crate) entries: Vec<EntryChange>,
}

impl Default for Change {
    fn default() -> Self {
        let (bytes, entries, none) = (Vec::new(), Vec::new(), Span::default());
        Self { op: RowOp::Insert, bytes, old_key: none, new_key: none, row: none, entries }
    }
}

impl Change {
    /// Starts over, keeping the buffers.
    pub(crate) fn start(&mut self, op: RowOp, old_key: &[u8], new_key: &[u8]) {
        self.op = op;
        self.bytes.clear();
        self.entries.clear();
        self.row = Span::default();
        self.old_key = self.put(&[old_key]);
        self.new_key = self.put(&[new_key]);
    }

    /// Copies `parts`, one behind the other.
    pub(crate) fn put(&mut self, parts: &[&[u8]]) -> Span {
        let at = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        Span { at, len: self.bytes.len() - at }
    }

    /// Lets `f` append bytes.
    pub(crate) fn put_with(&mut self, f: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Span> {
        let at = self.bytes.len();
        f(&mut self.bytes)?;
        Ok(Span { at, len: self.bytes.len() - at })
    }

    /// The bytes of a span.
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.at..span.at + span.len).expect("a span lies inside its buffer")
    }

    /// Adds what becomes of one secondary entry; keys without the clustered key, the payload as stored.
    pub(crate) fn add_entry(
        &mut self,
        index_no: usize,
        old_key: Option<&[u8]>,
        new_key: Option<&[u8]>,
        payload: &[&[u8]],
    ) {
        let old_key = old_key.map(|key| (self.put_stored_key(key, self.old_key), key.len()));
        let new_key = new_key.map(|key| (self.put_stored_key(key, self.new_key), key.len()));
        let payload = self.put(payload);
        self.entries.push(EntryChange { index_no, old_key, new_key, payload });
    }

    fn put_stored_key(&mut self, key: &[u8], clustered: Span) -> Span {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_within(clustered.at..clustered.at + clustered.len);
        Span { at, len: self.bytes.len() - at }
    }

    /// The caller's part of a stored key; empty for none.
    pub(crate) fn caller_key(&self, key: Option<(Span, usize)>) -> &[u8] {
        key.and_then(|(span, len)| self.get(span).get(..len)).unwrap_or_default()
    }

    /// Whether the clustered key stays as it is.
    pub(crate) fn keeps_key(&self) -> bool {
        self.op == RowOp::Update && self.get(self.old_key) == self.get(self.new_key)
    }
}

/// Pinned paths and cursors of the table last worked on.
#[derive(Default)]
pub(crate) struct Paths {
    table: TableId,
    trees: Vec<TreePaths>,
    /// Leaves to look at once the action is left: a tree and a key that was removed from it.
    small: Vec<(usize, Span)>,
}

/// The paths into one tree.
pub(crate) struct TreePaths {
    /// To the key that goes.
    pub(crate) old: Path,
    /// To the key that comes.
    pub(crate) new: Path,
    /// For uniqueness checks.
    pub(crate) cursor: Cursor,
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Paths of table {}", self.table)
    }
}

impl Paths {
    /// Unpins everything.
    pub(crate) fn release(&mut self) {
        for tree in &mut self.trees {
            tree.old.release();
            tree.new.release();
            tree.cursor.release();
        }
    }

    /// The paths into tree `index_no` of `table`; those of another table are dropped.
    pub(crate) fn of(&mut self, table: &Table, index_no: usize) -> Result<&mut TreePaths> {
        if self.table != table.id() {
            let paths = |tree: &Arc<Tree>| TreePaths {
                old: Path::default(),
                new: Path::default(),
                cursor: tree.cursor(),
            };
            self.table = table.id();
            self.trees = table.trees().iter().map(paths).collect();
        }
        let (actual, limit) = (index_no as u64, self.trees.len().saturating_sub(1) as u64);
        self.trees.get_mut(index_no).ok_or(Error::Limit { what: "index number", actual, limit })
    }

    /// Merges leaves that [`apply`] left small. Outside actions; may do I/O. An error leaves some of them small, and
    /// nothing else: the change is done.
    pub(crate) fn merge_small(&mut self, table: &Table, change: &Change) -> Result<()> {
        let mut small = std::mem::take(&mut self.small);
        // I4: none stays, whatever the result.
        let merged = small.drain(..).rev().try_for_each(|(index_no, key)| {
            let tree = table.tree(index_no)?;
            tree.merge_if_small(&mut self.of(table, index_no)?.old, change.get(key))
        });
        self.small = small;
        merged
    }
}

/// Pins all pages that [`apply`] will need. Outside actions; does I/O.
pub(crate) fn prepare(table: &Table, change: &Change, paths: &mut Paths) -> Result<()> {
    let keys = |index_no: usize, old: Option<Span>, new: Option<Span>, paths: &mut Paths| {
        let tree = table.tree(index_no)?;
        let into = paths.of(table, index_no)?;
        if let Some(old) = old {
            tree.prepare(change.get(old), &mut into.old)?;
        }
        if let Some(new) = new {
            tree.prepare(change.get(new), &mut into.new)?;
        }
        Ok(())
    };
    let old = (change.op != RowOp::Insert).then_some(change.old_key);
    let new = (change.op != RowOp::Delete && !change.keeps_key()).then_some(change.new_key);
    keys(0, old, new, paths)?;
    let span = |key: Option<(Span, usize)>| key.map(|key| key.0);
    change
        .entries
        .iter()
        .try_for_each(|entry| keys(entry.index_no, span(entry.old_key), span(entry.new_key), paths))
}

/// Applies the change. An error means that the trees disagree with it: the caller stops the engine (I2).
pub(crate) fn apply(action: &Action<'_>, table: &Table, change: &Change, paths: &mut Paths) -> Result<()> {
    apply_clustered(action, table, change, paths)?;
    for entry in &change.entries {
        apply_entry(action, table, change, entry, paths)?;
    }
    match change.op {
        RowOp::Insert => table.count_rows(1),
        RowOp::Delete => table.count_rows(-1),
        RowOp::Update => {}
    }
    Ok(())
}

fn apply_clustered(action: &Action<'_>, table: &Table, change: &Change, paths: &mut Paths) -> Result<()> {
    let row = RecordRef::frozen(change.get(change.row));
    if change.keeps_key() {
        let path = &mut paths.of(table, 0)?.old;
        let changed = table.clustered().replace(action, path, change.get(change.old_key), row)?;
        return expect(table, changed == Changed::Done, "the row to change is gone");
    }
    if change.op != RowOp::Insert {
        remove(action, table, 0, change, change.old_key, paths)?;
    }
    if change.op != RowOp::Delete {
        let path = &mut paths.of(table, 0)?.new;
        let changed = table.clustered().insert(action, path, change.get(change.new_key), row)?;
        expect(table, changed == Changed::Done, "the new row is there already")?;
    }
    Ok(())
}

fn apply_entry(
    action: &Action<'_>,
    table: &Table,
    change: &Change,
    entry: &EntryChange,
    paths: &mut Paths,
) -> Result<()> {
    let index_no = entry.index_no;
    let payload = RecordRef::frozen(change.get(entry.payload));
    if let (Some((old, _)), Some((new, _))) = (entry.old_key, entry.new_key) {
        if change.get(old) == change.get(new) {
            let path = &mut paths.of(table, index_no)?.old;
            let changed = table.tree(index_no)?.replace(action, path, change.get(old), payload)?;
            return expect(table, changed == Changed::Done, "the index entry to change is gone");
        }
    }
    if let Some((old, _)) = entry.old_key {
        remove(action, table, index_no, change, old, paths)?;
    }
    if let Some((new, _)) = entry.new_key {
        let path = &mut paths.of(table, index_no)?.new;
        let changed = table.tree(index_no)?.insert(action, path, change.get(new), payload)?;
        expect(table, changed == Changed::Done, "the new index entry is there already")?;
    }
    Ok(())
}

fn remove(
    action: &Action<'_>,
    table: &Table,
    index_no: usize,
    change: &Change,
    key: Span,
    paths: &mut Paths,
) -> Result<()> {
    let path = &mut paths.of(table, index_no)?.old;
    match table.tree(index_no)?.remove(action, path, change.get(key))? {
        Removed::Absent => expect(table, false, "the entry to remove is gone"),
        Removed::Gone { small } => {
            if small {
                paths.small.push((index_no, key));
            }
            Ok(())
        }
    }
}

fn expect(table: &Table, holds: bool, detail: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::corrupt(format!("table '{}'", table.name()), detail))
}
