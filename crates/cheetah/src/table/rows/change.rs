//! A row operation as it is applied to the trees: forward, again at redo, backward, and at purge.
//!
//! A change is a list of steps ([`super::plan`]), each of which inserts, replaces or removes one
//! record. A forward change applies the row first and then its entries; backward and at purge, the
//! row is last. So a reader that finds an entry touched by a transaction also finds the row
//! touched, and a reader that finds an untouched row finds untouched entries (durability::C5).
//!
//! Invariants
//!   I1  [`apply`] runs inside one mini-transaction and changes the clustered tree, the secondary
//!       trees and the row count together.
//!   I2  Every check that could refuse a step precedes the mini-transaction. A refusal inside it is
//!       a broken invariant and stops the engine: half an operation must not reach an epoch.
//!   I3  The buffers are reused: a steady stream of row operations allocates nothing.
//!   I4  The keys of leaves to merge are ranges of the buffers of the change just applied, and do
//!       not outlive it.
//!   I5  A forward change removes nothing: it marks old rows and entries as deleted, and purge
//!       removes them once no reader sees them. Only redo removes them at once, if it knows that
//!       the transaction commits: there are no readers until redo is done.

use crate::base::{reach, sound, Error, Result, TableId, TxnId, UndoPtr};
use crate::format::log_record::RowOp;
use crate::format::page::{RecordFlags, RecordRef};
use crate::format::undo_record::Before;
use crate::leaves::Expect;
use crate::pool::{MiniTransaction, Pool};
use crate::table::definitions::handle::Table;
use crate::tree::{Changed, Cursor, Path, Removed, Tree};
use std::ops::Range;
use std::sync::Arc;

pub(crate) use crate::format::page::RecordVersion as Version;

/// Pages that a change to one leaf may need.
pub(in crate::table) const PAGES_PER_LEAF: usize = 4;

/// For records whose version is not known yet.
const WIDEST_VERSION: Version = Some((TxnId(0), UndoPtr(0)));

/// A range of one of a [`Change`]'s buffers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct BufferRange {
    at: usize,
    len: usize,
}

impl BufferRange {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.at..self.at + self.len).expect("a range is inside its buffer")
    }
}

/// A record found before the change. Its payload is in the buffer `before`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct FoundRecord {
    pub(in crate::table) version: Version,
    pub(in crate::table) payload: BufferRange,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Found {
    #[default]
    Nothing,
    Record(FoundRecord),
    /// Not looked up, because its leaf is cold.
    Unseen,
}

impl Found {
    pub(crate) fn record(&self) -> Option<&FoundRecord> {
        match self {
            Found::Record(record) => Some(record),
            Found::Nothing | Found::Unseen => None,
        }
    }
}

/// The change to one secondary entry. A stored key is the caller's part, then the clustered key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryChange {
    pub(crate) index_no: usize,
    /// With the length of the caller's part, as in `new_key`.
    pub(crate) old_key: Option<(BufferRange, usize)>,
    pub(crate) new_key: Option<(BufferRange, usize)>,
    pub(crate) payload: BufferRange,
    /// `Nothing` if redo found no live entry; `Unseen` if the entry is removed without a lookup.
    pub(crate) old: Found,
    /// `Nothing`, a delete-marked entry, or `Unseen` if the new entry is put without a lookup.
    pub(crate) new: Found,
}

/// The path of a tree that a step uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::table) enum Side {
    Old,
    New,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::table) enum Payload {
    New(BufferRange),
    Before(BufferRange),
}

#[derive(Clone, Copy, Debug)]
pub(in crate::table) enum Stamp {
    /// The version of this operation.
    Own,
    /// The version that the record had before.
    Of(Version),
}

#[derive(Clone, Copy, Debug)]
pub(in crate::table) enum Work {
    /// Insert a record where none exists.
    Insert(Payload),
    /// Put a record, whether or not one exists. The change may be pending for its leaf.
    Put(Payload),
    /// Replace an existing record.
    Replace { payload: Payload, stamp: Stamp, marked: bool },
    /// Remove an existing record.
    Remove,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    index_no: usize,
    side: Side,
    key: BufferRange,
    work: Work,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) op: RowOp,
    bytes: Vec<u8>,
    before: Vec<u8>,
    pub(crate) old_key: BufferRange,
    pub(crate) new_key: BufferRange,
    pub(crate) row: BufferRange,
    /// The new row without its row-format mark, as logged: redo knows the row-format version.
    pub(crate) bare_row: BufferRange,
    /// The live row at `old_key`.
    pub(crate) old: FoundRecord,
    /// The delete-marked row at `new_key`, unless that is `old_key`.
    pub(crate) marked: Option<FoundRecord>,
    pub(crate) entries: Vec<EntryChange>,
    /// Unique indexes known to have no entry, live or marked, with the new row's key.
    pub(in crate::table) lacking: Vec<usize>,
    steps: Vec<Step>,
    /// Rows added less rows deleted.
    pub(in crate::table) rows: i64,
}

impl Default for Change {
    fn default() -> Self {
        let none = BufferRange::default();
        Self {
            op: RowOp::Insert,
            bytes: Vec::new(),
            before: Vec::new(),
            old_key: none,
            new_key: none,
            row: none,
            bare_row: none,
            old: FoundRecord::default(),
            marked: None,
            entries: Vec::new(),
            lacking: Vec::new(),
            steps: Vec::new(),
            rows: 0,
        }
    }
}

impl Change {
    pub(crate) fn start(&mut self, op: RowOp, old_key: &[u8], new_key: &[u8]) {
        self.op = op;
        self.bytes.clear();
        self.before.clear();
        self.entries.clear();
        self.lacking.clear();
        self.steps.clear();
        self.rows = 0;
        (self.row, self.bare_row) = (BufferRange::default(), BufferRange::default());
        self.old = FoundRecord::default();
        self.marked = None;
        self.old_key = self.put(&[old_key]);
        self.new_key = self.put(&[new_key]);
    }

    pub(crate) fn put(&mut self, parts: &[&[u8]]) -> BufferRange {
        let at = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        BufferRange { at, len: self.bytes.len() - at }
    }

    /// Lets `f`, which gets the old row, append the new row as stored. `f` returns the range of the
    /// row without its row-format mark.
    pub(crate) fn put_row(
        &mut self,
        f: impl FnOnce(&mut Vec<u8>, &[u8]) -> Result<Range<usize>>,
    ) -> Result<()> {
        let at = self.bytes.len();
        let bare = f(&mut self.bytes, self.old.payload.of(&self.before))?;
        self.row = BufferRange { at, len: self.bytes.len() - at };
        self.bare_row = BufferRange { at: at + bare.start, len: bare.len() };
        Ok(())
    }

    pub(crate) fn get(&self, span: BufferRange) -> &[u8] {
        span.of(&self.bytes)
    }

    pub(crate) fn held(&self, held: &FoundRecord) -> &[u8] {
        held.payload.of(&self.before)
    }

    pub(crate) fn before_of(&self, held: &FoundRecord) -> Before<'_> {
        Before { version: held.version, payload: self.held(held) }
    }

    pub(crate) fn bytes_len(&self) -> usize {
        self.bytes.len() + self.before.len()
    }

    /// Looks up `key` in `tree`; leaves `path` prepared. Returns whether the record is
    /// delete-marked, and the record. Outside mini-transactions; may do I/O.
    pub(crate) fn look(
        &mut self,
        tree: &Tree,
        key: BufferRange,
        path: &mut Path,
    ) -> Result<Option<(bool, FoundRecord)>> {
        let Self { bytes, before, .. } = self;
        let at = before.len();
        tree.get_prepared(key.of(bytes), path, |record| {
            before.extend_from_slice(record.payload);
            let payload = BufferRange { at, len: record.payload.len() };
            (record.is_marked(), FoundRecord { version: record.version, payload })
        })
    }

    /// Leaves `key` unseen, and returns true, if its leaf is cold and the change may be pending.
    /// The key gets `payload`, or loses its record if `None`; `expect` describes the existing
    /// record. Outside mini-transactions; may do I/O.
    pub(in crate::table) fn leave_cold(
        &self,
        tree: &Tree,
        key: BufferRange,
        expect: Expect,
        payload: Option<Payload>,
        path: &mut Path,
    ) -> Result<bool> {
        let record = payload.map(|payload| RecordRef {
            version: if expect == Expect::New { WIDEST_VERSION } else { None },
            ..RecordRef::frozen(self.payload(payload))
        });
        tree.leave_cold(self.get(key), expect, record.as_ref(), path)
    }

    pub(crate) fn put_before(&mut self, parts: &[&[u8]]) -> BufferRange {
        let at = self.before.len();
        parts.iter().for_each(|part| self.before.extend_from_slice(part));
        BufferRange { at, len: self.before.len() - at }
    }

    /// Like [`look`](Self::look), but first tries the leaf that `near` leads to.
    pub(crate) fn look_near(
        &mut self,
        tree: &Tree,
        key: BufferRange,
        path: &mut Path,
        near: &Path,
    ) -> Result<Option<(bool, FoundRecord)>> {
        tree.go_near(key.of(&self.bytes), path, near);
        self.look(tree, key, path)
    }

    /// The keys lack the clustered key; the payload is as stored.
    pub(crate) fn add_entry(
        &mut self,
        index_no: usize,
        old_key: Option<&[u8]>,
        new_key: Option<&[u8]>,
        payload: &[&[u8]],
    ) -> &mut EntryChange {
        let old_key = old_key.map(|key| (self.put_stored_key(key, self.old_key), key.len()));
        let new_key = new_key.map(|key| (self.put_stored_key(key, self.new_key), key.len()));
        let payload = self.put(payload);
        let (old, new) = (Found::Nothing, Found::Nothing);
        self.entries.push(EntryChange { index_no, old_key, new_key, payload, old, new });
        self.entries.last_mut().expect("just added")
    }

    pub(in crate::table) fn put_stored_key(&mut self, key: &[u8], clustered: BufferRange) -> BufferRange {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_within(clustered.at..clustered.at + clustered.len);
        BufferRange { at, len: self.bytes.len() - at }
    }

    pub(crate) fn caller_key(&self, key: Option<(BufferRange, usize)>) -> &[u8] {
        key.and_then(|(span, len)| self.get(span).get(..len)).unwrap_or_default()
    }

    pub(crate) fn keeps_key(&self) -> bool {
        self.op == RowOp::Update && self.get(self.old_key) == self.get(self.new_key)
    }

    pub(crate) fn entry_keeps_key(&self, entry: &EntryChange) -> bool {
        match (entry.old_key, entry.new_key) {
            (Some((old, _)), Some((new, _))) => self.get(old) == self.get(new),
            _ => false,
        }
    }

    pub(crate) fn leaves_garbage(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.work, Work::Replace { marked: true, .. }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn steps_count(&self) -> usize {
        self.steps.len()
    }

    /// The entries whose locks are released when the planned steps undo an operation, each with its
    /// index number: new entries that `own` had not delete-marked before; with `all`, all entries.
    pub(in crate::table) fn freed_entries(
        &self,
        own: TxnId,
        all: bool,
    ) -> impl Iterator<Item = (usize, &[u8])> {
        let is_marked_by_own = move |work: &Work| match work {
            Work::Replace { stamp: Stamp::Of(Some((txn, _))), marked, .. } => *marked && *txn == own,
            _ => false,
        };
        let came = move |step: &Step| step.side == Side::New && !is_marked_by_own(&step.work);
        let freed = self.steps.iter().filter(move |step| step.index_no > 0 && (all || came(step)));
        freed.map(|step| (step.index_no, self.get(step.key)))
    }

    pub(crate) fn rows(&self) -> i64 {
        self.rows
    }

    pub(in crate::table) fn step(&mut self, index_no: usize, side: Side, key: BufferRange, work: Work) {
        self.steps.push(Step { index_no, side, key, work });
    }

    /// Returns the record that a step leaves at its key, with the widest version that it can get.
    fn record_of(&self, step: &Step) -> Option<RecordRef<'_>> {
        let payload = match step.work {
            Work::Insert(payload) | Work::Put(payload) | Work::Replace { payload, .. } => payload,
            Work::Remove => return None,
        };
        Some(RecordRef { version: WIDEST_VERSION, ..RecordRef::frozen(self.payload(payload)) })
    }

    fn payload(&self, payload: Payload) -> &[u8] {
        match payload {
            Payload::New(span) => span.of(&self.bytes),
            Payload::Before(span) => span.of(&self.before),
        }
    }
}

pub(crate) fn rows_of(op: RowOp) -> i64 {
    match op {
        RowOp::Insert => 1,
        RowOp::Update => 0,
        RowOp::Delete => -1,
    }
}

/// Pinned paths and cursors of the table used last.
#[derive(Default)]
pub(crate) struct Paths {
    /// The table, and the number of changes to its definition so far.
    table: (TableId, u32),
    trees: Vec<TreePaths>,
    /// Leaves to check for a merge after the mini-transaction: a tree and a key removed from it.
    small: Vec<(usize, BufferRange)>,
}

/// The paths into one tree.
pub(crate) struct TreePaths {
    pub(crate) old: Path,
    pub(crate) new: Path,
    /// For uniqueness checks.
    pub(crate) cursor: Cursor,
}

impl TreePaths {
    fn side(&mut self, side: Side) -> &mut Path {
        match side {
            Side::Old => &mut self.old,
            Side::New => &mut self.new,
        }
    }
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Paths of table {}", self.table.0)
    }
}

impl Paths {
    pub(crate) fn release(&mut self) {
        for tree in &mut self.trees {
            tree.old.release();
            tree.new.release();
            tree.cursor.release();
        }
    }

    /// Drops the paths of any other table.
    pub(crate) fn of(&mut self, table: &Table, index_no: usize) -> Result<&mut TreePaths> {
        if self.table != (table.id(), table.def().changes) {
            let paths = |tree: &Arc<Tree>| TreePaths {
                old: Path::default(),
                new: Path::default(),
                cursor: tree.cursor(),
            };
            self.table = (table.id(), table.def().changes);
            self.trees = table.trees().iter().map(paths).collect();
        }
        let (actual, limit) = (index_no as u64, self.trees.len().saturating_sub(1) as u64);
        self.trees.get_mut(index_no).ok_or(Error::Limit { what: "index number", actual, limit })
    }

    /// Drops all tickets for cold leaves.
    pub(crate) fn forget_tickets(&mut self) {
        for tree in &mut self.trees {
            tree.old.forget_ticket();
            tree.new.forget_ticket();
        }
    }

    /// Merges the leaf of `key` with a neighbour, if it is small. Returns `true`. Outside
    /// mini-transactions; may do I/O.
    pub(crate) fn merge(&mut self, table: &Table, index_no: usize, key: &[u8]) -> Result<bool> {
        let tree = table.tree(index_no)?;
        tree.merge_if_small(&mut self.of(table, index_no)?.old, key).map(|()| true)
    }

    /// Merges the leaves that [`apply`] left small; returns whether there were any. Outside
    /// mini-transactions; may do I/O. An error leaves some leaves small, but the change is done.
    pub(crate) fn merge_small(&mut self, table: &Table, change: &Change) -> Result<bool> {
        let mut small = std::mem::take(&mut self.small);
        let any = !small.is_empty();
        // I4: no key is kept, whatever the result.
        let merged = small.drain(..).rev().try_for_each(|(index_no, key)| {
            let tree = table.tree(index_no)?;
            tree.merge_if_small(&mut self.of(table, index_no)?.old, change.get(key))
        });
        self.small = small;
        merged.map(|()| any)
    }
}

/// Pins all pages that [`apply`] will need, except leaves for which it has tickets. Outside
/// mini-transactions; does I/O.
pub(crate) fn prepare(table: &Table, change: &Change, paths: &mut Paths) -> Result<()> {
    change.steps.iter().try_for_each(|step| {
        let path = paths.of(table, step.index_no)?.side(step.side);
        table.tree(step.index_no)?.prepare_change(change.get(step.key), change.record_of(step), path)
    })
}

/// Pages that [`apply`] may need besides the pinned ones, for splits from the leaf up to the root.
/// A change that is to be pending for its leaf needs none.
pub(crate) fn pages_needed(table: &Table, change: &Change, paths: &mut Paths) -> Result<usize> {
    let mut pages = 0;
    for step in &change.steps {
        let has_leaf = paths.of(table, step.index_no)?.side(step.side).has_leaf();
        pages += if has_leaf { PAGES_PER_LEAF } else { 0 };
    }
    // Of two steps in one tree, one only marks or removes a record, and hardly ever splits a leaf.
    Ok(pages.min(PAGES_PER_LEAF * (change.entries.len() + 1)))
}

/// Enters the mini-transaction once no page needs to be read inside it, where a read error would
/// stop the engine (leaves::B10). Does I/O.
pub(crate) fn enter<'p>(
    pool: &'p Pool,
    table: &Table,
    change: &Change,
    paths: &mut Paths,
) -> Result<MiniTransaction<'p>> {
    loop {
        let mtr = pool.enter();
        if reserve(&mtr, table, change, paths)? {
            return Ok(mtr);
        }
        drop(mtr);
        reach::mark("change not buffered after all");
        change.steps.iter().try_for_each(|step| {
            let path = paths.of(table, step.index_no)?.side(step.side);
            table.tree(step.index_no)?.prepare(change.get(step.key), path)
        })?;
    }
}

/// Turns the tickets into reservations, for all changes that are to be pending for their leaves.
/// Returns `false`, with nothing reserved, if a ticket is no longer valid. Inside the
/// mini-transaction, before any change (leaves::B10).
fn reserve(mtr: &MiniTransaction<'_>, table: &Table, change: &Change, paths: &mut Paths) -> Result<bool> {
    let mut are_reserved = Ok(true);
    for step in &change.steps {
        let (key, record) = (change.get(step.key), change.record_of(step));
        are_reserved = table.tree(step.index_no).and_then(|tree| {
            let path = paths.of(table, step.index_no)?.side(step.side);
            Ok(tree.reserve(mtr, key, record, path))
        });
        if !matches!(are_reserved, Ok(true)) {
            break;
        }
    }
    let is_refused = !matches!(are_reserved, Ok(true));
    if sound!(is_refused, "leaves: keep what was reserved when another place is refused") {
        release(table, paths);
    }
    are_reserved
}

fn release(table: &Table, paths: &mut Paths) {
    for (tree, of_tree) in table.trees().iter().zip(&mut paths.trees) {
        tree.release_reserved(&mut of_tree.old);
        tree.release_reserved(&mut of_tree.new);
    }
}

/// Applies the change as the operation `own`: its transaction and undo record, or `None` if every
/// snapshot sees the change. After an error the caller stops the engine, because the trees do not
/// match the change (I2).
pub(crate) fn apply(
    mtr: &MiniTransaction<'_>,
    table: &Table,
    change: &Change,
    paths: &mut Paths,
    own: Version,
) -> Result<()> {
    let mut steps = change.steps.iter();
    let applied = steps.try_for_each(|step| apply_step(mtr, table, change, step, paths, own));
    // The engine stops, but the other steps must not keep their reservations.
    applied.inspect_err(|_| release(table, paths))?;
    if change.rows != 0 {
        table.count_rows(change.rows);
    }
    Ok(())
}

fn apply_step(
    mtr: &MiniTransaction<'_>,
    table: &Table,
    change: &Change,
    step: &Step,
    paths: &mut Paths,
    own: Version,
) -> Result<()> {
    let tree = table.tree(step.index_no)?;
    let path = paths.of(table, step.index_no)?.side(step.side);
    let key = change.get(step.key);
    match step.work {
        Work::Put(payload) => {
            let version = own.map(|(txn, _)| (txn, UndoPtr(0)));
            let record = RecordRef { flags: RecordFlags::NONE, version, payload: change.payload(payload) };
            tree.put(mtr, path, key, record)
        }
        Work::Insert(payload) => {
            // There was no record before, so there is no undo record to refer to.
            let version = own.map(|(txn, _)| (txn, UndoPtr(0)));
            let record = RecordRef { flags: RecordFlags::NONE, version, payload: change.payload(payload) };
            let changed = tree.insert(mtr, path, key, record)?;
            expect(table, changed == Changed::Done, "a new record already exists")
        }
        Work::Replace { payload, stamp, marked } => {
            let version = match stamp {
                Stamp::Own => own,
                Stamp::Of(version) => version,
            };
            let flags = if marked { RecordFlags::DELETE_MARKED } else { RecordFlags::NONE };
            let record = RecordRef { flags, version, payload: change.payload(payload) };
            match tree.replace(mtr, path, key, record)? {
                Changed::Absent if step.index_no > 0 => {
                    // Changed without a lookup, as if every snapshot saw it; the entry is missing.
                    tree.leaves().note_missing(tree.def().id);
                    if marked && matches!(stamp, Stamp::Own) {
                        return Ok(());
                    }
                    let inserted = tree.insert(mtr, path, key, record)?;
                    expect(table, inserted == Changed::Done, "an entry found missing exists")
                }
                changed => expect(table, changed == Changed::Done, "the record to change is missing"),
            }
        }
        Work::Remove => match tree.remove(mtr, path, key)? {
            Removed::Absent if step.index_no > 0 => {
                tree.leaves().note_missing(tree.def().id);
                Ok(())
            }
            Removed::Absent => expect(table, false, "the record to remove is missing"),
            Removed::Gone { small } => {
                if small {
                    paths.small.push((step.index_no, step.key));
                }
                Ok(())
            }
        },
    }
}

fn expect(table: &Table, holds: bool, detail: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::corrupt(format!("table '{}'", table.name()), detail))
}
