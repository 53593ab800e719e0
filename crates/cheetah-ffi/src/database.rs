//! Opening, closing, configuring and monitoring a database.

use crate::barrier::{entry, handle, stop_after_panic, value};
use crate::callbacks::Callback;
use crate::encryption::ServerKeys;
use crate::types::*;
use cheetah::server::{Db, Env};
use cheetah::{Config, Error, KeySource};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use std::path::PathBuf;
use std::sync::Arc;

/// An open database.
#[derive(Debug)]
pub struct CheetahDb(pub(crate) Db);

/// Opens (or creates) a database, recovers it, and starts its background threads.
#[no_mangle]
pub unsafe extern "C" fn cheetah_open(config: &CheetahConfig, db: &mut *mut CheetahDb) -> i32 {
    handle(db, || {
        // SAFETY: by the contract of the crate the bytes are readable.
        let directory = PathBuf::from(unsafe { config.directory.text() });
        let shown = directory.display().to_string();
        let failed = |source| Error::io("opening", shown.as_str(), source);
        let disk = PosixDisk::open(&directory).map_err(failed)?;
        let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
        let opened = Db::open_early(env, settings(config))?;
        opened.set_flush_log_at_commit(config.flush_log_at_commit);
        opened.start_background_threads()?;
        stop_after_panic(&opened);
        Ok(CheetahDb(opened))
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

/// Adjusts settings that contradict each other, and passes each adjustment as text to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_adjust_settings(
    settings: &mut CheetahSettings,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    value((), || {
        let mut fitting = settings.get();
        let listener = Callback(sink, context);
        fitting.adjust().iter().for_each(|adjustment| listener.tell(&adjustment.to_string()));
        *settings = CheetahSettings::of(fitting);
    });
}

/// Stops the background threads, makes a checkpoint, and closes the database. Always frees the
/// handle.
#[no_mangle]
pub extern "C" fn cheetah_close(db: Box<CheetahDb>) -> i32 {
    entry(move || db.0.close())
}

/// Makes a checkpoint: writes all changes so far to their places on disk.
#[no_mangle]
pub extern "C" fn cheetah_checkpoint(db: &CheetahDb) -> i32 {
    entry(|| db.0.checkpoint())
}

/// Sets when a commit is durable: with `mode` 1 before it returns, with 0 or 2 within a second.
#[no_mangle]
pub extern "C" fn cheetah_set_flush_log_at_commit(db: &CheetahDb, mode: u8) {
    value((), || db.0.set_flush_log_at_commit(mode));
}

/// Sets the memory of the engine to `bytes`, or to the minimum that it needs. Returns the new size.
#[no_mangle]
pub extern "C" fn cheetah_set_buffer_pool_size(db: &CheetahDb, bytes: u64) -> u64 {
    value(bytes, || db.0.set_buffer_pool_bytes(bytes))
}

/// Sets the I/O operations per second of background work.
#[no_mangle]
pub extern "C" fn cheetah_set_io_capacity(db: &CheetahDb, operations_per_second: u32) {
    value((), || db.0.set_io_capacity(operations_per_second));
}

/// Sets the bytes of images per second that background threads read to find damage; 0: none. Starts
/// a new pass over all images.
#[no_mangle]
pub extern "C" fn cheetah_set_scrub_rate(db: &CheetahDb, bytes_per_second: u64) {
    value((), || db.0.set_scrub_rate(bytes_per_second));
}

/// Sets whether changes may be buffered while their leaf is not in memory.
#[no_mangle]
pub extern "C" fn cheetah_set_change_buffering(db: &CheetahDb, is_on: u8) {
    value((), || db.0.set_buffering(is_on != 0));
}

/// Passes all counters to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_status(
    db: &CheetahDb,
    sink: CheetahCounterSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        for (name, value) in db.0.status() {
            // SAFETY: the caller's function gets the caller's context.
            unsafe { sink(context, CheetahBytes::of(name), value) };
        }
        Ok(())
    })
}

/// Passes a readable description of the engine's state to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_status_text(
    db: &CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) -> i32 {
    entry(|| {
        Callback(sink, context).tell(&db.0.status_text());
        Ok(())
    })
}

/// Sets the sink for errors that no call can return, such as errors in background threads. It is
/// called from any thread until the database is closed.
#[no_mangle]
pub unsafe extern "C" fn cheetah_announce_background_errors(
    db: &CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) {
    let listener = Callback(sink, context);
    value((), || db.0.announce_background_errors_to(move |text| listener.tell(text)));
}

/// Passes the names of all tables to the sink.
#[no_mangle]
pub unsafe extern "C" fn cheetah_table_names(
    db: &CheetahDb,
    sink: CheetahTextSink,
    context: *mut c_void,
) -> i32 {
    let listener = Callback(sink, context);
    entry(|| {
        db.0.table_names().iter().for_each(|name| listener.tell(name));
        Ok(())
    })
}
