//! Executing the logged operations again, through the ordinary code, on top of an epoch.
//!
//! The thread that opens the database reads the log. It applies the records itself, or deals row operations and pieces of large
//! values out to the threads of [`super::lanes`], which keep the order of what belongs together.
//!
//! Invariants
//!   I1  The epoch and its state are exactly what was there at the state's position in the log; each record
//!       from there on is applied once, and after all records before it that it rests on: those of its transaction and of
//!       its keys, and for everything but row operations all of them. So every step finds what it found the first time.
//!   I2  Nothing is logged, and no epoch is committed before redo is done: a crash on the way starts over from the
//!       same epoch.
//!   I3  Undo records are appended as in the first run, maybe to other places; their numbers are the same, so UNDO
//!       finds its record by number.
//!   I4  Damage of a page of a table quarantines the table (N3): from then on nothing is done to it, and its undo records
//!       take nothing back. All other errors refuse the startup.
//!   I5  Transactions end in the order of the log: so stamps are those of the first run. An end waits for the operations of its
//!       transaction only; what comes behind it in the log need not wait for it, as only purge and readers ask for outcomes, and
//!       the purge that redo does comes after.
//!   I6  What a transaction does whose commit lies within the [`Window`], with nothing rolled back, leaves no undo records, versions and delete
//!       marks, unless large values are involved: nobody will ask for them. So there are only undo records of others
//!       whose numbers matter (I3).

use super::lanes::{Dealer, Lanes, Place};
use super::open::Crew;
use super::window::{Chunk, Window};
use crate::base::{planted, reach, Error, Result, TableId, TxnId, UndoPtr, Xid};
use crate::format::catalog::TableDef;
use crate::format::log_record::{Front, LogRecord, RowOp};
use crate::format::undo_record::{self, decode_body, Before, UndoBlob, UndoBody, UndoRow, HEAD_BYTES};
use crate::table::definitions::ddl::{self, Ddl};
use crate::table::history::prepared;
use crate::table::history::rollback;
use crate::table::rows::large::{self, LargePiece};
use crate::table::rows::request::Target;
use crate::table::rows::writer::{Unclaimed, Writer};
use crate::table::shared::parts::{Core, Counters, Need};
use crate::table::Table;
use crate::txn::{start_record, Outcome, Slot};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Part of the memory that the undo log may take before redo purges. Otherwise that is left to whoever comes afterwards: nobody
/// has to wait for it before the database serves.
const UNDO_PART: usize = 2;
/// Undo records purged then at the end of a transaction.
const RECORDS_PURGED_AT_END: usize = 256;
/// Ends of transactions after which old versions are forgotten.
const ENDS_PER_FORGETTING: u64 = 16;
/// Operations dealt out between two looks whether transactions can end.
const DEALT_PER_LOOK: u64 = 32;

/// A transaction that has not ended in the log.
pub(super) struct Txn {
    slot: Arc<Slot>,
    /// Its commit lies ahead, and nothing of it is rolled back (I6).
    commits: bool,
    /// Large values that no row operation has taken over yet.
    unclaimed: Mutex<Unclaimed>,
}

impl Txn {
    fn new(slot: Arc<Slot>, commits: bool, unclaimed: Unclaimed) -> Arc<Self> {
        Arc::new(Self { slot, commits, unclaimed: Mutex::new(unclaimed) })
    }
}

/// Applies operations on rows and large values, one after the other.
#[derive(Default)]
pub(super) struct Hand {
    writer: Writer,
    /// The table of the last operation.
    table: Option<Arc<Table>>,
}

impl Hand {
    /// Applies a row operation or a piece of a large value.
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

    /// Runs `apply`, with the transaction's unclaimed large values in place; on a quarantined table, and on one that has to be
    /// quarantined now, leaves an undo record with nothing to roll back, so that undo records keep their numbers (I4).
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
        let undo_no = slot.state().undo_no;
        if table.fence().is_none() {
            std::mem::swap(&mut *unclaimed, &mut writer.unclaimed);
            let applied = apply(slot, writer);
            std::mem::swap(&mut *unclaimed, &mut writer.unclaimed);
            match applied {
                Ok(()) => return Ok(()),
                Err(error) => core.fence(table.id(), error, true)?,
            }
        }
        unclaimed.clear();
        if slot.state().undo_no > undo_no {
            return Ok(());
        }
        let record = &mut writer.buffers.undo;
        start_record(&slot.state(), record);
        undo_record::put_body(record, placeholder);
        undo_record::finish(record);
        core.make_room(Need::Back, core.undo.pages_needed(record.len()))?;
        let mtr = core.pool.enter();
        core.undo.append(&mtr, &mut slot.state(), record);
        Ok(())
    }
}

/// A transaction on the way, and its last operation.
struct Open {
    txn: Arc<Txn>,
    last: Place,
}

/// What becomes of a transaction once its operations have been applied.
#[derive(Clone, Copy)]
enum Turn {
    Prepare(Option<Xid>),
    Commit(u64),
    Abort,
}

/// Applies log records.
pub(super) struct Redo<'l> {
    core: &'l Core,
    dealer: Option<Dealer<'l>>,
    hand: Hand,
    window: Window,
    open: HashMap<TxnId, Open>,
    /// Ends and promises that have not come yet, in the order of the log (I5).
    turns: VecDeque<(Turn, Arc<Txn>, Place)>,
    dealt: u64,
    ended: u64,
}

/// Applies what `read` hands to a [`Redo`] on top of the core's epoch.
pub(super) fn run<T>(core: &Core, crew: Crew, read: impl FnOnce(&mut Redo<'_>) -> Result<T>) -> Result<T> {
    if crew.threads < 2 {
        return Redo::new(core, None)?.read_all(read);
    }
    let lanes = Lanes::new(core, crew.threads);
    let (mut read, mut done) = (Some(read), None);
    (crew.run)(crew.threads, &|lane| lanes.serve(lane), &mut |served| {
        let dealer = (served > 0).then(|| Dealer::new(&lanes, served));
        done = read.take().map(|read| Redo::new(core, dealer)?.read_all(read));
    });
    done.expect("a crew calls its main part")
}

impl<'l> Redo<'l> {
    fn new(core: &'l Core, dealer: Option<Dealer<'l>>) -> Result<Self> {
        let mut open = HashMap::new();
        core.active.for_each(|slot| {
            let txn = Txn::new(Arc::clone(slot), false, unclaimed_of(core, slot)?);
            open.insert(slot.txn(), Open { txn, last: Place::default() });
            Ok(())
        })?;
        let memory = core.pool.memory();
        let window = Window::new(memory.shares().redo_window_bytes(), memory);
        let (hand, turns) = (Hand::default(), VecDeque::new());
        Ok(Self { core, dealer, hand, window, open, turns, dealt: 0, ended: 0 })
    }

    fn read_all<T>(mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let done = read(&mut self)?;
        while let Some(chunk) = self.window.take() {
            self.apply_chunk(&chunk)?;
        }
        self.drain()?;
        Ok(done)
    }

    /// Takes the next record of the log, and sees to it that it is applied.
    pub(super) fn add(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        self.window.add(kind, body)?;
        while let Some(chunk) = self.window.take_surplus() {
            self.apply_chunk(&chunk)?;
        }
        Ok(())
    }

    fn apply_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        let mut records = chunk.records();
        records.try_for_each(|(kind, body)| self.apply(kind, body))
    }

    fn apply(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        Counters::add(&self.core.counters.log_records_replayed);
        if let Some(front) = Front::decode(kind, body)? {
            return self.operation(&front, kind, body);
        }
        match LogRecord::decode(kind, body)? {
            LogRecord::Prepare(txn, xid) => self.turn(txn, Turn::Prepare(xid)),
            LogRecord::Commit(txn, stamp) => self.turn(txn, Turn::Commit(stamp)),
            LogRecord::Abort(txn) => self.turn(txn, Turn::Abort),
            record => {
                self.drain()?;
                self.alone(&record)
            }
        }
    }

    fn operation(&mut self, front: &Front<'_>, kind: u8, body: &[u8]) -> Result<()> {
        let core = self.core;
        let open = open_txn(core, &mut self.open, &self.window, front.txn);
        let Some(dealer) = &mut self.dealer else {
            return self.hand.apply(core, &open.txn, &LogRecord::decode(kind, body)?);
        };
        open.last = dealer.deal(&open.txn, open.last, front, (kind, body))?;
        self.dealt += 1;
        if self.dealt % DEALT_PER_LOOK == 0 {
            self.take_turns()?;
        }
        Ok(())
    }

    /// Applies a record with nothing else under way.
    fn alone(&mut self, record: &LogRecord<'_>) -> Result<()> {
        let core = self.core;
        match record {
            LogRecord::Undo(txn, undo_no) => self.undo(*txn, *undo_no),
            LogRecord::AutoIncrement(table, next) => {
                table_of(core, *table)?.set_auto_increment(*next);
                Ok(())
            }
            LogRecord::CreateTable(def) => ddl::change(core, Ddl::Create(TableDef::decode(def)?)),
            LogRecord::DropTable(table) => ddl::change(core, Ddl::Drop(table_of(core, *table)?)),
            LogRecord::RenameTable(table, name) => {
                ddl::change(core, Ddl::Rename(table_of(core, *table)?, (*name).to_owned()))
            }
            LogRecord::AlterTables(altered) => {
                let tables =
                    altered.iter().map(|(table, def)| Ok((table_of(core, *table)?, TableDef::decode(def)?)));
                ddl::change(core, Ddl::Alter(tables.collect::<Result<_>>()?))
            }
            LogRecord::TruncateTable(table, def) => {
                ddl::change(core, Ddl::Truncate(table_of(core, *table)?, TableDef::decode(def)?))
            }
            _ => Err(Error::corrupt("log", "a record of another kind among changes of the catalog")),
        }
    }

    fn undo(&mut self, txn: TxnId, undo_no: u64) -> Result<()> {
        let Txn { slot, unclaimed, .. } = &*open_txn(self.core, &mut self.open, &self.window, txn).txn;
        let last = slot.state().undo_no;
        if last != undo_no || undo_no == 0 {
            let detail =
                format!("it rolls back step {undo_no} of transaction {txn}, whose last step is {last}");
            return Err(Error::corrupt("log", detail));
        }
        if let Some(xid) = slot.state().xid {
            let detail = format!("it rolls back a step of transaction {txn}, which is prepared as {xid}");
            return Err(Error::corrupt("log", detail));
        }
        reach::mark("undo redone");
        unclaimed.lock().clear();
        rollback::roll_back_last(self.core, slot, &mut self.hand.writer)
    }

    /// Notes what becomes of a transaction.
    fn turn(&mut self, txn: TxnId, turn: Turn) -> Result<()> {
        let open = open_txn(self.core, &mut self.open, &self.window, txn);
        self.turns.push_back((turn, Arc::clone(&open.txn), open.last));
        if !matches!(turn, Turn::Prepare(_)) {
            self.open.remove(&txn);
            self.window.forget(txn);
        }
        self.take_turns()
    }

    /// Ends and prepares transactions as far as their operations have been applied (I5).
    fn take_turns(&mut self) -> Result<()> {
        while let Some((turn, txn, last)) = self.turns.front() {
            if self.dealer.as_ref().is_some_and(|dealer| !dealer.is_done(*last)) {
                return Ok(());
            }
            let (turn, txn) = (*turn, Arc::clone(txn));
            self.turns.pop_front();
            match turn {
                Turn::Prepare(xid) => prepared::note(&self.core.pool.enter(), &txn.slot, xid),
                Turn::Commit(stamp) => {
                    self.wait_for_all_of(&txn.slot)?;
                    self.core.versions.note_stamp(stamp.saturating_sub(1));
                    self.end(&txn.slot, Outcome::Committed)?;
                }
                Turn::Abort => self.abort(&txn.slot)?,
            }
        }
        Ok(())
    }

    /// Waits until everything that was dealt out has been applied if the commit changes the catalog, as loads take their places.
    fn wait_for_all_of(&mut self, slot: &Slot) -> Result<()> {
        match &mut self.dealer {
            Some(dealer) if !self.core.catalog.shadow_of(slot.txn()).is_empty() => dealer.drain(),
            _ => Ok(()),
        }
    }

    /// Waits until everything so far has been applied.
    fn drain(&mut self) -> Result<()> {
        if let Some(dealer) = &mut self.dealer {
            dealer.drain()?;
        }
        self.take_turns()
    }

    fn abort(&mut self, slot: &Slot) -> Result<()> {
        let left = slot.state().undo_no;
        if left != 0 {
            let txn = slot.txn();
            let detail = format!("transaction {txn} ends as rolled back with {left} steps not rolled back");
            return Err(Error::corrupt("log", detail));
        }
        self.end(slot, Outcome::Aborted)
    }

    fn end(&mut self, slot: &Slot, outcome: Outcome) -> Result<()> {
        let core = self.core;
        rollback::end(core, slot, outcome)?;
        self.ended += 1;
        let undo_bytes = core.undo.pages_count() * core.config.page_bytes as usize;
        if undo_bytes > core.pool.memory().frames_limit() / UNDO_PART {
            reach::mark("redo purges");
            core.purge.step(core, RECORDS_PURGED_AT_END)?;
            while core.trim_undo() {}
        } else if self.ended % ENDS_PER_FORGETTING == 0 {
            core.forget_old_versions();
        }
        Ok(())
    }
}

/// The transaction that the log names.
fn open_txn<'o>(
    core: &Core,
    open: &'o mut HashMap<TxnId, Open>,
    window: &Window,
    txn: TxnId,
) -> &'o mut Open {
    open.entry(txn).or_insert_with(|| {
        if core.versions.adopt(txn) {
            reach::mark("redo meets a transaction after later ones have ended");
            core.forget_old_versions();
        }
        let commits = window.commits(txn);
        let txn = Txn::new(core.active.get_or_start(txn), commits, Unclaimed::default());
        Open { txn, last: Place::default() }
    })
}

fn table_of(core: &Core, id: TableId) -> Result<Arc<Table>> {
    let unknown = || Error::corrupt("log", format!("it names table {id}, which does not exist there"));
    core.catalog.by_id(id).ok_or_else(unknown)
}

/// Finds for every transaction that has not ended whoever goes on with it. The log is open now.
pub(super) fn finish(core: &Core) -> Result<()> {
    core.purge.step(core, 1)?;
    if core.undo.purge_state().head != UndoPtr(0) {
        reach::mark("frees of a committed transaction finished at open");
    }
    for slot in core.active.slots() {
        if is_promised(&slot) {
            reach::mark("prepared transaction found at open");
            prepared::recover(core, &slot)?;
            continue;
        }
        reach::mark("loser rolled back");
        core.unfinished.add_found(core, &slot)?;
    }
    core.note_startup();
    Ok(())
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
