//! Latencies of operations and stalls of threads, for the server's views and error log.

use crate::barrier::{entry, value};
use crate::callbacks::{each, Callback};
use crate::types::*;
use crate::CheetahDb;

/// A bucket of an operation's latency histogram. Its string is valid only during the call.
#[repr(C)]
pub struct CheetahLatency {
    /// The kind of operation.
    pub operation: CheetahBytes,
    /// The lower bound of the bucket, inclusive.
    pub from_us: u64,
    /// The upper bound of the bucket, exclusive; 0: no bound.
    pub below_us: u64,
    /// The number of operations in the bucket.
    pub count: u64,
}

/// Stalls with the same reason. Its string is valid only during the call.
#[repr(C)]
pub struct CheetahStall {
    /// The reason of the wait, or the kind of work.
    pub reason: CheetahBytes,
    /// The number of current stalls.
    pub current: u64,
    /// The time that the longest current stall has lasted.
    pub current_us_max: u64,
    /// The number of ended stalls.
    pub count: u64,
    /// Total time of the ended stalls.
    pub sum_us: u64,
    /// Time of the longest ended stall.
    pub max_us: u64,
    /// Time since the last stall ended.
    pub last_age_ns: u64,
    /// The ID of the connection of the last ended stall; 0: a thread of the engine.
    pub last_connection: u64,
}

/// Receives one bucket.
pub type CheetahLatencySink = unsafe extern "C" fn(context: *mut c_void, latency: *const CheetahLatency);
/// Receives the stalls with one reason.
pub type CheetahStallSink = unsafe extern "C" fn(context: *mut c_void, stall: *const CheetahStall);

/// Passes the latency histograms of all operations to the sink, bucket by bucket, the shortest
/// times first. Empty buckets are left out.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_latencies(
    db: &CheetahDb,
    sink: CheetahLatencySink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        for (operation, counts) in db.0.latencies() {
            each(sink, context, counts.buckets(), |bucket| CheetahLatency {
                operation: CheetahBytes::of(operation),
                from_us: bucket.from_us,
                below_us: bucket.below_us.unwrap_or_default(),
                count: bucket.count,
            })?;
        }
        Ok(())
    })
}

/// Passes the stalls of each reason to the sink, including reasons without stalls.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_stalls(
    db: &CheetahDb,
    sink: CheetahStallSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        each(sink, context, db.0.stalls(), |stall| {
            let (last_age_ns, last_connection) = stall.last.unwrap_or_default();
            CheetahStall {
                reason: CheetahBytes::of(&stall.reason),
                current: stall.current,
                current_us_max: stall.current_ns_max / 1_000,
                count: stall.ended.count(),
                sum_us: stall.ended.sum_ns / 1_000,
                max_us: stall.ended.max_ns / 1_000,
                last_age_ns,
                last_connection,
            }
        })
    })
}

/// Sets the minimum duration of reported stalls; 0: no reports. See `Db::set_stall_warning_ns`.
#[no_mangle]
pub extern "C" fn cheetah_set_stall_warning(db: &CheetahDb, warning_ns: u64) {
    value((), || db.0.set_stall_warning_ns(warning_ns));
}

/// Sets the sink for reports of long stalls. It is called at most once per second, in a thread of
/// the engine, until the database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_stalls(
    db: &CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    let listener = Callback(sink, context);
    value((), || db.0.announce_stalls_to(move |line| listener.tell(line)));
}
