//! A transaction: its table locks, row operations, and savepoints. Its reads are in
//! [`crate::db::reading`], its end in [`super::ending`].
//!
//! Invariants
//!   I1  A consistent read takes no lock, except at SERIALIZABLE: it reads the versions that purge
//!       keeps for its snapshot. Row operations and locking reads lock rows, and take an intention
//!       lock on the table, unless the whole table is already locked in that mode.
//!   I2  Locks are released when the commit record is in the log, or when the rollback is complete.
//!       A rollback releases ranges before it begins, and each row once it is rolled back. Locks on
//!       auto-increment counters are released at the end of the statement. A transaction that reads
//!       the changes and then commits logs its commit after that record, so its commit never
//!       survives without the changes. In this way transactions on one table can share a sync of
//!       the log. As in InnoDB, a read-only transaction may see changes that a power cut undoes.
//!   I3  A rollback that encounters an error, or takes long after its caller was interrupted, keeps
//!       its locks: partly rolled back rows stay locked. It continues in the background, also after
//!       the next startup; the handle is free for another transaction.
//!   I4  A statement whose rollback failed is rolled back before the transaction does anything
//!       else. So a failed operation changes nothing, and every rollback to a savepoint completes.
//!   I5  Once a commit is in the log it succeeds, unless the engine stops: cleaning up can wait. A
//!       commit that is refused before that is a rollback.
//!   I6  A transaction that has changed nothing, or has rolled back all its changes, ends like a
//!       rollback and waits for nothing. A load that becomes visible with the commit is a change. A
//!       transaction that prepares gives a promise if anything was logged.
//!   I7  Temporary tables are written under a separate transaction ID, which neither the log nor
//!       the coordinator of a PREPARE knows. Both parts roll back to savepoints, and end, together.

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

/// A transaction. Dropping it rolls it back unless it was committed or prepared.
pub struct Transaction {
    pub(in crate::db) core: Arc<Core>,
    pub(in crate::db) locker: Arc<Locker>,
    pub(in crate::db) slot: Option<Arc<Slot>>,
    /// The slot for writes to temporary tables: a separate, unlogged transaction (I7).
    pub(in crate::db) temporary: Option<Arc<Slot>>,
    pub(in crate::db) view: Arc<ReadView>,
    /// Locked tables, in order of ID; thousands if a table has many partitions.
    pub(in crate::db) locks: Vec<(TableId, TableMode)>,
    pub(in crate::db) listed: Listed,
    /// Reported to transactions that wait for this one.
    pub(in crate::db) session: SessionId,
    /// Tables whose auto-increment counters are locked until the statement ends.
    auto_inc_locks: Vec<Arc<Table>>,
    /// How to lock the row that already has the unique key of a new row.
    duplicates: LockMode,
    pub(in crate::db) writer: Writer,
    pub(in crate::db) posting_room: PostingRoom,
    pub(in crate::db) removal_room: RemovalRoom,
    /// Counted to check regularly for an interrupt.
    pub(in crate::db) postings_written: usize,
    /// If set, the changes after this point must be rolled back first (I4).
    pub(in crate::db) back_to: Option<Savepoint>,
    /// The end of the commit record in the log, if logged before [`commit`](Self::commit).
    pub(in crate::db) ordered: Option<Result<Lsn>>,
    /// Loads that belong to its commit and have not ended successfully.
    pub(in crate::db) unended_loads: u32,
    /// Tables that the current statement created and is filling.
    pub(in crate::db) filled: BTreeSet<TableId>,
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

/// A point to roll back to: the number of undo records of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Savepoint {
    pub(in crate::db) logged: u64,
    pub(in crate::db) temporary: u64,
}

impl Savepoint {
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

    /// Sets a function that is called repeatedly while the transaction waits for a lock or for room
    /// in the log, retries an operation, or skips many invisible entries. If it returns true, the
    /// operation fails with `Interrupted`.
    pub fn interrupt_when(&mut self, interrupted: impl Fn() -> bool + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.interrupted_by(Arc::new(interrupted)));
    }

    /// Sets the time of the statement that makes the following changes, in any unit.
    /// [`Table::changed_at`] of the changed tables returns it after the commit. With 0, the
    /// default, changes are not recorded.
    pub fn set_time(&mut self, time: u64) {
        self.changed.set_time(time);
    }

    /// Sets the caller's session. When this transaction begins to wait for a lock, and every 50 ms
    /// while it waits, it calls `report` with the session of each transaction that it waits for, if
    /// that transaction has set one. A session is no longer reported once its transaction was
    /// dropped, or handed over to the background or to a coordinator. `report` must not wait, nor
    /// use the engine.
    ///
    /// For callers that must commit transactions in a fixed order, such as a replica that applies
    /// in parallel: if a transaction waits for a later one, the caller can end the later one. See
    /// also [`Db::set_victim_choice`](crate::db::Db::set_victim_choice).
    pub fn report_waits(&mut self, session: SessionId, report: impl Fn(SessionId) + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.reported_to(Arc::new(report)));
        self.session = session;
        self.listed.set_session(session);
    }

    /// Sets the isolation level of this and later transactions of this handle. Must be called
    /// before the transaction reads or writes.
    pub fn set_isolation(&mut self, level: Isolation) {
        self.isolation = level;
        self.locker.refuse_changed(self.refuses_changed());
        self.listed.set_isolation(level as u8);
    }

    /// Sets the connection ID shown by [`Db::transactions`](crate::db::Db::transactions).
    pub fn set_connection(&mut self, connection: u64) {
        self.listed.set_connection(connection);
    }

    /// Sets how many tables [`Db::transactions`](crate::db::Db::transactions) shows as in use.
    pub fn set_tables_in_use(&mut self, count: u32) {
        self.listed.set_tables_in_use(count);
    }

    /// Sets whether locking or changing a row that changed after the transaction's snapshot fails
    /// with `RecordChanged`, under an isolation level that fixes the snapshot for the transaction.
    /// Off by default. Call it before the transaction reads or writes.
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

    /// Sets how long to wait for each lock from now on, in nanoseconds. With 0, the transaction
    /// never waits: a request for a lock that another transaction holds fails at once with
    /// `LockTimeout`. The default is 50 seconds.
    pub fn set_lock_wait(&mut self, timeout_ns: u64) {
        self.locker.set_wait_ns(timeout_ns);
    }

    /// Sets how to lock the row whose unique key makes an insert or an update fail. A caller that
    /// then changes that row needs an exclusive lock. The default is shared. If ranges are locked,
    /// the exclusive mode also locks the absent unique keys of the refused row that were checked
    /// before: another transaction that inserted one would make the caller find a different row.
    pub fn set_duplicate_lock(&mut self, mode: LockMode) {
        self.duplicates = mode;
    }

    /// Takes the snapshot for consistent reads now, if the isolation level fixes a snapshot.
    pub fn take_snapshot(&mut self) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.note_begin();
        if self.isolation != Isolation::ReadCommitted {
            self.view.open();
        }
        Ok(())
    }

    /// Ends a statement: releases its pinned pages, its snapshot if taken for this statement only,
    /// and the counters locked by [`reserve_numbers`](Self::reserve_numbers). Cursors opened by the
    /// statement must not be used any more. Does not block.
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

    /// Its ID, or `None` before it has written anything.
    pub fn id(&self) -> Option<TxnId> {
        self.slot.as_ref().map(|slot| slot.txn())
    }

    /// Locks a whole table until the end of the transaction. Waits as set with
    /// [`set_lock_wait`](Self::set_lock_wait) and [`interrupt_when`](Self::interrupt_when). Errors:
    /// `LockTimeout`, `Deadlock`, `Interrupted`, `LockTableFull`, and `RollbackUnfinished` instead
    /// of `LockTimeout` if the lock is held by a rollback that encounters errors. Locks already
    /// held are kept. After `Deadlock` and `LockTableFull`, the transaction must be rolled back.
    pub fn lock_table(&mut self, table: &Arc<Table>, mode: LockMode) -> Result<()> {
        self.core.health.check()?;
        self.lock_table_as(table, mode.into())
    }

    /// Fails with `Unsupported` if the transaction has written to any table: then it cannot change
    /// the table's indexes.
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

    /// Locks the table that has replaced `table`, or `table` itself.
    pub(in crate::db) fn lock_table_as(&mut self, table: &Arc<Table>, mode: TableMode) -> Result<()> {
        loop {
            let newest = table.newest();
            if !self.holds(newest.id(), mode) {
                self.note_begin();
                self.locker.lock_table(newest.id(), mode)?;
                self.note_lock(newest.id(), mode);
            }
            // The previous holder of the lock may have replaced the table.
            if Arc::ptr_eq(newest, table.newest()) {
                return self.wait_until_published(newest);
            }
        }
    }

    /// Waits until the load that put `table` in the place of another table is published: the new
    /// owner of the lock must see it in a snapshot (durability::M13). Errors: those of
    /// [`Locker::give_way`].
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

    /// Locks a whole table exclusively until the end of the transaction, unless it would have to
    /// wait. Returns whether the table is locked. Changes of a locked table need no row locks.
    pub fn try_lock_table(&mut self, table: &Arc<Table>) -> Result<bool> {
        self.try_lock_table_as(table, TableMode::Exclusive)
    }

    /// Like [`try_lock_table`](Self::try_lock_table), in any mode.
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

    /// Takes numbers from the table's auto-increment counter. A statement that inserts an unknown
    /// number of rows, and so reserves numbers repeatedly, passes `bulk`: it locks the counter
    /// until the statement ends, so that its numbers are consecutive. Waits for other statements
    /// that have locked the counter; errors are those of [`lock_table`](Self::lock_table).
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

    /// Moves the table's auto-increment counter past `used`, a number that the caller supplied for
    /// a row. Waits, fails, and with `bulk` locks the counter, like
    /// [`reserve_numbers`](Self::reserve_numbers): otherwise other statements would take the
    /// numbers of this statement's later rows.
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

    /// Locks the counter until the end of the statement, and returns its table.
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

    fn wait_for_counter<'t>(&self, table: &'t Arc<Table>) -> Result<&'t Arc<Table>> {
        loop {
            let newest = table.newest();
            self.note_begin();
            self.locker.lock_table(newest.id(), TableMode::AutoInc)?;
            // The previous holder of the lock may have replaced the table, with its counter.
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

    /// Whether it holds a lock that other transactions may wait for.
    pub fn holds_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// Shows the transaction as active in the views.
    pub(in crate::db) fn note_begin(&self) {
        self.listed.begin(|| self.core.clock.now_ns());
    }

    pub(in crate::db) fn may_have_changed(&self, table: &Arc<Table>) -> bool {
        self.slot_of(table).is_some() && self.holds(table.newest().id(), TableMode::IntentExclusive)
    }

    /// Returns whether it has locked the whole table, so that rows need no locks.
    pub(in crate::db) fn has_whole(&self, table: &Table, mode: LockMode) -> bool {
        self.holds(table.id(), mode.into())
    }

    /// Runs a row operation with an intention lock on the table. If the operation fails and its
    /// changes could not be rolled back, they remain to be rolled back (I4).
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
            // A rollback to a savepoint does not revoke the note that a temporary table changed.
            Ok(()) if is_temporary => self.changed.note(table, None),
            Ok(()) => self.changed.note(table, Some(before)),
            Err(_) if undo_no == before => {}
            Err(_) if is_temporary => self.back_to = Some(Savepoint { temporary: before, ..self.here() }),
            Err(_) => self.back_to = Some(Savepoint { logged: before, ..self.here() }),
        }
        done
    }

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

    /// Like [`start`](Self::start), for temporary tables.
    fn start_temporary(&mut self) -> &Arc<Slot> {
        let Self { core, locker, view, temporary, .. } = self;
        temporary.get_or_insert_with(|| {
            let slot = core.transactions.active.start_unlogged(core.transactions.versions.start());
            slot.belong_to(locker.owner);
            view.belong_to_temporary(slot.txn());
            slot
        })
    }

    /// The slot under which it has written tables of the kind of `table` (temporary or not).
    pub(in crate::db) fn slot_of(&self, table: &Table) -> Option<&Arc<Slot>> {
        if table.id().is_temporary() {
            self.temporary.as_ref()
        } else {
            self.slot.as_ref()
        }
    }

    fn here(&self) -> Savepoint {
        let count = |slot: &Option<Arc<Slot>>| slot.as_ref().map_or(0, |slot| slot.undo_no());
        Savepoint { logged: count(&self.slot), temporary: count(&self.temporary) }
    }

    /// Completes the rollback of a failed statement that could not be rolled back at once (I4).
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

    /// Inserts a row. May do I/O, and wait: for locks on rows and ranges, with the errors of
    /// [`lock_table`](Self::lock_table), and for room in the log. Fails with `DuplicateKey` if a
    /// row has the same unique key, which is then locked; with `Limit` if the key or the row is too
    /// long; with `Entries` unless `row.secondary` has one entry per secondary index. After an
    /// error, nothing has changed.
    pub fn insert(&mut self, table: &Arc<Table>, row: &NewRow<'_>) -> Result<()> {
        self.write(table, RowRequest::insert(row))
    }

    /// Changes the row with the key `old_key`; the key may change, too. `old_entries` are the
    /// entries to remove, for the same indexes in the same order as `new.secondary`: all entries if
    /// the key changes, otherwise those that change. External values of the stored row that occur
    /// in `new.row` are kept. Waits and fails like [`insert`](Self::insert), and also with
    /// `RowNotFound`, and with `RecordChanged` under [snapshot
    /// isolation](Self::set_snapshot_isolation).
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        old_key: &[u8],
        new: &NewRow<'_>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        self.write(table, RowRequest::update(old_key, new, old_entries))
    }

    /// Deletes the row with the key `key`, and `old_entries`: its entries in all secondary indexes,
    /// in index order, since the engine does not compute them from the row. Fails with `Entries` if
    /// one is missing. Otherwise waits and fails like [`update`](Self::update).
    pub fn delete(&mut self, table: &Arc<Table>, key: &[u8], old_entries: &[OldEntry<'_>]) -> Result<()> {
        self.write(table, RowRequest::delete(key, old_entries))
    }

    /// Returns the current point. Pages pinned for the statement stay pinned, because callers may
    /// take a savepoint for each row.
    pub fn savepoint(&self) -> Savepoint {
        self.back_to.unwrap_or_else(|| self.here())
    }

    /// Rolls back all changes made after the savepoint. Keeps the locks. After
    /// `RollbackUnfinished`, the next call first continues this rollback (I4).
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let too_few = u64::from(!sound!(true, "savepoint: leave the first change"));
        let too_many = u64::from(!sound!(true, "savepoint: roll back one change more"));
        let logged = (savepoint.logged + too_few).saturating_sub(too_many);
        self.roll_back_to(Savepoint { logged, ..savepoint })
    }
}
