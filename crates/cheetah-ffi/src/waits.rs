//! How long things take, and where threads are held up, for the server to show and to log.

use crate::barrier::{entry, value};
use crate::codes::*;
use crate::database::Listener;
use crate::types::*;
use crate::CheetahDb;
use std::ffi::c_void;

/// Operations of one kind that took about equally long: one bucket of its histogram. The text is
/// there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahLatency {
    /// The kind.
    pub operation: CheetahBytes,
    /// At least this time.
    pub from_us: u64,
    /// Less than this time; 0: no bound.
    pub below_us: u64,
    /// The number of operations.
    pub count: u64,
}

/// Stalls of one reason. The text is there during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheetahStall {
    /// The reason of the wait, or the work.
    pub reason: CheetahBytes,
    /// Those that last.
    pub current: u64,
    /// How long the longest of these has lasted.
    pub current_us_max: u64,
    /// Those that have ended.
    pub count: u64,
    /// Time of these together.
    pub sum_us: u64,
    /// The longest of them.
    pub max_us: u64,
    /// How long ago the last one ended.
    pub last_age_ns: u64,
    /// The connection that stalled last; 0: a thread of the engine.
    pub last_connection: u64,
}

/// Takes one of them.
pub type CheetahLatencySink = unsafe extern "C" fn(context: *mut c_void, latency: *const CheetahLatency);
/// Takes one of them.
pub type CheetahStallSink = unsafe extern "C" fn(context: *mut c_void, stall: *const CheetahStall);

/// Tells how long operations have taken: those of each kind that took about equally long, the
/// shortest first; nothing of those that have none.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_latencies(
    db: *mut CheetahDb,
    sink: CheetahLatencySink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for (operation, counts) in db.0.latencies() {
            for bucket in counts.buckets() {
                let told = CheetahLatency {
                    operation: CheetahBytes::of(operation.as_bytes()),
                    from_us: bucket.from_us,
                    below_us: bucket.below_us.unwrap_or_default(),
                    count: bucket.count,
                };
                // SAFETY: the caller's function gets the caller's context.
                unsafe { sink(context, &told) };
            }
        }
        Ok(Code::Ok)
    })
}

/// Tells the stalls of each reason, also where there were none.
#[no_mangle]
pub unsafe extern "C" fn cheetah_list_stalls(
    db: *mut CheetahDb,
    sink: CheetahStallSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for stall in db.0.stalls() {
            let (last_age_ns, last_connection) = stall.last.unwrap_or_default();
            let told = CheetahStall {
                reason: CheetahBytes::of(stall.reason.as_bytes()),
                current: stall.current,
                current_us_max: stall.current_ns_max / 1_000,
                count: stall.ended.count(),
                sum_us: stall.ended.sum_ns / 1_000,
                max_us: stall.ended.max_ns / 1_000,
                last_age_ns,
                last_connection,
            };
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, &told) };
        }
        Ok(Code::Ok)
    })
}

/// Sets from which time on stalls are reported; 0: none are. See `Db::set_stall_warning_ns`.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_stall_warning(db: *mut CheetahDb, warning_ns: u64) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_stall_warning_ns(warning_ns));
}

/// From now on the sink gets lines about stalls that take too long, one a second at most, in a
/// thread of the engine, until the database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_stalls(
    db: *mut CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let listener = Listener::new(sink, context);
    value((), || db.0.announce_stalls_to(move |line| listener.hear(line)));
}
