//! A listing of transactions and locks, for the views of the server.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::database::Listener;
use crate::transactions::isolation_code;
use crate::types::*;
use crate::{CheetahDb, CheetahTxn};
use std::ffi::c_void;

/// An open transaction. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahTxnInfo {
    /// Its number.
    pub id: u64,
    /// The number of its connection; 0 when nobody holds it.
    pub connection: u64,
    /// For how long it has been open.
    pub age_ns: u64,
    /// For how long it has waited for `requested_lock`.
    pub wait_ns: u64,
    /// Its undo records.
    pub changes: u64,
    /// Tables that its statement uses.
    pub tables_in_use: u64,
    /// Tables that it has locked.
    pub tables_locked: u64,
    /// Records that it has locked.
    pub records_locked: u64,
    /// Its locks.
    pub locks: u64,
    /// About how much memory they take.
    pub lock_bytes: u64,
    /// Transactions that its snapshot keeps from purge.
    pub kept_from_purge: u64,
    /// Bytes of the undo log that stay because of its changes.
    pub undo_bytes: u64,
    /// Its activity.
    pub state: CheetahBytes,
    /// The lock that it waits for; empty when it does not.
    pub requested_lock: CheetahBytes,
    /// Its XID; empty when it is not prepared.
    pub xid: CheetahBytes,
    /// A `CheetahIsolation`.
    pub isolation: u8,
}

/// A lock, or a request that waits. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahLockInfo {
    /// Its name.
    pub id: CheetahBytes,
    /// Its transaction.
    pub txn: u64,
    /// Its mode.
    pub mode: CheetahBytes,
    /// The table.
    pub table: CheetahBytes,
    /// The index; empty for the table as a whole.
    pub index: CheetahBytes,
    /// The record that it is on; empty for a table.
    pub data: CheetahBytes,
}

/// The transactions that wait, and those for which they wait. Texts are there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahLockWait {
    /// The waiting transaction.
    pub requesting: u64,
    /// For which lock.
    pub requested_lock: CheetahBytes,
    /// Because of whom.
    pub blocking: u64,
    /// Because of which lock.
    pub blocking_lock: CheetahBytes,
}

/// Takes one transaction.
pub type CheetahTxnInfoSink = unsafe extern "C" fn(context: *mut c_void, txn: *const CheetahTxnInfo);
/// Takes one lock.
pub type CheetahLockInfoSink = unsafe extern "C" fn(context: *mut c_void, lock: *const CheetahLockInfo);
/// Takes one wait.
pub type CheetahLockWaitSink = unsafe extern "C" fn(context: *mut c_void, wait: *const CheetahLockWait);
/// Tells the sink for people what the connection of that number does.
pub type CheetahDescribe = unsafe extern "C" fn(
    context: *mut c_void,
    connection: u64,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// Sets the number of the connection whose transaction this is.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_connection(txn: *mut CheetahTxn, connection: u64) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_connection(connection));
}

/// Sets how many tables the connection's current statement uses.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_tables_in_use(txn: *mut CheetahTxn, count: u32) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_tables_in_use(count));
}

/// Tells all open transactions.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_transactions(
    db: *mut CheetahDb,
    sink: CheetahTxnInfoSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for txn in db.0.transactions() {
            let xid = txn.xid.map_or_else(String::new, |xid| xid.to_string());
            let (requested, wait_ns) = txn.waits_for.unwrap_or_default();
            let told = CheetahTxnInfo {
                id: txn.id,
                connection: txn.connection,
                age_ns: txn.age_ns,
                wait_ns,
                changes: txn.changes,
                tables_in_use: txn.tables_in_use.into(),
                tables_locked: txn.tables_locked,
                records_locked: txn.records_locked,
                locks: txn.locks,
                lock_bytes: txn.lock_bytes,
                kept_from_purge: txn.kept_from_purge,
                undo_bytes: txn.undo_bytes,
                state: CheetahBytes::of(txn.state.name().as_bytes()),
                requested_lock: CheetahBytes::of(requested.as_bytes()),
                xid: CheetahBytes::of(xid.as_bytes()),
                isolation: isolation_code(txn.isolation),
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// Tells the locks that somebody has or waits for.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_locks(
    db: *mut CheetahDb,
    sink: CheetahLockInfoSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for lock in db.0.locks() {
            let told = CheetahLockInfo {
                id: CheetahBytes::of(lock.id.as_bytes()),
                txn: lock.transaction,
                mode: CheetahBytes::of(lock.mode.as_bytes()),
                table: CheetahBytes::of(lock.table.as_bytes()),
                index: CheetahBytes::of(lock.index.as_deref().unwrap_or_default().as_bytes()),
                data: CheetahBytes::of(lock.data.as_deref().unwrap_or_default().as_bytes()),
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// Tells who waits for whom.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_lock_waits(
    db: *mut CheetahDb,
    sink: CheetahLockWaitSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for wait in db.0.lock_waits() {
            let told = CheetahLockWait {
                requesting: wait.requesting,
                requested_lock: CheetahBytes::of(wait.requested_lock.as_bytes()),
                blocking: wait.blocking,
                blocking_lock: CheetahBytes::of(wait.blocking_lock.as_bytes()),
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// The function that describes connections, and its context; called from any thread.
struct Describer(CheetahDescribe, *mut c_void);

// SAFETY: by the contract of `cheetah_describe_connections` the function may be called from any
// thread.
unsafe impl Send for Describer {}
// SAFETY: as above.
unsafe impl Sync for Describer {}

impl Describer {
    fn describe(&self, connection: u64) -> String {
        let mut text = String::new();
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        unsafe { self.0(self.1, connection, take_text, (&raw mut text).cast()) };
        text
    }
}

pub(crate) unsafe extern "C" fn take_text(context: *mut c_void, text: CheetahBytes) {
    // SAFETY: `describe` passes its own text, and the bytes are readable by the contract of the
    // crate.
    let (to, text) = unsafe { (&mut *context.cast::<String>(), text.text()) };
    to.push_str(&text);
}

/// Tells a sink a value of a key part; nothing where it cannot. `shown_as`: the encoding in the
/// part's `CheetahKeyPartEncoding`; `value`: its bytes there in ascending order, without that for
/// NULL.
pub type CheetahShowValue = unsafe extern "C" fn(
    context: *mut c_void,
    shown_as: u32,
    value: CheetahBytes,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// Tells a sink date and time of day, as people read them.
pub type CheetahTellTime =
    unsafe extern "C" fn(context: *mut c_void, sink: CheetahTextSink, sink_context: *mut c_void);

/// A function of the caller that shows values, with its context. Called from any thread.
struct ValueShower(CheetahShowValue, *mut c_void);

// SAFETY: by the contract of `cheetah_show_values_with` the function may be called from any thread.
unsafe impl Send for ValueShower {}
// SAFETY: as above.
unsafe impl Sync for ValueShower {}

impl ValueShower {
    fn show(&self, shown_as: u32, bytes: &[u8]) -> String {
        let mut text = String::new();
        let (bytes, to) = (CheetahBytes::of(bytes), (&raw mut text).cast());
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        unsafe { self.0(self.1, shown_as, bytes, take_text, to) };
        text
    }
}

/// A function of the caller that tells the time, with its context. Called from any thread.
struct TimeTeller(CheetahTellTime, *mut c_void);

// SAFETY: by the contract of `cheetah_tell_time_with` the function may be called from any thread.
unsafe impl Send for TimeTeller {}
// SAFETY: as above.
unsafe impl Sync for TimeTeller {}

impl TimeTeller {
    fn tell(&self) -> String {
        let mut text = String::new();
        // SAFETY: as for `ValueShower`.
        unsafe { self.0(self.1, take_text, (&raw mut text).cast()) };
        text
    }
}

/// Has reports and views show values of keys as `show` tells them. It is called from any thread
/// until the database is closed. Values of which it tells nothing are in hexadecimal digits.
#[no_mangle]
pub unsafe extern "C" fn cheetah_show_values_with(
    db: *const CheetahDb,
    show: CheetahShowValue,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let shower = ValueShower(show, context);
    value((), || db.0.show_values_with(move |shown_as, bytes| shower.show(shown_as, bytes)));
}

/// Has reports ask `tell` for date and time of day. It is called from any thread until the database
/// is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_tell_time_with(
    db: *const CheetahDb,
    tell: CheetahTellTime,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let teller = TimeTeller(tell, context);
    value((), || db.0.tell_time_with(move || teller.tell()));
}

/// From now on the sink gets a report of every deadlock, in the thread of the victim, until the
/// database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_deadlocks(
    db: *const CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let listener = Listener::new(sink, context);
    value((), || db.0.announce_deadlocks_to(move |text| listener.hear(text)));
}

/// Has reports ask `describe`, from any thread until the database is closed, for the activity of a
/// connection.
#[no_mangle]
pub unsafe extern "C" fn cheetah_describe_connections(
    db: *mut CheetahDb,
    describe: CheetahDescribe,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let describer = Describer(describe, context);
    value((), || db.0.describe_connections(move |connection| describer.describe(connection)));
}
