//! The lookups of a row operation before it changes anything: the old row, the key of the new row,
//! and the entries of both. [`super::operation`] explains why their results hold until the
//! mini-transaction.

use super::change::{BufferRange, Change, EntryChange, Found, FoundRecord, Payload, TreePaths};
use super::request::RowRequest;
use super::writer::Writer;
use crate::base::{reach, sound, Error, Result};
use crate::format::log_record::{LoggedEntry, RowOp};
use crate::format::varint;
use crate::leaves::Expect;
use crate::table::definitions::handle::Table;
use crate::table::shared::parts::Core;

#[derive(Clone, Copy)]
pub(in crate::table) enum Seen<'a> {
    /// All: redo does not know the old payload.
    All,
    /// Entries whose leaf is in memory. In redo of transactions that certainly commit: the old
    /// entry is removed and the new entry is put without a lookup.
    RedoneForGood,
    /// Entries of rows that some snapshot does not see, and entries whose leaf is in memory.
    UnlessSettled(Settled<'a>),
}

/// For leaving the entries of a settled row unseen.
#[derive(Clone, Copy)]
pub(in crate::table) struct Settled<'a> {
    core: &'a Core,
    /// Whether changes can be pending for their leaves at all.
    may_wait: bool,
    /// The caller's payload of the old entry, and the length of the old row's key.
    old_payload: &'a [u8],
    old_len: usize,
}

impl Writer {
    pub(in crate::table) fn read_old_row(&mut self, table: &Table) -> Result<()> {
        self.old_values.clear();
        if self.change.op == RowOp::Insert {
            return Ok(());
        }
        let Writer { change, paths, old_values, .. } = self;
        let path = &mut paths.of(table, 0)?.old;
        match change.look(table.clustered(), change.old_key, path)? {
            Some((false, held)) => change.old = held,
            _ => return Err(Error::RowNotFound),
        }
        table.find_stored_values(change.held(&change.old), old_values)
    }

    /// Looks up the new key, if the operation adds a row there; returns whether a row exists.
    pub(in crate::table) fn look_at_new_row(&mut self, table: &Table) -> Result<bool> {
        let Writer { change, paths, .. } = self;
        if change.op == RowOp::Delete || change.keeps_key() {
            return Ok(false);
        }
        let path = &mut paths.of(table, 0)?.new;
        match change.look(table.clustered(), change.new_key, path)? {
            None => {}
            Some((true, held)) => change.marked = Some(held),
            Some((false, _)) => return Ok(true),
        }
        Ok(false)
    }

    pub(in crate::table) fn add_entries(
        &mut self,
        core: &Core,
        table: &Table,
        request: &RowRequest<'_>,
    ) -> Result<()> {
        let (old, new_entries) = (request.old_entries, request.new_entries());
        let (old_len, new_len) =
            (self.change.get(self.change.old_key).len(), self.change.get(self.change.new_key).len());
        for no in 0..old.len().max(new_entries.len()) {
            let (old, new) = (old.get(no), new_entries.get(no));
            let index_no = old.map(|old| old.index_no).or(new.map(|new| new.index_no)).unwrap_or_default();
            let mismatch = new.is_some_and(|new| new.index_no != index_no)
                || (self.change.op == RowOp::Update && old.is_some() != new.is_some())
                || index_no == 0;
            if mismatch {
                let what = "index numbers of old and new entries that differ";
                return Err(Error::Limit { what, actual: index_no as u64, limit: 0 });
            }
            let entry = LoggedEntry {
                index: table.number_of(index_no),
                old_key: old.map_or(b"", |old| old.key),
                new_key: new.map_or(b"", |new| new.key),
                payload: new.map_or(b"", |new| new.payload),
            };
            let old_payload = old.map_or(&b""[..], |old| old.payload);
            let settled = Settled { core, may_wait: core.leaves.has_tickets(), old_payload, old_len };
            self.add_entry(table, index_no, &entry, new_len, Seen::UnlessSettled(settled))?;
        }
        Ok(())
    }

    /// Looks up the old entry and checks that the new entry does not exist, unless their leaf is
    /// not in memory and the entry may be left unseen.
    pub(in crate::table) fn add_entry(
        &mut self,
        table: &Table,
        index_no: usize,
        entry: &LoggedEntry<'_>,
        new_len: usize,
        seen: Seen<'_>,
    ) -> Result<()> {
        let op = self.change.op;
        let old_key = (op != RowOp::Insert).then_some(entry.old_key);
        let new_key = (op != RowOp::Delete).then_some(entry.new_key);
        let mut length = [0u8; varint::MAX_BYTES];
        let head = varint::bytes_of(new_len as u64, &mut length);
        let payload: [&[u8]; 2] = if new_key.is_some() { [head, entry.payload] } else { [b"", b""] };
        let mut added = *self.change.add_entry(index_no, old_key, new_key, &payload);
        self.look_at_entry(table, &mut added, seen)?;
        if let Some(last) = self.change.entries.last_mut() {
            *last = added;
        }
        Ok(())
    }

    fn look_at_entry(&mut self, table: &Table, entry: &mut EntryChange, seen: Seen<'_>) -> Result<()> {
        let keeps_key = self.change.entry_keeps_key(entry);
        if let Some((old, _)) = entry.old_key {
            let expect = if keeps_key { None } else { seen.expect_of_old(&self.change) };
            entry.old = self.look_at_old_entry(table, entry.index_no, old, expect, seen)?;
        }
        if let Some((new, _)) = entry.new_key.filter(|_| !keeps_key) {
            entry.new = self.look_at_new_entry(table, entry, new, seen)?;
        }
        Ok(())
    }

    /// Looks up the old entry, unless its leaf is cold and `expect` gives the existing record.
    fn look_at_old_entry(
        &mut self,
        table: &Table,
        index_no: usize,
        key: BufferRange,
        expect: Option<Expect>,
        seen: Seen<'_>,
    ) -> Result<Found> {
        let Writer { change, paths, .. } = self;
        let tree = table.tree(index_no)?;
        let path = &mut paths.of(table, index_no)?.old;
        match (expect, seen) {
            (Some(Expect::Live), Seen::UnlessSettled(settled)) => {
                let mut length = [0u8; varint::MAX_BYTES];
                let head = varint::bytes_of(settled.old_len as u64, &mut length);
                let payload = change.put_before(&[head, settled.old_payload]);
                if change.leave_cold(tree, key, Expect::Live, Some(Payload::Before(payload)), path)? {
                    reach::mark("entry marked unseen");
                    return Ok(Found::Record(FoundRecord { version: None, payload }));
                }
            }
            (Some(expect), _) if change.leave_cold(tree, key, expect, None, path)? => {
                reach::mark("entry removed unseen");
                return Ok(Found::Unseen);
            }
            _ => {}
        }
        match change.look(tree, key, path)? {
            Some((false, held)) => Ok(Found::Record(held)),
            // The earlier change may have made no lookup. Applying this one counts missing entries.
            _ if !matches!(seen, Seen::UnlessSettled(_)) => {
                tree.leaves().note_missing(tree.def().id);
                Ok(Found::Nothing)
            }
            _ => Err(damaged(table, index_no, "the entry of the row to change is missing; run CHECK TABLE")),
        }
    }

    /// Skips the lookup in a cold leaf that has at most a delete mark which no reader needs.
    fn look_at_new_entry(
        &mut self,
        table: &Table,
        entry: &EntryChange,
        key: BufferRange,
        seen: Seen<'_>,
    ) -> Result<Found> {
        let Writer { change, paths, .. } = self;
        let tree = table.tree(entry.index_no)?;
        let TreePaths { old, new: path, .. } = paths.of(table, entry.index_no)?;
        let may_leave_unseen = change.lacking.contains(&entry.index_no)
            || matches!(seen, Seen::RedoneForGood)
            || seen.is_first_of_its_key(change) && !table.is_unique(entry.index_no);
        let payload = Some(Payload::New(entry.payload));
        if may_leave_unseen && change.leave_cold(tree, key, Expect::New, payload, path)? {
            return Ok(Found::Unseen);
        }
        match change.look_near(tree, key, path, old)? {
            None => Ok(Found::Nothing),
            Some((true, held)) => Ok(Found::Record(held)),
            Some((false, _)) => {
                let detail = "an entry of the new row already exists; run CHECK TABLE";
                Err(damaged(table, entry.index_no, detail))
            }
        }
    }
}

impl Seen<'_> {
    /// The expected old entry, if known without a lookup.
    fn expect_of_old(&self, change: &Change) -> Option<Expect> {
        match self {
            Seen::All => None,
            Seen::RedoneForGood => Some(Expect::Any),
            Seen::UnlessSettled(settled) => {
                let is_settled = || {
                    !sound!(
                        !settled.core.is_settled(change.old.version),
                        "blind: mark what not everybody sees"
                    )
                };
                (settled.may_wait && is_settled()).then_some(Expect::Live)
            }
        }
    }

    /// Whether no reader needs a record that may exist under the new entry's key: the new key of
    /// the row has no record, or one that every snapshot sees (leaves::B8).
    fn is_first_of_its_key(&self, change: &Change) -> bool {
        let in_place = if change.keeps_key() { Some(change.old) } else { change.marked };
        let is_first = match (in_place, self) {
            (None, _) => true,
            (Some(found), Seen::UnlessSettled(settled)) => {
                settled.may_wait && settled.core.is_settled(found.version)
            }
            (Some(_), _) => false,
        };
        !sound!(!is_first, "blind: put beside what not everybody sees")
    }
}

fn damaged(table: &Table, index_no: usize, detail: &str) -> Error {
    Error::corrupt(format!("index {index_no} of table '{}'", table.name()), detail)
}
