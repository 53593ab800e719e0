//! Transactions, savepoints, and table locks.

use crate::barrier::{entry, value};
use crate::callbacks::Callback;
use crate::codes::*;
use crate::types::*;
use crate::{CheetahDb, CheetahTable};
use cheetah::server::{Numbers, SessionId, Stride};
use cheetah::{Isolation, LockMode, Result, Savepoint, Transaction};
use std::mem::MaybeUninit;

/// A handle of a transaction. After a commit or rollback it is reused for the next transaction.
#[derive(Debug)]
pub struct CheetahTxn(pub(crate) Transaction);

/// Sets the time of the statement that makes the next changes, in seconds; 0: its changes do not
/// affect `cheetah_changed_at`.
#[no_mangle]
pub extern "C" fn cheetah_set_time(txn: &mut CheetahTxn, seconds: u64) {
    value((), || txn.0.set_time(seconds));
}

/// Declares that the transaction's statement created the table and now fills it: snapshots see the
/// table only after the commit.
#[no_mangle]
pub extern "C" fn cheetah_fill_new_table(txn: &mut CheetahTxn, table: &CheetahTable) {
    value((), || txn.0.fill_new_table(&table.table));
}

/// Registers the caller's session with the transaction. When the transaction waits, `report` is
/// called with this session and each registered session that it waits for: see
/// `Transaction::report_waits`. The session stays registered until the transaction is freed or
/// prepared. `report` must neither wait nor use the engine.
#[no_mangle]
pub unsafe extern "C" fn cheetah_report_waits(
    txn: &mut CheetahTxn,
    session: *mut c_void,
    report: CheetahWaitReport,
) {
    let report = Callback(report, session);
    let session = SessionId(session as u64);
    let told = move |blocker: SessionId| {
        // SAFETY: callers have registered both sessions; the engine keeps the blocker's session
        // registered during the call.
        report.call(|report, session| unsafe { report(session, blocker.0 as *mut c_void) })
    };
    value((), || txn.0.report_waits(session, told));
}

/// Sets the function that returns which of two sessions in a deadlock must commit after the other.
/// It is called from any thread until the database is closed: see `Db::set_victim_choice`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_victim_choice(db: &CheetahDb, later: CheetahLaterSession) {
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
    db: &CheetahDb,
    interrupted: CheetahInterrupted,
    context: *mut c_void,
) -> *mut CheetahTxn {
    let question = Callback(interrupted, context);
    value(std::ptr::null_mut(), || {
        let mut txn = db.0.begin();
        // SAFETY: the caller's function gets the caller's context.
        txn.interrupt_when(move || question.call(|ask, it| unsafe { ask(it) } != 0));
        Box::into_raw(Box::new(CheetahTxn(txn)))
    })
}

/// Rolls back uncommitted changes, unless the transaction is prepared, and frees the handle.
#[no_mangle]
pub extern "C" fn cheetah_free_txn(txn: Box<CheetahTxn>) {
    value((), || drop(txn));
}

fn isolation_of(level: u8) -> Result<Isolation> {
    meaning!("code of an isolation level", level, CheetahIsolation => Isolation {
        ReadCommitted, RepeatableRead, Serializable
    })
}

pub(crate) fn isolation_code(level: Isolation) -> u8 {
    number!(level, Isolation => CheetahIsolation { ReadCommitted, RepeatableRead, Serializable })
}

/// Sets the isolation level (`CheetahIsolation`) of this and later transactions of the handle. Must
/// be called before the first read or write.
#[no_mangle]
pub extern "C" fn cheetah_set_isolation(txn: &mut CheetahTxn, level: u8) -> i32 {
    entry(|| {
        txn.0.set_isolation(isolation_of(level)?);
        Ok(())
    })
}

/// Sets whether locking or changing a row that has changed since the transaction's snapshot is an
/// error. Must be called before the first read or write, like `cheetah_set_isolation`.
#[no_mangle]
pub extern "C" fn cheetah_set_snapshot_isolation(txn: &mut CheetahTxn, is_on: u8) {
    value((), || txn.0.set_snapshot_isolation(is_on != 0));
}

/// Sets the timeout of lock waits.
#[no_mangle]
pub extern "C" fn cheetah_set_lock_wait(txn: &mut CheetahTxn, timeout_ns: u64) {
    value((), || txn.0.set_lock_wait(timeout_ns));
}

/// Takes the snapshot of the transaction now, if the isolation level uses one snapshot for the
/// whole transaction.
#[no_mangle]
pub extern "C" fn cheetah_take_snapshot(txn: &mut CheetahTxn) -> i32 {
    entry(|| txn.0.take_snapshot())
}

/// Ends a statement and releases its resources. Its cursors must not be used afterwards.
#[no_mangle]
pub extern "C" fn cheetah_end_statement(txn: &mut CheetahTxn) {
    value((), || txn.0.end_statement());
}

/// Reserves numbers of the table's auto-increment counter that increment and offset allow.
/// `numbers` contains the requested count, and receives the reserved numbers; its `count` becomes 0
/// if there is none up to `largest`. Waits for statements that reserve the counter exclusively
/// (`bulk`). With `bulk` this transaction reserves it exclusively until the statement ends.
#[no_mangle]
pub extern "C" fn cheetah_reserve_auto_increment(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    bulk: u8,
    numbers: &mut CheetahNumbers,
) -> i32 {
    entry(|| {
        let CheetahNumbers { increment, offset, largest, count, .. } = *numbers;
        let wanted = Numbers { stride: Stride { increment, offset }, largest, count };
        let reserved = txn.0.reserve_numbers(&table.table, &wanted, bulk != 0)?;
        (numbers.first, numbers.count, numbers.next) = (reserved.first, reserved.count, reserved.next);
        Ok(())
    })
}

/// Moves the auto-increment counter past `used`, to the next number that increment and offset
/// allow, unless the counter is already higher. The table's next change logs the counter. The
/// counter may exceed the column's largest number: this shows the server that all numbers are used.
/// `bulk`: see `cheetah_reserve_auto_increment`.
#[no_mangle]
pub extern "C" fn cheetah_advance_auto_increment(
    txn: &mut CheetahTxn,
    table: &CheetahTable,
    used: u64,
    increment: u64,
    offset: u64,
    bulk: u8,
) -> i32 {
    let stride = Stride { increment, offset };
    entry(|| txn.0.advance_numbers(&table.table, used, stride, bulk != 0))
}

/// Commits the transaction and releases all its locks.
#[no_mangle]
pub extern "C" fn cheetah_commit(txn: &mut CheetahTxn) -> i32 {
    entry(|| txn.0.commit())
}

/// Rolls back the transaction and releases all its locks.
#[no_mangle]
pub extern "C" fn cheetah_rollback(txn: &mut CheetahTxn) -> i32 {
    entry(|| txn.0.rollback())
}

const NO_SAVEPOINT: CheetahSavepoint = CheetahSavepoint { words: [MaybeUninit::new(0); 4] };
const _: () = assert!(size_of::<Savepoint>() <= size_of::<CheetahSavepoint>());
const _: () = assert!(align_of::<Savepoint>() <= align_of::<CheetahSavepoint>());

/// Returns a savepoint at the current point of the transaction.
#[no_mangle]
pub unsafe extern "C" fn cheetah_savepoint(txn: &mut CheetahTxn) -> CheetahSavepoint {
    value(NO_SAVEPOINT, || {
        let mut here = NO_SAVEPOINT;
        // SAFETY: the words are large and aligned enough (asserted above), and a Savepoint is Copy.
        unsafe { here.words.as_mut_ptr().cast::<Savepoint>().write(txn.0.savepoint()) };
        here
    })
}

/// Rolls back all changes made after the savepoint. Keeps the locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback_to(txn: &mut CheetahTxn, savepoint: &CheetahSavepoint) -> i32 {
    // SAFETY: by the contract of the crate the savepoint was made by `cheetah_savepoint`.
    let savepoint = unsafe { savepoint.words.as_ptr().cast::<Savepoint>().read() };
    entry(|| txn.0.rollback_to(savepoint))
}

/// Returns whether the transaction holds a lock that other transactions may wait for.
#[no_mangle]
pub extern "C" fn cheetah_holds_locks(txn: &CheetahTxn) -> u8 {
    value(1, || u8::from(txn.0.holds_locks()))
}

/// Locks a table until the end of the transaction. Returns `NoSuchTable` if the table was dropped
/// or truncated since it was opened.
#[no_mangle]
pub extern "C" fn cheetah_lock_table(txn: &mut CheetahTxn, table: &CheetahTable, exclusive: u8) -> i32 {
    let mode = if exclusive != 0 { LockMode::Exclusive } else { LockMode::Shared };
    entry(|| {
        txn.0.lock_table(&table.table, mode)?;
        Ok(if table.table.is_out_of_use() { Code::NoSuchTable } else { Code::Ok })
    })
}

/// Locks a table exclusively until the end of the transaction, but only if that requires no wait.
#[no_mangle]
pub extern "C" fn cheetah_try_lock_table(txn: &mut CheetahTxn, table: &CheetahTable) -> i32 {
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
