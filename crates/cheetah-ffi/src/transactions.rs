//! Transactions, savepoints, table locks.

use crate::barrier::{entry, value};
use crate::types::*;
use crate::{CheetahDb, CheetahTable};
use cheetah::db::{LockMode, Savepoint, Transaction};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// A transaction, or the place for the next one: after commit or rollback it is used again.
#[derive(Debug)]
pub struct CheetahTxn(pub(crate) Transaction);

/// What to ask whether a statement is to end.
struct Question(CheetahInterrupted, *mut c_void);

// SAFETY: only the thread that uses the transaction asks, which may be another one each time.
unsafe impl Send for Question {}
// SAFETY: as above.
unsafe impl Sync for Question {}

impl Question {
    fn ask(&self) -> bool {
        // SAFETY: the caller's function gets the caller's context.
        unsafe { self.0(self.1) != 0 }
    }
}

/// A transaction; null after a panic. `interrupted` is asked, as long as the transaction is there, when it waits.
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

/// Rolls back what is not committed and frees the handle.
#[no_mangle]
pub unsafe extern "C" fn cheetah_free_txn(txn: *mut CheetahTxn) {
    // SAFETY: by the contract of the crate the handle is ours and not used again.
    value((), || drop(unsafe { Box::from_raw(txn) }));
}

/// Commits; releases all locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_commit(txn: *mut CheetahTxn) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| txn.0.commit().map(|()| Code::Ok))
}

/// Rolls back; releases all locks.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback(txn: *mut CheetahTxn) -> i32 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    entry(|| txn.0.rollback().map(|()| Code::Ok))
}

const NO_SAVEPOINT: CheetahSavepoint = CheetahSavepoint { words: [MaybeUninit::new(0); 4] };
const _: () = assert!(size_of::<Savepoint>() <= size_of::<CheetahSavepoint>());
const _: () = assert!(align_of::<Savepoint>() <= align_of::<CheetahSavepoint>());

/// Here, to roll back to.
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

/// Undoes what came after the savepoint; locks stay.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback_to(
    txn: *mut CheetahTxn,
    savepoint: *const CheetahSavepoint,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open, and the savepoint was made by `cheetah_savepoint`.
    let (txn, savepoint) = unsafe { (&mut *txn, (*savepoint).words.as_ptr().cast::<Savepoint>().read()) };
    entry(|| txn.0.rollback_to(savepoint).map(|()| Code::Ok))
}

/// Whether the transaction holds a lock that keeps readers out.
#[no_mangle]
pub unsafe extern "C" fn cheetah_holds_exclusive_lock(txn: *const CheetahTxn) -> u8 {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &*txn };
    value(1, || u8::from(txn.0.holds_exclusive_lock()))
}

/// Locks a table until the end of the transaction. `NoSuchTable` when the handle is of a table that has been dropped
/// or truncated since.
#[no_mangle]
pub unsafe extern "C" fn cheetah_lock_table(
    txn: *mut CheetahTxn,
    table: *const CheetahTable,
    exclusive: u8,
    timeout_ns: u64,
    interrupted: CheetahInterrupted,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate both handles are open.
    let (txn, table) = unsafe { (&mut *txn, &*table) };
    let mode = if exclusive != 0 { LockMode::Exclusive } else { LockMode::Shared };
    // SAFETY: the caller's function gets the caller's context.
    let stop = || unsafe { interrupted(context) } != 0;
    entry(|| {
        txn.0.lock_table(&table.table, mode, timeout_ns, &stop)?;
        Ok(if table.table.is_dropped() { Code::NoSuchTable } else { Code::Ok })
    })
}
