//! What a row operation looks at before it changes anything: the row that goes, the place of the
//! row that comes, and their entries. What keeps it so until the mini-transaction says
//! [`super::operation`].

use super::change::{EntryChange, FoundRecord, TreePaths};
use super::request::RowRequest;
use super::writer::Writer;
use crate::base::{planted, Error, Result};
use crate::format::log_record::{LoggedEntry, RowOp};
use crate::format::varint;
use crate::table::definitions::handle::Table;
use crate::table::shared::parts::Core;

/// Which entries of a row are looked at.
#[derive(Clone, Copy)]
pub(in crate::table) enum Seen<'a> {
    /// All: in redo, which does not know the old payload.
    All,
    /// Those whose leaf is in memory. In redo, of what commits for certain: what goes is removed
    /// and what comes is put, whatever is there.
    RedoneForGood,
    /// Those of a row that not everybody sees.
    UnlessSettled(Settled<'a>),
}

/// What is needed to leave entries unseen of a row that everybody sees.
#[derive(Clone, Copy)]
pub(in crate::table) struct Settled<'a> {
    core: &'a Core,
    /// Whether changes can wait for their leaves at all.
    may_wait: bool,
    /// The caller's payload of the entry that goes, and how long the old key of the row is.
    old_payload: &'a [u8],
    old_len: usize,
}

impl Writer {
    /// Reads the row that changes or goes.
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

    /// Looks at where a row comes that was not there: whether one is there.
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

    /// Pairs the entries that go with those that come.
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

    /// Adds one entry, looking at what goes and making sure that what comes is not there; unless
    /// its leaf is not in memory, and it may be left unseen.
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
        let settled = if let Seen::UnlessSettled(settled) = seen { Some(settled) } else { None };
        let is_for_good = matches!(seen, Seen::RedoneForGood);
        let Writer { change, paths, .. } = self;
        let tree = table.tree(entry.index_no)?;
        let into = paths.of(table, entry.index_no)?;
        let damaged =
            |detail| Error::corrupt(format!("index {} of table '{}'", entry.index_no, table.name()), detail);
        if let Some((old, _)) = entry.old_key {
            let is_settled = |settled: &Settled<'_>| {
                settled.core.is_settled(change.old.version)
                    || planted::is_on("blind: mark what not everybody sees")
            };
            let blind = settled.filter(|settled| settled.may_wait && !change.entry_keeps_key(entry));
            let blind = blind.filter(is_settled);
            let marked = blind.map(|settled| {
                let mut length = [0u8; varint::MAX_BYTES];
                let head = varint::bytes_of(settled.old_len as u64, &mut length);
                change.take_ticket_to_mark(tree, old, [head, settled.old_payload], &mut into.old)
            });
            entry.goes_unseen = is_for_good
                && !change.entry_keeps_key(entry)
                && change.take_ticket_to_remove(tree, old, &mut into.old)?;
            entry.old = match marked.transpose()?.flatten() {
                Some(held) => held,
                None if entry.goes_unseen => FoundRecord::default(),
                None => match change.look(tree, old, &mut into.old)? {
                    Some((false, held)) => held,
                    // Who made the change has not looked, perhaps, and it is told when it is made.
                    _ if settled.is_none() => {
                        tree.leaves().note_missing(tree.def().id);
                        FoundRecord::default()
                    }
                    _ => return Err(damaged("the entry of the row to change is missing; run CHECK TABLE")),
                },
            };
        }
        let Some((new, _)) = entry.new_key.filter(|_| !change.entry_keeps_key(entry)) else { return Ok(()) };
        let TreePaths { old, new: path, .. } = into;
        // If there is no record under the new key of the row, or everybody sees it, then nobody
        // asks for a mark that this entry replaces (B8).
        let in_place = if change.keeps_key() { Some(change.old) } else { change.marked };
        let is_first = match (in_place, settled) {
            (None, _) => true,
            (Some(found), Some(settled)) => settled.may_wait && settled.core.is_settled(found.version),
            (Some(_), None) => false,
        };
        let is_lacking = change.lacking.contains(&entry.index_no);
        let may_leave_unseen = is_first || planted::is_on("blind: put beside what not everybody sees");
        if is_lacking || is_for_good || may_leave_unseen && !table.is_unique(entry.index_no) {
            entry.is_put = change.take_ticket(tree, new, entry.payload, path)?;
            if entry.is_put {
                return Ok(());
            }
        }
        match change.look_near(tree, new, path, old)? {
            None => {}
            Some((true, held)) => entry.marked = Some(held),
            Some((false, _)) => {
                return Err(damaged("an entry of the new row is there already; run CHECK TABLE"))
            }
        }
        Ok(())
    }
}
