//! Reading ahead: other threads read and decode the pages that a scan will need soon.
//!
//! Invariants
//!   A1  Reading ahead only affects the time at which a page is read. A page that cannot be read,
//!       or does not fit in memory, stays on disk only. The next fetch reads it, and receives the
//!       error.
//!   A2  Reading ahead stays within the memory limit of frames, and evicts only the pages that are
//!       next in the eviction order. Pages that were read ahead and not fetched yet are at most a
//!       small part of the frames. A page read ahead enters the eviction queues like a new page,
//!       even if its scan has already passed it. So reading ahead evicts no pages that a scan would
//!       not evict.
//!   A3  Requests are hints: they are dropped if there are too many, or if no thread serves them.
//!       Without read-ahead threads each page is read when it is needed, always in the same order.
//!   A4  A page is marked as being read while a read-ahead thread reads it, as in any other fetch
//!       (L1 to L3).

use super::page_read::{stored_image, ImageRead};
use crate::base::{page_work, Error, PageId, Result};
use crate::format::{ImageRef, Location};
use crate::memory::MemoryUse;
use crate::pool::beside::Merged;
use crate::pool::frames::EvictionTime;
use crate::pool::frames::Residence;
use crate::pool::images::codec;
use crate::pool::{PageClass, Pool};
use cheetah_io::aligned::ALIGN_BYTES;
use cheetah_io::AlignedBytes;

/// Maximum number of pages in a request. One reader serves the whole request.
pub const REQUEST_PAGES_MAX: usize = 16;
/// Maximum number of pages that a scan requests in advance. A scan at a gigabyte per second passes
/// them in a millisecond. This hides the latency of the device and lets two readers work at the
/// same time.
const WINDOW_PAGES_MAX: usize = 64;
/// Pages read ahead and not fetched may take 1/`FRAMES_PART` of the frames' memory, for all scans
/// together.
const FRAMES_PART: usize = 32;
/// The maximum number of bytes that are read from a file at once. In a small pool the maximum is
/// lower.
const SPAN_BYTES_MAX: usize = 256 << 10;
/// The minimum size of a reader's buffer in pages. It can hold the image of at least one leaf of
/// the largest size.
const SPAN_PAGES_MIN: usize = 4;
/// Gaps between two images up to this size are read instead of skipped.
const GAP_BYTES_MAX: u64 = 4 << 10;

impl Pool {
    /// The number of pages that a scan may request in advance, or 0 if no thread serves requests.
    pub fn read_ahead_window(&self) -> usize {
        if !self.read_ahead.is_served() {
            return 0;
        }
        self.read_ahead_pages_max().min(WINDOW_PAGES_MAX)
    }

    /// Maximum number of pages that wait in memory to be fetched (A2).
    fn read_ahead_pages_max(&self) -> usize {
        self.memory.frames_limit() / FRAMES_PART / self.page_bytes as usize
    }

    /// Returns whether a page is on disk only, and no thread is reading it.
    fn is_stored(&self, pid: PageId) -> bool {
        self.table.existing(pid).is_some_and(|entry| entry.residence() == Residence::Stored)
    }

    /// Requests at most [`REQUEST_PAGES_MAX`] pages that will be needed soon. Never waits.
    pub fn read_ahead(&self, pids: &[PageId]) {
        debug_assert!(pids.len() <= REQUEST_PAGES_MAX);
        let wanted: Vec<PageId> = pids.iter().copied().filter(|&pid| self.is_stored(pid)).collect();
        if wanted.is_empty() || self.read_ahead.waiting() > self.read_ahead_pages_max() as u64 {
            return;
        }
        page_work::count(|work| work.pages_prefetched += wanted.len() as u64);
        self.read_ahead.ask(wanted);
    }

    /// Serves the requests of scans until [`end_read_ahead`](Self::end_read_ahead) is called. This
    /// is the main loop of a read-ahead thread.
    pub fn serve_read_ahead(&self) {
        // A span is read in whole blocks, so it may be extended by up to one block at each end.
        let buffer_bytes = self.span_bytes_max() + 2 * ALIGN_BYTES;
        let mut bytes = AlignedBytes::with_capacity(buffer_bytes);
        let memory_bytes = AlignedBytes::memory_bytes(buffer_bytes);
        self.memory.add(MemoryUse::Scratch, memory_bytes);
        self.read_ahead.serve(|request| read_request(self, &request, &mut bytes));
        self.memory.subtract(MemoryUse::Scratch, memory_bytes);
    }

    fn span_bytes_max(&self) -> usize {
        let share_bytes = self.memory.shares().read_ahead_bytes_max();
        share_bytes.clamp(SPAN_PAGES_MIN * self.page_bytes as usize, SPAN_BYTES_MAX)
    }

    /// Allows threads to serve again, after [`end_read_ahead`](Self::end_read_ahead).
    pub fn begin_read_ahead(&self) {
        self.read_ahead.begin();
    }

    /// Stops the threads that serve, and drops waiting requests.
    pub fn end_read_ahead(&self) {
        self.read_ahead.end();
    }
}

/// Reads pages that are not in memory. Images that are neighbours in a file are read at once.
fn read_request(pool: &Pool, pids: &[PageId], bytes: &mut AlignedBytes) {
    let mut wanted: Vec<Claim<'_>> = pids.iter().filter_map(|&pid| claim(pool, pid)).collect();
    while !wanted.is_empty() {
        let count = neighbours_count(&wanted, pool.span_bytes_max() as u64);
        let rest = wanted.split_off(count);
        read_neighbours(pool, wanted, bytes);
        wanted = rest;
    }
}

/// Marks a page as being read, if it is on disk only.
fn claim(pool: &Pool, pid: PageId) -> Option<Claim<'_>> {
    let mut entry = pool.table.existing(pid)?;
    // Read-ahead leaves a page with pending changes to a fetch, because reading the page may
    // require a write.
    if entry.residence() != Residence::Stored || entry.has_pending() || entry.is_reserved() {
        return None;
    }
    entry.start_read();
    Some(Claim { pool, image: stored_image(pid, &entry) })
}

fn read_neighbours(pool: &Pool, claims: Vec<Claim<'_>>, bytes: &mut AlignedBytes) {
    let (Some(first), Some(last)) = (claims.first(), claims.last()) else { return };
    let (first, last) = (first.image.location, last.image.location);
    // Dropping a claim unmarks its page. The fetch that needs the page then reads it, and receives
    // the error (A1).
    let Ok(Some(bytes)) = pool.segments.read_span(&first, &last, bytes) else { return };
    pool.read_ahead.read_span();
    for claim in claims {
        let from = (claim.image.location.offset - first.offset) as usize;
        let image = bytes.get(from..).and_then(|rest| rest.get(..claim.image.location.stored_bytes as usize));
        claim.read(image.unwrap_or_default());
    }
}

/// Makes room for a page like any other read, but fails instead of exceeding the limit.
fn make_room_ahead(pool: &Pool, class: PageClass) -> Result<()> {
    pool.make_room_for_read(class)?;
    if pool.buffers.has_room(class, class.bytes(pool.page_bytes)) {
        return Ok(());
    }
    Err(Error::Limit { what: "memory for reading ahead", actual: 0, limit: 0 })
}

/// Returns the number of claims, from the first on, whose images are close enough in a file to be
/// read at once. It is at least one.
fn neighbours_count(claims: &[Claim<'_>], span_bytes_max: u64) -> usize {
    let Some(first) = claims.first() else { return 0 };
    let start = first.image.location;
    let pairs = claims.iter().zip(claims.iter().skip(1));
    let joined = pairs.take_while(|(before, after)| {
        let (before, after) = (before.image.location, after.image.location);
        follows(&before, &after) && after.end() - u64::from(start.offset) <= span_bytes_max
    });
    1 + joined.count()
}

fn follows(before: &Location, after: &Location) -> bool {
    let gap = u64::from(after.offset).checked_sub(before.end());
    before.segment == after.segment && gap.is_some_and(|gap| gap <= GAP_BYTES_MAX)
}

/// A page that this thread reads. Drop always unmarks the page.
struct Claim<'p> {
    pool: &'p Pool,
    image: ImageRef,
}

impl Claim<'_> {
    /// Publishes the page decoded from `stored`, if the image is still the page's newest.
    fn read(self, stored: &[u8]) {
        let pool = self.pool;
        pool.count_read(stored.len());
        let Ok((header, class)) = codec::check(stored, &self.image, pool.page_bytes) else { return };
        let read = ImageRead { header, class, is_new: true };
        let make_room = |class| make_room_ahead(pool, class);
        let Ok(frame) = pool.decode(&self.image, &read, stored, make_room) else { return };
        let entry = pool.table.entry(self.image.pid);
        let is_newest = entry.location() == Some(self.image.location) && !entry.has_pending();
        if entry.residence() == Residence::BeingRead && is_newest {
            let Ok(Merged::Into(mut entry)) = pool.beside.on_read(pool, entry, &frame, &self.image) else {
                return;
            };
            frame.set_ahead();
            pool.publish(&mut entry, &frame, EvictionTime::default());
            pool.read_ahead.read_page();
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut entry = self.pool.table.entry(self.image.pid);
        if entry.residence() == Residence::BeingRead {
            entry.unload();
        }
        drop(entry);
        self.pool.reads.finished(self.image.pid);
    }
}
