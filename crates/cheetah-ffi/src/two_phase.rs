//! Two-phase commit with the server's binary log and other engines, and XA.

use crate::barrier::{entry, value};
use crate::types::*;
use crate::{CheetahDb, CheetahTxn};
use cheetah::server::Xid;
use cheetah::{Error, Result};

/// A transaction's name, as X/Open defines it.
#[repr(C)]
pub struct CheetahXid {
    /// Its format.
    pub format: u64,
    /// The name of the global transaction; at most 64 bytes.
    pub global: CheetahBytes,
    /// The name of the branch; at most 64 bytes.
    pub branch: CheetahBytes,
}

impl CheetahXid {
    pub(crate) fn of(xid: &Xid) -> Self {
        let (global, branch) = (CheetahBytes::of(xid.global()), CheetahBytes::of(xid.branch()));
        Self { format: xid.format(), global, branch }
    }

    unsafe fn get(&self) -> Result<Xid> {
        // SAFETY: by the contract of the crate the bytes are readable.
        let (global, branch) = unsafe { (self.global.get(), self.branch.get()) };
        Xid::new(self.format, global, branch).ok_or_else(|| Error::Limit {
            what: "length of a part of an XID (bytes)",
            actual: global.len().max(branch.len()) as u64,
            limit: Xid::PART_BYTES_MAX as u64,
        })
    }
}

/// Receives one XID.
pub type CheetahXidSink = unsafe extern "C" fn(context: *mut c_void, xid: *const CheetahXid);

/// Prepares the transaction: afterwards it can be committed or rolled back, even after a crash. The
/// only calls allowed then are `cheetah_commit_ordered`, `cheetah_commit`, `cheetah_rollback` and
/// `cheetah_free_txn`. The last one frees only the handle: the transaction stays prepared until
/// `cheetah_commit_prepared` or `cheetah_rollback_prepared`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_prepare(txn: &mut CheetahTxn, xid: &CheetahXid) -> i32 {
    // SAFETY: by the contract of the crate the XID is readable.
    let xid = unsafe { xid.get() };
    entry(|| txn.0.prepare(xid?))
}

/// Assigns a prepared transaction its position in the order of commits and commits it, without I/O,
/// from any thread. `cheetah_commit` must follow, and returns whether the commit succeeded.
#[no_mangle]
pub extern "C" fn cheetah_commit_ordered(txn: &mut CheetahTxn) {
    value((), || txn.0.commit_ordered());
}

/// Passes to the sink the XIDs of at most `count` transactions that were prepared before the
/// database was opened, each XID only once. Returns their number.
#[no_mangle]
pub unsafe extern "C" fn cheetah_recover(
    db: &CheetahDb,
    count: u32,
    sink: CheetahXidSink,
    context: *mut c_void,
) -> u32 {
    value(0, || {
        let found = db.0.recover(count as usize);
        for xid in &found {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &CheetahXid::of(xid)) };
        }
        found.len() as u32
    })
}

/// Commits a prepared transaction without a handle. Returns `UnknownXid` if no prepared transaction
/// has this name.
#[no_mangle]
pub unsafe extern "C" fn cheetah_commit_prepared(db: &CheetahDb, xid: &CheetahXid) -> i32 {
    // SAFETY: by the contract of the crate the XID is readable.
    let xid = unsafe { xid.get() };
    entry(|| db.0.commit_prepared(&xid?))
}

/// Rolls back a prepared transaction without a handle. Returns `UnknownXid` if no prepared
/// transaction has this name.
#[no_mangle]
pub unsafe extern "C" fn cheetah_rollback_prepared(db: &CheetahDb, xid: &CheetahXid) -> i32 {
    // SAFETY: by the contract of the crate the XID is readable.
    let xid = unsafe { xid.get() };
    entry(|| db.0.rollback_prepared(&xid?))
}

/// Waits until no prepared transaction without a handle has locked the table with this name. Must
/// be called before a table is dropped or truncated.
#[no_mangle]
pub unsafe extern "C" fn cheetah_wait_for_prepared(
    db: &CheetahDb,
    name: CheetahBytes,
    timeout_ns: u64,
    interrupted: CheetahInterrupted,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the name is readable.
    let name = unsafe { name.text() };
    // SAFETY: the caller's function gets the caller's context.
    let stop = || unsafe { interrupted(context) } != 0;
    entry(|| db.0.wait_for_prepared(&name, timeout_ns, &stop))
}

/// Makes all commits so far durable, in any flush mode.
#[no_mangle]
pub extern "C" fn cheetah_sync_log(db: &CheetahDb) -> i32 {
    entry(|| db.0.sync_log())
}
