//! The owner of the free disk space: while little is left, it decides which work may begin.
//!
//! Invariants (O1 to O5 of docs/developers/durability.md)
//!   O1  Work begins only if its bytes and all promised bytes fit without using the part of the
//!       reserve that other work needs to free space.
//!   O2  Bytes count as written when they are appended in memory, not when they reach their file.
//!   O3  While little space is left, the reserve is allocated in a file, which shrinks to free
//!       space for bytes to be written. The length of the file has no meaning: a startup accepts
//!       any length and begins without the reserve.
//!   O4  If a file system reports free space and then refuses a write (a quota), its reports are
//!       not trusted until the whole reserve could be allocated.
//! Locks     `known`, an innermost lock, taken while the lock of the log's files is held. It is
//!           held while the file system is queried, and while the file of the reserve grows or
//!           shrinks.

#[cfg(test)]
mod tests;

use crate::base::{opaque, sound, Error, Result};
use cheetah_io::{Disk, File};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// The file system is queried again after this number of bytes was written, or a step of the
/// reserve if that is less, because other programs write to the disk too.
const REFRESH_BYTES_MAX: u64 = 4 << 20;
/// The reserve is allocated when less than `ALLOCATED_BELOW` times its bytes are left.
const ALLOCATED_BELOW: u64 = 4;
/// Space is short when less than `SHORT_BELOW` times the reserve is left in addition to the
/// promised bytes.
const SHORT_BELOW: u64 = 3;
/// The file leaves 1/`MARGIN_PART` of the reserve free for writes before the next query.
const MARGIN_PART: u64 = 8;
/// The file of the reserve grows and shrinks in steps of the reserve divided by `STEP_PART`.
const STEP_PART: u64 = 16;
/// The minimum of the reserve is `RESERVE_LOG_FILES` log files of the shortest length, so that each
/// part of it can hold one, but at most the size of the disk divided by `RESERVE_PART_MAX`.
const RESERVE_LOG_FILES: u64 = 16;
const RESERVE_PART_MAX: u64 = 2;
/// Above the minimum, the reserve is the size of the disk divided by `RESERVE_PART`, but at most
/// `RESERVE_SEGMENTS` segments, so that garbage collection has one segment to copy and one to fill.
/// If segments are short, the maximum is the lesser of `RESERVE_SHORT_SEGMENTS` segments and
/// `RESERVE_BYTES_SHORT`.
const RESERVE_PART: u64 = 16;
const RESERVE_SEGMENTS: u64 = 2;
const RESERVE_SHORT_SEGMENTS: u64 = 8;
const RESERVE_BYTES_SHORT: u64 = 32 << 20;
/// A file system that refused a write is not trusted if it still reports more free bytes than this.
const LIE_BYTES_MIN: u64 = 1 << 20;

const PATH: &str = "reserve";

/// The part of the reserve that certain work must leave. The more space the work will free, the
/// smaller this part is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserve {
    /// The whole reserve. For new data, and for work that can wait.
    Whole,
    /// Half of it. For deletes.
    Half,
    /// A quarter. For purge, which frees the space of deleted rows.
    Quarter,
    /// An eighth. For rollback.
    Eighth,
    /// A sixteenth. For garbage collection, which frees more than it takes once a checkpoint
    /// commits, and for dirty pages that are written before a checkpoint.
    Last,
    /// No part. For checkpoints, without which no space is freed, and for the end of transactions.
    Nothing,
}

/// The sizes that the reserve depends on.
#[derive(Clone, Copy, Debug)]
pub struct SpaceSizes {
    /// The maximum length of a segment.
    pub segment_bytes: u64,
    /// The length of the shortest log file.
    pub log_file_bytes: u64,
}

impl SpaceSizes {
    fn reserve_bytes(self, disk_bytes: u64) -> u64 {
        let Self { segment_bytes, log_file_bytes } = self;
        let most = (RESERVE_SEGMENTS * segment_bytes)
            .max((RESERVE_SHORT_SEGMENTS * segment_bytes).min(RESERVE_BYTES_SHORT));
        let least = (RESERVE_LOG_FILES * log_file_bytes).min(disk_bytes / RESERVE_PART_MAX);
        (disk_bytes / RESERVE_PART).clamp(least, most.max(least))
    }
}

#[derive(Clone, Copy)]
enum Promised {
    /// This number of promised bytes, which is up to date.
    Now(u64),
    /// The number of promised bytes that was last reported.
    AsTold,
    /// No bytes, because the requested bytes are part of the promised bytes.
    Among,
}

struct Wish {
    promised: Promised,
    bytes: u64,
    /// The part of the reserve that must remain.
    stays: Reserve,
    /// Whether the bytes count as written if there is space.
    takes: bool,
}

/// See the module.
pub struct Space {
    disk: Arc<dyn Disk>,
    /// Bytes that were written or appended since the file system was queried.
    written_bytes: AtomicU64,
    /// Appended bytes that are not in a file yet.
    owed_bytes: AtomicI64,
    /// Whether space was short at the last check.
    is_short: AtomicBool,
    /// Whether files were removed since the file system was last forced to free their space.
    has_freed: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    reserve_bytes: u64,
    /// The free bytes plus those of the reserve's file, less the owed bytes.
    left_bytes: u64,
    /// The number of promised bytes that was last reported.
    promised_bytes: u64,
    /// Whether the file system was queried, and no event since then requires another query.
    is_asked: bool,
    /// Whether a startup is in progress, which may use all remaining space.
    is_starting: bool,
    file: Option<Arc<dyn File>>,
    file_bytes: u64,
    /// Whether a write was refused although the file system reported space (O4).
    is_doubted: bool,
    /// Whether a write was ever refused in this way. If so, the reserve stays allocated.
    has_lied: bool,
    /// Whether the file system does not support allocation.
    cannot_allocate: bool,
}

impl Known {
    fn part(&self, reserve: Reserve) -> u64 {
        match reserve {
            Reserve::Whole => self.reserve_bytes,
            Reserve::Half => self.reserve_bytes / 2,
            Reserve::Quarter | Reserve::Eighth | Reserve::Last
                if !sound!(true, "space: give purge what a checkpoint needs") =>
            {
                0
            }
            Reserve::Quarter => self.reserve_bytes / 4,
            Reserve::Eighth => self.reserve_bytes / 8,
            Reserve::Last => self.reserve_bytes / 16,
            Reserve::Nothing => 0,
        }
    }
}

impl Space {
    /// Creates the space of a disk, without a reserve until [`begin`](Self::begin) is called.
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            written_bytes: AtomicU64::new(0),
            owed_bytes: AtomicI64::new(0),
            is_short: AtomicBool::new(false),
            has_freed: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// Begins a startup, which may use all remaining space. Shrinks the file of the reserve to
    /// nothing. Does I/O.
    pub fn begin(&self, sizes: SpaceSizes) -> Result<()> {
        let disk_bytes = self.disk.total_bytes().map_err(|e| Error::io("size", "", e))?;
        let reserve_bytes = sizes.reserve_bytes(disk_bytes);
        let file = match self.disk.open(PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(|e| Error::io("open", PATH, e))?),
        };
        let file_bytes = allocated_bytes(file.as_deref())?;
        let mut known = self.known.lock();
        *known = Known { reserve_bytes, is_starting: true, file, file_bytes, ..Known::default() };
        if sound!(true, "space: begin a startup behind the reserve") {
            self.resize(&mut known, 0);
        }
        Ok(())
    }

    /// Ends the startup: from now on the reserve is kept.
    pub fn end_startup(&self) {
        let mut known = self.known.lock();
        (known.is_starting, known.is_asked) = (false, false);
    }

    /// Notes bytes that were written to a file.
    pub fn wrote(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Relaxed);
    }

    /// Notes bytes that were appended in memory (O2).
    pub fn appended(&self, bytes: u64) {
        if sound!(true, "space: count what is appended when it is written") {
            self.owed_bytes.fetch_add(bytes as i64, Relaxed);
            self.wrote(bytes);
        }
    }

    /// Notes that `bytes` of the appended bytes are in their file. May be called before the call
    /// that notes the append.
    pub fn landed(&self, bytes: u64) {
        if sound!(true, "space: count what is appended when it is written") {
            self.owed_bytes.fetch_sub(bytes as i64, Relaxed);
        }
    }

    /// Notes that a file was removed or became shorter.
    pub fn freed(&self) {
        self.has_freed.store(true, Relaxed);
    }

    /// Notes that a write or an allocation of `bytes` bytes failed for lack of space. Queries the
    /// file system again, and stops trusting it if it reports that there was space.
    pub fn was_refused(&self, bytes: u64) {
        let mut known = self.known.lock();
        known.is_asked = false;
        let free_bytes = self.disk.free_bytes().unwrap_or(0);
        if free_bytes > LIE_BYTES_MIN.max(2 * bytes) && !known.cannot_allocate {
            (known.is_doubted, known.has_lied) = (true, true);
        }
    }

    /// Returns `Err(DiskFull)` unless `bytes` can be written in addition to all promised bytes,
    /// with `stays` of the reserve left (O1). Cheap while there is space: the file system is then
    /// queried only after a certain number of written bytes.
    pub fn check(&self, promised_bytes: u64, bytes: u64, stays: Reserve) -> Result<()> {
        self.decide(Wish { promised: Promised::Now(promised_bytes), bytes, stays, takes: false })
    }

    /// Like [`check`](Self::check), for bytes that were already promised.
    pub fn check_to_write(&self, bytes: u64, stays: Reserve) -> Result<()> {
        self.decide(Wish { promised: Promised::Among, bytes, stays, takes: false })
    }

    /// Like [`check`](Self::check) for no further bytes, with the promised bytes as last reported.
    pub fn check_beside_promised(&self, stays: Reserve) -> Result<()> {
        self.decide(Wish { promised: Promised::AsTold, bytes: 0, stays, takes: false })
    }

    /// Like [`check_beside_promised`](Self::check_beside_promised), for `bytes`, which then count
    /// as written. The caller allocates or writes them next.
    pub fn take(&self, bytes: u64, stays: Reserve) -> Result<()> {
        self.decide(Wish { promised: Promised::AsTold, bytes, stays, takes: true })
    }

    /// Notes `bytes` bytes that the caller must write regardless of promises. They count as
    /// written, and the file of the reserve makes room for them. The write itself shows whether
    /// there is space.
    pub fn make_way(&self, bytes: u64) {
        let mut known = self.known.lock();
        let _the_write_shows_it = self.ask(&mut known, bytes);
        self.wrote(bytes);
    }

    fn decide(&self, wish: Wish) -> Result<()> {
        let mut decided = self.try_wish(&wish);
        if decided.is_err() && self.has_freed.swap(false, Relaxed) && self.disk.frees_later() {
            // This is not a barrier. Without it the space would be freed too, but later.
            let _ = self.disk.free_now();
            decided = self.try_wish(&wish);
        }
        decided
    }

    fn try_wish(&self, wish: &Wish) -> Result<()> {
        let mut known = self.known.lock();
        if let Promised::Now(bytes) = wish.promised {
            known.promised_bytes = bytes;
        }
        let promised_bytes = if let Promised::Among = wish.promised { 0 } else { known.promised_bytes };
        let own_bytes = promised_bytes.saturating_add(wish.bytes);
        let needed_bytes = own_bytes.saturating_add(known.part(wish.stays));
        let is_enough = |known: &Known| {
            let left_bytes = self.left_bytes(known);
            left_bytes >= needed_bytes && left_bytes - known.file_bytes.min(left_bytes) >= own_bytes
        };
        let refresh_bytes = REFRESH_BYTES_MAX.min(known.reserve_bytes / STEP_PART);
        let is_fresh = known.is_asked && self.written_bytes.load(Relaxed) <= refresh_bytes;
        if !is_fresh || !is_enough(&known) {
            self.ask(&mut known, wish.bytes)?;
        }
        if !is_enough(&known) {
            let left_bytes = self.left_bytes(&known);
            return Err(Error::DiskFull(format!("{left_bytes} bytes free, {needed_bytes} needed")));
        }
        if wish.takes {
            self.wrote(wish.bytes);
        }
        Ok(())
    }

    /// The bytes that are left after the promised bytes; negative if the promised bytes do not fit.
    pub fn left_beside_promised(&self) -> i64 {
        let known = self.asked();
        let left = i64::try_from(self.left_bytes(&known)).unwrap_or(i64::MAX);
        left.saturating_sub_unsigned(known.promised_bytes)
    }

    /// Bytes that may be written with `stays` of the reserve left.
    pub fn room_above(&self, stays: Reserve) -> u64 {
        let known = self.asked();
        self.left_bytes(&known).saturating_sub(known.promised_bytes.saturating_add(known.part(stays)))
    }

    /// Bytes of the reserve.
    pub fn reserve_bytes(&self) -> u64 {
        self.known.lock().reserve_bytes
    }

    /// Returns whether space was short at the last check. Cheap.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// Queries the file system, and lets the file of the reserve grow or shrink. Called by a
    /// background thread several times a second. If the disk cannot be queried, the last known
    /// values remain.
    pub fn look(&self, promised_bytes: u64) {
        let mut known = self.known.lock();
        known.promised_bytes = promised_bytes;
        let _asked_again_later = self.ask(&mut known, 0);
    }

    fn asked(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock();
        if !known.is_asked {
            let _asked_again_later = self.ask(&mut known, 0);
        }
        known
    }

    fn left_bytes(&self, known: &Known) -> u64 {
        known.left_bytes.saturating_sub(self.written_bytes.load(Relaxed))
    }

    /// Queries the file system before `bytes` bytes are written in addition to the promised bytes.
    fn ask(&self, known: &mut Known, bytes: u64) -> Result<()> {
        self.measure(known)?;
        if known.reserve_bytes > 0 && !known.is_starting {
            self.float(known, bytes)?;
        }
        let beside = known.promised_bytes.saturating_add(SHORT_BELOW.saturating_mul(known.reserve_bytes));
        self.is_short.store(known.left_bytes < beside, Relaxed);
        Ok(())
    }

    fn measure(&self, known: &mut Known) -> Result<()> {
        // Reset before the query: bytes written meanwhile count twice rather than not at all.
        self.written_bytes.store(0, Relaxed);
        let owed_bytes = u64::try_from(self.owed_bytes.load(Relaxed)).unwrap_or(0);
        let free_bytes = match known.is_doubted {
            true => 0,
            false => self.disk.free_bytes().map_err(|e| Error::io("free space", "", e))?,
        };
        let all_bytes = free_bytes.saturating_add(known.file_bytes);
        known.left_bytes = all_bytes.saturating_sub(owed_bytes);
        known.is_asked = true;
        Ok(())
    }

    /// See O3 and O4.
    fn float(&self, known: &mut Known, bytes: u64) -> Result<()> {
        if known.is_doubted {
            self.resize(known, known.reserve_bytes);
            known.is_doubted = known.file_bytes < known.reserve_bytes && !known.cannot_allocate;
            self.measure(known)?;
            if known.is_doubted {
                let wanted = known.file_bytes.saturating_sub(known.promised_bytes.saturating_add(bytes));
                self.resize(known, wanted);
                return Ok(());
            }
        }
        let wanted = self.wanted_file_bytes(known, bytes);
        let step = (known.reserve_bytes / STEP_PART).max(1);
        let is_end = wanted == 0 || wanted == known.reserve_bytes;
        if wanted != known.file_bytes && (is_end || wanted.abs_diff(known.file_bytes) >= step) {
            self.resize(known, wanted);
            self.measure(known)?;
        }
        if wanted == 0 {
            self.remove_if_plenty(known);
        }
        Ok(())
    }

    fn wanted_file_bytes(&self, known: &Known, bytes: u64) -> u64 {
        let Known { reserve_bytes, left_bytes, .. } = *known;
        let enough = ALLOCATED_BELOW.saturating_mul(reserve_bytes);
        // Once allocated, the reserve stays allocated until there is clearly more space.
        let enough = if known.file_bytes > 0 { enough.saturating_add(reserve_bytes) } else { enough };
        if left_bytes >= enough && !known.has_lied || known.cannot_allocate {
            return 0;
        }
        if known.file_bytes > 0 && !sound!(true, "space: let the file of the reserve be") {
            return known.file_bytes;
        }
        let margin = reserve_bytes / MARGIN_PART;
        let own_bytes = known.promised_bytes.saturating_add(bytes).saturating_add(margin);
        left_bytes.saturating_sub(own_bytes).min(reserve_bytes)
    }

    /// Resizes the file as close to `wanted` as possible. The next write meets any error again.
    fn resize(&self, known: &mut Known, wanted: u64) {
        if known.file.is_none() && wanted > 0 {
            known.file = self.disk.create(PATH).ok();
        }
        let Some(file) = known.file.clone() else { return };
        let is_allocated = match wanted < known.file_bytes {
            true => {
                self.freed();
                file.set_len(wanted).is_ok()
            }
            false => grow(known, &*file, wanted),
        };
        let Ok(file_bytes) = allocated_bytes(Some(&*file)) else { return };
        known.cannot_allocate |= is_allocated && file_bytes < wanted;
        known.file_bytes = if known.cannot_allocate { 0 } else { file_bytes };
    }

    fn remove_if_plenty(&self, known: &mut Known) {
        if known.file.is_some() && known.file_bytes == 0 && known.left_bytes > known.reserve_bytes {
            if let Ok(()) = self.disk.unlink(PATH) {
                known.file = None;
            }
        }
    }
}

/// Extends the file to `wanted` bytes; in steps if the file system is not trusted, to get as much
/// as possible. Returns whether all bytes were allocated.
fn grow(known: &Known, file: &dyn File, wanted: u64) -> bool {
    let step = if known.is_doubted { (known.reserve_bytes / STEP_PART).max(1) } else { wanted };
    let mut bytes = known.file_bytes;
    while bytes < wanted {
        bytes = bytes.saturating_add(step).min(wanted);
        if file.allocate(bytes).is_err() {
            return false;
        }
    }
    true
}

opaque!(Space);

fn allocated_bytes(file: Option<&dyn File>) -> Result<u64> {
    file.map_or(Ok(0), File::allocated_bytes).map_err(|e| Error::io("size", PATH, e))
}
