//! The mini-transaction of a row operation: its undo record, the trees with the row count, and its
//! log record, all or nothing (I3 of [`super::operation`]).

use super::change::{self, FoundRecord};
use super::plan::Gone;
use super::request::Target;
use super::writer::Writer;
use crate::base::{reach, sound, Result, TxnId};
use crate::format::log_record::{encode_row, LoggedEntry, LoggedRow, RowOp};
use crate::format::undo_record::{self, RowParts, UndoEntry};
use crate::format::varint;
use crate::table::definitions::handle::Table;
use crate::table::shared::room::Need;
use crate::txn::start_record;

/// Bytes of an undo record besides keys and rows, for the row and for each entry.
const UNDO_BYTES_MORE: usize = 96;

impl Writer {
    /// For redo of a transaction that commits: writes no undo record, because there are no readers.
    pub(in crate::table) fn execute_for_good(&mut self, on: Target<'_>) -> Result<()> {
        let Target { core, slot, table, .. } = on;
        reach::mark("row operation redone for good");
        self.change.plan_forward(Gone::Removed);
        change::prepare(table, &self.change, &mut self.paths)?;
        core.make_room(Need::Back, change::pages_needed(table, &self.change, &mut self.paths)?)?;
        {
            let mtr = change::enter(&core.pool, table, &self.change, &mut self.paths)?;
            let applied = change::apply(&mtr, table, &self.change, &mut self.paths, None);
            core.health.must("a row operation", applied)?;
            slot.count_rows(table.id(), self.change.rows());
        }
        self.unclaimed.clear();
        core.note_merge(self.paths.merge_small(table, &self.change));
        Ok(())
    }

    pub(in crate::table) fn execute(&mut self, on: Target<'_>) -> Result<()> {
        let Target { core, slot, table, interrupted, .. } = on;
        self.change.plan_forward(Gone::Marked);
        change::prepare(table, &self.change, &mut self.paths)?;
        let undo_bytes = self.change.bytes_len() + UNDO_BYTES_MORE * (self.change.entries.len() + 1);
        let need = if self.change.op == RowOp::Delete { Need::Delete } else { Need::New };
        let pages = change::pages_needed(table, &self.change, &mut self.paths)?
            + core.transactions.undo.pages_needed(undo_bytes);
        core.make_room_unless(need, pages, interrupted)?;
        {
            let mtr = change::enter(&core.pool, table, &self.change, &mut self.paths)?;
            let mut state = slot.state();
            debug_assert!(state.xid.is_none(), "P2: a prepared transaction changes nothing");
            start_record(&state, &mut self.buffers.undo);
            self.encode_undo(table);
            let undo = core.transactions.undo.append(&mtr, &mut state, &self.buffers.undo);
            let own = Some((slot.txn(), undo));
            let applied = change::apply(&mtr, table, &self.change, &mut self.paths, own);
            core.health.must("a row operation", applied)?;
            slot.count_rows(table.id(), self.change.rows());
            if self.change.rows() != 0 || !self.change.entries.is_empty() {
                table.count_changed_row();
            }
            let auto_increment = table.take_auto_increment_to_log();
            if !sound!(!slot.is_logged(), "temporary: log their rows") && core.journal.log().is_some() {
                self.encode_log(slot.txn(), table, auto_increment);
                core.journal.append(&mtr, &self.buffers.log)?;
            }
        }
        if self.change.leaves_garbage() || !self.freed.is_empty() {
            slot.note_garbage();
        }
        self.unclaimed.clear();
        // The row operation is done: a failed merge does not fail it.
        core.note_merge(self.paths.merge_small(table, &self.change));
        Ok(())
    }

    fn encode_log(&mut self, txn: TxnId, table: &Table, auto_increment: u64) {
        let change = &self.change;
        let new_key = if change.keeps_key() { &[][..] } else { change.get(change.new_key) };
        let row = LoggedRow {
            table: table.id(),
            old_key: change.get(change.old_key),
            new_key,
            row: change.get(change.bare_row),
            auto_increment,
        };
        let logged = sound!(true, "table: log no secondary keys").then_some(change.entries.as_slice());
        let entries = logged.unwrap_or_default().iter().map(|entry| {
            let payload = change.get(entry.payload);
            let head = varint::get(payload).map_or(0, |(_, used)| used);
            LoggedEntry {
                index: table.number_of(entry.index_no),
                old_key: change.caller_key(entry.old_key),
                new_key: change.caller_key(entry.new_key),
                payload: payload.get(head..).unwrap_or_default(),
            }
        });
        self.buffers.log.clear();
        encode_row(&mut self.buffers.log, change.op, txn, &row, &self.large, entries);
    }

    /// The head is already in the buffer.
    fn encode_undo(&mut self, table: &Table) {
        let Writer { change, buffers, freed, .. } = self;
        let new_key = if change.keeps_key() { &[][..] } else { change.get(change.new_key) };
        let parts = RowParts {
            op: change.op,
            table: table.id(),
            old_key: change.get(change.old_key),
            new_key,
            old: change.before_of(&change.old),
            marked: change.marked.as_ref().map(|held| change.before_of(held)),
            freed,
        };
        let entries = change.entries.iter().map(|entry| UndoEntry {
            index: table.number_of(entry.index_no),
            old_key: change.caller_key(entry.old_key),
            new_key: change.caller_key(entry.new_key),
            old: change.before_of(entry.old.record().unwrap_or(&FoundRecord::default())),
            marked: entry.new.record().map(|held| change.before_of(held)),
        });
        undo_record::put_row(&mut buffers.undo, &parts, entries);
        undo_record::finish(&mut buffers.undo);
    }
}
