//! Free disk space: one owner, who says what may be begun while little is left.
//!
//! Invariants (O1 to O5 of docs/durability.md)
//!   O1  Work begins only if what is promised and its own bytes fit, and the part of the reserve
//!       stays that others need to give space back.
//!   O2  What is appended in memory counts as written from then on, not when it reaches its file.
//!   O3  While little is left, the reserve is allocated, in a file that gives way to what may be
//!       written. Its length says nothing: any will do at a startup, which begins without it.
//!   O4  A file system that says that there is room, and then refuses a write, is not believed
//!       until the whole reserve could be allocated (a quota).
//! Locks     `known`, a leaf; it asks the file system, and allocates.

#[cfg(test)]
mod tests;

use crate::base::{planted, Error, Result};
use cheetah_io::{Disk, File};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// The file system is asked again after so many bytes, or a sixteenth of the reserve: others write
/// on the disk too.
const REFRESH_BYTES_MAX: u64 = 4 << 20;
/// The reserve is allocated when less than so many times its bytes is left.
const ALLOCATED_BELOW: u64 = 4;
/// So many times the reserve, or less, is little.
const SHORT_BELOW: u64 = 3;
/// The part of the reserve that may be written before the file system is asked again.
const MARGIN_PART: u64 = 8;
/// Steps in which the file of the reserve grows and shrinks.
const STEP_PART: u64 = 16;
/// The least reserve, in the shortest log files, so that one fits into each of its parts; and the
/// part of a disk that it may take for that.
const RESERVE_LOG_FILES: u64 = 16;
const RESERVE_PART_MAX: u64 = 2;
/// The reserve is a sixteenth of the disk, or two segments, or of short ones so many bytes.
const RESERVE_PART: u64 = 16;
const RESERVE_SHORT_SEGMENTS: u64 = 8;
const RESERVE_BYTES_SHORT: u64 = 32 << 20;
/// A file system that has refused a write says too much if it still says so.
const LIE_BYTES_MIN: u64 = 1 << 20;

/// File of the reserve.
const PATH: &str = "reserve";

/// How much of the reserve must stay: the less, the more what asks gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserve {
    /// All of it: for new data, and for all that can wait.
    Whole,
    /// For deletes.
    Half,
    /// For purge, which frees what deletes leave.
    Quarter,
    /// For rollback.
    Eighth,
    /// For garbage collection, which gives back more than it takes once a checkpoint commits, and
    /// for changed pages that are written ahead of one.
    Last,
    /// For checkpoints, without which nothing comes back, and for the end of transactions.
    Nothing,
}

/// The sizes that the reserve depends on.
#[derive(Clone, Copy, Debug)]
pub struct SpaceSizes {
    /// Most bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of the shortest log file.
    pub log_file_bytes: u64,
}

impl SpaceSizes {
    /// The reserve on a disk of so many bytes.
    fn reserve_bytes(self, disk_bytes: u64) -> u64 {
        let Self { segment_bytes, log_file_bytes } = self;
        let most = (2 * segment_bytes).max((RESERVE_SHORT_SEGMENTS * segment_bytes).min(RESERVE_BYTES_SHORT));
        let least = (RESERVE_LOG_FILES * log_file_bytes).min(disk_bytes / RESERVE_PART_MAX);
        (disk_bytes / RESERVE_PART).clamp(least, most.max(least))
    }
}

/// See the module.
pub struct Space {
    disk: Arc<dyn Disk>,
    /// Bytes that were written or appended since the file system was asked.
    written_bytes: AtomicU64,
    /// Bytes that were appended, and are not in a file yet.
    owed_bytes: AtomicU64,
    /// Whether little was left when it was last looked at.
    is_short: AtomicBool,
    /// Whether files have gone since the file system was last made to settle that.
    has_freed: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    reserve_bytes: u64,
    /// Free bytes with those of the file, less what was owed.
    left_bytes: u64,
    promised_bytes: u64,
    is_asked: bool,
    is_starting: bool,
    file: Option<Arc<dyn File>>,
    file_bytes: u64,
    /// A write was refused though there was room (O4).
    is_doubted: bool,
    /// Such a thing has happened: the reserve stays allocated.
    has_lied: bool,
    /// The file system reserves no blocks.
    cannot_allocate: bool,
}

impl Known {
    fn part(&self, reserve: Reserve) -> u64 {
        match reserve {
            Reserve::Whole => self.reserve_bytes,
            Reserve::Half => self.reserve_bytes / 2,
            Reserve::Quarter | Reserve::Eighth | Reserve::Last
                if planted::is_on("space: give purge what a checkpoint needs") =>
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
    /// The space of a disk, without a reserve until [`begin`](Self::begin).
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            written_bytes: AtomicU64::new(0),
            owed_bytes: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            has_freed: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// Begins a startup, which may use all that is left; lets go of the file of the reserve if it
    /// is needed for that. Does I/O.
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
        if planted::is_on("space: begin a startup behind the reserve") {
            return Ok(());
        }
        self.resize(&mut known, 0);
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
        if planted::is_on("space: count what is appended when it is written") {
            return;
        }
        self.owed_bytes.fetch_add(bytes, Relaxed);
        self.wrote(bytes);
    }

    /// Notes that so many of the bytes that were appended are in their file.
    pub fn landed(&self, bytes: u64) {
        let less = |owed: u64| Some(owed.saturating_sub(bytes));
        let _ = self.owed_bytes.fetch_update(Relaxed, Relaxed, less);
    }

    /// Notes that a file has gone, or has become shorter.
    pub fn freed(&self) {
        self.has_freed.store(true, Relaxed);
    }

    /// Notes that a write has failed for lack of space: the file system is asked again, and doubted
    /// if it says that there was room.
    pub fn was_refused(&self) {
        let mut known = self.known.lock();
        known.is_asked = false;
        let free_bytes = self.disk.free_bytes().unwrap_or(0);
        if free_bytes > LIE_BYTES_MIN.max(known.promised_bytes) && !known.cannot_allocate {
            (known.is_doubted, known.has_lied) = (true, true);
        }
    }

    /// `Err(DiskFull)` unless `bytes` can be written beside all that is promised already, and so
    /// much of the reserve stays (O1). Cheap while there is room: the file system is asked only now
    /// and then.
    pub fn check(&self, promised_bytes: u64, bytes: u64, stays: Reserve) -> Result<()> {
        let mut known = self.known.lock();
        known.promised_bytes = promised_bytes;
        self.check_known(known, promised_bytes, bytes, stays)
    }

    /// As [`check`](Self::check), for bytes that others have promised to write.
    pub fn check_to_write(&self, bytes: u64, stays: Reserve) -> Result<()> {
        self.check_known(self.known.lock(), 0, bytes, stays)
    }

    /// As [`check`](Self::check) beside what was last told to be promised, and counts the bytes as
    /// written.
    pub fn take(&self, bytes: u64, stays: Reserve) -> Result<()> {
        let known = self.known.lock();
        let promised_bytes = known.promised_bytes;
        self.check_known(known, promised_bytes, bytes, stays)?;
        self.wrote(bytes);
        Ok(())
    }

    fn check_known(
        &self,
        mut known: MutexGuard<'_, Known>,
        promised_bytes: u64,
        bytes: u64,
        stays: Reserve,
    ) -> Result<()> {
        let own_bytes = promised_bytes.saturating_add(bytes);
        let needed_bytes = own_bytes.saturating_add(known.part(stays));
        let is_enough = |known: &Known| {
            let left_bytes = self.left_bytes(known);
            left_bytes >= needed_bytes && left_bytes - known.file_bytes.min(left_bytes) >= own_bytes
        };
        let refresh_bytes = REFRESH_BYTES_MAX.min(known.reserve_bytes / STEP_PART);
        let is_fresh = known.is_asked && self.written_bytes.load(Relaxed) <= refresh_bytes;
        if is_fresh && is_enough(&known) {
            return Ok(());
        }
        self.ask(&mut known, bytes)?;
        let has_not = |known: &Known| self.left_bytes(known) < needed_bytes;
        if has_not(&known) && self.has_freed.swap(false, Relaxed) {
            // Without it the space comes back all the same, but later.
            let _ = self.disk.settle();
            self.ask(&mut known, bytes)?;
        }
        if !has_not(&known) {
            return Ok(());
        }
        Err(Error::DiskFull(format!("{} bytes free, {needed_bytes} needed", self.left_bytes(&known))))
    }

    /// Bytes that are left beside what is promised; less than none when that does not fit.
    pub fn left_beside_promised(&self) -> i64 {
        let known = self.asked();
        let left = i64::try_from(self.left_bytes(&known)).unwrap_or(i64::MAX);
        left.saturating_sub_unsigned(known.promised_bytes)
    }

    /// Bytes that may be written so that so much of the reserve stays.
    pub fn room_above(&self, stays: Reserve) -> u64 {
        let known = self.asked();
        self.left_bytes(&known).saturating_sub(known.promised_bytes.saturating_add(known.part(stays)))
    }

    /// The reserve.
    pub fn reserve_bytes(&self) -> u64 {
        self.known.lock().reserve_bytes
    }

    /// Whether little was left when it was last looked at. Cheap.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// Asks the file system, and lets the file of the reserve grow or give way. To be called by the
    /// background about once a second. A disk that cannot be asked is left as it was known.
    pub fn look(&self, promised_bytes: u64) {
        let mut known = self.known.lock();
        known.promised_bytes = promised_bytes;
        let _asked_again_later = self.ask(&mut known, 0);
    }

    /// A disk that cannot be asked has no room.
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

    /// Asks the file system; `bytes` are about to be written beside what is promised.
    fn ask(&self, known: &mut Known, bytes: u64) -> Result<()> {
        // Before it is asked: what is written meanwhile is rather counted twice.
        self.written_bytes.store(0, Relaxed);
        self.measure(known)?;
        if known.reserve_bytes > 0 && !known.is_starting {
            self.float(known, bytes)?;
        }
        let beside = known.promised_bytes.saturating_add(SHORT_BELOW.saturating_mul(known.reserve_bytes));
        self.is_short.store(known.left_bytes < beside, Relaxed);
        Ok(())
    }

    fn measure(&self, known: &mut Known) -> Result<()> {
        let free_bytes = match known.is_doubted {
            true => 0,
            false => self.disk.free_bytes().map_err(|e| Error::io("free space", "", e))?,
        };
        let all_bytes = free_bytes.saturating_add(known.file_bytes);
        known.left_bytes = all_bytes.saturating_sub(self.owed_bytes.load(Relaxed));
        known.is_asked = true;
        Ok(())
    }

    /// O3, O4.
    fn float(&self, known: &mut Known, bytes: u64) -> Result<()> {
        if known.is_doubted {
            self.resize(known, known.reserve_bytes);
            known.is_doubted = known.file_bytes < known.reserve_bytes && !known.cannot_allocate;
            self.measure(known)?;
            if known.is_doubted {
                // What is about to be written gets its part of what could be allocated.
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
        Ok(())
    }

    fn wanted_file_bytes(&self, known: &Known, bytes: u64) -> u64 {
        let Known { reserve_bytes, left_bytes, .. } = *known;
        let enough = ALLOCATED_BELOW.saturating_mul(reserve_bytes);
        // Once allocated it stays until there is clearly more.
        let enough = if known.file_bytes > 0 { enough.saturating_add(reserve_bytes) } else { enough };
        if left_bytes >= enough && !known.has_lied || known.cannot_allocate {
            return 0;
        }
        if planted::is_on("space: let the file of the reserve be") && known.file_bytes > 0 {
            return known.file_bytes;
        }
        let margin = reserve_bytes / MARGIN_PART;
        let own_bytes = known.promised_bytes.saturating_add(bytes).saturating_add(margin);
        left_bytes.saturating_sub(own_bytes).min(reserve_bytes)
    }

    /// Has the file take so many bytes, or as many as there are. An error leaves it as it is: who
    /// writes meets it again.
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
        let is_plenty = wanted == 0 && known.left_bytes > known.reserve_bytes && !known.is_starting;
        if is_plenty && self.disk.unlink(PATH).is_ok() {
            known.file = None;
        }
    }
}

/// Allocates, of a file system that is doubted as much as it has; whether it has all.
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

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space").field("is_short", &self.is_short).finish_non_exhaustive()
    }
}

/// What a file takes of the disk.
fn allocated_bytes(file: Option<&dyn File>) -> Result<u64> {
    file.map_or(Ok(0), File::allocated_bytes).map_err(|e| Error::io("size", PATH, e))
}
