//! Lists of transactions and locks for the server's views, and reports of deadlocks.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::database::Listener;
use crate::transactions::isolation_code;
use crate::types::*;
use crate::{CheetahDb, CheetahTxn};
use std::ffi::c_void;

/// An open transaction. Its strings are valid only during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahTxnInfo {
    /// Its ID.
    pub id: u64,
    /// The ID of its connection; 0 if it has none.
    pub connection: u64,
    /// The time since it began.
    pub age_ns: u64,
    /// The time that it has waited for `requested_lock`.
    pub wait_ns: u64,
    /// The number of its undo records.
    pub changes: u64,
    /// The number of tables that its statement uses.
    pub tables_in_use: u64,
    /// The number of tables that it has locked.
    pub tables_locked: u64,
    /// The number of records that it has locked.
    pub records_locked: u64,
    /// The number of its locks.
    pub locks: u64,
    /// The approximate memory of its locks.
    pub lock_bytes: u64,
    /// The number of transactions that cannot be purged because of its snapshot.
    pub kept_from_purge: u64,
    /// Bytes of the undo log that cannot be freed because of its changes.
    pub undo_bytes: u64,
    /// Its state.
    pub state: CheetahBytes,
    /// The ID of the lock that it waits for; empty if it does not wait.
    pub requested_lock: CheetahBytes,
    /// Its XID; empty if it is not prepared.
    pub xid: CheetahBytes,
    /// A `CheetahIsolation`.
    pub isolation: u8,
}

/// A lock or a waiting lock request. Its strings are valid only during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahLockInfo {
    /// Its ID.
    pub id: CheetahBytes,
    /// The ID of its transaction.
    pub txn: u64,
    /// Its mode.
    pub mode: CheetahBytes,
    /// The table.
    pub table: CheetahBytes,
    /// The index; empty for a table lock.
    pub index: CheetahBytes,
    /// The locked record; empty for a table lock.
    pub data: CheetahBytes,
}

/// A transaction that waits, and a transaction that blocks it. Its strings are valid only during
/// the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahLockWait {
    /// The ID of the waiting transaction.
    pub requesting: u64,
    /// The lock that it waits for.
    pub requested_lock: CheetahBytes,
    /// The ID of the blocking transaction.
    pub blocking: u64,
    /// The lock that blocks it.
    pub blocking_lock: CheetahBytes,
}

/// Receives one transaction.
pub type CheetahTxnInfoSink = unsafe extern "C" fn(context: *mut c_void, txn: *const CheetahTxnInfo);
/// Receives one lock.
pub type CheetahLockInfoSink = unsafe extern "C" fn(context: *mut c_void, lock: *const CheetahLockInfo);
/// Receives one wait.
pub type CheetahLockWaitSink = unsafe extern "C" fn(context: *mut c_void, wait: *const CheetahLockWait);
/// Passes a readable description of a connection's activity to the sink.
pub type CheetahDescribe = unsafe extern "C" fn(
    context: *mut c_void,
    connection: u64,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// Sets the ID of the transaction's connection.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_connection(txn: *mut CheetahTxn, connection: u64) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_connection(connection));
}

/// Sets the number of tables that the connection's current statement uses.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_tables_in_use(txn: *mut CheetahTxn, count: u32) {
    // SAFETY: by the contract of the crate the handle is open and used by this thread only.
    let txn = unsafe { &mut *txn };
    value((), || txn.0.set_tables_in_use(count));
}

/// Passes all open transactions to the sink.
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

/// Passes all locks and waiting lock requests to the sink.
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

/// Passes all lock waits to the sink.
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

/// The caller's function that describes connections, and its context. Called from any thread.
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
    // SAFETY: our callers pass a string as the context, and the bytes are readable by the contract
    // of the crate.
    let (to, text) = unsafe { (&mut *context.cast::<String>(), text.text()) };
    to.push_str(&text);
}

/// Passes the readable form of a key part's value to a sink; nothing if there is none. `shown_as`:
/// from the part's `CheetahKeyPartEncoding`. `value`: the encoded value in ascending order, without
/// the byte for NULL.
pub type CheetahShowValue = unsafe extern "C" fn(
    context: *mut c_void,
    shown_as: u32,
    value: CheetahBytes,
    sink: CheetahTextSink,
    sink_context: *mut c_void,
);

/// Passes the current date and time in readable form to a sink.
pub type CheetahTellTime =
    unsafe extern "C" fn(context: *mut c_void, sink: CheetahTextSink, sink_context: *mut c_void);

/// The caller's function that shows values, and its context. Called from any thread.
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

/// The caller's function that returns the time, and its context. Called from any thread.
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

/// Sets the function that shows values of keys in reports and views. It is called from any thread
/// until the database is closed. Values without a readable form are shown in hexadecimal.
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

/// Sets the function that returns the date and time for reports. It is called from any thread until
/// the database is closed.
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

/// Sets the sink for reports of deadlocks. It is called in the thread of the victim, until the
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

/// Sets the function that describes connections in reports. It is called from any thread until the
/// database is closed.
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
