//! The segment that is being collected, and how much may be moved.

use super::walk::Walk;
use crate::base::SegmentId;
use crate::format::ImageRef;

/// For each byte that users write, this number is moved at most while the files are emptier than
/// they should be.
const MOVED_PER_WRITTEN: u64 = 2;
/// Part of the device's capacity that collection uses at rest: one in four.
const IDLE_SHARE: u64 = 4;
/// Time made up for at most, in nanoseconds.
const CATCH_UP_NS: u64 = 1_000_000_000;

/// The segment that is being collected.
#[derive(Default, Debug)]
pub(super) struct Collection {
    /// The list of the victim's images while it is not complete.
    pub(super) listing: Option<Listing>,
    /// Images of the victim that were needed when they were listed; the next one last.
    pub(super) images: Vec<ImageRef>,
    last_ns: u64,
    last_written_bytes: u64,
    /// Segments wait to be removed, or to be old enough to be collected.
    pub(super) waits_for_commit: bool,
}

/// A walk over the page table for the images in one segment. The segment is closed: none is added
/// to it meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) victim: SegmentId,
    pub(super) walk: Walk,
}

impl Collection {
    /// The events since this was last called; users have `written` bytes by now.
    pub(super) fn since(&mut self, now_ns: u64, written: u64) -> Since {
        let since = Since {
            elapsed_ns: now_ns.saturating_sub(self.last_ns).min(CATCH_UP_NS),
            written_bytes: written - self.last_written_bytes,
        };
        (self.last_ns, self.last_written_bytes) = (now_ns, written);
        since
    }
}

/// The events since the last step.
pub(super) struct Since {
    elapsed_ns: u64,
    pub(super) written_bytes: u64,
}

impl Since {
    /// That many bytes, as a rate.
    pub(super) fn per_second(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.elapsed_ns.max(1))) as u64
    }

    /// Bytes that may be moved (I2). Where space is short, nothing is more urgent.
    pub(super) fn budget(&self, device_bytes_per_s: u64, is_short: bool) -> u64 {
        let device = if is_short { device_bytes_per_s } else { device_bytes_per_s / IDLE_SHARE };
        let idle = u128::from(device) * u128::from(self.elapsed_ns) / 1_000_000_000;
        self.written_bytes * MOVED_PER_WRITTEN + idle as u64
    }
}
