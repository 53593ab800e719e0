//! Opening, closing, configuring and monitoring a database.

use crate::barrier::{entry, stop_after_panic, value};
use crate::codes::*;
use crate::encryption::ServerKeys;
use crate::types::*;
use cheetah::server::{Db, Env};
use cheetah::{Config, Error, KeySource};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;

/// An open database.
#[derive(Debug)]
pub struct CheetahDb(pub(crate) Db);

/// Opens (or creates) a database, recovers it, and starts its background threads.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open(config: *const CheetahConfig, db: *mut *mut CheetahDb) -> i32 {
    entry(|| {
        // SAFETY: by the contract of the crate both point to values of the caller.
        let (config, db) = unsafe { (&*config, &mut *db) };
        // SAFETY: passed on.
        let directory = PathBuf::from(unsafe { config.directory.text() });
        let shown = directory.display().to_string();
        let failed = |source| Error::io("opening", shown.as_str(), source);
        let disk = PosixDisk::open(&directory).map_err(failed)?;
        let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
        let opened = Db::open_early(env, settings(config))?;
        opened.set_flush_log_at_commit(config.flush_log_at_commit);
        opened.start_background_threads()?;
        stop_after_panic(&opened);
        *db = Box::into_raw(Box::new(CheetahDb(opened)));
        Ok(Code::Ok)
    })
}

fn settings(config: &CheetahConfig) -> Config {
    Config {
        buffer_pool_bytes: config.buffer_pool_bytes,
        log_file_bytes: config.log_file_bytes,
        log_bytes_max: config.log_bytes_max,
        io_capacity: config.io_capacity,
        buffers_changes: config.buffers_changes != 0,
        buffers_data_files: config.buffers_data_files != 0,
        keys: KeySource::new(Arc::new(ServerKeys::of(config))),
        encrypts_tables: config.encrypts_tables != 0,
        encrypts_log: config.encrypts_log != 0,
        ..Config::default()
    }
}

/// Adjusts settings that contradict each other, and passes a description of each adjustment to the
/// sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_adjust_settings(
    settings: *mut CheetahSettings,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate it points to a value of the caller.
    let settings = unsafe { &mut *settings };
    value((), || {
        let mut fitting = settings.get();
        for adjustment in fitting.adjust() {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, CheetahBytes::of(adjustment.to_string().as_bytes())) };
        }
        *settings = CheetahSettings::of(fitting);
    });
}

/// Stops the background threads, makes a checkpoint, and closes the database. The handle is freed
/// even if this fails.
#[no_mangle]
pub unsafe extern "C" fn cheetah_close(db: *mut CheetahDb) -> i32 {
    entry(|| {
        // SAFETY: by the contract of the crate the handle is ours and not used again.
        let db = unsafe { Box::from_raw(db) };
        db.0.close()?;
        Ok(Code::Ok)
    })
}

/// Makes a checkpoint: writes all changes so far to their places on disk.
#[no_mangle]
pub unsafe extern "C" fn cheetah_checkpoint(db: *mut CheetahDb) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| db.0.checkpoint().map(|()| Code::Ok))
}

/// Sets when a commit is durable: before it returns if `mode` is 1, and within a second if it is 0
/// or 2.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_flush_log_at_commit(db: *mut CheetahDb, mode: u8) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_flush_log_at_commit(mode));
}

/// Sets the memory of the engine to `bytes`, or to the minimum that it needs, and returns the new
/// size.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_buffer_pool_size(db: *mut CheetahDb, bytes: u64) -> u64 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value(bytes, || db.0.set_buffer_pool_bytes(bytes))
}

/// Sets the I/O operations per second of background work.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_io_capacity(db: *mut CheetahDb, operations_per_second: u32) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_io_capacity(operations_per_second));
}

/// Sets the bytes of images per second that background threads read to find damage; 0: none. Starts
/// a new pass over all images.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_scrub_rate(db: *mut CheetahDb, bytes_per_second: u64) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_scrub_rate(bytes_per_second));
}

/// Sets whether changes may be buffered while their leaf is not in memory.
#[no_mangle]
pub unsafe extern "C" fn cheetah_set_change_buffering(db: *mut CheetahDb, is_on: u8) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    value((), || db.0.set_buffering(is_on != 0));
}

/// Passes all counters to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_status(
    db: *mut CheetahDb,
    sink: CheetahCounterSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for (name, value) in db.0.status() {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, CheetahBytes::of(name.as_bytes()), value) };
        }
        Ok(Code::Ok)
    })
}

/// Passes a readable description of the engine's state to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_status_text(
    db: *mut CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        let text = db.0.status_text();
        // SAFETY: the caller's function gets the caller's context.
        unsafe { sink(context, CheetahBytes::of(text.as_bytes())) };
        Ok(Code::Ok)
    })
}

/// A sink and its context, which may be called from any thread.
pub(crate) struct Listener(CheetahTextSink, *mut c_void);

// SAFETY: by the contracts of the functions whose names begin with `cheetah_announce_` the sink may
// be called from any thread.
unsafe impl Send for Listener {}
// SAFETY: as above.
unsafe impl Sync for Listener {}

impl Listener {
    pub(crate) fn new(sink: CheetahTextSink, context: *mut c_void) -> Self {
        Self(sink, context)
    }

    pub(crate) fn hear(&self, text: &str) {
        // SAFETY: the caller's function gets the caller's context.
        unsafe { self.0(self.1, CheetahBytes::of(text.as_bytes())) };
    }
}

/// Sets the sink for errors that no call can return, such as errors in background threads. It is
/// called from any thread until the database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_background_errors(
    db: *mut CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    let listener = Listener::new(sink, context);
    value((), || db.0.announce_background_errors_to(move |text| listener.hear(text)));
}

/// Passes the names of all tables to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_table_names(
    db: *mut CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) -> i32 {
    // SAFETY: by the contract of the crate the handle is open.
    let db = unsafe { &*db };
    entry(|| {
        for name in db.0.table_names() {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, CheetahBytes::of(name.as_bytes())) };
        }
        Ok(Code::Ok)
    })
}
