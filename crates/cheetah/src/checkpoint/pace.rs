//! The rate of a background checkpoint: its writes are spread over the time until the log is full,
//! so that statements see an even load instead of a burst.
//!
//! Invariants
//!   P1  No thread that waits for a checkpoint waits for a pause: a statement that requests one, a
//!       shutdown, a full log and a full disk make the checkpoint in progress hurry.
//!   P2  The checkpoint ends before the log is so full that writers are slowed down, and before the
//!       images that only the checkpoint frees take more than twice the live bytes.
//!   P3  Writers do little of the checkpoint's work: a writer that changes a page which the
//!       checkpoint has not written yet must first write it. A checkpoint that writers overtake
//!       does not pause.

use super::checkpointer::Checkpointer;
use crate::base::Lsn;
use std::sync::atomic::Ordering::Relaxed;

/// Pages written between two readings of the clock.
pub(super) const STEP_PAGES: usize = 16;
/// Percent of the log filled when the checkpoint should end.
const AIM_LOG_PERCENT: u64 = 50;
/// Percent of the log filled from which the checkpoint does not pause: writers will soon be slowed.
const HURRY_LOG_PERCENT: u64 = 65;
/// Seconds that a checkpoint takes, at most, if there is little to write and the log grows slowly.
const SECONDS_MAX: u64 = 30;
/// The checkpoint does not pause if writers flush more than 1 / `FLUSHED_SHARE` of its pages.
const FLUSHED_SHARE: u64 = 8;
/// Interval at which a pause checks whether a thread waits.
const LOOK_EVERY_NS: u64 = 5_000_000;
/// The maximum delay that a checkpoint catches up on.
const CATCH_UP_NS: u64 = 200_000_000;

pub(super) struct Pace<'c> {
    checkpointer: &'c Checkpointer,
    began: Lsn,
    began_ns: u64,
    due_ns: u64,
    flushes: u64,
}

impl<'c> Pace<'c> {
    pub(super) fn start(checkpointer: &'c Checkpointer) -> Self {
        let parts = &checkpointer.parts;
        let (now_ns, flushes) = (parts.clock.now_ns(), parts.pool.flushes_before_modify());
        Self { checkpointer, began: checkpointer.log_end(), began_ns: now_ns, due_ns: now_ns, flushes }
    }

    /// Waits until the next [`STEP_PAGES`] pages of `pages_left` are due.
    pub(super) fn wait(&mut self, pages_left: usize) {
        let parts = &self.checkpointer.parts;
        let now_ns = parts.clock.now_ns();
        let flushes = parts.pool.flushes_before_modify();
        let flushed = flushes - std::mem::replace(&mut self.flushes, flushes);
        if flushed * FLUSHED_SHARE > STEP_PAGES as u64 {
            self.due_ns = now_ns;
            return;
        }
        let rate = self.pages_per_second(now_ns, pages_left).max(1);
        self.due_ns = self.due_ns.max(now_ns.saturating_sub(CATCH_UP_NS));
        self.due_ns += STEP_PAGES as u64 * 1_000_000_000 / rate;
        while !self.is_hurried() {
            let left_ns = self.due_ns.saturating_sub(parts.clock.now_ns());
            if left_ns == 0 {
                break;
            }
            parts.clock.sleep_ns(left_ns.min(LOOK_EVERY_NS));
        }
    }

    /// Whether the checkpoint must not pause (P1).
    fn is_hurried(&self) -> bool {
        self.checkpointer.is_hurried()
            || self.checkpointer.log_percent() >= HURRY_LOG_PERCENT
            || self.checkpointer.parts.pool.remembers_too_much()
            || self.checkpointer.is_mostly_outdated()
    }

    fn pages_per_second(&self, now_ns: u64, pages_left: usize) -> u64 {
        let io_capacity = self.checkpointer.parts.io_capacity.load(Relaxed);
        let log_percent = self.checkpointer.log_percent();
        pages_per_second(pages_left, self.seconds_left(now_ns), log_percent, io_capacity)
    }

    /// The seconds left until the log is as full as it should be at the end, if it grows as fast as
    /// since the checkpoint began, but at most until [`SECONDS_MAX`] have passed (P2).
    fn seconds_left(&self, now_ns: u64) -> u64 {
        let elapsed_ms = (now_ns.saturating_sub(self.began_ns) / 1_000_000).max(1);
        let grown_bytes = self.checkpointer.log_end().0.saturating_sub(self.began.0).max(1);
        let aim_bytes = self.checkpointer.parts.log_bytes_max / 100 * AIM_LOG_PERCENT;
        let left_bytes = aim_bytes.saturating_sub(self.checkpointer.log_bytes());
        let by_log_ms = left_bytes.saturating_mul(elapsed_ms) / grown_bytes;
        let by_time_ms = (SECONDS_MAX * 1000).saturating_sub(elapsed_ms);
        by_log_ms.min(by_time_ms) / 1000
    }
}

/// The rate that writes `pages_left` within `seconds_left`, or more when the log fills up.
fn pages_per_second(pages_left: usize, seconds_left: u64, log_percent: u64, io_capacity: u32) -> u64 {
    let in_time = pages_left as u64 * 5 / (4 * seconds_left.max(1));
    let pressed = u64::from(io_capacity) * log_percent / 50;
    in_time.max(pressed).max(u64::from(io_capacity) / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_as_fast_as_its_time_or_the_log_requires() {
        assert_eq!(pages_per_second(100_000, 100, 0, 2000), 1250);
        assert_eq!(pages_per_second(10, 100, 0, 2000), 500);
        assert_eq!(pages_per_second(10, 100, 80, 2000), 3200);
    }
}
