//! Redoes the logged operations on top of an epoch, with the same code that performed them.
//!
//! The thread that opens the database reads the log. It either applies the records itself, or the
//! [`super::dispatcher`] passes row operations and pieces of large values to the
//! [`super::workers`], which keep dependent operations in order.
//!
//! Invariants
//!   I1  The epoch and its state contain exactly the effects of the log before the state's
//!       position. Each later record is applied once, after the earlier records that it depends on.
//!       A row operation depends on the records of its transaction and of its keys; any other
//!       record depends on all earlier records, except as stated in I5. So every step finds the
//!       same data as in the first run.
//!   I2  Nothing is logged, and no epoch is committed before redo is done: after a crash, redo
//!       starts again from the same epoch.
//!   I3  Undo records are appended as in the first run, perhaps at other positions. Their numbers
//!       are the same, so that an UNDO record in the log finds its undo record by number.
//!   I4  Damage to a page of a table quarantines the table (durability::N3). From then on the table
//!       is not changed, and its undo records roll nothing back. All other errors end startup
//!       recovery.
//!   I5  Transactions end in the order of the log, so they get the same stamps as in the first run.
//!       The end of a transaction waits only for the transaction's own operations. Later operations
//!       in the log need not wait for the end, because only purge and readers use outcomes, and
//!       purge handles a transaction only after its end.
//!   I6  A transaction that commits everything that it does ([`Outcomes`]) leaves no undo records,
//!       versions or delete marks, because nothing will read them. Operations with large values
//!       that are not split into sorted changes are an exception. The numbers of undo records (I3)
//!       matter only for the other transactions, which have all their undo records.

use super::applier::{table_of, Applier, Txn};
use super::crew::Crew;
use super::dispatcher::Dispatcher;
use super::outcomes::Outcomes;
use super::sorted::SortedChanges;
use super::workers::{JobId, Workers};
use crate::base::{reach, sound, Error, Result, TableId, TxnId, UndoPtr, Xid};
use crate::format::catalog::TableDef;
use crate::format::log_record::{Front, LogRecord};
use crate::format::undo_record::{decode_body, UndoBody, HEAD_BYTES};
use crate::table::definitions::ddl::{self, Ddl};
use crate::table::history::prepared;
use crate::table::history::{end, rollback};
use crate::table::rows::writer::Unclaimed;
use crate::table::shared::counters::Counters;
use crate::table::shared::parts::Core;
use crate::table::Table;
use crate::txn::{Outcome, Slot};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Redo purges if the undo log takes more than the page memory divided by `UNDO_PART`. Otherwise
/// the background purges, so that the database serves sessions sooner.
const UNDO_PART: usize = 2;
const RECORDS_PURGED_AT_END: usize = 256;
/// The number of ended transactions after which redo forgets old versions.
const ENDS_PER_FORGETTING: u64 = 16;
/// The number of operations dispatched between two checks of whether transactions can end.
const DISPATCHED_PER_LOOK: u64 = 32;

struct Open {
    txn: Arc<Txn>,
    last: JobId,
}

#[derive(Clone, Copy)]
enum Transition {
    Prepare(Option<Xid>),
    Commit(u64),
    Abort,
}

pub(super) struct Redo<'l> {
    core: &'l Core,
    dispatcher: Option<Dispatcher<'l>>,
    applier: Applier,
    sorted: SortedChanges<'l>,
    outcomes: Outcomes,
    open: HashMap<TxnId, Open>,
    /// The ends and prepares that are not applied yet, in the order of the log (I5).
    transitions: VecDeque<(Transition, Arc<Txn>, JobId)>,
    dispatched: u64,
    ended: u64,
}

/// Applies all records that `read` passes to a [`Redo`] on top of the core's epoch, with no more
/// threads than operations.
pub(super) fn run<T>(
    core: &Core,
    crew: Crew,
    outcomes: Outcomes,
    read: impl FnOnce(&mut Redo<'_>) -> Result<T>,
) -> Result<T> {
    let operations = outcomes.operations();
    let threads = crew.threads.min(operations);
    if threads < 2 {
        return Redo::new(core, outcomes, None)?.read_all(read);
    }
    let workers = Workers::new(core, threads);
    let (mut given, mut done) = (Some((outcomes, read)), None);
    (crew.run)(threads, &|worker| workers.serve(worker), &mut |served| {
        let dispatcher = (served > 0).then(|| Dispatcher::new(&workers, served, operations));
        done = given.take().map(|(outcomes, read)| Redo::new(core, outcomes, dispatcher)?.read_all(read));
    });
    done.expect("a crew calls its main part")
}

impl<'l> Redo<'l> {
    fn new(core: &'l Core, outcomes: Outcomes, dispatcher: Option<Dispatcher<'l>>) -> Result<Self> {
        let mut open = HashMap::new();
        core.transactions.active.for_each(|slot| {
            let txn = Txn::new(Arc::clone(slot), false, unclaimed_of(core, slot)?);
            open.insert(slot.txn(), Open { txn, last: JobId::default() });
            Ok(())
        })?;
        let sorted = SortedChanges::new(core, dispatcher.is_none());
        let (applier, transitions) = (Applier::default(), VecDeque::new());
        Ok(Self { core, dispatcher, applier, sorted, outcomes, open, transitions, dispatched: 0, ended: 0 })
    }

    fn read_all<T>(mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let done = read(&mut self)?;
        self.apply_sorted()?;
        self.make_transitions()?;
        Ok(done)
    }

    /// Takes the next record of the log. Applies it, or arranges that it is applied.
    pub(super) fn add(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        Counters::add(&self.core.counters.log_records_replayed);
        if let Some(front) = Front::decode(kind, body)? {
            return self.operation(&front, kind, body);
        }
        match LogRecord::decode(kind, body)? {
            LogRecord::Prepare(txn, xid) => self.note_transition(txn, Transition::Prepare(xid)),
            LogRecord::Commit(txn, stamp) => self.note_transition(txn, Transition::Commit(stamp)),
            LogRecord::Abort(txn) => self.note_transition(txn, Transition::Abort),
            record => {
                // A rolling-back transaction's rows have no sorted changes newer than its locks on
                // them.
                let keeps_sorted = matches!(record, LogRecord::Undo(..) | LogRecord::AutoIncrement(..));
                if sound!(!keeps_sorted, "redo: change the catalog before what is sorted") {
                    self.apply_sorted()?;
                }
                self.drain()?;
                self.alone(&record)
            }
        }
    }

    fn operation(&mut self, front: &Front<'_>, kind: u8, body: &[u8]) -> Result<()> {
        let core = self.core;
        if self.sorted.must_end() {
            self.apply_sorted()?;
        }
        if self.sorted.wants_next() {
            let open = open_txn(core, &mut self.open, &self.outcomes, front.txn);
            if open.txn.commits() {
                let record = LogRecord::decode(kind, body)?;
                if self.applier.take_apart(core, &open.txn, &record, front.keys, &mut self.sorted)? {
                    return Ok(());
                }
            }
        }
        if self.sorted.may_have(front.table, front.keys) {
            reach::mark("redo applies what is sorted before an operation");
            self.apply_sorted()?;
        }
        let open = open_txn(core, &mut self.open, &self.outcomes, front.txn);
        let Some(dispatcher) = &mut self.dispatcher else {
            return self.applier.apply(core, &open.txn, &LogRecord::decode(kind, body)?);
        };
        open.last = dispatcher.dispatch(&open.txn, open.last, front, (kind, body))?;
        self.dispatched += 1;
        if self.dispatched % DISPATCHED_PER_LOOK == 0 {
            self.make_transitions()?;
        }
        Ok(())
    }

    /// Waits for all dispatched operations, and then applies all sorted changes.
    fn apply_sorted(&mut self) -> Result<()> {
        let Self { core, dispatcher, applier, sorted, .. } = self;
        if sound!(true, "redo: apply what is sorted before what was handed out") {
            dispatcher.as_mut().map_or(Ok(()), Dispatcher::drain)?;
        }
        let Some(mut pieces) = sorted.take()? else { return Ok(()) };
        let mut piece = Vec::new();
        while pieces.next(&mut piece)? {
            match dispatcher {
                Some(dispatcher) => dispatcher.dispatch_sorted(&piece)?,
                None => applier.apply_sorted(core, &piece)?,
            }
            piece.clear();
        }
        dispatcher.as_mut().map_or(Ok(()), Dispatcher::drain)
    }

    /// Applies a record that is not a row operation. No other operation may be in progress.
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
                let table = table_of(core, *table)?;
                let own = table.foreign_keys().as_ref().clone();
                ddl::change(core, Ddl::Rename((*name).to_owned(), vec![(table, own)]))
            }
            LogRecord::RenameWithConstraints(changed) => {
                let changed = definitions(core, changed)?;
                let name = changed.first().map_or_else(String::new, |(_, def)| def.name.clone());
                let changed = changed.into_iter().map(|(table, def)| (table, def.foreign_keys));
                ddl::change(core, Ddl::Rename(name, changed.collect()))
            }
            LogRecord::AlterTables(altered) => {
                ddl::change(core, Ddl::Alter(definitions(core, altered)?, Vec::new()))
            }
            LogRecord::TruncateTable(table, def) => {
                ddl::change(core, Ddl::Truncate(table_of(core, *table)?, TableDef::decode(def)?))
            }
            _ => Err(Error::corrupt("log", "a record of another kind among changes of the catalog")),
        }
    }

    fn undo(&mut self, txn: TxnId, undo_no: u64) -> Result<()> {
        let Txn { slot, unclaimed, .. } = &*open_txn(self.core, &mut self.open, &self.outcomes, txn).txn;
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
        rollback::roll_back_last(self.core, slot, &mut self.applier.writer)
    }

    fn note_transition(&mut self, txn: TxnId, transition: Transition) -> Result<()> {
        let open = open_txn(self.core, &mut self.open, &self.outcomes, txn);
        self.transitions.push_back((transition, Arc::clone(&open.txn), open.last));
        if !matches!(transition, Transition::Prepare(_)) {
            self.open.remove(&txn);
        }
        self.make_transitions()
    }

    /// Ends and prepares transactions whose operations were applied (I5).
    fn make_transitions(&mut self) -> Result<()> {
        while let Some((transition, txn, last)) = self.transitions.front() {
            if self.dispatcher.as_ref().is_some_and(|dispatcher| !dispatcher.is_done(*last)) {
                return Ok(());
            }
            let (transition, txn) = (*transition, Arc::clone(txn));
            self.transitions.pop_front();
            match transition {
                Transition::Prepare(xid) => prepared::note(&self.core.pool.enter(), &txn.slot, xid),
                Transition::Commit(stamp) => {
                    self.wait_for_all_of(&txn.slot)?;
                    self.core.transactions.versions.note_stamp(stamp.saturating_sub(1));
                    self.end(&txn.slot, Outcome::Committed)?;
                }
                Transition::Abort => self.abort(&txn.slot)?,
            }
        }
        Ok(())
    }

    /// Waits for all earlier records if the commit changes the catalog: a loaded table replaces
    /// another.
    fn wait_for_all_of(&mut self, slot: &Slot) -> Result<()> {
        match self.core.catalog.shadow_of(slot.txn()).is_empty() {
            true => Ok(()),
            false => self.apply_sorted(),
        }
    }

    fn drain(&mut self) -> Result<()> {
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher.drain()?;
        }
        self.make_transitions()
    }

    fn abort(&mut self, slot: &Slot) -> Result<()> {
        let left = slot.state().undo_no;
        if left != 0 {
            let txn = slot.txn();
            let detail =
                format!("transaction {txn} ends as rolled back, but {left} steps were not rolled back");
            return Err(Error::corrupt("log", detail));
        }
        self.end(slot, Outcome::Aborted)
    }

    fn end(&mut self, slot: &Slot, outcome: Outcome) -> Result<()> {
        let core = self.core;
        end::end(core, slot, outcome)?;
        self.ended += 1;
        if core.losses.is_some() {
            return Ok(());
        }
        let undo_bytes = core.transactions.undo.pages_count() * core.config.page_bytes as usize;
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

/// Starts the transaction if this is its first record.
fn open_txn<'o>(
    core: &Core,
    open: &'o mut HashMap<TxnId, Open>,
    outcomes: &Outcomes,
    txn: TxnId,
) -> &'o mut Open {
    open.entry(txn).or_insert_with(|| {
        if core.transactions.versions.adopt(txn) {
            reach::mark("redo meets a transaction after later ones have ended");
            core.forget_old_versions();
        }
        let commits = outcomes.commits(txn);
        let txn = Txn::new(core.transactions.active.get_or_start(txn), commits, Unclaimed::default());
        Open { txn, last: JobId::default() }
    })
}

/// Gives each unfinished transaction an owner. Called when the log is open.
pub(super) fn finish(core: &Core) -> Result<()> {
    core.purge.step(core, 1)?;
    if core.transactions.undo.purge_state().head != UndoPtr(0) {
        reach::mark("frees of a committed transaction finished at open");
    }
    for slot in core.transactions.active.slots() {
        if is_promised(&slot) {
            reach::mark("prepared transaction found at open");
            prepared::recover(core, &slot)?;
            continue;
        }
        reach::mark("loser rolled back");
        core.unfinished.add_found(core, &slot)?;
    }
    core.startup.note(&core.transactions.versions);
    Ok(())
}

fn is_promised(slot: &Slot) -> bool {
    sound!(slot.state().xid.is_some(), "recovery: roll prepared transactions back")
}

/// The large values that the transaction's newest undo records name and to which no row refers yet.
fn unclaimed_of(core: &Core, slot: &Slot) -> Result<Unclaimed> {
    let mut unclaimed = Unclaimed::default();
    let state = *slot.state();
    let (mut at, mut undo_no) = (state.head, state.undo_no);
    let mut records = Vec::new();
    while at != UndoPtr(0) {
        let mut record = Vec::new();
        let head = core.transactions.undo.read(at, state.txn, undo_no, &mut record)?;
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

fn definitions(core: &Core, changed: &[(TableId, &[u8])]) -> Result<Vec<(Arc<Table>, TableDef)>> {
    changed.iter().map(|(table, def)| Ok((table_of(core, *table)?, TableDef::decode(def)?))).collect()
}
