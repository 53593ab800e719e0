//! The rate at which images are read in the background.

/// A late caller makes up for at most this time, in nanoseconds.
const CATCH_UP_NS: u64 = 100_000_000;

/// The time at which the next image may be read.
#[derive(Default, Debug)]
pub(super) struct Pace {
    due_ns: u64,
}

impl Pace {
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Counts `bytes` that were read, with `bytes_per_second` allowed.
    pub(super) fn take(&mut self, bytes: u64, bytes_per_second: u64, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS))
            + bytes * 1_000_000_000 / bytes_per_second.max(1);
    }

    /// Allows no read before `ns`.
    pub(super) fn rest_until(&mut self, ns: u64) {
        self.due_ns = ns;
    }
}
