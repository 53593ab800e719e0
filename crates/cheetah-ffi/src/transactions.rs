//! Transactions, savepoints, and table locks.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahDb, CheetahTable};
use cheetah::server::{Numbers, SessionId, Stride};
use cheetah::{Isolation, LockMode, Result, Savepoint, Transaction};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// A handle of a transaction. After a commit or rollback it is reused for the next transaction.
#[derive(Debug)]
pub struct CheetahTxn(pub(crate) Transaction);

/// The function that returns whether a statement must end, and its context.
struct Question(CheetahInterrupted, *mut c_void);

// SAFETY: only the thread that currently uses the transaction calls the function.
unsafe impl Send for Question {}
// SAFETY: as above.
unsafe impl Sync for Question {}

impl Question {
    fn ask(&self) -> bool {
        // SAFETY: the caller's function gets the caller's context.
        unsafe { self.0(self.1) != 0 }
    }
}

/// Sets the time of the statement that makes the next changes, in seconds; 0: its changes do not
/// affect `cheetah_changed_at`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_time(txn: *mut CheetahTxn, seconds: u64) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_time(seconds));
}

/// Declares that the transaction's statement created the table and now fills it: snapshots see the
/// table only after the commit.
#[no_mangle]
pub unsafe extern "C" fn cheetah_fill_new_table(txn: *mut CheetahTxn, table: *const CheetahTable) {
    // SAFETY: by the contract of the crate both handles are open.
    let (txn, table) = unsafe { (&mut *txn, &*table) };
    value((), || txn.0.fill_new_table(&table.table));
}

/// The function that reports waits (`cheetah_report_waits`), and the session that waits.
struct Report(CheetahWaitReport, *mut c_void);

// SAFETY: only the thread that currently uses the transaction calls the function.
unsafe impl Send for Report {}
// SAFETY: as above.
unsafe impl Sync for Report {}

impl Report {
    fn tell(&self, blocker: SessionId) {
        // SAFETY: callers have registered both sessions; the engine keeps the blocker's session
        // registered during the call.
        unsafe { self.0(self.1, blocker.0 as *mut c_void) }
    }
}

/// Registers the caller's session with the transaction. When the transaction waits, `report` is
/// called with this session and each registered session that it waits for: see
/// `Transaction::report_waits`. The session stays registered until the transaction is freed or
/// prepared. `report` must neither wait nor use the engine.
#[no_mangle]
pub unsafe extern "C" fn cheetah_report_waits(
    txn: *mut CheetahTxn,
    session: *mut c_void,
    report: CheetahWaitReport,
) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    let report = Report(report, session);
    let session = SessionId(session as u64);
    value((), || txn.0.report_waits(session, move |blocker| report.tell(blocker)));
}

/// Sets the function that returns which of two sessions in a deadlock must commit after the other.
/// It is called from any thread until the database is closed: see `Db::set_victim_choice`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_victim_choice(db: *mut CheetahDb, later: CheetahLaterSession) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let later = move |first: SessionId, second: SessionId| {
        // SAFETY: callers have registered both sessions; the engine keeps them registered during
        // the call.
        let session = unsafe { later(first.0 as *mut c_void, second.0 as *mut c_void) };
        (!session.is_null()).then_some(SessionId(session as u64))
    };
    value((), || db.0.set_victim_choice(later));
}

/// Returns a new transaction; null after a panic. `interrupted` is called until the transaction is
/// freed: see `Transaction::interrupt_when`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_begin(
    db: *mut CheetahDb,
    interrupted: CheetahInterrupted,
    context: *mut c_void,
) -> *mut CheetahTxn {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let question = Question(interrupted, context);
    value(std::ptr::null_mut(), || {
        let mut txn = db.0.begin();
        txn.interrupt_when(move || question.ask());
        Box::into_raw(Box::new(CheetahTxn(txn)))
    })
}

/// Rolls back uncommitted changes, unless the transaction is prepared, and frees the handle.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_txn(txn: *mut CheetahTxn) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(txn) }));
}

fn isolation_of(level: u8) -> Result<Isolation> {
    let codes = [
        (CheetahIsolation::ReadCommitted as u8, Isolation::ReadCommitted),
        (CheetahIsolation::RepeatableRead as u8, Isolation::RepeatableRead),
        (CheetahIsolation::Serializable as u8, Isolation::Serializable),
    ];
    meaning("code of an isolation level", level, &codes)
}

pub(crate) fn isolation_code(level: Isolation) -> u8 {
    let code = match level {
        Isolation::ReadCommitted => CheetahIsolation::ReadCommitted,
        Isolation::RepeatableRead => CheetahIsolation::RepeatableRead,
        Isolation::Serializable => CheetahIsolation::Serializable,
    };
    code as u8
}

/// Sets the isolation level (`CheetahIsolation`) of this and later transactions of the handle. Must
/// be called before the first read or write.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_isolation(txn: *mut CheetahTxn, level: u8) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| {
        txn.0.set_isolation(isolation_of(level)?);
        Ok(Code::Ok)
    })
}

/// Sets whether locking or changing a row that has changed since the transaction's snapshot is an
/// error. Must be called before the first read or write, like `cheetah_set_isolation`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_snapshot_isolation(txn: *mut CheetahTxn, is_on: u8) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_snapshot_isolation(is_on != 0));
}

/// Sets the timeout of lock waits.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_lock_wait(txn: *mut CheetahTxn, timeout_ns: u64) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_lock_wait(timeout_ns));
}

/// Takes the snapshot of the transaction now, if the isolation level uses one snapshot for the
/// whole transaction.
#[no_mangle]
pub unsafe extern "C" fn cheetah_take_snapshot(txn: *mut CheetahTxn) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| txn.0.take_snapshot().map(|()| Code::Ok))
}

/// Ends a statement: releases resources that only the statement needed. Its cursors must not be
/// used afterwards.
#[no_mangle]
pub unsafe extern "C" fn cheetah_end_statement(txn: *mut CheetahTxn) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.end_statement());
}

/// Reserves numbers of the table's auto-increment counter that increment and offset allow.
/// `numbers` contains the requested count, and receives the reserved numbers; its `count` becomes 0
/// if there is none up to `largest`. Waits for statements that reserve the counter exclusively
/// (`bulk`). With `bulk` this transaction reserves it exclusively until the statement ends.
#[no_mangle]
pub unsafe extern "C" fn cheetah_reserve_auto_increment(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    bulk: u8,
    numbers: *mut CheetahNumbers,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open and the numbers are initialised.
    let (txn, table, place) = unsafe { (&mut *txn, &*table, &mut *numbers) };
    entry(|| {
        let CheetahNumbers { increment, offset, largest, count, .. } = *place;
        let wanted = Numbers { stride: Stride { increment, offset }, largest, count };
        let reserved = txn.0.reserve_numbers(&table.table, &wanted, bulk != 0)?;
        (place.first, place.count, place.next) = (reserved.first, reserved.count, reserved.next);
        Ok(Code::Ok)
    })
}

/// Moves the auto-increment counter past `used`, to the next number that increment and offset
/// allow, unless the counter is already higher. The table's next change logs the counter. The
/// counter may exceed the column's largest number: this shows the server that all numbers are used.
/// `bulk`: see `cheetah_reserve_auto_increment`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_advance_auto_increment(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    used: u64,
    increment: u64,
    offset: u64,
    bulk: u8,
) -> i32 {
    // SAFETY: by the contract of the crate the handles are open.
    let (txn, table) = unsafe { (&mut *txn, &*table) };
    let stride = Stride { increment, offset };
    entry(|| txn.0.advance_numbers(&table.table, used, stride, bulk != 0).map(|()| Code::Ok))
}

/// Commits the transaction and releases all its locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_commit(txn: *mut CheetahTxn) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| txn.0.commit().map(|()| Code::Ok))
}

/// Rolls back the transaction and releases all its locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback(txn: *mut CheetahTxn) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| txn.0.rollback().map(|()| Code::Ok))
}

const NO_SAVEPOINT: CheetahSavepoint = CheetahSavepoint { words: [MaybeUninit::new(0); 4] };
const _: () = assert!(size_of::<Savepoint>() <= size_of::<CheetahSavepoint>());
const _: () = assert!(align_of::<Savepoint>() <= align_of::<CheetahSavepoint>());

/// Returns a savepoint at the current point of the transaction.
#[no_mangle]
pub unsafe extern "C" fn cheetah_savepoint(txn: *mut CheetahTxn) -> CheetahSavepoint {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value(NO_SAVEPOINT, || {
        let mut here = NO_SAVEPOINT;
        // SAFETY: the words are large and aligned enough (asserted above), and a Savepoint is Copy.
        unsafe { here.words.as_mut_ptr().cast::<Savepoint>().write(txn.0.savepoint()) };
        here
    })
}

/// Rolls back all changes made after the savepoint. Keeps the locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback_to(
    txn: *mut CheetahTxn,
    savepoint: *const CheetahSavepoint,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open, and the savepoint was made by
    // `cheetah_savepoint`.
    let (txn, savepoint) = unsafe { (&mut *txn, (*savepoint).words.as_ptr().cast::<Savepoint>().read()) };
    entry(|| txn.0.rollback_to(savepoint).map(|()| Code::Ok))
}

/// Returns whether the transaction holds a lock that other transactions may wait for.
#[no_mangle]
pub unsafe extern "C" fn cheetah_holds_locks(txn: *const CheetahTxn) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &*txn };
    value(1, || u8::from(txn.0.holds_locks()))
}

/// Locks a table until the end of the transaction. Returns `NoSuchTable` if the table was dropped
/// or truncated since it was opened.
#[no_mangle]
pub unsafe extern "C" fn cheetah_lock_table(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    exclusive: u8,
) -> i32 {
    // SAFETY: by the contract of the crate both handles are open.
    let (txn, table) = unsafe { (&mut *txn, &*table) };
    let mode = if exclusive != 0 { LockMode::Exclusive } else { LockMode::Shared };
    entry(|| {
        txn.0.lock_table(&table.table, mode)?;
        Ok(if table.table.is_out_of_use() { Code::NoSuchTable } else { Code::Ok })
    })
}

/// Locks a table exclusively until the end of the transaction if that requires no wait; otherwise
/// does nothing.
#[no_mangle]
pub unsafe extern "C" fn cheetah_try_lock_table(txn: *mut CheetahTxn, table: *const CheetahTable) -> i32 {
    // SAFETY: by the contract of the crate both handles are open.
    let (txn, table) = unsafe { (&mut *txn, &*table) };
    entry(|| txn.0.try_lock_table(&table.table).map(|_| Code::Ok))
}

#[cfg(test)]
mod tests {
    use super::isolation_of;

    #[test]
    fn unknown_codes_of_an_isolation_level_are_refused() {
        assert!((0..=2).all(|level| isolation_of(level).is_ok()));
        assert!(isolation_of(3).is_err());
    }
}
