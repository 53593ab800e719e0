//! Lists of transactions and locks for the server's views, and reports of deadlocks.

use crate::barrier::{entry, value};
use crate::callbacks::{each, Callback};
use crate::transactions::isolation_code;
use crate::types::*;
use crate::{CheetahDb, CheetahTxn};

/// An open transaction. Its strings are valid only during the call.
#[repr(C)]
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

/// A transaction that waits, and one that blocks it. Its strings are valid only during the call.
#[repr(C)]
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
pub extern "C" fn cheetah_set_connection(txn: &mut CheetahTxn, connection: u64) {
    value((), || txn.0.set_connection(connection));
}

/// Sets the number of tables that the connection's current statement uses.
#[no_mangle]
pub extern "C" fn cheetah_set_tables_in_use(txn: &mut CheetahTxn, count: u32) {
    value((), || txn.0.set_tables_in_use(count));
}

/// Passes all open transactions to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_transactions(
    db: &CheetahDb,
    sink: CheetahTxnInfoSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        let txns = db.0.transactions().into_iter();
        let with_xid =
            txns.map(|txn| (txn.xid.as_ref().map_or_else(String::new, |xid| xid.to_string()), txn));
        each(sink, context, with_xid, |(xid, txn)| {
            let (requested, wait_ns) = txn.waits_for.as_ref().map_or(("", 0), |(lock, ns)| (lock, *ns));
            CheetahTxnInfo {
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
                state: CheetahBytes::of(txn.state.name()),
                requested_lock: CheetahBytes::of(requested),
                xid: CheetahBytes::of(xid),
                isolation: isolation_code(txn.isolation),
            }
        })
    })
}

/// Passes all locks and waiting lock requests to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_locks(
    db: &CheetahDb,
    sink: CheetahLockInfoSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.locks(), |lock| CheetahLockInfo {
            id: CheetahBytes::of(&lock.id),
            txn: lock.transaction,
            mode: CheetahBytes::of(&lock.mode),
            table: CheetahBytes::of(&lock.table),
            index: CheetahBytes::of(lock.index.as_deref().unwrap_or_default()),
            data: CheetahBytes::of(lock.data.as_deref().unwrap_or_default()),
        })
    })
}

/// Passes all lock waits to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_lock_waits(
    db: &CheetahDb,
    sink: CheetahLockWaitSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.lock_waits(), |wait| CheetahLockWait {
            requesting: wait.requesting,
            requested_lock: CheetahBytes::of(&wait.requested_lock),
            blocking: wait.blocking,
            blocking_lock: CheetahBytes::of(&wait.blocking_lock),
        })
    })
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

/// Sets the function that shows values of keys in reports and views. It is called from any thread
/// until the database is closed. Values without a readable form are shown in hexadecimal.
#[no_mangle]
pub unsafe extern "C" fn cheetah_show_values_with(
    db: &CheetahDb,
    show: CheetahShowValue,
    context: *mut c_void,
) {
    let shower = Callback(show, context);
    let shown = move |shown_as, bytes: &[u8]| {
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        shower.text(|show, it, sink, to| unsafe { show(it, shown_as, CheetahBytes::of(bytes), sink, to) })
    };
    value((), || db.0.show_values_with(shown));
}

/// Sets the function that returns the date and time for reports. It is called from any thread until
/// the database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_tell_time_with(db: &CheetahDb, tell: CheetahTellTime, context: *mut c_void) {
    let teller = Callback(tell, context);
    // SAFETY: the caller's function gets the caller's context, and a sink with its own.
    let now = move || teller.text(|tell, it, sink, to| unsafe { tell(it, sink, to) });
    value((), || db.0.tell_time_with(now));
}

/// Sets the sink for reports of deadlocks. It is called in the thread of the victim, until the
/// database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_deadlocks(
    db: &CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    let listener = Callback(sink, context);
    value((), || db.0.announce_deadlocks_to(move |text| listener.tell(text)));
}

/// Sets the function that describes connections in reports. It is called from any thread until the
/// database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_describe_connections(
    db: &CheetahDb,
    describe: CheetahDescribe,
    context: *mut c_void,
) {
    let describer = Callback(describe, context);
    let described = move |connection| {
        // SAFETY: the caller's function gets the caller's context, and a sink with its own.
        describer.text(|describe, it, sink, to| unsafe { describe(it, connection, sink, to) })
    };
    value((), || db.0.describe_connections(described));
}
