//! Executing the logged operations again, through the ordinary code, on top of a generation.
//!
//! Invariants
//!   I1  The generation and its state are exactly what was there at the state's position in the log; each record
//!       from there on is applied once, in order. So every step finds what it found the first time.
//!   I2  Nothing is logged, and no generation is committed before redo is done: a crash on the way starts over from the
//!       same generation.
//!   I3  Undo records are appended as in the first run, maybe to other places; their numbers are the same, so UNDO
//!       finds its record by number.
//!   I4  Damage of a page of a table fences the table (N3): from then on nothing is done to it, and its undo records
//!       take nothing back. All other errors refuse the opening.

use crate::base::{planted, reach, Error, Result, TableId, TxnId, UndoPtr, Xid};
use crate::format::catalog::TableDef;
use crate::format::log_record::{LogRecord, RowOp};
use crate::format::undo_record::{self, decode_body, Before, UndoBlob, UndoBody, UndoRow, HEAD_BYTES};
use crate::table::core::{Core, Counters, Need};
use crate::table::ddl::{self, Ddl};
use crate::table::large::{self, Step, Unclaimed};
use crate::table::prepared;
use crate::table::rollback;
use crate::table::row_op::{Target, Writer};
use crate::table::Table;
use crate::txn::{start_record, Outcome, Slot};
use std::collections::HashMap;
use std::sync::Arc;

/// Undo records purged when redo meets the end of a transaction; the rest is left to those that come, and to the background.
const RECORDS_PURGED_AT_END: usize = 256;

/// Applies log records.
pub(super) struct Redo<'c> {
    core: &'c Core,
    writer: Writer,
    /// Large values that no row operation has taken over yet.
    unclaimed: HashMap<TxnId, Unclaimed>,
}

impl<'c> Redo<'c> {
    /// On top of the core's generation.
    pub(super) fn new(core: &'c Core) -> Result<Self> {
        let mut unclaimed = HashMap::new();
        core.active.for_each(|slot| {
            unclaimed.insert(slot.txn(), unclaimed_of(core, slot)?);
            Ok(())
        })?;
        Ok(Self { core, writer: Writer::default(), unclaimed })
    }

    /// Applies one record.
    pub(super) fn apply(&mut self, record: &LogRecord<'_>) -> Result<()> {
        Counters::add(&self.core.counters.log_records_replayed);
        match record {
            LogRecord::Row { txn, op, row, large, entries } => {
                let table = self.table(row.table)?;
                self.unless_fenced(*txn, &table, &placeholder_row(*op, row.table), |core, slot, writer| {
                    let on = Target { core, slot, table: &table, locks: None, interrupted: &|| false };
                    writer.redo(on, *op, row, large, entries)
                })
            }
            LogRecord::Blob { txn, table, total_bytes, offset, bytes } => {
                let step = Step { table: *table, total_bytes: *total_bytes, offset: *offset, bytes };
                let table = self.table(*table)?;
                self.unless_fenced(*txn, &table, &placeholder_piece(&step), |core, slot, writer| {
                    let owner = table.blob_owner();
                    core.make_room(Need::New, large::PAGES_NEEDED_PER_STEP)?;
                    large::write_step(core, slot, &mut writer.unclaimed, owner, &step, &mut writer.buffers)
                })
            }
            LogRecord::Undo(txn, undo_no) => self.undo(*txn, *undo_no),
            LogRecord::Prepare(txn, xid) => self.prepare(*txn, *xid),
            LogRecord::Commit(txn, commit_no) => self.commit(*txn, *commit_no),
            LogRecord::Abort(txn) => self.abort(*txn),
            LogRecord::AutoIncrement(table, next) => {
                self.table(*table)?.set_auto_increment(*next);
                Ok(())
            }
            LogRecord::CreateTable(def) => ddl::change(self.core, &Ddl::Create(TableDef::decode(def)?)),
            LogRecord::DropTable(table) => ddl::change(self.core, &Ddl::Drop(self.table(*table)?)),
            LogRecord::RenameTable(table, name) => {
                ddl::change(self.core, &Ddl::Rename(self.table(*table)?, (*name).to_owned()))
            }
            LogRecord::TruncateTable(table, def) => {
                ddl::change(self.core, &Ddl::Truncate(self.table(*table)?, TableDef::decode(def)?))
            }
        }
    }

    fn table(&self, id: TableId) -> Result<Arc<Table>> {
        let unknown = || Error::corrupt("log", format!("it names table {id}, which does not exist there"));
        self.core.catalog.by_id(id).ok_or_else(unknown)
    }

    /// Applies a row operation or a piece of a large value; on a fenced table, and on one that has to be fenced now, it
    /// leaves an undo record with nothing to take back, so that undo records keep their numbers (I4).
    fn unless_fenced(
        &mut self,
        txn: TxnId,
        table: &Table,
        placeholder: &UndoBody<'_>,
        apply: impl FnOnce(&Core, &Arc<Slot>, &mut Writer) -> Result<()>,
    ) -> Result<()> {
        let slot = self.slot(txn);
        let undo_no = slot.state().undo_no;
        if table.fence().is_none() {
            match self.with_unclaimed(txn, apply) {
                Ok(()) => return Ok(()),
                Err(error) => self.core.fence(table.id(), error, true)?,
            }
        }
        self.unclaimed.remove(&txn);
        if slot.state().undo_no > undo_no {
            return Ok(());
        }
        let record = &mut self.writer.buffers.undo;
        start_record(&slot.state(), record);
        undo_record::put_body(record, placeholder);
        undo_record::finish(record);
        self.core.make_room(Need::Back, self.core.undo.pages_needed(record.len()))?;
        let action = self.core.pool.enter();
        self.core.undo.append(&action, &mut slot.state(), record);
        Ok(())
    }

    /// Runs `f` with the transaction's unclaimed large values in place.
    fn with_unclaimed(
        &mut self,
        txn: TxnId,
        f: impl FnOnce(&Core, &Arc<Slot>, &mut Writer) -> Result<()>,
    ) -> Result<()> {
        let slot = self.slot(txn);
        let unclaimed = self.unclaimed.entry(txn).or_default();
        std::mem::swap(unclaimed, &mut self.writer.unclaimed);
        let done = f(self.core, &slot, &mut self.writer);
        std::mem::swap(unclaimed, &mut self.writer.unclaimed);
        done
    }

    fn undo(&mut self, txn: TxnId, undo_no: u64) -> Result<()> {
        let slot = self.slot(txn);
        let last = slot.state().undo_no;
        if last != undo_no || undo_no == 0 {
            let detail =
                format!("it takes back step {undo_no} of transaction {txn}, whose last step is {last}");
            return Err(Error::corrupt("log", detail));
        }
        if let Some(xid) = slot.state().xid {
            let detail = format!("it takes back a step of transaction {txn}, which is prepared as {xid}");
            return Err(Error::corrupt("log", detail));
        }
        reach::mark("undo redone");
        self.unclaimed.remove(&txn);
        rollback::take_back_last(self.core, &slot, &mut self.writer)
    }

    fn prepare(&mut self, txn: TxnId, xid: Option<Xid>) -> Result<()> {
        let action = self.core.pool.enter();
        prepared::note(&action, &self.slot(txn), xid);
        Ok(())
    }

    /// The slot of a transaction that the log names.
    fn slot(&self, txn: TxnId) -> Arc<Slot> {
        if self.core.versions.adopt(txn) {
            reach::mark("redo meets a transaction after later ones have ended");
            self.core.forget_old_versions();
        }
        self.core.active.get_or_start(txn)
    }

    fn commit(&mut self, txn: TxnId, stamp: u64) -> Result<()> {
        let slot = self.slot(txn);
        self.core.versions.note_stamp(stamp.saturating_sub(1));
        self.finish_transaction(&slot, Outcome::Committed)
    }

    fn abort(&mut self, txn: TxnId) -> Result<()> {
        let slot = self.slot(txn);
        let left = slot.state().undo_no;
        if left != 0 {
            let detail = format!("transaction {txn} ends as rolled back with {left} steps not taken back");
            return Err(Error::corrupt("log", detail));
        }
        self.finish_transaction(&slot, Outcome::Aborted)
    }

    fn finish_transaction(&mut self, slot: &Slot, outcome: Outcome) -> Result<()> {
        self.unclaimed.remove(&slot.txn());
        rollback::end(self.core, slot, outcome)?;
        self.core.purge.step(self.core, RECORDS_PURGED_AT_END)?;
        self.trim();
        Ok(())
    }

    fn trim(&self) {
        while self.core.trim_undo() {}
    }

    /// Finds for every transaction that has not ended whoever goes on with it. The log is open now.
    pub(super) fn finish(self) -> Result<()> {
        self.core.purge.step(self.core, 1)?;
        if self.core.undo.purge_state().head != UndoPtr(0) {
            reach::mark("frees of a committed transaction finished at open");
        }
        for slot in self.core.active.slots() {
            if is_promised(&slot) {
                reach::mark("prepared transaction found at open");
                prepared::recover(self.core, &slot)?;
                continue;
            }
            reach::mark("loser taken back");
            self.core.unfinished.add_found(self.core, &slot)?;
        }
        self.core.note_opening();
        Ok(())
    }
}

/// Whether somebody else decides how the transaction ends.
fn is_promised(slot: &Slot) -> bool {
    slot.state().xid.is_some() && !planted::is_on("recovery: take prepared transactions back")
}

fn placeholder_row(op: RowOp, table: TableId) -> UndoBody<'static> {
    let nothing = &[];
    let (old_key, new_key, freed) = (nothing, nothing, nothing);
    let (old, marked) = (Before::default(), None);
    UndoBody::Row(UndoRow { op, table, old_key, new_key, old, marked, freed, entries: Vec::new() })
}

fn placeholder_piece(step: &Step<'_>) -> UndoBody<'static> {
    let &Step { table, total_bytes, offset, bytes } = step;
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

/// The large values that the newest undo records of a transaction name and no row operation has taken over.
fn unclaimed_of(core: &Core, slot: &Slot) -> Result<Unclaimed> {
    let mut unclaimed = Unclaimed::default();
    let state = *slot.state();
    let (mut at, mut undo_no) = (state.head, state.undo_no);
    let mut records = Vec::new();
    while at != UndoPtr(0) {
        let mut record = Vec::new();
        let head = core.undo.read(at, state.txn, undo_no, &mut record)?;
        if !matches!(decode_body(record.get(HEAD_BYTES..).unwrap_or_default())?, UndoBody::Blob(_)) {
            break;
        }
        records.push(record);
        (at, undo_no) = (head.prev, undo_no - 1);
    }
    if !records.is_empty() {
        reach::mark("unclaimed large values restored");
    }
    for record in records.iter().rev() {
        if let UndoBody::Blob(blob) = decode_body(record.get(HEAD_BYTES..).unwrap_or_default())? {
            unclaimed.restore(&blob);
        }
    }
    Ok(unclaimed)
}
