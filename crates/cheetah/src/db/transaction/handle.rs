//! A transaction: its locks of tables, row operations, and savepoints. Its reads are in
//! [`crate::db::reading`], its end in [`super::ending`].
//!
//! Invariants
//!   I1  A consistent read takes no lock, except at SERIALIZABLE: it sees what its snapshot has, in
//!       the versions that purge keeps for it. Row operations and locking reads lock rows, and the
//!       table as intending to, unless the whole table is locked so already.
//!   I2  Locks are released when the commit record is in the log, or the rollback is complete; in a
//!       rollback ranges before it begins, and each row once it is rolled back; counters of numbers
//!       at the end of the statement. A reader of the changes that then commits does so behind that
//!       record, so its commit never outlives them; and transactions on one table can share a sync
//!       of the log. As InnoDB, a mere reader may see what a power cut still rolls back.
//!   I3  A rollback that meets an error, or is long and nobody wants to wait for it, keeps its
//!       locks: half rolled back rows stay out of reach. It goes on in the background, and after
//!       the next startup; the handle is free for another transaction.
//!   I4  A statement that could not be rolled back is rolled back before the transaction does
//!       anything else. So an operation that has failed has changed nothing, and a savepoint that
//!       was come back to is reached.
//!   I5  Once a commit is in the log it succeeds, unless the engine stops: the tidying up can wait.
//!       A commit that is refused before is a rollback.
//!   I6  Where a transaction has changed nothing, or has taken back all that it had changed,
//!       nothing is committed: it ends as a rollback does, and nobody waits for that. A load that
//!       comes with the commit is a change. One that prepares gives a promise if anything was
//!       logged.
//!   I7  Temporary tables are written under a number of their own, unknown to the log and to the
//!       coordinator of a PREPARE. Both parts go back to savepoints together, and end together.

use super::Isolation;
use crate::base::stages::Stage;
use crate::base::{sound, Error, Lsn, Result, SessionId, TableId, TxnId};
use crate::db::fulltext::{PostingRoom, RemovalRoom};
use crate::table::history::rollback;
use crate::table::history::unfinished::unfinished_error;
use crate::table::rows::locker::Locker;
use crate::table::rows::request::{Locks, RowRequest, Target};
use crate::table::rows::writer::Writer;
use crate::table::shared::changed_tables::ChangedTables;
use crate::table::shared::parts::Core;
use crate::table::NewRow;
use crate::table::Numbers;
use crate::table::OldEntry;
use crate::table::Reserved;
use crate::table::Stride;
use crate::table::Table;
use crate::txn::{Listed, LockMode, ReadView, Slot, TableMode};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A transaction. Dropping it rolls back what is neither committed nor prepared.
pub struct Transaction {
    pub(in crate::db) core: Arc<Core>,
    pub(in crate::db) locker: Arc<Locker>,
    pub(in crate::db) slot: Option<Arc<Slot>>,
    /// Under which it writes temporary tables: a transaction of its own, of which the log does not
    /// tell, and which ends with this one (I7).
    pub(in crate::db) temporary: Option<Arc<Slot>>,
    pub(in crate::db) view: Arc<ReadView>,
    /// Tables that it has locked, in the order of their numbers: there are thousands where a table
    /// has as many partitions.
    pub(in crate::db) locks: Vec<(TableId, TableMode)>,
    /// Its entry in the list of active transactions.
    pub(in crate::db) listed: Listed,
    /// By which those know it whom it keeps waiting.
    pub(in crate::db) session: SessionId,
    /// Tables whose auto-increment counters its statement has locked to its end.
    auto_inc_locks: Vec<Arc<Table>>,
    /// How a row is locked whose unique key a new one has too.
    duplicates: LockMode,
    pub(in crate::db) writer: Writer,
    pub(in crate::db) posting_room: PostingRoom,
    pub(in crate::db) removal_room: RemovalRoom,
    /// Counted so that it asks now and then whether its statement is to end.
    pub(in crate::db) postings_written: usize,
    /// The changes after this undo record are to be rolled back first (I4).
    pub(in crate::db) back_to: Option<Savepoint>,
    /// Where its COMMIT ends in the log, once that has been logged ahead of
    /// [`commit`](Self::commit).
    pub(in crate::db) ordered: Option<Result<Lsn>>,
    /// Loads of rows that come with its commit and that have not ended well.
    pub(in crate::db) unended_loads: u32,
    /// Tables that its statement has created and fills.
    pub(in crate::db) filled: BTreeSet<TableId>,
    /// Tables that it has changed.
    pub(in crate::db) changed: ChangedTables,
    pub(in crate::db) isolation: Isolation,
    pub(in crate::db) has_snapshot_isolation: bool,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("slot", &self.slot)
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// A point to come back to: how many undo records there are of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Savepoint {
    pub(in crate::db) logged: u64,
    pub(in crate::db) temporary: u64,
}

impl Savepoint {
    /// The earlier one.
    fn min(self, other: Self) -> Self {
        Self { logged: self.logged.min(other.logged), temporary: self.temporary.min(other.temporary) }
    }
}

impl Transaction {
    pub(in crate::db) fn new(core: Arc<Core>) -> Self {
        let view = Arc::new(ReadView::new(&core.transactions.versions));
        let listed = core.transactions.roster.enter(core.transactions.new_owner(), Some(Arc::clone(&view)));
        listed.set_isolation(Isolation::default() as u8);
        let locker = Arc::new(Locker::new(&core, &view, listed.entry()));
        Self {
            core,
            locker,
            slot: None,
            temporary: None,
            view,
            locks: Vec::new(),
            listed,
            session: SessionId::NONE,
            auto_inc_locks: Vec::new(),
            duplicates: LockMode::Shared,
            writer: Writer::default(),
            posting_room: PostingRoom::default(),
            removal_room: RemovalRoom::default(),
            postings_written: 0,
            back_to: None,
            ordered: None,
            unended_loads: 0,
            filled: BTreeSet::new(),
            changed: ChangedTables::default(),
            isolation: Isolation::default(),
            has_snapshot_isolation: false,
        }
    }

    /// From now on whatever waits, for a lock or for a checkpoint to make room in the log, is tried
    /// again, or passes many entries that are not there for it, asks `interrupted` now and then,
    /// and ends as `Interrupted` when it says so.
    pub fn interrupt_when(&mut self, interrupted: impl Fn() -> bool + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.interrupted_by(Arc::new(interrupted)));
    }

    /// Tells when the statement runs that changes something from now on, in whatever unit the
    /// caller counts time: after the commit, [`Table::changed_at`] of what it has changed says so.
    /// 0, and before this is called: changes are not noted.
    pub fn set_time(&mut self, time: u64) {
        self.changed.set_time(time);
    }

    /// Names the session of the caller for other transactions, and has `report` called with the
    /// sessions of those for whom this transaction waits, as far as they have named theirs, when it
    /// begins to wait for a lock and every 50 ms as long as it does. A session is not told any more
    /// when its transaction has been dropped, or handed over to the background or to a coordinator.
    /// `report` must not wait, nor use the engine.
    ///
    /// For callers that know an order in which transactions must commit, such as a replica that
    /// applies in parallel: a transaction that waits for a later one can have that one end. See
    /// [`Db::set_victim_choice`](crate::db::Db::set_victim_choice), too.
    pub fn report_waits(&mut self, session: SessionId, report: impl Fn(SessionId) + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.reported_to(Arc::new(report)));
        self.session = session;
        self.listed.set_session(session);
    }

    /// Sets the isolation level, for this transaction and later ones of this handle. To be called
    /// before the transaction reads or writes.
    pub fn set_isolation(&mut self, level: Isolation) {
        self.isolation = level;
        self.locker.refuse_changed(self.refuses_changed());
        self.listed.set_isolation(level as u8);
    }

    /// Sets the number of the caller's connection, by which
    /// [`Db::transactions`](crate::db::Db::transactions) names it.
    pub fn set_connection(&mut self, connection: u64) {
        self.listed.set_connection(connection);
    }

    /// Sets how many tables the caller's current statement uses, as
    /// [`Db::transactions`](crate::db::Db::transactions) tells it.
    pub fn set_tables_in_use(&mut self, count: u32) {
        self.listed.set_tables_in_use(count);
    }

    /// Whether rows that have changed since the transaction's snapshot are refused to those who
    /// lock or change them (`RecordChanged`), under an isolation level that fixes the snapshot for
    /// the transaction. Off unless this is called; otherwise as
    /// [`set_isolation`](Self::set_isolation).
    pub fn set_snapshot_isolation(&mut self, is_on: bool) {
        self.has_snapshot_isolation = is_on;
        self.locker.refuse_changed(self.refuses_changed());
    }

    fn refuses_changed(&self) -> bool {
        self.has_snapshot_isolation && self.isolation != Isolation::ReadCommitted
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How long each lock is waited for from now on, in nanoseconds. With 0 it never waits: a lock
    /// that others hold is `LockTimeout` at once. 50 seconds unless this is called.
    pub fn set_lock_wait(&mut self, timeout_ns: u64) {
        self.locker.set_wait_ns(timeout_ns);
    }

    /// How a row is locked from now on when an insert or an update is refused because of a unique
    /// key that it has: exclusively by those who change it then. Shared unless this is called.
    /// Where ranges are locked, those keep the unique keys of the refused row too that were looked
    /// for before and are not there: they would have found another row, or none.
    pub fn set_duplicate_lock(&mut self, mode: LockMode) {
        self.duplicates = mode;
    }

    /// Fixes now what consistent reads see, under an isolation level that fixes it for the whole
    /// transaction.
    pub fn take_snapshot(&mut self) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.note_begin();
        if self.isolation != Isolation::ReadCommitted {
            self.view.open();
        }
        Ok(())
    }

    /// Ends a statement: pages that were kept at hand for it are let go, and so are what it alone
    /// was to see and the counters that [`reserve_numbers`](Self::reserve_numbers) has locked. The
    /// cursors that it has opened are used no more. Does not block.
    pub fn end_statement(&mut self) {
        self.writer.release();
        self.end_bulk_inserts();
        let closes =
            sound!(self.isolation == Isolation::ReadCommitted, "snapshot: keep it for the next statement");
        if !sound!(!closes, "snapshot: take one for each statement") {
            self.view.close();
        }
        if !sound!(true, "locks: free them with the statement") {
            self.core.locks.release_all(self.locker.owner);
            self.locks.clear();
        }
    }

    /// Its number; none before it has written something.
    pub fn id(&self) -> Option<TxnId> {
        self.slot.as_ref().map(|slot| slot.txn())
    }

    /// Locks a whole table to the end of the transaction. Waits as set with
    /// [`set_lock_wait`](Self::set_lock_wait) and [`interrupt_when`](Self::interrupt_when). Errors:
    /// `LockTimeout`, `Deadlock`, `Interrupted`, `LockTableFull`, and `RollbackUnfinished` instead
    /// of the first when a rollback that meets errors was waited for; locks held already stay, and
    /// after `Deadlock` and `LockTableFull` the transaction is to be rolled back.
    pub fn lock_table(&mut self, table: &Arc<Table>, mode: LockMode) -> Result<()> {
        self.core.health.check()?;
        self.lock_table_as(table, mode.into())
    }

    /// `Unsupported` for a change of the table's indexes when the transaction has written
    /// something, in whatever table.
    pub(in crate::db) fn check_has_not_written(&self, table: &Table) -> Result<()> {
        match self.here() == Savepoint::default() {
            true => Ok(()),
            false => Err(Error::Unsupported {
                place: format!("indexes of table '{}'", table.name()),
                detail: "they cannot be built or disabled by a transaction that has written; commit first"
                    .into(),
            }),
        }
    }

    /// Locks the table that has the place of `table` now.
    pub(in crate::db) fn lock_table_as(&mut self, table: &Arc<Table>, mode: TableMode) -> Result<()> {
        loop {
            let newest = table.newest();
            if !self.holds(newest.id(), mode) {
                self.note_begin();
                self.locker.lock_table(newest.id(), mode)?;
                self.note_lock(newest.id(), mode);
            }
            // The transaction that it waited for may have put another table in its place.
            if Arc::ptr_eq(newest, table.newest()) {
                return self.wait_until_published(newest);
            }
        }
    }

    /// Waits until the load that has put `table` in its place is published: the new owner of the
    /// lock must see it in a snapshot (M13). Errors: those of [`Locker::give_way`].
    fn wait_until_published(&self, table: &Table) -> Result<()> {
        while self.is_being_put_in_place(table) {
            self.locker.give_way()?;
        }
        Ok(())
    }

    fn is_being_put_in_place(&self, table: &Table) -> bool {
        sound!(
            table.replaces_after(self.core.transactions.versions.published()),
            "load: give the table before its commit is published"
        )
    }

    fn note_lock(&mut self, table: TableId, mode: TableMode) {
        let at = self.locks.partition_point(|lock| lock.0 <= table);
        self.locks.insert(at, (table, mode));
    }

    /// Locks a whole table exclusively to the end of the transaction unless somebody has to be
    /// waited for; whether it is locked. Then changes of it need no locks of rows.
    pub fn try_lock_table(&mut self, table: &Arc<Table>) -> Result<bool> {
        self.try_lock_table_as(table, TableMode::Exclusive)
    }

    /// As [`try_lock_table`](Self::try_lock_table), in any mode.
    pub(in crate::db) fn try_lock_table_as(&mut self, table: &Arc<Table>, mode: TableMode) -> Result<bool> {
        let newest = table.newest();
        if !self.holds(newest.id(), mode) {
            self.note_begin();
            if !self.locker.try_lock_table(newest.id(), mode)? {
                return Ok(false);
            }
            self.note_lock(newest.id(), mode);
        }
        Ok(Arc::ptr_eq(newest, table.newest()) && !self.is_being_put_in_place(newest))
    }

    fn holds(&self, table: TableId, mode: TableMode) -> bool {
        let from = self.locks.partition_point(|lock| lock.0 < table);
        let locks = self.locks.iter().skip(from).take_while(|lock| lock.0 == table);
        locks.map(|lock| lock.1).any(|held| held.gives(mode))
    }

    /// Takes numbers from the table's auto-increment counter. A statement that does so again and
    /// again, for rows that it does not count before, has the counter locked to its end if it says
    /// that it is `bulk`: its numbers follow each other. Waits for others that have; errors are
    /// those of [`lock_table`](Self::lock_table).
    pub fn reserve_numbers(&mut self, table: &Arc<Table>, numbers: &Numbers, bulk: bool) -> Result<Reserved> {
        if bulk {
            return Ok(self.lock_counter(table)?.reserve_numbers(numbers));
        }
        let newest = table.newest();
        if self.has_locked_counter(newest) {
            return Ok(newest.reserve_numbers(numbers));
        }
        if let Some(reserved) = newest.reserve_numbers_unless_bulk(numbers) {
            return Ok(reserved);
        }
        let table = self.wait_for_counter(table)?;
        let reserved = table.reserve_numbers(numbers);
        self.release_auto_inc(table);
        Ok(reserved)
    }

    /// Moves the table's auto-increment counter past `used`, the number of a row that brings its
    /// own. A `bulk` statement has the counter locked to its end from its first such row on, as in
    /// [`reserve_numbers`](Self::reserve_numbers): others would take numbers of its later rows.
    /// Errors as there.
    pub fn advance_numbers(
        &mut self,
        table: &Arc<Table>,
        used: u64,
        stride: Stride,
        bulk: bool,
    ) -> Result<()> {
        let table = if bulk { self.lock_counter(table)? } else { table };
        table.advance_auto_increment_past(used, stride);
        Ok(())
    }

    fn has_locked_counter(&self, table: &Table) -> bool {
        self.auto_inc_locks.iter().any(|locked| locked.id() == table.id())
    }

    /// Locks the counter to the end of the statement. Returns the table that has it.
    fn lock_counter<'t>(&mut self, table: &'t Arc<Table>) -> Result<&'t Arc<Table>> {
        let newest = table.newest();
        if self.has_locked_counter(newest) {
            return Ok(newest);
        }
        let table = self.wait_for_counter(table)?;
        table.begin_bulk_insert();
        self.auto_inc_locks.push(Arc::clone(table));
        Ok(table)
    }

    /// Locks the counter. Returns the table that has it.
    fn wait_for_counter<'t>(&self, table: &'t Arc<Table>) -> Result<&'t Arc<Table>> {
        loop {
            let newest = table.newest();
            self.note_begin();
            self.locker.lock_table(newest.id(), TableMode::AutoInc)?;
            // The transaction that it waited for may have put another table in its place: the
            // counter to lock is there.
            if !newest.has_moved() {
                return Ok(newest);
            }
            self.release_auto_inc(newest);
        }
    }

    fn release_auto_inc(&self, table: &Table) {
        self.core.locks.release_table(self.locker.owner, table.id(), TableMode::AutoInc);
    }

    pub(in crate::db) fn end_bulk_inserts(&mut self) {
        for table in std::mem::take(&mut self.auto_inc_locks) {
            table.end_bulk_insert();
            self.release_auto_inc(&table);
        }
    }

    /// Whether it holds a lock that others may wait for.
    pub fn holds_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// Notes for views that the transaction does something.
    pub(in crate::db) fn note_begin(&self) {
        self.listed.begin(|| self.core.clock.now_ns());
    }

    /// Whether it may have changed rows of the table.
    pub(in crate::db) fn may_have_changed(&self, table: &Arc<Table>) -> bool {
        self.slot_of(table).is_some() && self.holds(table.newest().id(), TableMode::IntentExclusive)
    }

    /// Whether the whole table is its own: rows need no locks.
    pub(in crate::db) fn has_whole(&self, table: &Table, mode: LockMode) -> bool {
        self.holds(table.id(), mode.into())
    }

    /// Runs a row operation as a writer of the table. When it fails and could not roll back what it
    /// has done, that is left to do (I4).
    fn write(&mut self, table: &Arc<Table>, request: RowRequest<'_>) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::IntentExclusive)?;
        let table = table.newest();
        let is_temporary = table.id().is_temporary();
        let has_whole = self.has_whole(table, LockMode::Exclusive);
        if is_temporary {
            self.start_temporary();
        } else {
            self.start();
        }
        let own = if is_temporary { &self.temporary } else { &self.slot };
        let slot = own.as_ref().expect("it has just been started");
        let before = slot.undo_no();
        let duplicates = self.duplicates;
        let keeps_absent = duplicates == LockMode::Exclusive && self.isolation != Isolation::ReadCommitted;
        let locker = &*self.locker;
        let locks = (!has_whole).then_some(Locks { locker, duplicates, keeps_absent });
        let interrupted = || locker.is_interrupted();
        let on = Target { core: &self.core, slot, table, locks, interrupted: &interrupted };
        let done = self.writer.run(on, request);
        let undo_no = slot.undo_no();
        let here = self.here();
        self.locker.note_undo_records(here.logged + here.temporary);
        if is_temporary {
            self.core.pace.note_unlogged();
        }
        match done {
            // No savepoint takes back that a temporary table was changed.
            Ok(()) if is_temporary => self.changed.note(table, None),
            Ok(()) => self.changed.note(table, Some(before)),
            Err(_) if undo_no == before => {}
            Err(_) if is_temporary => self.back_to = Some(Savepoint { temporary: before, ..self.here() }),
            Err(_) => self.back_to = Some(Savepoint { logged: before, ..self.here() }),
        }
        done
    }

    /// Its place among the open transactions; it gets one when it writes first.
    pub(in crate::db) fn slot(&mut self) -> Arc<Slot> {
        Arc::clone(self.start())
    }

    fn start(&mut self) -> &Arc<Slot> {
        let Self { core, locker, listed, view, slot, .. } = self;
        slot.get_or_insert_with(|| {
            let slot = core.transactions.active.get_or_start(core.transactions.versions.start());
            slot.belong_to(locker.owner);
            view.belong_to(slot.txn());
            listed.set_txn(slot.txn());
            slot
        })
    }

    /// As [`start`](Self::start), for temporary tables.
    fn start_temporary(&mut self) -> &Arc<Slot> {
        let Self { core, locker, view, temporary, .. } = self;
        temporary.get_or_insert_with(|| {
            let slot = core.transactions.active.start_unlogged(core.transactions.versions.start());
            slot.belong_to(locker.owner);
            view.belong_to_temporary(slot.txn());
            slot
        })
    }

    /// The place under which it has written tables of that kind, if it has.
    pub(in crate::db) fn slot_of(&self, table: &Table) -> Option<&Arc<Slot>> {
        if table.id().is_temporary() {
            self.temporary.as_ref()
        } else {
            self.slot.as_ref()
        }
    }

    /// How many undo records it has now.
    fn here(&self) -> Savepoint {
        let count = |slot: &Option<Arc<Slot>>| slot.as_ref().map_or(0, |slot| slot.undo_no());
        Savepoint { logged: count(&self.slot), temporary: count(&self.temporary) }
    }

    /// Rolls back what is left of a statement that could not be rolled back when it failed (I4).
    pub(in crate::db) fn catch_up(&mut self) -> Result<()> {
        self.back_to.map_or(Ok(()), |point| self.roll_back_to(point))
    }

    pub(in crate::db) fn roll_back_to(&mut self, point: Savepoint) -> Result<()> {
        if self.slot.is_none() && self.temporary.is_none() {
            return Ok(());
        }
        let point = self.back_to.map_or(point, |earlier| earlier.min(point));
        self.back_to = Some(point);
        let core = Arc::clone(&self.core);
        let _stall = core.begin_stall(Stage::RollingBack);
        self.locker.forget_scanned();
        let done = self.roll_back_slots(point);
        self.writer.release();
        done?;
        self.changed.forget_since(point.logged);
        self.back_to = None;
        if sound!(true, "deadlock: count what was rolled back") {
            let here = self.here();
            self.locker.note_undo_records(here.logged + here.temporary);
        }
        Ok(())
    }

    fn roll_back_slots(&mut self, point: Savepoint) -> Result<()> {
        let whole = self.locks.iter().filter(|lock| lock.1.gives(TableMode::Exclusive)).map(|lock| lock.0);
        let whole = whole.collect::<Vec<_>>();
        let temporary =
            self.temporary.clone().filter(|_| sound!(true, "temporary: come back to no savepoint"));
        for (slot, undo_no) in [(self.slot.clone(), point.logged), (temporary, point.temporary)] {
            let Some(slot) = slot else { continue };
            rollback::roll_back_to(&self.core, &slot, undo_no, &whole, &mut self.writer)
                .map_err(|error| unfinished_error(slot.txn(), error))?;
        }
        Ok(())
    }

    /// Inserts a row. May do I/O, and wait: for locks of rows and ranges, with the errors of
    /// [`lock_table`](Self::lock_table), and for room in the log. `DuplicateKey` when a unique key
    /// is taken, whose row is locked then; `Limit` when key or row are too long. After an error
    /// nothing has changed.
    pub fn insert(&mut self, table: &Arc<Table>, row: &NewRow<'_>) -> Result<()> {
        self.write(table, RowRequest::insert(row))
    }

    /// Changes the row of `old_key`; the key may change too. `old_entries` are the entries that go,
    /// for the same indexes in the same order as `new.secondary`: all of them when the key changes,
    /// otherwise those that change. A value of `new.row` that is external, as in the stored row, is
    /// kept. Waits and fails like [`insert`](Self::insert); `RowNotFound`, and `RecordChanged`
    /// under [snapshot isolation](Self::set_snapshot_isolation).
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        old_key: &[u8],
        new: &NewRow<'_>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        self.write(table, RowRequest::update(old_key, new, old_entries))
    }

    /// Deletes the row of `key` with its entries in all secondary indexes. Waits and fails like
    /// [`update`](Self::update).
    pub fn delete(&mut self, table: &Arc<Table>, key: &[u8], old_entries: &[OldEntry<'_>]) -> Result<()> {
        self.write(table, RowRequest::delete(key, old_entries))
    }

    /// The present point. Pages that were kept at hand for the statement stay so: its next row may
    /// need them, and a savepoint may be taken for each.
    pub fn savepoint(&self) -> Savepoint {
        self.back_to.unwrap_or_else(|| self.here())
    }

    /// Rolls back what was done since the savepoint. Locks stay. After `RollbackUnfinished` the
    /// transaction goes on with this before it does anything else (I4).
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let too_few = u64::from(!sound!(true, "savepoint: leave the first change"));
        let too_many = u64::from(!sound!(true, "savepoint: roll back one change more"));
        let logged = (savepoint.logged + too_few).saturating_sub(too_many);
        self.roll_back_to(Savepoint { logged, ..savepoint })
    }
}
