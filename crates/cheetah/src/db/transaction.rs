//! A transaction: locks, row operations, savepoints, the end.
//!
//! Invariants
//!   I1  A consistent read takes no lock, except at SERIALIZABLE: it sees what its snapshot has, in the versions that purge keeps
//!       for it. Row operations and locking reads lock rows, and the table as intending to, unless the whole table is locked so
//!       already.
//!   I2  Locks are released when the commit record is in the log, or the rollback is complete; in a rollback ranges before it
//!       begins, and each row once it is taken back; counters of numbers at the end of the statement. Whoever reads the
//!       changes then commits behind that record, so it never outlives them; and transactions on one table can share
//!       a sync of the log. As InnoDB, a mere reader may see what a power cut still takes back.
//!   I3  A rollback that meets an error, or is long and nobody wants to wait for it, keeps its locks: half taken back rows stay
//!       out of reach. It goes on in the background, and after the next opening; the handle is free for another transaction.
//!   I4  A statement that could not be taken back is taken back before the transaction does anything else. So an operation
//!       that has failed has changed nothing, and a savepoint that was come back to is reached.
//!   I5  Once a commit is in the log it succeeds, unless the engine stops: what is to be tidied up can wait. A commit that
//!       is refused before is a rollback.

use super::scan_step::Locking;
use super::{Cursor, Isolation, OnLocked, Read};
use crate::base::{planted, Error, Lsn, Result, TableId, TxnId};
use crate::format::page::RecordRef;
use crate::table::core::{Core, Counters};
use crate::table::locker::{Locked, Locker, Patience};
use crate::table::row_op::{Locks, Target, Writer};
use crate::table::unfinished::unfinished_error;
use crate::table::{large, prepared, rollback, visible, NewRow, Numbers, OldEntry, Reserved, Table};
use crate::txn::{Listed, Lock, LockMode, Phase, ReadView, Slot, TableMode};
use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Undo records that a transaction purges at its end, when it does.
const RECORDS_PURGED_AT_END: usize = 8;
/// Undo pages from which on transactions help to purge: the background does not keep up.
const UNDO_PAGES_HELPED: usize = 4096;

/// A transaction. Dropping it takes back what is neither committed nor prepared.
pub struct Transaction {
    pub(super) core: Arc<Core>,
    pub(super) locker: Arc<Locker>,
    pub(super) slot: Option<Arc<Slot>>,
    pub(super) view: Arc<ReadView>,
    /// Tables that it has locked, in the order of their numbers: there are thousands where a table has as many partitions.
    pub(super) locks: Vec<(TableId, TableMode)>,
    /// What views tell of it.
    pub(super) listed: Listed,
    /// The session that it is known by to those whom it keeps waiting; 0 if none.
    session: u64,
    /// Tables whose auto-increment counters its statement has locked to its end.
    auto_inc_locks: Vec<Arc<Table>>,
    /// How a row is locked whose unique key a new one has too.
    duplicates: LockMode,
    writer: Writer,
    /// What comes after this undo record is to be taken back first (I4).
    back_to: Option<u64>,
    /// Where its COMMIT ends in the log, once that has been logged ahead of [`commit`](Self::commit).
    pub(super) ordered: Option<Result<Lsn>>,
    isolation: Isolation,
    has_snapshot_isolation: bool,
}

/// How a read goes about locks.
enum Reading {
    /// It needs none: what the view sees.
    View(Arc<ReadView>),
    /// The table is locked: the newest rows.
    Newest,
    /// It locks the rows.
    Rows(LockMode),
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("slot", &self.slot)
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// A point to come back to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Savepoint(u64);

impl Transaction {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let view = Arc::new(ReadView::new(&core.versions));
        let listed = core.roster.enter(core.new_owner(), Some(Arc::clone(&view)));
        listed.set_isolation(Isolation::default() as u8);
        let locker = Arc::new(Locker::new(&core, &view, listed.entry()));
        Self {
            core,
            locker,
            slot: None,
            view,
            locks: Vec::new(),
            listed,
            session: 0,
            auto_inc_locks: Vec::new(),
            duplicates: LockMode::Shared,
            writer: Writer::default(),
            back_to: None,
            ordered: None,
            isolation: Isolation::default(),
            has_snapshot_isolation: false,
        }
    }

    /// From now on whatever waits, for a lock or for a checkpoint to make room in the log, is tried again, or passes many entries
    /// that are not there for it, asks `interrupted` now and then, and ends as `Interrupted` when it says so.
    pub fn interrupt_when(&mut self, interrupted: impl Fn() -> bool + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.interrupted_by(Arc::new(interrupted)));
    }

    /// Has `waits` called with `true` before the transaction waits for a lock, and with `false` afterwards, by the thread that waits: for
    /// callers that share threads between transactions.
    pub fn note_waits(&mut self, waits: impl Fn(bool) + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.noted_by(Arc::new(waits)));
    }

    /// Names the session of the caller (not 0) for other transactions, and has `report` called with the sessions of those for whom
    /// this transaction waits, as far as they have named theirs, when it begins to wait for a lock and every 50 ms as long as
    /// it does. A session is not told any more when its transaction has been dropped, or handed over to the background or to
    /// a coordinator. `report` must not wait, nor use the engine.
    ///
    /// For callers that know an order in which transactions must commit, such as a replica that applies in parallel: who waits for
    /// a later one can have that one end.
    pub fn report_waits(&mut self, session: u64, report: impl Fn(u64) + Send + Sync + 'static) {
        self.locker = Arc::new(self.locker.reported_to(Arc::new(report)));
        self.session = session;
        self.listed.set_session(session);
    }

    /// Sets the isolation level, for this transaction and later ones of this handle. To be called before the transaction
    /// reads or writes.
    pub fn set_isolation(&mut self, level: Isolation) {
        self.isolation = level;
        self.locker.refuse_changed(self.refuses_changed());
        self.listed.set_isolation(level as u8);
    }

    /// Sets the number of the caller's connection, by which [`Db::transactions`](super::Db::transactions) names it.
    pub fn set_connection(&mut self, connection: u64) {
        self.listed.set_connection(connection);
    }

    /// Whether rows that have changed since the transaction's snapshot are refused to those who lock or change them
    /// (`RecordChanged`), under an isolation level that fixes the snapshot for the transaction. Off unless this is called;
    /// otherwise as [`set_isolation`](Self::set_isolation).
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

    /// How long each lock is waited for from now on, in nanoseconds. With 0 nothing is waited for: what others have locked is
    /// `LockTimeout` at once. 50 seconds unless this is called.
    pub fn set_lock_wait(&mut self, timeout_ns: u64) {
        self.locker.set_wait_ns(timeout_ns);
    }

    /// How a row is locked from now on when an insert or an update is refused because of a unique key that it has:
    /// exclusively by those who change it then. Shared unless this is called.
    pub fn set_duplicate_lock(&mut self, mode: LockMode) {
        self.duplicates = mode;
    }

    /// Fixes now what consistent reads see, under an isolation level that fixes it for the whole transaction.
    pub fn take_snapshot(&mut self) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.note_begin();
        if self.isolation != Isolation::ReadCommitted {
            self.view.open();
        }
        Ok(())
    }

    /// Ends a statement: pages that were kept at hand for it are let go, and so are what it alone was to see and the counters that
    /// [`reserve_numbers`](Self::reserve_numbers) has locked. The cursors that it has opened are used no more. Does not block.
    pub fn end_statement(&mut self) {
        self.writer.release();
        self.end_bulk_inserts();
        let closes = self.isolation == Isolation::ReadCommitted
            && !planted::is_on("snapshot: keep it for the next statement");
        if closes || planted::is_on("snapshot: take one for each statement") {
            self.view.close();
        }
        if planted::is_on("locks: free them with the statement") {
            self.core.locks.release_all(self.locker.owner);
            self.locks.clear();
        }
    }

    /// Its number; none before it has written something.
    pub fn id(&self) -> Option<TxnId> {
        self.slot.as_ref().map(|slot| slot.txn())
    }

    /// Locks a whole table to the end of the transaction. Waits as set with [`set_lock_wait`](Self::set_lock_wait) and
    /// [`interrupt_when`](Self::interrupt_when). Errors: `LockTimeout`, `Deadlock`, `Interrupted`, `LockTableFull`, and
    /// `RollbackUnfinished` instead of the first when a rollback that meets errors was waited for; locks held already stay, and
    /// after `Deadlock` and `LockTableFull` the transaction is to be rolled back.
    pub fn lock_table(&mut self, table: &Arc<Table>, mode: LockMode) -> Result<()> {
        self.core.health.check()?;
        self.lock_table_as(table, mode.into())
    }

    fn lock_table_as(&mut self, table: &Arc<Table>, mode: TableMode) -> Result<()> {
        if !self.holds(table.id(), mode) {
            self.note_begin();
            self.locker.lock_table(table.id(), mode)?;
            let at = self.locks.partition_point(|lock| lock.0 <= table.id());
            self.locks.insert(at, (table.id(), mode));
        }
        Ok(())
    }

    fn holds(&self, table: TableId, mode: TableMode) -> bool {
        let from = self.locks.partition_point(|lock| lock.0 < table);
        let locks = self.locks.iter().skip(from).take_while(|lock| lock.0 == table);
        locks.map(|lock| lock.1).any(|held| held.gives(mode))
    }

    /// Takes numbers from the table's auto-increment counter. A statement that does so again and again, for rows that it does
    /// not count before, has the counter locked to its end if it says that it is `bulk`: its numbers follow each other.
    /// Waits for others that have; errors as of [`lock_table`](Self::lock_table).
    pub fn reserve_numbers(&mut self, table: &Arc<Table>, numbers: &Numbers, bulk: bool) -> Result<Reserved> {
        if self.auto_inc_locks.iter().any(|locked| locked.id() == table.id()) {
            return Ok(table.reserve_numbers(numbers));
        }
        if !bulk {
            if let Some(reserved) = table.reserve_numbers_unless_bulk(numbers) {
                return Ok(reserved);
            }
        }
        self.note_begin();
        self.locker.lock_table(table.id(), TableMode::AutoInc)?;
        if bulk {
            table.begin_bulk_insert();
            self.auto_inc_locks.push(Arc::clone(table));
        }
        let reserved = table.reserve_numbers(numbers);
        if !bulk {
            self.release_auto_inc(table);
        }
        Ok(reserved)
    }

    fn release_auto_inc(&self, table: &Table) {
        self.core.locks.release_table(self.locker.owner, table.id(), TableMode::AutoInc);
    }

    fn end_bulk_inserts(&mut self) {
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
    fn note_begin(&self) {
        self.listed.begin(|| self.core.clock.now_ns());
    }

    /// Whether the whole table is its own: rows need no locks.
    fn has_whole(&self, table: &Table, mode: LockMode) -> bool {
        self.holds(table.id(), mode.into())
    }

    /// Locks what reading in this way needs besides the rows, or opens the snapshot (I1).
    fn lock_to_read(&mut self, table: &Arc<Table>, read: Read) -> Result<Reading> {
        self.catch_up()?;
        self.core.health.check()?;
        let is_blind =
            planted::is_on("serializable: read without locks") && self.isolation == Isolation::Serializable;
        let (mode, intention) = match (read, self.isolation) {
            (Read::Consistent, _) if is_blind => {
                self.view.open();
                return Ok(Reading::View(Arc::clone(&self.view)));
            }
            (Read::Exclusive, _) => (LockMode::Exclusive, TableMode::IntentExclusive),
            (Read::Shared, _) | (Read::Consistent, Isolation::Serializable) => {
                (LockMode::Shared, TableMode::IntentShared)
            }
            (Read::Consistent, _) => {
                self.note_begin();
                self.view.open();
                table.check_not_replaced_since(self.view.stamp())?;
                return Ok(Reading::View(Arc::clone(&self.view)));
            }
        };
        if self.has_whole(table, mode) {
            return Ok(Reading::Newest);
        }
        self.lock_table_as(table, intention)?;
        if self.isolation == Isolation::Serializable && self.has_snapshot_isolation {
            self.view.open();
        }
        Ok(Reading::Rows(mode))
    }

    /// Runs a row operation as a writer of the table. When it fails and could not take back what it has done, that is
    /// left to do (I4).
    fn write(
        &mut self,
        table: &Arc<Table>,
        operation: impl FnOnce(&mut Writer, Target<'_>) -> Result<()>,
    ) -> Result<()> {
        self.catch_up()?;
        self.core.health.check()?;
        self.lock_table_as(table, TableMode::IntentExclusive)?;
        let slot = self.slot();
        let before = slot.state().undo_no;
        let locker = Arc::clone(&self.locker);
        let has_whole = self.has_whole(table, LockMode::Exclusive);
        let locks = (!has_whole).then_some(Locks { locker: &locker, duplicates: self.duplicates });
        let interrupted = || locker.is_interrupted();
        let on = Target { core: &self.core, slot: &slot, table, locks, interrupted: &interrupted };
        let done = operation(&mut self.writer, on);
        let undo_no = slot.state().undo_no;
        locker.note_work(undo_no);
        if done.is_err() && undo_no > before {
            self.back_to = Some(before);
        }
        done
    }

    /// Its place among the open transactions; it gets one when it writes first.
    fn slot(&mut self) -> Arc<Slot> {
        let Self { core, locker, listed, view, slot, .. } = self;
        let slot = slot.get_or_insert_with(|| {
            let slot = core.active.get_or_start(core.versions.start());
            slot.belong_to(locker.owner);
            view.belong_to(slot.txn());
            listed.set_txn(slot.txn());
            slot
        });
        Arc::clone(slot)
    }

    /// Takes back what is left of a statement that could not be taken back when it failed (I4).
    pub(super) fn catch_up(&mut self) -> Result<()> {
        self.back_to.map_or(Ok(()), |undo_no| self.take_back_to(undo_no))
    }

    fn take_back_to(&mut self, undo_no: u64) -> Result<()> {
        let Some(slot) = self.slot.clone() else { return Ok(()) };
        let undo_no = self.back_to.map_or(undo_no, |earlier| earlier.min(undo_no));
        self.back_to = Some(undo_no);
        let whole = self.locks.iter().filter(|lock| lock.1.gives(TableMode::Exclusive)).map(|lock| lock.0);
        let whole = whole.collect::<Vec<_>>();
        let done = rollback::roll_back_to(&self.core, &slot, undo_no, &whole, &mut self.writer);
        self.writer.release();
        done.map_err(|error| unfinished_error(slot.txn(), error))?;
        self.back_to = None;
        Ok(())
    }

    /// Inserts a row. May do I/O, and wait: for locks of rows and ranges, with errors as of [`lock_table`](Self::lock_table), and
    /// for room in the log. `DuplicateKey` when a unique key is taken, whose row is locked then; `Limit` when key or row are too
    /// long. After an error nothing has changed.
    pub fn insert(&mut self, table: &Arc<Table>, row: &NewRow<'_>) -> Result<()> {
        self.write(table, |writer, target| writer.insert(target, row))
    }

    /// Changes the row of `old_key`; the key may change too. `old_entries` are the entries that go, for the same
    /// indexes in the same order as `new.secondary`: all of them when the key changes, otherwise those that change. A
    /// value of `new.row` that is external, as in the stored row, is kept. Waits, and errors, as of [`insert`](Self::insert);
    /// `RowNotFound`, and `RecordChanged` under [snapshot isolation](Self::set_snapshot_isolation).
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        old_key: &[u8],
        new: &NewRow<'_>,
        old_entries: &[OldEntry<'_>],
    ) -> Result<()> {
        self.write(table, |writer, target| writer.update(target, old_key, new, old_entries))
    }

    /// Deletes the row of `key` with its entries in all secondary indexes. Waits, and errors, as of [`update`](Self::update).
    pub fn delete(&mut self, table: &Arc<Table>, key: &[u8], old_entries: &[OldEntry<'_>]) -> Result<()> {
        self.write(table, |writer, target| writer.delete(target, key, old_entries))
    }

    /// Reads the stored row of `key` into `row`, large values as locators; whether there is one. May do I/O, and wait for
    /// a lock: errors as of [`lock_table`](Self::lock_table), and `RecordChanged` under
    /// [snapshot isolation](Self::set_snapshot_isolation).
    pub fn get(&mut self, table: &Arc<Table>, key: &[u8], read: Read, row: &mut Vec<u8>) -> Result<bool> {
        let view = match self.lock_to_read(table, read)? {
            Reading::Rows(mode) => return self.get_locked(table, key, mode, row),
            Reading::View(view) => Some(view),
            Reading::Newest => None,
        };
        let _usage = table.use_it()?;
        row.clear();
        Counters::add(&self.core.counters.rows_read);
        visible::read_row(&self.core, table, key, view.as_deref(), row)
    }

    fn get_locked(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        mode: LockMode,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        Counters::add(&self.core.counters.rows_read);
        let see = |record: RecordRef<'_>| {
            row.clear();
            row.extend_from_slice(record.payload);
            self.locker.check_unchanged(record.version)
        };
        let locked = self.locker.lock_row(table, key, Patience::Waits, |_| mode, see)?;
        let is_live = matches!(locked, Locked::Live(_));
        if !is_live && self.isolation != Isolation::ReadCommitted {
            // The lock goes with a row that is inserted and taken back; its place stays locked.
            let (tree, range) = (table.clustered().def().id, (Bound::Included(key), Bound::Included(key)));
            self.locker.ask(Lock::Gap { tree, range, mode }, Patience::None)?;
        }
        Ok(is_live)
    }

    /// A cursor over an index, nowhere yet. To be used while this transaction is open. May wait for a lock: errors as of
    /// [`lock_table`](Self::lock_table).
    pub fn cursor(&mut self, table: &Arc<Table>, index_no: usize, read: Read) -> Result<Cursor> {
        self.cursor_on(table, index_no, read, OnLocked::Wait)
    }

    /// As [`cursor`](Self::cursor); `on_locked` says what becomes of rows that others have locked, when it locks.
    pub fn cursor_on(
        &mut self,
        table: &Arc<Table>,
        index_no: usize,
        read: Read,
        on_locked: OnLocked,
    ) -> Result<Cursor> {
        match self.lock_to_read(table, read)? {
            Reading::View(view) => Cursor::new(&self.locker, table, index_no, Some(view)),
            Reading::Newest => Cursor::new(&self.locker, table, index_no, None),
            Reading::Rows(mode) => {
                let ranges =
                    self.isolation != Isolation::ReadCommitted && !planted::is_on("locks: lock no ranges");
                let how = Locking { mode, ranges, on_locked };
                Cursor::locking(&self.locker, table, index_no, how)
            }
        }
    }

    /// How many rows a consistent read of the table finds, where that is known without a scan: not where it has to lock them.
    /// May wait for a lock: errors as of [`lock_table`](Self::lock_table).
    pub fn count(&mut self, table: &Arc<Table>) -> Result<Option<u64>> {
        let Reading::View(view) = self.lock_to_read(table, Read::Consistent)? else { return Ok(None) };
        let _usage = table.use_it()?;
        let own = self.slot.as_ref().and_then(|slot| slot.rows_of(table.id()));
        Ok(view.stamp().and_then(|stamp| table.counts().count(stamp, own)))
    }

    /// Reads a large value into `value`, given its locator from a row that this transaction may read. May do I/O.
    pub fn fetch_large(&self, table: &Arc<Table>, locator: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let _usage = table.use_it()?;
        value.clear();
        large::read_value(&self.core.pool, table.blob_owner(), locator, value)
    }

    /// The present point. Also ends a statement: pages that were kept at hand for it are let go.
    pub fn savepoint(&mut self) -> Savepoint {
        self.writer.release();
        let undo_no = self.slot.as_ref().map_or(0, |slot| slot.state().undo_no);
        Savepoint(self.back_to.unwrap_or(undo_no))
    }

    /// Takes back what was done since the savepoint. Locks stay. After `RollbackUnfinished` the transaction goes on with
    /// this before it does anything else (I4).
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let too_few = u64::from(planted::is_on("savepoint: leave the first change"));
        let too_many = u64::from(planted::is_on("savepoint: take back one change more"));
        self.take_back_to((savepoint.0 + too_few).saturating_sub(too_many))
    }

    /// Commits, and releases all locks. On return the commit is as durable as the flush mode says; after
    /// [`commit_ordered`](Self::commit_ordered) whoever has decided knows of it, and nothing is waited for. The handle can be
    /// used for another transaction. `RolledBack`, or an error of [`rollback`](Self::rollback), when the commit was refused;
    /// after a fatal error the next opening tells the outcome.
    pub fn commit(&mut self) -> Result<()> {
        if let Some(slot) = self.slot.clone() {
            self.listed.set_phase(Phase::Committing);
            let ordered = self.ordered.take();
            let is_ordered = ordered.is_some();
            let log = || {
                self.writer.release();
                if planted::is_on("commit: lose the last change") {
                    let undo_no = slot.state().undo_no;
                    self.take_back_to(undo_no.saturating_sub(1))?;
                }
                self.catch_up().and_then(|()| rollback::commit(&self.core, &slot))
            };
            let end = match ordered.unwrap_or_else(log) {
                Ok(end) => end,
                Err(error) => return Err(self.roll_back_instead(error)),
            };
            self.slot = None;
            self.view.end();
            self.release_locks();
            match is_ordered {
                true => self.core.write_at_commit(end)?,
                false => self.core.flush_at_commit(end)?,
            }
            self.clean_up();
        }
        self.writer.release();
        self.view.end();
        self.release_locks();
        Ok(())
    }

    fn roll_back_instead(&mut self, error: Error) -> Error {
        if let Error::Fatal(_) = error {
            return error;
        }
        self.rollback().err().unwrap_or(Error::RolledBack(error.to_string()))
    }

    /// Takes everything back and releases all locks; when that takes long, and the caller has been interrupted, the background
    /// does so. The handle can be used for another transaction, also after an error: `RollbackUnfinished` when the rollback has met
    /// one and goes on in the background, with the locks (I3). What
    /// [`commit_ordered`](Self::commit_ordered) has committed stays so.
    pub fn rollback(&mut self) -> Result<()> {
        if self.ordered.is_some() {
            return self.commit();
        }
        self.writer.release();
        self.back_to = None;
        self.view.end();
        if let Some(slot) = self.slot.take() {
            self.listed.set_phase(Phase::RollingBack);
            self.core.locks.release_ranges(self.locker.owner);
            if self.locker.is_interrupted() && self.core.unfinished.should_take(&self.core, &slot) {
                return self.leave_rollback(slot);
            }
            let done = rollback::roll_back(&self.core, &slot, &mut self.writer);
            self.writer.release();
            if let Err(error) = done {
                return Err(self.hand_over(slot, error));
            }
            self.clean_up();
        }
        self.release_locks();
        Ok(())
    }

    /// Leaves a long rollback to the background, with all locks, so that nobody has to wait for it who does not want to.
    fn leave_rollback(&mut self, slot: Arc<Slot>) -> Result<()> {
        self.writer.unclaimed.clear();
        if let Err(error) = prepared::withdraw(&self.core, &slot) {
            return Err(self.hand_over(slot, error));
        }
        let (listed, _) = self.give_up_locks();
        if planted::is_on("rollback: leave it without its locks") {
            self.core.locks.release_all(listed.owner());
        }
        self.core.unfinished.add(slot, listed);
        Ok(())
    }

    /// Leaves a rollback that has met `error` to the background, with all locks.
    fn hand_over(&mut self, slot: Arc<Slot>, error: Error) -> Error {
        let (listed, _) = self.give_up_locks();
        let (core, txn) = (&self.core, slot.txn());
        core.unfinished.add_rollback(slot, listed, core.clock.now_ns(), error.to_string());
        unfinished_error(txn, error)
    }

    /// Becomes a new owner, without locks. Returns what the old one is, and the tables that it has locked, for whoever takes
    /// its transaction over.
    pub(super) fn give_up_locks(&mut self) -> (Listed, Vec<TableId>) {
        self.end_bulk_inserts();
        let core = &self.core;
        self.view = Arc::new(ReadView::new(&core.versions));
        let listed = core.roster.enter(core.new_owner(), Some(Arc::clone(&self.view)));
        self.locker = Arc::new(self.locker.successor(&self.view, listed.entry()));
        listed.set_connection(self.listed.connection());
        listed.set_isolation(self.isolation as u8);
        let old = std::mem::replace(&mut self.listed, listed);
        old.set_connection(0);
        old.set_session(0);
        self.listed.set_session(self.session);
        (old, self.locks.drain(..).map(|lock| lock.0).collect())
    }

    fn release_locks(&mut self) {
        self.end_bulk_inserts();
        self.listed.end();
        self.locks.clear();
        self.core.locks.release_all(self.locker.owner);
        self.locker.note_work(0);
    }

    /// Purges a little when the background does not keep up, or is not there (I5).
    fn clean_up(&self) {
        let core = &self.core;
        if !core.has_threads.load(Relaxed) || core.undo.pages_count() >= UNDO_PAGES_HELPED {
            let _ = core.purge.step(core, RECORDS_PURGED_AT_END);
            core.trim_undo();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_prepared() {
            self.detach();
        }
        // Nobody is left to wait, or to hear of an error; the background is, as of I3.
        self.interrupt_when(|| true);
        let _ = self.rollback();
    }
}
