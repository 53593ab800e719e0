//! Space in the log. As the log approaches its limit, writers are first slowed down and then wait.
//! They wait outside the gate, where they hold nothing that a checkpoint needs.

use super::writer::Log;
use crate::base::stages::Stage;
use crate::base::stalls::Stall;
use crate::base::{brake, Error, Lsn, Result};
use crate::durable::space::Reserve;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Above this fill level writers are slowed down, so that a checkpoint keeps up with them and no
/// writer has to stop.
const SLOW_PERCENT: u64 = 75;
/// Above this fill level writers wait. The remaining space is for writers that have already passed
/// the check.
const FULL_PERCENT: u64 = 95;
/// The maximum delay of one operation, just before the log is full.
const DELAY_NS_MAX: u64 = 1_000_000;
/// The time between a waiting writer's checks for an interruption.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// When disk space is short, a new file takes at most the space above the reserve divided by
/// `SHORT_PART`.
const SHORT_PART: u64 = 8;

/// The action that a writer has to take before it may log something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// The writer need not do anything.
    Plenty,
    /// The writer must pause.
    Slow {
        /// The duration of the pause.
        delay_ns: u64,
    },
    /// The writer must wait for a checkpoint.
    Full,
}

impl Log {
    /// Bytes of log since `lsn`.
    pub fn bytes_since(&self, lsn: Lsn) -> u64 {
        self.end().0.saturating_sub(lsn.0)
    }

    /// Returns the action that the fill level of the log requires. Never blocks for I/O.
    pub fn space(&self) -> Space {
        let used = self.bytes_since(self.oldest_needed());
        let (slow, full) = (self.bytes_max / 100 * SLOW_PERCENT, self.bytes_max / 100 * FULL_PERCENT);
        if used < slow {
            return Space::Plenty;
        }
        if used >= full {
            return Space::Full;
        }
        Space::Slow { delay_ns: DELAY_NS_MAX * (used - slow) / (full - slow).max(1) }
    }

    /// Waits until there is space. Must be called before entering the gate, never inside.
    ///
    /// Fails with `DiskFull` if there is no disk space for the next file, or if during the wait
    /// less of the reserve remains than `stays`, because then a checkpoint might fail. Fails with
    /// `Interrupted` if `interrupted` returns true. If the process has no other threads, the caller
    /// must check [`Log::space`] first and make a checkpoint itself.
    pub fn wait_for_space(&self, stays: Reserve, interrupted: &dyn Fn() -> bool) -> Result<()> {
        self.health().check()?;
        match self.space() {
            Space::Plenty => {}
            Space::Slow { delay_ns } => {
                if let Some(owed_ns) = brake::owe(delay_ns) {
                    let _stall = self.begin_stall();
                    self.clock.sleep_ns(owed_ns);
                }
            }
            Space::Full => self.wait_for_recycling(stays, interrupted)?,
        }
        self.prepare_reserve()
    }

    /// Makes sure that the next file is ready before the current one is full. Fails with `DiskFull`
    /// if there is no space for it without using the reserve. Must be called outside the gate.
    /// [`wait_for_space`](Self::wait_for_space) calls it too.
    pub fn prepare_reserve(&self) -> Result<()> {
        self.make_ready(Reserve::Whole)
    }

    /// Like [`prepare_reserve`](Self::prepare_reserve), but may use the reserve down to `stays`,
    /// and a shorter file if there is no space for one of the usual length. Used by work that must
    /// continue when the disk is full.
    pub fn prepare_short_reserve(&self, stays: Reserve) -> Result<()> {
        self.make_ready(stays)
    }

    fn make_ready(&self, stays: Reserve) -> Result<()> {
        if self.reserve_is_ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut files = self.files.lock();
        loop {
            let (taken_count, wanted, least) = {
                let tail = self.tail.lock();
                (tail.taken_count(), tail.wanted_bytes(), tail.least_bytes())
            };
            let wanted = self.length_for_space(wanted, least);
            let least = if stays == Reserve::Whole { wanted } else { least };
            let bytes = files.make_ready(taken_count, wanted, least, stays)?;
            let mut tail = self.tail.lock();
            // If the counts differ, another thread made the file ready first, and the tail has
            // taken it.
            if tail.taken_count() == taken_count {
                tail.set_ready(bytes);
                self.reserve_is_ready.store(true, Ordering::Release);
                return Ok(());
            }
        }
    }

    /// Returns the length of the next file. If space is short, the file takes only a small part of
    /// the remaining space, and its length is `least` times a power of two.
    fn length_for_space(&self, wanted: u64, least: u64) -> u64 {
        let space = self.durable.space();
        match space.is_short() {
            true => {
                let most = (space.room_above(Reserve::Whole) / SHORT_PART).max(least);
                wanted.min(least << (most / least).ilog2())
            }
            false => wanted,
        }
    }

    fn wait_for_recycling(&self, stays: Reserve, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let _stall = self.begin_stall();
        let mut waiting = self.recycling.lock();
        while self.space() == Space::Full {
            self.health().check()?;
            if interrupted() {
                return Err(Error::Interrupted);
            }
            // Without space for a checkpoint, the wait would never end.
            self.durable.space().check_beside_promised(stays)?;
            self.recycled.wait_for(&mut waiting, LOOK_EVERY);
        }
        Ok(())
    }

    fn begin_stall(&self) -> Stall<'_> {
        self.health().stalls().begin(Stage::LogSpace, &*self.clock)
    }

    /// Notes that a checkpoint has committed, so that nothing before position `before` is needed
    /// any more. Keeps files that end before this position for reuse, or removes them, and wakes
    /// writers that wait for space. Returns the number of retired files.
    pub fn recycle(&self, before: Lsn) -> Result<usize> {
        self.health().check()?;
        assert!(before <= self.end(), "K3: a checkpoint covers only what has been logged");
        debug_assert!(before >= self.oldest_needed(), "K3: log that has been let go is not needed again");
        let result = self.files.lock().recycle(before);
        let _waiting = self.recycling.lock();
        self.note_oldest_needed(before);
        self.recycled.notify_all();
        result
    }
}
