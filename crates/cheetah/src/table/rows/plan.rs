//! Plans the steps of a [`Change`]: forward, backward, and at purge. [`super::change`] defines
//! their order, and which records are never removed.

use super::change::{
    rows_of, BufferRange, Change, Found, FoundRecord, Paths, Payload, Side, Stamp, Version, Work,
};
use crate::base::{sound, Result};
use crate::format::log_record::RowOp;
use crate::format::undo_record::{Before, UndoEntry, UndoRow};
use crate::table::definitions::handle::Table;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gone {
    /// Marked as deleted, for readers that still see them.
    Marked,
    /// No reader sees them, and the operation is never rolled back.
    Removed,
}

impl Change {
    /// The operation's lookups must still hold.
    pub(crate) fn plan_forward(&mut self, gone: Gone) {
        let keeps_key = self.keeps_key();
        let goes = |held: &FoundRecord| match gone {
            Gone::Marked => own(Payload::Before(held.payload), true),
            Gone::Removed => Work::Remove,
        };
        let row = Payload::New(self.row);
        if keeps_key {
            self.step(0, Side::Old, self.old_key, own(row, false));
        } else {
            if self.op != RowOp::Insert {
                self.step(0, Side::Old, self.old_key, goes(&self.old));
            }
            if self.op != RowOp::Delete {
                self.step(0, Side::New, self.new_key, put_new(row, self.marked));
            }
        }
        for no in 0..self.entries.len() {
            let Some(entry) = self.entries.get(no).copied() else { continue };
            let payload = Payload::New(entry.payload);
            if self.entry_keeps_key(&entry) {
                let key = entry.old_key.map_or(BufferRange::default(), |key| key.0);
                self.step(entry.index_no, Side::Old, key, own(payload, false));
                continue;
            }
            let work = match entry.old {
                Found::Record(held) => Some(goes(&held)),
                Found::Unseen => Some(Work::Remove),
                // Redo found no such entry.
                Found::Nothing => None,
            };
            let work = work.filter(|_| sound!(true, "index: leave the entry that goes"));
            if let (Some((key, _)), Some(work)) = (entry.old_key, work) {
                self.step(entry.index_no, Side::Old, key, work);
            }
            if let Some((key, _)) = entry.new_key {
                let work = match entry.new {
                    Found::Unseen => Work::Put(payload),
                    found => put_new(payload, found.record().copied()),
                };
                self.step(entry.index_no, Side::New, key, work);
            }
        }
        self.rows = rows_of(self.op);
    }

    /// Plans to undo `row`. `is_settled`: whether every snapshot sees the version of a
    /// delete-marked record. Such a record is not restored: purge may have passed it and would
    /// never remove it. Entries of dropped indexes are left out.
    pub(crate) fn plan_backward(
        &mut self,
        table: &Table,
        row: &UndoRow<'_>,
        is_settled: &dyn Fn(Version) -> bool,
    ) {
        let keeps_key = row.op == RowOp::Update && row.new_key.is_empty();
        self.start(row.op, row.old_key, if keeps_key { row.old_key } else { row.new_key });
        for entry in &row.entries {
            if let Some(index_no) = table.position_of(entry.index) {
                self.plan_entry_backward(index_no, row, entry, is_settled);
            }
        }
        if row.op != RowOp::Delete && !keeps_key {
            let work = self.take_out(row.marked.as_ref(), is_settled);
            self.step(0, Side::New, self.new_key, work);
        }
        if row.op != RowOp::Insert {
            let work = self.put_back(&row.old, false);
            self.step(0, Side::Old, self.old_key, work);
        }
        self.rows = -rows_of(row.op);
    }

    fn plan_entry_backward(
        &mut self,
        index_no: usize,
        row: &UndoRow<'_>,
        entry: &UndoEntry<'_>,
        is_settled: &dyn Fn(Version) -> bool,
    ) {
        let old = self.put_stored_key(entry.old_key, self.old_key);
        let new = self.put_stored_key(entry.new_key, self.new_key);
        let keeps_key = row.op == RowOp::Update && self.get(old) == self.get(new);
        if row.op != RowOp::Delete && !keeps_key {
            let work = self.take_out(entry.marked.as_ref(), is_settled);
            self.step(index_no, Side::New, new, work);
        }
        // Redo found no such entry: a stored payload is never empty.
        if row.op != RowOp::Insert && !entry.old.payload.is_empty() {
            let work = self.put_back(&entry.old, false);
            self.step(index_no, Side::Old, old, work);
        }
    }

    /// Removes the new record, or restores the delete-marked record it replaced.
    fn take_out(&mut self, marked: Option<&Before<'_>>, is_settled: &dyn Fn(Version) -> bool) -> Work {
        let is_needed = |version| sound!(!is_settled(version), "rollback: forget the mark that was there");
        match marked.filter(|before| is_needed(before.version)) {
            None => Work::Remove,
            Some(before) => self.put_back(before, true),
        }
    }

    fn put_back(&mut self, before: &Before<'_>, marked: bool) -> Work {
        let payload = Payload::New(self.put(&[before.payload]));
        Work::Replace { payload, stamp: Stamp::Of(before.version), marked }
    }

    /// For [`plan_removal`](Self::plan_removal) of the records that `row` marked as deleted.
    pub(crate) fn start_purge(&mut self, row: &UndoRow<'_>) {
        self.start(RowOp::Delete, row.old_key, b"");
    }

    /// Plans to remove the record of the row's old key, or of one of its entries, if `is_dead`
    /// accepts its delete mark and version; that must hold until the change is applied. Outside
    /// mini-transactions; may do I/O.
    pub(crate) fn plan_removal(
        &mut self,
        table: &Table,
        paths: &mut Paths,
        index_no: usize,
        entry_key: &[u8],
        is_dead: impl FnOnce(bool, Version) -> bool,
    ) -> Result<()> {
        let key = self.put_stored_key(entry_key, self.old_key);
        let path = &mut paths.of(table, index_no)?.old;
        let found = self.look(table.tree(index_no)?, key, path)?;
        if found.is_some_and(|(marked, held)| is_dead(marked, held.version)) {
            self.step(index_no, Side::Old, key, Work::Remove);
        }
        Ok(())
    }
}

fn own(payload: Payload, marked: bool) -> Work {
    Work::Replace { payload, stamp: Stamp::Own, marked }
}

fn put_new(payload: Payload, marked: Option<FoundRecord>) -> Work {
    match marked {
        None => Work::Insert(payload),
        Some(_) => own(payload, false),
    }
}
