//! Applies row operations and pieces of large values, one by one.

use super::sorted::{each_change, RowKeys, SortedChanges};
use crate::base::{Error, Result, TableId};
use crate::format::log_record::{LogRecord, RowOp};
use crate::format::undo_record::{self, Before, UndoBlob, UndoBody, UndoRow};
use crate::table::rows::large::{self, LargePiece};
use crate::table::rows::request::Target;
use crate::table::rows::writer::{Unclaimed, Writer};
use crate::table::shared::parts::Core;
use crate::table::shared::room::Need;
use crate::table::Table;
use crate::txn::{start_record, Slot};
use parking_lot::Mutex;
use std::sync::Arc;

/// A transaction that has not ended at the current position in the log.
pub(super) struct Txn {
    pub(super) slot: Arc<Slot>,
    /// Whether the log has its commit and it rolled nothing back (I6 of [`super::redo`]).
    commits: bool,
    /// Large values to which no row refers yet.
    pub(super) unclaimed: Mutex<Unclaimed>,
}

impl Txn {
    pub(super) fn new(slot: Arc<Slot>, commits: bool, unclaimed: Unclaimed) -> Arc<Self> {
        Arc::new(Self { slot, commits, unclaimed: Mutex::new(unclaimed) })
    }

    pub(super) fn commits(&self) -> bool {
        self.commits
    }
}

#[derive(Default)]
pub(super) struct Applier {
    pub(super) writer: Writer,
    table: Option<Arc<Table>>,
}

impl Applier {
    pub(super) fn apply(&mut self, core: &Core, txn: &Txn, record: &LogRecord<'_>) -> Result<()> {
        match record {
            LogRecord::Row { op, row, large, entries, .. } => {
                let table = self.table(core, row.table)?;
                self.unless_quarantined(
                    core,
                    txn,
                    &table,
                    &placeholder_row(*op, row.table),
                    |slot, writer| {
                        let on = Target { core, slot, table: &table, locks: None, interrupted: &|| false };
                        writer.redo(on, txn.commits, *op, row, large, entries)
                    },
                )
            }
            LogRecord::Blob { table, total_bytes, offset, bytes, .. } => {
                let piece = LargePiece { table: *table, total_bytes: *total_bytes, offset: *offset, bytes };
                let table = self.table(core, *table)?;
                self.unless_quarantined(core, txn, &table, &placeholder_piece(&piece), |slot, writer| {
                    let owner = table.blob_owner();
                    core.make_room(Need::New, large::PAGES_NEEDED_PER_STEP)?;
                    large::write_step(core, slot, &mut writer.unclaimed, owner, &piece, &mut writer.buffers)
                })
            }
            _ => Err(Error::corrupt("log", "a record of another kind among row operations")),
        }
    }

    /// Applies a piece of sorted changes, except those of quarantined tables. Damage quarantines a
    /// table.
    pub(super) fn apply_sorted(&mut self, core: &Core, work: &[u8]) -> Result<()> {
        each_change(work, |id, record| {
            let table = self.table(core, id)?;
            if table.quarantine_reason().is_some() {
                return Ok(());
            }
            match self.writer.apply_record_change(core, &table, record) {
                Ok(()) => Ok(()),
                Err(error) => core.quarantine(id, error, true),
            }
        })
    }

    /// Splits a row operation on the rows with these keys into sorted changes if its new row has no
    /// large values; otherwise returns `false`, and the operation must be applied as a whole. The
    /// transaction must commit everything that it does.
    pub(super) fn take_apart(
        &mut self,
        core: &Core,
        txn: &Txn,
        record: &LogRecord<'_>,
        keys: RowKeys<'_>,
        sorted: &mut SortedChanges<'_>,
    ) -> Result<bool> {
        let LogRecord::Row { op, row, large, entries, .. } = record else { return Ok(false) };
        let table = self.table(core, row.table)?;
        if !large.is_empty() || table.quarantine_reason().is_some() || !sorted.begin(row.table, keys) {
            return Ok(false);
        }
        let on = Target { core, slot: &txn.slot, table: &table, locks: None, interrupted: &|| false };
        let mut pushed = Ok(());
        let taken = self.writer.take_apart(on, *op, row, entries, |change| {
            if pushed.is_ok() {
                pushed = sorted.push(row.table, &change);
            }
        });
        pushed?;
        match taken {
            Ok(()) => Ok(true),
            // The operation is then applied as a whole, which appends a quarantined table's undo
            // record.
            Err(error) => core.quarantine(table.id(), error, true).map(|()| false),
        }
    }

    fn table(&mut self, core: &Core, id: TableId) -> Result<Arc<Table>> {
        match &self.table {
            Some(table) if table.id() == id && !table.is_dropped() => Ok(Arc::clone(table)),
            _ => {
                let table = table_of(core, id)?;
                self.table = Some(Arc::clone(&table));
                Ok(table)
            }
        }
    }

    /// Runs `apply` with the transaction's unclaimed large values in the writer. If `apply` meets
    /// damage, quarantines the table. For a quarantined table, appends an undo record with nothing
    /// to roll back instead, so that undo records keep their numbers (I4 of [`super::redo`]).
    fn unless_quarantined(
        &mut self,
        core: &Core,
        txn: &Txn,
        table: &Table,
        placeholder: &UndoBody<'_>,
        apply: impl FnOnce(&Arc<Slot>, &mut Writer) -> Result<()>,
    ) -> Result<()> {
        let Self { writer, .. } = self;
        let slot = &txn.slot;
        let mut unclaimed = txn.unclaimed.lock();
        let undo_no = slot.undo_no();
        if table.quarantine_reason().is_none() {
            std::mem::swap(&mut *unclaimed, &mut writer.unclaimed);
            let applied = apply(slot, writer);
            std::mem::swap(&mut *unclaimed, &mut writer.unclaimed);
            match applied {
                Ok(()) => return Ok(()),
                Err(error) => core.quarantine(table.id(), error, true)?,
            }
        }
        unclaimed.clear();
        if slot.undo_no() > undo_no {
            return Ok(());
        }
        let record = &mut writer.buffers.undo;
        start_record(&slot.state(), record);
        undo_record::put_body(record, placeholder);
        undo_record::finish(record);
        core.make_room(Need::Back, core.transactions.undo.pages_needed(record.len()))?;
        let mtr = core.pool.enter();
        core.transactions.undo.append(&mtr, &mut slot.state(), record);
        Ok(())
    }
}

pub(super) fn table_of(core: &Core, id: TableId) -> Result<Arc<Table>> {
    let unknown = || Error::corrupt("log", format!("it names table {id}, which does not exist"));
    core.catalog.by_id(id).ok_or_else(unknown)
}

fn placeholder_row(op: RowOp, table: TableId) -> UndoBody<'static> {
    let nothing = &[];
    let (old_key, new_key, freed) = (nothing, nothing, nothing);
    let (old, marked) = (Before::default(), None);
    UndoBody::Row(UndoRow { op, table, old_key, new_key, old, marked, freed, entries: Vec::new() })
}

fn placeholder_piece(piece: &LargePiece<'_>) -> UndoBody<'static> {
    let &LargePiece { table, total_bytes, offset, bytes } = piece;
    let end = offset + bytes.len() as u64;
    UndoBody::Blob(UndoBlob {
        table,
        total_bytes,
        end,
        locator: &[],
        pages: Vec::new(),
        index_pages: Vec::new(),
    })
}
