//! Repeats logged row operations, as a whole as in the first run, or split into changes of single
//! records, which are applied in key order.
//!
//! Invariants
//!   I1  [`Writer::redo`] runs the code of the first run with the values in the log, without
//!       uniqueness checks and locks. If it knows that the transaction commits, it writes no undo
//!       records.
//!   I2  An operation is split only if its transaction certainly commits and its new row has no
//!       large values. So only the last of several changes to one record matters.
//!   I3  The changes of a split operation outside the trees (row counts, auto-increment values) are
//!       made at once, by the thread that reads the log.

use super::large;
use super::look::Seen;
use super::request::Target;
use super::writer::Writer;
use crate::base::{reach, sound, Error, Result};
use crate::format::log_record::{LargeSource, LoggedEntry, LoggedRow, RowOp};
use crate::format::page::{RecordFlags, RecordRef};
use crate::format::row::LOCATOR_BYTES;
use crate::format::varint;
use crate::table::definitions::handle::Table;
use crate::table::rows::change::{rows_of, PAGES_PER_LEAF};
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::tree::{Changed, Removed};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordChange<'a> {
    pub(crate) index_no: usize,
    pub(crate) key: &'a [u8],
    /// A settled record exists before the change.
    pub(crate) was_there: bool,
    /// The stored payload after the change; `None` if the record is removed.
    pub(crate) payload: Option<&'a [u8]>,
}

impl Writer {
    /// `commits`: the transaction certainly commits; otherwise it may be rolled back.
    pub(crate) fn redo(
        &mut self,
        on: Target<'_>,
        commits: bool,
        op: RowOp,
        logged: &LoggedRow<'_>,
        large: &[LargeSource],
        entries: &[LoggedEntry<'_>],
    ) -> Result<()> {
        let table = on.table;
        let _usage = table.use_it()?;
        self.start_redo(table, op, logged);
        let _latch = self.purge_latch(on);
        self.read_old_row(table).map_err(|error| match error {
            Error::RowNotFound => disagrees(table, "the row to change is missing"),
            error => error,
        })?;
        if self.look_at_new_row(table)? {
            return Err(disagrees(table, "the new row already exists"));
        }
        if op != RowOp::Delete {
            self.build_logged_row(table, logged.row, large)?;
        }
        self.collect_freed(table)?;
        let is_for_good = commits && self.leaves_nothing();
        let may_roll_back = sound!(!is_for_good, "redo: leave entries unseen of what may be rolled back");
        let seen = if may_roll_back { Seen::All } else { Seen::RedoneForGood };
        let new_len = self.change.get(self.change.new_key).len();
        // The secondary indexes of the copy of a damaged database are rebuilt.
        let entries = if on.core.losses.is_some() { &[] } else { entries };
        for entry in entries {
            self.add_entry(table, table.position_of_logged(entry.index)?, entry, new_len, seen)?;
        }
        match is_for_good {
            true => self.execute_for_good(on),
            false => self.execute(on),
        }
    }

    /// Splits a logged row operation (I2). Does no I/O of its own.
    pub(crate) fn take_apart(
        &mut self,
        on: Target<'_>,
        op: RowOp,
        logged: &LoggedRow<'_>,
        entries: &[LoggedEntry<'_>],
        mut each: impl FnMut(RecordChange<'_>),
    ) -> Result<()> {
        let table = on.table;
        let _usage = table.use_it()?;
        reach::mark("row operation taken apart");
        self.start_redo(table, op, logged);
        if op != RowOp::Delete {
            self.build_logged_row(table, logged.row, &[])?;
        }
        table.count_rows(rows_of(op));
        on.slot.count_rows(table.id(), rows_of(op));
        let change = &mut self.change;
        let (old, new) = (change.old_key, change.new_key);
        let (goes, comes) = (op != RowOp::Insert, op != RowOp::Delete);
        let row = change.get(change.row);
        if goes && !change.keeps_key() {
            each(RecordChange { index_no: 0, key: change.get(old), was_there: true, payload: None });
        }
        if comes {
            let was_there = change.keeps_key();
            each(RecordChange { index_no: 0, key: change.get(new), was_there, payload: Some(row) });
        }
        let mut length = [0u8; varint::MAX_BYTES];
        let head = varint::bytes_of(change.get(new).len() as u64, &mut length);
        for entry in entries {
            let index_no = table.position_of_logged(entry.index)?;
            let old = change.put_stored_key(entry.old_key, old);
            let new = change.put_stored_key(entry.new_key, new);
            let payload = change.put(&[head, entry.payload]);
            let (old, new, payload) = (change.get(old), change.get(new), change.get(payload));
            let stays = goes && comes && old == new;
            if goes && !stays {
                each(RecordChange { index_no, key: old, was_there: true, payload: None });
            }
            if comes {
                each(RecordChange { index_no, key: new, was_there: stays, payload: Some(payload) });
            }
        }
        Ok(())
    }

    /// Returns `Corruption` if a row exists that must not, or is missing.
    pub(crate) fn apply_record_change(
        &mut self,
        core: &Core,
        table: &Table,
        record: &RecordChange<'_>,
    ) -> Result<()> {
        let _usage = table.use_it()?;
        let &RecordChange { index_no, key, was_there, payload } = record;
        let tree = table.tree(index_no)?;
        let Self { paths, old_values, freed, .. } = self;
        let path = &mut paths.of(table, index_no)?.old;
        freed.clear();
        old_values.clear();
        let found = tree.get_loaded(key, path, |found| {
            if index_no == 0 && !found.is_marked() {
                table.find_stored_values(found.payload, old_values)?;
                let external = old_values.iter().filter(|value| value.external);
                external
                    .for_each(|value| freed.extend(found.payload.get(value.at.clone()).unwrap_or_default()));
            }
            Ok(found.is_marked())
        })?;
        let is_marked = found.transpose()?;
        match (index_no, is_marked == Some(false)) {
            (_, is_there) if is_there == was_there => {}
            (0, true) => return Err(disagrees(table, "the new row already exists")),
            (0, false) => return Err(disagrees(table, "the row to change is missing")),
            // As for entries left unseen, the mismatch is counted, and the entry ends up correct.
            (_, false) => tree.leaves().note_missing(tree.def().id),
            (_, true) => tree.leaves().note_live_replaced(tree.def().id),
        }
        core.make_room(Need::Back, PAGES_PER_LEAF)?;
        let mut is_small = false;
        {
            let mtr = core.pool.enter();
            let record =
                payload.map(|payload| RecordRef { flags: RecordFlags::NONE, ..RecordRef::frozen(payload) });
            let applied = match (record, is_marked) {
                (Some(record), None) => {
                    tree.insert(&mtr, path, key, record).map(|done| done == Changed::Done)
                }
                (Some(record), Some(_)) => {
                    tree.replace(&mtr, path, key, record).map(|done| done == Changed::Done)
                }
                (None, Some(_)) => tree.remove(&mtr, path, key).map(|removed| {
                    is_small = removed == Removed::Gone { small: true };
                    removed != Removed::Absent
                }),
                (None, None) => Ok(true),
            };
            let applied = applied.and_then(|is_done| match is_done {
                true => Ok(()),
                false => Err(disagrees(table, "a record changed during redo")),
            });
            core.health.must("a change of a record", applied)?;
        }
        let freed = std::mem::take(&mut self.freed);
        for locator in freed.chunks(LOCATOR_BYTES) {
            reach::mark("large value freed in redo");
            large::free_value(core, table.blob_owner(), locator)?;
        }
        self.freed = freed;
        if is_small {
            core.note_merge(self.paths.merge(table, index_no, key));
        }
        Ok(())
    }

    fn start_redo(&mut self, table: &Table, op: RowOp, logged: &LoggedRow<'_>) {
        table.note_written();
        let keeps_key = op == RowOp::Update && logged.new_key.is_empty();
        let new_key = if keeps_key { logged.old_key } else { logged.new_key };
        self.change.start(op, logged.old_key, new_key);
        if op != RowOp::Delete {
            table.note_hidden_key(new_key);
            table.advance_auto_increment(logged.auto_increment);
            table.take_auto_increment_to_log();
        }
    }
}

fn disagrees(table: &Table, detail: &str) -> Error {
    Error::corrupt(format!("table '{}'", table.name()), detail)
}
