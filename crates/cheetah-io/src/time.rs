//! Time as the engine sees it.

use std::time::Instant;

/// A monotonic clock.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start.
    fn now_ns(&self) -> u64;
    /// Sleeps for about `ns` nanoseconds; a simulated clock moves forward instead.
    fn sleep_ns(&self, ns: u64);
}

/// The clock of the operating system.
#[derive(Debug)]
pub struct RealClock(Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
    fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(std::time::Duration::from_nanos(ns));
    }
}
