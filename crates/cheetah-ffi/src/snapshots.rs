//! Snapshots of the database, for backups.

use crate::barrier::{answer, entry, value};
use crate::codes::*;
use crate::types::*;
use crate::{CheetahDb, CheetahXid};
use cheetah::server::{Note, SnapshotOrder, Xid};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A line for the manifest of a snapshot.
#[repr(C)]
pub struct CheetahNote {
    /// The first word of the line, without blanks.
    pub word: CheetahBytes,
    /// The rest of the line.
    pub text: CheetahBytes,
}

/// Returns whether the caller itself coordinates the prepared transaction with this name. Such a
/// transaction is rolled back in a snapshot.
pub type CheetahIsOwnXid = unsafe extern "C" fn(xid: *const CheetahXid) -> u8;

/// The parameters of a snapshot.
#[repr(C)]
pub struct CheetahSnapshotOrder {
    /// The absolute path of the directory; it must not exist.
    pub path: CheetahBytes,
    /// A directory that must not contain `path`, except in the engine's own `snapshots` directory.
    pub outside_of: CheetahBytes,
    /// For the manifest, unless a pinned snapshot is written.
    pub notes: *const CheetahNote,
    /// The number of notes.
    pub notes_count: usize,
    /// Decides which prepared transactions are rolled back in the snapshot.
    pub is_own: CheetahIsOwnXid,
    /// Returns whether to abandon the snapshot.
    pub interrupted: CheetahInterrupted,
    /// The argument of `interrupted`.
    pub context: *mut c_void,
}

/// The files that were written.
#[repr(C)]
pub struct CheetahSnapshot {
    /// The number of files, without the manifest.
    pub files_count: u64,
    /// The bytes in these files.
    pub bytes: u64,
    /// The bytes that were copied rather than linked or cloned.
    pub copied_bytes: u64,
}

unsafe fn notes_of(notes: *const CheetahNote, count: usize) -> Vec<Note> {
    // SAFETY: by the contract of the crate the notes are initialised.
    let notes = unsafe { slice(notes, count) };
    // SAFETY: by the contract of the crate the bytes are readable.
    notes.iter().map(|note| unsafe { (note.word.text(), note.text.text()) }).collect()
}

/// Returns the path with exactly these bytes, which need not be UTF-8.
unsafe fn path_of(bytes: &CheetahBytes) -> &Path {
    // SAFETY: passed on.
    Path::new(OsStr::from_bytes(unsafe { bytes.get() }))
}

/// Pins the state of the database for the next `cheetah_create_snapshot`. Returns `End` if pinning
/// is disabled (`cheetah_set_snapshot_max_age`). Takes milliseconds, and one sync of the log.
#[no_mangle]
pub unsafe extern "C" fn cheetah_pin_snapshot(
    db: &CheetahDb,
    notes: *const CheetahNote,
    notes_count: usize,
) -> i32 {
    entry(|| {
        // SAFETY: passed on.
        let notes = unsafe { notes_of(notes, notes_count) };
        Ok(if db.0.pin_waiting_snapshot(notes)? { Code::Ok } else { Code::End })
    })
}

/// Writes a snapshot of the pinned state, or of the current state if none is pinned, into a new
/// directory. Blocks for I/O until all files are written.
#[no_mangle]
pub unsafe extern "C" fn cheetah_create_snapshot(
    db: &CheetahDb,
    order: &CheetahSnapshotOrder,
    snapshot: &mut CheetahSnapshot,
) -> i32 {
    // SAFETY: by the contract of the crate the bytes are readable.
    let (path, outside_of) = unsafe { (path_of(&order.path), path_of(&order.outside_of)) };
    // SAFETY: the caller's function gets the caller's context.
    let interrupted = || unsafe { (order.interrupted)(order.context) } != 0;
    // SAFETY: the caller's function reads the name alone.
    let is_own = |xid: &Xid| unsafe { (order.is_own)(&CheetahXid::of(xid)) } != 0;
    answer(snapshot, || {
        // SAFETY: passed on.
        let notes = unsafe { notes_of(order.notes, order.notes_count) };
        let written = db.0.create_snapshot(&SnapshotOrder {
            path,
            outside_of,
            is_own: &is_own,
            notes: &notes,
            interrupted: &interrupted,
        })?;
        let (files_count, bytes, copied_bytes) = (written.files_count, written.bytes, written.copied_bytes);
        Ok(CheetahSnapshot { files_count, bytes, copied_bytes })
    })
}

/// Sets the seconds after which a pinned state is released; 0: states are not pinned.
#[no_mangle]
pub extern "C" fn cheetah_set_snapshot_max_age(db: &CheetahDb, seconds: u64) {
    value((), || db.0.set_snapshot_max_age(seconds));
}
