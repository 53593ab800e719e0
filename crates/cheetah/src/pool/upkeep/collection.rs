//! The segment that is being collected, and the number of bytes that may be moved.

use super::walk::Walk;
use crate::base::SegmentId;
use crate::format::ImageRef;

/// For each byte that users write, at most this number of bytes is moved while the files have too
/// little live data.
const MOVED_PER_WRITTEN: u64 = 2;
/// Without writes by users, collection uses the device's capacity divided by `IDLE_SHARE`.
const IDLE_SHARE: u64 = 4;
/// Collection makes up for at most this time, in nanoseconds.
const CATCH_UP_NS: u64 = 1_000_000_000;

/// The segment that is being collected.
#[derive(Default, Debug)]
pub(super) struct Collection {
    /// The walk that lists the victim's images, until the list is complete.
    pub(super) listing: Option<Listing>,
    /// Images of the victim that were live when they were listed, in reverse order: the next image
    /// is at the end.
    pub(super) images: Vec<ImageRef>,
    last_ns: u64,
    last_written_bytes: u64,
    /// Whether segments wait to be removed, or to become old enough for collection.
    pub(super) waits_for_commit: bool,
}

/// A walk over the page table for the images in one segment. The segment is sealed, so no images
/// are added to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) victim: SegmentId,
    pub(super) walk: Walk,
}

impl Collection {
    /// Returns the time and the bytes written since the previous call. `written` is the total of
    /// the bytes that users have written.
    pub(super) fn since(&mut self, now_ns: u64, written: u64) -> Since {
        let since = Since {
            elapsed_ns: now_ns.saturating_sub(self.last_ns).min(CATCH_UP_NS),
            written_bytes: written - self.last_written_bytes,
        };
        (self.last_ns, self.last_written_bytes) = (now_ns, written);
        since
    }
}

/// The time and the bytes written since the last step.
pub(super) struct Since {
    elapsed_ns: u64,
    pub(super) written_bytes: u64,
}

impl Since {
    /// Converts a number of bytes to a rate.
    pub(super) fn per_second(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.elapsed_ns.max(1))) as u64
    }

    /// Returns the number of bytes that may be moved now (I2). If space is short, collection may
    /// use the device's whole capacity.
    pub(super) fn budget(&self, device_bytes_per_s: u64, is_short: bool) -> u64 {
        let device = if is_short { device_bytes_per_s } else { device_bytes_per_s / IDLE_SHARE };
        let idle = u128::from(device) * u128::from(self.elapsed_ns) / 1_000_000_000;
        self.written_bytes * MOVED_PER_WRITTEN + idle as u64
    }
}
